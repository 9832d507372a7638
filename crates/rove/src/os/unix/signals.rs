//! Signals: those that ask a program to end, and those that it ignores or sends.
#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::task::{Context, Poll};

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind, signal};

/// Waits for a signal that ends programs, except those that this program was started to ignore.
pub(crate) async fn asked_to_end() -> io::Result<Signal> {
    let mut watched = heeded(&HANDED_ON[..4])?;
    let came = std::future::poll_fn(|cx| poll_signals(&mut watched, cx)).await;
    Signal::from_named_raw(came).ok_or_else(|| io::ErrorKind::Other.into())
}

/// Watches for these signals, except those that this program was started to ignore.
pub(crate) fn heeded(kinds: &[SignalKind]) -> io::Result<Vec<(SignalKind, unix::Signal)>> {
    let heeded = kinds.iter().filter(|kind| !is_ignored(kind.as_raw_value()));
    heeded.map(|kind| Ok((*kind, signal(*kind)?))).collect()
}

/// The number of the next of them to arrive.
pub(crate) fn poll_signals(
    watched: &mut [(SignalKind, unix::Signal)],
    cx: &mut Context<'_>,
) -> Poll<i32> {
    for (kind, signal) in watched {
        if signal.poll_recv(cx).is_ready() {
            return Poll::Ready(kind.as_raw_value());
        }
    }
    Poll::Pending
}

/// The signals to pass on to the command.
pub(crate) const HANDED_ON: [SignalKind; 6] = [
    SignalKind::interrupt(),
    SignalKind::terminate(),
    SignalKind::hangup(),
    SignalKind::quit(),
    SignalKind::user_defined1(),
    SignalKind::user_defined2(),
];

/// Ignores SIGHUP, so that we outlive the login that started us. The Rust runtime ignores SIGPIPE already.
pub(crate) fn ignore_hangup() {
    // SAFETY: `SIG_IGN` runs no code of ours.
    unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
}

/// Whether this process ignores the signal of this number, as programs under `nohup` do.
pub(crate) fn is_ignored(signal: i32) -> bool {
    // SAFETY: all-zero is a valid `sigaction`, and without a new action the call only fills it.
    unsafe {
        let mut now: libc::sigaction = mem::zeroed();
        libc::sigaction(signal, ptr::null(), &mut now) == 0 && now.sa_sigaction == libc::SIG_IGN
    }
}

/// Sends `signal` to the foreground programs of the terminal behind `master`.
pub(crate) fn signal_foreground(
    master: BorrowedFd<'_>,
    signal: rustix::process::Signal,
) -> io::Result<()> {
    // SAFETY: TIOCSIG takes the signal's number itself, no pointer.
    let done = unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCSIG, signal.as_raw()) };
    if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
