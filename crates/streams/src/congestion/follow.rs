//! A connection inside a stream: TCP under it, and ssh's channel window, find the rate. Their slow start shows as a
//! queue that grows and goes, and is no sign of a full path. The window keeps one round trip's octets more than are on
//! their way, so that TCP can double its own window each round trip, and the queue is never longer than the path, or 50 ms.

use std::time::{Duration, Instant};

use super::controller::{BulkController, Mode, STARTUP_FLAT, STARTUP_GROWTH};
use super::delivery::Round;

impl BulkController {
    pub(super) fn end_follow_round(&mut self, now: Instant, round: &Round) {
        let Mode::Follow { best, flat } = &mut self.mode else { return };
        if round.rate >= *best * STARTUP_GROWTH {
            *best = round.rate;
            *flat = 0;
        } else if !round.is_limited {
            *flat = flat.saturating_add(1);
        }
        let is_found = *flat >= STARTUP_FLAT;
        // A key would wait in the queue that follows. Beside a shell it stays only until the rate is found, and
        // not while the user types. Copies have no shell.
        if self.is_active(now) || is_found && self.activity.count() > 0 {
            self.cruise();
        } else {
            self.begin_probe_rtt(now, round);
        }
    }

    /// What the stream delivers in the shortest round trip, and as much again or 50 ms of it.
    pub(super) fn following_window(&self) -> f64 {
        let rate = self.rate().max(self.delivery.round().rate);
        if rate == 0.0 {
            return self.window as f64;
        }
        let least = self.least();
        rate * (least + least.max(QUEUE_MIN)).as_secs_f64()
    }
}

/// The shortest queue: between the ends are four processes, each of which may be woken late.
const QUEUE_MIN: Duration = Duration::from_millis(50);
