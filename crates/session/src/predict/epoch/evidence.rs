//! Tells a program's echo from the kernel's. Only a program's shows that typed text may be seen.
//!
//! The kernel's echo promises nothing: a command that is about to ask for a password may not have
//! switched echo off yet. A program that reads lines writes something before them that nobody
//! typed.

use alloc::vec::Vec;
use core::ops::Range;

use rove_term::{Screen, width};

use crate::line_mode::LineMode;
use crate::predict::epoch::EpochEngine;
use crate::predict::epoch::pending::{PENDING_MAX, PendingKey};
use crate::predict::epoch::prompt::{PROMPT_COLS, Prompt, borders, ends_window, is_last};
use crate::predict::epoch::typed::TypedPosition;
use crate::predict::keys::Key;
use crate::predict::line::{Effect, PredictedScreen};
use crate::predict::look::Appearance;
use crate::predict::window::{is_blank, is_upright, letter};

/// Letters that tell a line by its end, if it has as many: some before them may have been commands of what ran before.
const LINE_LETTERS_MIN: usize = 2;

impl EpochEngine {
    /// Seeing this key done as foreseen shows that a program echoes.
    pub(super) fn credits(&mut self, pressed: &PendingKey, screen: &Screen) -> bool {
        let Some(base) = &self.base else { return false };
        let Effect::Writes(row, col) = pressed.effect else { return false };
        let mut mark = |screen: &Screen, col: u16| {
            screen.cell(row, col).map(|cell| self.clusters.mark(screen, cell))
        };
        let (Some(was), Some(is)) = (mark(base, col), mark(screen, col)) else { return false };
        let left = col.checked_sub(1).and_then(|col| mark(screen, col));
        let done = match pressed.key {
            Key::Char(c) if width::of(c) > 0 => {
                is == Appearance::of(c) && tells(c) && left != Some(is)
            }
            Key::Char(_) => !is.is_blank(),
            // What was erased may be the mark of a letter that nobody may see.
            _ => false,
        };
        done && !was.matches(is) && self.is_programs(pressed, row, col, screen)
    }

    /// A blank typed where nothing stands took the cursor along: that shows it too. Behind a prompt it takes two in a
    /// row, for a question may come with its own blank in a frame of its own.
    pub(super) fn credits_blank(&mut self, pressed: &PendingKey, screen: &Screen) -> bool {
        let before = self.blank.take();
        let (Key::Char(' '), Effect::Writes(row, col)) = (pressed.key, pressed.effect) else {
            return false;
        };
        let Some(base) = &self.base else { return false };
        let (was, is) = (base.cursor(), screen.cursor());
        let passed = (was.row, is.row) == (row, row) && (was.col..is.col).contains(&col);
        if !passed || text_end(row, base.size().cols, base) > was.col {
            return false;
        }
        self.blank = Some((row, col + 1));
        (before == Some((row, col)) || !self.is_prompted(row, col, screen))
            && self.is_programs(pressed, row, col, screen)
    }

    /// Whoever echoed this key at this place is no kernel that does so for a command about to ask for a password.
    fn is_programs(&mut self, pressed: &PendingKey, row: u16, col: u16, screen: &Screen) -> bool {
        if self.is_prompted(row, col, screen) {
            // Whatever was started before this line has ended, or asks.
            self.prompt.take_if(|it| it.entered < pressed.state);
            // A question may come behind what was typed ahead of it.
            return self.line != Some(LineMode::Cooked) || !self.typed_ahead;
        }
        (pressed.uncontended || self.unprompted) && !self.kernel_echoes(row, col, screen)
    }

    /// What stands left of this place the kernel may have echoed: nobody has asked for it, and the terminal line is
    /// known to be the kernel's, or something runs that was started at a prompt, or may have been.
    pub(super) fn kernel_echoes(&self, row: u16, col: u16, screen: &Screen) -> bool {
        let kernels = self.lost_track || self.line == Some(LineMode::Cooked);
        let Some(prompt) = self.prompt.as_ref().filter(|_| !kernels) else {
            return kernels && !self.is_prompted(row, col, screen);
        };
        let begin = self.begin_of_typed(row, col, screen);
        let begins = begin == 0 || borders(screen, row, begin); // Only a program indents.
        begins && prompt.is_above(row, col, screen) && !self.is_prompted(row, col, screen)
    }

    /// Looks at the lines that the Enters among the first `acked` keys ended. A shell's has a prompt: what
    /// the kernel echoes below it does not count as the echo of a program. An editor's has none, nor has
    /// the next.
    ///
    /// A line that was echoed whole does not end that: the kernel echoes it for a command that has yet to read it.
    pub(super) fn note_lines(&mut self, acked: usize, screen: &Screen) {
        for at in 0..acked {
            self.note_line(at, screen);
        }
    }

    /// The same for the first Enter under way, and what comes before it: the frame explains itself by no key, and may show
    /// it done before its echo ack. Where its line was is not seen later. Those behind it are looked for where they are done.
    pub(super) fn note_lines_ahead(&mut self, acked: usize, screen: &Screen) {
        let enter = self.pending.iter().position(|pressed| pressed.key == Key::Enter);
        let next = enter.map_or(self.pending.len(), |enter| enter + 1);
        for at in acked..next {
            let unprompted = self.unprompted;
            self.note_line(at, screen);
            self.unprompted = unprompted;
        }
        for at in next.max(acked)..self.pending.len() {
            if let Some(line) = self.line_above(at, screen).filter(|_| !self.is_noted(at, screen)) {
                (self.prompt, self.away) = (Some(line), None);
            }
        }
    }

    fn note_line(&mut self, at: usize, screen: &Screen) {
        let key = self.pending[at].key;
        let Some(base) = &self.base else { return };
        if !matches!(key, Key::Enter | Key::Other) {
            return;
        }
        let noted = self.is_noted(at, base);
        let (asked, line) = self.line_before(at, base, screen);
        let line = match line {
            Some(line) if line.stands(0..screen.size().rows, screen) => Some(line),
            gone => self.line_above(at, screen).or(gone),
        };
        if key == Key::Enter {
            let again = at > 0 && self.pending[at - 1].key == Key::Enter;
            self.unprompted = self.prompt.is_none()
                && match self.scene(at) {
                    Some(_) => !self.lost_track && !asked && !self.pending[at].asked,
                    None => self.unprompted && again,
                };
        }
        self.pending[at].asked |= asked;
        if !noted && line.is_some() {
            (self.prompt, self.away) = (line, None);
        } else if let (Key::Enter, Some(prompt)) = (key, &mut self.prompt) {
            prompt.goes_on(self.pending[at].state, screen);
        }
    }

    /// The line that this key ended is remembered, and stands there.
    fn is_noted(&self, at: usize, screen: &Screen) -> bool {
        let rows = 0..screen.size().rows;
        let entered = self.pending[at].state;
        self.prompt.as_ref().is_some_and(|it| it.entered == entered && it.stands(rows, screen))
    }

    /// Whether the line where this key was typed has a prompt, as far as it was seen before this frame; and that, if
    /// it is a shell's.
    fn line_before(&self, at: usize, base: &Screen, screen: &Screen) -> (bool, Option<Prompt>) {
        let (before, left) = (self.scene(at), (base.cursor().row, base.cursor().col));
        let mut end = before.as_ref().map_or(left, PredictedScreen::cursor);
        if end.0 > left.0 && self.asked_at(end.0, end.1, base).is_none() {
            end = left; // It goes on below, but no frame has shown that.
        }
        let (row, col) = (end.0, text_end(end.0, end.1, base));
        let asked = self.asked_at(row, col, base);
        let PendingKey { key, state: entered, .. } = self.pending[at];
        if asked.is_none()
            && let Some(line) = self.command_before(at, base)
        {
            return (true, Some(line));
        }
        let (top, begin) = asked.unwrap_or((row, 0));
        let mut line = Prompt::new(top, begin, base, left, entered);
        line.since = self.shown_before(at, end, base);
        let ends = match key {
            // A list of completions below the line goes with Enter.
            Key::Enter => {
                self.shells(row, col, base) || asked.is_some() && self.shells(row, col, screen)
            }
            // Ctrl-J, or a paste that ends the line; what it did may show later.
            _ => {
                let to = if top == row { col } else { base.size().cols };
                let waits = screen.cursor() == base.cursor();
                self.shells(row, col, base) && (waits || is_left(top, line.col..to, base, screen))
            }
        };
        // Above an editor's line a full row stands by chance.
        let asked = asked.is_some_and(|asked| asked.0 == row) || ends;
        (asked, ends.then_some(line))
    }

    /// A line that runs a command from within a program, as `:!ls` does in vim and `!ls` in less: what runs is started
    /// there as it is by a shell.
    fn command_before(&self, at: usize, base: &Screen) -> Option<Prompt> {
        let (row, col) = (base.cursor().row, base.cursor().col);
        let begin = (1..=col).rev().find(|col| borders(base, row, *col)).unwrap_or(0);
        let cells = base.row(row).cells()[usize::from(begin)..usize::from(col)].iter();
        let mut text: Vec<char> = cells.copied().map(letter).collect();
        for pressed in self.pending.range(self.reflected.min(at)..at) {
            match pressed.key {
                Key::Char(c) => text.push(c),
                Key::Backspace => drop(text.pop()),
                _ => {}
            }
        }
        let entered = self.pending[at].state;
        let runs = self.pending[at].key == Key::Enter && is_command(&text);
        text.truncate(usize::from(PROMPT_COLS));
        let since = TypedPosition::default();
        runs.then_some(Prompt { row, col: begin, text, left: (row, col), entered, since })
    }

    /// What was typed before this place is shown: the line that this Enter ended, up to here, is, whole, and nothing runs that
    /// was started by one before it.
    fn shown_before(&self, at: usize, end: (u16, u16), base: &Screen) -> TypedPosition {
        let all = self.prompt.is_none() && self.pending.len() < PENDING_MAX;
        let later =
            self.pending.range(at + 1..).filter(|pressed| pressed.key == Key::Enter).count();
        let cells = &base.row(end.0).cells()[..usize::from(end.1)];
        let shown = || self.typed.begin_of_shown(later, cells);
        (all && self.pending[at].key == Key::Enter).then(shown).flatten().unwrap_or_default()
    }

    /// The prompt of the line that this Enter ended, in a frame that shows it done or about to be: above the cursor or left of
    /// it, with nothing below. It was typed ahead of its prompt, or behind another line or what ended another program, so that
    /// no frame showed it before.
    fn line_above(&self, at: usize, screen: &Screen) -> Option<Prompt> {
        let PendingKey { key, state: entered, .. } = self.pending[at];
        let typed = self.line_under_way(at);
        if key != Key::Enter || typed.is_empty() {
            return None;
        }
        let least = typed.len().min(LINE_LETTERS_MIN);
        let (row, col) = (screen.cursor().row, screen.cursor().col);
        let end =
            |line: u16| text_end(line, if line == row { col } else { screen.size().cols }, screen);
        let line = (0..=row).rev().find(|row| {
            let cells = screen.row(*row).cells()[..usize::from(end(*row))].iter().rev();
            let shown = cells.filter(|cell| !cell.is_tail()).map(|cell| letter(*cell));
            let same = shown.zip(typed.iter().rev()).take_while(|(shown, typed)| shown == *typed);
            same.count() >= least
        })?;
        let cells = screen.row(line).cells()[..usize::from(end(line))].iter();
        let text: Vec<char> = cells.copied().map(letter).collect();
        let runs = || is_command(&text).then_some((line, PROMPT_COLS.min(end(line))));
        let (top, begin) = self.asked_at(line, end(line), screen).or_else(runs)?;
        let prompt = Prompt::new(top, begin, screen, (row, col), entered);
        ends_window(top, begin, row, screen).then_some(prompt)
    }

    /// What was typed in the line that this key ends, of the keys in flight, but for blanks at its end.
    fn line_under_way(&self, at: usize) -> Vec<char> {
        let mut typed = Vec::new();
        for pressed in self.pending.range(..at) {
            match pressed.key {
                Key::Char(c) => typed.push(c),
                Key::Backspace => drop(typed.pop()),
                _ => typed.clear(),
            }
        }
        let blanks = typed.iter().rev().take_while(|c| **c == ' ').count();
        typed.truncate(typed.len() - blanks);
        typed
    }

    /// A frame came: what was started at a prompt may have taken the screen. It has if it wrote below the cursor too: a
    /// command that clears the screen, or scrolls it, does not. A cursor above the prompt alone says no such thing: it may
    /// be in another window for a while.
    pub(super) fn note_frame(&mut self, screen: &Screen) {
        let (row, col) = (screen.cursor().row, screen.cursor().col);
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

    /// The first `acked` keys are shown, as far as they ever are: when Enter is among them, only those behind it
    /// tell what the kernel may have echoed in the line that it began.
    pub(super) fn begins_line(&self, acked: usize) -> bool {
        let entered = self.pending.range(..acked).rposition(|pressed| pressed.key == Key::Enter);
        entered.is_some_and(|at| self.pending.range(at + 1..).all(|pressed| !pressed.echo_unknown))
    }

    /// What the kernel may echo in the line begun is known.
    pub(super) fn begin_line(&mut self) {
        self.typed.echo_unknown = self.silent.iter().any(|pressed| pressed.echo_unknown);
    }

    /// Keeps nothing of what was typed: it may be secret, or nobody knows any more where it stands.
    pub(super) fn forget_typed(&mut self) {
        if self.typed.forget() {
            self.typed.echo_unknown = true;
            self.pending
                .iter_mut()
                .chain(&mut self.silent)
                .for_each(|pressed| pressed.echo_unknown = true);
        }
    }

    /// A frame came that no key explains: the line goes on elsewhere, or its prompt comes after the row was begun, and
    /// it begins behind that.
    pub(super) fn mend_origin(&mut self, screen: &Screen) {
        let Some(base) = &self.base else { return };
        let was = base.cursor();
        let asked = self.is_prompted(was.row, was.col, base);
        let late = self.origin == Some((was.row, was.col)) && !asked;
        self.origin = self.origin.filter(|origin| origin.0 == screen.cursor().row && !late);
    }

    /// A key is typed, at what the newest frame shows unless others of unknown effect are under way. Whether
    /// what the kernel echoes of it is not known.
    pub(super) fn note_typed(&mut self, key: Key, uncontended: bool) -> bool {
        // What asks for a password was started by the line that is remembered.
        let answers = uncontended && key != Key::Enter && self.line != Some(LineMode::Hidden);
        if let Some(base) = self.base.as_ref().filter(|_| answers) {
            let at = (base.cursor().row, base.cursor().col);
            // What was typed before the line was is no late echo of it, though it may be alike.
            let asks = |prompt: &Prompt| {
                prompt.left != at
                    && self.begin_of_typed_since(prompt.since, at.0, at.1, base) == at.1
                    && self.is_prompted(at.0, at.1, base)
            };
            if self.prompt.as_ref().is_some_and(asks) {
                self.prompt = None;
            }
        }
        let echo_unknown = match key {
            Key::Enter => false,
            // What is typed at a question for a password is not kept.
            _ if self.line == Some(LineMode::Hidden) => true,
            Key::Char(c) => width::of(c) == 0,
            // An end of input leaves no trace.
            Key::Backspace | Key::DeleteChar => false,
            _ => true,
        };
        if echo_unknown {
            self.typed.echo_unknown = true;
        } else {
            self.typed.note(key);
        }
        echo_unknown
    }

    /// This is the line of a shell: it has a prompt, and nothing stands below it in its window. An editor has
    /// text there, or a bar.
    pub(super) fn shells(&self, row: u16, col: u16, screen: &Screen) -> bool {
        let asked = self.asked_at(row, col, screen);
        asked.is_some_and(|(top, begin)| ends_window(top, begin, row, screen))
    }

    /// Where what was typed begins in the line that goes up to this place, if it has a prompt: in this row or, of a line
    /// that has wrapped, in one above.
    fn asked_at(&self, row: u16, col: u16, screen: &Screen) -> Option<(u16, u16)> {
        let (mut row, mut col) = (row, text_end(row, col, screen));
        while !self.is_prompted(row, col, screen) {
            (row, col) = self.wraps_from(row, col, screen)?;
        }
        Some((row, self.begin_of_typed(row, col, screen)))
    }

    /// The row above, and where it ends, if the line goes on from there: it is full, or what was typed there goes on
    /// here. Left of `col` nothing else stands.
    fn wraps_from(&self, row: u16, col: u16, screen: &Screen) -> Option<(u16, u16)> {
        let (above, begin) = (row.checked_sub(1)?, self.begin_of_typed(row, col, screen));
        if self.lost_track || begin > 0 && !borders(screen, row, begin) {
            return None;
        }
        let (upper, lower) = (screen.row(above).cells(), screen.row(row).cells());
        let cols = upper.len();
        // Up to the border of the window, or of the screen.
        let mut ends = (usize::from(begin) + 1..=cols)
            .filter(|end| upper.get(*end).is_none_or(|cell| is_upright(letter(*cell))));
        let goes_on = |end: &usize| {
            let window = &upper[usize::from(begin)..*end];
            let blanks = window.iter().rev().take_while(|cell| is_blank(**cell)).count();
            let typed = [window, &lower[usize::from(begin)..usize::from(col)]].concat();
            blanks == 0
                || *end == cols && screen.row(above).is_wrapped()
                || blanks == 1 && lower[usize::from(begin)].is_wide()
                || self.typed.ends(&typed, TypedPosition::default())
                    > blanks + usize::from(col - begin)
        };
        ends.find(goes_on).map(|end| (above, end as u16))
    }

    /// Left of this place stands more than what was typed: somebody has asked. The border of another window
    /// asks nothing.
    pub(super) fn is_prompted(&self, row: u16, col: u16, screen: &Screen) -> bool {
        let begin = self.begin_of_typed(row, col, screen);
        let left = &screen.row(row).cells()[..usize::from(begin)];
        !self.lost_track && left.iter().any(|cell| !is_blank(*cell)) && !borders(screen, row, begin)
    }

    /// Where in the row what was typed begins, of what stands left of `col`; keys in flight may show or not.
    fn begin_of_typed(&self, row: u16, col: u16, screen: &Screen) -> u16 {
        self.begin_of_typed_since(TypedPosition::default(), row, col, screen)
    }

    /// The same of what was typed since some place.
    fn begin_of_typed_since(
        &self,
        since: TypedPosition,
        row: u16,
        col: u16,
        screen: &Screen,
    ) -> u16 {
        let cooked = self.line == Some(LineMode::Cooked);
        if self.typed.echo_unknown && (cooked || self.prompt.is_some()) {
            // All of it may be the kernel's, unless the shell is back.
            let back = self.prompt.as_ref().and_then(|prompt| prompt.end(row, screen));
            return back.filter(|end| *end <= col).unwrap_or(0);
        }
        let left = &screen.row(row).cells()[..usize::from(col)];
        col - self.typed.ends(left, since) as u16
    }
}

/// This begins as a command of an editor or a pager does, and hands something behind a `!` to a shell.
fn is_command(line: &[char]) -> bool {
    let hands = line.iter().position(|c| *c == '!').is_some_and(|at| at + 1 < line.len());
    matches!(line, [':' | '!', ..]) && hands
}

/// Seeing this character where it was typed shows that a program echoes: it is none of the marks that programs show in
/// place of a secret's letters. Right of its like no character shows that, see [`EpochEngine::credits`].
pub(super) fn tells(c: char) -> bool {
    c.is_alphanumeric() || c.is_ascii_punctuation() && !"*.#-+_".contains(c)
}

/// What stood in these columns of this row stands above the cursor now.
fn is_left(row: u16, cols: Range<u16>, base: &Screen, screen: &Screen) -> bool {
    let cols = usize::from(cols.start)..usize::from(cols.end);
    let text = |row: u16, screen: &Screen| -> Vec<char> {
        screen.row(row).cells()[cols.clone()].iter().copied().map(letter).collect()
    };
    let ended = text(row, base);
    (0..screen.cursor().row).any(|above| text(above, screen) == ended)
}

/// One past the last text left of `col`.
fn text_end(row: u16, col: u16, screen: &Screen) -> u16 {
    let left = &screen.row(row).cells()[..usize::from(col)];
    left.iter().rposition(|cell| !is_blank(*cell)).map_or(0, |last| last as u16 + 1)
}
