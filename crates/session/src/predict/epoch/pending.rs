//! The keys in flight, and the frame that they are replayed on.
//!
//! Only the engine changes them; the evidence of echo and the password guard read them.

use alloc::collections::VecDeque;
use alloc::collections::vec_deque;
use alloc::vec::Vec;

use rove_ssp::{StateNum, Time};
use rove_term::Screen;

use crate::predict::keys::Key;
use crate::predict::line::{Effect, PredictedScreen};
use crate::predict::window::Borders;

/// Keys in flight that are followed: 40 s of fast typing. Beyond it nothing is guessed until all of
/// them and those that came after are acknowledged.
pub(in crate::predict) const PENDING_MAX: usize = 256;

/// One key in flight.
#[derive(Clone, Debug)]
pub(in crate::predict) struct PendingKey {
    pub(in crate::predict) key: Key,
    pub(in crate::predict) at: Time,
    /// The state that carries it: acknowledged when the echo ack gets there.
    pub(in crate::predict) state: StateNum,
    pub(in crate::predict) epoch: u64,
    pub(in crate::predict) effect: Effect,
    /// The screen after it; `None` when that cannot be predicted.
    pub(in crate::predict) predicted: Option<PredictedScreen>,
    /// No key of unknown effect was in flight when it was typed: the program that echoes it was
    /// reading already.
    pub(in crate::predict) uncontended: bool,
    /// The kernel's echo of it is not known.
    pub(in crate::predict) echo_unknown: bool,
    /// The line that it may end had a prompt when a frame showed it.
    pub(in crate::predict) prompted: bool,
}

/// The keys in flight on their base.
#[derive(Clone, Debug, Default)]
pub(in crate::predict) struct PendingKeys {
    /// The frame that the predicted screens are built on.
    pub(super) base: Option<Screen>,
    /// Where its windows end.
    pub(super) borders: Borders,
    /// Not acknowledged, oldest first.
    pub(super) keys: VecDeque<PendingKey>,
    /// How many of them the base shows already.
    pub(super) reflected: usize,
    /// Acknowledged without any effect. The next frame may show them all the same, because the
    /// echo ack comes after 50 ms even from a slow program.
    pub(super) silent: Vec<PendingKey>,
}

impl PendingKeys {
    /// Every key that a later frame may still show, to be changed.
    pub(super) fn unseen_mut(&mut self) -> impl Iterator<Item = &mut PendingKey> {
        self.keys.iter_mut().chain(&mut self.silent)
    }

    pub(in crate::predict) fn base(&self) -> Option<&Screen> {
        self.base.as_ref()
    }

    pub(in crate::predict) fn keys(&self) -> &VecDeque<PendingKey> {
        &self.keys
    }

    /// The keys that the base does not show yet, up to `end`.
    pub(in crate::predict) fn unshown(&self, end: usize) -> vec_deque::Iter<'_, PendingKey> {
        self.keys.range(self.reflected.min(end)..end)
    }

    /// The screen after the first `count` keys.
    pub(in crate::predict) fn predicted(&self, count: usize) -> Option<PredictedScreen> {
        if count <= self.reflected {
            return self.base.as_ref().map(PredictedScreen::of);
        }
        self.keys.get(count - 1)?.predicted.clone()
    }

    /// The line that the key at `at` ends, if it does, has a prompt.
    pub(in crate::predict) fn note_prompted(&mut self, at: usize) {
        self.keys[at].prompted = true;
    }

    /// The first `acked` keys are shown, as far as they ever are, and an Enter among them began a
    /// line. Of the keys in it the kernel's echo is known.
    pub(super) fn begins_line(&self, acked: usize) -> bool {
        let entered = self.keys.range(..acked).rposition(|key| key.key == Key::Enter);
        entered.is_some_and(|at| self.keys.range(at + 1..).all(|key| !key.echo_unknown))
    }
}
