//! Statistics over the samples of many sessions, for the tables of the experiments.

use serde_json::{Value, json};

use super::probe::Measured;
use super::report::tenths;

/// The samples of independent sessions.
#[derive(Clone, Debug)]
pub(crate) struct Spread {
    /// All of them, in order of size.
    sorted: Vec<f64>,
    /// Half of the mean's 95 % interval, from how the sessions' means differ.
    half: f64,
}

impl Spread {
    /// Of each session the samples that `of` finds.
    pub(crate) fn new(runs: &[Measured], of: impl Fn(&Measured) -> &[f64]) -> Spread {
        let means: Vec<f64> =
            runs.iter().map(&of).filter(|samples| !samples.is_empty()).map(mean).collect();
        let mut sorted: Vec<f64> = runs.iter().flat_map(|run| of(run).iter().copied()).collect();
        sorted.sort_by(f64::total_cmp);
        let half = match means.len() {
            0 | 1 => f64::INFINITY,
            n => 1.96 * deviation(&means) / (n as f64).sqrt(),
        };
        Spread { sorted, half }
    }

    /// Of keys.
    pub(crate) fn of_keys(runs: &[Measured]) -> Spread {
        Spread::new(runs, |run| &run.keys_ms)
    }

    /// Of the ages of screens.
    pub(crate) fn of_ages(runs: &[Measured]) -> Spread {
        Spread::new(runs, |run| &run.ages_ms)
    }

    /// Of samples that stand for themselves: the interval is that of independent ones.
    pub(crate) fn of_samples(mut samples: Vec<f64>) -> Spread {
        samples.sort_by(f64::total_cmp);
        let half = 1.96 * deviation(&samples) / (samples.len().max(1) as f64).sqrt();
        Spread { sorted: samples, half }
    }

    /// How many samples.
    pub(crate) fn len(&self) -> usize {
        self.sorted.len()
    }

    /// The mean.
    pub(crate) fn mean(&self) -> f64 {
        mean(&self.sorted)
    }

    /// Half of its 95 % interval.
    pub(crate) fn half(&self) -> f64 {
        self.half
    }

    /// The standard deviation of the samples.
    pub(crate) fn sigma(&self) -> f64 {
        deviation(&self.sorted)
    }

    /// The smallest sample that at least this share of them does not exceed.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        super::quantile(&self.sorted, share)
    }

    /// How many, median, mean and its interval: what no table leaves out.
    pub(crate) fn cells(&self) -> [Value; 4] {
        [json!(self.len()), tenths(self.quantile(0.5)), tenths(self.mean()), tenths(self.half)]
    }
}

fn mean(samples: &[f64]) -> f64 {
    samples.iter().sum::<f64>() / samples.len().max(1) as f64
}

/// The standard deviation (n - 1).
fn deviation(samples: &[f64]) -> f64 {
    let center = mean(samples);
    let squares: f64 = samples.iter().map(|sample| (sample - center) * (sample - center)).sum();
    (squares / (samples.len() as f64 - 1.0).max(1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_the_independent_samples() {
        let run = |keys_ms: &[f64]| Measured { keys_ms: keys_ms.to_vec(), ..Measured::default() };
        let spread = Spread::of_keys(&[run(&[1.0, 3.0]), run(&[]), run(&[4.0, 6.0, 5.0, 5.0])]);
        assert_eq!((spread.len(), spread.mean(), spread.quantile(0.5)), (6, 4.0, 4.0));
        // Means of 2 and 5: a deviation of 3 / sqrt 2, over sqrt 2.
        assert!((spread.half() - 1.96 * 1.5).abs() < 1e-9, "{}", spread.half());
        assert!(Spread::of_keys(&[run(&[1.0])]).half().is_infinite());
        assert_eq!(Spread::of_keys(&[]).len(), 0);
    }
}
