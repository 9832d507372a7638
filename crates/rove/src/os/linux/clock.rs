//! `CLOCK_BOOTTIME`, and a timer on it.

use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::io::Errno;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::os::unix::watch::watch;

/// The time since the machine started, with what it slept.
#[expect(clippy::disallowed_methods, reason = "clocks are read here for the whole project")]
pub(crate) fn since_boot() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    // The kernel's clock starts at 0 with the machine and its nanoseconds stay below 10^9.
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

/// A timer on that clock.
#[derive(Debug)]
pub(crate) struct Timer {
    file: AsyncFd<OwnedFd>,
    counts: Counts,
}

/// Which time a timer counts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Counts {
    /// All of it.
    All,
    /// What the machine was awake: a kernel before 3.15, or a sandbox that copies one, has no other. After a sleep
    /// such a timer is late by it; datagrams and keys wake the session all the same.
    Awake,
}

impl Timer {
    /// Makes a timer that is not set. Needs a tokio runtime with I/O.
    pub(crate) fn new() -> io::Result<Timer> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let (file, counts) = match timerfd_create(TimerfdClockId::Boottime, flags) {
            Err(Errno::INVAL) => (timerfd_create(TimerfdClockId::Monotonic, flags)?, Counts::Awake),
            made => (made?, Counts::All),
        };
        Ok(Timer { file: watch(file, Interest::READABLE)?, counts })
    }

    /// Sets when it goes off, by [`since_boot`]; `None` for never. A time in the past goes off at once.
    pub(crate) fn set(&mut self, at: Option<Duration>) -> io::Result<()> {
        // An all-zero value would disarm the timer, and no machine runs that started just now.
        let (value, flags) = match (at, self.counts) {
            (None, _) => (Duration::ZERO, TimerfdTimerFlags::empty()),
            (Some(at), Counts::All) => (at, TimerfdTimerFlags::ABSTIME),
            (Some(at), Counts::Awake) => {
                let left = at.saturating_sub(since_boot()).max(Duration::from_nanos(1));
                (left, TimerfdTimerFlags::empty())
            }
        };
        let once = Itimerspec { it_interval: timespec(Duration::ZERO), it_value: timespec(value) };
        timerfd_settime(self.file.get_ref(), flags, &once)?;
        Ok(())
    }

    /// Ready once it has gone off; it is then no longer set.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.file.poll_read_ready_mut(cx))?;
            let read = guard.try_io(|timer| Ok(rustix::io::read(timer.get_ref(), &mut [0; 8])?));
            if let Ok(fired) = read {
                return Poll::Ready(fired.map(|_expirations| ()));
            }
        }
    }
}

fn timespec(span: Duration) -> Timespec {
    Timespec {
        tv_sec: span.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: span.subsec_nanos().into(),
    }
}
