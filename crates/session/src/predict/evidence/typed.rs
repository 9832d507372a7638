//! Remembers recently typed text, so that its echo is not taken for a program's own text.
//!
//! It compares text with cells, and knows nothing of prompts.

use alloc::vec::Vec;

use rove_term::cell::Cell;

use crate::predict::epoch::pending::PENDING_MAX;
use crate::predict::keys::Key;
use crate::predict::window::char_of;

/// Characters that are remembered: four times as many as are followed in flight. Older ones count
/// as text of a program.
const TYPED_MAX: usize = 4 * PENDING_MAX;

/// How much was typed before something. The default is before all that is remembered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TypedPosition(usize);

/// The lines that were typed.
#[derive(Clone, Debug, Default)]
pub(super) struct Typed {
    /// Each, ended by a carriage return; and the text of a line before some of it was erased, ended
    /// by a line feed.
    text: Vec<char>,
    /// Characters before these that are kept no longer.
    gone: usize,
    /// Characters taken back from its end.
    erased: usize,
    /// Of the line being typed, not all that the kernel may echo is known.
    pub(super) echo_unknown: bool,
}

impl Typed {
    /// Takes a key whose echo is known.
    pub(super) fn note(&mut self, key: Key) {
        match key {
            Key::Char(c) => {
                // A late frame may still show the line as it was before Backspace: both are kept.
                if self.erased > 0 {
                    let begin = self.begin(self.text.len(), &['\r', '\n']);
                    let end = self.text.len().saturating_sub(self.erased).max(begin);
                    self.text.push('\n');
                    self.text.extend_from_within(begin..end);
                }
                self.text.push(c);
            }
            Key::Enter => self.text.push('\r'),
            Key::Backspace => {
                // The text stays: frames show it until the echo of Backspace comes.
                self.erased += 1;
                return;
            }
            _ => return,
        }
        self.erased = 0;
        let excess = self.text.len().saturating_sub(TYPED_MAX);
        self.text.drain(..excess);
        self.gone += excess;
    }

    /// Overwrites and drops all of it: it may be secret. Returns whether there was anything.
    pub(super) fn forget(&mut self) -> bool {
        let any = !self.text.is_empty();
        self.gone += self.text.len();
        self.text.fill('\0');
        self.text.clear();
        any
    }

    /// How many cells at the end of these hold text that was typed in a row, up to any key, since
    /// this place.
    pub(super) fn ends(&self, cells: &[Cell], since: TypedPosition) -> usize {
        let run = self.run(cells, since);
        let mut heads = cells.iter().enumerate().rev().filter(|(_, cell)| !cell.is_tail());
        let first = run.checked_sub(1).and_then(|last| heads.nth(last));
        first.map_or(0, |(at, _)| cells.len() - at)
    }

    /// Where the line begins that an Enter ended, if these cells end in all of it and in no more
    /// that was typed. `later` Enters were typed since.
    pub(super) fn begin_of_shown(&self, later: usize, cells: &[Cell]) -> Option<TypedPosition> {
        let mut ends = self.text.iter().enumerate().rev().filter(|(_, c)| **c == '\r');
        let (end, _) = ends.nth(later)?;
        let line = end - self.begin(end, &['\r', '\n']);
        let shown = line > 0 && self.run(cells, TypedPosition::default()) == line;
        shown.then(|| TypedPosition(self.gone + self.begin(end, &['\r'])))
    }

    /// One past the last of these marks before this index.
    fn begin(&self, end: usize, marks: &[char]) -> usize {
        self.text[..end].iter().rposition(|c| marks.contains(c)).map_or(0, |at| at + 1)
    }

    /// How many characters at the end of these cells were typed in a row.
    fn run(&self, cells: &[Cell], since: TypedPosition) -> usize {
        // Positions count from the first character ever typed, and the oldest are dropped.
        let since = since.0.saturating_sub(self.gone).min(self.text.len());
        let (text, heads) =
            (&self.text[since..], cells.iter().rev().filter(|cell| !cell.is_tail()));
        let shown: Vec<char> = heads.map(|cell| char_of(*cell)).collect();
        let mut longest = 0;
        for end in (1..=text.len()).rev() {
            let Some(beyond) = shown.get(longest) else { break };
            // Only a place that has the next letter too is any better.
            if text[..end].iter().nth_back(longest) == Some(beyond) {
                let pairs = shown.iter().zip(text[..end].iter().rev());
                longest = longest.max(pairs.take_while(|(shown, typed)| shown == typed).count());
            }
        }
        longest
    }
}
