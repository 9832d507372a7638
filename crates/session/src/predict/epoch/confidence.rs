//! Learns which keys to trust, and at which columns characters do more than appear.
//!
//! It learns from confirmed and failed guesses alone, and knows nothing of screens, frames or
//! epochs.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::predict::keys::Key;
use crate::predict::line::Effect;
use crate::predict::line::margin::{Margin, MarginEffect};
use crate::predict::settings::Rule;
use crate::predict::window::Window;

/// How near the right edge programs begin to scroll a line.
pub(crate) const EDGE_COLS: u16 = 4;

/// The trust that keys have earned by doing as predicted.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyConfidence {
    lacks: Option<Rule>,
    keys: BTreeMap<Key, i8>,
    /// How wide the screen is that this was learnt on.
    cols: u16,
    /// The window that is typed in.
    window: Window,
    lines: Lines,
    /// The lines of other windows, the one left last at the end.
    others: Vec<(Window, Lines)>,
}

/// Where lines end in a window, as far as was learnt.
#[derive(Clone, Copy, Debug, Default)]
struct Lines {
    /// From this column on characters, and spaces, did not just appear: text scrolled or wrapped.
    edge: Option<u16>,
    fill: Option<u16>,
    /// Below this column characters were seen to stay.
    stays: u16,
    /// What lines do at their margin.
    margin: Margin,
}

/// From this column of a window on editors fill paragraphs unless told otherwise: Emacs at 70, mail
/// and commit messages at 72.
const FILL_COLS: u16 = 68;
/// Windows that are remembered beside the one typed in. Of more the oldest is forgotten.
const OTHERS_MAX: usize = 16;

impl KeyConfidence {
    pub(crate) fn new(lacks: Option<Rule>) -> Self {
        Self { lacks, ..Self::default() }
    }

    /// The cursor is in this window of a screen this wide.
    pub(crate) fn enter_window(&mut self, cols: u16, window: Window) {
        // On a screen of another width every window is another.
        if self.cols != cols {
            (self.cols, self.window, self.lines) = (cols, window, Lines::default());
            self.others.clear();
        }
        // Lines end elsewhere in each window: what was learnt of one goes with it.
        if self.window == window {
            return;
        }
        let known = self.others.iter().position(|other| other.0 == window);
        let lines = known.map_or_else(Lines::default, |at| self.others.remove(at).1);
        let left = core::mem::replace(&mut self.window, window);
        self.others.push((left, core::mem::replace(&mut self.lines, lines)));
        let excess = self.others.len().saturating_sub(OTHERS_MAX);
        self.others.drain(..excess);
    }

    /// Keys trusted from the start: those of stock, and a few that do the same in all programs. No
    /// multiplexer has one of them for its prefix.
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

    /// Whether this key is believed to do as predicted, in a window that ends before the column
    /// `right`.
    pub(crate) fn trusts(&self, key: Key, effect: Effect, right: u16) -> bool {
        let innate = match key {
            Key::Char(c) => {
                // Where it goes is not known, so it shares the epoch of the keys before it.
                let Effect::Writes(_, col) = effect else { return true };
                match self.lines.margin.effect_of(c, col) {
                    MarginEffect::Unclear => return false,
                    MarginEffect::Reflows(_) => return true,
                    MarginEffect::Remains => {}
                }
                // Editors that fill paragraphs break the line at a space.
                let fill = self.lines.fill.filter(|_| c == ' ').unwrap_or(right);
                return col < self.lines.edge.unwrap_or(right - 1).min(right - 1).min(fill);
            }
            Key::PasteBegin | Key::PasteEnd => return true,
            key if Self::is_innate(key) => 1,
            // In a shell they bring another line of its history.
            Key::Up | Key::Down | Key::PreviousLine | Key::NextLine => {
                i8::from(self.lacks == Some(Rule::History))
            }
            _ => 0,
        };
        self.keys.get(&key).map_or(innate, |score| *score) > 0
    }

    /// The key did as predicted.
    pub(crate) fn was_right(&mut self, key: Key) {
        let score = self.keys.entry(key).or_insert(0);
        // Programs differ in few keys, so one success is enough to be trusted again.
        *score = (*score + 1).min(4);
    }

    /// The key did something else.
    pub(crate) fn was_wrong(&mut self, key: Key) {
        if self.lacks == Some(Rule::Learning) {
            return;
        }
        self.keys.insert(key, 0);
    }

    /// The margin of lines in the window that is typed in.
    pub(crate) fn margin(&mut self) -> &mut Margin {
        &mut self.lines.margin
    }

    /// Characters are known to stay at this column, or their effect there is known.
    pub(crate) fn stays(&self, col: u16) -> bool {
        let fills = self.window.left + FILL_COLS;
        col < fills.max(self.lines.stays) || self.lines.margin.is_known()
    }

    /// A character did not just appear there, in this window.
    pub(crate) fn displaced(&mut self, c: char, col: u16, window: Window) {
        if self.lacks == Some(Rule::Learning) {
            return;
        }
        let Lines { edge, fill, stays, .. } = &mut self.lines;
        *stays = col.min(*stays);
        // Programs scroll a line at the right edge; a space far from it ends a paragraph's line.
        if col + EDGE_COLS >= window.right {
            *edge = Some(edge.map_or(col, |edge| edge.min(col)));
        } else if c == ' ' && col >= window.left.midpoint(window.right) {
            *fill = Some(fill.map_or(col, |fill| fill.min(col)));
        }
    }

    /// A character appeared there.
    pub(crate) fn stayed(&mut self, c: char, col: u16) {
        let Lines { edge, fill, stays, margin } = &mut self.lines;
        margin.stayed(c, col);
        *stays = (col + 1).max(*stays);
        *edge = edge.map(|edge| edge.max(col + 1));
        if c == ' ' {
            *fill = fill.map(|fill| fill.max(col + 1));
        }
    }
}
