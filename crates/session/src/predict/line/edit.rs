//! Predicts the keys that erase text and move the cursor.
//!
//! Where programs differ in what a key does, its effect is unknown: a guess that is wrong for half
//! of them is worse than none.

use rove_term::Width;

use crate::predict::line::cells::{Kind, close, erase, erased, stretch_end, suggests};
use crate::predict::line::context::{LineContext, LineStart};
use crate::predict::line::{Effect, PredictedScreen};
use crate::predict::look::Appearance;
use crate::predict::settings::Editing;

impl PredictedScreen {
    /// Backspace.
    pub(super) fn erase_left(&mut self, context: &mut LineContext<'_>) -> Effect {
        let at_origin = context.line.origin == Some((self.row, self.col));
        if !self.at_edge && at_origin && context.line.start == LineStart::Prompt {
            // A shell goes no further than its prompt.
            return Effect::Moves;
        }
        // At the edge the cursor still stands on the character to erase.
        if !self.at_edge && self.step_left(context) == Effect::Unknown {
            return Effect::Unknown;
        }
        self.at_edge = false;
        self.erase_at_cursor(context)
    }

    /// Delete and Ctrl-D.
    pub(super) fn erase_right(&mut self, context: &mut LineContext<'_>) -> Effect {
        if self.text_end(context) <= self.col {
            // An editor joins lines here, and a shell may end.
            return Effect::Unknown;
        }
        self.erase_at_cursor(context)
    }

    pub(super) fn erase_at_cursor(&mut self, context: &mut LineContext<'_>) -> Effect {
        let at = usize::from(self.col);
        let editing = context.settings.editing;
        let line = self.line(context);
        let columns = if line[at].look.width == Width::Wide { 2 } else { 1 };
        for _ in 0..columns {
            match editing {
                // A suggestion right of it does not move along.
                Editing::Insert if !suggests(context, line, at + 1) => close(context, line, at),
                _ => line[at] = erased(line[at].look.style),
            }
        }
        Effect::Writes(self.row, self.col)
    }

    pub(super) fn step_left(&mut self, context: &mut LineContext<'_>) -> Effect {
        let left = self.window(context.borders).left;
        // At the left edge some programs go to the row above, and some stay.
        let Some(mut col) = self.col.checked_sub(1).filter(|col| *col >= left) else {
            return Effect::Unknown;
        };
        // A wide character is one step.
        if self.line(context)[usize::from(col)].look.width == Width::Tail {
            col = col.saturating_sub(1);
        }
        self.jump(col)
    }

    pub(super) fn step_right(&mut self, context: &mut LineContext<'_>) -> Effect {
        let at = usize::from(self.col);
        let line = self.line(context);
        if suggests(context, line, at) {
            // The key takes the suggestion, or part of it.
            return Effect::Unknown;
        }
        if line[at..].iter().all(|guess| guess.look.text.is_blank()) {
            // At the end of the text the cursor stays in most programs.
            return Effect::Moves;
        }
        let columns = if line[at].look.width == Width::Wide { 2 } else { 1 };
        let col = self.col + columns;
        if col >= self.window(context.borders).right { Effect::Unknown } else { self.jump(col) }
    }

    pub(super) fn step_rows(&mut self, rows: i32, context: &LineContext<'_>) -> Effect {
        let Ok(row) = u16::try_from(i32::from(self.row) + rows) else { return Effect::Unknown };
        // Beyond the screen an editor scrolls to text that was never shown.
        if row >= context.base.size().rows {
            return Effect::Unknown;
        }
        self.row = row;
        self.at_edge = false;
        Effect::Moves
    }

    /// Goes to the end of the line, if that is known.
    pub(super) fn line_end(&mut self, context: &mut LineContext<'_>) -> Effect {
        let at = usize::from(self.col);
        let line = self.line(context);
        // The end may lie among cells whose text is not known.
        if line[at..].iter().any(|guess| guess.kind == Kind::Unknown) {
            return Effect::Unknown;
        }
        let end = self.text_end(context);
        self.jump(end)
    }

    /// One past the last text of the cursor's line, without text that stands apart at the right.
    pub(super) fn text_end(&mut self, context: &mut LineContext<'_>) -> u16 {
        let at = usize::from(self.col);
        let line = self.line(context);
        // A right prompt is no part of the line.
        let mut end = stretch_end(context, line, at.saturating_sub(1));
        while end > at && !line[end - 1].is_text() {
            end -= 1;
        }
        end.min(line.len() - 1) as u16
    }

    /// Where the word before the cursor begins.
    pub(super) fn word_left(
        &mut self,
        context: &mut LineContext<'_>,
        is_word: fn(Appearance) -> bool,
    ) -> u16 {
        let left = self.window(context.borders).left;
        // Words of the prompt are none of the line.
        let begin = usize::from(self.begin(context).unwrap_or(left));
        let at = usize::from(self.col);
        let mut line = self.line(context)[begin..at].iter().map(|guess| is_word(guess.look.text));
        line.rposition(|word| word);
        let gap = line.rposition(|word| !word);
        (begin + gap.map_or(0, |gap| gap + 1)) as u16
    }

    pub(super) fn word_right(&mut self, context: &mut LineContext<'_>) -> Effect {
        let end = usize::from(self.text_end(context));
        let mut at = usize::from(self.col);
        let line = self.line(context);
        if suggests(context, line, at) {
            // The key takes a word of the suggestion.
            return Effect::Unknown;
        }
        let word = |at: usize| line[at].look.text.is_word();
        while at < end && !word(at) {
            at += 1;
        }
        while at < end && word(at) {
            at += 1;
        }
        self.jump(at as u16)
    }

    pub(super) fn kill_right(&mut self, context: &mut LineContext<'_>) -> Effect {
        let end = usize::from(self.text_end(context));
        let at = usize::from(self.col);
        if end <= at {
            // At the end of a line an editor joins the next to it.
            return Effect::Unknown;
        }
        erase(&mut self.line(context)[at..=end]);
        Effect::Writes(self.row, self.col)
    }

    pub(super) fn kill_left(&mut self, to: u16, context: &mut LineContext<'_>) -> Effect {
        let count = self.col - to.min(self.col);
        if count == 0 {
            return Effect::Moves;
        }
        self.jump(to);
        let line = self.line(context);
        for _ in 0..count {
            close(context, line, usize::from(to));
        }
        Effect::Writes(self.row, self.col)
    }
}
