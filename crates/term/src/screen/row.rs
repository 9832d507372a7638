//! A row of cells, shared between snapshots by pointer.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use core::fmt;

use crate::screen::cell::{Cell, TEXT_MASK};
use crate::screen::prompt_marks::Marks;

/// The number a line keeps for life, given when it is created and never given again by that emulator:
/// a scroll is seen by comparing numbers, without a search.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LineId(pub(crate) u64);

impl LineId {
    /// The bare number.
    pub fn get(self) -> u64 {
        self.0
    }
}

/// How large a line is drawn (DECSWL, DECDWL, DECDHL). Double lines show half as many columns.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum LineSize {
    /// As usual.
    #[default]
    Single,
    /// Double width.
    DoubleWidth,
    /// The upper half of a line of double width and height.
    DoubleTop,
    /// The lower half of a line of double width and height.
    DoubleBottom,
}

/// How a line ends.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Ending {
    /// The text ends here.
    #[default]
    Hard,
    /// The text went on in the next row because the margin was reached.
    Wrapped,
    /// The same because a wide character had no room: the last column is no part of the text.
    WrappedEarly,
}

/// One row. What it means depends on the pool of its screen; two screens that share it by pointer
/// agree on every number in it.
#[derive(Clone)]
pub struct Row {
    pub(crate) cells: Box<[Cell]>,
    pub(crate) id: LineId,
    /// Cells from here on are `Cell::BLANK`.
    pub(crate) occupied: u16,
    /// It holds only unstyled ASCII, has single size, ends here, and has no marks. `false` means that this is
    /// unknown.
    pub(crate) plain: bool,
    pub(crate) ending: Ending,
    pub(crate) size: LineSize,
    pub(crate) marks: Marks,
}

/// Without `Row::plain`, which only caches a property of the row.
impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Row")
            .field("cells", &self.cells)
            .field("id", &self.id)
            .field("occupied", &self.occupied)
            .field("ending", &self.ending)
            .field("size", &self.size)
            .field("marks", &self.marks)
            .finish_non_exhaustive()
    }
}

impl Row {
    pub(crate) fn blank(cols: usize, id: LineId) -> Self {
        Self {
            cells: vec![Cell::BLANK; cols].into_boxed_slice(),
            id,
            occupied: 0,
            plain: false,
            ending: Ending::Hard,
            size: LineSize::Single,
            marks: Marks::NONE,
        }
    }

    /// All cells, as many as the screen has columns.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// The cells before the last stretch of unstyled blanks; may be a few too many.
    pub fn occupied(&self) -> &[Cell] {
        self.cells.get(..usize::from(self.occupied)).unwrap_or(&self.cells)
    }

    /// The line's number.
    pub fn id(&self) -> LineId {
        self.id
    }

    /// The text goes on in the next row.
    pub fn is_wrapped(&self) -> bool {
        self.ending != Ending::Hard
    }

    /// How large the line is drawn.
    pub fn size(&self) -> LineSize {
        self.size
    }

    /// The shell's marks in the line (OSC 133).
    pub fn marks(&self) -> Marks {
        self.marks
    }

    /// Makes this a blank new line, filled with `blank`, without giving up its memory.
    #[inline]
    pub(crate) fn recycle(&mut self, id: LineId, blank: Cell) {
        self.id = id;
        if blank == Cell::BLANK {
            let occupied = usize::from(self.occupied);
            self.cells[..occupied].fill(Cell::BLANK);
            self.occupied = 0;
        } else {
            self.cells.fill(blank);
            self.occupied = self.cells.len() as u16;
        }
        if !self.plain {
            self.ending = Ending::Hard;
            self.size = LineSize::Single;
            self.marks = Marks::NONE;
        }
        self.plain = blank == Cell::BLANK;
    }

    /// The cells before the last stretch of unstyled blanks.
    pub(crate) fn trimmed(&self) -> &[Cell] {
        let occupied = self.occupied();
        let end = occupied.iter().rposition(|cell| *cell != Cell::BLANK).map_or(0, |last| last + 1);
        &occupied[..end]
    }

    /// The first broken invariant of this row, if any.
    pub(crate) fn fault(&self, cols: usize) -> Option<String> {
        if self.cells.len() != cols {
            return Some(format!("{} cells", self.cells.len()));
        }
        let behind = self.cells.get(usize::from(self.occupied)..)?;
        if behind.iter().any(|cell| *cell != Cell::BLANK) {
            return Some(format!("written beyond {} occupied cells", self.occupied));
        }
        let bare = self.ending == Ending::Hard && self.size == LineSize::Single;
        let bare = bare && self.marks.is_none();
        if self.plain && (!bare || self.cells.iter().any(|cell| cell.0 >= 0x80)) {
            return Some("taken for plain".to_owned());
        }
        for (col, cell) in self.cells.iter().enumerate() {
            let before_is_wide = col > 0 && self.cells[col - 1].is_wide();
            if cell.is_tail() && !before_is_wide {
                return Some(format!("a tail without a head at {col}"));
            }
            if cell.is_wide() && col + 1 == cols {
                return Some("a wide cell in the last column".to_owned());
            }
        }
        None
    }

    /// A copy with another number of cells.
    pub(crate) fn resized(&self, cols: usize, blank: Cell) -> Self {
        let mut cells = self.cells.to_vec();
        if cells.len() < cols {
            cells.resize(cols, blank);
        } else {
            cells.truncate(cols);
        }
        let occupied =
            if blank == Cell::BLANK { self.occupied.min(cols as u16) } else { cols as u16 };
        let mut row = Self {
            cells: cells.into_boxed_slice(),
            id: self.id,
            occupied,
            plain: false,
            ending: Ending::Hard,
            size: self.size,
            marks: self.marks.clamped(cols),
        };
        row.trim_last();
        row
    }

    /// The cells from `col` on. A wide cell that stands across the border becomes a blank.
    pub(crate) fn beyond(&self, col: usize) -> Self {
        let mut row = self.clone();
        row.split(col);
        row.cells = row.cells[col..].into();
        row.occupied = self.occupied.saturating_sub(col as u16);
        row.plain = false;
        row.marks = Marks::NONE;
        row
    }

    /// Makes sure that no wide cell stands across the border before `col`: both halves become blanks.
    pub(crate) fn split(&mut self, col: usize) {
        if col == 0 || !self.cells.get(col).is_some_and(|cell| cell.is_tail()) {
            return;
        }
        for cell in &mut self.cells[col - 1..=col] {
            *cell = Cell(cell.0 & !TEXT_MASK | u64::from(b' '));
        }
    }

    /// A wide cell pushed into the last column becomes a blank: it has no room.
    pub(crate) fn trim_last(&mut self) {
        if let Some(last) = self.cells.last_mut()
            && last.is_wide()
        {
            *last = Cell(last.0 & !TEXT_MASK | u64::from(b' '));
        }
    }

    /// Turns halves of wide cells that lost their other half into blanks.
    pub(crate) fn mend(&mut self) {
        let mut wide_before = false;
        for col in 0..self.cells.len() {
            let cell = self.cells[col];
            let tail_after = self.cells.get(col + 1).is_some_and(|next| next.is_tail());
            if cell.is_tail() && !wide_before || cell.is_wide() && !tail_after {
                self.cells[col] = Cell(cell.0 & !TEXT_MASK | u64::from(b' '));
            }
            wide_before = self.cells[col].is_wide();
        }
    }

    /// Cells are about to be written up to (not including) `end`.
    pub(crate) fn occupy(&mut self, end: usize) {
        debug_assert!(end <= self.cells.len());
        self.occupied = self.occupied.max(end as u16);
    }
    /// Turns a tail at `col` into a space: its head was overwritten.
    #[inline]
    pub(crate) fn free_tail(&mut self, col: usize) {
        if let Some(cell) = self.cells.get_mut(col)
            && cell.is_tail()
        {
            *cell = Cell(cell.0 & !TEXT_MASK | u64::from(b' '));
        }
    }

    /// Cells were written up to (not including) `end`. Text in the last column ends the line until it wraps.
    #[inline]
    pub(crate) fn written_to(&mut self, end: usize) {
        if end == self.cells.len() {
            self.ending = Ending::Hard;
        }
        self.occupy(end);
    }
}
