//! What the adaptive policy sends and when (loss-policy §5): new states, parts of long ones,
//! retransmissions, and bare acknowledgments. It must not know that there are other policies.

use alloc::vec::Vec;

use crate::path::Path;
use crate::recovery::rtt::RttEstimator;
use crate::sender::acks::{AckSchedule, Fragmented};
use crate::sender::core::{Core, DIFF_BYTES_MAX, Number, Prepared, Rest};
use crate::sender::redundancy::{Feedback, Redundancy, Resend};
use crate::state::{State, StateNum};
use crate::stats::Stats;
use crate::time::Time;
use crate::timing::{Acks, AdaptiveTiming, StreamTiming};
use crate::wire::{Flags, Role};

/// When to repeat a state, and when to acknowledge.
pub(crate) struct AdaptivePolicy {
    pub redundancy: Redundancy,
    /// The acknowledgments owed.
    pub acks: AckSchedule,
    /// What an acknowledgment of ours is.
    ack_form: Acks,
    /// The peer is on its way to the object in parts: each starts from what it is known to hold.
    in_parts: bool,
}

/// Whether it is time for a state of its own, though there is nothing new to say.
#[derive(Clone, Copy, PartialEq)]
enum Heartbeat {
    Due,
    Later,
}

impl AdaptivePolicy {
    pub(crate) fn new(now: Time, role: Role, timing: &AdaptiveTiming) -> AdaptivePolicy {
        AdaptivePolicy {
            redundancy: Redundancy::new(now, timing.clone()),
            acks: AckSchedule::new(now),
            ack_form: match role {
                Role::Client => timing.client_acks,
                Role::Server => Acks::Stateless,
            },
            in_parts: false,
        }
    }

    /// An authentic datagram came; `loss` is the share of the peer's that did not.
    pub(crate) fn on_datagram(
        &mut self,
        now: Time,
        path: &Path,
        loss: f64,
        feedback: Option<Feedback>,
    ) {
        self.redundancy.on_datagram(now, &path.rtt, loss, feedback);
        // Copies of what is lost in a full queue only make the queue longer.
        self.redundancy.judge(path.suppresses_redundancy(now));
    }

    /// Datagrams go by a stream from now on, or by UDP.
    pub(crate) fn switch(&mut self, stream: Option<StreamTiming>) {
        self.redundancy.switch(stream);
    }

    /// This state takes several datagrams, of which one goes out now: its answer is due after that. If it
    /// is not the last, those after it keep their own clocks.
    pub(crate) fn said_more<L: State>(&mut self, now: Time, core: &mut Core<L>, num: StateNum) {
        // The peer cannot answer before the last fragment, so patience begins with that one.
        core.history.repeat(now, num);
        if num == core.history.last().num {
            self.redundancy.said_more(now);
            core.heartbeat = now + core.timing.ack_interval;
        }
    }

    /// When another datagram of an instruction may go out after one at `last`: when there is room for it.
    pub(crate) fn room_at(&self, last: Time, path: &Path) -> Time {
        path.send_part_at(last, self.redundancy.pto(&path.rtt))
    }

    /// The peer holds this state. Whether it is news.
    pub(crate) fn acknowledge<L: State>(
        &mut self,
        now: Time,
        core: &mut Core<L>,
        num: StateNum,
    ) -> bool {
        let news = core.acknowledge(num, |first_sent, ack_eliciting| {
            // Empty states wait for something to ride on, which would look like a slow path.
            if ack_eliciting {
                self.redundancy.acknowledged(now.since(first_sent));
            }
        });
        if !news {
            return false;
        }
        self.redundancy.answered();
        if !core.history.is_pending() {
            self.redundancy.settled();
        }
        // What is not known any more may be no more than a part, though something else is awaited.
        self.in_parts &= !core.history.awaits();
        true
    }

    /// The peer's newest state came with a diff: an acknowledgment is owed.
    pub(crate) fn schedule_ack(&mut self, now: Time, rtt: &RttEstimator, fragmented: Fragmented) {
        self.acks.on_state(now, rtt, self.redundancy.ack_delay(), fragmented);
    }

    /// The peer's newest state came without a diff. Only a stock server has to know that it did.
    pub(crate) fn on_empty_state(&mut self, now: Time) {
        if self.ack_form == Acks::EmptyState {
            self.acks.schedule_by(now + self.redundancy.ack_delay());
        }
    }

    /// A piece of an instruction came, and others are missing: the peer is to learn soon which.
    pub(crate) fn schedule_report(&mut self, now: Time, rtt: &RttEstimator) {
        self.acks.on_piece(now, rtt, self.redundancy.ack_delay());
    }

    /// The acknowledgment that is due, while nothing else may be said.
    pub(crate) fn poll_scheduled<L: State>(
        &mut self,
        now: Time,
        core: &Core<L>,
        stats: &mut Stats,
    ) -> Option<Prepared> {
        self.acks.at().filter(|at| *at <= now)?;
        stats.acks_sent += 1;
        self.acks.on_sent(now);
        Some(core.only_acknowledge())
    }

    /// Whether the session may be at rest.
    pub(crate) fn rest(&self) -> Rest {
        if self.redundancy.is_reported() { Rest::Allowed } else { Rest::Never }
    }

    /// When [`poll`](AdaptivePolicy::poll) has something to do.
    pub(crate) fn wake<L: State>(&self, core: &Core<L>, path: &Path) -> Option<Time> {
        let beat = core.heartbeat_at(self.rest());
        self.data_at(core, path).into_iter().chain(self.acks.at()).chain(beat).min()
    }

    /// The instruction that is due now. One that takes more than `part` octets is told in parts where states
    /// can be parted.
    pub(crate) fn poll<L: State>(
        &mut self,
        now: Time,
        core: &mut Core<L>,
        path: &Path,
        part: usize,
        stats: &mut Stats,
    ) -> Option<Prepared> {
        let beat = match core.heartbeat_at(self.rest()) {
            Some(at) if at <= now => Heartbeat::Due,
            _ => Heartbeat::Later,
        };
        let owed = self.acks.at().is_some_and(|at| at <= now);
        let data = self.data_at(core, path).is_some_and(|at| at <= now);
        // What is new carries the acknowledgment, so a bare one is the last resort.
        let prepared = match data || beat == Heartbeat::Due {
            true => self.prepare(now, core, path, part, stats, beat),
            false => None,
        };
        let prepared = match prepared {
            Some(prepared) => prepared,
            None if owed => self.acknowledge_scheduled(now, core, stats),
            None => return None,
        };
        self.acks.on_sent(now);
        Some(prepared)
    }

    /// When the object itself is a reason to send.
    fn data_at<L: State>(&self, core: &Core<L>, path: &Path) -> Option<Time> {
        if core.too_long {
            return None;
        }
        if core.history.last().current {
            return core.history.is_pending().then(|| self.redundancy.again_at(&path.rtt));
        }
        if self.in_parts && core.history.awaits() {
            return Some(self.redundancy.again_at(&path.rtt));
        }
        Some(core.gathered_at().max(self.new_at(path)))
    }

    /// When a new state may go out.
    fn new_at(&self, path: &Path) -> Time {
        self.redundancy.frame_at(&path.rtt).max(self.open_at(path))
    }

    /// When the window has room for one.
    pub(super) fn open_at(&self, path: &Path) -> Time {
        let last = self.redundancy.last_new().unwrap_or(Time::ZERO);
        path.send_at(last, self.redundancy.pto(&path.rtt))
    }

    /// The object as it is, if the peer may not know it, or a state of its own if it is time for one.
    fn prepare<L: State>(
        &mut self,
        now: Time,
        core: &mut Core<L>,
        path: &Path,
        part: usize,
        stats: &mut Stats,
        beat: Heartbeat,
    ) -> Option<Prepared> {
        // What counts is how far the peer is known to be behind: what is pasted comes in many short reads,
        // and a chain of states would grow to the whole of it, to be told at once when one is lost.
        if let Some(version) = core.history.part(part) {
            return self.prepare_part(now, core, path, version, stats, beat);
        }
        // Little enough is left to be told whole.
        self.in_parts = false;
        let (base, diff) = core.choose(now, self.redundancy.pto(&path.rtt));
        stats.from_assumed += u64::from(base > 0 && !diff.is_empty());
        if diff.len() > DIFF_BYTES_MAX {
            core.keep_back(stats);
            let due = beat == Heartbeat::Due;
            return due.then(|| self.prepare_in_place(now, core, path, stats));
        }
        if diff.is_empty() {
            core.adopt(base);
        }
        if core.history.last().current && beat == Heartbeat::Later {
            if !core.history.is_pending() {
                return None;
            }
            return Some(self.prepare_again(now, core, path, base, diff, stats));
        }
        if diff.is_empty() {
            stats.acks_sent += 1;
        } else {
            stats.states_sent += 1;
            self.redundancy.sent_new(now);
        }
        Some(core.send(now, base, diff, Number::New).into())
    }

    /// This version on the way to the object, unless something else must be acknowledged before: a part
    /// starts from what the peer is known to hold, and holds all that was said since.
    fn prepare_part<L: State>(
        &mut self,
        now: Time,
        core: &mut Core<L>,
        path: &Path,
        (version, diff): (L, Vec<u8>),
        stats: &mut Stats,
        beat: Heartbeat,
    ) -> Option<Prepared> {
        let follows = core::mem::replace(&mut self.in_parts, true);
        if core.history.awaits() {
            if !core.refused && self.redundancy.again_at(&path.rtt) > now {
                return (beat == Heartbeat::Due).then(|| prepare_heartbeat(now, core, stats));
            }
            core.heartbeat = now + core.timing.ack_interval;
            let diff = core.history.last_again();
            return Some(self.prepare_again(now, core, path, 0, diff, stats));
        }
        stats.states_sent += 1;
        // A part is a new state: it gets copies and a timeout of its own.
        self.redundancy.sent_new(now);
        // From the known state, since a lost part would make every later one useless.
        Some(Prepared { follows, ..core.send_part(now, diff, version).into() })
    }

    /// A sign of life in place of what is too long to travel. While an answer is awaited it is what was sent last: a
    /// state equal to the known one would take that back.
    fn prepare_in_place<L: State>(
        &mut self,
        now: Time,
        core: &mut Core<L>,
        path: &Path,
        stats: &mut Stats,
    ) -> Prepared {
        if !core.history.awaits() {
            return core.send_nothing(now, Number::New, stats).into();
        }
        let diff = core.history.last_again();
        let is_late = core.refused || self.redundancy.again_at(&path.rtt) <= now;
        if !is_late || diff.len() > DIFF_BYTES_MAX {
            return prepare_heartbeat(now, core, stats);
        }
        core.heartbeat = now + core.timing.ack_interval;
        self.prepare_again(now, core, path, 0, diff, stats)
    }

    /// Sends the last state again, as a diff from the state at this place.
    fn prepare_again<L: State>(
        &mut self,
        now: Time,
        core: &mut Core<L>,
        path: &Path,
        base: usize,
        diff: Vec<u8>,
        stats: &mut Stats,
    ) -> Prepared {
        stats.resends += 1;
        let again = self.redundancy.sent_again(now, &path.rtt) == Resend::Timeout;
        let flags = Flags { again, ack_only: false };
        Prepared { flags, ..core.send(now, base, diff, Number::Last).into() }
    }

    /// The acknowledgment that is owed, as the timing has it. It makes no state while anything of ours is
    /// pending: such a state would have to tell that again, and its timeout would start anew.
    fn acknowledge_scheduled<L: State>(
        &mut self,
        now: Time,
        core: &mut Core<L>,
        stats: &mut Stats,
    ) -> Prepared {
        stats.acks_sent += 1;
        if self.ack_form == Acks::EmptyState && !core.history.is_pending() {
            return core.send(now, 0, Vec::new(), Number::New).into();
        }
        core.only_acknowledge()
    }
}

/// That we are there, while an answer that is not late yet is awaited: on a path whose timeout is longer
/// than the time between two beats, all of a part would go twice.
fn prepare_heartbeat<L: State>(now: Time, core: &mut Core<L>, stats: &mut Stats) -> Prepared {
    stats.acks_sent += 1;
    core.heartbeat = now + core.timing.ack_interval;
    core.asked = false;
    core.only_acknowledge()
}
