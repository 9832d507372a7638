//! C0 controls and escape sequences, and the parser's view of the emulator.

use crate::emulator::Emulator;
use crate::emulator::modes::ModeAction;
use crate::emulator::profile::{DeferredWrap, Functions, Text};
use crate::parser::{Handler, Sequence, StringEnd};
use crate::screen::Charset;
use crate::screen::row::LineSize;

/// Escape sequences stock mosh knows.
const STOCK_ESCAPES: [(Option<u8>, u8); 8] = [
    (None, b'7'),
    (None, b'8'),
    (None, b'c'),
    (None, b'D'),
    (None, b'E'),
    (None, b'H'),
    (None, b'M'),
    (Some(b'#'), b'8'),
];

impl Handler for Emulator<'_> {
    #[inline]
    fn ascii(&mut self, run: &[u8]) -> usize {
        self.write_ascii(run)
    }

    #[inline]
    fn chars(&mut self, run: &[char]) {
        self.write_chars(run);
    }

    #[inline]
    fn control(&mut self, code: u8) {
        match code {
            b'\r' => self.carriage_return(),
            b'\n' | 0x0b | 0x0c => self.line_feed(),
            0x08 => self.left(1),
            b'\t' => self.tab(1),
            0x00 if self.profile.text == Text::Clusters => {}
            _ => self.rare_control(code),
        }
    }

    #[inline]
    fn new_line(&mut self) {
        self.carriage_return();
        self.line_feed();
    }

    fn escape(&mut self, intermediate: Option<u8>, last: u8) {
        self.dispatched();
        let stock = self.profile.functions == Functions::Stock;
        if stock && !STOCK_ESCAPES.contains(&(intermediate, last)) {
            return;
        }
        match intermediate {
            None => self.plain_escape(last),
            Some(b'#') => self.line_escape(last),
            Some(set @ b'('..=b'+') => self.designate(usize::from(set - b'('), last),
            // The 96-character sets: ISO Latin-1 is what UTF-8 gives anyway.
            Some(set @ b'-'..=b'/') if last == b'A' => {
                self.state.charsets.designated[usize::from(set - b',')] = Charset::Us;
            }
            Some(_) => {}
        }
        self.text_rules_changed();
    }

    #[inline]
    fn csi(&mut self, sequence: &Sequence) {
        self.control_sequence(sequence);
    }

    fn osc(&mut self, data: &[u8], end: StringEnd) {
        if self.profile.text == Text::Clusters {
            self.state.last_cell = None;
        }
        self.system_command(data, end);
    }

    fn dcs(&mut self, sequence: &Sequence, data: &[u8]) {
        if self.profile.functions == Functions::All {
            self.state.last_cell = None;
            self.device_control(sequence, data);
        }
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.is_spent()
    }
}

impl Emulator<'_> {
    /// A control function other than a control sequence arrived.
    fn dispatched(&mut self) {
        if self.profile.deferred_wrap == DeferredWrap::Controls {
            self.state.cursor.pending_wrap = false;
        }
        if self.profile.text == Text::Clusters {
            self.state.last_cell = None;
        }
    }

    #[cold]
    fn rare_control(&mut self, code: u8) {
        self.dispatched();
        match code {
            0x07 => self.state.bells += 1,
            0x0e if self.profile.functions == Functions::All => self.state.charsets.left = 1,
            0x0f if self.profile.functions == Functions::All => self.state.charsets.left = 0,
            _ => {}
        }
        self.text_rules_changed();
    }

    fn plain_escape(&mut self, last: u8) {
        match last {
            b'7' => self.save_cursor(),
            b'8' => self.restore_cursor(),
            b'c' => self.full_reset(),
            b'D' => self.line_down(),
            b'E' => {
                self.line_down();
                self.carriage_return();
            }
            b'M' => self.reverse_index(),
            b'H' => self.set_tab(),
            b'=' => self.state.modes.application_keypad = true,
            b'>' => self.state.modes.application_keypad = false,
            b'6' if self.state.modes.level >= 4 => self.back_index(),
            b'9' if self.state.modes.level >= 4 => self.forward_index(),
            b'N' => self.state.charsets.single = Some(2),
            b'O' => self.state.charsets.single = Some(3),
            b'n' => self.state.charsets.left = 2,
            b'o' => self.state.charsets.left = 3,
            b'V' => self.set_guarded(ModeAction::Set),
            b'W' => self.set_guarded(ModeAction::Reset),
            b'Z' => self.reply(self.profile.attributes),
            _ => {}
        }
    }

    /// IND.
    fn line_down(&mut self) {
        self.state.cursor.pending_wrap = false;
        self.state.last_cell = None;
        self.index();
    }

    fn set_tab(&mut self) {
        let col = usize::from(self.state.cursor.col);
        self.extras_mut().tabs[col / 64] |= 1 << (col % 64);
    }

    /// `ESC #`: DECALN and the line attributes.
    fn line_escape(&mut self, last: u8) {
        let size = match last {
            b'3' => LineSize::DoubleTop,
            b'4' => LineSize::DoubleBottom,
            b'5' => LineSize::Single,
            b'6' => LineSize::DoubleWidth,
            b'8' => return self.align(),
            _ => return,
        };
        if self.state.modes.left_right_margins {
            return;
        }
        self.state.double_lines |= size != LineSize::Single;
        let row = self.grid.row_mut(self.state.cursor.row.into());
        if row.size != size {
            row.size = size;
            let cursor = self.state.cursor;
            let pending = cursor.pending_wrap;
            self.move_to(cursor.row, cursor.col);
            self.state.cursor.pending_wrap = pending && self.state.cursor.col == cursor.col;
        }
    }

    /// DECLRMM makes all lines single.
    pub(crate) fn forget_double_lines(&mut self) {
        if self.state.double_lines {
            self.grid.for_each_mut(|row| row.size = LineSize::Single);
            self.state.double_lines = false;
        }
    }

    /// SCS. An unknown set changes nothing (xterm).
    fn designate(&mut self, set: usize, last: u8) {
        if let Some(charset) = Charset::designated_by(last) {
            self.state.charsets.designated[set] = charset;
        }
    }
}
