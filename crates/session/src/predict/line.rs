//! Predicts what keys do to a screen: the cursor and the lines they edit.
//!
//! A [`PredictedScreen`] is cheap to clone, so that each pending key can have one. It knows nothing
//! of time, acknowledgements or confidence.

mod cells;
pub(super) mod context;
mod edit;
pub(super) mod margin;
mod write;

use alloc::sync::Arc;
use alloc::vec::Vec;

use rove_term::{Cursor, Screen, width};

use crate::predict::display::Flagging;
use crate::predict::keys::Key;
use crate::predict::look::{Appearance, Clusters};
use crate::predict::settings::Rule;
use crate::predict::window::{Borders, Window, cursor_of};
use cells::{GAP_COLS, Kind, PredictedCell};
use context::{LineContext, LineStart};

/// The cursor, and every line that keys have changed, on top of a base screen.
#[derive(Clone, Debug)]
pub(crate) struct PredictedScreen {
    row: u16,
    col: u16,
    /// The last column was just written: the cursor may show there or on the next row, and the
    /// next character belongs on the next row.
    at_edge: bool,
    /// The first column of the window whose last column was written.
    left: u16,
    /// Text was pushed out there: it goes on in the row below.
    pushes: bool,
    lines: Vec<Line>,
}

#[derive(Clone, Debug)]
struct Line {
    row: u16,
    cells: Arc<Vec<PredictedCell>>,
}

/// Whether a key's effect can be predicted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Effect {
    /// It writes or erases the cell at this row and column.
    Writes(u16, u16),
    /// It moves the cursor, or does nothing.
    Moves,
    /// It may do anything: where later keys act is unknown until a frame shows it.
    Unknown,
}

/// Columns before the cursor that are compared to find text that moved, ...
const MOVED_COLS: u16 = 12;
/// ... and how many letters must be alike, back from it.
const MOVED_LETTERS_MIN: u16 = 4;

impl PredictedScreen {
    /// The screen as it is.
    pub(crate) fn of(screen: &Screen) -> Self {
        let Cursor { row, col, pending_wrap: at_edge } = screen.cursor();
        Self { row, col, at_edge, left: 0, pushes: false, lines: Vec::new() }
    }

    pub(crate) fn cursor(&self) -> (u16, u16) {
        (self.row, self.col)
    }

    /// Where the next character would stand if the line went on in its row.
    pub(crate) fn next(&self) -> (u16, u16) {
        (self.row, self.col + u16::from(self.at_edge))
    }

    /// Predicts what `key` does.
    pub(crate) fn press(&mut self, key: Key, context: &mut LineContext<'_>) -> Effect {
        // An experiment measures what a rule is worth by leaving it out.
        if rule_of(key).is_some_and(|rule| context.lacks(rule)) {
            return Effect::Unknown;
        }
        match key {
            Key::Char(c) => self.write(c, context),
            Key::Backspace => self.erase_left(context),
            Key::Delete | Key::DeleteChar => self.erase_right(context),
            Key::Left | Key::BackwardChar => self.step_left(context),
            Key::Right | Key::ForwardChar => self.step_right(context),
            Key::Up | Key::PreviousLine => self.step_rows(-1, context),
            Key::Down | Key::NextLine => self.step_rows(1, context),
            Key::Home | Key::LineBegin => {
                let left = self.window(context.borders).left;
                self.jump(self.begin(context).unwrap_or(left))
            }
            Key::End | Key::LineEnd => self.line_end(context),
            Key::WordLeft => {
                let to = self.word_left(context, Appearance::is_word);
                self.jump(to)
            }
            Key::WordRight => self.word_right(context),
            Key::KillRight => self.kill_right(context),
            Key::KillLeft => {
                // Ctrl-U erases up to a prompt. Without one it may be the key of a pager.
                match self.begin(context).filter(|_| context.line.start == LineStart::Prompt) {
                    Some(begin) => self.kill_left(begin, context),
                    None => Effect::Unknown,
                }
            }
            Key::KillWord => {
                // Shells end the word of Ctrl-W at blanks alone.
                let to = self.word_left(context, |text| !text.is_blank());
                self.kill_left(to, context)
            }
            // A program that asked for the brackets takes them without an echo.
            Key::PasteBegin | Key::PasteEnd if context.base.modes().bracketed_paste => {
                Effect::Moves
            }
            Key::PasteBegin | Key::PasteEnd | Key::Enter | Key::Escape | Key::Other => {
                Effect::Unknown
            }
        }
    }

    /// A frame shows cursor and everything typed as predicted. Other text does not matter.
    pub(crate) fn agrees(&self, screen: &Screen, clusters: &mut Clusters) -> bool {
        let real = cursor_of(screen);
        // Some programs wrap at once, others with the next character.
        let wrapped = self.at_edge && real == (self.row + 1, self.left);
        let mut is = |row, col| screen.cell(row, col).map(|cell| clusters.text(screen, cell));
        // Text that moved may be drawn later: only typed text must be there.
        let mut typed = self.cells().filter(|(_, _, guess)| guess.kind == Kind::Typed);
        (real == self.cursor() || wrapped)
            && typed
                .all(|(row, col, guess)| is(row, col).is_some_and(|is| guess.look.text.matches(is)))
    }

    /// The whole of the cursor's row is in the frame as predicted.
    pub(crate) fn line_is(&self, base: &Screen, screen: &Screen, clusters: &mut Clusters) -> bool {
        let line = self.line_in(self.row);
        let is = screen.row(self.row).cells();
        match line {
            Some(line) => line.cells.iter().zip(is).all(|(guess, is)| {
                guess.kind == Kind::Unknown || guess.look.text.matches(clusters.text(screen, *is))
            }),
            None => base
                .row(self.row)
                .cells()
                .iter()
                .zip(is)
                .all(|(was, is)| clusters.text(base, *was).matches(clusters.text(screen, *is))),
        }
    }

    /// How many letters before the cursor stand before the frame's cursor too, at another place; 0
    /// when too few to tell.
    pub(crate) fn moved(&self, base: &Screen, screen: &Screen, clusters: &mut Clusters) -> u16 {
        let real = screen.cursor();
        let (row, next) = self.next();
        let cols = MOVED_COLS.min(next).min(real.col);
        let line = self.line_in(row);
        let mut letters = 0;
        for back in 1..=cols {
            let col = next - back;
            let predicted = match line {
                Some(line) => Some(line.cells[usize::from(col)].look.text),
                None => base.cell(row, col).map(|cell| clusters.text(base, cell)),
            };
            let is = screen.cell(real.row, real.col - back);
            let is = is.map(|cell| clusters.text(screen, cell));
            match (predicted, is) {
                (Some(predicted), Some(is)) if predicted.matches(is) => {
                    // Blanks are alike anywhere.
                    letters += u16::from(!is.is_blank());
                }
                _ => break,
            }
        }
        if letters >= MOVED_LETTERS_MIN { letters } else { 0 }
    }

    /// Some cell of the frame is neither as it was nor as it was typed.
    pub(crate) fn contradicts(
        &self,
        base: &Screen,
        screen: &Screen,
        clusters: &mut Clusters,
    ) -> bool {
        self.cells().any(|(row, col, guess)| {
            let cells = (base.cell(row, col), screen.cell(row, col));
            let (Kind::Typed, (Some(was), Some(is))) = (guess.kind, cells) else { return false };
            let is = clusters.text(screen, is);
            // A cell as it was is only late.
            !is.matches(guess.look.text) && !is.matches(clusters.text(base, was))
        })
    }

    /// Right of the cursor text came up where none was predicted, or text that was to move along is
    /// not there: a suggestion.
    pub(crate) fn shows_suggestion(&self, screen: &Screen, clusters: &mut Clusters) -> bool {
        let Some(line) = self.line_in(self.row) else { return false };
        let at = usize::from(self.col);
        // Text farther to the right may be a right prompt.
        let near = at..(at + GAP_COLS).min(line.cells.len());
        let predicted = line.cells[near.clone()].iter().any(|guess| !guess.look.text.is_blank());
        let mut cells = line.cells[near.clone()].iter().zip(&screen.row(self.row).cells()[near]);
        cells.any(|(guess, cell)| {
            let is = clusters.text(screen, *cell);
            let letter = !guess.look.text.is_blank();
            match predicted {
                true => letter && guess.kind == Kind::Moved && !guess.look.text.matches(is),
                false => !is.is_blank(),
            }
        })
    }

    /// How far the text of a row goes that keys have changed, if it ends in blanks that are text.
    pub(crate) fn typed_end(&self) -> Option<(u16, u16)> {
        self.lines.iter().rev().find_map(|line| {
            let last = line.cells.iter().rposition(PredictedCell::is_text)?;
            let blank = line.cells[last].look.text.is_blank();
            blank.then_some((line.row, last as u16 + 1))
        })
    }

    /// Keys have changed this row, or may have.
    pub(crate) fn edits(&self, row: u16) -> bool {
        self.line_in(row).is_some()
    }

    /// Paints the cells that differ from the frame below.
    pub(crate) fn paint(&self, screen: &mut Screen, clusters: &Clusters, flagging: Flagging) {
        // Comparing may add clusters; the engine's own stay as they are.
        let mut scratch = clusters.clone();
        for (row, col, PredictedCell { look, kind }) in self.cells() {
            // An unknown cell keeps the server's content: a stale cell is no wrong guess.
            if matches!(kind, Kind::Real | Kind::Unknown) {
                continue;
            }
            let Some(cell) = screen.cell(row, col) else { continue };
            if look.text.matches(scratch.text(screen, cell)) {
                continue;
            }
            // An underlined blank would look like text.
            let look = if look.text.is_blank() { *look } else { flagging.flag(*look) };
            clusters.paint(screen, row, col, look);
        }
        screen.set_cursor(self.row, self.col);
    }

    /// The lines' cells, each with its row and column.
    fn cells(&self) -> impl Iterator<Item = (u16, u16, &PredictedCell)> {
        self.lines.iter().flat_map(|Line { row, cells }| {
            (0..).zip(cells.iter()).map(|(col, cell)| (*row, col, cell))
        })
    }

    /// The line in this row, if keys have changed it, or may have.
    fn line_in(&self, row: u16) -> Option<&Line> {
        self.lines.iter().find(|line| line.row == row)
    }

    /// The window that the cursor is in, on a screen with these borders. Beyond them nothing is
    /// edited.
    pub(crate) fn window(&self, borders: &Borders) -> Window {
        borders.window(self.row, self.col)
    }

    /// The cells of the cursor's line, to be changed; up to the border of its window.
    fn line(&mut self, context: &mut LineContext<'_>) -> &mut [PredictedCell] {
        let (row, right) = (self.row, usize::from(self.window(context.borders).right));
        let at = self.lines.iter().position(|line| line.row == row).unwrap_or_else(|| {
            let cells = context.base.row(row).cells().iter();
            let real = |cell: &_| PredictedCell {
                look: context.clusters.look(context.base, *cell),
                kind: Kind::Real,
            };
            let mut cells: Vec<PredictedCell> = cells.map(real).collect();
            let end =
                context.line.typed_end.filter(|at| at.0 == row).map_or(0, |at| usize::from(at.1));
            let blanks = cells[..end].iter_mut().rev().take_while(|guess| !guess.is_text());
            // Blanks that were typed are text: they move along, and the line ends behind them.
            blanks.for_each(|guess| guess.kind = Kind::Moved);
            self.lines.push(Line { row, cells: Arc::new(cells) });
            self.lines.len() - 1
        });
        &mut Arc::make_mut(&mut self.lines[at].cells)[..right]
    }

    fn jump(&mut self, col: u16) -> Effect {
        self.col = col;
        self.at_edge = false;
        Effect::Moves
    }

    /// The column where the line begins, if that is known.
    fn begin(&self, context: &LineContext<'_>) -> Option<u16> {
        let (row, col) = context.line.origin?;
        let left = self.window(context.borders).left;
        // In a row that several windows share, it may be the line of another.
        (row == self.row && (left..=self.col).contains(&col)).then_some(col)
    }
}

/// The rule that predicts this key.
fn rule_of(key: Key) -> Option<Rule> {
    Some(match key {
        Key::KillLeft | Key::KillRight => Rule::KillLine,
        Key::KillWord => Rule::KillWord,
        Key::Home | Key::End | Key::LineBegin | Key::LineEnd => Rule::LineEnds,
        Key::WordLeft | Key::WordRight => Rule::WordMotion,
        Key::Delete | Key::DeleteChar => Rule::DeleteForward,
        Key::PasteBegin | Key::PasteEnd => Rule::Paste,
        Key::Char(c) if u16::from(width::of(c)) != 1 => Rule::WideText,
        _ => return None,
    })
}
