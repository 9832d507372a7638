//! Samples in few words: what every table of the lab reports.

use serde_json::{Value, json};

use crate::rng::Rng;

/// A set of samples, described.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
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
}

impl Summary {
    /// Of these samples; `None` if there are none.
    pub fn of(samples: &[f64]) -> Option<Summary> {
        if samples.is_empty() {
            return None;
        }
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let mean = sorted.iter().sum::<f64>() / n as f64;
        let squares = sorted.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>();
        let (interval, mean_interval) = bootstrap(&sorted);
        Some(Summary {
            n,
            median: median(&sorted),
            mean,
            sigma: if n > 1 { (squares / (n - 1) as f64).sqrt() } else { 0.0 },
            p95: quantile(&sorted, 95),
            p99: quantile(&sorted, 99),
            interval,
            mean_interval,
        })
    }

    /// All of it, for a results file.
    pub fn to_json(&self) -> Value {
        json!({
            "n": self.n,
            "median": self.median,
            "mean": self.mean,
            "sigma": self.sigma,
            "p95": self.p95,
            "p99": self.p99,
            "median_95_percent_interval": [self.interval.0, self.interval.1],
            "mean_95_percent_interval": [self.mean_interval.0, self.mean_interval.1],
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

/// Resamples with a fixed seed: the same samples have the same intervals, of the median and of the mean.
fn bootstrap(sorted: &[f64]) -> ((f64, f64), (f64, f64)) {
    let mut rng = Rng::new(1);
    let (mut medians, mut means) = (Vec::new(), Vec::new());
    for _ in 0..RESAMPLES {
        let mut again: Vec<f64> =
            sorted.iter().map(|_| sorted[rng.below(sorted.len() as u64) as usize]).collect();
        means.push(again.iter().sum::<f64>() / again.len() as f64);
        again.sort_by(f64::total_cmp);
        medians.push(median(&again));
    }
    let middle = |mut found: Vec<f64>| {
        found.sort_by(f64::total_cmp);
        (found[RESAMPLES / 40], found[RESAMPLES - 1 - RESAMPLES / 40])
    };
    (middle(medians), middle(means))
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
}
