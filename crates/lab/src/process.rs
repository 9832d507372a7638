//! Waits and reads that all programs on terminals need, and children that do not outlive their owner.

use std::io;
use std::ops::{Deref, DerefMut};
use std::os::fd::AsFd;
use std::process::Child;
use std::time::Duration;

use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;

/// Waits until a descriptor is ready, at most this long if there is a limit; returns how many are. A signal ends the
/// wait early.
///
/// # Errors
/// Errors of poll(2).
pub(crate) fn wait_ready(
    watched: &mut [PollFd<'_>],
    at_most: Option<Duration>,
) -> io::Result<usize> {
    let limit = at_most.map(|span| Timespec {
        tv_sec: span.as_secs() as i64,
        tv_nsec: i64::from(span.subsec_nanos()),
    });
    match poll(watched, limit.as_ref()) {
        Err(Errno::INTR) => Ok(0),
        done => Ok(done?),
    }
}

/// Reads from a terminal, from the side of its programs or of its master; `None` once the other side has left it. The
/// length is 0 if nothing is there now.
///
/// # Errors
/// Errors of read(2).
pub(crate) fn read_terminal(terminal: impl AsFd, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    match rustix::io::read(terminal, buffer) {
        // One whose other side has been closed reads as an error.
        Ok(0) | Err(Errno::IO) => Ok(None),
        Err(Errno::AGAIN | Errno::INTR) => Ok(Some(0)),
        length => Ok(Some(length?)),
    }
}

/// A child process. It is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Owned(pub(crate) Child);

impl Deref for Owned {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Owned {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to kill, and waiting only reaps it.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
