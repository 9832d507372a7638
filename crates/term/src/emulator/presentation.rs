//! Reports the cursor and the tab stops (DECRQPSR), and restores them (DECRSPS).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::emulator::Emulator;
use crate::screen::Charset;
use crate::screen::style::{Attrs, Underline};

fn number(field: &[u8]) -> Option<u16> {
    core::str::from_utf8(field).ok()?.parse().ok()
}

/// Six flags, written as a character from `@` on.
fn flags(field: &[u8]) -> Option<u8> {
    match field {
        [byte @ 0x40..=0x7f] => Some(byte & 0x3f),
        _ => None,
    }
}

impl Emulator<'_> {
    /// DECRQPSR: cursor information (1) and tab stops (2).
    pub(crate) fn report_presentation(&mut self, what: u16) {
        match what {
            1 => self.report_cursor_information(),
            2 => {
                let tabs = self.extras.tabs;
                let stops: Vec<String> = (0..self.state.size.cols)
                    .filter(|col| tabs[usize::from(col / 64)] >> (col % 64) & 1 == 1)
                    .map(|col| (col + 1).to_string())
                    .collect();
                self.reply(format!("\x1bP2$u{}\x1b\\", stops.join("/")).as_bytes());
            }
            _ => {}
        }
    }

    fn report_cursor_information(&mut self) {
        let (row, col) = self.reported_place();
        let state = &self.state;
        let attrs = state.pen.style.attrs;
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        let rendition = 0x40
            | bit(attrs.contains(Attrs::BOLD), 1)
            | bit(attrs.underline() != Underline::None, 2)
            | bit(attrs.contains(Attrs::BLINK), 4)
            | bit(attrs.contains(Attrs::INVERSE), 8);
        let protection = 0x40 | bit(state.pen.protected, 1);
        let flags = 0x40
            | bit(state.modes.origin, 1)
            | bit(state.charsets.single == Some(2), 2)
            | bit(state.charsets.single == Some(3), 4)
            | bit(state.cursor.pending_wrap, 8);
        let sets: String = state
            .charsets
            .designated
            .iter()
            .map(|charset| match charset {
                Charset::Us => 'B',
                Charset::Uk => 'A',
                Charset::Graphics => '0',
            })
            .collect();
        let answer = format!(
            "\x1bP1$u{row};{col};1;{};{};{};{};2;@;{sets}\x1b\\",
            char::from(rendition),
            char::from(protection),
            char::from(flags),
            state.charsets.left,
        );
        self.reply(answer.as_bytes());
    }

    /// DECRSPS.
    pub(crate) fn restore_presentation(&mut self, what: u16, data: &[u8]) {
        match what {
            1 => {
                // As far as it can be read (xterm).
                let _ = self.restore_cursor_information(data);
                self.pen_changed();
                self.text_rules_changed();
            }
            2 => self.restore_tab_stops(data),
            _ => {}
        }
    }

    /// Parses a DECCIR report; `None` if it is malformed.
    fn restore_cursor_information(&mut self, data: &[u8]) -> Option<()> {
        let mut fields = data.split(|byte| *byte == b';');
        let row = number(fields.next()?).filter(|row| (1..=self.state.size.rows).contains(row))?;
        let col = number(fields.next()?).filter(|col| (1..=self.state.size.cols).contains(col))?;
        self.move_to(row - 1, col - 1);
        let _page = number(fields.next()?)?;
        let rendition = flags(fields.next()?)?;
        let attrs = &mut self.state.pen.style.attrs;
        for (bit, attr) in [(1, Attrs::BOLD), (4, Attrs::BLINK), (8, Attrs::INVERSE)] {
            *attrs = if rendition & bit != 0 { attrs.with(attr) } else { attrs.without(attr) };
        }
        let underlined = attrs.underline() != Underline::None;
        if underlined != (rendition & 2 != 0) {
            let other = if underlined { Underline::None } else { Underline::Single };
            *attrs = attrs.with_underline(other);
        }
        self.state.pen.protected = flags(fields.next()?)? & 1 != 0;
        let flags = flags(fields.next()?)?;
        self.state.modes.origin = flags & 1 != 0;
        let at_end = usize::from(self.state.cursor.col) + 1 == self.right_limit();
        self.state.cursor.pending_wrap = flags & 8 != 0 && at_end;
        let charsets = &mut self.state.charsets;
        charsets.single = match flags & 6 {
            2 => Some(2),
            4 => Some(3),
            _ => None,
        };
        charsets.left = number(fields.next()?).filter(|set| *set <= 3)? as u8;
        let (_right, _sizes) = (number(fields.next()?)?, fields.next()?);
        let &[g0, g1, g2, g3] = fields.next()? else { return None };
        charsets.designated =
            [g0, g1, g2, g3].map(|last| Charset::designated_by(last).unwrap_or_default());
        Some(())
    }

    fn restore_tab_stops(&mut self, data: &[u8]) {
        let mut tabs = [0; 16];
        for col in data.split(|byte| *byte == b'/').filter_map(number) {
            if let 1..=1000 = col {
                tabs[usize::from((col - 1) / 64)] |= 1 << ((col - 1) % 64);
            }
        }
        self.extras_mut().tabs = tabs;
    }
}
