//! Control sequences and their numbers.

use super::rules::{Numbers, Rules};

/// Numbers of one control sequence. More are dropped (xterm keeps 30; stock mosh has room for 51).
pub const PARAMS_MAX: usize = 64;

/// The numbers of a control sequence. Missing ones are 0.
#[derive(Clone, Debug)]
pub struct Params {
    values: [u16; PARAMS_MAX],
    len: usize,
    /// Bit n: number n continues number n - 1 after a colon.
    parts: u64,
    /// Bit n: number n is a 0 that was written, and not a missing one.
    zeros: u64,
}

impl Params {
    pub(super) const EMPTY: Self = Self { values: [0; PARAMS_MAX], len: 0, parts: 0, zeros: 0 };

    /// How many numbers were given; at least 1 if any separator was.
    pub fn len(&self) -> usize {
        self.len
    }

    /// No number and no separator.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A number; 0 when missing.
    #[inline]
    pub fn get(&self, index: usize) -> u16 {
        if index < self.len { self.values[index] } else { 0 }
    }

    /// A number, or `default` when it is missing or 0.
    #[inline]
    pub(crate) fn get_or(&self, index: usize, default: u16) -> u16 {
        match self.get(index) {
            0 => default,
            value => value,
        }
    }

    /// The number was written, if only as 0.
    pub fn is_given(&self, index: usize) -> bool {
        self.get(index) != 0 || index < self.len && self.zeros >> index & 1 == 1
    }

    /// All numbers.
    pub fn all(&self) -> &[u16] {
        &self.values[..self.len]
    }

    /// Some numbers are joined by colons.
    #[inline]
    pub(crate) fn has_parts(&self) -> bool {
        self.parts != 0
    }

    /// How many numbers at `index` belong together: 1, or more where colons join them.
    pub fn group_len(&self, index: usize) -> usize {
        let later = self.parts.checked_shr(index as u32 + 1).unwrap_or(0);
        (1 + later.trailing_ones() as usize).min(self.len.saturating_sub(index))
    }

    #[inline]
    pub(super) fn push(&mut self, value: u32, rules: &Rules) {
        if self.len == PARAMS_MAX {
            return;
        }
        self.values[self.len] = match (u16::try_from(value), rules.numbers) {
            (Ok(value), _) => value,
            (Err(_), Numbers::Clamp) => u16::MAX,
            (Err(_), Numbers::Missing) => 0,
        };
        self.len += 1;
    }

    /// The next number pushed is 0, and was written so.
    #[cold]
    pub(super) fn mark_zero(&mut self) {
        if self.len < PARAMS_MAX {
            self.zeros |= 1 << self.len;
        }
    }

    /// The next number pushed continues the last one.
    pub(super) fn join_next(&mut self) {
        if self.len < PARAMS_MAX {
            self.parts |= 1 << self.len;
        }
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        self.len = 0;
        self.parts = 0;
        self.zeros = 0;
    }
}

/// A control sequence, or the head of a device control string.
#[derive(Clone, Debug)]
pub struct Sequence {
    /// `<`, `=`, `>` or `?` before the numbers; 0 if none.
    pub marker: u8,
    /// The byte 0x20 to 0x2F before the last one; 0 if none, 0xFF if there were several.
    pub intermediate: u8,
    /// The byte that ends and names it.
    pub last: u8,
    /// The numbers.
    pub params: Params,
}
