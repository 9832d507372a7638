//! Whose echo a frame shows: a program's, which shows that what is typed may be seen, or the kernel's.

use rove_term::Screen;
use rove_term::cell::Glyph;

use super::super::LineMode;
use super::super::keys::Key;
use super::super::scene::Effect;
use super::{Pressed, Replay};

impl Replay {
    /// Seeing this key done as foreseen shows that the program echoes.
    pub(super) fn credits(&mut self, pressed: &Pressed, screen: &Screen) -> bool {
        let Some(base) = &self.base else { return false };
        let Effect::Writes(row, col) = pressed.effect else { return false };
        let mut mark =
            |screen: &Screen| screen.cell(row, col).map(|cell| self.clusters.mark(screen, cell));
        let (Some(was), Some(is)) = (mark(base), mark(screen)) else { return false };
        if was.matches(is) {
            return false;
        }
        match pressed.key {
            // What the kernel echoes is no promise: a program that is about to ask for a password has
            // not switched echo off yet. So where the line is known to be the kernel's, only a
            // program's prompt counts, and only if all of the line was typed behind it: what was typed
            // ahead and stands left of the cursor looks like a prompt and is none.
            Key::Char(_) if self.line == Some(LineMode::Cooked) => {
                !is.is_blank() && !self.hasty && self.prompted(row, col, screen)
            }
            Key::Char(_) if is.is_blank() => false,
            Key::Char(_) => pressed.patient || self.bare || self.prompted(row, col, screen),
            _ => is.is_blank(),
        }
    }

    /// Looks at the lines that the Enters among the first `acked` keys ended. A shell's has a prompt: what
    /// the kernel echoes of keys typed ahead, below it, does not count as the echo of a program. An editor's
    /// has none, nor has the next.
    pub(super) fn note_lines(&mut self, acked: usize) {
        for at in (0..acked).filter(|at| self.flight[*at].key == Key::Enter) {
            let again = at > 0 && self.flight[at - 1].key == Key::Enter;
            self.bare = match (self.scene(at), &self.base) {
                (Some(before), Some(base)) => {
                    let (row, col) = before.cursor();
                    let begin = self.origin.filter(|origin| origin.0 == row).map_or(col, |o| o.1);
                    let left = base.row(row).cells().iter().take(usize::from(begin));
                    left.into_iter().all(|cell| self.clusters.mark(base, *cell).is_blank())
                }
                _ => self.bare && again,
            };
        }
    }

    /// A prompt stands left of where the line begins: what was typed ahead is echoed by whoever wrote that,
    /// not by the kernel on behalf of nobody. The border of another window is no prompt.
    fn prompted(&mut self, row: u16, col: u16, screen: &Screen) -> bool {
        let begin = self.origin.filter(|origin| origin.0 == row).map_or(col, |origin| origin.1);
        let left = &screen.row(row).cells()[..usize::from(begin)];
        !self.crowded
            && left.iter().any(|cell| !self.clusters.mark(screen, *cell).is_blank())
            && !borders(screen, row, begin)
    }
}

/// What stands in the column left of `begin` is the border of another window: it is drawn down the screen, also
/// where it meets others, or stands in the rows above and below too. A prompt ends in a blank.
fn borders(screen: &Screen, row: u16, begin: u16) -> bool {
    let Some(col) = begin.checked_sub(1) else { return false };
    let at = |row: u16| match screen.cell(row, col)?.glyph() {
        Glyph::Char(c) => Some(c),
        Glyph::Cluster(_) => None,
    };
    let Some(here) = at(row).filter(|c| *c != ' ') else { return false };
    let above = row.checked_sub(1).and_then(at);
    let below = at(row + 1);
    let alike = |c: Option<char>| c == Some(here) || c.is_some_and(is_upright);
    is_upright(here) || (alike(above) && alike(below))
}

/// This draws a line up or down.
fn is_upright(c: char) -> bool {
    matches!(
        c,
        '|' | '\u{2502}'..='\u{2503}'
            | '\u{2506}'..='\u{2507}'
            | '\u{250a}'..='\u{254b}'
            | '\u{254e}'..='\u{254f}'
            | '\u{2551}'..='\u{2570}'
    )
}
