//! A terminal's whole visible and hidden state, cheap to clone.
//!
//! A [`Screen`] holds everything that later bytes can depend on, except a control sequence cut in half,
//! so that an emulator can be resumed from any snapshot. Rows, tables and the seldom-changed parts are
//! shared between clones; the rest is one small copy.

pub mod cell;
pub mod cursor;
pub(crate) mod encode;
pub(crate) mod extras;
pub mod grid;
pub mod history;
pub mod modes;
pub(crate) mod overlay;
pub(crate) mod palettes;
pub mod pool;
pub mod prompt_marks;
pub mod properties;
pub(crate) mod reflow;
pub mod row;
mod shifted;
pub mod size;
pub mod style;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use triomphe::Arc;

use crate::screen::cell::Cell;
use crate::screen::grid::Grid;
use crate::screen::history::History;
use crate::screen::modes::Modes;
use crate::screen::pool::Pool;
use crate::screen::reflow::{HistoryAbove, reflow};
use crate::screen::row::{LineSize, Row};
use crate::screen::style::{Color, Style};

pub use crate::screen::palettes::Palette;
pub(crate) use crate::screen::palettes::SPECIAL_COLORS;
pub use cursor::{Charset, Charsets, Cursor, Margins, Pen, SavedCursor};
pub use extras::{Clipboard, Notification, Progress, Titles};
pub(crate) use extras::{
    Extras, KEYBOARD_STACK_MAX, PendingNotice, TITLE_STACK_MAX, TabStops, default_tabs,
};
pub use size::{CELLS_MAX, SIDE_MAX, Size};

/// The octets of a row beside its cells: the row, its counts, its place in the ring, two allocations' headers.
const ROW_BYTES: usize = 112;
/// The octets of a pushed title and icon name: 256 characters of 4 octets each.
const TITLES_BYTES: usize = 2200;
/// The octets of a saved private mode in its map, half full.
const SAVED_MODE_BYTES: usize = 16;
/// The octets of a screen's other parts: palette, titles, directory, notification, tab stops.
const EXTRAS_BYTES: usize = 16 << 10;

/// Which of the two grids is shown.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Buffer {
    /// The one with a history.
    #[default]
    Primary,
    /// For full-screen programs.
    Alternate,
}

/// State that is copied with each snapshot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    pub size: Size,
    pub buffer: Buffer,
    pub cursor: Cursor,
    pub pen: Pen,
    pub modes: Modes,
    pub margins: Margins,
    pub charsets: Charsets,
    /// The cell written last, while the cursor has not been moved since: where marks and joiners go.
    pub last_cell: Option<(u16, u16)>,
    /// The last graphic character, for REP.
    pub last_char: Option<char>,
    /// Some line may be of double width, which halves its columns.
    pub double_lines: bool,
    pub bells: u64,
    /// The next line's number.
    pub next_line: u64,
    /// The history's end.
    pub depth: u64,
}

/// The state of a terminal. `Clone` is O(1).
#[derive(Clone, Debug)]
pub struct Screen {
    pub(crate) state: State,
    pub(crate) grid: Arc<Grid>,
    /// The grid not shown: the primary while the alternate is, else what the alternate last held.
    pub(crate) hidden: Option<Arc<Grid>>,
    pub(crate) pool: Pool,
    pub(crate) extras: Arc<Extras>,
}

impl Screen {
    /// A blank screen after a full reset.
    pub fn new(size: Size) -> Self {
        let size = Size::clamped(size.rows, size.cols);
        let mut next_line = 0;
        let grid = Grid::blank(size.rows.into(), size.cols.into(), &mut next_line);
        Self {
            state: State {
                size,
                buffer: Buffer::Primary,
                cursor: Cursor::default(),
                pen: Pen::default(),
                modes: Modes::RESET,
                margins: Margins::whole(size),
                charsets: Charsets::default(),
                last_cell: None,
                last_char: None,
                double_lines: false,
                bells: 0,
                next_line,
                depth: 0,
            },
            grid: Arc::new(grid),
            hidden: None,
            pool: Pool::new(),
            extras: Arc::new(Extras { tabs: default_tabs(), ..Extras::default() }),
        }
    }

    /// Rows and columns.
    pub fn size(&self) -> Size {
        self.state.size
    }

    /// A row, from 0 at the top.
    ///
    /// # Panics
    /// When `row` is not below `size().rows`.
    pub fn row(&self, row: u16) -> &Arc<Row> {
        assert!(row < self.state.size.rows, "row {row} of {}", self.state.size.rows);
        self.grid.row(row.into())
    }

    /// All rows from top to bottom.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &Arc<Row>> {
        (0..self.state.size.rows).map(|row| self.grid.row(row.into()))
    }

    /// How many rows of the primary screen, which need not be the one shown, are in use: the last
    /// that is not blank, counted from 1.
    pub fn primary_rows_used(&self) -> u16 {
        let grid = match (self.state.buffer, &self.hidden) {
            (Buffer::Alternate, Some(primary)) => primary,
            _ => &self.grid,
        };
        let used = |row: &usize| !grid.row(*row).occupied().is_empty();
        (0..grid.rows()).rev().find(used).map_or(0, |row| row as u16 + 1)
    }

    /// The cell at a place, `None` outside the screen.
    pub fn cell(&self, row: u16, col: u16) -> Option<Cell> {
        let row = (row < self.state.size.rows).then(|| self.grid.row(row.into()))?;
        row.cells.get(usize::from(col)).copied()
    }

    /// The style of the cell at a place; plain outside the screen.
    pub fn cell_style(&self, row: u16, col: u16) -> Style {
        self.cell(row, col).map_or(Style::PLAIN, |cell| self.pool.style(cell.style()))
    }

    /// The tables behind the cells' numbers.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The octets it takes, what it shares with other screens included: an upper bound, in O(1).
    pub fn weight(&self) -> usize {
        let rows = usize::from(self.state.size.rows);
        let grid = rows * (usize::from(self.state.size.cols) * size_of::<Cell>() + ROW_BYTES);
        let extras = &self.extras;
        let strings = extras.clipboard.data.len() + extras.title_stack.len() * TITLES_BYTES;
        let saved = extras.saved_modes.len() * SAVED_MODE_BYTES;
        let palettes = extras.palettes.weight();
        2 * grid + self.pool.weight() + EXTRAS_BYTES + strings + saved + palettes
    }

    /// Where the cursor is.
    pub fn cursor(&self) -> Cursor {
        self.state.cursor
    }

    /// The switches.
    pub fn modes(&self) -> &Modes {
        &self.state.modes
    }

    /// How many lines have left at the top of the primary screen and were not taken back: the position in the
    /// [history](History::end) that its row 0 would take. No part of what [`same`](crate::same) compares, and 0
    /// where no history is kept.
    pub fn depth(&self) -> u64 {
        self.state.depth
    }

    /// The attributes of newly written cells.
    pub fn pen(&self) -> Pen {
        self.state.pen
    }

    /// The scrolling region.
    pub fn margins(&self) -> Margins {
        self.state.margins
    }

    /// The character sets.
    pub fn charsets(&self) -> Charsets {
        self.state.charsets
    }

    /// Which grid is shown.
    pub fn buffer(&self) -> Buffer {
        self.state.buffer
    }

    /// The grid not shown: the primary one while the alternate is; `None` before the first switch.
    pub fn hidden(&self) -> Option<&Grid> {
        self.hidden.as_deref()
    }

    /// Both screens show the very same rows: nothing on the grid differs.
    pub fn shares_grid(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.grid, &other.grid)
    }

    /// Titles, clipboard, palette and the like are shared: none of them differs.
    pub(crate) fn shares_extras(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.extras, &other.extras)
    }

    /// The window title; `None` until a program sets one.
    pub fn title(&self) -> Option<&str> {
        self.extras.titles.window.as_deref()
    }

    /// The icon name; `None` until a program sets one.
    pub fn icon(&self) -> Option<&str> {
        self.extras.titles.icon.as_deref()
    }

    /// The text last put on the clipboard; count 0 if nothing ever was.
    pub fn clipboard(&self) -> &Clipboard {
        &self.extras.clipboard
    }

    /// The last notification; count 0 if there was none.
    pub(crate) fn notification(&self) -> &Notification {
        &self.extras.notification
    }

    /// The progress reported.
    pub fn progress(&self) -> Progress {
        self.extras.progress
    }

    /// Colours the program changed.
    pub fn palette(&self) -> &Palette {
        &self.extras.palette
    }

    /// The working directory as the shell reports it (OSC 7), a URL; empty when unknown.
    pub fn directory(&self) -> &str {
        &self.extras.directory
    }

    /// How often the bell rang.
    pub fn bells(&self) -> u64 {
        self.state.bells
    }

    /// A row's text with trailing blanks cut; the right half of a wide cell gives nothing.
    pub fn row_text(&self, row: u16) -> String {
        let row = self.row(row);
        let mut text = String::with_capacity(row.occupied().len());
        for cell in row.occupied() {
            self.pool.push_text(*cell, &mut text);
        }
        text.truncate(text.trim_end_matches(' ').len());
        text
    }

    /// The first broken invariant of this screen, if any: they must hold after every sequence of bytes and sizes. For
    /// tests and fuzz targets.
    pub fn fault(&self) -> Option<String> {
        let Size { rows, cols } = self.state.size;
        let cursor = self.state.cursor;
        let margins = self.state.margins;
        if cursor.row >= rows || cursor.col >= cols {
            return Some(format!("cursor {cursor:?} outside {rows}x{cols}"));
        }
        let vertical = margins.top < margins.bottom && margins.bottom <= rows;
        if !vertical || margins.left >= margins.right || margins.right > cols {
            return Some(format!("margins {margins:?} in {rows}x{cols}"));
        }
        for grid in [Some(&self.grid), self.hidden.as_ref()].into_iter().flatten() {
            if grid.rows() != usize::from(rows) || grid.cols() != usize::from(cols) {
                return Some(format!("a grid of {}x{}", grid.rows(), grid.cols()));
            }
            let faults = (0..grid.rows()).filter_map(|row| {
                grid.row(row).fault(usize::from(cols)).map(|fault| format!("row {row}: {fault}"))
            });
            if let Some(fault) = faults.into_iter().next() {
                return Some(fault);
            }
            if (grid.marked()..grid.rows()).any(|row| !grid.row(row).marks.is_none()) {
                return Some(format!("marks beyond row {}", grid.marked()));
            }
        }
        None
    }

    /// The text of every row.
    pub fn text(&self) -> Vec<String> {
        (0..self.state.size.rows).map(|row| self.row_text(row)).collect()
    }

    /// This screen at another size (`mosh-protocol.md` §5.3): rows and columns are cut or added at the right
    /// and the bottom, no row counts as wrapped if the width changed, margins are the whole screen, and the
    /// cursor is clamped.
    pub fn resized(&self, size: Size) -> Self {
        let size = Size::clamped(size.rows, size.cols);
        let mut screen = self.clone();
        let blank = screen.blank(self.state.pen.style.bg);
        let next_line = &mut screen.state.next_line;
        screen.grid = Arc::new(self.grid.resized(size, blank, next_line));
        let hidden = self.hidden.as_ref();
        screen.hidden = hidden.map(|grid| Arc::new(grid.resized(size, Cell::BLANK, next_line)));
        screen.state.size = size;
        screen.state.margins = Margins::whole(size);
        screen.set_cursor(self.state.cursor.row, self.state.cursor.col);
        screen
    }

    /// This screen at another size as a modern terminal shows it: wrapped lines of the primary screen are
    /// wrapped anew, what does not fit leaves at the top, and what fits again comes back.
    pub(crate) fn reflowed(&self, size: Size, history: &mut History) -> Self {
        let mut screen = self.resized(size);
        let saved = self.extras.saved[Buffer::Primary as usize].cursor;
        let (primary, cursor) = match (self.state.buffer, &self.hidden) {
            (Buffer::Primary, _) => (&self.grid, self.state.cursor),
            (Buffer::Alternate, Some(primary)) => (primary, self.clamped(saved)),
            (Buffer::Alternate, None) => return screen,
        };
        let next_line = &mut screen.state.next_line;
        let mut above = HistoryAbove { history, pool: &mut screen.pool, next_line };
        let (mut grid, cursor) = reflow(primary, size, cursor, &mut above);
        screen.state.depth = history.end();
        // As DECLRMM made those on the screen, so it makes what comes back.
        if screen.state.modes.left_right_margins {
            grid.for_each_mut(|row| row.size = LineSize::Single);
        }
        screen.state.double_lines |= grid.iter().any(|row| row.size != LineSize::Single);
        match self.state.buffer {
            Buffer::Primary => {
                screen.grid = Arc::new(grid);
                screen.state.cursor = cursor;
            }
            Buffer::Alternate => {
                screen.hidden = Some(Arc::new(grid));
                Arc::make_mut(&mut screen.extras).saved[Buffer::Primary as usize].cursor = cursor;
            }
        }
        screen
    }

    fn clamped(&self, cursor: Cursor) -> Cursor {
        let Size { rows, cols } = self.state.size;
        Cursor { row: cursor.row.min(rows - 1), col: cursor.col.min(cols - 1), ..cursor }
    }

    /// A blank cell as erasing with this background leaves it.
    pub(crate) fn blank(&mut self, bg: Color) -> Cell {
        Cell::BLANK.with_style(self.pool.intern_style(Style::background(bg)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dialect, Terminal};

    #[test]
    fn sizes_are_clamped() {
        for (rows, cols, want) in [
            (0, 0, (1, 1)),
            (-1, 80, (1, 80)),
            (24, 80, (24, 80)),
            (1000, 1000, (1000, 200)),
            (1 << 31, 1 << 31, (1000, 200)),
            (i64::MIN, i64::MAX, (1, 1000)),
        ] {
            let size = Size::clamped(rows, cols);
            assert_eq!((size.rows, size.cols), want, "{rows} x {cols}");
        }
        assert_eq!(Size::new(0, 80), None);
        assert_eq!(Size::new(1000, 1000), None);
        assert_eq!(Size::new(24, 80), Some(Size::DEFAULT));
    }

    #[test]
    fn clones_share_until_written() {
        let mut a = Screen::new(Size::DEFAULT);
        let b = a.clone();
        assert!(a.shares_grid(&b));
        a.fill_row(3, Style::background(Color::indexed(4)));
        assert!(!a.shares_grid(&b));
        assert!(Arc::ptr_eq(a.row(2), b.row(2)));
        assert!(!Arc::ptr_eq(a.row(3), b.row(3)));
        assert_eq!(b.cell(3, 0), Some(Cell::BLANK));
    }

    #[test]
    fn no_double_line_comes_back_to_margins() {
        for (set, double) in [("", true), ("\x1b[?69h", false)] {
            let mut terminal = Terminal::new(Size::clamped(3, 20), Dialect::ROVE);
            terminal.advance(format!("\x1b#6double\r\n\n\n{set}").as_bytes());
            assert_eq!(terminal.history().len(), 1);
            terminal.resize(Size::clamped(4, 20));
            let screen = terminal.screen();
            assert_eq!(screen.row_text(0), "double");
            assert_eq!(screen.row(0).size() != LineSize::Single, double);
            assert_eq!(screen.state.double_lines, double);
        }
    }
}
