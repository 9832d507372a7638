//! Numbers with their intervals, and how likely two sets of numbers come from one source.

use crate::rng::Rng;

/// Stretches that are drawn anew for an interval, and how often. Samples next to each other are alike, so that they are
/// drawn together.
const STRETCHES: usize = 20;
const DRAWS: usize = 200;

/// A number that was measured on samples, and its interval of 95 %.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Estimate {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

impl Estimate {
    /// A measure of samples, and of those of stretches that are drawn at random.
    pub(crate) fn of(n: usize, rng: &mut Rng, measure: impl Fn(&[usize]) -> f64) -> Estimate {
        let all: Vec<usize> = (0..n).collect();
        let value = measure(&all);
        let stretches = STRETCHES.min(n.max(1));
        let bounds = |stretch: usize| stretch * n / stretches..(stretch + 1) * n / stretches;
        let mut drawn: Vec<f64> = (0..DRAWS)
            .map(|_| {
                let picked = (0..stretches).map(|_| rng.below(stretches as u64) as usize);
                let picked: Vec<usize> = picked.flat_map(bounds).collect();
                measure(&picked)
            })
            .collect();
        drawn.sort_by(f64::total_cmp);
        let at = |share: usize| drawn[share * (DRAWS - 1) / 1_000];
        Estimate { value, low: at(25), high: at(975) }
    }

    /// The same, all at least this.
    pub(crate) fn at_least(self, least: f64) -> Estimate {
        let Estimate { value, low, high } = self;
        Estimate { value: value.max(least), low: low.max(least), high: high.max(least) }
    }
}

/// How likely two sets from one source differ as much as these (the test of Kolmogorov and Smirnov). `None` for sets that are
/// too small to say.
pub(crate) fn alike(a: &[f64], b: &[f64]) -> Option<f64> {
    const LEAST: usize = 20;
    if a.len() < LEAST || b.len() < LEAST {
        return None;
    }
    let sorted = |values: &[f64]| {
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        values
    };
    let (a, b) = (sorted(a), sorted(b));
    let (mut i, mut j, mut most) = (0, 0, 0.0_f64);
    while i < a.len() && j < b.len() {
        let at = a[i].min(b[j]);
        i += a[i..].iter().take_while(|value| **value <= at).count();
        j += b[j..].iter().take_while(|value| **value <= at).count();
        most = most.max((i as f64 / a.len() as f64 - j as f64 / b.len() as f64).abs());
    }
    let (n, m) = (a.len() as f64, b.len() as f64);
    let root = (n * m / (n + m)).sqrt();
    // As Stephens corrects it for few samples.
    let reach = (root + 0.12 + 0.11 / root) * most;
    let term = |k: i32| {
        let sign = if k % 2 == 0 { -1.0 } else { 1.0 };
        sign * (-2.0 * f64::from(k * k) * reach * reach).exp()
    };
    Some(if reach < 0.2 { 1.0 } else { (2.0 * (1..=100).map(term).sum::<f64>()).clamp(0.0, 1.0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(rng: &mut Rng) -> f64 {
        rng.below(1_000_000) as f64 / 1e6
    }

    #[test]
    fn an_interval_holds_the_mean() {
        let mut rng = Rng::new(3);
        let mut inside = 0;
        for _ in 0..40 {
            let values: Vec<f64> = (0..200).map(|_| noise(&mut rng)).collect();
            let found = Estimate::of(values.len(), &mut rng, |picked| {
                picked.iter().map(|place| values[*place]).sum::<f64>() / picked.len() as f64
            });
            assert!(found.low < found.value && found.value < found.high, "{found:?}");
            inside += usize::from((found.low..found.high).contains(&0.5));
        }
        assert!(inside >= 32, "{inside} of 40");
    }

    #[test]
    fn sets_of_one_source_are_alike() {
        let mut rng = Rng::new(5);
        for (shift, least, most) in [(0.0, 0.01, 1.0), (0.3, 0.0, 0.001)] {
            let a: Vec<f64> = (0..300).map(|_| noise(&mut rng)).collect();
            let b: Vec<f64> = (0..500).map(|_| noise(&mut rng) + shift).collect();
            let found = alike(&a, &b).unwrap();
            assert!((least..=most).contains(&found), "{shift}: {found}");
        }
        assert_eq!(alike(&[1.0; 100], &[1.0; 100]), Some(1.0));
        assert_eq!(alike(&[1.0; 100], &[1.0; 5]), None);
    }
}
