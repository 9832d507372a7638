//! The lab's only source of randomness: a seeded generator whose stream is fixed by specification. A seed makes the
//! same run on every machine and with every version of every crate.
//!
//! All arithmetic is on integers. With floating point, two maths libraries could make different runs.

use std::time::Duration;

/// The generator of [`rove_ssp::Rng`] (SplitMix64), with the lab's distributions.
#[derive(Clone, Debug)]
pub struct Rng(rove_ssp::Rng);

impl Rng {
    /// The stream that belongs to `seed`.
    pub fn new(seed: u64) -> Rng {
        Rng(rove_ssp::Rng::new(seed))
    }

    /// A stream of its own for one purpose: drawing more from it changes nothing for the others.
    pub fn fork(&mut self) -> Rng {
        Rng::new(self.next_u64())
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.bits()
    }

    /// A number below `bound`; 0 if the bound is 0. The bias of the multiplication is below `bound` / 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        let product = u128::from(self.next_u64()) * u128::from(bound);
        (product >> 64) as u64
    }

    /// A number of `low..=high`; `low` if they are the wrong way round.
    pub fn within(&mut self, low: u64, high: u64) -> u64 {
        low.saturating_add(self.below(high.saturating_sub(low).saturating_add(1)))
    }

    /// One of the given values.
    pub fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        assert!(!values.is_empty(), "a choice needs values");
        values[self.below(values.len() as u64) as usize]
    }

    /// Whether a thing of this chance happens now.
    pub fn happens(&mut self, chance: Chance) -> bool {
        self.below(u64::from(Chance::SURE.0)) < u64::from(chance.0)
    }

    /// A span below `bound`, in whole microseconds.
    pub fn span_below(&mut self, bound: Duration) -> Duration {
        Duration::from_micros(self.below(bound.as_micros() as u64))
    }

    /// A span of `low..=high`, in whole microseconds.
    pub fn span_within(&mut self, low: Duration, high: Duration) -> Duration {
        Duration::from_micros(self.within(low.as_micros() as u64, high.as_micros() as u64))
    }

    /// A normal deviate with mean 0 and deviation `sigma`, in microseconds, between -6 and 6 sigma.
    ///
    /// The sum of twelve uniform numbers less its mean (Irwin and Hall), whose variance is 1.
    pub fn normal_us(&mut self, sigma: Duration) -> i64 {
        const UNIT: i64 = 1 << 32;
        let sum: i64 = (0..12).map(|_| (self.next_u64() >> 32) as i64).sum();
        let deviate = i128::from(sum - 6 * UNIT);
        (deviate * sigma.as_micros() as i128 / i128::from(UNIT)) as i64
    }
}

/// How often something happens, in parts per million.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Chance(u32);

impl Chance {
    /// It never happens.
    pub const NEVER: Chance = Chance(0);
    /// It always happens.
    pub const SURE: Chance = Chance(1_000_000);

    /// Percent, 0 to 100; more is 100.
    pub const fn percent(percent: u32) -> Chance {
        Chance::per_million(percent.saturating_mul(10_000))
    }

    /// Parts per million; more than a million is a million.
    pub const fn per_million(parts: u32) -> Chance {
        if parts > Chance::SURE.0 { Chance::SURE } else { Chance(parts) }
    }

    /// In parts per million.
    pub const fn as_per_million(self) -> u32 {
        self.0
    }
}

impl std::str::FromStr for Chance {
    type Err = ChanceError;

    /// Percent as people write it: `30`, `0.5`, `29%`.
    fn from_str(text: &str) -> Result<Chance, ChanceError> {
        let number = text.trim_end_matches('%').parse::<f64>();
        let number = number.map_err(|_| ChanceError::NoPercentage(text.to_owned()))?;
        if !(0.0..=100.0).contains(&number) {
            return Err(ChanceError::OutOfRange(text.to_owned()));
        }
        Ok(Chance((number * 10_000.0).round() as u32))
    }
}

impl std::fmt::Display for Chance {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} %", f64::from(self.0) / 10_000.0)
    }
}

/// Why a text is not a chance.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ChanceError {
    /// It is not a number.
    NoPercentage(String),
    /// It is below 0 or above 100.
    OutOfRange(String),
}

impl std::fmt::Display for ChanceError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ChanceError::NoPercentage(text) => write!(out, "{text:?} is no percentage"),
            ChanceError::OutOfRange(text) => {
                write!(out, "{text} is not between 0 and 100 percent")
            }
        }
    }
}

impl std::error::Error for ChanceError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_hold() {
        let mut rng = Rng::new(1);
        for _ in 0..10_000 {
            assert!(rng.below(7) < 7);
            assert!((3..=5).contains(&rng.within(3, 5)));
        }
        assert_eq!(rng.below(0), 0);
        assert_eq!(rng.within(5, 3), 5);
    }

    #[test]
    fn chances_come_true_as_often_as_they_say() {
        for percent in [0, 1, 29, 50, 100] {
            let mut rng = Rng::new(u64::from(percent));
            let hits = (0..100_000).filter(|_| rng.happens(Chance::percent(percent))).count();
            let expected = percent as usize * 1_000;
            assert!(hits.abs_diff(expected) < 600, "{percent} %: {hits} of 100000");
        }
    }

    #[test]
    fn normal_has_its_deviation() {
        let mut rng = Rng::new(3);
        let sigma = Duration::from_millis(20);
        let samples: Vec<i64> = (0..50_000).map(|_| rng.normal_us(sigma)).collect();
        let mean = samples.iter().sum::<i64>() / samples.len() as i64;
        let variance = samples.iter().map(|us| us * us).sum::<i64>() / samples.len() as i64;
        assert!(mean.abs() < 400, "mean {mean} us");
        assert!(((variance as f64).sqrt() - 20_000.0).abs() < 300.0, "variance {variance}");
    }

    #[test]
    fn percentages_parse() {
        for (text, parts) in [("30", 300_000), ("0.5%", 5_000), ("100", 1_000_000), ("0", 0)] {
            assert_eq!(text.parse::<Chance>().unwrap().as_per_million(), parts);
        }
        for text in ["-1", "101", "x", ""] {
            assert!(text.parse::<Chance>().is_err(), "{text:?}");
        }
    }
}
