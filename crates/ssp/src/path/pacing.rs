//! How much may be on its way (loss-policy §5, 7), and what changes that. It must not know when anything
//! is worth sending.

use core::time::Duration;

use super::Path;
use crate::machine::PathId;
use crate::recovery::congestion::PARTS;
use crate::recovery::sent_log::{Load, Outcome};
use crate::stats::DirectionStats;
use crate::time::Time;

impl Path {
    /// A datagram that the peer is to acknowledge went out.
    pub(crate) fn on_ack_eliciting_sent(&mut self, now: Time, by: PathId, nth: u64, bytes: usize) {
        self.ways.note_use(now);
        if by == PathId::STREAM {
            self.ways.sent_in_stream(nth, bytes);
        }
        self.attribution.on_sent(now, nth, bytes);
        self.congestion.on_sent(now, nth, bytes, self.attribution.rate());
    }

    /// What became of a datagram.
    pub(crate) fn on_outcome(&mut self, now: Time, outcome: Outcome<'_>) {
        let (delivered, lost) = &mut self.outcomes;
        match outcome {
            Outcome::Delivered(_) => *delivered += 1,
            Outcome::Lost(sent) if sent.load != Load::Probe => *lost += 1,
            Outcome::Spurious(sent) if sent.load != Load::Probe => {
                (*delivered, *lost) = (*delivered + 1, lost.saturating_sub(1));
            }
            Outcome::Lost(_) | Outcome::Spurious(_) | Outcome::Forgotten(_) => {}
        }
        let (Outcome::Delivered(sent)
        | Outcome::Lost(sent)
        | Outcome::Spurious(sent)
        | Outcome::Forgotten(sent)) = outcome;
        if sent.path == self.id() {
            self.congestion.on_outcome(outcome);
            self.attribution.on_outcome(outcome);
        }
        match (sent.path, outcome) {
            (PathId::UDP, _) => self.mtud.on_outcome(now, outcome),
            (_, Outcome::Delivered(_) | Outcome::Spurious(_)) => {
                self.ways.arrived_in_stream(sent.nth);
            }
            _ => {}
        }
    }

    /// All outcomes of a report are told; it says this of our datagrams.
    pub(crate) fn on_reported(&mut self, now: Time, departures: DirectionStats) {
        self.departures = Some(departures);
        // Before the window moves: the queue says in which direction.
        self.congestion.on_queue(departures.queue);
        self.congestion.adapt(now, &self.rtt);
        let finding = self.attribution.judge(now, &self.rtt);
        self.congestion.heed(now, &self.rtt, finding);
    }

    /// When a new state may go out after one at `last`.
    pub(crate) fn send_at(&self, last: Time, timeout: Duration) -> Time {
        self.pace(last, 1, timeout)
    }

    /// When another datagram of an instruction may go out after one at `last`.
    pub(crate) fn send_part_at(&self, last: Time, timeout: Duration) -> Time {
        self.pace(last, PARTS, timeout)
    }

    /// Whether a stream is in use that holds as much as it may.
    pub(crate) fn is_stream_full(&self) -> bool {
        self.is_on_stream() && !self.congestion.has_room(self.ways.in_stream())
    }

    fn pace(&self, last: Time, share: u32, timeout: Duration) -> Time {
        let (congestion, attribution) = (&self.congestion, &self.attribution);
        let in_flight = match self.is_on_stream() {
            true => self.ways.in_stream(),
            false => congestion.bytes,
        };
        congestion.send_at(last, in_flight, share, &self.rtt, timeout, attribution)
    }

    /// Whether what is sent beyond need makes things worse.
    pub(crate) fn suppresses_redundancy(&self, now: Time) -> bool {
        self.congestion.suppresses_redundancy(now, &self.attribution)
    }
}
