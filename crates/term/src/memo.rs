//! A small memory of clusters just formed.

use crate::cell::{Cell, ClusterId, Glyph, TEXT_MASK};

/// What recently joined what: most text repeats few clusters.
#[derive(Clone, Debug, Default)]
pub(crate) struct JoinMemo {
    /// Empty until first used. Key: the cell's glyph and the character; what came of it.
    slots: Vec<(u64, ClusterId, u8)>,
}

impl JoinMemo {
    /// A power of two.
    const SLOTS: usize = 256;

    fn key(cell: Cell, c: char) -> u64 {
        // Never 0, which marks a free slot: `c` is above U+0000.
        (cell.0 & (TEXT_MASK)) << 21 | u64::from(c)
    }

    fn slot(key: u64) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize % Self::SLOTS
    }

    #[inline]
    pub(crate) fn get(&self, cell: Cell, c: char) -> Option<(Glyph, u8)> {
        let key = Self::key(cell, c);
        let (known, cluster, columns) = *self.slots.get(Self::slot(key))?;
        (known == key).then_some((Glyph::Cluster(cluster), columns))
    }

    pub(crate) fn put(&mut self, cell: Cell, c: char, cluster: ClusterId, columns: u8) {
        self.slots.resize(Self::SLOTS, (0, ClusterId(0), 0));
        let key = Self::key(cell, c);
        self.slots[Self::slot(key)] = (key, cluster, columns);
    }

    /// The pool was renumbered or replaced.
    pub(crate) fn clear(&mut self) {
        self.slots.clear();
    }
}
