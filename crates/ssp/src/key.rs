//! The session key of the mosh wire and its text form. It must not be printed, compared carelessly, or
//! left in memory.

use std::fmt;

use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// A session key of the mosh wire: 16 octets, wiped when dropped.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Key([u8; Key::BYTES]);

impl Key {
    /// Octets in a key.
    pub const BYTES: usize = 16;
    /// Characters of its text form.
    pub const TEXT_LEN: usize = 22;

    /// The key made of these octets. Wipe your copy.
    pub const fn from_bytes(bytes: [u8; Key::BYTES]) -> Key {
        Key(bytes)
    }

    /// Reads standard base64 without its two `=` (`mosh-protocol.md` §2.1).
    pub fn from_base64(text: &str) -> Result<Key, KeyError> {
        if text.len() != Key::TEXT_LEN {
            return Err(KeyError::Length { have: text.len() });
        }
        let mut key = Key([0; Key::BYTES]);
        let mut bits: Zeroizing<u32> = Zeroizing::new(0);
        let mut filled = 0;
        for (index, character) in text.bytes().enumerate() {
            let value = sextet(character).ok_or(KeyError::Character { index })?;
            *bits = (*bits << 6 | u32::from(value)) & 0xffff;
            // The 22 characters hold 132 bits: an octet is complete once 8 of them are pending.
            let have = (index + 1) * 6 - filled * 8;
            if have >= 8
                && let Some(byte) = key.0.get_mut(filled)
            {
                *byte = (*bits >> (have - 8)) as u8;
                filled += 1;
            }
        }
        if *bits & 0xf != 0 {
            return Err(KeyError::SpareBits);
        }
        Ok(key)
    }

    /// The text form, in a buffer that wipes itself.
    pub fn to_base64(&self) -> Zeroizing<String> {
        let mut text = Zeroizing::new(String::with_capacity(Key::TEXT_LEN));
        for group in self.0.chunks(3) {
            let mut word = Zeroizing::new([0; 4]);
            for (slot, byte) in word[1..].iter_mut().zip(group) {
                *slot = *byte;
            }
            let bits = Zeroizing::new(u32::from_be_bytes(*word));
            for index in 0..=group.len() {
                text.push(character((*bits >> (18 - 6 * index)) as u8 & 0x3f));
            }
        }
        text
    }

    /// The octets themselves.
    pub(crate) fn bytes(&self) -> &[u8; Key::BYTES] {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// Why a text is no key. Says nothing about the text that could give a key away.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KeyError {
    /// Not 22 octets.
    Length {
        /// Octets it has.
        have: usize,
    },
    /// A character outside `A-Za-z0-9+/`.
    Character {
        /// Its place.
        index: usize,
    },
    /// The four bits past the 128th are not zero.
    SpareBits,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyError::Length { have } => write!(f, "a key has 22 characters, this has {have}"),
            KeyError::Character { index } => {
                write!(f, "character {} of the key is not base64", index + 1)
            }
            KeyError::SpareBits => write!(f, "the key holds more than 128 bits"),
        }
    }
}

impl std::error::Error for KeyError {}

// Arithmetic on ranges, not a table: no memory is read at an address that depends on the key.
fn sextet(character: u8) -> Option<u8> {
    Some(match character {
        b'A'..=b'Z' => character - b'A',
        b'a'..=b'z' => character - b'a' + 26,
        b'0'..=b'9' => character - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

fn character(sextet: u8) -> char {
    char::from(match sextet {
        0..=25 => sextet + b'A',
        26..=51 => sextet - 26 + b'a',
        52..=61 => sextet - 52 + b'0',
        62 => b'+',
        _ => b'/',
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_octets_agree() {
        for seed in 0..500 {
            let mut bytes = Vec::new();
            crate::rng::Rng::new(seed).fill(Key::BYTES, &mut bytes);
            let key = Key::from_bytes(bytes.clone().try_into().unwrap());
            let text = key.to_base64();
            assert_eq!(text.len(), Key::TEXT_LEN);
            assert_eq!(Key::from_base64(&text).unwrap().bytes(), &bytes[..]);
        }
    }

    #[test]
    fn says_nothing_when_printed() {
        assert_eq!(format!("{:?}", Key::from_bytes([7; 16])), "Key(..)");
    }
}
