//! Keeps the marks that a shell sends (OSC 133).

use crate::emulator::Emulator;
use crate::screen::cell::Semantic;
use crate::screen::prompt_marks::{Ended, Marks, Prompt};

impl Emulator<'_> {
    /// OSC 133: sets a mark. A prompt and the beginning of output remove the marks below them, which belong to lines
    /// that a program has erased. `X`, which shells do not send, takes a line's marks away.
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
