//! Tells a program's echo from the kernel's. Only a program's shows that typed text may be seen.
//!
//! The kernel's echo promises nothing: a command that is about to ask for a password may not have
//! switched echo off yet. A program that reads lines writes a prompt before them, which the user
//! did not type. This group knows no epochs and makes no predictions.

mod lines;
mod prompt;
mod typed;

use rove_term::{Screen, width};

use crate::line_mode::LineMode;
use crate::predict::epoch::pending::PendingKey;
use crate::predict::keys::Key;
use crate::predict::line::Effect;
use crate::predict::look::{Appearance, Clusters};
use crate::predict::window::{cursor_of, is_blank};
use prompt::{Prompt, follows_border};
use typed::{Typed, TypedPosition};

/// The typed text, and the signs of which program reads the keyboard.
#[derive(Clone, Debug, Default)]
pub(super) struct EchoEvidence {
    /// The terminal line's mode, where the server reports it.
    line: Option<LineMode>,
    typed: Typed,
    /// Some of this line was typed before a frame showed where it goes.
    typed_ahead: bool,
    /// Enter may be among the keys that were not followed: where this line begins is not known.
    lost_track: bool,
    /// The line that Enter ended had no prompt: the program that reads lines here writes none.
    unprompted: bool,
    /// Where the next blank would stand, behind one that was seen to take the cursor along.
    blank: Option<(u16, u16)>,
    /// Before the last line of a shell that Enter ended, as long as a command started there may
    /// be running.
    prompt: Option<Prompt>,
    /// The same for a window that another has replaced on the screen.
    away: Option<Prompt>,
}

impl EchoEvidence {
    pub(super) fn on_mode(&mut self, line: Option<LineMode>) {
        self.line = line;
    }

    /// Takes a key that is typed on `base`. `uncontended`: no key of unknown effect is in flight.
    /// Returns whether the kernel's echo of it is unknown.
    pub(super) fn on_key(&mut self, key: Key, uncontended: bool, base: Option<&Screen>) -> bool {
        // The line that started a question for a password is still the one to remember.
        let answers = uncontended && key != Key::Enter && self.line != Some(LineMode::Hidden);
        if let Some(base) = base.filter(|_| answers) {
            let (row, col) = cursor_of(base);
            // Text typed before that line is no late echo of it, though it may look alike.
            let asks = |prompt: &Prompt| {
                prompt.left != (row, col)
                    && self.typed_begin_since(prompt.since, row, col, base) == col
                    && self.is_prompted(row, col, base)
            };
            if self.prompt.as_ref().is_some_and(asks) {
                self.prompt = None;
            }
        }
        let echo_unknown = match key {
            Key::Enter => false,
            // An answer to a question for a password is not kept.
            _ if self.line == Some(LineMode::Hidden) => true,
            Key::Char(c) => width::of(c) == 0,
            // An end of input leaves no trace.
            Key::Backspace | Key::DeleteChar => false,
            // The kernel echoes other controls as `^X`, or not, as the terminal line is set.
            _ => true,
        };
        if echo_unknown {
            self.typed.echo_unknown = true;
        } else {
            self.typed.note(key);
        }
        self.typed_ahead = key != Key::Enter && (self.typed_ahead || !uncontended);
        self.lost_track &= key != Key::Enter;
        echo_unknown
    }

    /// Keys came that are not followed.
    pub(super) fn lose_track(&mut self) {
        (self.typed_ahead, self.lost_track, self.unprompted) = (true, true, false);
    }

    /// Every guess was dropped.
    pub(super) fn reset(&mut self) {
        if let Some(prompt) = &mut self.prompt {
            // Its row may be wrapped anew, or its window be elsewhere.
            prompt.lose_text();
        }
        self.unprompted = false;
    }

    /// Drops the typed text: it may be secret, or its place on the screen is lost. From then on the
    /// kernel's echo of the keys in flight is unknown.
    pub(super) fn forget_typed<'a>(&mut self, unseen: impl Iterator<Item = &'a mut PendingKey>) {
        if self.typed.forget() {
            self.typed.echo_unknown = true;
            unseen.for_each(|key| key.echo_unknown = true);
        }
    }

    /// The frame shows a line begun. `silent` are the keys before it that may still be echoed.
    pub(super) fn on_line_begun(&mut self, silent: &[PendingKey]) {
        self.typed.echo_unknown = silent.iter().any(|key| key.echo_unknown);
    }

    /// Seeing this key done as predicted shows that a program echoes.
    pub(super) fn credits(
        &mut self,
        key: &PendingKey,
        base: &Screen,
        screen: &Screen,
        clusters: &mut Clusters,
    ) -> bool {
        let Effect::Writes(row, col) = key.effect else { return false };
        let mut text = |screen: &Screen, col: u16| {
            screen.cell(row, col).map(|cell| clusters.text(screen, cell))
        };
        let (Some(was), Some(is)) = (text(base, col), text(screen, col)) else { return false };
        let left = col.checked_sub(1).and_then(|col| text(screen, col));
        let done = match key.key {
            // Right of its like a character may be a mask: a secret may begin with a star.
            Key::Char(c) if width::of(c) > 0 => {
                is == Appearance::of(c) && is_no_mask(c) && left != Some(is)
            }
            Key::Char(_) => !is.is_blank(),
            // Backspace takes back a mask as it takes back a letter.
            _ => false,
        };
        // A character that stood there before would stand there without the key.
        done && !was.matches(is) && self.is_by_program(key, row, col, screen)
    }

    /// A blank typed where nothing stands took the cursor along: that shows it too.
    pub(super) fn credits_blank(
        &mut self,
        key: &PendingKey,
        base: &Screen,
        screen: &Screen,
    ) -> bool {
        let before = self.blank.take();
        let (Key::Char(' '), Effect::Writes(row, col)) = (key.key, key.effect) else {
            return false;
        };
        let (was, is) = (base.cursor(), screen.cursor());
        let passed = (was.row, is.row) == (row, row) && (was.col..is.col).contains(&col);
        if !passed || text_end(row, base.size().cols, base) > was.col {
            return false;
        }
        self.blank = Some((row, col + 1));
        // Behind a prompt it takes two: a question may end in a blank that comes in a frame of its
        // own.
        (before == Some((row, col)) || !self.is_prompted(row, col, screen))
            && self.is_by_program(key, row, col, screen)
    }

    /// A program has echoed this key at this place, not the kernel on behalf of a command that is
    /// about to ask for a password.
    fn is_by_program(&mut self, key: &PendingKey, row: u16, col: u16, screen: &Screen) -> bool {
        if self.is_prompted(row, col, screen) {
            // The command that was started before this line has ended, or asks.
            self.prompt.take_if(|it| it.entered < key.state);
            // A question may be drawn behind text that the kernel echoed ahead of it.
            return self.line != Some(LineMode::Cooked) || !self.typed_ahead;
        }
        // Behind a key of unknown effect another program may read, unless it reads lines that
        // have no prompt, as `cat` does.
        (key.uncontended || self.unprompted) && !self.kernel_echoes(row, col, screen)
    }

    /// The kernel may have echoed the text left of this place: it has no prompt, and the
    /// terminal line is known to be in canonical mode, or a command may be running.
    fn kernel_echoes(&self, row: u16, col: u16, screen: &Screen) -> bool {
        let kernels = self.lost_track || self.is_cooked();
        let Some(prompt) = self.prompt.as_ref().filter(|_| !kernels) else {
            return kernels && !self.is_prompted(row, col, screen);
        };
        let begin = self.typed_begin(row, col, screen);
        // The kernel's echo begins at the edge. Only a program indents.
        let begins = begin == 0 || follows_border(screen, row, begin);
        begins && prompt.is_above(row, col, screen) && !self.is_prompted(row, col, screen)
    }

    /// The kernel may have echoed the text left of the cursor of a frame that was found anew.
    pub(super) fn kernel_echoes_at_cursor(&self, screen: &Screen) -> bool {
        // In canonical mode a question may come behind text typed ahead of it (`is_by_program`).
        let (row, col) = cursor_of(screen);
        self.is_cooked() || self.kernel_echoes(row, col, screen)
    }

    /// Left of this place stands more than the typed text: a program has written a prompt. The
    /// border of another window is none.
    pub(super) fn is_prompted(&self, row: u16, col: u16, screen: &Screen) -> bool {
        let begin = self.typed_begin(row, col, screen);
        let left = &screen.row(row).cells()[..usize::from(begin)];
        !self.lost_track
            && left.iter().any(|cell| !is_blank(*cell))
            && !follows_border(screen, row, begin)
    }

    fn is_cooked(&self) -> bool {
        self.line == Some(LineMode::Cooked)
    }

    /// Where in the row the text left of `col` begins that was typed. Keys in flight count too:
    /// they may show or not.
    fn typed_begin(&self, row: u16, col: u16, screen: &Screen) -> u16 {
        self.typed_begin_since(TypedPosition::default(), row, col, screen)
    }

    /// The same for the text typed since some position.
    fn typed_begin_since(&self, since: TypedPosition, row: u16, col: u16, screen: &Screen) -> u16 {
        if self.typed.echo_unknown && (self.is_cooked() || self.prompt.is_some()) {
            // All of it may be the kernel's echo, unless the shell's prompt is back.
            let back = self.prompt.as_ref().and_then(|prompt| prompt.end(row, screen));
            return back.filter(|end| *end <= col).unwrap_or(0);
        }
        let left = &screen.row(row).cells()[..usize::from(col)];
        col - self.typed.ends(left, since) as u16
    }
}

/// This character is no mask: none of those that programs draw in place of a secret's letters.
pub(super) fn is_no_mask(c: char) -> bool {
    c.is_alphanumeric() || c.is_ascii_punctuation() && !"*.#-+_".contains(c)
}

/// One past the last text left of `col`.
fn text_end(row: u16, col: u16, screen: &Screen) -> u16 {
    let left = &screen.row(row).cells()[..usize::from(col)];
    left.iter().rposition(|cell| !is_blank(*cell)).map_or(0, |last| last as u16 + 1)
}
