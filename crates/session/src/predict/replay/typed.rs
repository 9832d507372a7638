//! What was typed of late, so that it is not taken for something that somebody wrote.
//!
//! Knows nothing of frames but their cells, and nothing of what any of it confirms.

use rove_term::cell::Cell;

use super::super::keys::Key;
use super::echo::letter;

/// Characters that are remembered: four times as many as are followed in flight. Older ones count as written by
/// somebody.
const TYPED_MAX: usize = 4 * super::FLIGHT_MAX;

/// The lines that were typed.
#[derive(Clone, Debug, Default)]
pub(super) struct Typed {
    /// Each, and what a line was before some of it was taken back, ended by a line feed.
    text: Vec<char>,
    /// Characters taken back from its end.
    erased: usize,
    /// Of the line being typed, not all that the kernel may echo is known.
    pub(super) odd: bool,
}

impl Typed {
    pub(super) fn note(&mut self, key: Key) {
        match key {
            Key::Char(c) => {
                if self.erased > 0 {
                    let begin = self.text.iter().rposition(|c| *c == '\n').map_or(0, |at| at + 1);
                    let end = self.text.len().saturating_sub(self.erased).max(begin);
                    self.text.push('\n');
                    self.text.extend_from_within(begin..end);
                }
                self.text.push(c);
            }
            Key::Enter => self.text.push('\n'),
            Key::Backspace => {
                self.erased += 1;
                return;
            }
            _ => return,
        }
        self.erased = 0;
        self.text.drain(..self.text.len().saturating_sub(TYPED_MAX));
    }

    /// Keeps nothing of it, and overwrites it. Whether there was anything.
    pub(super) fn forget(&mut self) -> bool {
        let any = !self.text.is_empty();
        self.text.fill('\0');
        self.text.clear();
        any
    }

    /// How many cells at the end of these hold what was typed in a row, up to any key.
    pub(super) fn ends(&self, cells: &[Cell]) -> usize {
        let heads = || cells.iter().enumerate().rev().filter(|(_, cell)| !cell.is_tail());
        let shown: Vec<char> = heads().map(|(_, cell)| letter(*cell)).collect();
        let mut longest = 0;
        for end in (1..=self.text.len()).rev() {
            let Some(beyond) = shown.get(longest) else { break };
            // Only a place that has the next letter too is any better.
            if self.text[..end].iter().nth_back(longest) == Some(beyond) {
                let pairs = shown.iter().zip(self.text[..end].iter().rev());
                longest = longest.max(pairs.take_while(|(shown, typed)| shown == typed).count());
            }
        }
        let first = longest.checked_sub(1).and_then(|last| heads().nth(last));
        first.map_or(0, |(at, _)| cells.len() - at)
    }
}
