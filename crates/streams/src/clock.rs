//! The one place that reads the runtime's clock and sets its timers.
//!
//! It counts only while the machine is awake, which is right for waits on the network and for rates. A session
//! that must know how long the machine slept has a clock of its own (`rove`'s `os::clock`).
#![expect(clippy::disallowed_methods, reason = "the clock is read here for streams and waits")]

use std::time::Duration;

use tokio::time::MissedTickBehavior;
pub use tokio::time::{Instant, Interval, Sleep, Timeout};

/// The time.
pub fn now() -> Instant {
    Instant::now()
}

/// Waits this long.
pub fn sleep(span: Duration) -> Sleep {
    tokio::time::sleep(span)
}

/// Waits until then.
pub fn sleep_until(at: Instant) -> Sleep {
    tokio::time::sleep_until(at)
}

/// Does this work, for at most this long.
pub fn within<F: Future>(span: Duration, work: F) -> Timeout<F> {
    tokio::time::timeout(span, work)
}

/// Does this work, but only until then.
pub fn until<F: Future>(at: Instant, work: F) -> Timeout<F> {
    tokio::time::timeout_at(at, work)
}

/// Ticks this far apart, the first at once. A tick that was missed is not made up for.
pub fn interval(period: Duration) -> Interval {
    let mut interval = tokio::time::interval(period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}
