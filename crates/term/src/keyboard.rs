//! Translates keys from the protocol of the user's terminal to the one that the program asked for: kitty's flags,
//! xterm's modifyOtherKeys, or neither.
//!
//! If the terminal has the protocol that the program asked for, the client requests it too, and keys pass unchanged.
//! A terminal with only the other protocol gets a request for that one, and a terminal with neither gets none; their
//! keys are rewritten as far as the octets identify them. Pasted text and mouse reports pass unchanged, except that
//! positions become pixels for a program that wants pixels.
//!
//! Input is hostile: only the beginning of one sequence is kept. There is no clock here: the caller decides when to
//! wait no more for the rest of a sequence.

mod key;
mod lex;
mod protocol;

use alloc::format;
use alloc::vec::Vec;

use crate::keyboard::key::{ALL_KEYS, Key};
use crate::keyboard::lex::{Bare, Piece};
use crate::keyboard::protocol::{Brackets, Form, Protocol};

pub use crate::keyboard::protocol::KeyboardProtocol;

/// Octets of a sequence cut short that are kept; longer ones are no keys.
const HELD_BYTES_MAX: usize = 64;

const ESC: u8 = 0x1b;
const PASTE_BEGIN: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

/// One piece of typed input.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Typed<'a> {
    /// Octets that each count as typed, and go to the program as they are.
    Octets(&'a [u8]),
    /// One key: what terminals without a protocol send for it, none if it types nothing, and what goes to
    /// the program.
    Key {
        /// Octets for those who want to know which key it is.
        plain: &'a [u8],
        /// Octets for the program.
        sent: &'a [u8],
    },
    /// Pasted: no keys at all.
    Pasted(&'a [u8]),
}

/// Whether the input is inside pasted text, and how many octets of the next bracket have come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Paste {
    Outside(usize),
    Inside(usize),
}

/// Translates the octets from the terminal for the program.
#[derive(Clone, Debug)]
pub struct Keyboard {
    held: Vec<u8>,
    paste: Paste,
}

impl Default for Keyboard {
    fn default() -> Self {
        Self { held: Vec::new(), paste: Paste::Outside(0) }
    }
}

impl Keyboard {
    /// Reads octets from the terminal and returns the typed input in its order.
    pub fn read(
        &mut self,
        octets: &[u8],
        manner: &KeyboardProtocol,
        typed: &mut impl FnMut(Typed<'_>),
    ) {
        let joined;
        let mut rest = match self.held.is_empty() {
            true => octets,
            false => {
                self.held.extend_from_slice(octets);
                joined = core::mem::take(&mut self.held);
                &joined
            }
        };
        if manner.brackets == Brackets::Ignored {
            self.end_paste();
        }
        while !rest.is_empty() {
            if let Paste::Outside(1..) = self.paste
                && manner.reads()
            {
                let length = self.pass_bracket(rest);
                typed(Typed::Octets(&rest[..length]));
                rest = &rest[length..];
            } else if let Paste::Inside(_) = self.paste {
                let length = self.pass_brackets(rest);
                typed(Typed::Pasted(&rest[..length]));
                rest = &rest[length..];
            } else if !manner.reads() {
                rest = self.pass(rest, manner, typed);
            } else if let Some((piece, length)) = lex::read(rest, manner.bare) {
                self.take(&piece, &rest[..length], manner, typed);
                rest = &rest[length..];
            } else if rest.len() <= HELD_BYTES_MAX && manner.holds(rest) {
                self.held = rest.to_vec();
                return;
            } else {
                rest = self.pass(rest, manner, typed);
            }
        }
    }

    /// Releases the octets held: the rest of their sequence did not come.
    pub fn release(&mut self, manner: &KeyboardProtocol, typed: &mut impl FnMut(Typed<'_>)) {
        let held = core::mem::take(&mut self.held);
        match held[..] {
            [] => {}
            [ESC] => self.take(&Piece::Control(ESC), &held, manner, typed),
            [ESC, _] => self.take(&Piece::Alt(&held[1..]), &held, manner, typed),
            _ => {
                let mut rest = &held[..];
                while !rest.is_empty() {
                    rest = self.pass(rest, manner, typed);
                }
            }
        }
    }

    /// Octets held, at most 64.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Whether the next octets are pasted, as far as known.
    pub fn is_pasting(&self) -> bool {
        matches!(self.paste, Paste::Inside(_))
    }

    /// Treats the next octets as typed, even after an opening bracket of a paste.
    pub fn end_paste(&mut self) {
        self.paste = Paste::Outside(0);
    }

    /// The octets for the program for one that terminals without a protocol send for a key.
    pub fn write_octet(octet: u8, manner: &KeyboardProtocol, out: &mut Vec<u8>) {
        let printable = (b' '..=b'~').contains(&octet);
        let key = match printable {
            true => Some(Key::of_char(octet.into())),
            false => Key::of_control(octet),
        };
        match (key, manner.form) {
            (Some(key), Form::Kitty(flags)) => key.write_kitty(flags, out),
            // The flags themselves are the terminal's business: this is how all of them write it.
            (Some(key), Form::Same(Protocol::Kitty)) => key.write_kitty(1, out),
            (Some(key), Form::Modified(level)) => key.write_modified(level, out),
            _ => out.push(octet),
        }
    }

    /// Hands octets on as they are, up to the end of the next bracket; returns the rest.
    fn pass<'a>(
        &mut self,
        octets: &'a [u8],
        manner: &KeyboardProtocol,
        typed: &mut impl FnMut(Typed<'_>),
    ) -> &'a [u8] {
        let length = match manner.brackets {
            Brackets::Heeded => self.pass_brackets(octets),
            Brackets::Ignored => octets.len(),
        };
        let (passed, rest) = octets.split_at(length);
        typed(Typed::Octets(passed));
        rest
    }

    /// How many octets go on with a bracket whose beginning has passed.
    fn pass_bracket(&mut self, octets: &[u8]) -> usize {
        let Paste::Outside(matched) = self.paste else { return 0 };
        let wanted = &PASTE_BEGIN[matched..];
        let common = wanted.iter().zip(octets).take_while(|(a, b)| a == b).count();
        self.paste = match common {
            _ if common == wanted.len() => Paste::Inside(0),
            _ if common == octets.len() => Paste::Outside(matched + common),
            _ => Paste::Outside(0),
        };
        common
    }

    /// How many octets there are up to the end of the next bracket, or at all.
    fn pass_brackets(&mut self, octets: &[u8]) -> usize {
        let (bracket, mut matched, beyond) = match self.paste {
            Paste::Outside(matched) => (PASTE_BEGIN, matched, Paste::Inside(0)),
            Paste::Inside(matched) => (PASTE_END, matched, Paste::Outside(0)),
        };
        for (index, &octet) in octets.iter().enumerate() {
            matched = match octet {
                _ if octet == bracket[matched] => matched + 1,
                ESC => 1,
                _ => 0,
            };
            if matched == bracket.len() {
                self.paste = beyond;
                return index + 1;
            }
        }
        self.paste = match self.paste {
            Paste::Outside(_) => Paste::Outside(matched),
            Paste::Inside(_) => Paste::Inside(matched),
        };
        octets.len()
    }

    fn take(
        &mut self,
        piece: &Piece<'_>,
        raw: &[u8],
        manner: &KeyboardProtocol,
        typed: &mut impl FnMut(Typed<'_>),
    ) {
        if raw == PASTE_BEGIN && manner.brackets == Brackets::Heeded {
            self.paste = Paste::Inside(0);
            return typed(Typed::Pasted(raw));
        }
        if let (Piece::Mouse(report, last), Some(cell)) = (piece, manner.cell) {
            let sent = in_pixels(*report, *last, cell);
            return typed(Typed::Key { plain: raw, sent: &sent });
        }
        let mut sent = Vec::new();
        match (manner.form, piece) {
            (Form::Octets, _) | (_, Piece::Mouse(..) | Piece::Other) => typed(Typed::Octets(raw)),
            (Form::Same(_), Piece::Key(key)) => {
                let plain = key.legacy();
                typed(Typed::Key { plain: plain.as_deref().unwrap_or(raw), sent: raw });
            }
            (Form::Same(_), Piece::Function(function)) => {
                typed(Typed::Key { plain: &function.legacy(), sent: raw });
            }
            (Form::Same(_), _) => typed(Typed::Octets(raw)),
            (Form::Kitty(flags), Piece::Text(text))
                if flags & ALL_KEYS != 0
                    && let Ok(text) = str::from_utf8(text) =>
            {
                let mut octets = [0; 4];
                for c in text.chars() {
                    sent.clear();
                    Key::of_char(c).write_kitty(flags, &mut sent);
                    let plain = c.encode_utf8(&mut octets).as_bytes();
                    typed(Typed::Key { plain, sent: &sent });
                }
            }
            (_, Piece::Text(_)) => typed(Typed::Octets(raw)),
            (Form::Modified(_), Piece::Function(_)) if raw.starts_with(b"\x1bO") => {
                typed(Typed::Octets(raw));
            }
            (form, Piece::Function(function)) => {
                let plain = function.legacy();
                match form {
                    Form::Kitty(_) => function.write_kitty(&mut sent),
                    _ => sent.extend_from_slice(&plain),
                }
                typed(Typed::Key { plain: &plain, sent: &sent });
            }
            (form, Piece::Control(_) | Piece::Alt(_) | Piece::Key(_)) => {
                let Some(key) = key_of(piece) else { return typed(Typed::Octets(raw)) };
                match form {
                    Form::Kitty(flags) => key.write_kitty(flags, &mut sent),
                    Form::Modified(level) => key.write_modified(level, &mut sent),
                    Form::Octets | Form::Same(_) => {}
                }
                let plain = key.legacy();
                typed(Typed::Key { plain: plain.as_deref().unwrap_or(raw), sent: &sent });
            }
        }
    }
}

/// The key that a piece stands for, if it stands for one only.
fn key_of(piece: &Piece<'_>) -> Option<Key> {
    match *piece {
        Piece::Control(octet) => Key::of_control(octet),
        Piece::Alt(&[octet @ (0..0x20 | 0x7f)]) => Some(Key::of_control(octet)?.with_alt()),
        Piece::Alt(text) => {
            let c = str::from_utf8(text).ok()?.chars().next()?;
            Some(Key::of_char(c).with_alt())
        }
        Piece::Key(key) => Some(key),
        _ => None,
    }
}

/// Whether this is nothing but reports that the mouse has moved, in the form of mode 1006 or the oldest. Presses, releases
/// and the wheel are none.
pub fn is_mouse_motion(octets: &[u8]) -> bool {
    let mut rest = octets;
    while !rest.is_empty() {
        let (button, length) = match *rest {
            [ESC, b'[', b'M', button, _, _, ..] => (button.wrapping_sub(b' ').into(), 6),
            _ => match lex::read(rest, Bare::None) {
                Some((Piece::Mouse([button, ..], _), length)) => (button, length),
                _ => return false,
            },
        };
        if button & MOTION == 0 {
            return false;
        }
        rest = &rest[length..];
    }
    !octets.is_empty()
}

/// The bit of a mouse report's button that says that it moved.
const MOTION: u32 = 32;

/// A report in cells, from 1, as one in pixels, from 1: the middle of the cell.
fn in_pixels([button, col, row]: [u32; 3], last: u8, (width, height): (u32, u32)) -> Vec<u8> {
    let middle = |cell: u32, side: u32| {
        cell.saturating_sub(1).saturating_mul(side).saturating_add(side / 2).saturating_add(1)
    };
    let (x, y) = (middle(col, width), middle(row, height));
    format!("\x1b[<{button};{x};{y}{}", char::from(last)).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Ability::{KittyKeys, ModifyOtherKeys};
    use crate::dialect::Dialect;
    use crate::screen::Size;
    use crate::screen::properties::TerminalProperties;
    use crate::terminal::Terminal;

    /// Terminals that understand neither protocol, modifyOtherKeys, kitty's, and both.
    fn terminals() -> [Dialect; 4] {
        let plain = Dialect::tty("xterm", "").without(ModifyOtherKeys);
        let kitty = plain.with(KittyKeys);
        [plain, plain.with(ModifyOtherKeys), kitty, kitty.with(ModifyOtherKeys)]
    }

    fn manner(program: &str, dialect: &Dialect) -> KeyboardProtocol {
        let mut terminal = Terminal::new(Size::DEFAULT, Dialect::ROVE);
        terminal.advance(program.as_bytes());
        KeyboardProtocol::of(terminal.screen().modes(), dialect, &TerminalProperties::default())
    }

    #[derive(Default)]
    struct Read {
        sent: String,
        plain: String,
    }

    impl Read {
        fn take(&mut self, typed: Typed<'_>) {
            let (plain, sent) = match typed {
                Typed::Octets(octets) | Typed::Pasted(octets) => (octets, octets),
                Typed::Key { plain, sent } => (plain, sent),
            };
            self.plain.push_str(&String::from_utf8_lossy(plain));
            self.sent.push_str(&String::from_utf8_lossy(sent));
        }

        /// The output for these octets in pieces of this length, once no more come.
        fn of(octets: &str, piece: usize, manner: &KeyboardProtocol) -> Self {
            let mut keyboard = Keyboard::default();
            let mut read = Self::default();
            for piece in octets.as_bytes().chunks(piece) {
                keyboard.read(piece, manner, &mut |typed| read.take(typed));
                assert!(keyboard.held() <= HELD_BYTES_MAX);
            }
            keyboard.release(manner, &mut |typed| read.take(typed));
            read
        }
    }

    fn check(program: &str, dialect: &Dialect, typed: &str, want: &str) {
        let manner = manner(program, dialect);
        let read = Read::of(typed, typed.len().max(1), &manner);
        assert_eq!(read.sent, want, "{typed:?} for a program that said {program:?}");
    }

    #[test]
    fn legacy_keys_for_a_program_that_wants_kitty() {
        let [plain, ..] = terminals();
        for (flags, typed, want) in [
            (1, "ls -l\r\t\x7f", "ls -l\r\t\x7f"),
            (1, "A!\u{e9}", "A!\u{e9}"),
            (1, "\x1b", "\x1b[27u"),
            (1, "\x1bx", "\x1b[120;3u"),
            (1, "\x1bX", "\x1b[120;4u"),
            (1, "\x1b\u{e9}", "\x1b[233;3u"),
            (1, "\x1b\x7f\x1b\r", "\x1b[127;3u\x1b[13;3u"),
            (1, "\x18\x03", "\x1b[120;5u\x1b[99;5u"),
            (1, "\x1b\x18", "\x1b[120;7u"),
            (1, "\0\x1e\x1f\x1c\x1d", "\x1b[32;5u\x1b[94;5u\x1b[95;5u\x1b[92;5u\x1b[93;5u"),
            (1, "\x08", "\x08"),
            (1, "\x1bOA\x1b[B\x1b[1;5C", "\x1b[A\x1b[B\x1b[1;5C"),
            (1, "\x1bOP\x1bOR\x1b[1;5R\x1b[15~", "\x1b[P\x1b[13~\x1b[13;5~\x1b[15~"),
            (1, "\x1bOH\x1b[3~\x1b[Z", "\x1b[H\x1b[3~\x1b[9;2u"),
            (1, "\x1b[I\x1b[O\x1b[?1;2c\x1b[M", "\x1b[I\x1b[O\x1b[?1;2c\x1b[M"),
            (1, "\x1b\x1b[A", "\x1b[27u\x1b[A"),
            (1, "\x1b[[A", "\x1b[[A"),
            (1, "\x1b]52;c;YQ==\x07a", "\x1b]52;c;YQ==\x07a"),
            (1, "\x1b[", "\x1b[91;3u"),
            (1, "\x1bO", "\x1b[111;4u"),
            (2, "\x1b\x18\x1bx", "\x1b\x18\x1bx"),
            (8, "\x1b[[A", "\x1b[[A"),
            (8, "aA!\r", "\x1b[97u\x1b[97;2u\x1b[33u\x1b[13u"),
            (12, "A", "\x1b[97:65;2u"),
            (24, "aA!\u{e9}\x01", "\x1b[97;;97u\x1b[97;2;65u\x1b[33;;33u\x1b[233;;233u\x1b[97;5u"),
            (31, "\t", "\x1b[9u"),
        ] {
            check(&format!("\x1b[>{flags}u"), &plain, typed, want);
        }
    }

    #[test]
    fn modified_keys_for_a_program_that_wants_kitty() {
        let [_, modify, ..] = terminals();
        for (typed, want) in [
            ("\x1b[27;5;120~", "\x1b[120;5u"),
            ("\x1b[27;6;65~", "\x1b[97;6u"),
            ("\x1b[27;2;65~", "A"),
            ("\x1b[27;6;94~", "\x1b[94;5u"),
            ("\x1b[27;2;13~\x1b[27;5;9~", "\x1b[13;2u\x1b[9;5u"),
            ("\x1b[27;3;120~\x1b[27;2;32~", "\x1b[120;3u "),
            ("\x1b", "\x1b[27u"),
            ("\x1b[120;5u", "\x1b[120;5u"),
            ("\x1b[27;99999999999;1~", "\x1b[27;99999999999;1~"),
        ] {
            check("\x1b[>1u", &modify, typed, want);
        }
    }

    #[test]
    fn kitty_keys_for_a_program_that_wants_them_modified() {
        let [_, _, kitty, _] = terminals();
        for (level, typed, want) in [
            (2, "\x1b[120;5u\x1b[97:65;6u", "\x1b[27;5;120~\x1b[27;6;65~"),
            (2, "\x1b[54:94;6u", "\x1b[27;6;94~"),
            (2, "\x1b[27u\x1b[13;2u\x1b[127;5u", "\x1b\x1b[27;2;13~\x1b[27;5;127~"),
            (2, "\x1b[120;3u\x1b[9;2u", "\x1b[27;3;120~\x1b[27;2;9~"),
            (1, "\x1b[120;5u\x1b[120;3u\x1b[9;2u", "\x18\x1bx\x1b[Z"),
            (1, "\x1b[44;5u\x1b[9;5u\x1b[27u", "\x1b[27;5;44~\x1b[27;5;9~\x1b"),
            (1, "\x1b[27;5u\x1b[97;69u", "\x1b[27;5;27~\x01"),
            (2, "\x1b[A\x1b[1;5A\x1b[P\x1b[13~\x1b[H", "\x1bOA\x1b[1;5A\x1bOP\x1bOR\x1b[H"),
            (2, "\x1b[57400u\x1b[57414u\x1b[57419u\x1b[57421;5u", "1\r\x1bOA\x1b[5;5~"),
            (2, "\x1b[97;9u\x1b[57441;2u\x1b[57428u", ""),
            (2, "text \u{e9}\r", "text \u{e9}\r"),
        ] {
            check(&format!("\x1b[>4;{level}m"), &kitty, typed, want);
        }
    }

    /// Where the terminal has what the program asks for, octets pass; and with no program asking they do.
    #[test]
    fn what_both_speak_passes_untouched() {
        let [plain, modify, kitty, both] = terminals();
        let all =
            "a\x1b\x1bx\x18\x1b[120;5u\x1b[97;1:3u\x1b[27;5;120~\x1bOA\x1b[57414u\x1b[1;5:3A\u{e9}";
        for (program, dialects) in [
            ("", &[plain, modify, kitty, both][..]),
            ("\x1b[>31u", &[kitty, both]),
            ("\x1b[>1u\x1b[>4;2m", &[kitty, both]),
            ("\x1b[>4;2m", &[modify, both]),
        ] {
            for dialect in dialects {
                check(program, dialect, all, all);
            }
        }
    }

    #[test]
    fn what_legacy_terminals_would_send() {
        let [_, _, kitty, _] = terminals();
        let manner = manner("\x1b[>31u", &kitty);
        for (typed, plain) in [
            ("\x1b[97u\x1b[97;2u\x1b[97;1:3u", "aA"),
            ("\x1b[94;5u", "\x1e"),
            ("\x1b[54;6u\x1b[54:94;6u\x1b[54;5u", "\x1e\x1e\x1e"),
            ("\x1b[57442;5u\x1b[45;6u", "\x1f"),
            ("\x1b[122;5u\x1b[46u", "\x1a."),
            ("\x1b[54;2;94u", "^"),
            ("\x1b[27u\x1b[127;5u\x1b[13;5u\x1b[9;2u", "\x1b\x08\r\x1b[Z"),
            ("\x1b[D\x1b[1;5C\x1b[1;1:3D\x1b[3;1:2~", "\x1bOD\x1b[1;5C\x1b[3~"),
            ("\x1b[120;3u\x1b[97;193u", "\x1bxa"),
            ("\x1b[97;9u", "\x1b[97;9u"),
        ] {
            assert_eq!(Read::of(typed, typed.len(), &manner).plain, plain, "{typed:?}");
        }
    }

    #[test]
    fn pasted_text_and_the_mouse_pass_untouched() {
        let pasted = "\x1b[200~a\x1b\x18\x1b[27;5;120~\x1b[20\x1b[201~";
        let wanted = pasted.to_owned() + "\x1b[120;5u";
        for dialect in terminals() {
            let kitty = manner("\x1b[>1u\x1b[?2004h", &dialect);
            let typed =
                pasted.to_owned() + if dialect.can(KittyKeys) { "\x1b[120;5u" } else { "\x18" };
            for piece in 6..=typed.len() {
                assert_eq!(Read::of(&typed, piece, &kitty).sent, wanted, "in pieces of {piece}");
            }
        }
        let [plain, ..] = terminals();
        for (mouse, report) in [
            ("\x1b[?1000h", "\x1b[M \x18\x03"),
            ("\x1b[?1000;1005h", "\x1b[M \u{e9}\x18"),
            ("\x1b[?1000;1006h", "\x1b[<0;24;3M"),
            ("\x1b[?1000;1015h", "\x1b[32;24;3M"),
        ] {
            check(
                &format!("\x1b[>1u{mouse}"),
                &plain,
                &format!("{report}\x18"),
                &format!("{report}\x1b[120;5u"),
            );
        }
    }

    #[test]
    fn motion_is_no_key() {
        for (octets, is_motion) in [
            ("\x1b[<35;24;3M", true),
            ("\x1b[<35;24;3M\x1b[<32;25;3M", true),
            ("\x1b[MC!!", true),
            ("\x1b[M@!!\x1b[<35;1;1M", true),
            ("\x1b[<0;24;3M", false),
            ("\x1b[<0;24;3m", false),
            ("\x1b[<64;24;3M", false),
            ("\x1b[M !!", false),
            ("\x1b[<35;24;3Mx", false),
            ("x\x1b[<35;24;3M", false),
            ("\x1b[<35;24", false),
            ("\x1b[M", false),
            ("\x1b[A", false),
            ("", false),
        ] {
            assert_eq!(is_mouse_motion(octets.as_bytes()), is_motion, "{octets:?}");
        }
    }

    /// Brackets are found however they are cut, and whether or not the rest came late.
    #[test]
    fn brackets_are_found_however_they_are_cut() {
        let [plain, modify, kitty, _] = terminals();
        let text = "a\x1b[200~b";
        for (program, dialect) in
            [("", plain), ("\x1b[?1003;1016h", plain), ("\x1b[>4;2m", modify), ("\x1b[>1u", kitty)]
        {
            let manner = manner(&format!("{program}\x1b[?2004h"), &dialect);
            for cut in 1..text.len() {
                // Whoever waits for a key takes what came of one to be one.
                let keyed = manner.form == Form::Same(Protocol::Kitty) && (2..4).contains(&cut);
                for late in [false, true] {
                    let (first, rest) = text.as_bytes().split_at(cut);
                    let (mut keyboard, mut read) = (Keyboard::default(), Read::default());
                    keyboard.read(first, &manner, &mut |typed| read.take(typed));
                    if late {
                        keyboard.release(&manner, &mut |typed| read.take(typed));
                    }
                    keyboard.read(rest, &manner, &mut |typed| read.take(typed));
                    assert_eq!(read.sent, text, "{program:?} cut at {cut}");
                    let pasting = keyboard.is_pasting();
                    assert_eq!(pasting, !(late && keyed), "{program:?} cut at {cut}");
                }
            }
        }
    }

    #[test]
    fn places_in_pixels() {
        let dialect = Dialect::tty("xterm-256color", "");
        let program = "\x1b[?1003;1016h";
        let mut around = TerminalProperties::default();
        let mut terminal = Terminal::new(Size::DEFAULT, Dialect::ROVE);
        terminal.advance(program.as_bytes());
        for (cell, typed, want) in [
            (None, "\x1b[<0;1;1M\x1b[<35;3;2m", "\x1b[<0;6;11M\x1b[<35;26;31m"),
            (Some((8, 16)), "x\x1b[<0;80;24M\x1b", "x\x1b[<0;637;377M\x1b"),
            (Some((8, 16)), "\x1b[<0;4294967295;1M", "\x1b[<0;4294967295;9M"),
            (Some((8, 16)), "\x1b[<0;1M\x1b[<x;1;1M", "\x1b[<0;1M\x1b[<x;1;1M"),
        ] {
            around.cell = cell;
            let manner = KeyboardProtocol::of(terminal.screen().modes(), &dialect, &around);
            assert_eq!(Read::of(typed, typed.len(), &manner).sent, want, "{typed:?}");
        }
        let pixels = dialect.with(crate::dialect::Ability::MousePixels);
        check(program, &pixels, "\x1b[<0;1;1M", "\x1b[<0;1;1M");
    }

    /// A sequence in two pieces becomes one. Octets that cannot begin a key are not held, nor are those that nobody
    /// translates.
    #[test]
    fn what_is_held() {
        let [plain, modify, kitty, _] = terminals();
        for (program, dialect, typed, held) in [
            ("", plain, "\x1b", 0),
            ("", plain, "\x1b[1;", 0),
            ("\x1b[>1u", plain, "\x1b", 1),
            ("\x1b[>1u", plain, "a\x1b[1;5", 5),
            ("\x1b[>1u", plain, "\u{e9}", 0),
            ("\x1b[>1u", kitty, "\x1b[5", 3),
            ("\x1b[>4;2m", modify, "\x1b", 0),
            ("\x1b[>4;2m", modify, "\x1b[27;5", 6),
            ("\x1b[?1003;1016h", plain, "\x1b", 0),
            ("\x1b[?1003;1016h", plain, "\x1b[<3", 4),
            ("\x1b[>1u\x1b[?2004h", plain, "\x1b[200~\x1b", 0),
            ("\x1b[>1u", plain, &format!("\x1b[{}", "1;".repeat(40)), 0),
        ] {
            let manner = manner(program, &dialect);
            let mut keyboard = Keyboard::default();
            keyboard.read(typed.as_bytes(), &manner, &mut |_| {});
            assert_eq!(keyboard.held(), held, "{program:?} {typed:?}");
        }
    }

    /// The escape key can be sent on in each form.
    #[test]
    fn an_octet_as_a_program_wants_it() {
        let [plain, modify, kitty, _] = terminals();
        for (program, dialect, octet, want) in [
            ("", plain, 0x1e, "\x1e"),
            ("\x1b[>1u", plain, 0x1e, "\x1b[94;5u"),
            ("\x1b[>1u", kitty, 0x1e, "\x1b[94;5u"),
            ("\x1b[>4;2m", kitty, 0x1e, "\x1b[27;5;94~"),
            ("\x1b[>4;2m", modify, 0x1e, "\x1e"),
            ("\x1b[>1u", kitty, b'~', "~"),
        ] {
            let mut out = Vec::new();
            Keyboard::write_octet(octet, &manner(program, &dialect), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), want, "{program:?}");
        }
    }
}
