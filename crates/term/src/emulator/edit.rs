//! Erasing, inserting and deleting.

use crate::emulator::Emulator;
use crate::emulator::profile::Functions;
use crate::screen::cell::{Cell, Glyph, Width};
use crate::screen::modes::Guard;
use crate::screen::properties::SavesErased;
use crate::screen::row::{Ending, LineSize};
use crate::screen::style::Attrs;

/// Which cells an erasing function spares.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Selective {
    /// ISO guarded areas while they are in use, else nothing.
    Guarded,
    /// All protected cells.
    Protected,
    /// Cells protected by DECSCA, but not ISO guarded areas; only characters are erased.
    ProtectedByDec,
}

/// The part of a line or screen an erasing function takes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Extent {
    /// From the cursor on.
    After,
    /// Up to and with the cursor.
    Before,
    /// All of it.
    All,
}

impl Extent {
    /// From the parameter of EL, ED and their selective forms.
    pub(crate) fn of(param: u16) -> Option<Self> {
        match param {
            0 => Some(Self::After),
            1 => Some(Self::Before),
            2 => Some(Self::All),
            _ => None,
        }
    }
}

impl Emulator<'_> {
    fn spares(&self, spare: Selective) -> bool {
        match spare {
            Selective::Guarded => self.state.modes.guard == Guard::Iso,
            Selective::Protected => true,
            Selective::ProtectedByDec => self.state.modes.guard == Guard::Dec,
        }
    }

    /// Erases columns `left..right` of a row.
    pub(crate) fn erase(&mut self, row: usize, left: usize, right: usize, spare: Selective) {
        // DECSERA leaves the rendition; DECSED and DECSEL do not (xterm).
        let leaves_rendition = spare == Selective::ProtectedByDec;
        let spares = self.spares(spare);
        let blank = self.blank();
        let target = self.grid.row_mut(row);
        for border in [left, right] {
            // Of a wide cell across a border both halves go, or none if it is protected.
            if !(spares && target.cells.get(border).is_some_and(|cell| cell.is_protected())) {
                target.split(border);
            }
        }
        let whole = right == target.cells.len();
        if spares || leaves_rendition {
            for cell in &mut target.cells[left..right] {
                if !(spares && cell.is_protected()) {
                    *cell = if leaves_rendition { cell.without_character() } else { blank };
                }
            }
            target.mend();
            target.occupy(right);
        } else if whole && blank == Cell::BLANK {
            let end = usize::from(target.occupied).max(left);
            target.cells[left..end].fill(blank);
            target.occupied = target.occupied.min(left as u16);
        } else {
            target.cells[left..right].fill(blank);
            target.occupy(right);
        }
        if whole {
            target.ending = Ending::Hard;
        }
        // Mending goes through the whole row.
        let mended = if spares || leaves_rendition { self.cols() } else { 0 };
        self.grid.touch_rows(1, right - left + mended);
    }

    /// EL and DECSEL.
    pub(crate) fn erase_line(&mut self, extent: Extent, spare: Selective) {
        let row = usize::from(self.state.cursor.row);
        let col = usize::from(self.state.cursor.col);
        let (left, right) = match extent {
            Extent::After => (col, self.cols()),
            Extent::Before => (0, col + 1),
            Extent::All => (0, self.cols()),
        };
        self.erase(row, left, right, spare);
        self.state.cursor.pending_wrap = false;
    }

    /// ED and DECSED.
    pub(crate) fn erase_display(&mut self, extent: Extent, spare: Selective) {
        let row = usize::from(self.state.cursor.row);
        let home = row == 0 && self.state.cursor.col == 0;
        let saved = match extent {
            Extent::All => SavesErased::All,
            Extent::After if home => SavesErased::FromHome,
            Extent::After | Extent::Before => SavesErased::Never,
        };
        if saved != SavesErased::Never
            && saved <= self.around.saves_erased
            && spare == Selective::Guarded
            && !self.spares(spare)
        {
            self.save_screen();
        }
        let rows = match extent {
            Extent::After => row + 1..self.rows(),
            Extent::Before => 0..row,
            Extent::All => 0..self.rows(),
        };
        for row in rows {
            self.erase(row, 0, self.cols(), spare);
            self.grid.row_mut(row).size = LineSize::Single;
        }
        if extent == Extent::All || extent == Extent::After && home {
            self.unmark();
        }
        if extent != Extent::All {
            self.erase_line(extent, spare);
        }
        self.state.cursor.pending_wrap = false;
    }

    /// ECH.
    pub(crate) fn erase_characters(&mut self, count: u16) {
        let left = usize::from(self.state.cursor.col);
        let right = (left + usize::from(count)).min(self.cols());
        self.erase(self.state.cursor.row.into(), left, right, Selective::Guarded);
        self.state.cursor.pending_wrap = false;
    }

    /// ICH.
    pub(crate) fn insert_characters(&mut self, count: u16) {
        self.state.cursor.pending_wrap = false;
        if !self.inside_columns() {
            return;
        }
        let row = self.state.cursor.row;
        self.insert_cells(row, self.state.cursor.col, count);
    }

    /// DCH.
    pub(crate) fn delete_characters(&mut self, count: u16) {
        self.state.cursor.pending_wrap = false;
        if !self.inside_columns() {
            return;
        }
        let row = self.state.cursor.row;
        self.delete_cells(row, self.state.cursor.col, count);
    }

    /// DECIC: ICH on every line of the region.
    pub(crate) fn insert_columns(&mut self, count: u16) {
        if !self.inside_margins() {
            return;
        }
        for row in self.state.margins.top..self.state.margins.bottom {
            self.insert_cells(row, self.state.cursor.col, count);
        }
    }

    /// DECDC: DCH on every line of the region.
    pub(crate) fn delete_columns(&mut self, count: u16) {
        if !self.inside_margins() {
            return;
        }
        for row in self.state.margins.top..self.state.margins.bottom {
            self.delete_cells(row, self.state.cursor.col, count);
        }
    }

    /// Opens a gap at `col`; cells pushed past the right margin are lost.
    pub(crate) fn insert_cells(&mut self, row: u16, col: u16, count: u16) {
        let right = usize::from(self.state.margins.right);
        let left = usize::from(col);
        let count = usize::from(count).min(right - left);
        let blank = self.blank();
        let target = self.grid.row_mut(row.into());
        target.split(left);
        target.split(right - count);
        target.split(right);
        target.cells.copy_within(left..right - count, left + count);
        target.trim_last();
        target.cells[left..left + count].fill(blank);
        target.occupy(right);
        if right == target.cells.len() {
            target.ending = Ending::Hard;
        }
        self.touched(right - left);
    }

    /// Closes a gap at `col`; blanks come in at the right margin.
    pub(crate) fn delete_cells(&mut self, row: u16, col: u16, count: u16) {
        let right = usize::from(self.state.margins.right);
        let left = usize::from(col);
        let count = usize::from(count).min(right - left);
        let blank = self.blank();
        let target = self.grid.row_mut(row.into());
        target.split(left);
        target.split(left + count);
        target.split(right);
        target.cells.copy_within(left + count..right, left);
        target.cells[right - count..right].fill(blank);
        target.occupy(right);
        if right == target.cells.len() {
            target.ending = Ending::Hard;
        }
        self.touched(right - left);
    }

    /// IL.
    pub(crate) fn insert_lines(&mut self, count: u16) {
        if self.inside_margins() {
            self.scroll_down(self.state.cursor.row, count);
        }
        self.line_edited();
    }

    /// DL.
    pub(crate) fn delete_lines(&mut self, count: u16) {
        if self.inside_margins() {
            self.scroll_up(self.state.cursor.row, count);
        }
        self.line_edited();
    }

    /// IL and DL move the cursor to the first column of the margins. Stock mosh moves it even where they do nothing.
    fn line_edited(&mut self) {
        if self.inside_margins()
            || self.profile.functions == crate::emulator::profile::Functions::Stock
        {
            let left = self.state.margins.left;
            self.move_to(self.state.cursor.row, left);
        }
    }

    /// DECBI: left one column, scrolling the region right at the left margin.
    pub(crate) fn back_index(&mut self) {
        let margins = self.state.margins;
        if self.state.cursor.col == margins.left {
            if self.inside_margins() {
                for row in margins.top..margins.bottom {
                    self.insert_cells(row, margins.left, 1);
                }
            }
        } else if self.state.cursor.col > 0 {
            self.move_to(self.state.cursor.row, self.state.cursor.col - 1);
        }
    }

    /// DECFI: right one column, scrolling the region left at the right margin.
    pub(crate) fn forward_index(&mut self) {
        let margins = self.state.margins;
        if self.state.cursor.col + 1 == margins.right {
            if self.inside_margins() {
                for row in margins.top..margins.bottom {
                    self.delete_cells(row, margins.left, 1);
                }
            }
        } else {
            self.move_to(self.state.cursor.row, self.state.cursor.col + 1);
        }
    }

    /// DECALN.
    pub(crate) fn align(&mut self) {
        let cols = self.cols();
        let letter = match self.profile.functions {
            Functions::All => Cell::narrow('E'),
            Functions::Stock => self.blank().with_glyph(Glyph::Char('E'), Width::Narrow),
        };
        for row in 0..self.rows() {
            let row = self.grid.row_mut(row);
            row.cells.fill(letter);
            row.occupy(cols);
            row.ending = Ending::Hard;
            row.size = LineSize::Single;
        }
        self.grid.touch_rows(self.rows(), cols);
        if self.profile.functions == Functions::Stock {
            return;
        }
        self.reset_margins();
        self.state.modes.origin = false;
        // Colours and protection stay (xterm).
        self.state.pen.style.attrs = Attrs::NONE;
        self.pen_changed();
        self.move_to(0, 0);
    }

    pub(crate) fn reset_margins(&mut self) {
        self.state.margins = crate::screen::Margins::whole(self.state.size);
    }
}
