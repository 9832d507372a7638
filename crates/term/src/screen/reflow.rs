//! Resizes the primary screen: wraps its lines anew, moves lines without room to the history, and takes lines back
//! from it where there is room.
//!
//! The history keeps its lines as they were wrapped when they left. They are wrapped anew when they come back,
//! so that dragging a window's edge costs what the screen costs, however long the history.

use alloc::vec;
use alloc::vec::Vec;

use triomphe::Arc;

use crate::screen::cell::Cell;
use crate::screen::cursor::Cursor;
use crate::screen::grid::{Grid, take_line};
use crate::screen::history::History;
use crate::screen::pool::Pool;
use crate::screen::prompt_marks::Marks;
use crate::screen::row::{Ending, Row};
use crate::screen::size::{CELLS_MAX, Size};

/// Cells of one line that are taken back from the history at the most. The rows of a longer one keep the width
/// they have there.
const LINE_CELLS_MAX: usize = CELLS_MAX as usize;

/// The history above the primary screen, and the tables of its lines.
pub(crate) struct HistoryAbove<'a> {
    pub history: &'a mut History,
    pub pool: &'a mut Pool,
    pub next_line: &'a mut u64,
}

/// The primary grid at another size, and the cursor on the same character. Lines keep their numbers.
///
/// As in xterm, tmux and alacritty, a window that grows gets lines back at the top, as many as there are, and
/// blank rows below the text are given up before text is. Text below the cursor that finds no room is lost.
pub(crate) fn reflow(
    grid: &Grid,
    size: Size,
    cursor: Cursor,
    above: &mut HistoryAbove<'_>,
) -> (Grid, Cursor) {
    let mut page = Page::of(grid, cursor);
    let before = above.history.end();
    let free = grid.rows() - page.rows.len();
    let (height, cols) = (usize::from(size.rows), usize::from(size.cols));
    if grid.cols() != cols {
        page.complete(above);
        page = page.wrapped(cols, above.next_line);
    }
    let shown = page.rows.len() - page.top;
    let wanted = height.saturating_sub(free).max(shown.min(height));
    while page.rows.len() < wanted {
        let Some(rows) = above.take_rows(cols) else { break };
        page.prepend(rows);
    }
    if above.history.end() < before {
        above.history.fell();
    }
    page.fit(wanted, size, above)
}

/// The written rows of a screen, and rows above them.
struct Page {
    rows: Vec<Arc<Row>>,
    /// The first row that was on the screen.
    top: usize,
    row: usize,
    cursor: Cursor,
}

impl Page {
    fn of(grid: &Grid, cursor: Cursor) -> Self {
        let mut rows: Vec<Arc<Row>> = (0..grid.rows()).map(|row| grid.row(row).clone()).collect();
        let last_used = rows.iter().rposition(|row| !row.trimmed().is_empty()).unwrap_or(0);
        let row = usize::from(cursor.row);
        rows.truncate(last_used.max(row) + 1);
        Self { rows, top: 0, row, cursor }
    }

    fn prepend(&mut self, rows: Vec<Arc<Row>>) {
        self.top += rows.len();
        self.row += rows.len();
        self.rows.splice(0..0, rows);
    }

    /// Takes back the beginning of the line that the first row goes on with.
    fn complete(&mut self, above: &mut HistoryAbove<'_>) {
        if above.history.goes_on() {
            let rows = above.take_line();
            self.prepend(rows);
        }
    }

    fn wrapped(&self, cols: usize, next_line: &mut u64) -> Self {
        let mut rows = Vec::new();
        let (mut top, mut cursor_at) = (0, (self.row, self.cursor));
        let mut start = 0;
        while start < self.rows.len() {
            let len = 1 + self.rows[start..].iter().take_while(|row| row.is_wrapped()).count();
            let len = len.min(self.rows.len() - start);
            let line = Line::unwrap(&self.rows[start..start + len]);
            let first = rows.len();
            let ends = line.wrap(cols, next_line, &mut rows);
            let index_of = |row: usize| (start..start + len).contains(&row).then(|| row - start);
            if let Some(index) = index_of(self.top) {
                let offset = line.offsets[index];
                top = first + ends.iter().take_while(|end| **end <= offset).count();
                top = top.min(rows.len() - 1);
            }
            if let Some(index) = index_of(self.row) {
                let column = self.cursor.col + u16::from(self.cursor.pending_wrap);
                let offset = line.offsets[index] + usize::from(column);
                let (row, cursor) = place_of(offset, &ends, cols);
                cursor_at = (first + row, cursor);
            }
            start += len;
        }
        Self { rows, top, row: cursor_at.0, cursor: cursor_at.1 }
    }

    /// Files rows until no more than `wanted` are left, so long as the cursor stays; then cuts or fills up to the
    /// height.
    fn fit(mut self, wanted: usize, size: Size, above: &mut HistoryAbove<'_>) -> (Grid, Cursor) {
        let (height, cols) = (usize::from(size.rows), usize::from(size.cols));
        let gone = self.rows.len().saturating_sub(wanted).min(self.row);
        for row in self.rows.drain(..gone) {
            if above.history.keeps_lines() {
                above.history.push(&row, above.pool);
            }
        }
        self.rows.truncate(height);
        while self.rows.len() < height {
            self.rows.push(Arc::new(Row::blank(cols, take_line(above.next_line))));
        }
        let row = (self.row - gone).min(height - 1) as u16;
        (Grid::from_rows(self.rows, cols), Cursor { row, ..self.cursor })
    }
}

impl HistoryAbove<'_> {
    /// The newest rows of the history, at this width: a whole line of them, or the last row of a line that goes on
    /// at the top of the screen. `None` where nothing fits there.
    fn take_rows(&mut self, cols: usize) -> Option<Vec<Arc<Row>>> {
        if !self.history.goes_on() {
            let rows = self.take_line();
            let mut wrapped = Vec::new();
            Line::unwrap(&rows).wrap(cols, self.next_line, &mut wrapped);
            return (!rows.is_empty()).then_some(wrapped);
        }
        let row = self.history.take_last(self.pool)?;
        if row.cells().len() == cols {
            return Some(vec![Arc::new(row)]);
        }
        self.history.push(&row, self.pool);
        None
    }

    /// The newest line of the history, as it is wrapped there.
    fn take_line(&mut self) -> Vec<Arc<Row>> {
        let mut rows = Vec::new();
        let mut cells = 0;
        while cells < LINE_CELLS_MAX && (rows.is_empty() || self.history.goes_on()) {
            let Some(row) = self.history.take_last(self.pool) else { break };
            cells += row.cells().len().max(1);
            rows.push(Arc::new(row));
        }
        rows.reverse();
        rows
    }
}

/// Rows of a history at this width: those of other widths are wrapped anew.
pub(crate) fn rewrap(rows: Vec<Arc<Row>>, cols: usize, next_line: &mut u64) -> Vec<Arc<Row>> {
    if rows.iter().all(|row| row.cells().len() == cols) {
        return rows;
    }
    let mut wrapped = Vec::new();
    let mut start = 0;
    while start < rows.len() {
        let len = 1 + rows[start..].iter().take_while(|row| row.is_wrapped()).count();
        let line = &rows[start..rows.len().min(start + len)];
        match line.iter().all(|row| row.cells().len() == cols) {
            true => wrapped.extend_from_slice(line),
            false => drop(Line::unwrap(line).wrap(cols, next_line, &mut wrapped)),
        }
        start += line.len();
    }
    wrapped
}

/// One line as the program wrote it, unwrapped.
struct Line<'a> {
    rows: &'a [Arc<Row>],
    cells: Vec<Cell>,
    /// Where each of its rows began.
    offsets: Vec<usize>,
}

impl<'a> Line<'a> {
    fn unwrap(rows: &'a [Arc<Row>]) -> Self {
        let mut line = Self { rows, cells: Vec::new(), offsets: Vec::new() };
        for (index, row) in rows.iter().enumerate() {
            line.offsets.push(line.cells.len());
            let cells = row.cells();
            line.cells.extend_from_slice(match row.ending {
                _ if index + 1 == rows.len() => row.trimmed(),
                Ending::WrappedEarly => &cells[..cells.len().saturating_sub(1)],
                Ending::Wrapped | Ending::Hard => cells,
            });
        }
        line
    }

    /// Appends the rows of the line to `out` and returns where in the line each of them ends.
    fn wrap(&self, cols: usize, next_line: &mut u64, out: &mut Vec<Arc<Row>>) -> Vec<usize> {
        let mut ends = Vec::new();
        let mut start = 0;
        loop {
            let rest = &self.cells[start..];
            let mut len = rest.len().min(cols);
            let torn = len > 1 && rest[len - 1].is_wide();
            len -= usize::from(torn);
            let goes_on = len < rest.len();
            let (id, marks) = match self.rows.get(ends.len()) {
                Some(row) => (row.id, row.marks.clamped(cols)),
                None => (take_line(next_line), Marks::NONE),
            };
            let mut row = Row::blank(cols, id);
            row.marks = marks;
            row.cells[..len].copy_from_slice(&rest[..len]);
            row.occupy(len);
            row.trim_last();
            row.mend();
            row.ending = match (goes_on, torn) {
                (false, _) => Ending::Hard,
                (true, false) => Ending::Wrapped,
                (true, true) => Ending::WrappedEarly,
            };
            if let ([only], false, true) = (self.rows, goes_on, ends.is_empty()) {
                row.size = only.size;
            }
            out.push(Arc::new(row));
            start += len;
            ends.push(start);
            if !goes_on {
                return ends;
            }
        }
    }
}

/// Where in a line that was wrapped so a place in it is: a row, and the cursor there. Behind the text of a full
/// row the next character wraps; farther behind there was nothing to wrap.
fn place_of(offset: usize, ends: &[usize], cols: usize) -> (usize, Cursor) {
    let row = ends.iter().take_while(|end| **end <= offset).count().min(ends.len() - 1);
    let start = if row == 0 { 0 } else { ends[row - 1] };
    let col = offset - start;
    let pending_wrap = col == cols && ends[row] - start == cols;
    (row, Cursor { row: 0, col: col.min(cols - 1) as u16, pending_wrap })
}

#[cfg(test)]
mod tests {
    use crate::dialect::Dialect;
    use crate::screen::Size;
    use crate::terminal::Terminal;

    #[test]
    fn lines_are_wrapped_anew() {
        type Case = (&'static str, (i64, i64), &'static [&'static str], (u16, u16));
        let cases: [Case; 14] = [
            ("0123456789ab", (4, 6), &["012345", "6789ab", "", ""], (1, 5)),
            ("0123456789ab", (4, 20), &["0123456789ab", "", "", ""], (0, 12)),
            ("0123456789\r\nab", (4, 5), &["01234", "56789", "ab", ""], (2, 2)),
            ("0123456789", (4, 20), &["0123456789", "", "", ""], (0, 10)),
            ("abc\r\nde", (4, 20), &["abc", "de", "", ""], (1, 2)),
            ("a\r\nb\r\nc\r\nd", (2, 10), &["c", "d"], (1, 1)),
            ("a\r\nb\r\nc\r\nd\x1b[H", (2, 10), &["a", "b"], (0, 0)),
            ("a\r\nb", (6, 10), &["a", "b", "", "", "", ""], (1, 1)),
            ("01234567\u{4e16}\u{4e16}", (4, 9), &["01234567", "\u{4e16}\u{4e16}", "", ""], (1, 4)),
            ("012345678\u{4e16}x", (4, 20), &["012345678\u{4e16}x", "", "", ""], (0, 12)),
            ("abcdef\x1b[5G", (4, 3), &["abc", "def", "", ""], (1, 1)),
            ("ab\x1b[4;8H", (4, 3), &["ab", "", "", ""], (3, 2)),
            ("01234567 \u{4e16}x", (4, 20), &["01234567 \u{4e16}x", "", "", ""], (0, 12)),
            ("012345678 \u{4e16}x", (4, 20), &["012345678 \u{4e16}x", "", "", ""], (0, 13)),
        ];
        for (input, (rows, cols), want, cursor) in cases {
            let mut terminal = Terminal::new(Size::clamped(4, 10), Dialect::ROVE);
            terminal.advance(input.as_bytes());
            terminal.resize(Size::clamped(rows, cols));
            let screen = terminal.screen();
            assert_eq!(screen.fault(), None);
            let at = screen.cursor();
            assert_eq!(
                (screen.text(), (at.row, at.col)),
                (want.iter().map(|row| (*row).to_owned()).collect(), cursor),
                "{input:?}"
            );
        }
    }

    #[test]
    fn back_and_forth_changes_nothing() {
        let mut terminal = Terminal::new(Size::clamped(10, 20), Dialect::ROVE);
        terminal.advance(
            "a long line that wraps more than once \u{4e16}\u{754c}\r\nb\r\n$ ".as_bytes(),
        );
        let (text, cursor) = (terminal.screen().text(), terminal.screen().cursor());
        for cols in [12, 33, 9, 80, 20] {
            terminal.resize(Size::clamped(10, cols));
            assert_eq!(terminal.screen().fault(), None);
        }
        assert_eq!((terminal.screen().text(), terminal.screen().cursor()), (text, cursor));
    }

    /// Text on four rows of ten columns, and the sizes that its window then gets one after the other.
    #[test]
    fn lines_leave_and_come_back() {
        type Case = (
            &'static str,
            &'static [(i64, i64)],
            &'static [&'static str],
            (u16, u16),
            &'static [&'static str],
        );
        let six = "1\r\n2\r\n3\r\n4\r\n5\r\n6";
        let cases: [Case; 10] = [
            (six, &[(5, 10)], &["2", "3", "4", "5", "6"], (4, 1), &["1"]),
            (six, &[(8, 10)], &["1", "2", "3", "4", "5", "6", "", ""], (5, 1), &[]),
            (six, &[(2, 10)], &["5", "6"], (1, 1), &["1", "2", "3", "4"]),
            (six, &[(2, 10), (4, 10)], &["3", "4", "5", "6"], (3, 1), &["1", "2"]),
            // A cleared screen stays as far from its bottom as it was.
            (
                "1\r\n2\r\n3\r\n4\r\n5\x1b[H\x1b[2J$",
                &[(5, 10)],
                &["1", "$", "", "", ""],
                (1, 1),
                &[],
            ),
            // One line on screen and above it.
            (
                "1\r\n0123456789abcdefghijklmnopqrstuvwxyz0123456789",
                &[(4, 20)],
                &["1", "0123456789abcdefghij", "klmnopqrstuvwxyz0123", "456789"],
                (3, 6),
                &[],
            ),
            (
                "1\r\n0123456789abcdefghijklmnopqrstuvwxyz0123456789",
                &[(2, 20)],
                &["klmnopqrstuvwxyz0123", "456789"],
                (1, 6),
                &["1", "0123456789abcdefghij"],
            ),
            (
                "1\r\n0123456789abcdefghijklmnopqrstuvwxyz0123456789",
                &[(6, 10)],
                &["1", "0123456789", "abcdefghij", "klmnopqrst", "uvwxyz0123", "456789"],
                (5, 6),
                &[],
            ),
            // The primary screen, while a program has the alternate one.
            (
                "1\r\n2\r\n3\r\n4\r\n5\x1b[?1049h\x1b[Hx",
                &[(5, 10)],
                &["x", "", "", "", ""],
                (0, 1),
                &[],
            ),
            (
                "1\r\n2\r\n3\r\n4\r\n5\x1b[?1049h\x1b[Hx",
                &[(2, 10)],
                &["x", ""],
                (0, 1),
                &["1", "2", "3"],
            ),
        ];
        for (input, sizes, want, cursor, above) in cases {
            let mut terminal = Terminal::new(Size::clamped(4, 10), Dialect::ROVE);
            terminal.advance(input.as_bytes());
            for &(rows, cols) in sizes {
                terminal.resize(Size::clamped(rows, cols));
                assert_eq!(terminal.screen().fault(), None);
            }
            let at = terminal.screen().cursor();
            let history = terminal.history();
            let kept: Vec<_> = (0..history.len()).filter_map(|line| history.text(line)).collect();
            assert_eq!(terminal.screen().text(), want, "{input:?} {sizes:?}");
            assert_eq!((at.row, at.col), cursor, "{input:?} {sizes:?}");
            assert_eq!(kept, above, "{input:?} {sizes:?}");
        }
    }
}
