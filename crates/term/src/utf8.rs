//! Decodes UTF-8 a byte at a time, with the replacement rule of the emulator modelled.

use alloc::string::String;

/// How ill-formed input is cut into U+FFFD.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Utf8Rule {
    /// One for each maximal subpart of a well-formed sequence (Unicode §3.9, W3C).
    MaximalSubpart,
    /// As a program sees it that feeds glibc's `mbrtowc` byte by byte: sequences of up to six bytes are
    /// collected by shape, judged at their end, and the byte that disproves one is read again.
    Glibc,
}

/// The result of one byte.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Step {
    /// More bytes are needed.
    Pending,
    /// A character is complete.
    Char(char),
    /// Ill-formed up to and with this byte: U+FFFD.
    Invalid,
    /// Ill-formed before this byte: U+FFFD, and the byte must be fed again.
    Again,
}

/// A decoder that survives chunk borders.
#[derive(Clone, Copy, Debug)]
pub struct Decoder {
    rule: Utf8Rule,
    code: u32,
    /// Continuation bytes still needed.
    need: u8,
    /// Continuation bytes of the whole sequence.
    len: u8,
    /// Bounds of the next continuation byte.
    low: u8,
    high: u8,
}

impl Decoder {
    /// A decoder between characters.
    pub fn new(rule: Utf8Rule) -> Self {
        Self { rule, code: 0, need: 0, len: 0, low: 0x80, high: 0xbf }
    }

    /// Between characters.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.need == 0
    }

    /// Forgets a character begun.
    pub fn reset(&mut self) {
        self.need = 0;
    }

    /// Takes a byte; ASCII must not be fed while [`Decoder::is_idle`].
    pub fn feed(&mut self, byte: u8) -> Step {
        if self.need == 0 {
            return self.lead(byte);
        }
        if !(self.low..=self.high).contains(&byte) {
            self.need = 0;
            return Step::Again;
        }
        (self.low, self.high) = (0x80, 0xbf);
        self.code = self.code << 6 | u32::from(byte & 0x3f);
        self.need -= 1;
        if self.need > 0 {
            return Step::Pending;
        }
        match self.rule {
            Utf8Rule::MaximalSubpart => char::from_u32(self.code).map_or(Step::Invalid, Step::Char),
            Utf8Rule::Glibc => self.judge(),
        }
    }

    fn lead(&mut self, byte: u8) -> Step {
        let (len, bits) = match (self.rule, byte) {
            (_, 0xc2..=0xdf) => (1, byte & 0x1f),
            (_, 0xe0..=0xef) => (2, byte & 0x0f),
            (_, 0xf0..=0xf4) => (3, byte & 0x07),
            (Utf8Rule::Glibc, 0xf5..=0xf7) => (3, byte & 0x07),
            (Utf8Rule::Glibc, 0xf8..=0xfb) => (4, byte & 0x03),
            (Utf8Rule::Glibc, 0xfc..=0xfd) => (5, byte & 0x01),
            _ => return Step::Invalid,
        };
        (self.low, self.high) = match (self.rule, byte) {
            (Utf8Rule::Glibc, _) => (0x80, 0xbf),
            (_, 0xe0) => (0xa0, 0xbf),
            (_, 0xed) => (0x80, 0x9f),
            (_, 0xf0) => (0x90, 0xbf),
            (_, 0xf4) => (0x80, 0x8f),
            _ => (0x80, 0xbf),
        };
        (self.need, self.len, self.code) = (len, len, u32::from(bits));
        Step::Pending
    }

    /// Overlong forms and surrogates turn bad with their last byte, which is then read anew; code points
    /// beyond Unicode are one replacement character.
    fn judge(&self) -> Step {
        let shortest = [0, 0x80, 0x800, 0x1_0000, 0x20_0000, 0x400_0000][usize::from(self.len)];
        let surrogate = (0xd800..0xe000).contains(&self.code);
        if self.code < shortest || surrogate {
            return Step::Again;
        }
        char::from_u32(self.code).map_or(Step::Invalid, Step::Char)
    }
}

/// A whole text, with U+FFFD for ill-formed bytes.
pub fn decode(rule: Utf8Rule, bytes: &[u8]) -> String {
    let mut decoder = Decoder::new(rule);
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        loop {
            if byte < 0x80 && decoder.is_idle() {
                text.push(char::from(byte));
                break;
            }
            match decoder.feed(byte) {
                Step::Pending => {}
                Step::Char(c) => text.push(c),
                Step::Invalid => text.push(char::REPLACEMENT_CHARACTER),
                Step::Again => {
                    text.push(char::REPLACEMENT_CHARACTER);
                    continue;
                }
            }
            break;
        }
    }
    if !decoder.is_idle() {
        text.push(char::REPLACEMENT_CHARACTER);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maximal_subparts_are_those_of_std() {
        let alphabet =
            [0x41u8, 0x80, 0x90, 0xa0, 0xbf, 0xc0, 0xc2, 0xe0, 0xe1, 0xed, 0xf0, 0xf1, 0xf4, 0xf5];
        for n in 0..alphabet.len().pow(4) {
            let byte = |digit: u32| alphabet[n / alphabet.len().pow(digit) % alphabet.len()];
            let bytes = [byte(0), byte(1), byte(2), byte(3), 0x41];
            let want = String::from_utf8_lossy(&bytes);
            assert_eq!(decode(Utf8Rule::MaximalSubpart, &bytes), want, "{bytes:x?}");
        }
    }

    #[test]
    fn glibc() {
        for (bytes, want) in [
            (&b"\xc0\x80|"[..], "\u{fffd}\u{fffd}|"),
            (b"\xed\xa0\x80|", "\u{fffd}\u{fffd}|"),
            (b"\xf4\x90\x80\x80|", "\u{fffd}|"),
            (b"\xe0\x80\x80|", "\u{fffd}\u{fffd}|"),
            (b"\xe2\x82c", "\u{fffd}c"),
            (b"\xf8\x88\x80\x80\x80|", "\u{fffd}|"),
        ] {
            assert_eq!(decode(Utf8Rule::Glibc, bytes), want, "{bytes:x?}");
        }
    }
}
