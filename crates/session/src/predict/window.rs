//! Finds the borders of the window that a cell is in: a multiplexer or an editor may show several,
//! with lines between them.
//!
//! It knows the screen's cells, and nothing of keys or guesses.

use alloc::vec;
use alloc::vec::Vec;

use rove_term::cell::{Cell, Glyph};
use rove_term::style::Attrs;
use rove_term::{Color, Screen, Size};

/// The columns of a window.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Window {
    /// The first.
    pub(crate) left: u16,
    /// One past the last: a border, or the edge of the screen.
    pub(crate) right: u16,
}

impl Window {
    /// The whole width of a screen.
    pub(crate) const fn whole(cols: u16) -> Self {
        Self { left: 0, right: cols }
    }

    /// The window goes on below this row: there is no edge of the screen, no border, and no bar.
    pub(crate) fn goes_below(self, screen: &Screen, row: u16) -> bool {
        if row + 1 >= screen.size().rows || is_bar(row + 1, screen) {
            return false;
        }
        let cells = &screen.row(row + 1).cells()[usize::from(self.left)..usize::from(self.right)];
        cells.first().is_some_and(|cell| !is_horizontal(char_of(*cell)))
    }

    /// Others stand beside it, or above or below.
    pub(crate) fn is_one_of_several(self, screen: &Screen) -> bool {
        let size = screen.size();
        let is_line =
            |row: u16| screen.row(row).cells().iter().all(|cell| is_horizontal(char_of(*cell)));
        self != Self::whole(size.cols) || (0..size.rows).any(is_line)
    }
}

/// Where the borders stand between windows side by side.
///
/// They are found once for each screen: all keys in flight are replayed on it, and a hostile host
/// may fill it with characters that draw borders.
#[derive(Clone, Debug, Default)]
pub(crate) struct Borders {
    cols: u16,
    /// The columns of each row that are borders, in ascending order.
    rows: Vec<Vec<u16>>,
}

impl Borders {
    /// Looks at each cell once, and at one more above and below each line.
    pub(crate) fn of(screen: &Screen) -> Self {
        let Size { rows: height, cols, .. } = screen.size();
        let mut rows = vec![Vec::new(); usize::from(height)];
        // Where the line begins that may go down each column.
        let mut tops = vec![0; usize::from(cols)];
        for end in 0..=height {
            let cells = if end < height { screen.row(end).cells() } else { &[] };
            for (col, first) in tops.iter_mut().enumerate() {
                if cells.get(col).is_some_and(|cell| is_border(char_of(*cell))) {
                    continue;
                }
                let (first, col) = (core::mem::replace(first, end + 1), col as u16);
                // One character alone is text, as in a pipeline.
                if end - first > 1 && is_border_between(screen, col, first, end - 1) {
                    let among = &mut rows[usize::from(first)..usize::from(end)];
                    among.iter_mut().for_each(|row: &mut Vec<u16>| row.push(col));
                }
            }
        }
        rows.iter_mut().for_each(|row| row.sort_unstable());
        Self { cols, rows }
    }

    /// The window that this place is in; `col` is one of its columns.
    pub(crate) fn window(&self, row: u16, col: u16) -> Window {
        let borders = self.rows.get(usize::from(row)).map_or(&[][..], Vec::as_slice);
        let (before, from) = borders.split_at(borders.partition_point(|at| *at < col));
        let left = before.last().map_or(0, |at| at + 1);
        let right = from.iter().find(|at| **at > col).map_or(self.cols, |at| *at);
        Window { left, right }
    }
}

/// The line down this column between these rows goes from one edge, corner or crossing to another.
/// A line that ends in the open is text.
fn is_border_between(screen: &Screen, col: u16, first: u16, last: u16) -> bool {
    let rows = screen.size().rows;
    let ends = |row: u16, beyond: Option<u16>| {
        screen.cell(row, col).map(char_of).is_some_and(is_corner)
            || beyond.is_none_or(|beyond| is_bar_at(screen, beyond, col))
    };
    // At the edge of the screen there may be a status line, which need not be drawn as a bar.
    let above = first.checked_sub(1).filter(|above| *above > 0);
    let below = Some(last + 1).filter(|below| below + 1 < rows);
    ends(first, above) && ends(last, below)
}

/// All that stands in this row is drawn in reverse, or on a background.
pub(crate) fn is_bar(row: u16, screen: &Screen) -> bool {
    let cells = screen.row(row).cells();
    let drawn = |cell: &Cell| is_coloured(*cell, screen);
    // Blanks between the parts of a status line may have no background.
    cells.iter().any(drawn) && cells.iter().all(|cell| is_blank(*cell) || drawn(cell))
}

/// This place is part of a bar, or of a line across, which may be drawn in ASCII.
fn is_bar_at(screen: &Screen, row: u16, col: u16) -> bool {
    let cell = screen.cell(row, col);
    cell.is_some_and(|cell| {
        is_coloured(cell, screen)
            || is_horizontal(char_of(cell))
            || matches!(char_of(cell), '-' | '+')
    })
}

fn is_coloured(cell: Cell, screen: &Screen) -> bool {
    count_cell();
    let style = screen.pool().style(cell.style());
    style.bg != Color::DEFAULT || style.attrs.contains(Attrs::INVERSE)
}

/// The row and column of the cursor.
pub(crate) fn cursor_of(screen: &Screen) -> (u16, u16) {
    (screen.cursor().row, screen.cursor().col)
}

/// The character of a cell; one for all clusters.
pub(crate) fn char_of(cell: Cell) -> char {
    count_cell();
    match cell.glyph() {
        Glyph::Char(c) => c,
        Glyph::Cluster(_) => char::REPLACEMENT_CHARACTER,
    }
}

/// Tests count the cells that are looked at.
fn count_cell() {
    #[cfg(test)]
    CELLS_READ.set(CELLS_READ.get() + 1);
}

#[cfg(test)]
thread_local! {
    pub(crate) static CELLS_READ: core::cell::Cell<u64> = const { core::cell::Cell::new(0) };
}

pub(crate) fn is_blank(cell: Cell) -> bool {
    matches!(char_of(cell), ' ' | '\u{a0}')
}

/// This draws a line up or down.
pub(crate) fn is_vertical(c: char) -> bool {
    matches!(
        c,
        '|' | '\u{2502}'..='\u{2503}'
            | '\u{2506}'..='\u{2507}'
            | '\u{250a}'..='\u{254b}'
            | '\u{254e}'..='\u{254f}'
            | '\u{2551}'..='\u{2570}'
    )
}

/// This draws a line across.
pub(crate) fn is_horizontal(c: char) -> bool {
    matches!(
        c,
        '\u{2500}'..='\u{2501}'
            | '\u{2504}'..='\u{2505}'
            | '\u{2508}'..='\u{2509}'
            | '\u{2550}'
            | '\u{252c}'..='\u{254b}'
    )
}

/// This may be part of a border at the side of a window. tmux may draw arrows there, at the active
/// pane.
fn is_border(c: char) -> bool {
    is_vertical(c) || matches!(c, '\u{2190}'..='\u{2193}')
}

/// A line up or down ends here, or meets another.
fn is_corner(c: char) -> bool {
    matches!(c, '\u{250c}'..='\u{254b}' | '\u{2552}'..='\u{2570}')
}

#[cfg(test)]
mod tests {
    use rove_term::{Dialect, Size, Terminal};

    use super::*;

    /// The window at `col` of a row of this screen: its columns, and whether it goes on below. Rows
    /// that begin with `[` are bars.
    fn window(rows: &[&str], row: u16, col: u16) -> (u16, u16, bool) {
        let cols = rows.iter().map(|row| row.chars().count()).max().unwrap() as u16;
        let mut terminal = Terminal::new(Size::clamped(rows.len() as u16, cols), Dialect::ROVE);
        for (row, text) in rows.iter().enumerate() {
            let bar = if text.starts_with('[') { "\x1b[42m" } else { "" };
            terminal.advance(format!("\x1b[{};1H{bar}{text}\x1b[m", row + 1).as_bytes());
        }
        let window = Borders::of(terminal.screen()).window(row, col);
        (window.left, window.right, window.goes_below(terminal.screen(), row))
    }

    #[test]
    fn windows_end_at_lines_that_are_drawn_from_edge_to_edge() {
        let panes = &["$ a │$ b ", "    ├────", "    │$ c ", "[0] 12:00"];
        assert_eq!(window(panes, 0, 3), (0, 4, true));
        assert_eq!(window(panes, 0, 5), (5, 9, false), "a border is below");
        assert_eq!(window(panes, 2, 7), (5, 9, false), "a bar is below");
        let crossing = &["$ a │$ b ", "    │    ", "────┴────", "$ c      ", "[0] 12:00"];
        assert_eq!(window(crossing, 0, 0), (0, 4, true));
        assert_eq!(window(crossing, 1, 8), (5, 9, false));
        assert_eq!(window(crossing, 3, 8), (0, 9, false));
        let marked = &["$ a │$ b ", "    →    ", "    │    ", "12:00    "];
        assert_eq!(window(marked, 1, 0), (0, 4, true), "an arrow shows which is typed in");
        let three = &["a│b│c", "a│b│c", "[0]  "];
        assert_eq!(window(three, 0, 2), (2, 3, true));
        let plain = &["a |b ", "--+--", "a |b ", "a |b ", "[0]  "];
        assert_eq!(window(plain, 2, 0), (0, 2, true));
    }

    #[test]
    fn text_is_no_border() {
        let pipes = &["$ ls | wc", "$ ls | wc", "$ ls | wc", "$        ", "", ""];
        assert_eq!(window(pipes, 1, 0), (0, 9, true));
        assert_eq!(window(&["", "", "x │ y", "", "", ""], 2, 0), (0, 5, true));
        let tree = &["$ tree", "a", "├─ b", "│  c", "└─ d", "$ ab", "", ""];
        assert_eq!(window(tree, 5, 2), (0, 6, true));
    }
}
