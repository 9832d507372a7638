//! Signals that ask a program to end.

use std::io;
use std::task::{Context, Poll};

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind, signal};

use crate::os;

/// Waits for a signal that ends programs, except those that this program was started to ignore.
pub(crate) async fn asked_to_end() -> io::Result<Signal> {
    let mut watched = heeded(&HANDED_ON[..4])?;
    let came = std::future::poll_fn(|cx| poll_signals(&mut watched, cx)).await;
    Signal::from_named_raw(came).ok_or_else(|| io::ErrorKind::Other.into())
}

/// Watches for these signals, except those that this program was started to ignore.
pub(crate) fn heeded(kinds: &[SignalKind]) -> io::Result<Vec<(SignalKind, unix::Signal)>> {
    let heeded = kinds.iter().filter(|kind| !os::is_ignored(kind.as_raw_value()));
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
