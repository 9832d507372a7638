//! Summary statistics of samples: the numbers that every table of the lab reports.

use serde_json::{Value, json};

use crate::rng::Rng;

/// A set of samples, described.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Summary {
    /// How many.
    pub n: usize,
    /// The middle one, or the mean of the two in the middle.
    pub median: f64,
    /// The mean.
    pub mean: f64,
    /// The standard deviation of the sample (n - 1).
    pub sigma: f64,
    /// The smallest sample that at least 95 % of them do not exceed.
    pub p95: f64,
    /// The smallest sample that at least 99 % of them do not exceed.
    pub p99: f64,
    /// The 95 % interval of the median, by bootstrap.
    pub interval: (f64, f64),
    /// The 95 % interval of the mean, by the same resamples.
    pub mean_interval: (f64, f64),
    /// Where the median of a second run of the same size lies in 99 of 100 cases. Both runs vary, so it is wider
    /// than the interval of the median.
    pub again: (f64, f64),
}

impl Summary {
    /// Of these samples in the order they were taken; `None` if there are none.
    pub(crate) fn of(samples: &[f64]) -> Option<Summary> {
        if samples.is_empty() {
            return None;
        }
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let mean = sorted.iter().sum::<f64>() / n as f64;
        let squares = sorted.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>();
        let middle = median(&sorted);
        let (medians, means) = resamples(samples);
        let gaps: Vec<f64> = medians.windows(2).map(|pair| pair[0] - pair[1]).collect();
        let gap = within(gaps, 200);
        Some(Summary {
            n,
            median: middle,
            mean,
            sigma: if n > 1 { (squares / (n - 1) as f64).sqrt() } else { 0.0 },
            p95: quantile(&sorted, 95),
            p99: quantile(&sorted, 99),
            interval: within(medians, 40),
            mean_interval: within(means, 40),
            again: (middle + gap.0, middle + gap.1),
        })
    }

    /// All of it, for a results file.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "n": self.n,
            "median": self.median,
            "mean": self.mean,
            "sigma": self.sigma,
            "p95": self.p95,
            "p99": self.p99,
            "median_95_percent_interval": [self.interval.0, self.interval.1],
            "mean_95_percent_interval": [self.mean_interval.0, self.mean_interval.1],
            "median_again_99_percent_interval": [self.again.0, self.again.1],
        })
    }
}

fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

fn quantile(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted[rank - 1]
}

/// The mean of a second set of samples as a share of the first one's, and the 95 % interval of that share by
/// bootstrap of both.
pub(crate) fn share(of: &[f64], than: &[f64]) -> Option<(f64, (f64, f64))> {
    let mean = |samples: &[f64]| samples.iter().sum::<f64>() / samples.len() as f64;
    if of.is_empty() || than.is_empty() || mean(than) == 0.0 {
        return None;
    }
    let (ours, theirs) = (resamples(of).1, resamples(than).1);
    // The same seed draws both; one is drawn backwards, so that their errors are independent.
    let shares = ours.iter().zip(theirs.iter().rev()).map(|(ours, theirs)| ours / theirs);
    Some((mean(of) / mean(than), within(shares.collect(), 40)))
}

/// Medians and means of resamples, drawn with a fixed seed: the same samples give the same.
///
/// Whole stretches are drawn, each as long as the root of the number of samples, and wrapping around at the end
/// (Politis and Romano 1992): one lost packet delays several keys in a row, and samples drawn one by one would
/// ignore that.
fn resamples(samples: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let mut rng = Rng::new(1);
    let n = samples.len();
    let stretch = n.isqrt();
    let (mut medians, mut means) = (Vec::new(), Vec::new());
    for _ in 0..RESAMPLES {
        let mut again: Vec<f64> = Vec::with_capacity(n);
        while again.len() < n {
            let begins = rng.below(n as u64) as usize;
            let left = stretch.min(n - again.len());
            again.extend((begins..begins + left).map(|place| samples[place % n]));
        }
        means.push(again.iter().sum::<f64>() / n as f64);
        again.sort_by(f64::total_cmp);
        medians.push(median(&again));
    }
    (medians, means)
}

/// The samples without the lowest and the highest of this share.
fn within(mut found: Vec<f64>, one_of: usize) -> (f64, f64) {
    found.sort_by(f64::total_cmp);
    let cut = found.len() / one_of;
    (found[cut], found[found.len() - 1 - cut])
}

/// Resamples of the bootstrap: more would move the interval by less than its own noise.
const RESAMPLES: usize = 2_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn describes() {
        let summary = Summary::of(&[4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((summary.n, summary.median, summary.mean, summary.p99), (4, 2.5, 2.5, 4.0));
        assert!((summary.sigma - 1.291).abs() < 0.001);
        assert!(summary.interval.0 >= 1.0 && summary.interval.1 <= 4.0);
        assert_eq!(summary.p95, 4.0);
        assert!(summary.mean_interval.0 < 2.5 && summary.mean_interval.1 > 2.5);
        assert_eq!(Summary::of(&[7.0]).unwrap().interval, (7.0, 7.0));
        assert_eq!(Summary::of(&[]), None);
    }

    /// Latencies over a path that loses: mostly the same, now and then several late ones together.
    fn run(seed: u64) -> Vec<f64> {
        let mut rng = Rng::new(seed);
        let mut late = 0;
        let mut key = || {
            late = if rng.below(12) == 0 { rng.below(6) } else { late.saturating_sub(1) };
            100.0 + 80.0 * late as f64 + rng.below(100) as f64 / 5.0
        };
        (0..120).map(|_| key()).collect()
    }

    #[test]
    fn a_second_run_is_where_the_first_says() {
        let runs: Vec<Summary> = (0..200).map(|seed| Summary::of(&run(seed)).unwrap()).collect();
        let inside = runs
            .windows(2)
            .filter(|pair| pair[0].again.0 <= pair[1].median && pair[1].median <= pair[0].again.1);
        let inside = inside.count();
        assert!(inside >= 193, "{inside} of 199");
        let wide = |(low, high): (f64, f64)| high - low;
        assert!(runs.iter().all(|run| wide(run.again) >= wide(run.interval)));
    }

    #[test]
    fn shares_have_intervals() {
        let (slow, fast) = (run(1), run(2).iter().map(|ms| ms / 2.0).collect::<Vec<f64>>());
        let (share, (low, high)) = share(&fast, &slow).unwrap();
        assert!(low < share && share < high && low < 0.5 && 0.5 < high, "{low} {share} {high}");
        assert_eq!((super::share(&[], &slow), super::share(&fast, &[])), (None, None));
    }
}
