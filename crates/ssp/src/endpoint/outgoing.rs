//! What an end sends, and in which order: the rest of what was begun, what is new, what was lost, what is about
//! the path. When anything is due is the sender's business, and how much fits the path's.

use std::net::SocketAddr;

use super::{Endpoint, Event, Failure};
use crate::machine::Transmit;
use crate::path::Sending;
use crate::sender::Said;
use crate::sender::transfer::{self, Flight};
use crate::state::State;
use crate::time::Time;
use crate::wire::{Exhausted, Flags};

/// What an instruction takes beside keys: its own fields, chaff, and what turns octets into a message. More
/// in a part are resizes, of which a client holds few back.
const PART_SPARE: usize = 2048;

impl<L: State, R: State> Endpoint<L, R> {
    /// Starts the instruction that is due, if any, and if there is somewhere to send it.
    fn start(&mut self, now: Time) -> Option<Flight> {
        let to = self.path.target(now, &self.timing)?;
        let part = transfer::BURST * self.path.room(to) - PART_SPARE;
        let said = self.sender.poll(now, self.path.rtt(), part, &mut self.stats)?;
        Some(self.launch(now, to, said))
    }

    fn launch(&mut self, now: Time, to: SocketAddr, said: Said) -> Flight {
        let Said { mut message, flags, follows } = said;
        message.ack = self.remote_num();
        let same = self.repairs.take_if(|flight| flags.again && flight.says(&message));
        let room = self.path.room(to);
        if let Some(mut flight) = same {
            let longest = flight.contents_bytes(0);
            self.path.unanswered(now, longest);
            if self.path.room(to) >= longest && flight.despair() {
                if flight.is_behind(&message) {
                    self.sender.owe_at_once(now);
                }
                return flight;
            }
        }
        message.announcement = self.acquaintance.say();
        let mut packed = Vec::new();
        self.path.wire().pack(&message, &mut packed);
        self.last_id = self.last_id.next();
        if flags.again && packed.len() <= room {
            self.path.unanswered(now, packed.len());
        }
        let room = self.path.room(to);
        let loss = self.sender.parity_loss().filter(|_| self.path.takes_parity());
        let mut flight = Flight::new(now, to, self.last_id, &message, packed, room, loss);
        flight.flags = flags;
        if follows {
            flight.wait_for_room();
        }
        if !flags.ack_only {
            // What does not build on it makes it superfluous.
            self.repairs.take_if(|repairs| message.old < repairs.new_num());
        }
        if flight.is_long() && self.path.carries_reports() {
            self.path.want_room(now);
        }
        flight
    }

    /// Seals the next part of an instruction on its way.
    pub(super) fn emit(
        &mut self,
        now: Time,
        mut flight: Flight,
        part: usize,
        out: &mut Vec<u8>,
    ) -> Result<Transmit, Exhausted> {
        // The peer may have moved since the instruction was started.
        let to = self.path.peer().unwrap_or(flight.to);
        let flags = flight.flags;
        self.payload.clear();
        flight.encode(part, self.path.wire(), &mut self.payload);
        let acked_sent_at = self.sender.acked_sent_at();
        let ack_delay = self.sender.ack_delay();
        let sending =
            Sending { payload: &self.payload, flags, acked_sent_at, ack_delay, probe: None };
        let (transmit, seq) = self.path.send(now, to, sending, &self.timing, out)?;
        self.stats.sent.add(out.len());
        if !flags.ack_only {
            self.sender.sent_datagram(now, seq, flight.new_num(), out.len(), self.path.rtt());
        }
        self.stats.hops += u64::from(transmit.new_socket);
        let was_out = flight.is_out();
        flight.sent(now, part, seq);
        if flight.is_long() && self.path.carries_reports() {
            self.sender.said_more(now, flight.new_num());
        }
        if flight.says_goodbye && flight.is_out() && !was_out {
            self.goodbyes += 1;
            if self.goodbyes >= self.timing.goodbyes {
                self.finish(Event::Closed { clean: true });
                return Ok(transmit);
            }
        }
        if !flight.is_out() {
            self.outgoing = Some(flight);
        } else if flight.is_long() && self.path.carries_reports() {
            self.repairs = Some(flight);
        }
        Ok(transmit)
    }

    /// When the next part of an instruction may go out, if its address may be sent it at all.
    pub(super) fn emit_at(&self, flight: &Flight) -> Option<(Time, usize)> {
        let part = flight.next()?;
        if !self.path.admits(flight.contents_bytes(part)) {
            return None;
        }
        let waits = self.sender.paces()
            && self.path.carries_reports()
            && (flight.is_out() || flight.waits_for_room());
        if !waits {
            return Some((flight.started, part));
        }
        let last = flight.last_sent();
        let room = self.sender.room_at(last, self.path.rtt()).max(flight.started);
        // Without reports it goes on, but slowly.
        let told = if flight.is_far_ahead() { last + self.path.rtt().rto() } else { last };
        Some((room.max(told), part))
    }

    /// The parts that go out before anything new is said: of the instruction that was begun.
    pub(super) fn go_on(&mut self, now: Time) -> Option<(Flight, usize)> {
        let flight = self.outgoing.take()?;
        match self.emit_at(&flight) {
            Some((at, part)) if at <= now => Some((flight, part)),
            _ => {
                // Until there is room, or the address is proven, or the end.
                self.outgoing = self.path.target(now, &self.timing).map(|_| flight);
                None
            }
        }
    }

    /// What is new, or else what was lost.
    pub(super) fn begin(&mut self, now: Time) -> Option<(Flight, usize)> {
        if self.outgoing.is_some() {
            // Its rest waits; the peer is told what came, all the same.
            let to = self.path.target(now, &self.timing)?;
            let said = self.sender.poll_owed(now, &mut self.stats)?;
            let flight = self.launch(now, to, said);
            return self.path.admits(flight.contents_bytes(0)).then_some((flight, 0));
        }
        if let Some(flight) = self.start(now) {
            let part = flight.next().expect("it was just begun");
            if self.path.admits(flight.contents_bytes(part)) {
                return Some((flight, part));
            }
            self.outgoing = Some(flight);
            return None;
        }
        // A server may just have forgotten where its client is.
        self.path.peer()?;
        let at = self.repairs.as_ref().and_then(|flight| self.emit_at(flight));
        let (_, part) = at.filter(|(at, _)| *at <= now)?;
        self.repairs.take().map(|flight| (flight, part))
    }

    /// Sends what is about the path and nothing else, if that is due.
    pub(super) fn poll_path(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        if self.path.is_control_due(now) {
            return self.emit_control(now, None, out);
        }
        let (_, bytes) = self.path.probe().filter(|(at, _)| *at <= now)?;
        self.emit_control(now, Some(bytes), out)
    }

    /// Sends what is about the path and nothing else.
    fn emit_control(
        &mut self,
        now: Time,
        probe: Option<usize>,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let to = self.path.target(now, &self.timing)?;
        let acked_sent_at = self.sender.acked_sent_at();
        let flags = Flags { ack_only: true, ..Flags::default() };
        let ack_delay = self.sender.ack_delay();
        let sending = Sending { flags, acked_sent_at, ack_delay, probe, ..Sending::default() };
        let sent = self.path.send(now, to, sending, &self.timing, out);
        let sent = sent.map(|(transmit, _)| transmit);
        if sent.is_ok() {
            self.stats.sent.add(out.len());
        }
        self.or_exhausted(sent)
    }

    pub(super) fn or_exhausted(&mut self, sent: Result<Transmit, Exhausted>) -> Option<Transmit> {
        if sent.is_err() {
            self.finish(Event::Failed(Failure::Exhausted));
        }
        sent.ok()
    }
}
