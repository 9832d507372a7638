//! The question where the cursor is and, on request, how large the window is, and the grammar of the answers.
//!
//! A terminal that tells programs late of a new size has it already: the cursor goes no further than the last cell.
//!
//! The answer `CSI 1 ; 5 R` is what Ctrl-F3 sends as well. So another question follows, whose answer no key sends: what
//! may be a key is an answer only right before that one.

use alloc::vec::Vec;

/// DSR 6 and DSR 5. Every terminal with control sequences answers them, in this order.
pub(super) const QUESTION: &[u8] = b"\x1b[6n\x1b[5n";

/// The same of a cursor that is sent beyond the last cell, and back to where it was.
const END_QUESTION: &[u8] = b"\x1b7\x1b[9999;9999H\x1b[6n\x1b[5n\x1b8";

/// What a terminal has told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CursorReport {
    /// The cursor's row and column, from 0.
    pub cursor: (u16, u16),
    /// The window's last row and column, from 0, if they were asked for.
    pub end: Option<(u16, u16)>,
}

/// The answer to DSR 5.
const READY: &[u8] = b"\x1b[0n";

/// Modifiers of a key, in the second parameter.
const MODIFIERS: core::ops::RangeInclusive<u16> = 2..=16;

/// Octets of an answer: two numbers of four digits at the most.
const OCTETS_MAX: usize = b"\x1b[1000;1000R".len();

/// What the beginning of some octets is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Match {
    /// The place, row and column from 0, in as many octets.
    At(u16, u16, usize),
    /// The answer to the second question, in as many octets.
    Ready(usize),
    /// What may become one of them.
    Part,
    /// The same, and a whole key as it is.
    KeyOrPart,
    /// Neither.
    Neither,
}

/// The answers that are not here yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Owed {
    places: u8,
    readies: u8,
    /// The last place told, and the one before.
    place: Option<(u16, u16)>,
    before: Option<(u16, u16)>,
    /// The place before is that of the window's end.
    has_end: bool,
    /// It is expected soon.
    is_expected: bool,
}

impl Owed {
    /// Asks for the cursor, and for the window's end before that.
    pub(super) fn ask(&mut self, has_end: bool, out: &mut Vec<u8>) {
        if has_end {
            out.extend_from_slice(END_QUESTION);
        }
        out.extend_from_slice(QUESTION);
        let count = 1 + u8::from(has_end);
        self.places = self.places.saturating_add(count);
        self.readies = self.readies.saturating_add(count);
        (self.place, self.before) = (None, None);
        self.has_end = has_end;
        self.is_expected = true;
    }

    /// Reads octets that begin with an escape; takes what is an answer.
    pub(super) fn read(&mut self, octets: &[u8]) -> Match {
        if !self.is_owed() {
            return Match::Neither;
        }
        let found = read(octets);
        match found {
            Match::At(row, col, _) if self.places > 0 => {
                self.places -= 1;
                self.before = self.place.replace((row, col));
                self.is_expected &= self.places > 0;
                found
            }
            Match::Ready(_) if self.readies > 0 => {
                self.readies -= 1;
                found
            }
            Match::KeyOrPart if self.places > 0 => found,
            Match::Part => found,
            _ => Match::Neither,
        }
    }

    /// The places, once all that was asked for has come. Asked once.
    pub(super) fn take(&mut self) -> Option<CursorReport> {
        if self.places > 0 {
            return None;
        }
        let cursor = self.place.take()?;
        let end = self.before.take().filter(|_| self.has_end);
        Some(CursorReport { cursor, end })
    }

    /// The time for the answer is over.
    pub(super) fn give_up(&mut self) {
        self.is_expected = false;
    }

    pub(super) fn is_owed(&self) -> bool {
        self.places > 0 || self.readies > 0
    }

    pub(super) fn is_expected(&self) -> bool {
        self.is_expected
    }
}

fn read(octets: &[u8]) -> Match {
    if octets.starts_with(READY) {
        return Match::Ready(READY.len());
    }
    let Some(body) = octets.strip_prefix(b"\x1b[") else {
        return if b"\x1b[".starts_with(octets) { Match::Part } else { Match::Neither };
    };
    let is_param = |octet: &u8| octet.is_ascii_digit() || *octet == b';';
    let end = body.iter().position(|octet| !is_param(octet)).unwrap_or(body.len());
    let (params, rest) = body.split_at(end);
    let mut numbers = params.split(|octet| *octet == b';').map(number);
    let (row, col, third) = (numbers.next().flatten(), numbers.next().flatten(), numbers.next());
    match (rest.first(), row, col) {
        (None, ..) if octets.len() < OCTETS_MAX => Match::Part,
        (Some(b'R'), Some(row @ 1..), Some(col @ 1..)) if third.is_none() => {
            let length = octets.len() - rest.len() + 1;
            let behind = &octets[length..];
            let at = Match::At(row - 1, col - 1, length);
            match (row, MODIFIERS.contains(&col)) {
                (1, true) if behind.starts_with(READY) => at,
                (1, true) if READY.starts_with(behind) => Match::KeyOrPart,
                (1, true) => Match::Neither,
                _ => at,
            }
        }
        _ => Match::Neither,
    }
}

fn number(word: &[u8]) -> Option<u16> {
    core::str::from_utf8(word).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;
    use crate::screen::Size;
    use crate::terminal::Terminal;

    #[test]
    fn answers_and_keys() {
        use Match::{At, KeyOrPart, Neither, Part, Ready};
        for (octets, found) in [
            ("\x1b[24;1R", At(23, 0, 7)),
            ("\x1b[24;80Rls", At(23, 79, 8)),
            ("\x1b[1;1R", At(0, 0, 6)),
            ("\x1b[1;17R", At(0, 16, 7)),
            ("\x1b[1;5R\x1b[0n", At(0, 4, 6)),
            ("\x1b[0nx", Ready(4)),
            ("\x1b[1;5R", KeyOrPart),
            ("\x1b[1;5R\x1b[0", KeyOrPart),
            ("\x1b[1;5R\x1b[24;1R", Neither),
            ("\x1b[1;5Rx", Neither),
            ("\x1b[1;5A", Neither),
            ("\x1b[0;1R", Neither),
            ("\x1b[R", Neither),
            ("\x1b[1R", Neither),
            ("\x1b[1;2;3R", Neither),
            ("\x1b[99999;1R", Neither),
            ("\x1bOR", Neither),
            ("\x1b", Part),
            ("\x1b[", Part),
            ("\x1b[1", Part),
            ("\x1b[24;", Part),
            ("\x1b[1111111111111111", Neither),
        ] {
            assert_eq!(read(octets.as_bytes()), found, "{octets:?}");
        }
    }

    #[test]
    fn each_question_has_one_answer() {
        let mut owed = Owed::default();
        assert_eq!(owed.read(b"\x1b[3;1R"), Match::Neither);
        let mut out = Vec::new();
        owed.ask(false, &mut out);
        owed.ask(false, &mut out);
        owed.read(b"\x1b[3;1R");
        assert_eq!(owed.take(), None, "that was of the window before");
        owed.read(b"\x1b[0n");
        owed.read(b"\x1b[4;1R");
        assert_eq!(owed.take(), Some(CursorReport { cursor: (3, 0), end: None }));
        assert_eq!(owed.read(b"\x1b[4;1R"), Match::Neither);
        assert!(owed.is_owed(), "of the second question");
        assert_eq!(owed.read(b"\x1b[0n"), Match::Ready(4));
        assert!(!owed.is_owed());
    }

    #[test]
    fn the_end_of_a_window() {
        for (rows, cols, col) in [(24, 80, 7), (1, 10, 7), (1, 80, 7), (2, 10, 7)] {
            let mut terminal = Terminal::new(Size::clamped(rows, cols), Dialect::ROVE);
            terminal.advance(b"\x1b[1;5Hone");
            let (mut owed, mut out) = (Owed::default(), Vec::new());
            owed.ask(true, &mut out);
            terminal.advance(&out);
            let answers = terminal.take_replies();
            let mut rest = answers.as_slice();
            while !rest.is_empty() {
                match owed.read(rest) {
                    Match::At(_, _, length) if owed.places > 0 => {
                        assert_eq!(owed.take(), None, "not all has come");
                        rest = &rest[length..];
                    }
                    Match::At(_, _, length) | Match::Ready(length) => rest = &rest[length..],
                    other => panic!("{other:?} of {rest:?}"),
                }
            }
            let end = Some((rows - 1, cols - 1));
            assert_eq!(owed.take(), Some(CursorReport { cursor: (0, col), end }), "{rows} {cols}");
            assert!(!owed.is_owed());
        }
    }
}
