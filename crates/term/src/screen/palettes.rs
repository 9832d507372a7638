//! Holds the colours that a program has changed, and those it has saved.

use alloc::boxed::Box;
use alloc::sync::Arc as StdArc;

/// Colours that stand for attributes (OSC 5).
pub(crate) const SPECIAL_COLORS: usize = 5;

/// Palettes kept, as xterm keeps; beyond it nothing is stored.
const PALETTES_MAX: usize = 10;

/// The colours a program had changed.
#[derive(Clone, Debug)]
pub(crate) struct Saved {
    pub palette: StdArc<Palette>,
    pub special: [Option<(u8, u8, u8)>; SPECIAL_COLORS],
}

/// A stack whose slots can also be written and read by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Palettes {
    pub slots: [Option<Box<Saved>>; PALETTES_MAX],
    /// How many slots are in use.
    pub used: usize,
    /// The most that were ever pushed.
    pub last: usize,
}

impl Palettes {
    /// The octets they may take, each with all its entries changed.
    pub(crate) fn weight(&self) -> usize {
        const SAVED_BYTES: usize = 4096;
        self.slots.iter().flatten().count() * SAVED_BYTES
    }
}

/// Colours a program changed: palette entries (OSC 4) and the dynamic colours 10 to 19.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Palette {
    /// Changed entries, by index.
    pub entries: alloc::collections::BTreeMap<u8, (u8, u8, u8)>,
    /// Foreground, background, cursor, ... as OSC 10 to 19 number them.
    pub dynamic: [Option<(u8, u8, u8)>; 10],
}

impl Palette {
    /// Adds those of `other` that are not changed here yet. Whether there were any.
    pub fn add(&mut self, other: &Self) -> bool {
        let before = self.entries.len();
        for (index, rgb) in &other.entries {
            self.entries.entry(*index).or_insert(*rgb);
        }
        let mut news = self.entries.len() > before;
        for (own, other) in self.dynamic.iter_mut().zip(other.dynamic) {
            news |= own.is_none() && other.is_some();
            *own = own.or(other);
        }
        news
    }
}
