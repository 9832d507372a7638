//! The sender's books: what was sent and may have arrived, and when to send what next
//! (`mosh-protocol.md` §4.1, §4.2). It must not know how an instruction travels.

use std::collections::VecDeque;
use std::time::Duration;

use crate::instruction::{Instruction, MESSAGE_BYTES_MAX};
use crate::rng::Rng;
use crate::rtt::{Rtt, ceil_ms};
use crate::state::{State, StateNum};
use crate::stats::Stats;
use crate::time::Time;
use crate::timing::{Reference, Timing};
use crate::wire::Role;

/// The object we own, its versions that the peer may hold, and the clocks of sending.
pub(crate) struct Sender<L> {
    timing: Timing,
    collect: Duration,
    current: L,
    /// First the newest state known acknowledged, last the newest sent. Never empty. At most
    /// `Timing::sent_states_max`.
    sent: VecDeque<Sent<L>>,
    /// When the object was touched, until it has been compared with what was sent.
    touched: Option<Time>,
    /// When the object began to differ from the last sent state.
    gathering: Option<Time>,
    /// When an instruction goes out even if there is nothing new to say.
    next_ack: Time,
    /// When a new state of the peer came last, or the session began.
    heard: Time,
    /// The last sent state was refused by the path: nothing but the first is assumed received.
    refused: bool,
    /// The diff is longer than an instruction may be, until something changes.
    too_long: bool,
    /// Our shutdown: since when, and how often announced.
    closing: Option<Closing>,
    peer_closing: bool,
    rng: Rng,
}

struct Sent<L> {
    num: StateNum,
    at: Time,
    state: L,
    /// Whether the object is as it was then.
    same: bool,
}

#[derive(Clone, Copy)]
struct Closing {
    since: Time,
    tries: u32,
}

impl<L: State> Sender<L> {
    pub fn new(now: Time, role: Role, timing: Timing, initial: L, seed: u64) -> Sender<L> {
        let zero = Sent { num: StateNum::ZERO, at: now, state: initial.clone(), same: true };
        Sender {
            collect: timing.collect(role),
            timing,
            current: initial,
            sent: VecDeque::from([zero]),
            touched: None,
            gathering: None,
            // Both ends speak at once: the client to be found, the server once it has an address.
            next_ack: now,
            heard: now,
            refused: false,
            too_long: false,
            closing: None,
            peer_closing: false,
            rng: Rng::new(seed),
        }
    }

    /// Changes the object; what that means for sending is found out at the next `poll`.
    pub fn update(&mut self, now: Time, change: impl FnOnce(&mut L)) {
        if self.closing.is_none() {
            change(&mut self.current);
            self.touched.get_or_insert(now);
            self.too_long = false;
        }
    }

    /// The peer's newest state has come: it is there.
    pub fn hear(&mut self, now: Time) {
        self.heard = now;
    }

    /// The peer's newest state came with a diff: an acknowledgment is owed.
    pub fn owe_ack(&mut self, now: Time) {
        self.next_ack = self.next_ack.min(now + self.timing.ack_delay);
    }

    /// The peer holds this state. Ignored unless it is one of those sent.
    pub fn acknowledge(&mut self, num: StateNum) {
        let Ok(place) = self.sent.binary_search_by_key(&num, |sent| sent.num) else { return };
        if place == 0 {
            return;
        }
        self.sent.drain(..place);
        self.too_long = false;
        // What the peer is known to hold, no diff has to tell again.
        let known = self.first().state.clone();
        self.current.subtract(&known);
        for sent in &mut self.sent {
            sent.state.subtract(&known);
        }
    }

    /// The object is final: announce it as the last.
    pub fn close(&mut self, now: Time) {
        self.closing.get_or_insert(Closing { since: now, tries: 0 });
    }

    /// The peer's object is final: acknowledge that soon. Whether this is news.
    pub fn peer_closes(&mut self) -> bool {
        !std::mem::replace(&mut self.peer_closing, true)
    }

    /// The path refused what was sent last: say it again at once, in other words if need be.
    pub fn refuse(&mut self) {
        self.refused = true;
        self.next_ack = Time::ZERO;
    }

    /// The instruction to send now, if one is due; its `ack` is filled in by the caller.
    pub fn poll(&mut self, now: Time, rtt: &Rtt, stats: &mut Stats) -> Option<Instruction> {
        self.compare();
        if self.tries_are_used_up() {
            return None;
        }
        let ack_due = self.ack_at(rtt) <= now;
        if !ack_due && self.data_at(rtt).is_none_or(|at| at > now) {
            return None;
        }

        let assumed = self.assumed(now, rtt);
        let (base, diff) = self.choose(assumed);
        if diff.len() > DIFF_BYTES_MAX {
            stats.diffs_too_long += u64::from(!self.too_long);
            self.too_long = true;
            return ack_due.then(|| self.say_nothing(now, stats));
        }
        if diff.is_empty() {
            // Whatever the object differs in from this state, no diff can tell.
            self.sent[base].same = true;
            if base + 1 == self.sent.len() {
                self.adopt();
            }
        }
        if diff.is_empty() && self.last().same && self.data_at(rtt).is_none_or(|at| at > now) {
            if !ack_due {
                return None;
            }
            stats.acks_sent += 1;
            return Some(self.send(now, base, diff, Number::New));
        }
        if self.last().same {
            stats.resends += 1;
            return Some(self.send(now, base, diff, Number::Last));
        }
        stats.states_sent += 1;
        Some(self.send(now, base, diff, Number::New))
    }

    /// When [`poll`](Sender::poll) has something to do again.
    pub fn wake(&self, rtt: &Rtt) -> Option<Time> {
        if self.touched.is_some() {
            return self.touched;
        }
        if self.tries_are_used_up() {
            return None;
        }
        let ack = self.ack_at(rtt);
        Some(self.data_at(rtt).map_or(ack, |data| data.min(ack)))
    }

    /// When our shutdown stops waiting for an answer.
    pub fn close_deadline(&self, rtt: &Rtt) -> Option<Time> {
        let closing = self.closing?;
        let patience = closing.since + self.timing.close_time_max;
        Some(match self.tries_are_used_up() {
            true => patience.min(self.last().at + rtt.rto()),
            false => patience,
        })
    }

    pub fn current(&self) -> &L {
        &self.current
    }

    pub fn last_num(&self) -> StateNum {
        self.last().num
    }

    pub fn acked(&self) -> StateNum {
        self.first().num
    }

    pub fn acked_sent_at(&self) -> Time {
        self.first().at
    }

    /// How many states are held.
    pub fn held(&self) -> usize {
        self.sent.len()
    }

    pub fn is_closing(&self) -> bool {
        self.closing.is_some()
    }

    /// Half the round trip, within bounds (§4.1).
    pub fn send_interval(&self, rtt: &Rtt) -> Duration {
        ceil_ms(rtt.srtt() / 2).clamp(self.timing.send_interval_min, self.timing.send_interval_max)
    }

    fn first(&self) -> &Sent<L> {
        self.sent.front().expect("sent holds the known state")
    }

    fn last(&self) -> &Sent<L> {
        self.sent.back().expect("sent holds the known state")
    }

    /// Finds out what a touched object means, once for all touches since the last time.
    fn compare(&mut self) {
        let Some(touched) = self.touched.take() else { return };
        let last = self.sent.back_mut().expect("sent holds the known state");
        last.same = last.state == self.current;
        if last.same {
            self.gathering = None;
            self.compare_older();
        } else {
            self.gathering.get_or_insert(touched);
        }
    }

    // Only asked while the object is as last sent: until then that alone decides when to send.
    fn compare_older(&mut self) {
        let older = self.sent.len() - 1;
        for sent in self.sent.iter_mut().take(older) {
            sent.same = sent.state == self.current;
        }
    }

    /// The last sent state stands for the object as it is.
    fn adopt(&mut self) {
        let last = self.sent.back_mut().expect("sent holds the known state");
        if last.state != self.current {
            last.state = self.current.clone();
            self.compare_older();
        }
        self.gathering = None;
    }

    fn tries_are_used_up(&self) -> bool {
        self.closing.is_some_and(|closing| closing.tries >= self.timing.close_tries_max)
    }

    fn ack_at(&self, rtt: &Rtt) -> Time {
        if self.closing.is_some() || self.peer_closing {
            return self.last().at + self.send_interval(rtt);
        }
        self.next_ack
    }

    /// When the object itself is a reason to send (§4.2, rule 2), asked as of any later moment: the
    /// assumed state falls back to the first when the oldest unacknowledged one has expired, and no
    /// condition holds again once it has ceased.
    fn data_at(&self, rtt: &Rtt) -> Option<Time> {
        if self.too_long {
            return None;
        }
        let frame = self.last().at + self.send_interval(rtt);
        let gathered = self.gathering.map_or(Time::ZERO, |since| since + self.collect);
        if !self.last().same {
            return Some(frame.max(gathered));
        }
        let patience = self.patience(rtt);
        let retry = if !self.first().same {
            let oldest = self.sent.get(1).expect("the first is not the last, which is the same");
            frame.max(gathered).max(oldest.at + patience)
        } else if self.sent.iter().any(|sent| !sent.same) {
            // The object has changed back. Stock leaves a peer that holds the state between with it
            // until the next keepalive.
            self.last().at + patience
        } else {
            return None;
        };
        (retry.since(self.heard) < self.timing.active_retry).then_some(retry)
    }

    /// How long a sent state is assumed received without an acknowledgment.
    fn patience(&self, rtt: &Rtt) -> Duration {
        rtt.rto() + self.timing.ack_delay
    }

    /// The place of the newest state the peer is assumed to hold (§4.1).
    fn assumed(&self, now: Time, rtt: &Rtt) -> usize {
        if self.refused {
            return 0;
        }
        let patience = self.patience(rtt);
        // The shutdown state is final: it can be said again, but nothing follows from it.
        let candidates = self.sent.iter().skip(1).filter(|sent| sent.num != StateNum::SHUTDOWN);
        candidates.take_while(|sent| now.since(sent.at) < patience).count()
    }

    /// The place of the state to start from, and the diff from it.
    fn choose(&mut self, assumed: usize) -> (usize, Vec<u8>) {
        let base = match self.timing.reference {
            Reference::Known => 0,
            Reference::Mixed { known } if known.happens(self.rng.bits() as u16) => 0,
            Reference::Mixed { .. } | Reference::Assumed | Reference::Prospective(_) => assumed,
        };
        let diff = self.diff_from(base);
        let Reference::Prospective(prospect) = self.timing.reference else { return (base, diff) };
        if assumed == 0 {
            return (base, diff);
        }
        let known = self.diff_from(0);
        // An object that has changed back needs no diff from the known state, but an empty one would
        // not be acknowledged before the next keepalive.
        let changed_back = known.is_empty() && !diff.is_empty();
        if prospect.takes_known(known.len(), diff.len()) && !changed_back {
            return (0, known);
        }
        (assumed, diff)
    }

    fn diff_from(&self, place: usize) -> Vec<u8> {
        let mut diff = Vec::new();
        self.current.diff_from(&self.sent[place].state, &mut diff);
        diff
    }

    /// An instruction that makes a new state equal to the known one, to say that we are there.
    fn say_nothing(&mut self, now: Time, stats: &mut Stats) -> Instruction {
        stats.acks_sent += 1;
        let state = self.first().state.clone();
        let message = self.send(now, 0, Vec::new(), Number::New);
        let last = self.sent.back_mut().expect("sent holds the known state");
        last.state = state;
        last.same = false;
        message
    }

    fn send(&mut self, now: Time, base: usize, diff: Vec<u8>, number: Number) -> Instruction {
        let old = self.sent[base].num;
        let throwaway = self.first().num;
        let last = self.last().num;
        let new = match (&mut self.closing, number) {
            (Some(closing), _) => {
                closing.tries += 1;
                StateNum::SHUTDOWN
            }
            (None, Number::New) => last.next(),
            (None, Number::Last) => last,
        };
        if new == last {
            self.sent.back_mut().expect("sent holds the known state").at = now;
        } else {
            self.record(now, new);
        }
        self.next_ack = now + self.timing.ack_interval;
        self.gathering = None;
        self.refused = false;
        let mut chaff = Vec::new();
        let chaff_bytes = self.rng.below(self.timing.chaff_bytes_max as u32 + 1);
        self.rng.fill(chaff_bytes as usize, &mut chaff);
        Instruction { old, new, ack: StateNum::ZERO, throwaway, diff, chaff }
    }

    fn record(&mut self, now: Time, num: StateNum) {
        self.sent.push_back(Sent { num, at: now, state: self.current.clone(), same: true });
        let excess = self.sent.len().saturating_sub(self.timing.sent_states_max);
        if excess > 0 {
            // One from the middle: neither the base nor anything the peer may hold as its newest.
            let middle = self.sent.len() - self.timing.sent_states_max.div_ceil(2);
            self.sent.remove(middle.clamp(1, self.sent.len() - 2));
        }
        self.compare_older();
    }
}

/// Which number an instruction gives the state it makes.
enum Number {
    /// The next: the state is new to the peer, or its news is the acknowledgment.
    New,
    /// The last one's: it is sent again.
    Last,
}

/// The longest diff that is sent: what an instruction holds beside it, and the longest chaff, fit too.
const DIFF_BYTES_MAX: usize =
    MESSAGE_BYTES_MAX - Instruction::ENVELOPE_BYTES_MAX - u8::MAX as usize;
