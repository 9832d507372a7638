//! The grammar of answers: the sequences that a terminal sends only in answer to a query. It decides from the octets
//! alone and keeps nothing.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

use crate::screen::properties::{Rgb, Scheme};

/// One answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answer {
    /// DA1.
    Primary,
    /// DA2: the kind of terminal and its version.
    Secondary(u32, u32),
    /// XTVERSION.
    Version(String),
    /// DECRPM: a private mode and its state.
    Mode(u32, u32),
    /// The kitty keyboard flags in use.
    Keyboard(u8),
    /// The colour scheme.
    Scheme(Scheme),
    /// The text area, width and height in pixels.
    Area(u16, u16),
    /// A cell, width and height in pixels.
    Cell(u16, u16),
    /// XTGETTCAP: a capability, in hexadecimal, if the terminal has it.
    Capability(Option<String>),
    /// DECRQSS: a setting, if it is known.
    Setting(Option<String>),
    /// OSC 10 to 12.
    Dynamic(u8, Rgb),
    /// OSC 4.
    Palette(u8, Rgb),
}

impl Answer {
    /// How many kinds there are.
    pub(super) const KINDS: usize = 14;
    /// How many answers of each kind the plain questions may bring.
    pub(super) const TO_PLAIN: [u8; Self::KINDS] = [1, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    /// And all questions.
    pub(super) const TO_ALL: [u8; Self::KINDS] = [1, 1, 1, 5, 1, 1, 1, 1, 4, 2, 1, 1, 1, 16];

    /// The number of its kind, below [`KINDS`](Self::KINDS).
    pub(super) fn kind(&self) -> usize {
        match self {
            Self::Primary => 0,
            Self::Secondary(..) => 1,
            Self::Version(_) => 2,
            Self::Mode(..) => 3,
            Self::Keyboard(_) => 4,
            Self::Scheme(_) => 5,
            Self::Area(..) => 6,
            Self::Cell(..) => 7,
            Self::Capability(_) => 8,
            Self::Setting(_) => 9,
            Self::Dynamic(10, _) => 10,
            Self::Dynamic(11, _) => 11,
            Self::Dynamic(..) => 12,
            Self::Palette(..) => 13,
        }
    }
}

/// The kind of octets that begin with an escape.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ReplyMatch {
    /// An answer, this long.
    Answer(Answer, usize),
    /// The beginning of what may become one.
    Part,
    /// Not an answer, and no later octet can make it one.
    Keys,
}

/// Reads octets that begin with an escape.
pub(super) fn read(octets: &[u8]) -> ReplyMatch {
    let Some(introducer) = octets.get(1) else { return ReplyMatch::Part };
    match introducer {
        b'[' => read_control(octets),
        b'P' | b']' => read_string(octets),
        _ => ReplyMatch::Keys,
    }
}

/// Parameters of an answer that are looked at; more are skipped.
const PARAMS_MAX: usize = 4;

fn read_control(octets: &[u8]) -> ReplyMatch {
    let body = &octets[2..];
    let (marker, body_start) = match body {
        [] => return ReplyMatch::Part,
        [marker @ (b'?' | b'>'), ..] => (*marker, 3),
        // Sizes only: keys are sent without a marker, too.
        [b'4' | b'6'] => return ReplyMatch::Part,
        [b'4' | b'6', b';', ..] => (0, 2),
        _ => return ReplyMatch::Keys,
    };
    let body = &octets[body_start..];
    let is_param = |octet: &u8| octet.is_ascii_digit() || matches!(octet, b';' | b':');
    let params_end = body.iter().position(|octet| !is_param(octet)).unwrap_or(body.len());
    let (intermediate, last, length) = match &body[params_end..] {
        [] | [b'$'] => return ReplyMatch::Part,
        [b'$', last, ..] => (b'$', *last, params_end + 2),
        [last, ..] => (0, *last, params_end + 1),
    };
    let mut params = [0_u32; PARAMS_MAX];
    for (param, word) in params.iter_mut().zip(body[..params_end].split(|&octet| octet == b';')) {
        *param = number(word);
    }
    let [first, second, third, _] = params;
    let pixels = |value: u32| u16::try_from(value).unwrap_or(0);
    let answer = match (marker, intermediate, last) {
        (b'?', 0, b'c') => Answer::Primary,
        (b'>', 0, b'c') => Answer::Secondary(first, second),
        (b'?', b'$', b'y') => Answer::Mode(first, second),
        (b'?', 0, b'u') => Answer::Keyboard(u8::try_from(first).unwrap_or(0)),
        (b'?', 0, b'n') if (first, second) == (997, 1) => Answer::Scheme(Scheme::Dark),
        (b'?', 0, b'n') if (first, second) == (997, 2) => Answer::Scheme(Scheme::Light),
        (0, 0, b't') if first == 4 => Answer::Area(pixels(third), pixels(second)),
        (0, 0, b't') if first == 6 => Answer::Cell(pixels(third), pixels(second)),
        _ => return ReplyMatch::Keys,
    };
    ReplyMatch::Answer(answer, body_start + length)
}

/// A decimal number; 0 if it is malformed or too large.
fn number(word: &[u8]) -> u32 {
    core::str::from_utf8(word).ok().and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// How the strings of answers begin.
const BEGINNINGS: [&[u8]; 9] = [
    b"\x1bP>|",
    b"\x1bP1+r",
    b"\x1bP0+r",
    b"\x1bP1$r",
    b"\x1bP0$r",
    b"\x1b]10;rgb",
    b"\x1b]11;rgb",
    b"\x1b]12;rgb",
    b"\x1b]4;",
];

fn read_string(octets: &[u8]) -> ReplyMatch {
    let Some(beginning) = BEGINNINGS.iter().find(|beginning| octets.starts_with(beginning)) else {
        let begun = BEGINNINGS.iter().any(|beginning| beginning.starts_with(octets));
        return if begun { ReplyMatch::Part } else { ReplyMatch::Keys };
    };
    let body = &octets[beginning.len()..];
    let is_text = |octet: &u8| (b' '..=b'~').contains(octet);
    let end = body.iter().position(|octet| !is_text(octet)).unwrap_or(body.len());
    let terminator = match &body[end..] {
        [] | [0x1b] => return ReplyMatch::Part,
        [0x07, ..] => 1,
        [0x1b, b'\\', ..] => 2,
        _ => return ReplyMatch::Keys,
    };
    let Ok(text) = core::str::from_utf8(&body[..end]) else { return ReplyMatch::Keys };
    let answer = match beginning[1..] {
        [b'P', b'>', ..] => Some(Answer::Version(text.to_owned())),
        [b'P', known, b'+', ..] => {
            Some(Answer::Capability((known == b'1').then(|| text.to_owned())))
        }
        [b'P', known, ..] => Some(Answer::Setting((known == b'1').then(|| text.to_owned()))),
        [b']', b'1', ones, ..] => color(text).map(|rgb| Answer::Dynamic(10 + (ones - b'0'), rgb)),
        _ => text
            .split_once(";rgb")
            .and_then(|(index, spec)| Some(Answer::Palette(index.parse().ok()?, color(spec)?))),
    };
    let length = beginning.len() + end + terminator;
    answer.map_or(ReplyMatch::Keys, |answer| ReplyMatch::Answer(answer, length))
}

/// `:rrrr/gggg/bbbb` with one to four digits each, or `a:` with a fourth part that is not looked at.
fn color(spec: &str) -> Option<Rgb> {
    let opaque = match spec.strip_prefix("a:") {
        Some(parts) => parts.rsplit_once('/')?.0,
        None => spec.strip_prefix(':')?,
    };
    let (red, green, blue) = crate::color::parse(&format!("rgb:{opaque}"))?;
    Some(Rgb(red, green, blue))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors() {
        for (spec, expected) in [
            (":ffff/8080/0000", Some(Rgb(255, 128, 0))),
            (":ff/80/00", Some(Rgb(255, 128, 0))),
            (":f/0/f", Some(Rgb(255, 0, 255))),
            ("a:0000/0000/ffff/8000", Some(Rgb(0, 0, 255))),
            (":ff/80", None),
            (":fffff/0/0", None),
            (":fffffffff/0/0", None),
            (":+f/0/0", None),
            (":/0/0", None),
            (":000000000/0/0", None),
            (":1/2/3/4", None),
            ("a:1/2/3", None),
            ("", None),
        ] {
            assert_eq!(color(spec), expected, "{spec}");
        }
    }

    #[test]
    fn numbers_out_of_bounds_mean_nothing() {
        for (octets, answer) in [
            ("\x1b[6;99999;99999999999t", Answer::Cell(0, 0)),
            ("\x1b[?999u", Answer::Keyboard(0)),
            ("\x1b[>1:2;3c", Answer::Secondary(0, 3)),
        ] {
            assert_eq!(
                read(octets.as_bytes()),
                ReplyMatch::Answer(answer, octets.len()),
                "{octets:?}"
            );
        }
    }
}
