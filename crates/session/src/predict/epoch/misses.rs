//! Takes trust away from keys that did not do as predicted.

use alloc::vec::Vec;

use super::EpochEngine;
use crate::predict::epoch::confidence::KeyConfidence;
use crate::predict::epoch::pending::PendingKey;
use crate::predict::keys::Key;
use crate::predict::line::Effect;

impl EpochEngine {
    /// A motion among the keys from `from` to `acked` was shown, and the cursor stays. If it had to
    /// earn its trust, it may be a multiplexer's prefix: the next key may show another program.
    pub(super) fn doubt_motions(&mut self, from: usize, acked: usize) {
        let strayed = |at: &usize| {
            let key = self.pending.key(*at);
            let (before, after) = (self.pending.predicted(*at), &key.predicted);
            let moves = before.zip(after.as_ref()).is_some_and(|(a, b)| a.cursor() != b.cursor());
            moves && self.guard.is_confirmed(key) && !KeyConfidence::is_innate(key.key)
        };
        let strayed: Vec<Key> =
            (from..acked).filter(strayed).map(|at| self.pending.key(at).key).collect();
        strayed.iter().for_each(|key| self.confidence.was_wrong(*key));
        if !strayed.is_empty() {
            self.suspect(acked);
        }
    }

    /// The keys from `from` to `acked` did not do as predicted.
    pub(super) fn miss(&mut self, from: usize, acked: usize) {
        // Of guesses that were not shown nothing is learnt: an editor takes letters for commands,
        // and the keys behind those were predicted from a wrong screen.
        let shown = |key: &&PendingKey| self.guard.is_confirmed(key) && key.predicted.is_some();
        for key in self.pending.range(from..acked).filter(shown) {
            match (key.key, key.effect) {
                (Key::Char(c), Effect::Writes(row, col)) => {
                    self.confidence.displaced(c, col, self.pending.borders.window(row, col));
                }
                (Key::Char(_), _) => {}
                _ => self.confidence.was_wrong(key.key),
            }
        }
        self.suspect(acked);
    }

    /// Keys in flight from this one on, and those to come, are shown only once they have echoed.
    pub(super) fn suspect(&mut self, from: usize) {
        self.guard.suspect(self.pending.keys.iter_mut().skip(from));
    }
}
