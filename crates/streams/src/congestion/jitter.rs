//! Measures the delay that a path itself adds to its shortest round trip, as radio links do. Our
//! own queue does not vary like this: our packets leave it as evenly as we send them.

use std::time::Duration;

use super::delivery::Round;

/// The last rounds. The path's own jitter is in all of them; jitter from our changes of rate is not.
#[derive(Clone, Debug, Default)]
pub(super) struct Jitter {
    /// The mean excess of each round's round trips over its shortest, and their mean, oldest first.
    rounds: [(Duration, Duration); ROUNDS],
}

impl Jitter {
    /// Called at the end of a round.
    pub(super) fn note(&mut self, round: &Round) {
        self.rounds.rotate_left(1);
        self.rounds[ROUNDS - 1] = (round.variation(), round.rtt_mean());
    }

    /// Whether round trips vary within every round.
    pub(super) fn is_there(&self) -> bool {
        self.variation() >= TREMBLE_MIN
    }

    /// The mean delay to add to this shortest round trip. The variation within a round is only part of it:
    /// no packet of the round may have been as fast as the shortest of all.
    pub(super) fn delay(&self, least: Duration) -> Duration {
        let variation = self.variation();
        if !self.is_there() {
            return variation;
        }
        let mean = self.rounds.iter().map(|(_, mean)| *mean).min().unwrap_or_default();
        mean.saturating_sub(least).max(variation)
    }

    fn variation(&self) -> Duration {
        // Zero until five rounds are noted, so that the first ones alone do not count as jitter.
        self.rounds.iter().map(|(variation, _)| *variation).min().unwrap_or_default()
    }
}

/// Rounds to compare.
const ROUNDS: usize = 5;
/// Jitter above what late timers and batched reads make.
const TREMBLE_MIN: Duration = Duration::from_micros(1_500);
