//! A clock that counts while the machine sleeps, and a timer on it: a kqueue of its own, with one event.
#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::os::unix::watch::watch;

/// The time since the machine started, with what it slept: clock_gettime(3) says so of this clock on macOS. FreeBSD's
/// `CLOCK_MONOTONIC` may stand still meanwhile.
pub(crate) fn since_boot() -> Duration {
    #[cfg(target_os = "macos")]
    const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC_RAW;
    #[cfg(not(target_os = "macos"))]
    const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC;
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills `now`. It fails for a clock that is unknown alone, and this one every version has.
    unsafe { libc::clock_gettime(CLOCK, &mut now) };
    // The clock starts at 0 with the machine and its nanoseconds stay below 10^9.
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

/// A timer on that clock.
#[derive(Debug)]
pub(crate) struct Timer {
    queue: AsyncFd<OwnedFd>,
}

/// The number of the one event.
const TIMER: libc::uintptr_t = 1;

/// Microseconds; the machine's sleep counts, and the system does not delay it to save power.
#[cfg(target_os = "macos")]
const KIND: u32 = libc::NOTE_USECONDS | libc::NOTE_MACH_CONTINUOUS_TIME | libc::NOTE_CRITICAL;
#[cfg(not(target_os = "macos"))]
const KIND: u32 = libc::NOTE_USECONDS;

impl Timer {
    /// Makes a timer that is not set. Needs a tokio runtime with I/O.
    pub(crate) fn new() -> io::Result<Timer> {
        // SAFETY: the call takes nothing, and what it opens is owned here.
        let queue = unsafe {
            let queue = libc::kqueue();
            if queue == -1 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(queue)
        };
        rustix::io::fcntl_setfd(&queue, rustix::io::FdFlags::CLOEXEC)?;
        Ok(Timer { queue: watch(queue, Interest::READABLE)? })
    }

    /// Sets when it goes off, by [`since_boot`]; `None` for never. A time in the past goes off at once.
    pub(crate) fn set(&mut self, at: Option<Duration>) -> io::Result<()> {
        match at {
            Some(at) => {
                let left = at.saturating_sub(since_boot());
                // Rounded up: a timer that goes off too soon is set once more. 0 would be no timer on some versions.
                let left = left.as_nanos().div_ceil(1000).max(1);
                let left = i64::try_from(left).unwrap_or(i64::MAX);
                self.change(libc::EV_ADD | libc::EV_ONESHOT, left)
            }
            // What is not set cannot be removed.
            None => match self.change(libc::EV_DELETE, 0) {
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
                changed => changed,
            },
        }
    }

    fn change(&self, flags: u16, microseconds: i64) -> io::Result<()> {
        // SAFETY: all-zero is a valid event: numbers and a null pointer.
        let mut event: libc::kevent = unsafe { mem::zeroed() };
        event.ident = TIMER;
        event.filter = libc::EVFILT_TIMER;
        event.flags = flags;
        event.fflags = KIND;
        event.data = microseconds as _;
        let queue = self.queue.get_ref().as_raw_fd();
        // SAFETY: the call reads one event, and writes none.
        let done = unsafe { libc::kevent(queue, &event, 1, ptr::null_mut(), 0, ptr::null()) };
        if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Ready once it has gone off; it is then no longer set.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.queue.poll_read_ready_mut(cx))?;
            let taken = guard.try_io(|queue| match take(queue.get_ref())? {
                0 => Err(io::ErrorKind::WouldBlock.into()),
                _ => Ok(()),
            });
            if let Ok(fired) = taken {
                return Poll::Ready(fired);
            }
        }
    }
}

/// Takes the event, if it has come, without waiting.
fn take(queue: &OwnedFd) -> io::Result<i32> {
    let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: all-zero is a valid event; the call reads none, writes at most one, and reads the time.
    unsafe {
        let mut event: libc::kevent = mem::zeroed();
        let count = libc::kevent(queue.as_raw_fd(), ptr::null(), 0, &mut event, 1, &at_once);
        if count == -1 { Err(io::Error::last_os_error()) } else { Ok(count) }
    }
}
