//! Measures how late an emulated link delivers packets. A busy machine delays them beyond the scenario, and then
//! the run is invalid.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counts of lateness, which one thread adds to while others look.
#[derive(Debug)]
pub(crate) struct Lateness {
    /// Steps of [`STEP_US`]; the last one counts all that were later.
    steps: Vec<AtomicU64>,
    max_us: AtomicU64,
}

/// Lateness of delivered packets: how many packets were late by how many steps.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Late {
    /// Packets by the step of [`STEP_US`] that their lateness is in.
    steps: BTreeMap<usize, u64>,
    max: Duration,
}

impl Default for Lateness {
    fn default() -> Lateness {
        let steps = (0..STEPS).map(|_| AtomicU64::new(0)).collect();
        Lateness { steps, max_us: AtomicU64::new(0) }
    }
}

impl Lateness {
    /// One more, so late.
    pub(crate) fn add(&self, late: Duration) {
        let us = late.as_micros().min(u128::from(u64::MAX)) as u64;
        let step = (us / STEP_US).min(STEPS as u64 - 1) as usize;
        self.steps[step].fetch_add(1, Ordering::Relaxed);
        self.max_us.fetch_max(us, Ordering::Relaxed);
    }

    /// The counts so far.
    pub(crate) fn look(&self) -> Late {
        let counts = self.steps.iter().map(|step| step.load(Ordering::Relaxed)).enumerate();
        let max = Duration::from_micros(self.max_us.load(Ordering::Relaxed));
        Late { steps: counts.filter(|(_, count)| *count > 0).collect(), max }
    }
}

impl Late {
    /// Packets.
    pub fn count(&self) -> u64 {
        self.steps.values().sum()
    }

    /// Half of them are no later than this.
    pub fn p50(&self) -> Duration {
        self.quantile(50)
    }

    /// 99 of 100 are no later than this.
    pub fn p99(&self) -> Duration {
        self.quantile(99)
    }

    /// The latest.
    pub fn max(&self) -> Duration {
        self.max
    }

    /// Whether measurements over the link can be believed.
    pub fn is_valid(&self) -> bool {
        self.p99() <= P99_MAX
    }

    /// The packets of both.
    pub fn and(mut self, other: &Late) -> Late {
        for (step, count) in &other.steps {
            *self.steps.entry(*step).or_default() += count;
        }
        self.max = self.max.max(other.max);
        self
    }

    fn quantile(&self, percent: u64) -> Duration {
        let rank = (self.count() * percent).div_ceil(100).max(1);
        let mut sum = 0;
        let step = self.steps.iter().find(|(_, count)| {
            sum += **count;
            sum >= rank
        });
        // The end of the step, so that the quantile is never too optimistic.
        let us = step.map_or(0, |(step, _)| (*step as u64 + 1) * STEP_US);
        Duration::from_micros(us).min(self.max)
    }
}

impl std::fmt::Display for Late {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ms = |span: Duration| span.as_secs_f64() * 1e3;
        let (p50, p99, max) = (ms(self.p50()), ms(self.p99()), ms(self.max));
        write!(out, "late by p50 {p50:.3} ms, p99 {p99:.3} ms, at most {max:.3} ms")?;
        if !self.is_valid() {
            write!(out, " - INVALID: p99 above 1 ms, the machine was too busy for this link")?;
        }
        Ok(())
    }
}

/// Above this a run is marked invalid.
pub(crate) const P99_MAX: Duration = Duration::from_millis(1);

const STEP_US: u64 = 10;
/// Up to 50 ms, by steps of 10 microseconds.
const STEPS: usize = 5_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles() {
        let lateness = Lateness::default();
        assert_eq!(lateness.look(), Late::default());
        for us in 0..100 {
            lateness.add(Duration::from_micros(us * 10 + 5));
        }
        let us = Duration::from_micros;
        let late = lateness.look();
        let all = |late: &Late| (late.count(), late.p50(), late.p99(), late.max());
        assert_eq!(all(&late), (100, us(500), us(990), us(995)));
        assert_eq!(all(&late.clone().and(&late)), (200, us(500), us(990), us(995)));
        assert!(late.is_valid());
        (0..9).for_each(|_| lateness.add(Duration::from_secs(9)));
        assert!(!lateness.look().is_valid());
        assert!(lateness.look().to_string().contains("INVALID"));
        // One short run that was late is not late in the many that it is one of.
        let many = (0..20).fold(lateness.look(), |sum, _| sum.and(&late));
        assert_eq!(
            (many.count(), many.is_valid(), many.max()),
            (2_109, true, Duration::from_secs(9))
        );
    }
}
