//! Decides whether a guess may be shown at all: a password must never be painted.
//!
//! Keys belong to *epochs*. An epoch begins where another program may read the
//! keyboard: at Enter, in another row, at a question that comes by itself, behind a key that did not
//! do as predicted. The guesses of an epoch are shown once a program has echoed one of its keys. The
//! engine reports echoes; the guard knows no screen.

use core::iter;

use crate::predict::epoch::pending::PendingKey;
use crate::predict::keys::Key;
use crate::predict::line::Effect;
use crate::predict::settings::Display;

/// Keeps typed text off the screen until a program has shown that it echoes.
#[derive(Clone, Debug)]
pub(super) struct PasswordGuard {
    display: Display,
    /// The newest frame reports that the terminal line does not echo.
    hidden: bool,
    /// The epoch of the next key.
    epoch: u64,
    /// The newest epoch in which a program has echoed.
    confirmed: u64,
    /// The epoch of the motions and erasures since the cursor left its row, until text is typed.
    motions: Option<u64>,
    /// The epoch begun by the newest frame that no key explains.
    unexplained: Option<(u64, EchoBasis)>,
}

/// How far the engine trusts a key's prediction.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Standing {
    /// The key does as predicted.
    Trusted,
    /// It may do something else.
    Untrusted,
    /// Behind it another program, or another mode of one, may be reading.
    Boundary,
}

/// How far an unexplained frame is explained by now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum EchoBasis {
    /// The keys in flight may still explain it.
    Due,
    /// It was taken as it is: an echo from here on is an echo behind it.
    Given,
}

impl PasswordGuard {
    pub(super) fn new(display: Display) -> Self {
        // Not the epoch behind a confirmed one, to which blanks and motions would carry over.
        let (epoch, confirmed) = (2, 0);
        Self { display, hidden: false, epoch, confirmed, motions: None, unexplained: None }
    }

    /// The newest frame reports whether the terminal line echoes.
    pub(super) fn on_mode(&mut self, hidden: bool) {
        self.hidden = hidden;
    }

    /// Takes a key and tells its epoch.
    pub(super) fn on_key(&mut self, key: Key, standing: Standing) -> u64 {
        let begun = match standing {
            Standing::Trusted => 0,
            Standing::Untrusted => 1,
            Standing::Boundary => {
                let epoch = self.epoch;
                self.require_echo();
                return epoch;
            }
        };
        self.epoch += begun;
        // Motions and erasures show nothing that was typed, so they need not wait for an echo in
        // the new row. Text does.
        let motions = self.motions.take().filter(|_| !matches!(key, Key::Char(_)));
        let epoch = motions.map_or(self.epoch, |epoch| epoch + begun);
        if key.changes_row() && motions.is_none() {
            // A form may ask for a password in its next row.
            self.require_echo();
        }
        self.motions = (key.changes_row() || motions.is_some()).then_some(epoch);
        epoch
    }

    /// Takes an Enter, and the keys that came in one burst with it.
    pub(super) fn on_enter<'a>(&mut self, burst: impl Iterator<Item = &'a mut PendingKey>) {
        // Enter scrolls their echo away before any frame shows it in place.
        burst.for_each(|key| key.epoch = self.epoch);
        // An echo of the Enter itself must not confirm what follows: the next line may be hidden.
        self.require_echo();
    }

    /// Nothing typed from here on is shown before an echo of its own.
    pub(super) fn require_echo(&mut self) {
        // By two: the epoch between is never confirmed, so that motions cannot carry over it.
        self.epoch += 2;
        (self.motions, self.unexplained) = (None, None);
    }

    /// The same for these keys in flight, the oldest first. Their epochs keep their order, so that
    /// an echo of one still confirms no later epoch.
    pub(super) fn suspect<'a>(&mut self, keys: impl Iterator<Item = &'a mut PendingKey>) {
        self.motions = None;
        let mut keys = keys.peekable();
        let first = keys.peek().map_or(self.epoch, |key| key.epoch);
        if first > self.confirmed + 1 {
            return; // They wait for an echo already.
        }
        let shift = self.confirmed + 2 - first;
        self.unexplained = self.unexplained.map(|(epoch, basis)| (epoch + shift, basis));
        let epochs = keys.map(|key| &mut key.epoch).chain(iter::once(&mut self.epoch));
        epochs.for_each(|epoch| *epoch += shift);
    }

    /// No key explains where the cursor went; `next` is the first key that the frame does not show.
    pub(super) fn on_unexplained(&mut self, next: Option<&PendingKey>) {
        // Only such frames may lie between the keys in flight and those to come. Then an echo of
        // the former, behind the question, is an echo of who asked it.
        let joined = next.is_some_and(|key| key.epoch == self.epoch)
            || self.unexplained.is_some_and(|(epoch, _)| epoch == self.epoch);
        // It may be a question for a password that came by itself, and the next keys its answer.
        self.require_echo();
        self.unexplained = joined.then_some((self.epoch, EchoBasis::Due));
    }

    /// The frame was taken as it is.
    pub(super) fn on_resync(&mut self) {
        self.unexplained = self.unexplained.map(|(epoch, _)| (epoch, EchoBasis::Given));
    }

    /// A program has echoed a key of this epoch as predicted.
    pub(super) fn on_echo(&mut self, epoch: u64) {
        self.confirm(epoch);
        if let Some((behind, EchoBasis::Given)) = self.unexplained {
            self.confirm(behind);
        }
    }

    /// The guesses up to this epoch may be shown.
    pub(super) fn confirm(&mut self, epoch: u64) {
        self.confirmed = self.confirmed.max(epoch);
    }

    /// A key of this epoch that shows no letter did as predicted. In the epoch behind the confirmed
    /// one that is enough: it was begun by distrust of a key, not of the reader.
    pub(super) fn carry_over(&mut self, epoch: u64) {
        if epoch == self.confirmed + 1 {
            self.confirmed = epoch;
        }
    }

    /// Whether this key's guess may be painted. Nothing that this refuses is.
    pub(super) fn allows(&self, key: &PendingKey) -> bool {
        // The experimental mode may move the cursor early: that shows nothing that was typed.
        let moves = self.display == Display::Experimental
            && key.effect == Effect::Moves
            && !matches!(key.key, Key::Char(_));
        // The report comes before the question: the server sees the mode before its screen changes.
        !self.hidden && (self.is_confirmed(key) || moves)
    }

    pub(super) fn is_confirmed(&self, key: &PendingKey) -> bool {
        key.epoch <= self.confirmed
    }

    /// The epoch of the next key.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }
}
