//! Reads keys out of the octets of one read of the tty.
//!
//! It knows the encodings that terminals use, and nothing of screens or guesses.

use rove_term::utf8::{Decoder, Step, Utf8Rule};

use crate::predict::settings::Rules;

/// One key, as far as its effect may be guessed.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) enum Key {
    /// A printable character.
    Char(char),
    /// DEL or BS: erases to the left.
    Backspace,
    /// CR.
    Enter,
    /// Cursor left.
    Left,
    /// Cursor right.
    Right,
    /// Cursor up.
    Up,
    /// Cursor down.
    Down,
    /// The Home key.
    Home,
    /// The End key.
    End,
    /// The Delete key.
    Delete,
    /// Ctrl-B: cursor left, where it is not a prefix.
    BackwardChar,
    /// Ctrl-F.
    ForwardChar,
    /// Ctrl-P.
    PreviousLine,
    /// Ctrl-N.
    NextLine,
    /// Ctrl-A.
    LineBegin,
    /// Ctrl-E.
    LineEnd,
    /// Ctrl-D: deletes forward, or ends the input.
    DeleteChar,
    /// Ctrl-K.
    KillRight,
    /// Ctrl-U.
    KillLeft,
    /// Ctrl-W or Alt-DEL.
    KillWord,
    /// Alt-B, or Left with a modifier.
    WordLeft,
    /// Alt-F, or Right with a modifier.
    WordRight,
    /// The bracket before pasted text.
    PasteBegin,
    /// The bracket after pasted text.
    PasteEnd,
    /// The octet that leads an escape sequence, alone.
    Escape,
    /// Anything else: a control character, a function key, a mouse report.
    Other,
}

impl Key {
    /// As a motion, it leaves the row.
    pub(crate) fn changes_row(self) -> bool {
        matches!(self, Self::Up | Self::Down | Self::PreviousLine | Self::NextLine)
    }

    /// Behind it another program, or another mode of one, may be reading.
    pub(crate) fn changes_reader(self) -> bool {
        matches!(self, Self::Enter | Self::Escape | Self::Other)
    }
}

/// Parameters of a sequence that are kept; more are dropped.
const PARAMETERS_MAX: usize = 4;

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum State {
    #[default]
    Ground,
    Escape,
    Csi,
    /// The string of an OSC, DCS, APC, PM or SOS.
    Text,
}

/// Octets to keys.
///
/// By stock's rules the parser keeps its state between reads, and knows C and D after CSI with any
/// parameters. By ours a read ends every sequence: a lone ESC is the Escape key, which editors take
/// as a command.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    rules: Rules,
    state: State,
    parameters: [u16; PARAMETERS_MAX],
    count: usize,
    utf8: Decoder,
}

impl Keys {
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            rules,
            state: State::Ground,
            parameters: [0; PARAMETERS_MAX],
            count: 0,
            utf8: Decoder::new(Utf8Rule::MaximalSubpart),
        }
    }

    /// Takes one octet; a key comes out when it completes one.
    pub(crate) fn octet(&mut self, octet: u8) -> Option<Key> {
        match self.scalar(octet)? {
            c if self.state == State::Ground || (c as u32) < 0x20 => self.ground(c),
            c if self.state == State::Escape => self.escape(c),
            c if self.state == State::Csi => self.csi(c),
            '\u{9c}' => self.done(Key::Other),
            _ => None,
        }
    }

    /// The read is over. By our rules so is every sequence.
    pub(crate) fn end(&mut self) -> Option<Key> {
        if self.rules == Rules::Stock {
            return None;
        }
        // Terminals send a sequence in one write, so a read that ends in ESC is the key.
        self.utf8.reset();
        let begun = core::mem::take(&mut self.state);
        match begun {
            State::Ground => None,
            State::Escape => Some(Key::Escape),
            State::Csi | State::Text => Some(Key::Other),
        }
    }

    /// Puts UTF-8 together; ill-formed octets give U+FFFD.
    fn scalar(&mut self, octet: u8) -> Option<char> {
        if octet.is_ascii() {
            self.utf8.reset();
            return Some(char::from(octet));
        }
        match self.utf8.feed(octet) {
            Step::Pending => None,
            Step::Char(c) => Some(c),
            Step::Invalid => Some(char::REPLACEMENT_CHARACTER),
            // The octets before were cut short; this one begins anew.
            Step::Again => self.scalar(octet),
        }
    }

    fn done(&mut self, key: Key) -> Option<Key> {
        self.state = State::Ground;
        Some(key)
    }

    fn ground(&mut self, c: char) -> Option<Key> {
        let ours = self.rules == Rules::Rove;
        let key = match c {
            '\x1b' => {
                // A second ESC starts anew; the first was a key of its own.
                let before = core::mem::replace(&mut self.state, State::Escape);
                let alone = ours && before != State::Ground;
                return alone.then_some(Key::Escape);
            }
            '\u{9b}' => {
                self.begin_csi();
                return None;
            }
            '\x7f' => Key::Backspace,
            '\r' => Key::Enter,
            '\x01' if ours => Key::LineBegin,
            '\x02' if ours => Key::BackwardChar,
            '\x04' if ours => Key::DeleteChar,
            '\x05' if ours => Key::LineEnd,
            '\x06' if ours => Key::ForwardChar,
            '\x08' if ours => Key::Backspace,
            '\x0b' if ours => Key::KillRight,
            '\x0e' if ours => Key::NextLine,
            '\x10' if ours => Key::PreviousLine,
            '\x15' if ours => Key::KillLeft,
            '\x17' if ours => Key::KillWord,
            c if c.is_control() => Key::Other,
            c => Key::Char(c),
        };
        // Stock's parser executes a control inside a sequence and goes on with the sequence.
        if ours || matches!(c, '\x18' | '\x1a') {
            self.state = State::Ground;
        }
        Some(key)
    }

    fn begin_csi(&mut self) {
        self.state = State::Csi;
        self.parameters = [0; PARAMETERS_MAX];
        self.count = 0;
    }

    fn escape(&mut self, c: char) -> Option<Key> {
        let ours = self.rules == Rules::Rove;
        match c {
            // SS3 leads the arrows in application mode.
            '[' | 'O' => {
                self.begin_csi();
                None
            }
            'P' | 'X' | ']' | '^' | '_' if !ours => {
                self.state = State::Text;
                None
            }
            // Intermediates: the sequence goes on.
            ' '..='/' if !ours => None,
            'b' if ours => self.done(Key::WordLeft),
            'f' if ours => self.done(Key::WordRight),
            '\x7f' if ours => self.done(Key::KillWord),
            _ => self.done(Key::Other),
        }
    }

    fn csi(&mut self, c: char) -> Option<Key> {
        match c {
            '0'..='9' => {
                let digit = c as u16 - '0' as u16;
                if let Some(number) = self.parameters.get_mut(self.count) {
                    *number = number.saturating_mul(10).saturating_add(digit);
                }
                None
            }
            ';' => {
                self.count = self.count.saturating_add(1);
                None
            }
            ' '..='?' => None,
            '@'..='~' => {
                let key = self.csi_key(c);
                self.done(key)
            }
            '\x7f' => None,
            _ => self.done(Key::Other),
        }
    }

    fn csi_key(&self, last: char) -> Key {
        if self.rules == Rules::Stock {
            return match last {
                'C' => Key::Right,
                'D' => Key::Left,
                _ => Key::Other,
            };
        }
        // xterm: the second parameter is one more than the bits of the modifiers.
        let modified = self.parameters[1] > 1;
        match (last, self.parameters[0], modified) {
            ('A', _, false) => Key::Up,
            ('B', _, false) => Key::Down,
            ('C', _, false) => Key::Right,
            ('D', _, false) => Key::Left,
            ('C', _, true) => Key::WordRight,
            ('D', _, true) => Key::WordLeft,
            ('H', _, false) | ('~', 1 | 7, false) => Key::Home,
            ('F', _, false) | ('~', 4 | 8, false) => Key::End,
            ('~', 3, false) => Key::Delete,
            ('~', 200, _) => Key::PasteBegin,
            ('~', 201, _) => Key::PasteEnd,
            _ => Key::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(rules: Rules, reads: &[&str]) -> Vec<Key> {
        let mut keys = Keys::new(rules);
        let mut out = Vec::new();
        for read in reads {
            out.extend(read.bytes().filter_map(|octet| keys.octet(octet)));
            out.extend(keys.end());
        }
        out
    }

    #[test]
    fn ours() {
        use Key::*;
        for (reads, want) in [
            (&["aé\u{4e2d}"][..], &[Char('a'), Char('é'), Char('\u{4e2d}')][..]),
            (&["\x7f\r\x08"], &[Backspace, Enter, Backspace]),
            (&["\x1b[D\x1bOC\x1b[1;5D\x1b[1;3C"], &[Left, Right, WordLeft, WordRight]),
            (&["\x1b[H\x1bOF\x1b[1~\x1b[8~\x1b[3~"], &[Home, End, Home, End, Delete]),
            (&["\x01\x05\x0b\x15\x17"], &[LineBegin, LineEnd, KillRight, KillLeft, KillWord]),
            (&["\x1bb\x1bf\x1b\x7f"], &[WordLeft, WordRight, KillWord]),
            (&["\x1b", "O"], &[Escape, Char('O')]),
            (&["\x1b[", "D"], &[Other, Char('D')]),
            (&["\x1b\x1b[D"], &[Escape, Left]),
            (&["\x1b[200~x\x1b[201~"], &[PasteBegin, Char('x'), PasteEnd]),
            (&["\x1b[15~\x1b[M"], &[Other, Other]),
            (&["\u{9b}D\t"], &[Left, Other]),
        ] {
            assert_eq!(read(Rules::Rove, reads), want, "{reads:?}");
        }
    }

    #[test]
    fn stock() {
        use Key::*;
        for (reads, want) in [
            (&["\x1b", "[", "D"][..], &[Left][..]),
            (&["\x1bOC\x1b[1;5D"], &[Right, Left]),
            (&["\x01\x1b[3~\x1b[H"], &[Other, Other, Other]),
            (&["\x1b", "Oabc"], &[Other, Char('b'), Char('c')]), // any final ends CSI
            (&["\x1bj\x1b]0;x"], &[Other]),
        ] {
            assert_eq!(read(Rules::Stock, reads), want, "{reads:?}");
        }
    }
}
