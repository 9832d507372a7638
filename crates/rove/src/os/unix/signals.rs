//! Signals: those that ask a program to end, and those that it ignores or sends.
#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::task::{Context, Poll};

pub(crate) use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind, signal};

use crate::os::system::terminal::TIOCSIG;
use crate::os::unix::signal_frames;
pub(crate) use crate::os::unix::signal_frames::{leave_to_first, wipe as wipe_frames};

/// Signals that this process watches.
pub(crate) struct Signals {
    watched: Vec<(Signal, unix::Signal)>,
    /// Those that [`Signals::gather`] has seen.
    came: Vec<Signal>,
}

impl Signals {
    /// Watches for signals of these kinds.
    pub(crate) fn watch(kinds: impl IntoIterator<Item = Signal>) -> io::Result<Signals> {
        let watch = |kind: Signal| Ok((kind, handle(kind)?));
        let watched = kinds.into_iter().map(watch).collect::<io::Result<_>>()?;
        Ok(Signals { watched, came: Vec::new() })
    }

    /// Watches for these, except those that this program was started to ignore.
    pub(crate) fn heed(kinds: &[Signal]) -> io::Result<Signals> {
        Signals::watch(kinds.iter().copied().filter(|kind| !is_ignored(*kind)))
    }

    /// The next of them to arrive.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Signal> {
        for (kind, signal) in &mut self.watched {
            if let Poll::Ready(Some(())) = signal.poll_recv(cx) {
                return Poll::Ready(*kind);
            }
        }
        Poll::Pending
    }

    /// Notes those that have arrived. Returns whether there are any to [`take`](Self::take).
    pub(crate) fn gather(&mut self, cx: &mut Context<'_>) -> bool {
        while let Poll::Ready(signal) = self.poll(cx) {
            self.came.push(signal);
        }
        !self.came.is_empty()
    }

    /// Those that came since the last call.
    pub(crate) fn take(&mut self) -> Vec<Signal> {
        mem::take(&mut self.came)
    }
}

/// Handles this signal from now on. Needs a runtime, as all that does so.
fn handle(kind: Signal) -> io::Result<unix::Signal> {
    let signal = signal(SignalKind::from_raw(kind.as_raw()))?;
    signal_frames::keep(kind);
    Ok(signal)
}

/// Handles the signal of a child's end: where tokio cannot watch a command without it, it would do so by itself, later and on
/// another stack. Needs a runtime.
pub(crate) fn handle_children() {
    // Whoever runs a command tries again, and tells why it failed.
    let _ = handle(Signal::CHILD);
}

/// Ignores SIGHUP, so that we outlive the login that started us. The Rust runtime ignores SIGPIPE already.
pub(crate) fn ignore_hangup() {
    // SAFETY: `SIG_IGN` runs no code of ours.
    unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
}

/// Stops this process and those that its shell started with it, as the terminal's own key would.
pub(crate) fn suspend() -> io::Result<()> {
    Ok(rustix::process::kill_current_process_group(Signal::TSTP)?)
}

/// Makes a write beyond RLIMIT_FSIZE fail, for a report, where by default it ends the process. It installs a
/// handler for good, and not `SIG_IGN`: programs that we start get the default back.
pub(crate) fn outlive_size_limits() {
    // Without one the process ends as it would have.
    let _ = handle(Signal::XFSZ);
}

/// Whether programs can be stopped, and go on later.
pub(crate) const CAN_SUSPEND: bool = true;

/// Whether this process ignores this signal, as programs under `nohup` do.
fn is_ignored(signal: Signal) -> bool {
    // SAFETY: all-zero is a valid `sigaction`, and without a new action the call only fills it.
    unsafe {
        let mut now: libc::sigaction = mem::zeroed();
        libc::sigaction(signal.as_raw(), ptr::null(), &mut now) == 0
            && now.sa_sigaction == libc::SIG_IGN
    }
}

/// Sends `signal` to the foreground programs of the terminal behind `master`.
pub(crate) fn signal_foreground(master: BorrowedFd<'_>, signal: Signal) -> io::Result<()> {
    #[allow(
        clippy::useless_conversion,
        reason = "the type of a request differs from system to system"
    )]
    let request = TIOCSIG.into();
    // SAFETY: TIOCSIG takes the signal's number itself, no pointer.
    let done = unsafe { libc::ioctl(master.as_raw_fd(), request, signal.as_raw()) };
    if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
