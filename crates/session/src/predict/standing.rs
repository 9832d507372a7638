//! Which keys have earned to be believed, and where on the screen characters do not just appear.
//!
//! Learns from verdicts alone; knows nothing of screens, frames or epochs.

use std::collections::BTreeMap;

use super::Skill;
use super::keys::Key;
use super::margin::{Fate, Margin};
use super::scene::Effect;

/// How near the right edge programs begin to scroll a line.
pub(crate) const EDGE_COLS: u16 = 4;

/// What keys have earned by doing what was foreseen.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    lacks: Option<Skill>,
    keys: BTreeMap<Key, i8>,
    /// From this column on characters, and spaces, did not just appear: text scrolled or wrapped.
    edge: Option<u16>,
    fill: Option<u16>,
    /// Below this column characters were seen to stay.
    stays: u16,
    /// What lines do at their margin.
    margin: Margin,
    /// How wide the screen is that this was learnt on.
    cols: u16,
}

/// From this column on editors fill paragraphs unless told otherwise (Emacs at 70, mail and commit
/// messages at 72).
const FILL_COLS: u16 = 68;

impl Standing {
    pub(crate) fn new(lacks: Option<Skill>) -> Self {
        Self {
            lacks,
            keys: BTreeMap::new(),
            edge: None,
            fill: None,
            stays: 0,
            margin: Margin::default(),
            cols: 0,
        }
    }

    /// On a screen of another width lines end elsewhere.
    pub(crate) fn fit(&mut self, cols: u16) {
        if self.cols != cols {
            (self.cols, self.edge, self.fill, self.stays) = (cols, None, None, 0);
            self.margin.forget();
        }
    }

    /// Keys trusted from the start: what stock trusts, and a little more. No multiplexer has one of them for its
    /// prefix.
    pub(crate) fn is_innate(key: Key) -> bool {
        matches!(
            key,
            Key::Char(_)
                | Key::PasteBegin
                | Key::PasteEnd
                | Key::Backspace
                | Key::Left
                | Key::Right
                | Key::Home
                | Key::End
                | Key::LineEnd
        )
    }

    /// Whether this key is believed to do what is foreseen of it.
    pub(crate) fn trusts(&self, key: Key, effect: Effect, cols: u16) -> bool {
        let innate = match key {
            Key::Char(c) => {
                let Effect::Writes(_, col) = effect else { return true };
                match self.margin.fate(c, col) {
                    Fate::Unclear => return false,
                    Fate::Reflows(_) => return true,
                    Fate::Stays => {}
                }
                let fill = self.fill.filter(|_| c == ' ').unwrap_or(cols);
                return col < self.edge.unwrap_or(cols - 1).min(cols - 1).min(fill);
            }
            Key::PasteBegin | Key::PasteEnd => return true,
            key if Self::is_innate(key) => 1,
            Key::Up | Key::Down | Key::PreviousLine | Key::NextLine => {
                i8::from(self.lacks == Some(Skill::History))
            }
            _ => 0,
        };
        self.keys.get(&key).map_or(innate, |score| *score) > 0
    }

    pub(crate) fn right(&mut self, key: Key) {
        let score = self.keys.entry(key).or_insert(0);
        *score = (*score + 1).min(4);
    }

    pub(crate) fn wrong(&mut self, key: Key) {
        if self.lacks == Some(Skill::Learning) {
            return;
        }
        self.keys.insert(key, 0);
    }

    pub(crate) fn margin(&mut self) -> &mut Margin {
        &mut self.margin
    }

    /// Characters are known to stay at this column, or what they do there is known.
    pub(crate) fn stays(&self, col: u16) -> bool {
        col < FILL_COLS.max(self.stays) || self.margin.is_known()
    }

    /// A character did not just appear there.
    pub(crate) fn bounced(&mut self, c: char, col: u16, cols: u16) {
        if self.lacks == Some(Skill::Learning) {
            return;
        }
        self.stays = self.stays.min(col);
        if col + EDGE_COLS >= cols {
            self.edge = Some(self.edge.map_or(col, |edge| edge.min(col)));
        } else if c == ' ' && col >= cols / 2 {
            self.fill = Some(self.fill.map_or(col, |fill| fill.min(col)));
        }
    }

    /// A character appeared there.
    pub(crate) fn stayed(&mut self, c: char, col: u16) {
        self.margin.stayed(c, col);
        self.stays = self.stays.max(col + 1);
        self.edge = self.edge.map(|edge| edge.max(col + 1));
        if c == ' ' {
            self.fill = self.fill.map(|fill| fill.max(col + 1));
        }
    }
}
