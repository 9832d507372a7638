//! Caches the clusters formed lately.

use alloc::vec::Vec;

use crate::screen::cell::{Cell, TEXT_MASK};

/// Maps a cell and a character to the cluster that they formed. Most text repeats a few clusters.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClusterCache {
    /// Empty until first used.
    slots: Vec<Slot>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// The cell's text and the character; 0 marks a free slot.
    key: u64,
    /// The text of the resulting cell.
    text: u64,
}

impl ClusterCache {
    /// A power of two.
    const SLOTS: usize = 256;

    #[inline]
    fn key(cell: Cell, c: char) -> u64 {
        // Never 0, which marks a free slot: `c` is above U+0000.
        (cell.0 & TEXT_MASK) << 21 | u64::from(c)
    }

    #[inline]
    fn slot(key: u64) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize % Self::SLOTS
    }

    /// The cell that `cell` becomes when `c` joins it, if that is remembered.
    #[inline]
    pub(crate) fn get(&self, cell: Cell, c: char) -> Option<Cell> {
        let key = Self::key(cell, c);
        let slot = self.slots.get(Self::slot(key))?;
        (slot.key == key).then_some(Cell(cell.0 & !TEXT_MASK | slot.text))
    }

    /// Remembers that `cell` becomes `joined` when `c` joins it.
    pub(crate) fn put(&mut self, cell: Cell, c: char, joined: Cell) {
        self.slots.resize(Self::SLOTS, Slot::default());
        let key = Self::key(cell, c);
        self.slots[Self::slot(key)] = Slot { key, text: joined.0 & TEXT_MASK };
    }

    /// The pool was renumbered or replaced.
    pub(crate) fn clear(&mut self) {
        self.slots.clear();
    }
}
