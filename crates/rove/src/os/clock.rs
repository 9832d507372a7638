//! The only clock of the project: a driver reads it once a turn and passes the time down as `Time`.
//!
//! The system's clock behind it never steps, and counts while a laptop sleeps, so that a session knows after waking
//! how long it heard nothing.

use std::io;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rove_ssp::Time;

use crate::os::system::clock::{Timer, since_boot};

/// A clock that starts at `Time::ZERO`. Copies, and the processes forked after it started, agree.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Duration,
}

impl Clock {
    /// Starts a clock.
    pub fn start() -> Clock {
        Clock { origin: since_boot() }
    }

    /// A clock that started this long ago.
    #[cfg(test)]
    pub(crate) fn started_ago(span: Duration) -> Clock {
        Clock { origin: since_boot() - span }
    }

    /// The time since the clock started, in whole microseconds, rounded down.
    pub fn now(&self) -> Time {
        Time::ZERO + since_boot().saturating_sub(self.origin)
    }
}

/// How long this machine has been up.
pub(crate) fn uptime() -> Duration {
    since_boot()
}

/// The seconds since 1970, for the dates of files. They may step, so no timer uses them.
#[expect(clippy::disallowed_methods, reason = "clocks are read here for the whole project")]
pub(crate) fn wall_seconds() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs().try_into().unwrap_or(i64::MAX)
}

/// A timer on the same clock.
///
/// tokio's own timers count whole milliseconds and stand still while the machine sleeps. This one
/// is exact to the microsecond and is overdue, hence ready, the moment a sleeping machine wakes.
#[derive(Debug)]
pub(crate) struct Alarm {
    clock: Clock,
    timer: Timer,
    set: Option<Time>,
}

impl Alarm {
    /// Makes an alarm that is not set. Needs a tokio runtime with I/O.
    pub(crate) fn new(clock: Clock) -> io::Result<Alarm> {
        Ok(Alarm { clock, timer: Timer::new()?, set: None })
    }

    /// Sets when the alarm goes off; `None` for never. A time in the past goes off at once.
    pub(crate) fn set(&mut self, at: Option<Time>) -> io::Result<()> {
        if self.set == at {
            return Ok(());
        }
        self.timer.set(at.map(|at| self.clock.origin + at.since(Time::ZERO)))?;
        self.set = at;
        Ok(())
    }

    /// Ready once the alarm has gone off; it is then no longer set.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let fired = ready!(self.timer.poll(cx));
        self.set = None;
        Poll::Ready(fired)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[test]
    fn alarm_goes_off_at_its_time_and_once() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        runtime.block_on(async {
            let clock = Clock::start();
            let mut alarm = Alarm::new(clock).unwrap();
            for delay in [Duration::ZERO, Duration::from_micros(300), Duration::from_millis(3)] {
                let at = clock.now() + delay;
                alarm.set(Some(at)).unwrap();
                poll_fn(|cx| alarm.poll(cx)).await.unwrap();
                assert!(clock.now() >= at, "{delay:?}");
                assert!(poll_fn(|cx| Poll::Ready(alarm.poll(cx).is_pending())).await);
            }
            alarm.set(Some(clock.now())).unwrap();
            alarm.set(None).unwrap();
            assert!(poll_fn(|cx| Poll::Ready(alarm.poll(cx).is_pending())).await);
        });
    }
}
