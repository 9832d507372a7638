//! What the eager policy says and when (loss-policy §5): new states, parts of what is long, the same once
//! more, acknowledgments alone. Stock's way is `poll_stock` of [`Sender`].

use super::{Beat, DIFF_BYTES_MAX, Number, Said, Sender};
use crate::instruction::Instruction;
use crate::recovery::rtt::Rtt;
use crate::sender::adaptive::Hurry;
use crate::sender::redundancy::Again;
use crate::state::State;
use crate::stats::Stats;
use crate::time::Time;
use crate::wire::Flags;

impl<L: State> Sender<L> {
    pub(super) fn poll_eager(
        &mut self,
        now: Time,
        rtt: &Rtt,
        part: usize,
        stats: &mut Stats,
    ) -> Option<Said> {
        let beat = match self.beat_at() {
            Some(at) if at <= now => Beat::Due,
            _ => Beat::Later,
        };
        let owed = self.owed_at().is_some_and(|at| at <= now);
        let data = self.data_at(rtt).is_some_and(|at| at <= now);
        if !(beat == Beat::Due || owed || data) {
            return None;
        }
        let said = match data || beat == Beat::Due {
            true => self.say(now, rtt, part, stats, beat),
            false => None,
        };
        let said = match said {
            Some(said) => said,
            None if owed => self.acknowledge_owed(now, stats),
            None => return None,
        };
        self.spoke(now);
        Some(said)
    }

    /// The object as it is, if the peer may not know it, or a state of its own if it is time for one.
    fn say(
        &mut self,
        now: Time,
        rtt: &Rtt,
        part: usize,
        stats: &mut Stats,
        beat: Beat,
    ) -> Option<Said> {
        // What counts is how far the peer is known to be behind: what is pasted comes in many short reads,
        // and a chain of states would grow to the whole of it, to be told at once when one is lost.
        if let Some((version, diff)) = self.books.part(part) {
            return self.say_part(now, rtt, version, diff, stats, beat);
        }
        self.in_parts = false;
        let (base, diff) = self.choose(now, rtt);
        stats.from_assumed += u64::from(base > 0 && !diff.is_empty());
        if diff.len() > DIFF_BYTES_MAX {
            stats.diffs_too_long += u64::from(!self.too_long);
            self.too_long = true;
            return (beat == Beat::Due).then(|| self.say_nothing(now, stats).into());
        }
        if diff.is_empty() {
            self.adopt(base);
        }
        if self.books.last().same && beat == Beat::Later {
            if !self.books.is_pending() {
                return None;
            }
            return Some(self.say_again(now, rtt, base, diff, stats));
        }
        if diff.is_empty() {
            stats.acks_sent += 1;
        } else {
            stats.states_sent += 1;
            let eager = self.eager.as_mut().expect("only an eager sender says");
            eager.pacer.sent_new(now);
        }
        Some(self.send(now, base, diff, Number::New).into())
    }

    /// This version on the way to the object, unless something else must be acknowledged before: a part
    /// starts from what the peer is known to hold, and holds all that was said since.
    fn say_part(
        &mut self,
        now: Time,
        rtt: &Rtt,
        version: L,
        diff: Vec<u8>,
        stats: &mut Stats,
        beat: Beat,
    ) -> Option<Said> {
        let follows = std::mem::replace(&mut self.in_parts, true);
        let eager = self.eager.as_mut().expect("only an eager sender says");
        if self.books.awaits() {
            if !self.refused && eager.pacer.again_at(rtt) > now {
                return (beat == Beat::Due).then(|| self.only_beat(now, stats));
            }
            self.next_ack = now + self.timing.ack_interval;
            let diff = self.books.last_again();
            return Some(self.say_again(now, rtt, 0, diff, stats));
        }
        stats.states_sent += 1;
        eager.pacer.sent_new(now);
        let message = self.send(now, 0, diff, Number::New);
        self.books.record_part(version);
        Some(Said { follows, ..message.into() })
    }

    /// What was said last once more, from the state at this place.
    fn say_again(
        &mut self,
        now: Time,
        rtt: &Rtt,
        base: usize,
        diff: Vec<u8>,
        stats: &mut Stats,
    ) -> Said {
        stats.resends += 1;
        let eager = self.eager.as_mut().expect("only an eager sender says");
        let again = eager.pacer.sent_again(now, rtt) == Again::Overdue;
        let flags = Flags { again, ack_only: false };
        Said { flags, ..self.send(now, base, diff, Number::Last).into() }
    }

    /// That we are there, while an answer that is not late yet is awaited: on a path whose timeout is longer
    /// than the time between two beats, all of a part would go twice.
    fn only_beat(&mut self, now: Time, stats: &mut Stats) -> Said {
        stats.acks_sent += 1;
        self.next_ack = now + self.timing.ack_interval;
        self.asked = false;
        self.only_acknowledge()
    }

    /// That the peer's last state has come, and nothing else, each send interval.
    pub(super) fn poll_goodbye(&mut self, now: Time, stats: &mut Stats) -> Option<Said> {
        if self.next_ack > now {
            return None;
        }
        stats.acks_sent += 1;
        self.next_ack = now + self.timing.send_interval_min;
        self.spoke(now);
        Some(self.only_acknowledge())
    }

    /// The acknowledgment that is owed, as the timing has it. It makes no state while anything of ours is
    /// pending: such a state would have to tell that again, and its timeout would start anew.
    fn acknowledge_owed(&mut self, now: Time, stats: &mut Stats) -> Said {
        stats.acks_sent += 1;
        if self.acknowledges_with_states() && !self.books.is_pending() {
            return self.send(now, 0, Vec::new(), Number::New).into();
        }
        self.only_acknowledge()
    }

    /// What the peer holds already: it takes the acknowledgment and nothing else (§4.3).
    pub(super) fn only_acknowledge(&self) -> Said {
        let known = self.books.first().num;
        let message =
            Instruction { old: known, new: known, throwaway: known, ..Instruction::default() };
        Said { flags: Flags { again: false, ack_only: true }, ..message.into() }
    }

    /// Whatever goes out carries the acknowledgment.
    pub(super) fn spoke(&mut self, now: Time) {
        if let Some(eager) = &mut self.eager {
            eager.spoke(now);
        }
    }

    pub(super) fn eager_data_at(&self, eager: &Hurry, rtt: &Rtt) -> Option<Time> {
        if self.books.last().same {
            return self.books.is_pending().then(|| eager.pacer.again_at(rtt));
        }
        if self.in_parts && self.books.awaits() {
            return Some(eager.pacer.again_at(rtt));
        }
        let gathered = self.gathering.map_or(Time::ZERO, |since| since + self.collect);
        Some(gathered.max(eager.new_at(rtt)))
    }
}
