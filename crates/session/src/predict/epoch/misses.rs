//! Takes trust away from keys that did not do what was foreseen.

use alloc::vec::Vec;

use super::EpochEngine;
use crate::predict::epoch::confidence::KeyConfidence;
use crate::predict::epoch::pending::PendingKey;
use crate::predict::keys::Key;
use crate::predict::line::Effect;

impl EpochEngine {
    /// A motion among the keys from `from` to `acked` that had to earn its trust was shown, and the cursor stays: it may be
    /// the key by which a multiplexer is told to show another program.
    pub(super) fn doubt_motions(&mut self, from: usize, acked: usize) {
        let strayed = |at: &usize| {
            let pressed = &self.pending[*at];
            let (before, after) = (self.scene(*at), &pressed.scene);
            let moves = before.zip(after.as_ref()).is_some_and(|(a, b)| a.cursor() != b.cursor());
            moves && pressed.epoch <= self.confirmed && !KeyConfidence::is_innate(pressed.key)
        };
        let strayed: Vec<Key> =
            (from..acked).filter(strayed).map(|at| self.pending[at].key).collect();
        strayed.iter().for_each(|key| self.standing.wrong(*key));
        if !strayed.is_empty() {
            self.suspect(acked);
        }
    }

    /// The keys from `from` to `acked` did not do what was foreseen. Of those that nobody saw done, nothing is
    /// learnt: an editor takes letters for commands, and what comes behind them was foreseen from a wrong scene.
    pub(super) fn miss(&mut self, from: usize, acked: usize) {
        let shown = |key: &&PendingKey| key.epoch <= self.confirmed && key.scene.is_some();
        for pressed in self.pending.range(from..acked).filter(shown) {
            match (pressed.key, pressed.effect) {
                (Key::Char(c), Effect::Writes(row, col)) => {
                    self.standing.bounced(c, col, self.borders.window(row, col));
                }
                (Key::Char(_), _) => {}
                _ => self.standing.wrong(pressed.key),
            }
        }
        self.suspect(acked);
    }

    /// Keys in flight from this one on, and those to come, count only once they have echoed: their
    /// epochs begin anew, in the same order.
    pub(super) fn suspect(&mut self, from: usize) {
        self.walk = None;
        let first = self.pending.get(from).map_or(self.epoch, |pressed| pressed.epoch);
        if first > self.confirmed + 1 {
            return;
        }
        let shift = self.confirmed + 2 - first;
        self.epoch += shift;
        self.doubt = self.doubt.map(|(epoch, verdict)| (epoch + shift, verdict));
        for pressed in self.pending.iter_mut().skip(from) {
            pressed.epoch += shift;
        }
    }
}
