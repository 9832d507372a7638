//! Describes one key and writes it in each form: as terminals always have, in kitty's protocol
//! (<https://sw.kovidgoyal.net/kitty/keyboard-protocol/>), and as xterm's modifyOtherKeys
//! (<https://invisible-island.net/xterm/modified-keys.html>).

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

/// Press, repeat or release of a key.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Event {
    #[default]
    Press,
    Repeat,
    Release,
}

impl Event {
    /// As kitty numbers them.
    pub(super) fn of(number: u32) -> Option<Self> {
        match number {
            0 | 1 => Some(Self::Press),
            2 => Some(Self::Repeat),
            3 => Some(Self::Release),
            _ => None,
        }
    }
}

/// Modifiers as kitty and xterm count them, less one.
pub(super) const SHIFT: u32 = 1;
pub(super) const ALT: u32 = 2;
pub(super) const CTRL: u32 = 4;
/// Super, hyper, meta: no octet has ever stood for them.
const UNUSUAL: u32 = 8 | 16 | 32;
/// Caps lock and num lock, of which only kitty tells.
const LOCKS: u32 = 64 | 128;

const TAB: u32 = 9;
const ENTER: u32 = 13;
const ESCAPE: u32 = 27;
const SPACE: u32 = 32;
const BACKSPACE: u32 = 127;

/// Where kitty numbers what no character stands for.
const FUNCTIONAL: core::ops::RangeInclusive<u32> = 57344..=63743;
/// Locks and modifiers themselves: they type nothing.
const MODIFIERS: [core::ops::RangeInclusive<u32>; 2] = [57358..=57360, 57441..=57454];
/// The keypad's keys with a character, from `KP_0` on.
const KEYPAD_CHARS: &[u8] = b"0123456789./*-+\r=,";
const KEYPAD_FIRST: u32 = 57399;
/// The keypad's keys that move, from `KP_LEFT` on, as the keys beside it send them.
const KEYPAD_MOTIONS: [(u32, u8); 11] = [
    (1, b'D'),
    (1, b'C'),
    (1, b'A'),
    (1, b'B'),
    (5, b'~'),
    (6, b'~'),
    (1, b'H'),
    (1, b'F'),
    (2, b'~'),
    (3, b'~'),
    (1, b'E'),
];

/// Flags of kitty's protocol.
const DISAMBIGUATE: u8 = 1;
const ALTERNATES: u8 = 4;
pub(super) const ALL_KEYS: u8 = 8;
const TEXT: u8 = 16;

/// A key that has a number: a character, or one of kitty's own.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Key {
    /// The character of the key without Shift, where that is known.
    pub code: u32,
    /// That with Shift, if told.
    pub shifted: Option<char>,
    /// The text that it gives, if told.
    pub text: Option<char>,
    /// Bits.
    pub modifiers: u32,
    pub event: Event,
}

impl Key {
    /// The key that gives this character.
    pub(super) fn of_char(c: char) -> Self {
        let mut lower = c.to_lowercase();
        match (lower.next(), lower.next()) {
            (Some(small), None) if small != c => {
                Self { code: small.into(), shifted: Some(c), modifiers: SHIFT, ..Self::default() }
            }
            _ => Self { code: c.into(), ..Self::default() },
        }
    }

    /// The key that gives this control character. `None`: more than one may.
    pub(super) fn of_control(octet: u8) -> Option<Self> {
        let control = |code: u8| Self { code: code.into(), modifiers: CTRL, ..Self::default() };
        Some(match octet {
            // Some terminals' Backspace, and others' with Ctrl.
            0x08 => return None,
            0x09 | 0x0d | 0x1b | 0x7f => Self { code: octet.into(), ..Self::default() },
            0 => control(b' '),
            0x01..=0x1a => control(octet + 0x60),
            0x1c..=0x1f => control(octet + 0x40),
            _ => return None,
        })
    }

    /// This key with Alt.
    pub(super) fn with_alt(self) -> Self {
        Self { modifiers: self.modifiers | ALT, ..self }
    }

    /// Whether it is a character's.
    fn is_text(&self) -> bool {
        self.code >= SPACE && self.code != BACKSPACE && !FUNCTIONAL.contains(&self.code)
    }

    /// Whether it is a modifier or a lock.
    fn is_modifier(&self) -> bool {
        MODIFIERS.iter().any(|range| range.contains(&self.code))
    }

    /// The character it gives.
    fn char(&self) -> Option<char> {
        let plain = char::from_u32(self.code)?;
        let shift = self.modifiers & SHIFT != 0;
        let upper = shift.then(|| self.shifted.unwrap_or_else(|| plain.to_ascii_uppercase()));
        Some(self.text.or(upper).unwrap_or(plain))
    }

    /// The same key outside the keypad.
    fn off_keypad(&self) -> Result<Key, Function> {
        let index = self.code.wrapping_sub(KEYPAD_FIRST) as usize;
        let &Key { modifiers, event, .. } = self;
        if let Some(&octet) = KEYPAD_CHARS.get(index) {
            return Ok(Key { code: octet.into(), ..*self });
        }
        match KEYPAD_MOTIONS.get(index.wrapping_sub(KEYPAD_CHARS.len())) {
            Some(&(number, last)) => Err(Function { number, last, modifiers, event }),
            None => Ok(*self),
        }
    }

    /// The octets that terminals without any protocol send for it, none for a release or a modifier. `None`: they
    /// cannot send this key.
    pub(super) fn legacy(&self) -> Option<Vec<u8>> {
        if self.event == Event::Release || self.is_modifier() {
            return Some(Vec::new());
        }
        let key = match self.off_keypad() {
            Ok(key) => key,
            Err(function) => return Some(function.legacy()),
        };
        if key.modifiers & UNUSUAL != 0 || FUNCTIONAL.contains(&key.code) {
            return None;
        }
        let mut out = Vec::new();
        if key.modifiers & ALT != 0 {
            out.push(0x1b);
        }
        match (key.code, key.modifiers & (SHIFT | CTRL)) {
            (TAB, SHIFT) => out.extend_from_slice(b"\x1b[Z"),
            (BACKSPACE, CTRL) => out.push(0x08),
            (TAB | ENTER | ESCAPE | BACKSPACE, _) => out.push(key.code as u8),
            (_, held) if held & CTRL != 0 => out.push(control_of(key.char()?, held)?),
            _ => out.extend_from_slice(key.char()?.encode_utf8(&mut [0; 4]).as_bytes()),
        }
        Some(out)
    }

    /// Appends it as kitty's protocol writes it under these flags. The key came from a terminal without that
    /// protocol: it counts as pressed, and unknown fields are left out.
    pub(super) fn write_kitty(&self, flags: u8, out: &mut Vec<u8>) {
        let Some(legacy) = self.legacy().filter(|_| flags & (DISAMBIGUATE | ALL_KEYS) == 0) else {
            return self.write_unambiguous(flags, out);
        };
        out.extend_from_slice(&legacy);
    }

    fn write_unambiguous(&self, flags: u8, out: &mut Vec<u8>) {
        let given = self.char();
        let mut key = *self;
        if let Some(c) = given.filter(|_| self.is_text()) {
            let small = Key::of_char(c);
            // Of Shift with anything but a letter the character is what is left.
            key = Key { modifiers: self.modifiers & !SHIFT | small.modifiers, ..small };
        }
        let held = key.modifiers & !LOCKS;
        let types = key.is_text() && held & !SHIFT == 0;
        if flags & ALL_KEYS == 0 {
            let plain = matches!(key.code, TAB | ENTER | BACKSPACE) && held == 0;
            if let Some(c) = given.filter(|_| types || plain) {
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                return;
            }
        }
        out.extend_from_slice(format!("\x1b[{}", key.code).as_bytes());
        if let Some(shifted) = key.shifted.filter(|_| flags & ALTERNATES != 0) {
            out.extend_from_slice(format!(":{}", u32::from(shifted)).as_bytes());
        }
        let text = given.filter(|_| types && flags & TEXT != 0);
        match (held, text) {
            (0, None) => {}
            (0, Some(c)) => out.extend_from_slice(format!(";;{}", u32::from(c)).as_bytes()),
            (_, None) => out.extend_from_slice(format!(";{}", held + 1).as_bytes()),
            (_, Some(c)) => {
                out.extend_from_slice(format!(";{};{}", held + 1, u32::from(c)).as_bytes());
            }
        }
        out.push(b'u');
    }

    /// Appends it as modifyOtherKeys writes it at this level. Appends nothing for keys that xterm does not send.
    pub(super) fn write_modified(&self, level: u8, out: &mut Vec<u8>) {
        let legacy = self.legacy();
        let key = match self.off_keypad() {
            Ok(key) if legacy.as_ref().is_none_or(|octets| !octets.is_empty()) => key,
            _ => return out.extend_from_slice(&legacy.unwrap_or_default()),
        };
        if key.modifiers & UNUSUAL != 0 || FUNCTIONAL.contains(&key.code) {
            return;
        }
        let held = key.modifiers & (SHIFT | ALT | CTRL);
        let types = held == 0 || held == SHIFT && key.is_text();
        let Some(c) = key.char().filter(|_| !types && !key.is_known(level)) else {
            return out.extend_from_slice(&legacy.unwrap_or_default());
        };
        out.extend_from_slice(format!("\x1b[27;{};{}~", held + 1, u32::from(c)).as_bytes());
    }

    /// Whether level 1 leaves the key as it is: those "with well-known behavior".
    fn is_known(&self, level: u8) -> bool {
        let held = self.modifiers & (SHIFT | ALT | CTRL);
        let control = |c: char| c.is_ascii_alphabetic() || "@[\\]^_ ".contains(c);
        level < 2
            && match (self.code, held) {
                (TAB, SHIFT) | (BACKSPACE, _) => true,
                (_, ALT) => true,
                _ if held & CTRL != 0 => self.is_text() && self.char().is_some_and(control),
                _ => self.is_text(),
            }
    }
}

/// The control character of Ctrl and a character: kitty's table of legacy controls, which is xterm's.
fn control_of(c: char, held: u32) -> Option<u8> {
    Some(match c {
        ' ' | '@' | '2' => 0,
        'a'..='z' | 'A'..='Z' => c as u8 & 0x1f,
        '[' | '{' | '3' => 0x1b,
        '\\' | '|' | '4' => 0x1c,
        ']' | '}' | '5' => 0x1d,
        '^' | '~' | '6' => 0x1e,
        '_' | '/' | '7' => 0x1f,
        // Where the character with Shift is not told, it is that of most keyboards.
        '-' if held & SHIFT != 0 => 0x1f,
        '?' | '8' => 0x7f,
        _ => return None,
    })
}

/// A key that has a sequence of its own: `CSI number ; modifiers last`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Function {
    pub number: u32,
    pub last: u8,
    pub modifiers: u32,
    pub event: Event,
}

/// F3 as kitty has it, since `CSI R` answers where the cursor is.
const KITTY_F3: u32 = 13;

impl Function {
    /// The octets that terminals without any protocol send for it while DECCKM is set; none for a release.
    pub(super) fn legacy(&self) -> Vec<u8> {
        let mut key = Self { modifiers: self.modifiers & !LOCKS, ..*self };
        if (key.last, key.number) == (b'~', KITTY_F3) {
            key = Self { number: 1, last: b'R', ..key };
        }
        match (key.event, key.last, key.modifiers) {
            (Event::Release, ..) => Vec::new(),
            (_, b'A'..=b'D' | b'P'..=b'S', 0) => vec![0x1b, b'O', key.last],
            _ => key.control(),
        }
    }

    /// Appends it as kitty's protocol writes it.
    pub(super) fn write_kitty(&self, out: &mut Vec<u8>) {
        let key = match self.last {
            b'R' => Self { number: KITTY_F3, last: b'~', ..*self },
            _ => *self,
        };
        out.extend_from_slice(&key.control());
    }

    fn control(&self) -> Vec<u8> {
        let &Self { number, last, modifiers, .. } = self;
        let last = char::from(last);
        match (modifiers, number) {
            (0, 0 | 1) if last != '~' => format!("\x1b[{last}"),
            (0, _) => format!("\x1b[{number}{last}"),
            _ => format!("\x1b[{};{}{last}", number.max(1), modifiers + 1),
        }
        .into_bytes()
    }
}
