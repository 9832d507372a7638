//! The versions of our object that the peer may hold, and which of them the next diff starts from
//! (`mosh-protocol.md` §4.1, loss-policy §2). It must not know when to send.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use crate::rng::Rng;
use crate::state::{State, StateNum};
use crate::time::Time;
use crate::timing::{Reference, Timing, known_pays};

/// The object we own, and its versions that the peer may hold.
pub(crate) struct StateHistory<L> {
    reference: Reference,
    /// How many versions are kept: `Timing::sent_states_max`.
    sent_max: usize,
    current: L,
    /// First the newest state known acknowledged, last the newest sent. Never empty.
    sent: VecDeque<SentState<L>>,
    /// How many were forgotten since too many were kept.
    forgotten: u64,
}

/// A version that the peer may hold.
pub(crate) struct SentState<L> {
    pub num: StateNum,
    /// When it was sent last, and first.
    pub last_sent: Time,
    pub first_sent: Time,
    /// The peer is to acknowledge it: it was sent with a diff.
    pub ack_eliciting: bool,
    /// Whether the object is as it was then. Of older ones than the last it is only known while the last
    /// is: until then that alone decides when to send.
    pub current: bool,
    state: L,
}

impl<L: State> StateHistory<L> {
    pub(crate) fn new(now: Time, timing: &Timing, initial: L) -> StateHistory<L> {
        let zero = SentState {
            num: StateNum::ZERO,
            last_sent: now,
            first_sent: now,
            ack_eliciting: false,
            current: true,
            state: initial.clone(),
        };
        StateHistory {
            reference: timing.reference,
            sent_max: timing.sent_states_max,
            current: initial,
            sent: VecDeque::from([zero]),
            forgotten: 0,
        }
    }

    /// Changes the object. What that means is found out by [`compare`](StateHistory::compare), once for many.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut L)) {
        change(&mut self.current);
    }

    /// Finds out whether the object is as it was sent last.
    pub(crate) fn compare(&mut self) -> bool {
        let last = self.sent.back_mut().expect("sent holds the known state");
        last.current = last.state == self.current;
        let current = last.current;
        // While the last one differs it decides when to send, so the older ones need no comparison.
        if current {
            self.compare_older();
        }
        current
    }

    /// The diff from this state is empty: no diff can express how the object differs from it. If it was sent
    /// last, it stands for the object as it is; whether that is so.
    pub(crate) fn adopt(&mut self, index: usize) -> bool {
        self.sent[index].current = true;
        let is_last = index + 1 == self.sent.len();
        if is_last {
            let last = self.sent.back_mut().expect("sent holds the known state");
            if last.state != self.current {
                last.state = self.current.clone();
                self.compare_older();
            }
        }
        is_last
    }

    /// The peer holds this state. The states sent up to it are handed to `left`, oldest first, but for the
    /// known one; then all before it is forgotten. Whether it is news: one of those sent, and not known.
    pub(crate) fn acknowledge(&mut self, num: StateNum, left: impl FnMut(&SentState<L>)) -> bool {
        // A peer may name any number. One that was never sent, or was dropped from the middle, is
        // ignored.
        let Ok(index) = self.sent.binary_search_by_key(&num, |sent| sent.num) else { return false };
        if index == 0 {
            return false;
        }
        self.sent.iter().skip(1).take(index).for_each(left);
        self.sent.drain(..index);
        // What the peer is known to hold, no diff has to tell again.
        let known = self.first().state.clone();
        // Without this a day of typing would be held, and compared, in full.
        self.current.subtract(&known);
        for sent in &mut self.sent {
            sent.state.subtract(&known);
        }
        true
    }

    /// This state, or a part of it, was sent once more.
    pub(crate) fn repeat(&mut self, now: Time, num: StateNum) {
        if let Ok(index) = self.sent.binary_search_by_key(&num, |sent| sent.num) {
            self.sent[index].last_sent = now;
        }
    }

    /// The object as it is was sent, under this number.
    pub(crate) fn record(&mut self, now: Time, num: StateNum, ack_eliciting: bool) {
        let state = self.current.clone();
        self.sent.push_back(SentState {
            num,
            last_sent: now,
            first_sent: now,
            ack_eliciting,
            current: true,
            state,
        });
        let excess = self.sent.len().saturating_sub(self.sent_max);
        if excess > 0 {
            // One from the middle: neither the base nor anything the peer may hold as its newest.
            let middle = self.sent.len() - self.sent_max.div_ceil(2);
            self.sent.remove(middle.clamp(1, self.sent.len() - 2));
            self.forgotten += 1;
        }
        self.compare_older();
    }

    /// The last state sent is not the object as it is, but the known state under another number.
    pub(crate) fn record_nothing(&mut self) {
        self.record_part(self.first().state.clone());
    }

    /// The last state sent is not the object as it is, but a version on the way there.
    pub(crate) fn record_part(&mut self, part: L) {
        let last = self.sent.back_mut().expect("sent holds the known state");
        (last.state, last.current) = (part, false);
    }

    /// A version between the known one and the object as it is, if there is one, and the diff to it.
    pub(crate) fn part(&self, octets: usize) -> Option<(L, Vec<u8>)> {
        let known = &self.first().state;
        // From the known state and not the last sent: a part that builds on a lost one is lost,
        // too.
        let part = self.current.towards(known, octets)?;
        let mut diff = Vec::new();
        part.diff_from(known, &mut diff);
        Some((part, diff))
    }

    /// Whether the state that was sent last is further from the known one than such a part: a part would take it back.
    pub(crate) fn is_ahead_of_part(&self, octets: usize) -> bool {
        self.last().state.towards(&self.first().state, octets).is_some()
    }

    /// The diff from the known state to the one that was sent last.
    pub(crate) fn last_again(&self) -> Vec<u8> {
        let mut diff = Vec::new();
        self.last().state.diff_from(&self.first().state, &mut diff);
        diff
    }

    /// The diff from the known state to the object as it is.
    pub(crate) fn known_diff(&self) -> Vec<u8> {
        self.diff_from(0)
    }

    /// Whether the last sent state is this one.
    pub(crate) fn last_is(&self, state: &L) -> bool {
        self.last().state == *state
    }

    /// Whether anything that was sent is to be acknowledged, and is not.
    pub(crate) fn awaits(&self) -> bool {
        self.sent.iter().skip(1).any(|sent| sent.ack_eliciting)
    }

    /// The index of the newest state the peer is assumed to hold (§4.1): no more is known to be missing of
    /// it than that nobody has acknowledged it for less than `probe_timeout`.
    pub(crate) fn assumed(&self, now: Time, probe_timeout: Duration) -> usize {
        // The shutdown state is final: it can be said again, but nothing follows from it.
        let candidates = self.sent.iter().skip(1).filter(|sent| sent.num != StateNum::SHUTDOWN);
        candidates.take_while(|sent| now.since(sent.last_sent) < probe_timeout).count()
    }

    /// The index of the state to start from, and the diff from it, at this share of datagrams lost.
    pub(crate) fn choose(&self, assumed: usize, loss: f64, rng: &mut Rng) -> (usize, Vec<u8>) {
        let base = match self.reference {
            Reference::Known => 0,
            Reference::Mixed { known } if known.happens(rng.bits() as u16) => 0,
            Reference::Mixed { .. } | Reference::Assumed => assumed,
            Reference::Adaptive | Reference::Prospective(_) => {
                return self.choose_cheaper(assumed, loss);
            }
        };
        (base, self.diff_from(base))
    }

    pub(crate) fn current(&self) -> &L {
        &self.current
    }

    /// The newest state known acknowledged.
    pub(crate) fn first(&self) -> &SentState<L> {
        self.sent.front().expect("sent holds the known state")
    }

    /// The newest sent.
    pub(crate) fn last(&self) -> &SentState<L> {
        self.sent.back().expect("sent holds the known state")
    }

    /// The oldest that is not acknowledged.
    pub(crate) fn oldest(&self) -> Option<&SentState<L>> {
        self.sent.get(1)
    }

    /// The number of the state at this index.
    pub(crate) fn num(&self, index: usize) -> StateNum {
        self.sent[index].num
    }

    /// Whether the peer may hold something else than the object as it is.
    pub(crate) fn is_pending(&self) -> bool {
        self.sent.iter().any(|sent| !sent.current)
    }

    /// How many states were forgotten that the peer had not acknowledged.
    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// How many states are held.
    pub(crate) fn held(&self) -> usize {
        self.sent.len()
    }

    #[cfg(test)]
    pub(crate) fn nums(&self) -> Vec<u64> {
        self.sent.iter().map(|sent| sent.num.get()).collect()
    }

    fn compare_older(&mut self) {
        let older = self.sent.len() - 1;
        for sent in self.sent.iter_mut().take(older) {
            sent.current = sent.state == self.current;
        }
    }

    /// The known state always works; the assumed one may be cheaper.
    fn choose_cheaper(&self, assumed: usize, loss: f64) -> (usize, Vec<u8>) {
        let known = self.diff_from(0);
        if assumed == 0 {
            return (0, known);
        }
        let other = self.diff_from(assumed);
        // An object that has changed back needs no diff from the known state. But an empty diff is no news to
        // the peer, so it would not be acknowledged before the next keepalive.
        let changed_back = known.is_empty() && !other.is_empty();
        let pays = match self.reference {
            Reference::Prospective(prospect) => prospect.takes_known(known.len(), other.len()),
            _ => known_pays(known.len(), other.len(), assumed, loss),
        };
        if pays && !changed_back { (0, known) } else { (assumed, other) }
    }

    fn diff_from(&self, index: usize) -> Vec<u8> {
        let mut diff = Vec::new();
        self.current.diff_from(&self.sent[index].state, &mut diff);
        diff
    }
}
