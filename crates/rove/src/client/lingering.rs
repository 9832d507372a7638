//! The end of a session after the terminal was given back: it tells the server once more that its last state came, and lets
//! ssh send what was said. Any signal that ends a program ends it.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

use rove_session::Client;
use rove_ssp::{Machine, Remote, Session, Time};

use crate::driver::{self, End, Flow};
use crate::net::carrier::{Carrier, Heard};
use crate::net::port::{Port, Turn};
use crate::os::signals::{Signal, Signals};

/// A client that lingers. It is over when that is.
pub(super) struct Lingering<'a> {
    pub(super) client: &'a mut Client,
    pub(super) signals: &'a mut Signals,
    /// The signal that came meanwhile.
    pub(super) signal: Option<Signal>,
}

impl Lingering<'_> {
    /// What still goes wrong changes nothing.
    pub(super) async fn run(&mut self, port: &mut Port<'_>) {
        let _ = driver::run(port, self).await;
        // Where UDP was in use, nothing that matters goes by ssh.
        if self.signal.is_some() || !self.client.peer().is_some_and(Remote::is_stream) {
            return;
        }
        tokio::select! {
            () = port.end_streams() => {}
            () = poll_fn(|cx| self.poll_signal(cx)) => {}
        }
    }

    /// Ready when a signal has come that ends it.
    fn poll_signal(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while let Poll::Ready(signal) = self.signals.poll(cx) {
            if !matches!(signal, Signal::WINCH | Signal::CONT) {
                self.signal = Some(signal);
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }
}

impl End for Lingering<'_> {
    fn session(&mut self) -> &mut dyn Session {
        self.client
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_signal(cx).map(Ok)
    }

    fn before(&mut self, _: Turn) -> io::Result<()> {
        Ok(())
    }

    fn heard(&mut self, _: Time, _: &Heard) {}

    fn settle(&mut self, _: Time, _: &mut Carrier) -> io::Result<Flow> {
        let goes_on = self.signal.is_none() && self.client.poll_timeout().is_some();
        Ok(if goes_on { Flow::Sleep } else { Flow::Over })
    }

    fn deadline(&self, _: Time) -> Option<Time> {
        self.client.poll_timeout()
    }
}
