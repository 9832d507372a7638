//! Keeps the rows of one screen (primary or alternate) in a ring, so that a scroll of the whole screen moves no row.

use alloc::vec::Vec;

use triomphe::Arc;

use crate::screen::cell::Cell;
use crate::screen::prompt_marks::Marks;
use crate::screen::row::{LineId, Row};
use crate::screen::size::{ROW_CELLS, Size};

/// Rows from top to bottom. Cloning copies one pointer a row.
#[derive(Clone, Debug)]
pub struct Grid {
    ring: Vec<Arc<Row>>,
    /// Where row 0 stands in the ring.
    top: usize,
    cols: usize,
    /// Rows from here on bear no marks.
    marked: usize,
    /// The work since it was last taken: see [`Terminal::cells_touched`](crate::Terminal::cells_touched). It is
    /// counted here since rows that a snapshot shares are copied here. 0 in snapshots.
    touched: u64,
}

impl Grid {
    pub(crate) fn blank(rows: usize, cols: usize, next_line: &mut u64) -> Self {
        let ring = (0..rows).map(|_| Arc::new(Row::blank(cols, take_line(next_line)))).collect();
        Self { ring, top: 0, cols, marked: 0, touched: 0 }
    }

    /// A grid of these rows, all `cols` wide.
    pub(crate) fn from_rows(ring: Vec<Arc<Row>>, cols: usize) -> Self {
        debug_assert!(ring.iter().all(|row| row.cells.len() == cols));
        let marked = ring.len();
        Self { ring, top: 0, cols, marked, touched: 0 }
    }

    /// Counts work by the cells touched.
    #[inline]
    pub(crate) fn touch(&mut self, cells: usize) {
        self.touched += cells as u64;
    }

    /// The same for `cells` cells in each of `rows` rows.
    pub(crate) fn touch_rows(&mut self, rows: usize, cells: usize) {
        self.touch(rows * (cells + ROW_CELLS));
    }

    /// Cells touched since they were last taken.
    #[inline]
    pub(crate) fn touched(&self) -> u64 {
        self.touched
    }

    /// The same, and counts from 0 again.
    pub(crate) fn take_touched(&mut self) -> u64 {
        core::mem::take(&mut self.touched)
    }

    /// How many rows.
    pub fn rows(&self) -> usize {
        self.ring.len()
    }

    /// How many columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    #[inline]
    fn slot(&self, row: usize) -> usize {
        assert!(row < self.ring.len(), "row {row} of {}", self.ring.len());
        let at = self.top + row;
        if at >= self.ring.len() { at - self.ring.len() } else { at }
    }

    /// A row, from 0 at the top.
    ///
    /// # Panics
    /// When `row` is not below `rows()`.
    #[inline]
    pub fn row(&self, row: usize) -> &Arc<Row> {
        &self.ring[self.slot(row)]
    }

    /// All rows, from top to bottom.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Row>> {
        let (below, above) = self.ring.split_at(self.top);
        above.iter().chain(below)
    }

    /// A row to write to; copied first if a snapshot shares it.
    #[inline]
    pub(crate) fn row_mut(&mut self, row: usize) -> &mut Row {
        let row = self.text_row_mut(row);
        row.plain = false;
        row
    }

    /// The same for writing text; the caller keeps [`Row::plain`] up to date.
    #[inline]
    pub(crate) fn text_row_mut(&mut self, row: usize) -> &mut Row {
        let slot = self.slot(row);
        own(&mut self.ring[slot], &mut self.touched)
    }

    /// The same, unless a snapshot shares the row.
    #[inline]
    pub(crate) fn unshared_text_row_mut(&mut self, row: usize) -> Option<&mut Row> {
        let slot = self.slot(row);
        Arc::get_mut(&mut self.ring[slot])
    }

    /// Rows from here on bear no marks.
    pub(crate) fn marked(&self) -> usize {
        self.marked
    }

    /// Gives a row these marks.
    pub(crate) fn mark(&mut self, row: usize, marks: Marks) {
        if self.row(row).marks != marks {
            self.row_mut(row).marks = marks;
            self.marked = self.marked.max(row + 1);
        }
    }

    /// Takes the marks of all rows from `first` on.
    pub(crate) fn unmark(&mut self, first: usize) {
        self.touch(self.marked.saturating_sub(first));
        for row in first..self.marked {
            self.mark(row, Marks::NONE);
        }
        self.marked = self.marked.min(first);
    }

    /// Puts the rows in order of the ring, so that a region of them is one slice.
    fn straighten(&mut self) -> &mut [Arc<Row>] {
        self.ring.rotate_left(self.top);
        self.top = 0;
        &mut self.ring
    }

    /// The slice that holds rows `top..bottom`.
    fn region(&mut self, top: usize, bottom: usize) -> &mut [Arc<Row>] {
        let len = self.ring.len();
        let (first, last) = (self.top + top, self.top + bottom);
        if last <= len {
            return &mut self.ring[first..last];
        }
        if first >= len {
            return &mut self.ring[first - len..last - len];
        }
        &mut self.straighten()[top..bottom]
    }

    /// The first row, which is about to scroll away.
    #[inline]
    pub(crate) fn first_mut(&mut self) -> &mut Arc<Row> {
        &mut self.ring[self.top]
    }

    /// Makes the first row the last one, and the others move up.
    #[inline]
    pub(crate) fn turn(&mut self) {
        self.top += 1;
        if self.top == self.ring.len() {
            self.top = 0;
        }
    }

    /// Moves rows `top..bottom` up by `count` (at most their number); blank new lines come in below.
    pub(crate) fn scroll_up(&mut self, top: usize, bottom: usize, count: usize, fill: &mut Fill) {
        debug_assert!(top + count <= bottom && bottom <= self.ring.len());
        self.touch_rows(count, self.cols);
        if top == 0 && bottom == self.ring.len() {
            for _ in 0..count {
                fill.refresh(&mut self.ring[self.top], self.cols);
                self.turn();
            }
            return;
        }
        let cols = self.cols;
        let region = self.region(top, bottom);
        region.rotate_left(count);
        let first = region.len() - count;
        for row in &mut region[first..] {
            fill.refresh(row, cols);
        }
    }

    /// Moves rows `top..bottom` down by `count` (at most their number); blank new lines come in above.
    pub(crate) fn scroll_down(&mut self, top: usize, bottom: usize, count: usize, fill: &mut Fill) {
        debug_assert!(top + count <= bottom && bottom <= self.ring.len());
        self.touch_rows(count, self.cols);
        if self.marked > top {
            self.marked = self.marked.max(bottom);
        }
        let cols = self.cols;
        let region = self.region(top, bottom);
        region.rotate_right(count);
        // From the last one up, so that numbers still grow downwards when the lines come in one by one.
        for row in region[..count].iter_mut() {
            fill.refresh(row, cols);
        }
    }

    /// A copy cut or extended at the right and the bottom.
    pub(crate) fn resized(&self, size: Size, blank: Cell, next_line: &mut u64) -> Self {
        let (rows, cols) = (usize::from(size.rows), usize::from(size.cols));
        let kept = (0..rows.min(self.rows())).map(|row| {
            let row = self.row(row);
            if cols == self.cols { row.clone() } else { Arc::new(row.resized(cols, blank)) }
        });
        let mut ring: Vec<Arc<Row>> = kept.collect();
        while ring.len() < rows {
            let mut row = Row::blank(cols, take_line(next_line));
            row.recycle(row.id, blank);
            ring.push(Arc::new(row));
        }
        Self { ring, top: 0, cols, marked: self.marked.min(rows), touched: 0 }
    }

    /// The rows from `row` on, from column `col` on.
    pub(crate) fn part(&self, row: usize, col: usize) -> Self {
        let below = self.iter().skip(row);
        let ring: Vec<Arc<Row>> = match col {
            0 => below.cloned().collect(),
            _ => below.map(|row| Arc::new(row.beyond(col))).collect(),
        };
        let marked = self.marked.saturating_sub(row).min(ring.len());
        Self { ring, top: 0, cols: self.cols - col, marked, touched: 0 }
    }

    /// Applies `change` to every row, copying those that a snapshot shares.
    pub(crate) fn for_each_mut(&mut self, mut change: impl FnMut(&mut Row)) {
        self.touch_rows(self.ring.len(), 0);
        for row in &mut self.ring {
            let row = own(row, &mut self.touched);
            row.plain = false;
            change(row);
        }
    }
}

/// The row behind `row`, copied first if a snapshot shares it. As `Arc::make_mut`, with the usual case small
/// enough to be inlined.
#[inline]
fn own<'a>(row: &'a mut Arc<Row>, touched: &mut u64) -> &'a mut Row {
    if !row.is_unique() {
        unshare(row, touched);
    }
    Arc::get_mut(row).expect("a row just unshared has one owner")
}

#[cold]
fn unshare(row: &mut Arc<Row>, touched: &mut u64) {
    *touched += (row.cells.len() + ROW_CELLS) as u64;
    *row = Arc::new((**row).clone());
}

/// The blank cell and the number of new lines.
pub(crate) struct Fill<'a> {
    pub blank: Cell,
    pub next_line: &'a mut u64,
}

impl Fill<'_> {
    /// Makes `row` a new line, reusing its memory when nothing else shares it.
    #[inline]
    pub(crate) fn refresh(&mut self, row: &mut Arc<Row>, cols: usize) {
        let id = take_line(self.next_line);
        match Arc::get_mut(row) {
            Some(row) => row.recycle(id, self.blank),
            None => *row = new_line(id, self.blank, cols),
        }
    }
}

#[cold]
fn new_line(id: LineId, blank: Cell, cols: usize) -> Arc<Row> {
    let mut row = Row::blank(cols, id);
    row.recycle(id, blank);
    Arc::new(row)
}

#[inline]
pub(crate) fn take_line(next_line: &mut u64) -> LineId {
    let id = LineId(*next_line);
    *next_line += 1;
    id
}
