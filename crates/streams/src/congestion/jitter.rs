//! Measures the delay that a path itself adds to its shortest round trip, as radio does. A queue of
//! ours does not vary so: our packets leave it as evenly as they are sent.

use std::time::Duration;

use super::delivery::Round;

/// What the last rounds tell of it: the path's own is in all of them, what our changes of speed make is not.
#[derive(Clone, Debug, Default)]
pub(super) struct Jitter {
    /// By how much the round trips of each exceeded its shortest in the mean, and the mean, oldest first.
    rounds: [(Duration, Duration); ROUNDS],
}

impl Jitter {
    /// A round is over.
    pub(super) fn note(&mut self, round: &Round) {
        self.rounds.rotate_left(1);
        self.rounds[ROUNDS - 1] = (round.variation(), round.rtt_mean());
    }

    /// Whether round trips vary within every round.
    pub(super) fn is_there(&self) -> bool {
        self.variation() >= TREMBLE_MIN
    }

    /// What is to be added, in the mean, to this shortest round trip. Where round trips vary, the variation within a
    /// round is only a part of that: no packet of the round may have been as lucky as the shortest of all.
    pub(super) fn delay(&self, least: Duration) -> Duration {
        let variation = self.variation();
        if !self.is_there() {
            return variation;
        }
        let mean = self.rounds.iter().map(|(_, mean)| *mean).min().unwrap_or_default();
        mean.saturating_sub(least).max(variation)
    }

    fn variation(&self) -> Duration {
        self.rounds.iter().map(|(variation, _)| *variation).min().unwrap_or_default()
    }
}

/// Rounds that are compared.
const ROUNDS: usize = 5;
/// Late timers and packets that are read in batches make less than this.
const TREMBLE_MIN: Duration = Duration::from_micros(1_500);
