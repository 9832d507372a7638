//! Reads escape sequences, control sequences and the heads of device control strings byte by byte.

use super::{Colons, Handler, Head, Kind, Mode, NUMBER_MAX, Parser};

/// More than one intermediate byte: no sequence known here has them.
const MANY: u8 = 0xff;

/// The effect of a byte on the head of a sequence.
enum HeadStep {
    On(Head),
    Bad,
    End,
}

impl Parser {
    pub(super) fn escape<H: Handler>(&mut self, handler: &mut H, byte: u8) {
        let plain = self.mode == Mode::Escape;
        match byte {
            0x20..=0x2f => {
                self.mode = Mode::EscapeIntermediate;
                self.collect(byte);
            }
            b'[' if plain => self.enter_csi(),
            b']' if plain => self.enter_string(Kind::Osc),
            b'P' if plain => {
                self.clear();
                self.mode = Mode::Dcs(Head::Entry);
            }
            b'X' | b'^' | b'_' if plain => self.mode = Mode::String(Kind::Lost),
            _ => {
                self.mode = Mode::Ground;
                handler.escape(self.intermediate(), byte);
            }
        }
    }

    pub(super) fn csi<H: Handler>(&mut self, handler: &mut H, head: Head, byte: u8) {
        match self.head(head, byte) {
            HeadStep::On(head) => self.mode = Mode::Csi(head),
            HeadStep::Bad => self.mode = Mode::CsiIgnore,
            HeadStep::End => {
                self.mode = Mode::Ground;
                handler.csi(&self.sequence);
            }
        }
    }

    pub(super) fn dcs_head(&mut self, head: Head, byte: u8) {
        self.mode = match self.head(head, byte) {
            HeadStep::On(head) => Mode::Dcs(head),
            HeadStep::Bad => Mode::String(Kind::Lost),
            HeadStep::End => {
                self.string.clear();
                Mode::String(Kind::Dcs)
            }
        };
    }

    /// One byte of the head of a sequence.
    fn head(&mut self, head: Head, byte: u8) -> HeadStep {
        match (byte, head) {
            (b'0'..=b';', Head::Entry | Head::Numbers) => {
                if byte == b':' && self.rules.colons == Colons::Drop {
                    return HeadStep::Bad;
                }
                self.number_char(byte);
                HeadStep::On(Head::Numbers)
            }
            (b'<'..=b'?', Head::Entry) => {
                self.sequence.marker = byte;
                HeadStep::On(Head::Numbers)
            }
            (0x20..=0x2f, _) => {
                self.collect(byte);
                HeadStep::On(Head::Intermediate)
            }
            (0x40..=0x7e, _) => {
                self.push_value();
                self.sequence.last = byte;
                HeadStep::End
            }
            _ => HeadStep::Bad,
        }
    }

    fn number_char(&mut self, byte: u8) {
        if self.value_chars == self.rules.parameter_chars_max {
            return;
        }
        self.value_chars += 1;
        if byte.is_ascii_digit() {
            if byte == b'0' && self.value == 0 {
                self.sequence.params.mark_zero();
            }
            self.value = (self.value * 10 + u32::from(byte - b'0')).min(NUMBER_MAX);
            return;
        }
        self.sequence.params.push(self.value, &self.rules);
        self.value = 0;
        if byte == b':' {
            self.sequence.params.join_next();
        }
    }

    pub(super) fn push_value(&mut self) {
        if self.value_chars > 0 {
            self.sequence.params.push(self.value, &self.rules);
        }
    }

    fn collect(&mut self, byte: u8) {
        self.sequence.intermediate = if self.sequence.intermediate == 0 { byte } else { MANY };
    }

    pub(super) fn intermediate(&self) -> Option<u8> {
        Some(self.sequence.intermediate).filter(|byte| *byte != 0)
    }

    pub(super) fn clear(&mut self) {
        self.sequence.marker = 0;
        self.sequence.intermediate = 0;
        self.sequence.last = 0;
        self.sequence.params.clear();
        self.value = 0;
        self.value_chars = 0;
    }
}
