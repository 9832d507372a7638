//! The end of a session after the terminal was given back: it tells the server once more that its last state came. Any
//! signal that ends a program ends it.

use std::io;
use std::task::{Context, Poll};

use rove_session::Client;
use rove_ssp::{Machine, Session, Time};

use crate::driver::{End, Flow};
use crate::net::carrier::{Carrier, Heard};
use crate::net::port::Turn;
use crate::os::signals::{Signal, Signals};

/// A client that lingers. It is over when that is.
pub(super) struct Lingering<'a> {
    pub(super) client: &'a mut Client,
    pub(super) signals: &'a mut Signals,
    /// The signal that came meanwhile.
    pub(super) signal: Option<Signal>,
}

impl End for Lingering<'_> {
    fn session(&mut self) -> &mut dyn Session {
        self.client
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Poll::Ready(signal) = self.signals.poll(cx) {
            if !matches!(signal, Signal::WINCH | Signal::CONT) {
                self.signal = Some(signal);
                return Poll::Ready(Ok(()));
            }
        }
        Poll::Pending
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
