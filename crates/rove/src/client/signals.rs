//! The signals that a session on a terminal handles.

use std::io;
use std::task::{Context, Poll};

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

/// The signals that a session handles.
pub(super) struct Signals(Vec<(Signal, tokio::signal::unix::Signal)>);

impl Signals {
    pub(super) fn watch() -> io::Result<Signals> {
        let watched =
            [Signal::WINCH, Signal::CONT, Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT];
        let watch = |kind: Signal| Ok((kind, signal(SignalKind::from_raw(kind.as_raw()))?));
        watched.into_iter().map(watch).collect::<io::Result<_>>().map(Signals)
    }

    /// The next signal received.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Signal> {
        for (kind, signal) in &mut self.0 {
            if let Poll::Ready(Some(())) = signal.poll_recv(cx) {
                return Poll::Ready(*kind);
            }
        }
        Poll::Pending
    }
}
