//! The versions of the peer's object that its diffs may start from (`mosh-protocol.md` §4.3). It
//! must not know how instructions arrive.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::instruction::Instruction;
use crate::state::{Applied, BadDiff, State, StateNum};
use crate::time::Time;
use crate::timing::Timing;

/// The states of the peer that are held.
pub(crate) struct Receiver<R> {
    /// By number, never empty: only what lies below a held state is forgotten. At most
    /// `Timing::received_states_max` and one more, and at most `Timing::received_bytes_max` octets
    /// after the first.
    received: VecDeque<Received<R>>,
    /// The weight of all but the first.
    bytes: usize,
    /// The state that a diff is being applied to.
    coming: Option<Coming<R>>,
    /// When the next state may be taken while too many are held.
    quenched_until: Time,
    last_new: Option<Time>,
}

/// A state that is not what its number says before the diff is applied to its end.
struct Coming<R> {
    num: StateNum,
    state: R,
    diff: Vec<u8>,
}

struct Received<R> {
    num: StateNum,
    state: R,
}

/// What an instruction did.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Accepted {
    /// Nothing: its state is held already, or its base is not.
    Stale,
    /// Nothing: too many states are held, or it is too heavy. What the peer sends once it knows what
    /// we hold starts from that.
    Quenched,
    /// It made a state that is not the newest.
    Older,
    /// It made the newest state, without a diff: a keepalive or an acknowledgment.
    NewestEqual,
    /// It made the newest state, with a diff, which is to be acknowledged.
    Newest,
    /// Its diff is applied in part: [`Receiver::go_on`].
    Part,
}

impl<R: State> Receiver<R> {
    pub(crate) fn new(initial: R) -> Receiver<R> {
        let received = VecDeque::from([Received { num: StateNum::ZERO, state: initial }]);
        Receiver { received, bytes: 0, coming: None, quenched_until: Time::ZERO, last_new: None }
    }

    /// Takes the state an instruction makes, or begins to. An error ends the session.
    ///
    /// The caller has seen to it that `throwaway` is not above `old`, and that nothing else is being applied.
    pub(crate) fn accept(
        &mut self,
        now: Time,
        message: Instruction,
        timing: &Timing,
    ) -> Result<Accepted, BadDiff> {
        assert!(self.coming.is_none(), "a diff is applied to its end before the next");
        // A number stands for one state for good, so a repeat brings nothing.
        if self.find(message.new).is_ok() || self.find(message.old).is_err() {
            return Ok(Accepted::Stale);
        }
        // Only with a base that we hold: a forged order of numbers could else empty the list.
        self.forget_below(message.throwaway);
        if !self.admits(now, timing) {
            return Ok(Accepted::Quenched);
        }
        let base =
            self.find(message.old).expect("throwaway is not above old, so old is still held");
        // A clone, since the base stays: other diffs may start from it.
        let state = self.received[base].state.clone();
        self.coming = Some(Coming { num: message.new, state, diff: message.diff });
        self.go_on(now, timing)
    }

    /// Goes on with the diff that is being applied: `Part` as long as there is more to do.
    pub(crate) fn go_on(&mut self, now: Time, timing: &Timing) -> Result<Accepted, BadDiff> {
        let Some(mut coming) = self.coming.take() else { return Ok(Accepted::Stale) };
        if !coming.diff.is_empty() && coming.state.apply_part(&coming.diff)? == Applied::Part {
            self.coming = Some(coming);
            return Ok(Accepted::Part);
        }
        let Coming { num, state, diff } = coming;
        let place = self.find(num).expect_err("num was not held, and nothing came since");
        let weight = state.weight();
        // Weighed after it is made: no diff tells how large its state will be.
        if weight > timing.received_bytes_max {
            return Ok(Accepted::Quenched);
        }
        // A datagram that was overtaken may bring an older state, which later diffs can still start
        // from.
        let newest = place == self.received.len();
        self.received.insert(place, Received { num, state });
        self.bytes = self.bytes.saturating_add(weight);
        self.shed(timing);
        if !newest {
            return Ok(Accepted::Older);
        }
        self.last_new = Some(now);
        Ok(if diff.is_empty() { Accepted::NewestEqual } else { Accepted::Newest })
    }

    /// The newest state.
    pub(crate) fn newest(&self) -> &R {
        &self.last().state
    }

    pub(crate) fn newest_num(&self) -> StateNum {
        self.last().num
    }

    /// When it came. `None`: it is still state 0.
    pub(crate) fn last_new(&self) -> Option<Time> {
        self.last_new
    }

    /// How many states are held.
    pub(crate) fn held(&self) -> usize {
        self.received.len()
    }

    /// Their weight, octets they share counted for each.
    pub(crate) fn held_bytes(&self) -> usize {
        let oldest = self.received.front().expect("a state is always held");
        self.bytes.saturating_add(oldest.state.weight())
    }

    fn last(&self) -> &Received<R> {
        self.received.back().expect("a state is always held")
    }

    fn find(&self, num: StateNum) -> Result<usize, usize> {
        self.received.binary_search_by_key(&num, |received| received.num)
    }

    fn forget_below(&mut self, throwaway: StateNum) {
        let keep = match self.find(throwaway) {
            Ok(place) | Err(place) => place,
        };
        if keep == 0 {
            return;
        }
        self.received.drain(..keep);
        // What the peer knows us to hold, no diff will tell again.
        let known = self.received.front().expect("old is held and not forgotten").state.clone();
        for received in &mut self.received {
            received.state.subtract(&known);
        }
        // Subtraction has changed every weight.
        self.bytes = self.received.iter().skip(1).map(|received| received.state.weight()).sum();
    }

    /// Drops a state that came after a newer one: the peer cannot know that it is held, since only the newest is
    /// acknowledged.
    pub(crate) fn drop_older(&mut self, num: StateNum) {
        if let Ok(place @ 1..) = self.find(num) {
            self.drop_at(place);
        }
    }

    fn drop_at(&mut self, place: usize) {
        let dropped = self.received.remove(place).expect("a state is held there");
        self.bytes = self.bytes.saturating_sub(dropped.state.weight());
    }

    /// Drops states while too many or too heavy ones are held. The oldest stays, since the peer knows
    /// that we hold it; the one after it is the least likely base of a diff. The newest stays too: none
    /// alone is too heavy.
    fn shed(&mut self, timing: &Timing) {
        while self.received.len() > 2
            && (self.received.len() > timing.received_states_max + 1
                || self.bytes > timing.received_bytes_max)
        {
            self.drop_at(1);
        }
    }

    /// Whether there is place for one more state. While there is not, one is still taken each
    /// `Timing::quench`, so that a peer that never forgets is slowed down and not cut off.
    fn admits(&mut self, now: Time, timing: &Timing) -> bool {
        if self.received.len() <= timing.received_states_max {
            return true;
        }
        if now < self.quenched_until {
            return false;
        }
        self.quenched_until = now + timing.quench;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::state::toy::Toy;

    const TIMING: Timing = Timing::MOSH;

    fn message(old: u64, new: u64, throwaway: u64, diff: &str) -> Instruction {
        Instruction {
            old: old.into(),
            new: new.into(),
            throwaway: throwaway.into(),
            diff: diff.as_bytes().to_vec(),
            ..Instruction::default()
        }
    }

    fn held(receiver: &Receiver<Toy>) -> Vec<u64> {
        receiver.received.iter().map(|received| received.num.get()).collect()
    }

    #[test]
    fn takes_states_in_any_order() {
        use Accepted::{Newest, NewestEqual, Older, Stale};
        // Old, new, throwaway, diff; what comes of it; what is held then; the newest.
        let table = [
            (0, 3, 0, "c", Newest, vec![0, 3], "c"),
            (0, 3, 0, "x", Stale, vec![0, 3], "c"),
            (0, 1, 0, "a", Older, vec![0, 1, 3], "c"),
            (2, 9, 0, "x", Stale, vec![0, 1, 3], "c"),
            (3, 4, 1, "", NewestEqual, vec![1, 3, 4], "c"),
            (1, 7, 1, "z", Newest, vec![1, 3, 4, 7], "az"),
            // Its base is named below what it lets us forget by the state it names itself.
            (4, 8, 2, "y", Newest, vec![3, 4, 7, 8], "cy"),
            (8, u64::MAX, 8, "!", Newest, vec![8, u64::MAX], "cy!"),
            (8, 10, 8, "?", Older, vec![8, 10, u64::MAX], "cy!"),
        ];
        let mut receiver = Receiver::new(Toy::default());
        for (index, (old, new, throwaway, diff, accepted, nums, text)) in
            table.into_iter().enumerate()
        {
            let now = Time::from_millis(index as u64);
            let message = message(old, new, throwaway, diff);
            assert_eq!(receiver.accept(now, message, &TIMING), Ok(accepted), "row {index}");
            assert_eq!(held(&receiver), nums, "row {index}");
            assert_eq!(receiver.newest().text(), text, "row {index}");
        }
        assert_eq!(receiver.last_new(), Some(Time::from_millis(7)));
    }

    #[test]
    fn a_diff_that_cannot_be_read_changes_nothing() {
        let mut receiver = Receiver::new(Toy::default());
        let bad = receiver.accept(Time::ZERO, message(0, 1, 0, Toy::UNREADABLE), &TIMING);
        assert!(bad.is_err());
        assert_eq!((held(&receiver), receiver.newest_num()), (vec![0], StateNum::ZERO));
    }

    #[test]
    fn heavy_states_are_shed_and_the_heaviest_refused() {
        use Accepted::{Newest, Older, Quenched, Stale};
        let timing = Timing { received_bytes_max: 10, ..TIMING };
        let mut receiver = Receiver::new(Toy::default());
        // Old, new, throwaway, diff; what comes of it; what is held then, and its weight.
        for (old, new, throwaway, diff, accepted, nums, bytes) in [
            (0, 1, 0, "aaaa", Newest, vec![0, 1], 4),
            (0, 3, 0, "bbbbbb", Newest, vec![0, 1, 3], 10),
            // Too much together: what follows the oldest goes, even if it is what just came.
            (0, 2, 0, "c", Older, vec![0, 2, 3], 7),
            (0, 4, 0, "dddddddd", Newest, vec![0, 4], 8),
            (0, 3, 0, "ee", Older, vec![0, 3, 4], 10),
            (0, 2, 0, "ff", Older, vec![0, 3, 4], 10),
            // Too much alone.
            (4, 5, 0, "ggg", Quenched, vec![0, 3, 4], 10),
            (2, 5, 0, "g", Stale, vec![0, 3, 4], 10),
            // The base is beyond the limit, and a peer that forgets makes room.
            (4, 5, 4, "gg", Newest, vec![4, 5], 18),
            (4, 6, 4, "hh", Newest, vec![4, 6], 18),
        ] {
            let message = message(old, new, throwaway, diff);
            assert_eq!(receiver.accept(Time::ZERO, message, &timing), Ok(accepted), "{diff}");
            assert_eq!((held(&receiver), receiver.held_bytes()), (nums, bytes), "{diff}");
        }
    }

    #[test]
    fn too_many_states_are_quenched_but_not_refused() {
        let mut receiver = Receiver::new(Toy::default());
        let start = Time::from_millis(1);
        for num in 1..=1024 {
            let taken = receiver.accept(start, message(0, num, 0, "x"), &TIMING);
            assert_eq!(taken, Ok(Accepted::Newest));
        }
        let mut num = 1025;
        for (at_ms, accepted) in [
            (1, Accepted::Newest),
            (1, Accepted::Quenched),
            (15_000, Accepted::Quenched),
            (15_001, Accepted::Newest),
            (15_002, Accepted::Quenched),
        ] {
            let now = Time::from_millis(at_ms);
            let taken = receiver.accept(now, message(num - 1, num, 0, "x"), &TIMING);
            num += u64::from(taken == Ok(Accepted::Newest));
            assert_eq!(taken, Ok(accepted), "at {at_ms} ms");
            assert!(receiver.received.len() <= TIMING.received_states_max + 1);
        }
        assert_eq!(held(&receiver)[..2], [0, 3], "the oldest is kept");
        // A peer that acknowledges at last is served at once.
        let now = start + Duration::from_millis(15_003);
        let freed = receiver.accept(now, message(num - 1, num, num - 1, "x"), &TIMING);
        assert_eq!(freed, Ok(Accepted::Newest));
        assert_eq!(held(&receiver), [num - 1, num]);
    }
}
