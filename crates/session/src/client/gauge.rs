//! What the path was like in the last two minutes: a sample a second, for the status panel.

use alloc::collections::VecDeque;
use core::time::Duration;

use rove_ssp::Time;

/// Samples that are kept.
pub(crate) const SAMPLES: usize = 120;

const SECOND: Duration = Duration::from_secs(1);

/// The path at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sample {
    /// The round trip; `None` before the first answer.
    pub(crate) round_trip: Option<Duration>,
    /// The share of our datagrams that is lost, in parts of one, if the server reports it.
    pub(crate) sent_loss: Option<f64>,
    /// The same of the server's.
    pub(crate) received_loss: f64,
    /// How long datagrams wait in queues, in the worse direction.
    pub(crate) queue: Duration,
}

/// The last samples. A second without an answer has none.
#[derive(Clone, Debug)]
pub(crate) struct Gauge {
    /// When the first second began.
    began: Time,
    /// Seconds begun since then, each with its sample.
    seconds: u64,
    samples: VecDeque<Option<Sample>>,
}

impl Gauge {
    pub(crate) fn new(now: Time) -> Self {
        Self { began: now, seconds: 0, samples: VecDeque::new() }
    }

    /// Takes a sample if a second has begun, and returns whether one has. In seconds that nobody asked for, the path
    /// was as before them.
    pub(crate) fn tick(&mut self, now: Time, sample: impl FnOnce() -> Option<Sample>) -> bool {
        let seconds = now.since(self.began).as_secs() + 1;
        if seconds <= self.seconds {
            return false;
        }
        let missed = (seconds - self.seconds - 1).min(SAMPLES as u64);
        self.seconds = seconds;
        let before = self.samples.back().copied().flatten();
        for _ in 0..missed {
            self.push(before);
        }
        self.push(sample());
        true
    }

    /// When the next sample is to be taken.
    pub(crate) fn due(&self) -> Time {
        self.began + SECOND * u32::try_from(self.seconds).unwrap_or(u32::MAX)
    }

    /// How long this has been going on.
    pub(crate) fn age(&self) -> Duration {
        SECOND * u32::try_from(self.seconds.saturating_sub(1)).unwrap_or(u32::MAX)
    }

    /// The newest sample.
    pub(crate) fn latest(&self) -> Option<Sample> {
        self.samples.back().copied().flatten()
    }

    /// The samples, the newest last.
    pub(crate) fn samples(&self) -> impl Iterator<Item = Option<Sample>> + Clone {
        self.samples.iter().copied()
    }

    fn push(&mut self, sample: Option<Sample>) {
        if self.samples.len() == SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_a_second() {
        let at = |millis| Time::from_millis(millis);
        let sample =
            |queue| Some(Sample { queue: Duration::from_millis(queue), ..Sample::default() });
        let mut gauge = Gauge::new(at(500));
        for (now, queue) in [(500, 1), (1400, 2), (1500, 3), (2600, 4), (5500, 5)] {
            gauge.tick(at(now), || sample(queue));
        }
        let queues: Vec<u64> =
            gauge.samples().map(|it| it.unwrap().queue.as_millis() as u64).collect();
        assert_eq!(queues, [1, 3, 4, 4, 4, 5]);
        assert_eq!(gauge.latest(), sample(5));
        assert_eq!((gauge.due(), gauge.age()), (at(6500), Duration::from_secs(5)));
        gauge.tick(at(6500), || None);
        assert_eq!(gauge.latest(), None);
        gauge.tick(at(1_000_000_000), || sample(6));
        assert_eq!(gauge.samples().count(), SAMPLES);
        assert_eq!(gauge.samples().flatten().count(), 1);
    }
}
