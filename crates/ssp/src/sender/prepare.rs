//! What the adaptive policy sends and when (loss-policy §5): new states, parts of long ones,
//! retransmissions, and bare acknowledgments.

use alloc::vec::Vec;

use super::{DIFF_BYTES_MAX, Heartbeat, Number, Prepared, Sender};
use crate::instruction::Instruction;
use crate::recovery::rtt::RttEstimator;
use crate::sender::adaptive::AdaptivePolicy;
use crate::sender::redundancy::Resend;
use crate::state::State;
use crate::stats::Stats;
use crate::time::Time;
use crate::wire::Flags;

impl<L: State> Sender<L> {
    pub(super) fn poll_adaptive(
        &mut self,
        now: Time,
        rtt: &RttEstimator,
        part: usize,
        stats: &mut Stats,
    ) -> Option<Prepared> {
        let beat = match self.beat_at() {
            Some(at) if at <= now => Heartbeat::Due,
            _ => Heartbeat::Later,
        };
        let owed = self.scheduled_at().is_some_and(|at| at <= now);
        let data = self.data_at(rtt).is_some_and(|at| at <= now);
        if !(beat == Heartbeat::Due || owed || data) {
            return None;
        }
        let prepared = match data || beat == Heartbeat::Due {
            true => self.prepare(now, rtt, part, stats, beat),
            false => None,
        };
        let prepared = match prepared {
            Some(prepared) => prepared,
            None if owed => self.acknowledge_scheduled(now, stats),
            None => return None,
        };
        self.on_sent(now);
        Some(prepared)
    }

    /// The object as it is, if the peer may not know it, or a state of its own if it is time for one.
    fn prepare(
        &mut self,
        now: Time,
        rtt: &RttEstimator,
        part: usize,
        stats: &mut Stats,
        beat: Heartbeat,
    ) -> Option<Prepared> {
        // What counts is how far the peer is known to be behind: what is pasted comes in many short reads,
        // and a chain of states would grow to the whole of it, to be told at once when one is lost.
        if let Some((version, diff)) = self.history.part(part) {
            return self.prepare_part(now, rtt, version, diff, stats, beat);
        }
        self.in_parts = false;
        let (base, diff) = self.choose(now, rtt);
        stats.from_assumed += u64::from(base > 0 && !diff.is_empty());
        if diff.len() > DIFF_BYTES_MAX {
            stats.diffs_too_long += u64::from(!self.too_long);
            self.too_long = true;
            return (beat == Heartbeat::Due).then(|| self.prepare_nothing(now, stats).into());
        }
        if diff.is_empty() {
            self.adopt(base);
        }
        if self.history.last().current && beat == Heartbeat::Later {
            if !self.history.is_pending() {
                return None;
            }
            return Some(self.prepare_again(now, rtt, base, diff, stats));
        }
        if diff.is_empty() {
            stats.acks_sent += 1;
        } else {
            stats.states_sent += 1;
            let adaptive = self.adaptive.as_mut().expect("only the adaptive policy prepares");
            adaptive.redundancy.sent_new(now);
        }
        Some(self.send(now, base, diff, Number::New).into())
    }

    /// This version on the way to the object, unless something else must be acknowledged before: a part
    /// starts from what the peer is known to hold, and holds all that was said since.
    fn prepare_part(
        &mut self,
        now: Time,
        rtt: &RttEstimator,
        version: L,
        diff: Vec<u8>,
        stats: &mut Stats,
        beat: Heartbeat,
    ) -> Option<Prepared> {
        let follows = core::mem::replace(&mut self.in_parts, true);
        let adaptive = self.adaptive.as_mut().expect("only the adaptive policy prepares");
        if self.history.awaits() {
            if !self.refused && adaptive.redundancy.again_at(rtt) > now {
                return (beat == Heartbeat::Due).then(|| self.prepare_heartbeat(now, stats));
            }
            self.next_ack = now + self.timing.ack_interval;
            let diff = self.history.last_again();
            return Some(self.prepare_again(now, rtt, 0, diff, stats));
        }
        stats.states_sent += 1;
        adaptive.redundancy.sent_new(now);
        let message = self.send(now, 0, diff, Number::New);
        self.history.record_part(version);
        Some(Prepared { follows, ..message.into() })
    }

    /// What was said last once more, from the state at this place.
    fn prepare_again(
        &mut self,
        now: Time,
        rtt: &RttEstimator,
        base: usize,
        diff: Vec<u8>,
        stats: &mut Stats,
    ) -> Prepared {
        stats.resends += 1;
        let adaptive = self.adaptive.as_mut().expect("only the adaptive policy prepares");
        let again = adaptive.redundancy.sent_again(now, rtt) == Resend::Timeout;
        let flags = Flags { again, ack_only: false };
        Prepared { flags, ..self.send(now, base, diff, Number::Last).into() }
    }

    /// That we are there, while an answer that is not late yet is awaited: on a path whose timeout is longer
    /// than the time between two beats, all of a part would go twice.
    fn prepare_heartbeat(&mut self, now: Time, stats: &mut Stats) -> Prepared {
        stats.acks_sent += 1;
        self.next_ack = now + self.timing.ack_interval;
        self.asked = false;
        self.only_acknowledge()
    }

    /// That the peer's last state has come, and nothing else, each send interval.
    pub(super) fn poll_final_ack(&mut self, now: Time, stats: &mut Stats) -> Option<Prepared> {
        if self.next_ack > now {
            return None;
        }
        stats.acks_sent += 1;
        self.next_ack = now + self.timing.send_interval_min;
        self.on_sent(now);
        Some(self.only_acknowledge())
    }

    /// The acknowledgment that is owed, as the timing has it. It makes no state while anything of ours is
    /// pending: such a state would have to tell that again, and its timeout would start anew.
    fn acknowledge_scheduled(&mut self, now: Time, stats: &mut Stats) -> Prepared {
        stats.acks_sent += 1;
        if self.acknowledges_with_states() && !self.history.is_pending() {
            return self.send(now, 0, Vec::new(), Number::New).into();
        }
        self.only_acknowledge()
    }

    /// What the peer holds already: it takes the acknowledgment and nothing else (§4.3).
    pub(super) fn only_acknowledge(&self) -> Prepared {
        let known = self.history.first().num;
        let message =
            Instruction { old: known, new: known, throwaway: known, ..Instruction::default() };
        Prepared { flags: Flags { again: false, ack_only: true }, ..message.into() }
    }

    /// Whatever goes out carries the acknowledgment.
    pub(super) fn on_sent(&mut self, now: Time) {
        if let Some(adaptive) = &mut self.adaptive {
            adaptive.on_any_sent(now);
        }
    }

    pub(super) fn adaptive_data_at(
        &self,
        adaptive: &AdaptivePolicy,
        rtt: &RttEstimator,
    ) -> Option<Time> {
        if self.history.last().current {
            return self.history.is_pending().then(|| adaptive.redundancy.again_at(rtt));
        }
        if self.in_parts && self.history.awaits() {
            return Some(adaptive.redundancy.again_at(rtt));
        }
        let gathered = self.gathering.map_or(Time::ZERO, |since| since + self.collect);
        Some(gathered.max(adaptive.new_at(rtt)))
    }
}
