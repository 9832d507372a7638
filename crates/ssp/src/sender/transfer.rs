//! An instruction on its way: which fragments were sent, which arrived, and which to send again
//! (loss-policy §5, 8; `docs/wire.md` §7). It must not know when to send.

use alloc::vec;
use alloc::vec::Vec;

use libm::{ceil, sqrt};
use zeroize::Zeroizing;

use crate::instruction::Instruction;
use crate::instruction::fragment::{self, FragmentId, Parity};
use crate::instruction::parity::{self, COVERED_MAX, PARITY_MAX};
use crate::machine::Remote;
use crate::recovery::sent_log::{Load, Outcome};
use crate::state::StateNum;
use crate::time::Time;
use crate::wire::{Flags, Seq, Wire};

/// An instruction on its way. It holds at most the longest instruction and a word for each fragment.
pub(crate) struct Transfer {
    pub started: Time,
    pub flags: Flags,
    /// Where the peer was then.
    pub to: Remote,
    /// It acknowledges the peer's last state.
    pub is_final_ack: bool,
    old: StateNum,
    new: StateNum,
    ack: StateNum,
    id: FragmentId,
    /// Overwritten in the end: it may hold what somebody typed.
    packed: Zeroizing<Vec<u8>>,
    payload_max: usize,
    /// How many fragments it has.
    count: usize,
    /// What became of them, and after them of what replaces lost ones.
    states: Vec<FragmentState>,
    /// The first that never went out.
    unsent: usize,
    /// How many leave at once, though others are in flight.
    burst: usize,
    /// How often its first fragment went out only to be answered, and whether it is to go so now.
    solicitations: u32,
    solicit_ack: bool,
    /// When anything of it went out last; its start if nothing did.
    pub last_sent: Time,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum FragmentState {
    Unsent,
    Sent { seq: Seq },
    Arrived,
    Lost,
}

/// How often an answer is asked for before the peer is taken to have lost what it had.
const SOLICITATIONS_MAX: u32 = 5;
/// Fragments whose fate is not known: a report tells of 120 datagrams.
const AHEAD_MAX: usize = 96;
/// Fragments that leave at once: the rest of what is longer waits for the window. What can be told in parts has
/// no more in each.
pub(crate) const BURST: usize = 64;
/// The same on a stream, half of its window, since a stream takes nothing back.
pub(crate) const STREAM_BURST: usize = 6;

impl Transfer {
    /// `payload_max` is for a fragment's contents; `loss` is the share of datagrams lost if parity is of use.
    pub(crate) fn new(
        now: Time,
        to: Remote,
        id: FragmentId,
        message: &Instruction,
        packed: Zeroizing<Vec<u8>>,
        payload_max: usize,
        loss: Option<f64>,
    ) -> Transfer {
        let count = packed.len().div_ceil(payload_max).max(1);
        // Decided once: the receiver counts on one number of fragments and parity.
        let parity = loss.map_or(0, |loss| parity_count(count, loss));
        Transfer {
            started: now,
            flags: Flags::default(),
            to,
            is_final_ack: message.ack == StateNum::SHUTDOWN,
            old: message.old,
            new: message.new,
            ack: message.ack,
            id,
            packed,
            payload_max,
            count,
            states: vec![FragmentState::Unsent; count + parity],
            unsent: 0,
            burst: if to.is_stream() { STREAM_BURST } else { BURST },
            solicitations: 0,
            solicit_ack: false,
            last_sent: now,
        }
    }

    /// None of it leaves before there is room.
    pub(crate) fn wait_for_room(&mut self) {
        self.burst = 0;
    }

    /// The state it makes.
    pub(crate) fn new_num(&self) -> StateNum {
        self.new
    }

    /// Whether it says what this one does of our own object.
    pub(crate) fn says(&self, message: &Instruction) -> bool {
        (self.old, self.new) == (message.old, message.new)
    }

    /// Whether it acknowledges less than this one.
    pub(crate) fn is_behind(&self, message: &Instruction) -> bool {
        self.ack != message.ack
    }

    /// Whether it takes more than one datagram.
    pub(crate) fn is_long(&self) -> bool {
        self.count > 1
    }

    /// Whether any of it went out.
    pub(crate) fn has_begun(&self) -> bool {
        self.unsent > 0
    }

    /// Whether all of it went out once.
    pub(crate) fn is_out(&self) -> bool {
        self.unsent == self.states.len()
    }

    /// Whether what is to go out now must wait until others have left the path.
    pub(crate) fn waits_for_room(&self) -> bool {
        self.unsent >= self.burst
    }

    /// The fragment to send now: one that never was, then as many lost fragments as the peer cannot do without.
    pub(crate) fn next(&self) -> Option<usize> {
        if !self.is_out() {
            return Some(self.unsent);
        }
        if self.solicit_ack {
            return Some(0);
        }
        // Any `count` of fragments and parity make the whole, so a loss that parity covers is not
        // repaired.
        let held = self.states.iter().filter(|fate| **fate != FragmentState::Lost).count();
        if held >= self.count {
            return None;
        }
        self.states[..self.count].iter().position(|fate| *fate == FragmentState::Lost)
    }

    /// Whether so much of it is on its way that no report could tell of more.
    pub(crate) fn is_far_ahead(&self) -> bool {
        let under_way =
            self.states.iter().filter(|fate| matches!(fate, FragmentState::Sent { .. })).count();
        under_way >= AHEAD_MAX
    }

    /// Octets of contents in this part.
    pub(crate) fn contents_bytes(&self, part: usize) -> usize {
        match part < self.count {
            true => self.packed.len().saturating_sub(part * self.payload_max).min(self.payload_max),
            false => self.payload_max,
        }
    }

    /// Appends this part as it travels.
    pub(crate) fn encode(&self, part: usize, wire: &dyn Wire, out: &mut Vec<u8>) {
        let Transfer { id, packed, payload_max, count, .. } = self;
        if part < self.count {
            let fragment = fragment::fragment(*id, packed, *payload_max, part as u16);
            return wire.encode_fragment(&fragment, out);
        }
        let index = (part - count) as u8;
        let mut contents = Vec::with_capacity(*payload_max);
        parity::protect(index, packed.chunks(*payload_max), *payload_max, &mut contents);
        let last_bytes = self.contents_bytes(count - 1) as u16;
        let parity =
            Parity { id: *id, count: *count as u16, index, last_bytes, contents: &contents };
        wire.encode_parity(&parity, out);
    }

    /// Whether this part is parity.
    pub(crate) fn is_parity(&self, part: usize) -> bool {
        part >= self.count
    }

    /// How the log is to name this part. One that only asks for an answer is named by no part: it is not
    /// awaited, and another that carries the same octets is on its way.
    pub(crate) fn fragment(&self, part: usize) -> Option<(FragmentId, u16)> {
        (!self.solicit_ack).then_some((self.id, part as u16))
    }

    /// This part went out.
    pub(crate) fn on_sent(&mut self, now: Time, part: usize, seq: Seq) {
        if !core::mem::take(&mut self.solicit_ack) {
            self.states[part] = FragmentState::Sent { seq };
        }
        self.unsent = self.unsent.max(part + 1);
        self.last_sent = now;
    }

    /// What became of a datagram, if it carried a part of this.
    pub(crate) fn on_outcome(&mut self, outcome: Outcome<'_>) {
        let (sent, arrived) = match outcome {
            Outcome::Delivered(sent) | Outcome::Spurious(sent) => (sent, true),
            Outcome::Lost(sent) => (sent, false),
            Outcome::Forgotten(_) => return,
        };
        let Load::State { fragment: Some((id, part)), .. } = sent.load else { return };
        let part = self.states.get_mut(usize::from(part)).filter(|_| id == self.id);
        let Some(part) = part else { return };
        if arrived {
            *part = FragmentState::Arrived;
        } else if *part == (FragmentState::Sent { seq: sent.seq }) {
            // A part that was sent again since waits for the outcome of the newer datagram.
            *part = FragmentState::Lost;
        }
    }

    /// No answer came in time: fragments not known to have arrived are lost. If enough has arrived, it is the
    /// answer that was lost, and one fragment asks for another. `false` once that has been of no use: then
    /// all of it must be said anew.
    pub(crate) fn on_timeout(&mut self) -> bool {
        for fate in &mut self.states {
            if matches!(fate, FragmentState::Sent { .. }) {
                *fate = FragmentState::Lost;
            }
        }
        // The peer acknowledges at once what is marked so, instead of waiting for something to ride
        // on.
        self.flags.again = true;
        if self.next().is_none() {
            // All fragments have arrived, and no answer has: one fragment asks for it, and no more
            // is sent.
            self.solicitations += 1;
            self.solicit_ack = self.solicitations <= SOLICITATIONS_MAX;
        }
        self.next().is_some()
    }
}

/// How many parity fragments go with `count` fragments at this loss (loss-policy §5, 8): the mean number lost
/// of both, and 1.3 of its standard deviation, but no more than there are fragments.
fn parity_count(count: usize, loss: f64) -> usize {
    // One datagram is its own copy, and the code covers no more than 32.
    if !(2..=COVERED_MAX).contains(&count) {
        return 0;
    }
    let (loss, fragments) = (loss.min(0.9), count as f64);
    let expected = fragments * loss / (1.0 - loss);
    let spread = 1.3 * sqrt(fragments * loss) / (1.0 - loss);
    (ceil(expected + spread) as usize).min(count).min(PARITY_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::PathId;
    use crate::recovery::sent_log::SentDatagram;

    fn transfer(octets: usize, loss: Option<f64>) -> Transfer {
        let to = Remote::Udp(core::net::SocketAddr::from(([192, 0, 2, 1], 1)));
        let message = Instruction::default();
        let packed = Zeroizing::new(vec![7; octets]);
        Transfer::new(Time::ZERO, to, 5.into(), &message, packed, 100, loss)
    }

    fn send_all(transfer: &mut Transfer, first: u64) -> u64 {
        let mut seq = first;
        while let Some(part) = transfer.next() {
            transfer.on_sent(Time::ZERO, part, Seq::new(seq));
            seq += 1;
        }
        seq
    }

    fn sent(transfer: &Transfer, part: u16, seq: u64) -> SentDatagram {
        let fragment = Some((transfer.id, part));
        let load = Load::State { num: transfer.new, fragment };
        let (seq, path, nth, at) = (Seq::new(seq), PathId::default(), seq, Time::ZERO);
        SentDatagram { seq, path, nth, at, bytes: 100, load }
    }

    #[test]
    fn parity_follows_loss() {
        for (count, loss, parity) in [
            (1, 0.3, 0),
            (5, 0.02, 1),
            (5, 0.05, 1),
            (5, 0.1, 2),
            (5, 0.29, 5),
            (5, 0.99, 5),
            (32, 0.05, 4),
            (33, 0.05, 0),
        ] {
            assert_eq!(parity_count(count, loss), parity, "{count} at {loss}");
        }
    }

    #[test]
    fn only_what_is_lost_is_sent_again() {
        let mut transfer = transfer(450, None);
        assert_eq!((send_all(&mut transfer, 10), transfer.next()), (15, None));
        let first = sent(&transfer, 1, 11);
        for (part, seq) in [(0, 10), (2, 12), (3, 13), (4, 14)] {
            transfer.on_outcome(Outcome::Delivered(&sent(&transfer, part, seq)));
        }
        assert_eq!(transfer.next(), None);
        transfer.on_outcome(Outcome::Lost(&first));
        assert_eq!(transfer.next(), Some(1));
        transfer.on_sent(Time::ZERO, 1, Seq::new(15));
        assert_eq!(transfer.next(), None);
        // Neither the datagram before nor another instruction's says anything of this one.
        transfer.on_outcome(Outcome::Lost(&first));
        let load = Load::State { num: transfer.new, fragment: Some((transfer.id.next(), 1)) };
        transfer.on_outcome(Outcome::Lost(&SentDatagram { load, ..sent(&transfer, 1, 15) }));
        assert_eq!(transfer.next(), None);
        transfer.on_outcome(Outcome::Delivered(&sent(&transfer, 1, 15)));
        for turn in 0..=SOLICITATIONS_MAX {
            assert_eq!(transfer.on_timeout(), turn < SOLICITATIONS_MAX, "all of it arrived");
            assert_eq!(transfer.next(), (turn < SOLICITATIONS_MAX).then_some(0));
            let asks = transfer.next().inspect(|_| assert_eq!(transfer.fragment(0), None));
            asks.inspect(|part| transfer.on_sent(Time::ZERO, *part, Seq::new(20)));
            assert_eq!(transfer.next(), None);
        }
    }

    #[test]
    fn parity_that_came_is_not_sent_for() {
        let mut transfer = transfer(450, Some(0.1));
        assert_eq!(send_all(&mut transfer, 10), 17, "five and two");
        for (lost, next) in [(&[1][..], None), (&[1, 5], None), (&[1, 4, 5], Some(1))] {
            let mut transfer =
                Transfer { states: transfer.states.clone(), ..self::transfer(450, None) };
            transfer.unsent = transfer.states.len();
            for part in lost {
                transfer.on_outcome(Outcome::Lost(&sent(&transfer, *part, 10 + u64::from(*part))));
            }
            assert_eq!(transfer.next(), next, "{lost:?}");
        }
        // Without any answer as many go as are needed, and not the parity.
        assert!(transfer.on_timeout() && transfer.flags.again);
        assert_eq!(send_all(&mut transfer, 30), 35);
    }
}
