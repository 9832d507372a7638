//! What a shell marks in its lines (OSC 133): where prompts, input and output begin, and how commands ended.
//! A mark belongs to a line and moves with it; what a terminal does with it is its own affair.

use crate::cell::Semantic;
use crate::emulator::Emulator;

/// The marks of one line.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Marks {
    /// A command ended here (`D`).
    pub ended: Option<Ended>,
    /// A prompt begins here (`A`).
    pub prompt: Option<Prompt>,
    /// The column, from 0, where what the user types begins (`B`).
    pub input: Option<u16>,
    /// The column, from 0, where a command's output begins (`C`).
    pub output: Option<u16>,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ended {
    /// The shell did not tell.
    Untold,
    /// With this exit status.
    With(u8),
}

/// Which line of a prompt begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Prompt {
    /// The first: a new command.
    First,
    /// A continuation (`k=s`).
    Next,
}

impl Marks {
    /// No mark.
    pub const NONE: Self = Self { ended: None, prompt: None, input: None, output: None };

    /// These marks in a line of so many columns.
    #[must_use]
    pub(crate) fn clamped(self, cols: usize) -> Self {
        let last = cols.saturating_sub(1) as u16;
        let clamp = |col: u16| col.min(last);
        Self { input: self.input.map(clamp), output: self.output.map(clamp), ..self }
    }

    /// There is none, in fewer steps than a comparison takes.
    #[inline]
    pub(crate) fn is_none(&self) -> bool {
        let rare = self.ended.is_some() | self.prompt.is_some();
        !(rare | self.input.is_some() | self.output.is_some())
    }

    /// Setting what is missing makes `wanted` of it.
    pub(crate) fn is_part_of(&self, wanted: &Self) -> bool {
        let part = |held: bool, same: bool| !held || same;
        part(self.ended.is_some(), self.ended == wanted.ended)
            && part(self.prompt.is_some(), self.prompt == wanted.prompt)
            && part(self.input.is_some(), self.input == wanted.input)
            && part(self.output.is_some(), self.output == wanted.output)
    }
}

impl Emulator<'_> {
    /// OSC 133. Below a prompt and below the beginning of output nothing is there yet: marks of lines that a
    /// program erased there are gone. `X`, which shells do not send, takes a line's marks away.
    pub(crate) fn shell_mark(&mut self, rest: &str) {
        let mut words = rest.split(';');
        let row = usize::from(self.state.cursor.row);
        let col = self.state.cursor.col;
        let mut marks = self.grid.row(row).marks;
        let semantic = match words.next() {
            Some("A" | "P" | "N") => {
                let next = words.any(|word| matches!(word, "k=s" | "k=c"));
                let prompt = if next { Prompt::Next } else { Prompt::First };
                marks = Marks { prompt: Some(prompt), input: None, output: None, ..marks };
                self.grid.unmark(row + 1);
                Semantic::Prompt
            }
            Some("B" | "I") => {
                marks.input = Some(col);
                Semantic::Input
            }
            Some("C") => {
                marks.output = Some(col);
                self.grid.unmark(row + 1);
                Semantic::Output
            }
            Some("D") => {
                let status = words.next().and_then(|word| word.parse().ok());
                marks.ended = Some(status.map_or(Ended::Untold, Ended::With));
                Semantic::Output
            }
            Some("X") => {
                marks = Marks::NONE;
                Semantic::Output
            }
            _ => return,
        };
        self.grid.mark(row, marks);
        self.state.pen.semantic = semantic;
        self.pen_changed();
    }

    /// Takes the marks of all lines.
    pub(crate) fn unmark(&mut self) {
        self.grid.unmark(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dialect, Size, Terminal};

    #[test]
    fn marks_belong_to_lines() {
        let prompt = Marks { prompt: Some(Prompt::First), input: Some(2), ..Marks::NONE };
        let output = Marks { output: Some(0), ..Marks::NONE };
        let ended = |status| Some(Ended::With(status));
        for (written, want) in [
            ("\x1b]133;A\x07$ \x1b]133;B\x07", [prompt, Marks::NONE, Marks::NONE]),
            (
                "\x1b]133;A;k=s\x07",
                [Marks { prompt: Some(Prompt::Next), ..Marks::NONE }, Marks::NONE, Marks::NONE],
            ),
            ("\x1b]133;A\x07$ \x1b]133;B\x07\r\n\x1b]133;C\x07", [prompt, output, Marks::NONE]),
            (
                "\r\n\x1b]133;D;7\x07\x1b]133;A\x07$ \x1b]133;B\x07",
                [Marks::NONE, Marks { ended: ended(7), ..prompt }, Marks::NONE],
            ),
            (
                "\x1b]133;D\x07",
                [Marks { ended: Some(Ended::Untold), ..Marks::NONE }, Marks::NONE, Marks::NONE],
            ),
            // A line that scrolls takes its marks along, and a new line has none.
            ("\n\n\x1b]133;C\x07\n", [Marks::NONE, output, Marks::NONE]),
            // A prompt where the screen was cleared stands above nothing.
            (
                "\n\x1b]133;C\x07\x1b[H\x1b]133;A\x07$ \x1b]133;B\x07",
                [prompt, Marks::NONE, Marks::NONE],
            ),
            ("\x1b]133;C\x07\x1b[2J", [Marks::NONE; 3]),
            ("\x1b]133;C\x07\x1b]133;X\x07", [Marks::NONE; 3]),
            ("\x1b]133;C\x07\x1bc", [Marks::NONE; 3]),
            ("\x1b]133;Q\x07", [Marks::NONE; 3]),
        ] {
            let mut terminal = Terminal::new(Size::clamped(3, 20), Dialect::ROVE);
            terminal.advance(written.as_bytes());
            let marks: Vec<Marks> = terminal.screen().rows().map(|row| row.marks()).collect();
            assert_eq!(marks, want, "{written:?}");
        }
    }
}
