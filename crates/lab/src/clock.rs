//! Real time. Modules of the lab that need it read the clock here; all others take the time as an argument, so that
//! their runs can be repeated.

use std::time::{Duration, Instant};

use rove_ssp::Time;

use crate::process::wait_ready;

/// A clock that starts at [`Time::ZERO`] when it is made.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// Starts now.
    #[allow(
        clippy::disallowed_methods,
        reason = "the only reading of the clock in the lab, with `now`"
    )]
    pub fn start() -> Clock {
        Clock { origin: Instant::now() }
    }

    /// The instant at which it was made.
    pub fn origin(&self) -> Instant {
        self.origin
    }

    /// The time since this clock was started.
    #[allow(clippy::disallowed_methods, reason = "the only reading of the clock in the lab")]
    pub fn now(&self) -> Time {
        Time::ZERO + Instant::now().saturating_duration_since(self.origin)
    }

    /// The time since it was made.
    pub fn elapsed(&self) -> Duration {
        self.now().since(Time::ZERO)
    }

    /// Sleeps until it shows this.
    pub fn wait_until(&self, at: Time) {
        loop {
            let left = at.since(self.now());
            if left.is_zero() {
                return;
            }
            // A signal ends the sleep early; the clock then says how much is left.
            let _ = wait_ready(&mut [], Some(left));
        }
    }
}
