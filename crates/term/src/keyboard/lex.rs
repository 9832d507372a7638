//! Splits a terminal's input into text, controls, keys in any protocol, and mouse reports. It decides from the octets
//! alone and keeps nothing.

use crate::keyboard::key::{Event, Function, Key, SHIFT};

const ESC: u8 = 0x1b;

/// Numbers of a sequence that are looked at: a key's, its modifiers, its text.
const FIELDS_MAX: usize = 3;

/// Octets of a string (an answer nobody waits for) that are passed on as one.
const STRING_BYTES_MAX: usize = 512;

/// How old mouse reports write what follows `CSI M`: three values.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Bare {
    /// There are none: no mouse is reported, or in other ways.
    None,
    Octets,
    /// Mode 1005.
    Characters,
}

/// One piece of input.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Piece<'a> {
    /// Characters without controls; or one octet that is none.
    Text(&'a [u8]),
    /// C0 or DEL, but for what begins a sequence.
    Control(u8),
    /// The control or character after an escape.
    Alt(&'a [u8]),
    Key(Key),
    Function(Function),
    /// Mode 1006: button, column, row, press or release.
    Mouse([u32; 3], u8),
    /// Any other octets.
    Other,
}

/// Reads the first piece and its length. `None`: it is cut short, or there is nothing.
pub(super) fn read(octets: &[u8], bare: Bare) -> Option<(Piece<'_>, usize)> {
    match *octets {
        [] | [ESC] => None,
        [ESC, b'[', ref rest @ ..] => {
            let (piece, length) = control_sequence(rest, bare)?;
            Some((piece, 2 + length))
        }
        [ESC, b'O', last, ..] => {
            let key = Function { number: 1, last, modifiers: 0, event: Event::Press };
            match last {
                b'A'..=b'F' | b'H' | b'P'..=b'S' => Some((Piece::Function(key), 3)),
                b'I'..=b'Z' | b'a'..=b'z' => Some((Piece::Other, 3)),
                _ => Some((Piece::Alt(&octets[1..2]), 2)),
            }
        }
        [ESC, b'O'] => None,
        [ESC, b'P' | b']' | b'^' | b'_' | b'X', _, ..] if let Some(length) = string(octets) => {
            Some((Piece::Other, length))
        }
        // Escape, and then what has an escape of its own.
        [ESC, ESC, ..] => Some((Piece::Control(ESC), 1)),
        [ESC, first @ (0..0x20 | 0x7f), ..] if first != ESC => Some((Piece::Alt(&octets[1..2]), 2)),
        [ESC, ..] => {
            let length = char_length(&octets[1..])?;
            Some((Piece::Alt(&octets[1..=length]), 1 + length))
        }
        [control @ (0..0x20 | 0x7f), ..] => Some((Piece::Control(control), 1)),
        _ => {
            let is_control = |octet: &u8| matches!(octet, 0..0x20 | 0x7f);
            let end = octets.iter().position(is_control).unwrap_or(octets.len());
            let text = &octets[..end];
            match str::from_utf8(text) {
                Ok(_) => Some((Piece::Text(text), end)),
                Err(fault) if fault.valid_up_to() > 0 => {
                    let valid = fault.valid_up_to();
                    Some((Piece::Text(&text[..valid]), valid))
                }
                Err(fault) if fault.error_len().is_none() && end == octets.len() => None,
                Err(_) => Some((Piece::Text(&text[..1]), 1)),
            }
        }
    }
}

/// The length of the first character, 1 if it is none; `None` if it is cut short.
fn char_length(octets: &[u8]) -> Option<usize> {
    let length = match octets.first()? {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    let is_tail = |octet: &u8| octet & 0xc0 == 0x80;
    let tails = octets[1..].iter().take(length - 1).take_while(|octet| is_tail(octet)).count();
    match tails + 1 {
        have if have == length => Some(length),
        have if have == octets.len() => None,
        _ => Some(1),
    }
}

/// The length of a string with its end, if that has come.
fn string(octets: &[u8]) -> Option<usize> {
    let body = &octets[2..octets.len().min(STRING_BYTES_MAX)];
    let end = body.iter().position(|&octet| matches!(octet, 0x07 | ESC))?;
    match body[end..] {
        [0x07, ..] => Some(2 + end + 1),
        [ESC, b'\\', ..] => Some(2 + end + 2),
        _ => None,
    }
}

/// Reads what follows `CSI`.
fn control_sequence(body: &[u8], bare: Bare) -> Option<(Piece<'_>, usize)> {
    let end = body.iter().position(|octet| !(0x20..0x40).contains(octet))?;
    let (params, last) = (&body[..end], body[end]);
    let length = end + 1;
    match (params, last) {
        // The Linux console's function keys: one letter more.
        ([], b'[') => return body.get(length).map(|_letter| (Piece::Other, length + 1)),
        ([], b'M') if bare != Bare::None => {
            let mut length = length;
            for _value in 0..3 {
                length += match bare {
                    Bare::Characters => char_length(body.get(length..)?)?,
                    _ => body.get(length).map(|_octet| 1)?,
                };
            }
            return Some((Piece::Other, length));
        }
        // Cut off by something else.
        (_, 0..0x20 | 0x7f..) => return Some((Piece::Other, end)),
        _ => {}
    }
    Some((recognise(params, last).unwrap_or(Piece::Other), length))
}

fn recognise(params: &[u8], last: u8) -> Option<Piece<'static>> {
    if let Some(report) = params.strip_prefix(b"<") {
        let fields = fields(report)?;
        let is_report = matches!(last, b'M' | b'm') && report.split(|&o| o == b';').count() == 3;
        return is_report.then(|| Piece::Mouse(fields.map(|field| field[0]), last));
    }
    let [first, second, third] = fields(params)?;
    let modifiers = second[0].saturating_sub(1);
    let event = Event::of(second[1])?;
    let shifted = char::from_u32(first[1]).filter(|&c| c != '\0');
    let text = char::from_u32(third[0]).filter(|c| !c.is_control());
    match (last, first[0]) {
        (b'u', code) => Some(Piece::Key(Key { code, shifted, text, modifiers, event })),
        (b'~', 27) => {
            let code = third[0];
            // The character comes with Shift in it.
            let shifted = char::from_u32(code).filter(|_| modifiers & SHIFT != 0);
            Some(Piece::Key(Key { code, shifted, modifiers, ..Key::default() }))
        }
        (b'Z', _) => Some(Piece::Key(Key { code: 9, modifiers: SHIFT, ..Key::default() })),
        (b'A'..=b'F' | b'H' | b'P'..=b'S' | b'~', number) => {
            Some(Piece::Function(Function { number, last, modifiers, event }))
        }
        _ => None,
    }
}

/// The first fields, two parts of each; a missing one is 0. `None`: there is more than digits in them.
fn fields(params: &[u8]) -> Option<[[u32; 2]; FIELDS_MAX]> {
    let mut fields = [[0; 2]; FIELDS_MAX];
    for (field, words) in fields.iter_mut().zip(params.split(|&octet| octet == b';')) {
        for (part, word) in field.iter_mut().zip(words.split(|&octet| octet == b':')) {
            *part = match word {
                b"" => 0,
                _ => str::from_utf8(word).ok()?.parse().ok()?,
            };
        }
    }
    let plain = |octet: &u8| octet.is_ascii_digit() || matches!(octet, b';' | b':');
    params.iter().all(plain).then_some(fields)
}
