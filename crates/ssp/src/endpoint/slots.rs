//! Runs of slots: while one is on, a client sends nothing but one datagram in each slot, and a server nothing but one
//! answer to each (`docs/wire.md` §8).

use core::time::Duration;

use super::Endpoint;
use crate::machine::Transmit;
use crate::outbox::Outbox;
use crate::path::lengths::{Lengths, STEPS};
use crate::sender::slots::Room;
use crate::sender::transfer::Transfer;
use crate::slots::{Grid, Turn};
use crate::state::State;
use crate::time::Time;
use crate::wire::deflate::Deflater;
use crate::wire::{Control, Role, Slot};

/// Octets of what is typed that a slot carries. With the longest head, a list of lost datagrams and an answer to a question
/// they fit the shortest step: its length must not depend on what else it says. That is 580 keys a second.
const KEYS_MAX: usize = 32;

impl<L: State, R: State> Endpoint<L, R> {
    /// Somebody types, or has typed a key that is kept: a run of slots begins or goes on, where
    /// [`Timing::slots`](crate::Timing::slots) says so and the peer answers them.
    pub fn typed(&mut self, now: Time) {
        if self.answers_slots() == Some(true)
            && let Some(grid) = &mut self.runs.grid
        {
            grid.key(now);
        }
    }

    /// The mouse has moved: a run begins, or goes on for a second at least.
    pub fn mouse_moved(&mut self, now: Time) {
        if self.answers_slots() == Some(true)
            && let Some(grid) = &mut self.runs.grid
        {
            grid.motion(now);
        }
    }

    /// The keys of the last change are longer than a slot carries, as with a paste. They go at once with the next slot.
    pub fn pasted(&mut self) {
        self.runs.is_long = true;
    }

    /// Whether the peer answers slots. `None` before it was heard.
    pub fn answers_slots(&self) -> Option<bool> {
        self.path.answers_slots()
    }

    /// Whether the wire has slots at all: the mosh wire has none.
    pub fn wire_has_slots(&self) -> bool {
        self.path.carries_reports()
    }

    /// Whether a run of slots is on, of ours or of the peer's.
    pub fn is_in_run(&self, now: Time) -> bool {
        let is_on = match &self.runs.grid {
            Some(grid) => grid.is_on(),
            None => self.runs.answers.is_on(now),
        };
        is_on && !self.sender.has_begun_to_close()
    }

    /// The time between two datagrams of a run of ours, if there is one.
    pub fn slots_apart(&self) -> Option<Duration> {
        let grid = self.runs.grid.as_ref().filter(|_| !self.sender.has_begun_to_close());
        grid.filter(|grid| grid.is_on()).map(Grid::apart)
    }

    /// A datagram that is newer than all before says this.
    pub(super) fn on_control(&mut self, now: Time, control: &Control, octets: usize) {
        if let Some(slot) = control.slot
            && self.role == Role::Server
            && self.timing.answers_slots
        {
            self.runs.answers.on_slot(now, slot, octets);
        }
    }

    /// How the next datagram is padded, what it says of its slot, and how long acknowledgments wait.
    pub(super) fn shape(&mut self) -> (Lengths, Option<Slot>, Duration) {
        let lengths = self.lengths();
        match self.runs.turn.take() {
            Some(Turn { slot, .. }) => (lengths, slot, Duration::ZERO),
            None => (lengths, None, self.sender.ack_delay()),
        }
    }

    /// How the next datagram is padded.
    fn lengths(&self) -> Lengths {
        match self.runs.turn {
            Some(Turn { least, .. }) => Lengths::Stepped { least },
            None if self.sender.hides() => Lengths::Stepped { least: 0 },
            None => Lengths::Own,
        }
    }

    /// Whether a datagram with these octets of a fragment may go to the peer now, padded as it will be.
    pub(super) fn admits(&self, contents: usize) -> bool {
        self.path.admits(contents, self.lengths())
    }

    /// What leaves while a run is on.
    pub(super) fn poll_run(&mut self, now: Time, out: &mut Outbox) -> Option<Transmit> {
        self.sender.set_run(true);
        let mut at;
        let due = loop {
            let Some(turn) = self.take_turn(now) else {
                // The rest of what is too long for one datagram. What waits for its address to be proven begins with a
                // slot's answer.
                at = None;
                break if self.has_rest() { self.go_on(now) } else { None };
            };
            self.runs.turn = Some(turn);
            at = Some(turn.at);
            let due = self.go_on(now);
            let due = due.or_else(|| self.begin_slot(now, &mut out.deflater));
            // Where one may not be sent, another that is due is left out as well.
            if due.is_some() {
                break due;
            }
        };
        let sent = due.map(|(transfer, part)| {
            self.emit(now, transfer, part, out).map(|sent| Transmit { at, ..sent })
        });
        self.runs.turn = None;
        self.sender.set_run(self.is_in_run(now));
        match sent {
            Some(sent) => self.or_exhausted(sent),
            // UDP is tried beside the stream, at times that no key decides.
            None if self.path.is_on_stream() => self.poll_path(now, &mut out.datagram),
            None => None,
        }
    }

    /// The slot or the answer that is due.
    fn take_turn(&mut self, now: Time) -> Option<Turn> {
        let awaits = self.path.awaits_since();
        let Some(grid) = &mut self.runs.grid else {
            let answer = self.runs.answers.take(now)?;
            return Some(Turn { at: answer.at, slot: None, least: answer.bytes });
        };
        let least = STEPS[0];
        let (kind, at) = grid.take(now, awaits)?;
        Some(Turn { at, slot: Some(grid.item(kind, least)), least })
    }

    fn begin_slot(&mut self, now: Time, deflater: &mut Deflater) -> Option<(Transfer, usize)> {
        let to = self.path.target(now, &self.timing)?;
        // An answer to a place that is not proven is left out until enough has come from there. Before anything is taken
        // to be sent.
        if !self.admits(0) {
            return None;
        }
        let room = match self.role {
            Role::Client if !self.runs.is_long => Room::Short(KEYS_MAX),
            _ => Room::Any,
        };
        let said = match self.outgoing {
            // It waits for the window; the slot does not.
            Some(_) => self.sender.only_acknowledge(),
            None => self.sender.poll_slot(now, &self.path, room, &mut self.stats),
        };
        let transfer = self.launch(now, to, said, deflater);
        let part = transfer.next()?;
        if self.admits(transfer.contents_bytes(part)) {
            return Some((transfer, part));
        }
        if self.outgoing.is_some() {
            return None;
        }
        // It counts as sent, so it goes with the first answer that the address may get. Until then acknowledgments go.
        self.outgoing = Some(transfer);
        let said = self.sender.only_acknowledge();
        let transfer = self.launch(now, to, said, deflater);
        self.admits(transfer.contents_bytes(0)).then_some((transfer, 0))
    }

    /// Whether the rest of a transfer waits, whose beginning went with a slot.
    fn has_rest(&self) -> bool {
        self.outgoing.as_ref().is_some_and(Transfer::has_begun)
    }

    /// Whether a run is on, judged by its timers without the time.
    pub(super) fn is_on_by_timers(&self) -> bool {
        let is_on = match &self.runs.grid {
            Some(grid) => grid.is_on(),
            None => self.runs.answers.next().is_some(),
        };
        is_on && !self.sender.has_begun_to_close()
    }

    /// When something of a run is due.
    pub(super) fn run_wake(&self) -> Option<Time> {
        let own = self.runs.grid.as_ref().and_then(Grid::next);
        let slot = if self.runs.grid.is_some() { own } else { self.runs.answers.next() };
        let rest = self.outgoing.as_ref().filter(|_| self.has_rest());
        let part = rest.and_then(|transfer| self.emit_at(transfer));
        let deadline = self.sender.close_deadline(&self.path.rtt);
        let part = part.map(|(at, _)| at);
        slot.into_iter().chain(part).chain(self.path.wake_in_run()).chain(deadline).min()
    }

    /// All that was pasted has arrived.
    pub(super) fn end_paste(&mut self) {
        if self.runs.is_long && self.sender.is_told() && !self.sender.history().is_pending() {
            self.runs.is_long = false;
        }
    }
}
