//! Keys that the echo ack has not reached yet, and what a frame says of them.

use rove_ssp::{StateNum, Time};

use crate::predict::keys::Key;
use crate::predict::line::{Effect, PredictedScreen};

/// Keys in flight that are followed: 40 s of fast typing. Beyond it nothing is guessed until all of
/// them are acknowledged, and what came after.
pub(in crate::predict) const PENDING_MAX: usize = 256;

/// One key in flight.
#[derive(Clone, Debug)]
pub(super) struct PendingKey {
    pub(super) key: Key,
    pub(super) at: Time,
    /// The state that carries it: acknowledged when the echo ack gets there.
    pub(super) state: StateNum,
    pub(super) epoch: u64,
    pub(super) effect: Effect,
    /// The screen after it; `None` when that cannot be foreseen.
    pub(super) scene: Option<PredictedScreen>,
    /// Typed when no key of unknown effect was under way: whoever echoes it had the line then.
    pub(super) uncontended: bool,
    /// What the kernel echoes of it is not known.
    pub(super) echo_unknown: bool,
    /// A line that it may end had a prompt when it was looked at.
    pub(super) asked: bool,
}

/// Whether what a frame shows is taken as shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum EchoBasis {
    Due,
    Given,
}

/// What a frame turned out to be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Finding {
    /// The scene after this many keys.
    PredictedScreen(usize),
    /// The scene after this many keys, though more are acknowledged.
    Behind(usize),
    /// None of the scenes.
    Unforeseen,
}
