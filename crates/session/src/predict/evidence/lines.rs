//! Finds the prompts of the lines that Enter ended: a command started at one may be running.

use alloc::vec::Vec;
use core::ops::Range;

use rove_term::Screen;

use crate::predict::epoch::pending::{PENDING_MAX, PendingKey, PendingKeys};
use crate::predict::evidence::prompt::{PROMPT_COLS, Prompt, ends_window, follows_border, is_last};
use crate::predict::evidence::typed::TypedPosition;
use crate::predict::evidence::{EchoEvidence, text_end};
use crate::predict::keys::Key;
use crate::predict::line::PredictedScreen;
use crate::predict::window::{char_of, cursor_of, is_blank, is_vertical};

/// Letters that tell a line by its end, if it has as many. Those before them may have been commands
/// of the program that ran before.
const LINE_LETTERS_MIN: usize = 2;

impl EchoEvidence {
    /// Looks at the lines that the Enters among the first `acked` keys ended. A shell's has a
    /// prompt: text that the kernel echoes below it is no echo of a program. An editor's line has
    /// none, nor has the next.
    ///
    /// A line that was echoed whole does not end that: the kernel echoes it for a command that has
    /// yet to read it.
    pub(in crate::predict) fn note_lines(
        &mut self,
        pending: &mut PendingKeys,
        acked: usize,
        screen: &Screen,
    ) {
        for at in 0..acked {
            self.note_line(pending, at, screen);
        }
    }

    /// The same for the first Enter in flight and the keys before it. No key explains the frame: it
    /// may show the line done before its echo ack, and later frames do not show its place.
    pub(in crate::predict) fn note_lines_ahead(
        &mut self,
        pending: &mut PendingKeys,
        acked: usize,
        screen: &Screen,
    ) {
        let enter = pending.keys().iter().position(|key| key.key == Key::Enter);
        let next = enter.map_or(pending.keys().len(), |enter| enter + 1);
        for at in acked..next {
            // Only an acknowledged Enter has ended its line.
            let unprompted = self.unprompted;
            self.note_line(pending, at, screen);
            self.unprompted = unprompted;
        }
        // The base is from before the first Enter: later lines are looked for in this frame.
        for at in next.max(acked)..pending.keys().len() {
            let line = self.line_above(pending, at, screen);
            if let Some(line) = line.filter(|_| !self.is_noted(&pending.keys()[at], screen)) {
                (self.prompt, self.away) = (Some(line), None);
            }
        }
    }

    fn note_line(&mut self, pending: &mut PendingKeys, at: usize, screen: &Screen) {
        let PendingKey { key, state: entered, prompted, .. } = pending.keys()[at];
        let Some(base) = pending.base() else { return };
        // A key of unknown meaning may have ended the line too: Ctrl-J, or one that accepts it.
        if !matches!(key, Key::Enter | Key::Other) {
            return;
        }
        let noted = self.is_noted(&pending.keys()[at], base);
        let (asked, line) = self.line_before(pending, at, base, screen);
        let line = match line {
            Some(line) if line.stands(0..screen.size().rows, screen) => Some(line),
            // The shell has drawn its line anew, perhaps with another prompt.
            gone => self.line_above(pending, at, screen).or(gone),
        };
        if key == Key::Enter {
            let again = at > 0 && pending.keys()[at - 1].key == Key::Enter;
            self.unprompted = self.prompt.is_none()
                && match pending.predicted(at) {
                    Some(_) => !self.lost_track && !asked && !prompted,
                    // Where it was typed is not known. A second Enter ends an empty line.
                    None => self.unprompted && again,
                };
        }
        if asked {
            pending.note_prompted(at);
        }
        if !noted && line.is_some() {
            (self.prompt, self.away) = (line, None);
        } else if let (Key::Enter, Some(prompt)) = (key, &mut self.prompt) {
            prompt.goes_on(entered, screen);
        }
    }

    /// The line that this key ended is remembered, and stands there.
    fn is_noted(&self, key: &PendingKey, screen: &Screen) -> bool {
        let rows = 0..screen.size().rows;
        self.prompt.as_ref().is_some_and(|it| it.entered == key.state && it.stands(rows, screen))
    }

    /// Whether the line where this key was typed has a prompt, as far as frames before this one
    /// showed it; and that prompt, if it is a shell's.
    fn line_before(
        &self,
        pending: &PendingKeys,
        at: usize,
        base: &Screen,
        screen: &Screen,
    ) -> (bool, Option<Prompt>) {
        let (before, left) = (pending.predicted(at), cursor_of(base));
        let mut end = before.as_ref().map_or(left, PredictedScreen::cursor);
        if end.0 > left.0 && self.prompt_at(end.0, end.1, base).is_none() {
            end = left; // It goes on below, but no frame has shown that.
        }
        let (row, col) = (end.0, text_end(end.0, end.1, base));
        let asked = self.prompt_at(row, col, base);
        let PendingKey { key, state: entered, .. } = pending.keys()[at];
        if asked.is_none()
            && let Some(line) = self.command_before(pending, at, base)
        {
            return (true, Some(line));
        }
        let (top, begin) = asked.unwrap_or((row, 0));
        let mut line = Prompt::new(top, begin, base, left, entered);
        line.since = self.shown_before(pending, at, end, base);
        let ends = match key {
            // A list of completions below the line goes with Enter.
            Key::Enter => {
                self.is_shell_line(row, col, base)
                    || asked.is_some() && self.is_shell_line(row, col, screen)
            }
            // Ctrl-J, or a paste that ends the line; its effect may show later.
            _ => {
                let to = if top == row { col } else { base.size().cols };
                let waits = screen.cursor() == base.cursor();
                self.is_shell_line(row, col, base)
                    && (waits || stands_above(top, line.col..to, base, screen))
            }
        };
        // Above an editor's line a full row stands by chance.
        let asked = asked.is_some_and(|asked| asked.0 == row) || ends;
        (asked, ends.then_some(line))
    }

    /// A line that runs a command from within a program, as `:!ls` does in vim and `!ls` in less.
    /// The command reads the keyboard as one that a shell started.
    fn command_before(&self, pending: &PendingKeys, at: usize, base: &Screen) -> Option<Prompt> {
        let (row, col) = cursor_of(base);
        let begin = (1..=col).rev().find(|col| follows_border(base, row, *col)).unwrap_or(0);
        let cells = base.row(row).cells()[usize::from(begin)..usize::from(col)].iter();
        let mut text: Vec<char> = cells.copied().map(char_of).collect();
        for key in pending.unshown(at) {
            match key.key {
                Key::Char(c) => text.push(c),
                Key::Backspace => drop(text.pop()),
                _ => {}
            }
        }
        let PendingKey { key, state: entered, .. } = pending.keys()[at];
        let runs = key == Key::Enter && is_command(&text);
        text.truncate(usize::from(PROMPT_COLS));
        let since = TypedPosition::default();
        runs.then_some(Prompt { row, col: begin, text, left: (row, col), entered, since })
    }

    /// From where on typed text may still be echoed late: the line that this Enter ended is shown
    /// whole, and no command runs that an Enter before it started.
    fn shown_before(
        &self,
        pending: &PendingKeys,
        at: usize,
        end: (u16, u16),
        base: &Screen,
    ) -> TypedPosition {
        let all = self.prompt.is_none() && pending.keys().len() < PENDING_MAX;
        let later = pending.keys().range(at + 1..).filter(|key| key.key == Key::Enter).count();
        let cells = &base.row(end.0).cells()[..usize::from(end.1)];
        let shown = || self.typed.begin_of_shown(later, cells);
        (all && pending.keys()[at].key == Key::Enter).then(shown).flatten().unwrap_or_default()
    }

    /// The prompt of the line that this Enter ended, in a frame that shows it done or about to be:
    /// above the cursor or left of it, with nothing below. No frame showed it before: it was typed
    /// ahead of its prompt, behind another line, or behind the keys that ended another program.
    fn line_above(&self, pending: &PendingKeys, at: usize, screen: &Screen) -> Option<Prompt> {
        let PendingKey { key, state: entered, .. } = pending.keys()[at];
        let typed = line_in_flight(pending, at);
        if key != Key::Enter || typed.is_empty() {
            return None;
        }
        let least = typed.len().min(LINE_LETTERS_MIN);
        let (row, col) = cursor_of(screen);
        let end =
            |line: u16| text_end(line, if line == row { col } else { screen.size().cols }, screen);
        let line = (0..=row).rev().find(|row| {
            let cells = screen.row(*row).cells()[..usize::from(end(*row))].iter().rev();
            let shown = cells.filter(|cell| !cell.is_tail()).map(|cell| char_of(*cell));
            let same = shown.zip(typed.iter().rev()).take_while(|(shown, typed)| shown == *typed);
            same.count() >= least
        })?;
        let cells = screen.row(line).cells()[..usize::from(end(line))].iter();
        let text: Vec<char> = cells.copied().map(char_of).collect();
        let runs = || is_command(&text).then_some((line, PROMPT_COLS.min(end(line))));
        let (top, begin) = self.prompt_at(line, end(line), screen).or_else(runs)?;
        let prompt = Prompt::new(top, begin, screen, (row, col), entered);
        ends_window(top, begin, row, screen).then_some(prompt)
    }

    /// A frame came: the program started at a prompt may have taken the screen. It has if it wrote
    /// below the cursor too; a command that clears the screen, or scrolls it, does not. A cursor
    /// above the prompt alone is no sign: it may be in another window for a while.
    pub(in crate::predict) fn note_frame(&mut self, screen: &Screen) {
        let (row, col) = cursor_of(screen);
        let still = |prompt: &&mut Prompt| {
            let stands =
                prompt.text.is_empty() || prompt.end(row, screen).is_some_and(|end| end <= col);
            prompt.left.0 == row && stands
        };
        if let Some(prompt) = self.prompt.as_mut().filter(still) {
            prompt.left.1 = col;
        }
        let gone = self.prompt.take_if(|prompt| {
            let stays = prompt.row == row || prompt.is_foot(row, screen);
            let stands = prompt.stands(0..screen.size().rows, screen) && !prompt.text.is_empty();
            !stays && !stands && !is_last(row, col, screen)
        });
        if let Some(gone) = gone {
            self.away = Some(gone);
        } else if self.prompt.is_none() {
            // Another window had the screen for a while, or the program has ended.
            self.prompt = self.away.take_if(|it| !it.text.is_empty() && it.stands(0..row, screen));
        }
    }

    /// This is the line of a shell: it has a prompt, and nothing stands below it in its window. An
    /// editor has text there, or a bar.
    pub(in crate::predict) fn is_shell_line(&self, row: u16, col: u16, screen: &Screen) -> bool {
        let asked = self.prompt_at(row, col, screen);
        asked.is_some_and(|(top, begin)| ends_window(top, begin, row, screen))
    }

    /// Where typed text begins in the line that goes up to this place, if it has a prompt: in this
    /// row or, of a line that has wrapped, in one above.
    fn prompt_at(&self, row: u16, col: u16, screen: &Screen) -> Option<(u16, u16)> {
        let (mut row, mut col) = (row, text_end(row, col, screen));
        while !self.is_prompted(row, col, screen) {
            (row, col) = self.wraps_from(row, col, screen)?;
        }
        Some((row, self.typed_begin(row, col, screen)))
    }

    /// The row above, and where it ends, if the line goes on from there: it is full, or the text
    /// typed there goes on here. Left of `col` nothing else stands.
    fn wraps_from(&self, row: u16, col: u16, screen: &Screen) -> Option<(u16, u16)> {
        let (above, begin) = (row.checked_sub(1)?, self.typed_begin(row, col, screen));
        if self.lost_track || begin > 0 && !follows_border(screen, row, begin) {
            return None;
        }
        let (upper, lower) = (screen.row(above).cells(), screen.row(row).cells());
        let cols = upper.len();
        // Up to the border of the window, or of the screen.
        let mut ends = (usize::from(begin) + 1..=cols)
            .filter(|end| upper.get(*end).is_none_or(|cell| is_vertical(char_of(*cell))));
        let goes_on = |end: &usize| {
            let window = &upper[usize::from(begin)..*end];
            let blanks = window.iter().rev().take_while(|cell| is_blank(**cell)).count();
            let typed = [window, &lower[usize::from(begin)..usize::from(col)]].concat();
            blanks == 0
                || *end == cols && screen.row(above).is_wrapped()
                // A wide character does not fit into the last column.
                || blanks == 1 && lower[usize::from(begin)].is_wide()
                || self.typed.ends(&typed, TypedPosition::default())
                    > blanks + usize::from(col - begin)
        };
        ends.find(goes_on).map(|end| (above, end as u16))
    }
}

/// The typed text of the line that this key ends, as far as it is in flight. Without blanks at its
/// end: a frame does not tell those from empty cells.
fn line_in_flight(pending: &PendingKeys, at: usize) -> Vec<char> {
    let mut typed = Vec::new();
    for key in pending.keys().range(..at) {
        match key.key {
            Key::Char(c) => typed.push(c),
            Key::Backspace => drop(typed.pop()),
            _ => typed.clear(),
        }
    }
    let blanks = typed.iter().rev().take_while(|c| **c == ' ').count();
    typed.truncate(typed.len() - blanks);
    typed
}

/// This begins as a command of an editor or a pager does, and hands something behind a `!` to a
/// shell.
fn is_command(line: &[char]) -> bool {
    let hands = line.iter().position(|c| *c == '!').is_some_and(|at| at + 1 < line.len());
    matches!(line, [':' | '!', ..]) && hands
}

/// The text in these columns of this row stands above the cursor in the new frame.
fn stands_above(row: u16, cols: Range<u16>, base: &Screen, screen: &Screen) -> bool {
    let cols = usize::from(cols.start)..usize::from(cols.end);
    let text = |row: u16, screen: &Screen| -> Vec<char> {
        screen.row(row).cells()[cols.clone()].iter().copied().map(char_of).collect()
    };
    let ended = text(row, base);
    (0..screen.cursor().row).any(|above| text(above, screen) == ended)
}
