//! Splits a byte stream into text, controls, control sequences and strings: the state machine of the
//! VT500 as Paul Williams drew it, over UTF-8.
//!
//! It does not know screens. A sequence cut at the end of one chunk continues in the next, and every buffer is
//! bounded. C1 controls arrive as `ESC x`, and as U+0080-9F if the rules allow it; bytes above 0x7F are always UTF-8.

mod params;
mod rules;
mod scan;
mod sequences;
mod strings;
mod types;

use alloc::vec::Vec;

use crate::utf8::{Decoder, Step};

pub use params::{PARAMS_MAX, Params, Sequence};
pub use rules::{C1, Colons, Numbers, Rules, Strings};
pub use types::{CLIPBOARD_OSC_MAX, DCS_MAX, OSC_MAX, StringEnd};

use scan::{characters, printable_len};
use types::{CAN, DEL, ESC, SUB};

/// The largest value of a number during parsing; it exceeds a `u16`, so that rules can tell.
const NUMBER_MAX: u32 = 99_999;
/// Characters that the handler gets at a time.
const RUN_CHARS: usize = 128;

/// Receives the parts of the stream.
pub trait Handler {
    /// Printable ASCII, 0x20 to 0x7E; never empty. Returns how much of it was taken: all, or at least one octet
    /// if there is [no more room](Handler::is_full).
    fn ascii(&mut self, run: &[u8]) -> usize;
    /// Characters from U+00A0 up, printable ASCII among them; never empty.
    fn chars(&mut self, run: &[char]);
    /// A C0 control other than ESC.
    fn control(&mut self, code: u8);
    /// CR and LF, the most frequent pair.
    #[inline]
    fn new_line(&mut self) {
        self.control(b'\r');
        self.control(b'\n');
    }
    /// `ESC final`, `ESC intermediate final`, or a C1 control as its `ESC` form.
    fn escape(&mut self, intermediate: Option<u8>, last: u8);
    /// A control sequence.
    fn csi(&mut self, sequence: &Sequence);
    /// An operating system command, without introducer and terminator.
    fn osc(&mut self, data: &[u8], end: StringEnd);
    /// A device control string.
    fn dcs(&mut self, sequence: &Sequence, data: &[u8]);
    /// The handler takes no more for now.
    #[inline]
    fn is_full(&self) -> bool {
        false
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Mode {
    Ground,
    Escape,
    EscapeIntermediate,
    Csi(Head),
    CsiIgnore,
    Dcs(Head),
    String(Kind),
    /// ESC within a string: a backslash makes it a terminator.
    StringEscape(Kind),
}

/// The part of a sequence's head that the parser reads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Head {
    Entry,
    Numbers,
    Intermediate,
}

/// The kind of string that the parser collects.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Osc,
    Dcs,
    /// An OSC that is too long.
    LostOsc,
    /// A string that is skipped: SOS, PM, APC, or a DCS that is too long.
    Lost,
}

/// The state between two chunks.
#[derive(Clone, Debug)]
pub struct Parser {
    rules: Rules,
    mode: Mode,
    utf8: Decoder,
    sequence: Sequence,
    /// The number being read, and how many characters of numbers there were.
    value: u32,
    value_chars: u32,
    string: Vec<u8>,
    /// Characters on their way to the handler.
    run: [char; RUN_CHARS],
}

impl Parser {
    /// A parser in the ground state.
    pub fn new(rules: Rules) -> Self {
        let sequence = Sequence { marker: 0, intermediate: 0, last: 0, params: Params::EMPTY };
        Self {
            rules,
            mode: Mode::Ground,
            utf8: Decoder::new(rules.utf8),
            sequence,
            value: 0,
            value_chars: 0,
            string: Vec::new(),
            run: ['\0'; RUN_CHARS],
        }
    }

    /// No sequence or character is half read: dropping the parser here loses nothing.
    pub fn is_idle(&self) -> bool {
        self.mode == Mode::Ground && self.utf8.is_idle()
    }

    /// Reads a chunk, until the handler is full. Returns how many octets were read; at least one, unless there is
    /// none.
    pub fn advance<H: Handler>(&mut self, handler: &mut H, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        while let Some(&byte) = rest.first() {
            rest = match self.mode {
                Mode::Ground if self.utf8.is_idle() => self.ground(handler, rest),
                Mode::String(kind @ (Kind::Osc | Kind::Dcs)) => self.string(handler, rest, kind),
                Mode::String(kind) => self.skip_string(handler, rest, kind),
                _ => {
                    self.step(handler, byte);
                    &rest[1..]
                }
            };
            if handler.is_full() {
                break;
            }
        }
        bytes.len() - rest.len()
    }

    /// Reads text, controls and whole control sequences until something is cut or changes the mode.
    fn ground<'a, H: Handler>(&mut self, handler: &mut H, mut rest: &'a [u8]) -> &'a [u8] {
        loop {
            let run = printable_len(rest);
            if run > 0 {
                let taken = handler.ascii(&rest[..run]);
                rest = &rest[taken..];
                if taken < run {
                    return rest;
                }
            }
            match *rest {
                [] => return rest,
                [ESC, b'[', ref after @ ..] => match self.whole_csi(handler, after) {
                    Some(used) => rest = &after[used..],
                    None => {
                        self.enter_csi();
                        return after;
                    }
                },
                [ESC, ref after @ ..] => {
                    self.enter_escape();
                    return after;
                }
                [b'\r', b'\n', ref after @ ..] => {
                    handler.new_line();
                    rest = after;
                }
                [code @ 0..0x20, ref after @ ..] => {
                    handler.control(code);
                    rest = after;
                }
                [DEL, ref after @ ..] => rest = after,
                _ => {
                    rest = self.text(handler, rest);
                    if !self.is_idle() {
                        return rest;
                    }
                }
            }
            if handler.is_full() {
                return rest;
            }
        }
    }

    /// A control sequence without intermediates that lies whole in the chunk: its length after `CSI`.
    #[inline]
    fn whole_csi<H: Handler>(&mut self, handler: &mut H, bytes: &[u8]) -> Option<usize> {
        let params = &mut self.sequence.params;
        params.clear();
        let marker = match bytes.first() {
            Some(&byte @ b'<'..=b'?') => byte,
            _ => 0,
        };
        let start = usize::from(marker != 0);
        let mut at = start;
        let mut value = 0u32;
        loop {
            let byte = *bytes.get(at)?;
            at += 1;
            let digit = u32::from(byte.wrapping_sub(b'0'));
            if digit < 10 {
                value = (value * 10 + digit).min(NUMBER_MAX);
                continue;
            }
            if value == 0 && at > 1 && bytes[at - 2] == b'0' {
                params.mark_zero();
            }
            match byte {
                b';' => params.push(value, &self.rules),
                b':' if self.rules.colons == Colons::Parts => {
                    params.push(value, &self.rules);
                    params.join_next();
                }
                0x40..=0x7e => break,
                _ => return None,
            }
            value = 0;
        }
        if (at - 1 - start) as u32 > self.rules.parameter_chars_max {
            return None;
        }
        if at - 1 > start {
            params.push(value, &self.rules);
        }
        self.sequence.marker = marker;
        self.sequence.intermediate = 0;
        self.sequence.last = bytes[at - 1];
        handler.csi(&self.sequence);
        Some(at)
    }

    /// Decodes characters from a byte above 0x7E on, up to a control or a stretch of ASCII.
    fn text<'a, H: Handler>(&mut self, handler: &mut H, bytes: &'a [u8]) -> &'a [u8] {
        let mut len = 0;
        let mut at = 0;
        let mut c1 = None;
        loop {
            let (found, used) = characters(&bytes[at..], &mut self.run[len..]);
            len += found;
            at += used;
            if len == RUN_CHARS {
                break;
            }
            match self.one_character(&bytes[at..], &mut at) {
                Some(c @ '\u{80}'..='\u{9f}') => {
                    c1 = Some(c);
                    break;
                }
                Some(c) => {
                    self.run[len] = c;
                    len += 1;
                }
                None => break,
            }
        }
        if len > 0 {
            handler.chars(&self.run[..len]);
        }
        if let Some(c) = c1 {
            self.c1(handler, c as u8);
        }
        &bytes[at..]
    }

    /// Decodes one character, or one U+FFFD, byte by byte; `None` when the chunk cuts it.
    fn one_character(&mut self, bytes: &[u8], at: &mut usize) -> Option<char> {
        for &byte in bytes {
            if byte < 0x80 && self.utf8.is_idle() {
                return None;
            }
            let step = if byte < 0x80 { Step::Again } else { self.utf8.feed(byte) };
            match step {
                Step::Pending => *at += 1,
                Step::Char(c) => {
                    *at += 1;
                    return Some(c);
                }
                Step::Invalid => {
                    *at += 1;
                    return Some(char::REPLACEMENT_CHARACTER);
                }
                Step::Again => {
                    self.utf8.reset();
                    return Some(char::REPLACEMENT_CHARACTER);
                }
            }
        }
        None
    }

    /// Reads one byte anywhere but in idle ground and inside strings.
    fn step<H: Handler>(&mut self, handler: &mut H, byte: u8) {
        if byte < 0x80 {
            if self.utf8.is_idle() {
                return self.ascii_step(handler, byte);
            }
            self.utf8.reset();
            self.character(handler, char::REPLACEMENT_CHARACTER);
            return self.redo(handler, byte);
        }
        match self.utf8.feed(byte) {
            Step::Pending => {}
            Step::Char(c @ '\u{80}'..='\u{9f}') => self.c1(handler, c as u8),
            Step::Char(c) => self.character(handler, c),
            Step::Invalid => self.character(handler, char::REPLACEMENT_CHARACTER),
            Step::Again => {
                self.character(handler, char::REPLACEMENT_CHARACTER);
                self.redo(handler, byte);
            }
        }
    }

    /// Reads a byte again that ended an ill-formed character and may have found another mode.
    fn redo<H: Handler>(&mut self, handler: &mut H, byte: u8) {
        let read = self.advance(handler, &[byte]);
        debug_assert_eq!(read, 1);
    }

    /// A character from U+00A0 up outside strings. In a sequence it acts as an unknown last byte.
    fn character<H: Handler>(&mut self, handler: &mut H, c: char) {
        match self.mode {
            Mode::Ground => handler.chars(&[c]),
            Mode::String(_) => {}
            Mode::StringEscape(kind) => self.leave_string(handler, kind),
            mode => {
                self.mode = match mode {
                    Mode::Dcs(_) => Mode::String(Kind::Lost),
                    _ => Mode::Ground,
                };
                if matches!(mode, Mode::Csi(_)) {
                    self.sequence.last = 0;
                    self.push_value();
                    handler.csi(&self.sequence);
                } else if matches!(mode, Mode::Escape | Mode::EscapeIntermediate) {
                    handler.escape(self.intermediate(), 0);
                }
            }
        }
    }

    fn ascii_step<H: Handler>(&mut self, handler: &mut H, byte: u8) {
        if let Mode::StringEscape(kind) = self.mode {
            return self.string_escape(handler, kind, byte);
        }
        match byte {
            CAN | SUB => {
                self.mode = Mode::Ground;
                handler.control(byte);
            }
            ESC => self.enter_escape(),
            0..0x20 if !matches!(self.mode, Mode::Dcs(_)) => handler.control(byte),
            0..0x20 | DEL => {}
            _ => match self.mode {
                Mode::Escape | Mode::EscapeIntermediate => self.escape(handler, byte),
                Mode::Csi(head) => self.csi(handler, head, byte),
                Mode::Dcs(head) => self.dcs_head(head, byte),
                Mode::CsiIgnore if byte >= 0x40 => self.mode = Mode::Ground,
                Mode::CsiIgnore => {}
                Mode::Ground => handler.chars(&[char::from(byte)]),
                Mode::String(_) | Mode::StringEscape(_) => {}
            },
        }
    }

    fn enter_escape(&mut self) {
        self.clear();
        self.mode = Mode::Escape;
    }

    fn enter_csi(&mut self) {
        self.clear();
        self.mode = Mode::Csi(Head::Entry);
    }

    fn enter_string(&mut self, kind: Kind) {
        self.string.clear();
        self.mode = Mode::String(kind);
    }

    /// A C1 control that came as a character, wherever it comes.
    fn c1<H: Handler>(&mut self, handler: &mut H, code: u8) {
        if self.rules.c1 == C1::Dropped {
            return;
        }
        if let Mode::StringEscape(kind) = self.mode {
            self.leave_string(handler, kind);
        }
        match code {
            0x90 => {
                self.clear();
                self.mode = Mode::Dcs(Head::Entry);
            }
            0x98 | 0x9e | 0x9f => self.mode = Mode::String(Kind::Lost),
            0x9b => self.enter_csi(),
            0x9d => self.enter_string(Kind::Osc),
            0x9c => self.mode = Mode::Ground,
            _ => {
                self.mode = Mode::Ground;
                handler.escape(None, code - 0x40);
            }
        }
    }
}
