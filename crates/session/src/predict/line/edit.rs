//! How keys that erase and move change the text of a line.

use rove_term::Width;

use crate::predict::line::cells::{Kind, close, erased, stretch_end, suggests};
use crate::predict::line::context::{LineContext, LineStart};
use crate::predict::line::{Edge, Effect, PredictedScreen};
use crate::predict::look::Appearance;
use crate::predict::settings::Editing;

impl PredictedScreen {
    pub(super) fn erase_left(&mut self, context: &mut LineContext<'_>) -> Effect {
        let at_origin = context.line.origin == Some((self.row, self.col));
        if self.edge == Edge::Within && at_origin && context.line.start == LineStart::Prompt {
            return Effect::Moves; // A shell goes no further than its prompt.
        }
        if self.edge == Edge::Within && self.step_left(context) == Effect::Unknown {
            return Effect::Unknown;
        }
        self.edge = Edge::Within;
        self.erase_at_cursor(context)
    }

    pub(super) fn erase_right(&mut self, context: &mut LineContext<'_>) -> Effect {
        if self.text_end(context) <= self.col {
            return Effect::Unknown; // Joins lines in an editor, ends the input of a shell.
        }
        self.erase_at_cursor(context)
    }

    pub(super) fn erase_at_cursor(&mut self, context: &mut LineContext<'_>) -> Effect {
        let at = usize::from(self.col);
        let editing = context.line.editing;
        let line = self.line(context);
        let columns = if line[at].look.width == Width::Wide { 2 } else { 1 };
        for _ in 0..columns {
            match editing {
                Editing::Insert if !suggests(context, line, at + 1) => close(context, line, at),
                _ => line[at] = erased(line[at].look.style),
            }
        }
        Effect::Writes(self.row, self.col)
    }

    pub(super) fn step_left(&mut self, context: &mut LineContext<'_>) -> Effect {
        let left = self.window(context.borders).left;
        let Some(mut col) = self.col.checked_sub(1).filter(|col| *col >= left) else {
            return Effect::Unknown;
        };
        if self.line(context)[usize::from(col)].look.width == Width::Tail {
            col = col.saturating_sub(1);
        }
        self.jump(col)
    }

    pub(super) fn step_right(&mut self, context: &mut LineContext<'_>) -> Effect {
        let at = usize::from(self.col);
        let line = self.line(context);
        if suggests(context, line, at) {
            return Effect::Unknown; // Takes the suggestion, or part of it.
        }
        if line[at..].iter().all(|guess| guess.look.text.is_blank()) {
            return Effect::Moves; // At the end of the text it stays.
        }
        let columns = if line[at].look.width == Width::Wide { 2 } else { 1 };
        let col = self.col + columns;
        if col >= self.window(context.borders).right { Effect::Unknown } else { self.jump(col) }
    }

    pub(super) fn step_rows(&mut self, rows: i32, context: &LineContext<'_>) -> Effect {
        let Ok(row) = u16::try_from(i32::from(self.row) + rows) else { return Effect::Unknown };
        if row >= context.base.size().rows {
            return Effect::Unknown;
        }
        self.row = row;
        self.edge = Edge::Within;
        Effect::Moves
    }

    /// Goes to the end of the line, unless nobody knows how far that goes.
    pub(super) fn line_end(&mut self, context: &mut LineContext<'_>) -> Effect {
        let at = usize::from(self.col);
        let line = self.line(context);
        if line[at..].iter().any(|guess| guess.kind == Kind::Unknown) {
            return Effect::Unknown;
        }
        let end = self.text_end(context);
        self.jump(end)
    }

    /// One past the last text of the cursor's line, leaving out what stands apart at the right.
    pub(super) fn text_end(&mut self, context: &mut LineContext<'_>) -> u16 {
        let at = usize::from(self.col);
        let line = self.line(context);
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
        let begin = usize::from(self.begin(context).unwrap_or(left));
        let mut at = usize::from(self.col);
        let line = self.line(context);
        let word = |at: usize| is_word(line[at].look.text);
        while at > begin && !word(at - 1) {
            at -= 1;
        }
        while at > begin && word(at - 1) {
            at -= 1;
        }
        at as u16
    }

    pub(super) fn word_right(&mut self, context: &mut LineContext<'_>) -> Effect {
        let end = usize::from(self.text_end(context));
        let mut at = usize::from(self.col);
        let line = self.line(context);
        if suggests(context, line, at) {
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
            return Effect::Unknown; // Joins lines in an editor.
        }
        for guess in &mut self.line(context)[at..=end] {
            *guess = erased(guess.look.style);
        }
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
