//! The round-trip estimate (`mosh-protocol.md` §2.2; RFC 6298 §2 with Mosh's bounds). It must not know
//! where samples come from.

use core::time::Duration;

use crate::timing::Timing;

/// The smoothed round trip and its variation.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    srtt: Duration,
    rttvar: Duration,
    samples: u64,
    latest: Option<Duration>,
    rto_min: Duration,
    rto_max: Duration,
    sample_max: Duration,
}

impl RttEstimator {
    /// An estimate without samples: it holds the timing's initial values.
    pub fn new(timing: &Timing) -> RttEstimator {
        RttEstimator {
            srtt: timing.rtt_initial,
            rttvar: timing.rtt_initial / 2,
            samples: 0,
            latest: None,
            rto_min: timing.rto_min,
            rto_max: timing.rto_max,
            sample_max: timing.rtt_sample_max,
        }
    }

    /// Takes one round-trip sample and moves SRTT and RTTVAR (RFC 6298 §2.3, gains 1/8 and 1/4).
    ///
    /// Samples of 5 s and more (`Timing::rtt_sample_max`) are dropped: they measure a suspended laptop,
    /// not the path.
    pub fn sample(&mut self, rtt: Duration) {
        if rtt >= self.sample_max {
            return;
        }
        self.latest = Some(rtt);
        if self.samples == 0 {
            self.srtt = rtt;
            self.rttvar = rtt / 2;
        } else {
            self.rttvar = (self.rttvar * 3 + self.srtt.abs_diff(rtt)) / 4;
            self.srtt = (self.srtt * 7 + rtt) / 8;
        }
        self.samples = self.samples.saturating_add(1);
    }

    /// Sets the bounds of the retransmission timeout.
    pub(crate) fn bound(&mut self, rto_min: Duration, rto_max: Duration) {
        (self.rto_min, self.rto_max) = (rto_min, rto_max);
    }

    /// The smoothed round trip.
    pub fn srtt(&self) -> Duration {
        self.srtt
    }

    /// Its smoothed mean deviation.
    pub fn rttvar(&self) -> Duration {
        self.rttvar
    }

    /// How long to wait for an answer: SRTT + 4 RTTVAR, rounded up to a millisecond, within the bounds.
    pub fn rto(&self) -> Duration {
        ceil_ms(self.srtt + self.rttvar * 4).clamp(self.rto_min, self.rto_max)
    }

    /// The last sample.
    pub fn latest(&self) -> Option<Duration> {
        self.latest
    }

    /// How many samples were taken. 0: every value above is a guess.
    pub fn samples(&self) -> u64 {
        self.samples
    }
}

/// Rounds up to a whole millisecond.
pub(crate) fn ceil_ms(span: Duration) -> Duration {
    Duration::from_millis(span.as_micros().div_ceil(1000) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn starts_from_a_guess() {
        let rtt = RttEstimator::new(&Timing::MOSH);
        assert_eq!((rtt.srtt(), rtt.rttvar(), rtt.rto()), (ms(1000), ms(500), ms(1000)));
        assert_eq!(rtt.samples(), 0);
    }

    #[test]
    fn samples_move_the_estimate() {
        // Samples in ms, then SRTT and RTTVAR in µs, RTO in ms.
        let table: [(&[u64], u64, u64, u64); 6] = [
            (&[100], 100_000, 50_000, 300),
            (&[0], 0, 0, 50),
            (&[100, 100], 100_000, 37_500, 250),
            (&[100, 180], 110_000, 57_500, 340),
            (&[100, 5000], 100_000, 50_000, 300),
            (&[100, 4999], 712_375, 1_262_250, 1000),
        ];
        for (samples, srtt, rttvar, rto) in table {
            let mut rtt = RttEstimator::new(&Timing::MOSH);
            samples.iter().for_each(|&sample| rtt.sample(ms(sample)));
            assert_eq!(rtt.srtt(), Duration::from_micros(srtt), "{samples:?}");
            assert_eq!(rtt.rttvar(), Duration::from_micros(rttvar), "{samples:?}");
            assert_eq!(rtt.rto(), ms(rto), "{samples:?}");
        }
    }

    #[test]
    fn rounds_up() {
        for (micros, millis) in [(0, 0), (1, 1), (1000, 1), (1001, 2)] {
            assert_eq!(ceil_ms(Duration::from_micros(micros)), ms(millis));
        }
    }
}
