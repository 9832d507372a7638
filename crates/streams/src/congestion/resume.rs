//! Carries what one connection learnt of its path to the next: the client replaces QUIC connections
//! after a blackout, and the next should not begin as if the path were new.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The newest knowledge of a session's connections in one direction. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct PathCache(Arc<Mutex<Option<SavedPath>>>);

/// The rate and round trip measured on a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SavedPath {
    /// Octets a second.
    pub rate: f64,
    /// The shortest round trip.
    pub least: Duration,
    pub at: Instant,
}

impl PathCache {
    pub(super) fn note(&self, known: SavedPath) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(known);
    }

    /// The saved path, unless it is too old.
    pub(super) fn recall(&self, now: Instant) -> Option<SavedPath> {
        let known = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.filter(|known| now.saturating_duration_since(known.at) < KNOWN_AGE)
    }
}

impl SavedPath {
    /// The initial window in octets for this first round trip: half of what the path held
    /// (draft-ietf-tsvwg-careful-resume, section 3.3), if it looks like the same path.
    pub(super) fn start(&self, rtt: Duration) -> Option<u64> {
        let is_same = rtt >= self.least.mul_f64(0.8) && rtt <= self.least.mul_f64(1.5) + JITTER;
        is_same.then_some((self.rate * self.least.as_secs_f64() / 2.0) as u64)
    }
}

/// How long a saved path stays valid. A blackout of this length is a nap of the laptop.
const KNOWN_AGE: Duration = Duration::from_secs(600);
/// Tolerance of a round trip that is measured once.
const JITTER: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "quinn's instants begin at some now")]
    fn a_path_is_known_by_its_round_trip_and_for_a_while() {
        let began = Instant::now();
        let memory = PathCache::default();
        assert_eq!(memory.clone().recall(began), None);
        let known = SavedPath { rate: 1e6, least: Duration::from_millis(100), at: began };
        memory.note(known);
        let after = |secs| began + Duration::from_secs(secs);
        assert_eq!(memory.clone().recall(after(61)), Some(known), "clones are one");
        assert_eq!(memory.recall(after(601)), None);
        for (rtt_ms, start) in
            [(60, None), (95, Some(50_000)), (100, Some(50_000)), (150, Some(50_000)), (160, None)]
        {
            assert_eq!(known.start(Duration::from_millis(rtt_ms)), start, "{rtt_ms} ms");
        }
    }
}
