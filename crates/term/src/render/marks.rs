//! Sets the marks of lines (OSC 133) after all rows are drawn: from top to bottom and in the order in which a shell
//! sets them, so that a terminal that follows the shell by its marks sees the same sequence.

use alloc::format;
use alloc::vec::Vec;

use triomphe::Arc;

use crate::dialect::{Ability, Dialect, Reader};
use crate::render::paint::Painter;
use crate::render::pen::put;
use crate::render::scroll::Standing;
use crate::render::view::columns;
use crate::screen::prompt_marks::{Ended, Marks, Prompt};
use crate::screen::row::Row;

/// Takes the marks of the cursor's row away.
pub(super) const NONE: &[u8] = b"\x1b]133;X\x07";

/// The marks of a row as a reader has them.
pub(super) fn marks(row: &Row, dialect: &Dialect) -> Marks {
    match dialect.can(Ability::ShellMarks) {
        true => row.marks().clamped(columns(row, dialect)),
        false => Marks::NONE,
    }
}

impl Painter<'_, '_> {
    /// The marks that the reader's rows have; `None` when they need no change.
    pub(super) fn stale_marks(
        &self,
        standing: &[Standing<'_>],
        wanted: &[&Arc<Row>],
    ) -> Option<Vec<Marks>> {
        if !self.dialect.can(Ability::ShellMarks) {
            return None;
        }
        let held = |row: &Standing<'_>| row.map_or(Marks::NONE, |row| marks(row, &self.dialect));
        let differs = |(old, new): (&Standing<'_>, &&Arc<Row>)| {
            !old.is_some_and(|old| Arc::ptr_eq(old, new)) && held(old) != marks(new, &self.dialect)
        };
        let stale = standing.iter().zip(wanted).any(differs);
        stale.then(|| standing.iter().map(held).collect())
    }

    /// Sets the marks that rows should have. A prompt and the beginning of output take those of the rows below
    /// away.
    pub(super) fn set_marks(&mut self, held: &[Marks], wanted: &[&Arc<Row>]) {
        let mut nothing_below = self.erased_all;
        for (row, wanted) in wanted.iter().enumerate() {
            let wanted = marks(wanted, &self.dialect);
            let mut held = match held.get(row) {
                Some(held) if !nothing_below => *held,
                _ => Marks::NONE,
            };
            if !held.is_part_of(&wanted) {
                self.mark(row, 0, "X");
                held = Marks::NONE;
            }
            match wanted.ended.filter(|_| held.ended.is_none()) {
                Some(Ended::With(status)) => self.mark(row, 0, &format!("D;{status}")),
                Some(Ended::Untold) => self.mark(row, 0, "D"),
                None => {}
            }
            if let Some(prompt) = wanted.prompt.filter(|_| held.prompt.is_none()) {
                self.mark_prompt(row, prompt);
                (held.input, held.output, nothing_below) = (None, None, true);
            }
            if let Some(col) = wanted.input.filter(|_| held.input.is_none()) {
                self.mark(row, col.into(), "B");
            }
            if let Some(col) = wanted.output.filter(|_| held.output.is_none()) {
                self.mark(row, col.into(), "C");
                nothing_below = true;
            }
        }
    }

    /// Some terminals erase the prompt on a resize, for the shell to draw it again. This tells them that we redraw
    /// it.
    fn mark_prompt(&mut self, row: usize, prompt: Prompt) {
        match (prompt, self.dialect.reader()) {
            (Prompt::First, Reader::Tty) => self.mark(row, 0, "A;redraw=0"),
            (Prompt::First, _) => self.mark(row, 0, "A"),
            (Prompt::Next, _) => self.mark(row, 0, "A;k=s"),
        }
    }

    fn mark(&mut self, row: usize, col: usize, mark: &str) {
        self.go(row, col);
        put(self.out, format_args!("\x1b]133;{mark}\x07"));
    }
}
