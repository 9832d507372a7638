//! Moves the cursor, and scrolls where a motion leaves the margins.

use crate::emulator::Emulator;
use crate::emulator::profile::Functions;
use crate::screen::grid::Fill;
use crate::screen::row::{Ending, Row};
use crate::screen::{Buffer, Margins, TabStops};

impl Emulator<'_> {
    pub(crate) fn rows(&self) -> usize {
        self.state.size.rows.into()
    }

    pub(crate) fn cols(&self) -> usize {
        self.state.size.cols.into()
    }

    /// The columns of the cursor's line: half of them on a double line.
    fn line_cols(&self) -> u16 {
        let cols = self.state.size.cols;
        if !self.state.double_lines {
            return cols;
        }
        match self.grid.row(self.state.cursor.row.into()).size {
            crate::screen::row::LineSize::Single => cols,
            _ => (cols / 2).max(1),
        }
    }

    /// Puts the cursor somewhere on the screen, clamped.
    pub(crate) fn move_to(&mut self, row: u16, col: u16) {
        self.state.cursor.row = row.min(self.state.size.rows - 1);
        self.state.cursor.col = col.min(self.line_cols() - 1);
        self.state.cursor.pending_wrap = false;
        self.state.last_cell = None;
    }

    /// CUP and its like: from 0, within the margins in origin mode.
    pub(crate) fn address(&mut self, row: u16, col: u16) {
        self.address_row(row);
        self.address_column(col);
    }

    pub(crate) fn address_row(&mut self, row: u16) {
        let margins = self.state.margins;
        let row = if self.state.modes.origin {
            row.saturating_add(margins.top).min(margins.bottom - 1)
        } else {
            row
        };
        self.move_to(row, self.state.cursor.col);
    }

    pub(crate) fn address_column(&mut self, col: u16) {
        let margins = self.state.margins;
        let col = if self.state.modes.origin {
            col.saturating_add(margins.left).min(margins.right - 1)
        } else {
            col
        };
        self.move_to(self.state.cursor.row, col);
    }

    /// The rows that vertical motion stays in: for stock the margins' only in origin mode.
    fn bounds(&self) -> (u16, u16) {
        let margins = self.state.margins;
        if self.profile.functions == Functions::Stock && !self.state.modes.origin {
            return (0, self.state.size.rows);
        }
        (margins.top, margins.bottom)
    }

    /// CUU and its like: stops at the top margin unless already above it.
    pub(crate) fn up(&mut self, count: u16) {
        let cursor = self.state.cursor;
        let (top, _) = self.bounds();
        let stop = if cursor.row >= top { top } else { 0 };
        self.move_to(cursor.row.saturating_sub(count).max(stop), cursor.col);
    }

    /// CUD and its like: stops at the bottom margin unless already below it.
    pub(crate) fn down(&mut self, count: u16) {
        let cursor = self.state.cursor;
        let (_, bottom) = self.bounds();
        let end = if cursor.row >= bottom { self.state.size.rows } else { bottom };
        self.move_to(cursor.row.saturating_add(count).min(end - 1), cursor.col);
    }

    /// CUF: stops at the right margin unless already beyond it.
    pub(crate) fn right(&mut self, count: u16) {
        let cursor = self.state.cursor;
        let beyond = cursor.col >= self.state.margins.right;
        let end = if beyond { self.state.size.cols } else { self.state.margins.right };
        self.move_to(cursor.row, cursor.col.saturating_add(count).min(end - 1));
    }

    /// CUB and BS: stops at the left margin unless already before it; with reverse wrap it goes on at the
    /// end of the line above.
    pub(crate) fn left(&mut self, count: u16) {
        let modes = self.state.modes;
        if modes.autowrap && (modes.reverse_wrap || modes.extended_reverse_wrap) {
            return self.left_reverse(count);
        }
        let cursor = self.state.cursor;
        let stop = self.left_stop(cursor.col);
        self.move_to(cursor.row, cursor.col.saturating_sub(count).max(stop));
    }

    fn left_stop(&self, col: u16) -> u16 {
        if col >= self.state.margins.left { self.state.margins.left } else { 0 }
    }

    /// CUB that goes on at the end of the line above, and from the first line at the end of the last (xterm
    /// 379; later ones do so only in mode 1045, and in mode 45 stay within a wrapped line).
    fn left_reverse(&mut self, count: u16) {
        let margins = self.state.margins;
        let cursor = self.state.cursor;
        // A cursor past the end is brought back by the first step.
        let count = count - u16::from(cursor.pending_wrap && count > 0);
        let left = self.left_stop(cursor.col);
        if cursor.col - left >= count {
            return self.move_to(cursor.row, cursor.col - count);
        }
        if (cursor.row, cursor.col) == (margins.top, margins.left) {
            return self.move_to(margins.bottom - 1, margins.right - 1);
        }
        let width = i64::from(margins.right - left);
        let cells = width * i64::from(self.state.size.rows);
        let ahead = width * i64::from(cursor.row) + i64::from(cursor.col - left);
        let cell = (ahead - i64::from(count)).rem_euclid(cells);
        self.move_to((cell / width) as u16, left + (cell % width) as u16);
    }

    /// CR: to the left margin, unless already before it.
    #[inline]
    pub(crate) fn carriage_return(&mut self) {
        let stop = if self.state.modes.origin {
            self.state.margins.left
        } else {
            self.left_stop(self.state.cursor.col)
        };
        self.state.cursor.col = stop;
        self.state.cursor.pending_wrap = false;
        self.state.last_cell = None;
    }

    /// LF, VT, FF.
    #[inline]
    pub(crate) fn line_feed(&mut self) {
        self.state.cursor.pending_wrap = false;
        self.state.last_cell = None;
        self.index();
        if self.state.modes.newline {
            self.carriage_return();
        }
    }

    /// IND: down one line, scrolling at the bottom margin.
    #[inline]
    pub(crate) fn index(&mut self) {
        // As numbers of another width: sixteen bits to count with are read together with the column beside
        // them, which was just written, and for that the processor waits.
        let below = u32::from(self.state.cursor.row) + 1;
        if below == u32::from(self.state.margins.bottom) {
            if self.state.margins == Margins::whole(self.state.size) {
                self.scroll_screen();
            } else if self.inside_columns() {
                self.scroll_text(1);
            }
        } else if below < u32::from(self.state.size.rows) {
            self.state.cursor.row += 1;
        }
    }

    /// RI: up one line, scrolling at the top margin.
    pub(crate) fn reverse_index(&mut self) {
        let cursor = self.state.cursor;
        if cursor.row == self.state.margins.top {
            if self.inside_columns() {
                self.scroll_down(self.state.margins.top, 1);
            }
        } else {
            self.state.cursor.row = cursor.row.saturating_sub(1);
        }
        self.state.cursor.pending_wrap = false;
        self.state.last_cell = None;
    }

    /// The cursor stands between the left and right margins.
    pub(crate) fn inside_columns(&self) -> bool {
        let margins = self.state.margins;
        (margins.left..margins.right).contains(&self.state.cursor.col)
    }

    /// The cursor stands inside all four margins.
    pub(crate) fn inside_margins(&self) -> bool {
        let margins = self.state.margins;
        (margins.top..margins.bottom).contains(&self.state.cursor.row) && self.inside_columns()
    }

    fn margins_are_full_width(&self) -> bool {
        self.state.margins.left == 0 && self.state.margins.right == self.state.size.cols
    }

    /// Moves the lines from `top` to the bottom margin up.
    pub(crate) fn scroll_up(&mut self, top: u16, count: u16) {
        let bottom = self.state.margins.bottom;
        let count = count.min(bottom - top);
        if !self.margins_are_full_width() {
            return self.shift_lines(usize::from(top), usize::from(count), Shift::Up);
        }
        let (grid, mut fill) = self.fill();
        grid.scroll_up(top.into(), bottom.into(), count.into(), &mut fill);
    }

    /// Moves the lines from `top` to the bottom margin down.
    pub(crate) fn scroll_down(&mut self, top: u16, count: u16) {
        let bottom = self.state.margins.bottom;
        let count = count.min(bottom - top);
        if !self.margins_are_full_width() {
            return self.shift_lines(usize::from(top), usize::from(count), Shift::Down);
        }
        let (grid, mut fill) = self.fill();
        grid.scroll_down(top.into(), bottom.into(), count.into(), &mut fill);
    }

    /// Moves all lines up by one, as running text does: one row leaves, and comes back blank.
    fn scroll_screen(&mut self) {
        let kept = self.state.buffer == Buffer::Primary && self.history.keeps_lines();
        let cols = self.cols();
        let blank = self.blank();
        let row = self.grid.first_mut();
        let packed = if kept { self.history.push(row, self.pool) } else { 0 };
        self.state.depth += u64::from(kept);
        Fill { blank, next_line: &mut self.state.next_line }.refresh(row, cols);
        self.grid.turn();
        self.touched(cols + packed);
    }

    /// Moves the lines of the region up, as running text does. Lines that leave the top of the primary screen go to
    /// the history.
    #[inline]
    pub(crate) fn scroll_text(&mut self, count: u16) {
        let Margins { top, bottom, .. } = self.state.margins;
        let kept = top == 0
            && self.state.buffer == Buffer::Primary
            && self.history.keeps_lines()
            && self.margins_are_full_width();
        if kept {
            for row in 0..usize::from(count.min(bottom)) {
                let packed = self.history.push(self.grid.row(row), self.pool);
                self.touched(packed);
            }
            self.state.depth += u64::from(count.min(bottom));
        }
        self.scroll_up(top, count);
    }

    /// Moves the lines of the primary screen into the history, down to the last one in use. Margins do not count.
    pub(crate) fn save_screen(&mut self) {
        if self.state.buffer != Buffer::Primary || !self.history.keeps_lines() {
            return;
        }
        let is_used = |row: &usize| {
            let row = self.grid.row(*row);
            row.cells[..usize::from(row.occupied)]
                .iter()
                .any(|cell| *cell != crate::screen::cell::Cell::BLANK)
        };
        let last = (0..self.rows()).rfind(is_used);
        let searched = self.rows() - last.unwrap_or(0);
        self.grid.touch_rows(searched, self.cols());
        let used = last.map_or(0, |last| last + 1);
        for row in 0..used {
            let packed = self.history.push(self.grid.row(row), self.pool);
            self.touched(packed);
        }
        self.state.depth += used as u64;
        let rows = self.rows();
        let (grid, mut fill) = self.fill();
        grid.scroll_up(0, rows, used, &mut fill);
    }

    /// Scrolls the cells between the left and right margins, leaving the rest of the lines in place.
    fn shift_lines(&mut self, top: usize, count: usize, shift: Shift) {
        let margins = self.state.margins;
        let (left, right) = (usize::from(margins.left), usize::from(margins.right));
        let bottom = usize::from(margins.bottom);
        let blank = self.blank();
        let open = |row: &mut Row| {
            row.split(left);
            row.split(right);
            row.occupy(right);
            row.ending = crate::screen::row::Ending::Hard;
        };
        for step in 0..bottom - top {
            let (to, from) = match shift {
                Shift::Up => (top + step, top + step + count),
                Shift::Down => (bottom - 1 - step, (bottom - 1 - step).wrapping_sub(count)),
            };
            if (top..bottom).contains(&from) {
                open(self.grid.row_mut(from));
                let source = self.grid.row(from).clone();
                let target = self.grid.row_mut(to);
                open(target);
                target.cells[left..right].copy_from_slice(&source.cells[left..right]);
            } else {
                let target = self.grid.row_mut(to);
                open(target);
                target.cells[left..right].fill(blank);
            }
        }
        self.grid.touch_rows(bottom - top, right - left);
    }

    /// HT: to the next stop, the right margin or the last column.
    pub(crate) fn tab(&mut self, count: u16) {
        if self.state.modes.more_fix && self.state.cursor.pending_wrap {
            self.wrap(Ending::Wrapped);
        }
        let cursor = self.state.cursor;
        // Even from beyond the right margin, as in xterm.
        let end = self.state.margins.right;
        let (mut col, mut steps) = (cursor.col, 0);
        while steps < count && col + 1 != end {
            col = next_stop(&self.extras.tabs, col).min(end - 1);
            steps += 1;
        }
        self.touched(steps.into());
        if col != cursor.col {
            self.state.cursor.col = col;
            self.state.cursor.pending_wrap = false;
        }
        self.state.last_cell = None;
    }

    /// CBT: to the stop before, or column 0; in origin mode to the left margin.
    pub(crate) fn tab_back(&mut self, count: u16) {
        let (mut col, mut steps) = (self.state.cursor.col, 0);
        while steps < count && col > 0 {
            col = stop_before(&self.extras.tabs, col);
            steps += 1;
        }
        self.touched(steps.into());
        if self.state.modes.origin {
            col = col.max(self.state.margins.left.min(self.state.cursor.col));
        }
        if col != self.state.cursor.col {
            self.state.cursor.col = col;
            self.state.cursor.pending_wrap = false;
        }
        self.state.last_cell = None;
    }
}

#[derive(Clone, Copy)]
enum Shift {
    Up,
    Down,
}

/// The first stop after `col`; beyond the last one, a column no screen has.
fn next_stop(stops: &TabStops, col: u16) -> u16 {
    let from = usize::from(col) + 1;
    let mut word = from / 64;
    let mut bits = stops.get(word).map_or(0, |bits| bits & u64::MAX << (from % 64));
    while bits == 0 {
        word += 1;
        match stops.get(word) {
            Some(next) => bits = *next,
            None => return u16::MAX,
        }
    }
    (word * 64) as u16 + bits.trailing_zeros() as u16
}

/// The last stop before `col`, or 0.
fn stop_before(stops: &TabStops, col: u16) -> u16 {
    let mut word = usize::from(col) / 64;
    let mut bits = stops.get(word).map_or(0, |bits| bits & !(u64::MAX << (col % 64)));
    while bits == 0 {
        let Some(before) = word.checked_sub(1) else { return 0 };
        word = before;
        bits = stops[word];
    }
    (word * 64) as u16 + 63 - bits.leading_zeros() as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops() {
        let stops = crate::screen::default_tabs();
        for (col, next, before) in [
            (0, 8, 0),
            (7, 8, 0),
            (8, 16, 0),
            (9, 16, 8),
            (63, 64, 56),
            (64, 72, 56),
            (999, 1000, 992),
        ] {
            assert_eq!((next_stop(&stops, col), stop_before(&stops, col)), (next, before), "{col}");
        }
        assert_eq!(next_stop(&[0; 16], 3), u16::MAX);
        assert_eq!(stop_before(&[0; 16], 3), 0);
    }
}
