//! The only clock of the project: a driver reads it once a turn and passes the time down as `Time`.
//!
//! The clock is `CLOCK_BOOTTIME`: it never steps, and it counts while a laptop sleeps, so that a
//! session knows after waking how long it heard nothing.

use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rove_ssp::Time;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::os::unix::watch::watch;

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

/// The seconds since 1970, for the dates of files. They may step, so no timer uses them.
#[expect(clippy::disallowed_methods, reason = "clocks are read here for the whole project")]
pub(crate) fn wall_seconds() -> i64 {
    clock_gettime(ClockId::Realtime).tv_sec
}

/// A timer on the same clock.
///
/// tokio's own timers count whole milliseconds and stand still while the machine sleeps. This one
/// is exact to the microsecond and is overdue, hence ready, the moment a sleeping machine wakes.
#[derive(Debug)]
pub(crate) struct Alarm {
    clock: Clock,
    timer: AsyncFd<OwnedFd>,
    set: Option<Time>,
}

impl Alarm {
    /// Makes an alarm that is not set. Needs a tokio runtime with I/O.
    pub(crate) fn new(clock: Clock) -> io::Result<Alarm> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = watch(timerfd_create(TimerfdClockId::Boottime, flags)?, Interest::READABLE)?;
        Ok(Alarm { clock, timer, set: None })
    }

    /// Sets when the alarm goes off; `None` for never. A time in the past goes off at once.
    pub(crate) fn set(&mut self, at: Option<Time>) -> io::Result<()> {
        if self.set == at {
            return Ok(());
        }
        // An all-zero value would disarm the timer, and `origin` is never 0 on a machine that runs.
        let value = at.map_or(Duration::ZERO, |at| self.clock.origin + at.since(Time::ZERO));
        let once = Itimerspec { it_interval: timespec(Duration::ZERO), it_value: timespec(value) };
        timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::ABSTIME, &once)?;
        self.set = at;
        Ok(())
    }

    /// Ready once the alarm has gone off; it is then no longer set.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.timer.poll_read_ready_mut(cx))?;
            let read = guard.try_io(|timer| Ok(rustix::io::read(timer.get_ref(), &mut [0; 8])?));
            if let Ok(fired) = read {
                self.set = None;
                return Poll::Ready(fired.map(|_expirations| ()));
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "clocks are read here for the whole project")]
fn since_boot() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    // The kernel's clock starts at 0 with the machine and its nanoseconds stay below 10^9.
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

fn timespec(span: Duration) -> Timespec {
    Timespec {
        tv_sec: span.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: span.subsec_nanos().into(),
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
