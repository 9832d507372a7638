//! Joins characters to the cell before them: grapheme clusters, and the combining marks of stock mosh.

use crate::emulator::Emulator;
use crate::screen::cell::{Cell, Glyph, TEXT_MASK, Width};
use crate::width::{self, Class};

/// Octets of UTF-8 after which a stock cell takes no more marks (`mosh-protocol.md` §6).
const STOCK_CELL_BYTES: usize = 32;

impl Emulator<'_> {
    /// Continues the cluster written last, if `c` does so and the cursor was not moved since.
    pub(crate) fn join(&mut self, c: char, class: Class) -> bool {
        let Some((row, col)) = self.state.last_cell else { return false };
        let Some(&cell) = self.grid.row(row.into()).cells.get(usize::from(col)) else {
            return false;
        };
        if let Some(joined) = self.memo.get(cell, c)
            && self.state.modes.graphemes
        {
            self.put_cluster(row.into(), col.into(), cell, joined);
            return true;
        }
        self.scratch.clear();
        self.pool.push_text(cell, self.scratch);
        if !width::continues(self.scratch, c) {
            return false;
        }
        let sequence = matches!(class, Class::Pictographic | Class::Regional);
        if sequence && !self.state.modes.graphemes {
            return false;
        }
        self.extend_cluster(row.into(), col.into(), cell, c);
        true
    }

    /// Appends `c` to the text of `cell`, which is in `scratch`. Beyond the limits of a cell `c` is dropped.
    fn extend_cluster(&mut self, row: usize, col: usize, cell: Cell, c: char) {
        if self.scratch.chars().count() >= width::CLUSTER_CHARS_MAX
            || self.scratch.len() + c.len_utf8() > width::CLUSTER_BYTES_MAX
        {
            return;
        }
        self.scratch.push(c);
        let columns = width::cluster(self.scratch);
        self.sweep_if_due();
        let cell = self.grid.row(row).cells.get(col).copied().unwrap_or(cell);
        let Some(cluster) = self.pool.intern_cluster(self.scratch) else { return };
        let width = if columns == 2 || cell.is_wide() { Width::Wide } else { Width::Narrow };
        let joined = cell.with_glyph(Glyph::Cluster(cluster), width);
        self.memo.put(cell, c, joined);
        self.put_cluster(row, col, cell, joined);
    }

    /// Gives a cell its longer text, and widens it where that makes it wide.
    fn put_cluster(&mut self, row: usize, col: usize, cell: Cell, joined: Cell) {
        if joined.is_wide() && !cell.is_wide() {
            return self.widen(row, col, joined);
        }
        let target = self.grid.row_mut(row);
        target.cells[col] = joined;
        target.occupy(col + 1);
        self.touched(1);
    }

    /// Replaces the narrow cell left of the cursor by this wide one; wraps if there is no room.
    fn widen(&mut self, row: usize, col: usize, cell: Cell) {
        let follows = if self.state.cursor.pending_wrap { col } else { col + 1 };
        if usize::from(self.state.cursor.row) != row
            || usize::from(self.state.cursor.col) != follows
        {
            return;
        }
        if self.state.cursor.pending_wrap && !self.state.modes.autowrap {
            return;
        }
        let last = self.state.last_char;
        let pen = self.pen;
        self.pen.template = Some(cell.0 & !TEXT_MASK);
        self.state.cursor.col = col as u16;
        self.state.cursor.pending_wrap = false;
        if self.state.modes.insert && follows == col + 1 {
            self.shift_right(col, 1, self.right_limit());
        }
        let insert = core::mem::take(&mut self.state.modes.insert);
        self.place(cell.glyph(), 2);
        self.state.modes.insert = insert;
        self.state.last_char = last;
        self.pen = pen;
    }

    /// Writes a mark of no width that continues no cluster: it goes to the cell left of the cursor.
    pub(crate) fn attach(&mut self, c: char) {
        if !width::is_loose_mark(c) {
            return;
        }
        let Some((row, col)) = self.mark_target() else { return };
        let cell = self.grid.row(row).cells[col];
        self.scratch.clear();
        self.pool.push_text(cell, self.scratch);
        let before = width::cluster(self.scratch);
        self.scratch.push(c);
        let same = width::cluster(self.scratch) == before;
        self.scratch.pop();
        if same {
            self.extend_cluster(row, col, cell, c);
        }
    }

    /// The cell written last, or after a move the one left of the cursor.
    fn mark_target(&self) -> Option<(usize, usize)> {
        let cursor = self.state.cursor;
        let (row, mut col) = match self.state.last_cell {
            Some((row, col)) => (row.into(), usize::from(col)),
            None if cursor.pending_wrap => (cursor.row.into(), cursor.col.into()),
            None => (cursor.row.into(), usize::from(cursor.col.checked_sub(1)?)),
        };
        if self.grid.row(row).cells.get(col)?.is_tail() {
            col = col.checked_sub(1)?;
        }
        Some((row, col))
    }

    /// Stock's marks: onto the cell written last, else the one under the cursor; alone on an empty cell
    /// they get a no-break space, and the cursor moves on.
    pub(crate) fn write_stock_mark(&mut self, c: char) {
        let cursor = self.state.cursor;
        let (row, col) = self.state.last_cell.unwrap_or((cursor.row, cursor.col));
        let (row, col) = (usize::from(row), usize::from(col));
        let Some(&cell) = self.grid.row(row).cells.get(col) else { return };
        self.scratch.clear();
        self.pool.push_text(cell, self.scratch);
        if self.scratch.len() >= STOCK_CELL_BYTES {
            return;
        }
        // A space that was written is not empty, but looks so once the cursor has moved.
        let written = self.state.last_cell.is_some() && self.state.last_char == Some(' ');
        let empty = cell.is_space() && !written;
        if empty {
            self.scratch.clear();
            self.scratch.push('\u{a0}');
        }
        self.scratch.push(c);
        self.sweep_if_due();
        let cell = self.grid.row(row).cells[col];
        let Some(cluster) = self.pool.intern_cluster(self.scratch) else { return };
        let width = if cell.is_wide() { Width::Wide } else { Width::Narrow };
        let target = self.grid.row_mut(row);
        target.cells[col] = cell.with_glyph(Glyph::Cluster(cluster), width);
        target.occupy(col + 1);
        self.touched(1);
        if empty {
            // Not where this mark went, if what was written last has been erased.
            self.state.last_cell = Some((cursor.row, cursor.col));
            self.settle(usize::from(cursor.col) + 1, usize::from(self.state.size.cols));
        }
    }
}
