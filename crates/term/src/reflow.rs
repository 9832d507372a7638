//! A new width for lines that were wrapped: what a terminal shows after its window was resized.

use triomphe::Arc;

use crate::cell::Cell;
use crate::grid::{Grid, take_line};
use crate::row::{Ending, Row};
use crate::screen::{Cursor, Size};

/// One line as the program wrote it, unwrapped.
struct Line<'a> {
    rows: &'a [Arc<Row>],
    cells: Vec<Cell>,
    /// Where the cursor stands in it, if it does; one past the cell before it where the wrap is pending.
    cursor: Option<usize>,
}

/// The grid at another size, with wrapped lines wrapped anew; the rows that no longer fit and left at the
/// top, so long as the cursor stays; and where the cursor is then. Lines keep their numbers.
pub(crate) fn reflow(
    grid: &Grid,
    size: Size,
    cursor: Cursor,
    next_line: &mut u64,
) -> (Grid, Vec<Row>, Cursor) {
    let rows: Vec<Arc<Row>> = (0..grid.rows()).map(|row| grid.row(row).clone()).collect();
    let last_used = rows.iter().rposition(|row| !row.trimmed().is_empty()).unwrap_or(0);
    let used = last_used.max(cursor.row.into()) + 1;
    let cols = usize::from(size.cols);

    let mut wrapped: Vec<Row> = Vec::new();
    let mut place = cursor;
    let mut start = 0;
    while start < used {
        let ends = |row: &Arc<Row>| !row.is_wrapped();
        let len = rows[start..used].iter().position(ends).map_or(used - start, |len| len + 1);
        let line = Line::unwrap(&rows[start..start + len], start, cursor);
        if let Some(at) = line.wrap(cols, next_line, &mut wrapped) {
            place = at;
        }
        start += len;
    }
    fit(wrapped, size, place, next_line)
}

impl<'a> Line<'a> {
    fn unwrap(rows: &'a [Arc<Row>], first: usize, cursor: Cursor) -> Self {
        let mut line = Self { rows, cells: Vec::new(), cursor: None };
        for (index, row) in rows.iter().enumerate() {
            let last = index + 1 == rows.len();
            let here = first + index == usize::from(cursor.row);
            if here {
                let offset = usize::from(cursor.col) + usize::from(cursor.pending_wrap);
                line.cursor = Some(line.cells.len() + offset);
            }
            let mut cells = if last { row.trimmed() } else { row.cells() };
            let next_is_wide = rows
                .get(index + 1)
                .and_then(|next| next.cells.first())
                .is_some_and(|c| c.is_wide());
            if !last && next_is_wide && cells.last() == Some(&Cell::BLANK) {
                // The column was left free because a wide character had no room.
                cells = &cells[..cells.len() - 1];
            }
            line.cells.extend_from_slice(cells);
        }
        line
    }

    /// Appends the rows of the line to `out` and returns the cursor's place among them, if it is in the line.
    fn wrap(&self, cols: usize, next_line: &mut u64, out: &mut Vec<Row>) -> Option<Cursor> {
        let mut place = None;
        let mut start = 0;
        let mut index = 0;
        loop {
            let rest = &self.cells[start..];
            let mut len = rest.len().min(cols);
            if rest.get(len.wrapping_sub(1)).is_some_and(|cell| cell.is_wide()) && len > 1 {
                len -= 1;
            }
            let goes_on = start + len < self.cells.len();
            let id = match self.rows.get(index) {
                Some(row) => row.id,
                None => take_line(next_line),
            };
            let mut row = Row::blank(cols, id);
            row.cells[..len].copy_from_slice(&rest[..len]);
            row.occupy(len);
            row.trim_last();
            row.mend();
            row.ending = if goes_on { Ending::Wrapped } else { Ending::Hard };
            if let Some(offset) = self.cursor.filter(|offset| *offset >= start) {
                let (row, col) = (out.len() as u16, offset - start);
                if col < len || !goes_on {
                    // Behind the text of a full row the next character wraps; farther behind there was
                    // nothing to wrap.
                    let pending_wrap = col == cols && len == cols;
                    place = Some(Cursor { row, col: col.min(cols - 1) as u16, pending_wrap });
                }
            }
            out.push(row);
            start += len;
            index += 1;
            if !goes_on {
                return place;
            }
        }
    }
}

/// Cuts or fills rows up to the height.
fn fit(
    mut rows: Vec<Row>,
    size: Size,
    cursor: Cursor,
    next_line: &mut u64,
) -> (Grid, Vec<Row>, Cursor) {
    let height = usize::from(size.rows);
    let cols = usize::from(size.cols);
    let above = rows.len().saturating_sub(height).min(cursor.row.into());
    let gone = rows.drain(..above).collect();
    rows.truncate(height);
    while rows.len() < height {
        rows.push(Row::blank(cols, take_line(next_line)));
    }
    let grid = Grid::from_rows(rows.into_iter().map(Arc::new).collect(), cols);
    let row = cursor.row - above as u16;
    (grid, gone, Cursor { row: row.min(size.rows - 1), ..cursor })
}

#[cfg(test)]
mod tests {
    use crate::dialect::Dialect;
    use crate::screen::Size;
    use crate::terminal::Terminal;

    #[test]
    fn lines_are_wrapped_anew() {
        type Case = (&'static str, (i64, i64), &'static [&'static str], (u16, u16));
        let cases: [Case; 12] = [
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
}
