//! Moves the rows of the primary screen as a block, for a terminal on which they stand below rows of somebody else's.

use alloc::vec::Vec;

use triomphe::Arc;

use crate::screen::grid::Grid;
use crate::screen::history::History;
use crate::screen::row::{LineId, Row};
use crate::screen::{Buffer, CELLS_MAX, Cursor, Screen, Size};

/// The numbers of rows above a picture, counted down: no emulator comes so far.
const FIRST_ABOVE: u64 = u64::MAX;
/// Those of rows that came in below it.
const FIRST_BELOW: u64 = 1 << 62;

impl Screen {
    /// How many rows of the primary screen, which need not be the one shown, must be on a terminal: those up to the
    /// last that is not blank, and the cursor's.
    pub fn primary_rows_needed(&self) -> u16 {
        let (grid, cursor) = self.primary();
        let used = |row: &usize| !grid.row(*row).trimmed().is_empty();
        let used = (0..grid.rows()).rev().find(used).map_or(0, |row| row as u16 + 1);
        used.max(cursor.row + 1)
    }

    /// How far below its first row the cursor of the primary screen would be if its lines were wrapped at this width.
    pub fn cursor_row_at(&self, cols: u16) -> u16 {
        // So high that no line leaves it.
        let rows = CELLS_MAX / u32::from(cols.max(1));
        let reflowed = self.reflowed(Size::clamped(rows, cols), &mut History::default());
        reflowed.primary().1.row
    }

    /// This screen with the rows of its primary one moved down by `count`, below blank ones that are the same for all
    /// pictures. As many are cut off at the bottom.
    #[must_use]
    pub fn lowered(&self, count: u16) -> Self {
        let row = |cols, number| Arc::new(Row::blank(cols, LineId(FIRST_ABOVE - number)));
        self.shifted(i32::from(count), |rows, cols| {
            // Numbered from the picture up, so that they keep their numbers when the first ones leave.
            let above = (0..u64::from(count)).rev().map(|number| row(cols, number));
            let kept = rows.len() - usize::from(count);
            above.chain(rows[..kept].iter().cloned()).collect()
        })
    }

    /// This screen with the rows of its primary one moved up by `count`, and blank ones below.
    #[must_use]
    pub fn raised(&self, count: u16) -> Self {
        let row = |cols, number| Arc::new(Row::blank(cols, LineId(FIRST_BELOW + number)));
        self.shifted(-i32::from(count), |rows, cols| {
            let below = (0..u64::from(count)).map(|number| row(cols, number));
            rows[count.into()..].iter().cloned().chain(below).collect()
        })
    }

    /// The same for this picture, which is `picture` lowered by `above`: the blank rows below are those that were cut off
    /// of it, so that they keep their numbers.
    #[must_use]
    pub fn raised_in(&self, count: u16, picture: &Self, above: u16) -> Self {
        let (whole, _) = picture.primary();
        self.shifted(-i32::from(count), |rows, cols| {
            let cut = whole.rows().saturating_sub(above.into());
            let below = whole.iter().skip(cut).take(count.into()).cloned();
            let all: Vec<Arc<Row>> = rows[count.into()..].iter().cloned().chain(below).collect();
            debug_assert!(all.iter().all(|row| row.cells().len() == cols), "one width");
            all
        })
    }

    fn primary(&self) -> (&Grid, Cursor) {
        match (self.state.buffer, &self.hidden) {
            (Buffer::Alternate, Some(primary)) => {
                let saved = self.extras.saved[Buffer::Primary as usize].cursor;
                (primary, self.clamped(saved))
            }
            _ => (&self.grid, self.state.cursor),
        }
    }

    fn shifted(&self, down: i32, rows: impl FnOnce(&[Arc<Row>], usize) -> Vec<Arc<Row>>) -> Self {
        if down == 0 {
            return self.clone();
        }
        assert!(down.unsigned_abs() <= self.state.size.rows.into(), "{down} rows");
        let (grid, cursor) = self.primary();
        let all: Vec<Arc<Row>> = grid.iter().cloned().collect();
        let grid = Arc::new(Grid::from_rows(rows(&all, grid.cols()), grid.cols()));
        let row = i32::from(cursor.row).saturating_add(down);
        let row = row.clamp(0, i32::from(self.state.size.rows) - 1) as u16;
        let mut screen = self.clone();
        match (self.state.buffer, &self.hidden) {
            (Buffer::Alternate, Some(_)) => {
                let extras = Arc::make_mut(&mut screen.extras);
                extras.saved[Buffer::Primary as usize].cursor = Cursor { row, ..cursor };
                screen.hidden = Some(grid);
            }
            _ => {
                screen.grid = grid;
                screen.state.cursor = Cursor { row, ..cursor };
                screen.state.last_cell = None;
            }
        }
        screen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::Terminal;
    use crate::{Dialect, frame};

    fn screen(octets: &str) -> Screen {
        let mut terminal = Terminal::new(Size::clamped(6, 10), Dialect::ROVE);
        terminal.advance(octets.as_bytes());
        terminal.into_screen()
    }

    #[test]
    fn rows_are_moved_and_moved_back() {
        for (octets, needed) in [
            ("", 1),
            ("one\r\ntwo", 2),
            ("one\r\ntwo\r\n", 3),
            ("one\x1b[2K\x1b[3;4H", 3),
            ("one\r\n\x1b[?1049hother\r\n\r\n\r\n", 2),
        ] {
            let plain = screen(octets);
            assert_eq!(plain.primary_rows_needed(), needed, "{octets:?}");
            let lowered = plain.lowered(3);
            assert_eq!(lowered.primary_rows_needed(), needed + 3, "{octets:?}");
            let back = lowered.raised(3);
            assert_eq!(back.text(), plain.text(), "{octets:?}");
            assert_eq!(back.cursor().row, plain.cursor().row, "{octets:?}");
            assert_eq!(lowered.fault(), None);
        }
    }

    #[test]
    fn the_cursor_at_another_width() {
        for (octets, cols, row) in [
            ("one\r\ntwo", 10, 1),
            ("0123456789abcde\r\nx", 10, 2),
            ("0123456789abcde\r\nx", 20, 1),
            ("0123456789abcde\r\nx", 5, 3),
            ("01234567\r\n\r\nx", 4, 3),
            ("0123456789ab", 4, 2),
        ] {
            assert_eq!(screen(octets).cursor_row_at(cols), row, "{octets:?} at {cols}");
        }
    }

    /// What stands above a lowered picture is never written.
    #[test]
    fn frames_leave_the_rows_above_alone() {
        let mut tty = Terminal::new(Size::clamped(6, 10), Dialect::ROVE);
        tty.advance(b"mine 1\r\nmine 2\r\n");
        let dialect = Dialect::tty("xterm-256color", "");
        let mut out = Vec::new();
        let mut shown = screen("one").lowered(2);
        crate::repaint_below(&shown, 2, &dialect, &mut out);
        tty.advance(&out);
        for octets in ["one\r\ntwo\r\nthree", "\x1b[?1049hall of it", "one\r\nthree\r\nfour"] {
            let next = screen(octets).lowered(2);
            out.clear();
            frame(&shown, &next, &dialect, &mut out);
            tty.advance(&out);
            if next.buffer() == Buffer::Primary {
                assert_eq!(tty.screen().text()[..2], ["mine 1", "mine 2"], "{octets:?}");
                assert_eq!(tty.screen().text()[2..], next.text()[2..], "{octets:?}");
            }
            shown = next;
        }
        assert!(tty.history().is_empty());
    }
}
