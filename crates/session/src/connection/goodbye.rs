//! A goodbye whose answer is not awaited.

use alloc::vec::Vec;
use core::time::Duration;

use rove_ssp::{Outbox, Time, Transmit};

/// How often it is said, each time after twice as long, within 30 ms: where 29 % of all datagrams are lost, one by
/// one, one goodbye of 500 goes unheard.
const TIMES: u32 = 5;
const FIRST_WAIT: Duration = Duration::from_millis(2);

/// The datagram that says it, sent a few times over: whichever comes first is heard, and the peer drops the others
/// as replays.
pub(super) struct Goodbye {
    /// `None` until it is said first.
    datagram: Option<(Transmit, Vec<u8>)>,
    left: u32,
    wait: Duration,
    due: Time,
}

impl Goodbye {
    pub(super) fn new(now: Time) -> Self {
        Self { datagram: None, left: TIMES, wait: FIRST_WAIT, due: now }
    }

    /// The session has just sent this, and has said goodbye by now. What follows may be about the path alone, so
    /// the first one is kept.
    pub(super) fn keep(&mut self, now: Time, transmit: Transmit, datagram: &[u8]) {
        if self.datagram.is_none() {
            self.datagram = Some((Transmit { new_port: false, ..transmit }, datagram.to_vec()));
            self.said(now);
        }
    }

    /// Writes it once more, if that is due.
    pub(super) fn poll_transmit(&mut self, now: Time, out: &mut Outbox) -> Option<Transmit> {
        if self.due().is_none_or(|due| due > now) {
            return None;
        }
        let (transmit, datagram) = self.datagram.as_ref()?;
        let transmit = *transmit;
        out.datagram.clone_from(datagram);
        self.said(now);
        Some(transmit)
    }

    /// When it is said again.
    pub(super) fn due(&self) -> Option<Time> {
        (self.datagram.is_some() && !self.is_done()).then_some(self.due)
    }

    /// Whether it was said often enough.
    pub(super) fn is_done(&self) -> bool {
        self.left == 0
    }

    fn said(&mut self, now: Time) {
        self.left = self.left.saturating_sub(1);
        self.due = now + self.wait;
        self.wait *= 2;
    }
}
