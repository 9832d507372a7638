//! Bounds the size of screens.

/// Rows or columns a screen can have (threats row 9).
pub const SIDE_MAX: u16 = 1000;
/// Cells a screen can have (threats row 9): with 8 bytes a cell, 1.6 MB.
pub const CELLS_MAX: u32 = 200_000;
/// The cost of a row beside its cells in a pass over many rows, counted in cells: a row of one cell takes as long as
/// one of about sixteen (`examples/work_bench`).
pub(crate) const ROW_CELLS: usize = 16;

/// A screen's size; always 1..=1000 each way and at most 200,000 cells.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct Size {
    /// Lines.
    pub rows: u16,
    /// Columns.
    pub cols: u16,
}

impl Size {
    /// The size terminals have had since the VT100.
    pub const DEFAULT: Self = Self { rows: 24, cols: 80 };

    /// `None` when out of bounds.
    pub fn new(rows: u16, cols: u16) -> Option<Self> {
        let clamped = Self::clamped(rows, cols);
        (clamped == Self { rows, cols }).then_some(clamped)
    }

    /// The work of one pass over all cells ([`Terminal::cells_touched`](crate::Terminal::cells_touched)): the cells,
    /// and the cost of their rows.
    pub fn work(self) -> u64 {
        u64::from(self.rows) * (u64::from(self.cols) + ROW_CELLS as u64)
    }

    /// The nearest allowed size; too many cells cost columns.
    pub fn clamped(rows: impl Into<i64>, cols: impl Into<i64>) -> Self {
        let rows = rows.into().clamp(1, i64::from(SIDE_MAX)) as u16;
        let cols_max = (CELLS_MAX / u32::from(rows)).min(u32::from(SIDE_MAX));
        Self { rows, cols: cols.into().clamp(1, i64::from(cols_max)) as u16 }
    }
}
