//! The payloads of strings: OSC and DCS collected up to a limit, the others skipped, each to the byte that ends
//! it.

use super::types::{BEL, CAN, CLIPBOARD_OSC_MAX, DCS_MAX, ESC, OSC_MAX, SUB};
use super::{C1, Handler, Kind, Mode, Parser, StringEnd, Strings};
use crate::utf8::Step;

impl Parser {
    /// Collects a string up to the byte that may end it.
    pub(super) fn string<'a, H: Handler>(
        &mut self,
        handler: &mut H,
        bytes: &'a [u8],
        kind: Kind,
    ) -> &'a [u8] {
        let ends = |byte: &u8| matches!(*byte, BEL | CAN | SUB | ESC | 0x80..=0x9f);
        let len = bytes.iter().position(ends).unwrap_or(bytes.len());
        self.keep(&bytes[..len], kind);
        if self.mode != Mode::String(kind) {
            return &bytes[len..];
        }
        let Some(&byte) = bytes.get(len) else { return &[] };
        match byte {
            BEL if kind == Kind::Osc => self.end_string(handler, kind, StringEnd::Bell),
            ESC => self.escape_in_string(handler, kind),
            CAN | SUB => {
                self.leave_string(handler, kind);
                handler.control(byte);
            }
            0x80.. if self.string.last() == Some(&0xc2) => {
                self.string.pop();
                self.c1_in_string(handler, kind, byte);
            }
            0x80.. => self.keep(&[byte], kind),
            _ => {}
        }
        &bytes[len + 1..]
    }

    /// Keeps a piece of a string, or decides that it is too long to be kept at all.
    fn keep(&mut self, piece: &[u8], kind: Kind) {
        if let Strings::Lenient(max) = self.rules.strings {
            let room = max.saturating_sub(self.string.len()).min(piece.len());
            self.string.extend_from_slice(&piece[..room]);
            return;
        }
        let head = self.string.iter().chain(piece).take(3);
        let (max, lost) = match kind {
            Kind::Osc if head.eq(b"52;") => (CLIPBOARD_OSC_MAX, Kind::LostOsc),
            Kind::Osc => (OSC_MAX, Kind::LostOsc),
            _ => (DCS_MAX, Kind::Lost),
        };
        if self.string.len() + piece.len() <= max {
            self.string.extend_from_slice(piece);
        } else if matches!(self.mode, Mode::String(_)) {
            self.mode = Mode::String(lost);
        }
    }

    fn escape_in_string<H: Handler>(&mut self, handler: &mut H, kind: Kind) {
        if self.rules.strings == Strings::Strict {
            self.mode = Mode::StringEscape(kind);
            return;
        }
        self.end_string(handler, kind, StringEnd::Terminator);
        self.enter_escape();
    }

    fn c1_in_string<H: Handler>(&mut self, handler: &mut H, kind: Kind, code: u8) {
        if self.rules.c1 == C1::Dropped {
            return;
        }
        if code == 0x9c {
            return self.end_string(handler, kind, StringEnd::Terminator);
        }
        self.leave_string(handler, kind);
        self.c1(handler, code);
    }

    /// Skips a string up to the byte that may end it.
    pub(super) fn skip_string<'a, H: Handler>(
        &mut self,
        handler: &mut H,
        bytes: &'a [u8],
        kind: Kind,
    ) -> &'a [u8] {
        let ends = |byte: &u8| matches!(*byte, BEL | CAN | SUB | ESC | 0x80..=0x9f | 0xc2);
        let len = bytes.iter().position(ends).unwrap_or(bytes.len());
        if len > 0 {
            self.utf8.reset();
        }
        let Some(&byte) = bytes.get(len) else { return &[] };
        if byte >= 0x80 {
            match self.utf8.feed(byte) {
                Step::Char('\u{9c}') if self.rules.c1 == C1::Obeyed => self.mode = Mode::Ground,
                Step::Char(c @ '\u{80}'..='\u{9f}') => self.c1(handler, c as u8),
                Step::Pending => {}
                _ => self.utf8.reset(),
            }
            return &bytes[len + 1..];
        }
        self.utf8.reset();
        match byte {
            CAN | SUB => {
                self.mode = Mode::Ground;
                handler.control(byte);
            }
            ESC if self.rules.strings == Strings::Strict => self.mode = Mode::StringEscape(kind),
            ESC => self.enter_escape(),
            _ if kind == Kind::LostOsc => self.mode = Mode::Ground,
            _ => {}
        }
        &bytes[len + 1..]
    }

    pub(super) fn string_escape<H: Handler>(&mut self, handler: &mut H, kind: Kind, byte: u8) {
        if byte == b'\\' {
            return self.end_string(handler, kind, StringEnd::Terminator);
        }
        self.leave_string(handler, kind);
        self.enter_escape();
        self.ascii_step(handler, byte);
    }

    /// Leaves a string that was not properly terminated.
    pub(super) fn leave_string<H: Handler>(&mut self, handler: &mut H, kind: Kind) {
        match self.rules.strings {
            Strings::Strict => self.mode = Mode::Ground,
            Strings::Lenient(_) => self.end_string(handler, kind, StringEnd::Terminator),
        }
    }

    fn end_string<H: Handler>(&mut self, handler: &mut H, kind: Kind, end: StringEnd) {
        self.mode = Mode::Ground;
        match kind {
            Kind::Osc => handler.osc(&self.string, end),
            Kind::Dcs => handler.dcs(&self.sequence, &self.string),
            Kind::LostOsc | Kind::Lost => {}
        }
        self.string.clear();
        self.string.shrink_to(OSC_MAX);
    }
}
