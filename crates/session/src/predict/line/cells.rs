//! The cells of one edited line: their contents, how they came to be there, and which move
//! together.
//!
//! It knows neither the cursor nor keys.

use rove_term::style::Attrs;
use rove_term::{Color, Style, Width};

use crate::predict::line::context::{LineContext, RightText};
use crate::predict::look::{Appearance, Look};
use crate::predict::settings::Rule;

/// One cell of an edited line.
#[derive(Clone, Copy, Debug)]
pub(super) struct PredictedCell {
    pub(super) look: Look,
    pub(super) kind: Kind,
}

/// How a cell's content came about, hence how much a frame must agree with it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    /// As in the base screen.
    Real,
    /// A key put it there: the frame that shows the key must show it.
    Typed,
    /// Other text moved there: likely.
    Moved,
    /// Nothing is left there: likely.
    Erased,
    /// It changes, but its new content is not known.
    Unknown,
}

impl PredictedCell {
    /// Text of the line stands there. Of blanks only those that a key brought are text: others may
    /// stand where the line has ended.
    pub(super) fn is_text(&self) -> bool {
        !self.look.text.is_blank() || matches!(self.kind, Kind::Typed | Kind::Moved)
    }
}

/// Blanks in a row that part a text from one that does not move with it: a right prompt, another
/// window.
pub(super) const GAP_COLS: usize = 4;

/// An empty cell in place of one of this style.
pub(super) fn erased(style: Style) -> PredictedCell {
    // Terminals erase with the background color and nothing else of the style.
    let style = Style::background(style.bg);
    PredictedCell {
        look: Look { text: Appearance::BLANK, width: Width::Narrow, style },
        kind: Kind::Erased,
    }
}

/// Empties these cells.
pub(super) fn erase(cells: &mut [PredictedCell]) {
    cells.iter_mut().for_each(|guess| *guess = erased(guess.look.style));
}

/// Where the stretch of text that moves together with the cell at `at` ends: at the first gap.
pub(super) fn stretch_end(context: &LineContext<'_>, line: &[PredictedCell], at: usize) -> usize {
    if context.lacks(Rule::RightPrompts) {
        let last = line.iter().rposition(PredictedCell::is_text);
        return last.map_or(0, |last| last + 1).max(at);
    }
    // A right prompt, or a pane without a border, stands behind a gap and stays.
    let mut blanks = 0;
    for (col, guess) in line.iter().enumerate().skip(at) {
        blanks = if guess.is_text() { 0 } else { blanks + 1 };
        if blanks == GAP_COLS {
            return col + 1 - GAP_COLS;
        }
    }
    line.len() - blanks
}

/// Moves the stretch of text at `at` right by one column.
pub(super) fn open(context: &LineContext<'_>, line: &mut [PredictedCell], at: usize) {
    let end = stretch_end(context, line, at);
    if end <= at {
        return;
    }
    let last = line.len() - 1;
    // The last cell is pushed out of the row.
    let end = end.min(last);
    line.copy_within(at..end, at + 1);
    note_moved(&mut line[at + 1..end + 1], last.saturating_sub(at + 2));
}

/// Takes out the cell at `at`; the stretch of text behind it moves left.
pub(super) fn close(context: &LineContext<'_>, line: &mut [PredictedCell], at: usize) {
    let end = stretch_end(context, line, at + 1).max(at + 1);
    line.copy_within(at + 1..end, at);
    let known = (line.len() - 1).saturating_sub(at + 2);
    note_moved(&mut line[at..end - 1], known);
    // Into the last column of a full row more text may come up from below.
    let kind = if end == line.len() { Kind::Unknown } else { Kind::Erased };
    line[end - 1] = PredictedCell { kind, ..erased(line[end - 1].look.style) };
}

/// These cells have moved by one. Beyond the first `known` they are at the edge, where programs
/// differ: text may wrap, scroll, or be marked as cut.
fn note_moved(cells: &mut [PredictedCell], known: usize) {
    for (at, guess) in cells.iter_mut().enumerate() {
        let unknown = at >= known || guess.kind == Kind::Unknown;
        guess.kind = if unknown { Kind::Unknown } else { Kind::Moved };
    }
}

/// The text at `at` is a shell's suggestion of how the line might go on: known from how it came, or
/// from being dim.
pub(super) fn suggests(context: &LineContext<'_>, line: &[PredictedCell], at: usize) -> bool {
    if context.lacks(Rule::Suggestions) {
        return false;
    }
    if context.line.right == RightText::Suggestion {
        return true;
    }
    let Some(here) = line.get(at).filter(|here| !here.look.text.is_blank()) else { return false };
    // fish and zsh draw suggestions faint or grey.
    let dim = |style: Style| {
        let grey = |n: u8| style.fg == Color::indexed(n);
        style.attrs.contains(Attrs::FAINT) || grey(8) || (232..=247).any(grey)
    };
    // Where typed text is dim as well, dim text is no suggestion.
    dim(here.look.style) && at.checked_sub(1).is_none_or(|left| !dim(line[left].look.style))
}
