//! What can be kept in step: an object with numbered versions, and the laws its diffs obey. Nothing
//! here knows how a diff travels.

use alloc::vec::Vec;
use core::fmt;

/// A version of a synchronized object.
///
/// The laws, which [`laws`] checks for a pair:
/// - `a.apply(b.diff_from(a))` makes `a` equal to `b`;
/// - `a.diff_from(a)` is empty;
/// - [`subtract`](State::subtract) changes no diff;
/// - what lies [`towards`](State::towards) `b` from `a` obeys these with `a`, and `b` with it.
///
/// Equality must be cheap: a sender compares its object with every unacknowledged version (up to
/// [`Timing::sent_states_max`](crate::Timing::sent_states_max)) after each burst of updates. Compare
/// shared parts by pointer first. Equality must also be no finer than diffs are: versions that differ
/// though the diff between them is empty cost a needless datagram.
pub trait State: Clone + PartialEq {
    /// Appends the octets that turn `base` into this version. Must stay well below
    /// [`MESSAGE_BYTES_MAX`](crate::MESSAGE_BYTES_MAX): a diff that does not fit is not sent.
    fn diff_from(&self, base: &Self, out: &mut Vec<u8>);

    /// Turns this version into the one the diff was made for.
    ///
    /// Only a diff that cannot be parsed, or takes more work than any honest one, is an error, and it ends the
    /// session: the peer is authentic, so the two ends speak different languages. A faulty event inside a
    /// diff is ignored.
    fn apply(&mut self, diff: &[u8]) -> Result<(), BadDiff>;

    /// Begins to apply a diff, or goes on with it: does as much as fits into a turn. A version in between is of no
    /// other use than for the next call, with the same diff.
    fn apply_part(&mut self, diff: &[u8]) -> Result<Applied, BadDiff> {
        self.apply(diff).map(|()| Applied::Whole)
    }

    /// A version on the way to this one from `base`, from which it descends, for a peer that is to get here in
    /// parts: the diff from `base` to it takes little more than `octets`, which are not 0. `None` if
    /// this one is no further than that, or if there is nothing between the two that makes sense.
    fn towards(&self, base: &Self, octets: usize) -> Option<Self> {
        let _ = (base, octets);
        None
    }

    /// Forgets a prefix that both ends hold. `known` is this version or an ancestor of it; a hostile
    /// peer can make it something else, which must do no harm beyond a wrong object.
    fn subtract(&mut self, known: &Self) {
        let _ = known;
    }

    /// The octets this version holds, those shared with other versions included; rather too many than
    /// too few. Must cost O(1), and change only when the version does: a receiver adds it up against
    /// [`Timing::received_bytes_max`](crate::Timing::received_bytes_max).
    fn weight(&self) -> usize;
}

/// How far a diff is applied.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Applied {
    /// To its end.
    Whole,
    /// In part: more is to be done.
    Part,
}

/// A diff from an authentic peer that cannot be read. Says what was wrong with it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BadDiff(pub &'static str);

impl fmt::Display for BadDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the peer sent a diff that cannot be read: {}", self.0)
    }
}

impl core::error::Error for BadDiff {}

/// A state's number. State 0 is the one both ends start from; `u64::MAX` announces shutdown.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct StateNum(u64);

impl StateNum {
    /// The state both ends start from.
    pub const ZERO: StateNum = StateNum(0);
    /// The last state of a session. Any number may come before it.
    pub const SHUTDOWN: StateNum = StateNum(u64::MAX);

    /// The number on the wire.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number after this one; [`SHUTDOWN`](StateNum::SHUTDOWN) has none after it and stays.
    pub const fn next(self) -> StateNum {
        StateNum(self.0.saturating_add(1))
    }
}

impl From<u64> for StateNum {
    fn from(number: u64) -> StateNum {
        StateNum(number)
    }
}

/// Panics unless the pair obeys the laws of [`State`], where `b` descends from `a`. For tests.
pub fn laws<S: State>(a: &S, b: &S) {
    same_by_diff(a, b);
    for octets in [1, 5, 5000] {
        if let Some(part) = b.towards(a, octets) {
            assert!(part != *a && part != *b, "a version between two is neither");
            same_by_diff(a, &part);
            same_by_diff(&part, b);
        }
    }
}

fn same_by_diff<S: State>(a: &S, b: &S) {
    let mut diff = Vec::new();
    a.diff_from(a, &mut diff);
    assert!(diff.is_empty(), "the diff from a state to itself is empty");

    b.diff_from(a, &mut diff);
    let mut copy = a.clone();
    if !diff.is_empty() {
        assert!(copy.apply(&diff).is_ok(), "a diff made here can be read here");
    }
    assert!(copy == *b, "applying a diff makes the state it was made for");

    let (mut a_cut, mut b_cut) = (a.clone(), b.clone());
    a_cut.subtract(a);
    b_cut.subtract(a);
    let mut diff_cut = Vec::new();
    b_cut.diff_from(&a_cut, &mut diff_cut);
    assert!(diff_cut == diff, "subtracting a common ancestor changes no diff");
}

/// A small state for tests of this crate: a text that only grows. A subtracted prefix stays
/// readable, so that tests can look at it, but is no part of diffs.
#[cfg(test)]
pub(crate) mod toy {
    use super::{BadDiff, State};

    #[derive(Clone, Debug, Default)]
    pub(crate) struct Toy {
        text: String,
        subtracted: usize,
    }

    impl Toy {
        pub(crate) const UNREADABLE: &str = "\u{7f}";

        pub(crate) fn push(&mut self, text: &str) {
            self.text.push_str(text);
        }

        pub(crate) fn text(&self) -> &str {
            &self.text
        }

        pub(crate) fn unsubtracted(&self) -> &str {
            &self.text[self.subtracted..]
        }
    }

    impl PartialEq for Toy {
        fn eq(&self, other: &Toy) -> bool {
            self.text == other.text
        }
    }

    impl State for Toy {
        fn diff_from(&self, base: &Toy, out: &mut Vec<u8>) {
            let start = base.text.len().max(self.subtracted).min(self.text.len());
            out.extend_from_slice(&self.text.as_bytes()[start..]);
        }

        fn apply(&mut self, diff: &[u8]) -> Result<(), BadDiff> {
            let text = core::str::from_utf8(diff).map_err(|_| BadDiff("not UTF-8"))?;
            if text == Toy::UNREADABLE {
                return Err(BadDiff("unreadable"));
            }
            self.push(text);
            Ok(())
        }

        fn towards(&self, base: &Toy, octets: usize) -> Option<Toy> {
            let end = base.text.len() + octets;
            let text = self.text.get(..end).filter(|_| end < self.text.len())?.to_owned();
            Some(Toy { text, subtracted: self.subtracted })
        }

        fn subtract(&mut self, known: &Toy) {
            self.subtracted = known.text.len().min(self.text.len());
        }

        fn weight(&self) -> usize {
            self.text.len()
        }
    }
}
