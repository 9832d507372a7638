//! The session key of the mosh wire, and the text form of keys. It must not be printed, compared carelessly, or
//! left in memory.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;

use zeroize::{ZeroizeOnDrop, Zeroizing};

/// A session key of the mosh wire: 16 octets, wiped when dropped. They are in a box, since moving them would leave a
/// copy behind each time.
#[derive(Clone)]
pub struct Key(Box<Zeroizing<[u8; Key::BYTES]>>);

impl ZeroizeOnDrop for Key {}

impl Key {
    /// Octets in a key.
    pub const BYTES: usize = 16;
    /// Characters of its text form.
    pub const TEXT_LEN: usize = 22;

    /// The key made of these octets. Wipe your copy.
    pub fn from_bytes(bytes: [u8; Key::BYTES]) -> Key {
        Key(Box::new(Zeroizing::new(bytes)))
    }

    /// Reads standard base64 without its two `=` (`mosh-protocol.md` §2.1).
    pub fn from_base64(text: &str) -> Result<Key, KeyError> {
        from_base64(text).map(|bytes| Key(Box::new(bytes)))
    }

    /// The text form, in a buffer that wipes itself.
    pub fn to_base64(&self) -> Zeroizing<String> {
        base64(self.bytes())
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
    /// Too short or too long.
    Length {
        /// Characters it has.
        have: usize,
        /// Characters such a key has.
        need: usize,
    },
    /// A character outside `A-Za-z0-9+/`.
    Character {
        /// Its place.
        index: usize,
    },
    /// The bits past the last octet are not zero.
    SpareBits,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyError::Length { have, need } => {
                write!(f, "a key has {need} characters, this has {have}")
            }
            KeyError::Character { index } => {
                write!(f, "character {} of the key is not base64", index + 1)
            }
            KeyError::SpareBits => write!(f, "the key holds more bits than it may"),
        }
    }
}

impl core::error::Error for KeyError {}

/// Octets in standard base64 without padding.
pub(crate) fn base64(bytes: &[u8]) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::with_capacity(text_len(bytes.len())));
    for group in bytes.chunks(3) {
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

/// Reads `N` octets of standard base64 without padding. One text stands for each value: spare bits are
/// zero.
pub(crate) fn from_base64<const N: usize>(text: &str) -> Result<Zeroizing<[u8; N]>, KeyError> {
    if text.len() != text_len(N) {
        return Err(KeyError::Length { have: text.len(), need: text_len(N) });
    }
    let mut octets = Zeroizing::new([0; N]);
    let mut bits: Zeroizing<u32> = Zeroizing::new(0);
    let mut filled = 0;
    for (index, character) in text.bytes().enumerate() {
        let value = sextet(character).ok_or(KeyError::Character { index })?;
        *bits = (*bits << 6 | u32::from(value)) & 0xffff;
        // An octet is complete once 8 of the bits read so far are pending.
        let have = (index + 1) * 6 - filled * 8;
        if have >= 8
            && let Some(octet) = octets.get_mut(filled)
        {
            *octet = (*bits >> (have - 8)) as u8;
            filled += 1;
        }
    }
    let spare = text.len() * 6 - N * 8;
    if *bits & ((1 << spare) - 1) != 0 {
        return Err(KeyError::SpareBits);
    }
    Ok(octets)
}

/// Characters that this number of octets takes in base64.
const fn text_len(octets: usize) -> usize {
    (octets * 8).div_ceil(6)
}

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
