//! Draws rows: moves those that scrolled, marks soft wraps, prints cells. Tracks the reader's cursor and pen.
//! `row.rs` draws the differences within a row.

use alloc::vec;
use alloc::vec::Vec;

use triomphe::Arc;

use crate::dialect::{Ability, Dialect, Reader};
use crate::render::motion::{Cursor, CursorKnowledge, sequence};
use crate::render::pen::{Pen, put};
use crate::render::scroll::{self, Direction, Purpose, Scroll, Standing};
use crate::render::view::{CellSite, Look, ReaderView, Text, columns};
use crate::screen::cell::{Cell, Glyph};
use crate::screen::pool::{Common, Pool};
use crate::screen::row::{LineSize, Row};
use crate::screen::style::{Color, Style};

/// Line feeds by which the whole screen is scrolled where SU exists.
const FEEDS_MAX: usize = 3;
/// Rows that must have changed before moves of columns and an erased display are considered.
pub(super) const CHANGES_MIN: usize = 4;

/// Writes the picture of one frame.
pub(super) struct Painter<'a, 'o> {
    pub dialect: Dialect,
    pub out: &'o mut Vec<u8>,
    pub cursor: Cursor,
    pub pen: Pen<'a>,
    pub(super) old: ReaderView<'a>,
    pub(super) new: ReaderView<'a>,
    pub(super) alike: Alike,
    /// The text before the cursor, if the next text could join it.
    joinable: Option<Text<'a>>,
    /// The next cell printed must make the reader wrap.
    wrapping: bool,
    pub(super) below: Below,
    pub lines: Lines,
    /// The purpose of scrolls of the grid being drawn.
    pub purpose: Purpose,
    /// The whole display was erased since the grid was begun.
    pub(super) erased_all: bool,
}

/// Whether rows have equally many columns.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Lines {
    Alike,
    /// Some are double lines, which have half as many: motion between rows may hit their end.
    Mixed,
}

/// The wanted content of the rows below the one being drawn.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Below {
    /// Something, or what they are.
    Text,
    /// Blank, which they are not: one ED can make them so.
    Leftovers,
    /// ED has made them blank.
    Erased,
}

/// How far equal cells of two pools mean the same.
#[derive(Clone, Copy)]
pub(super) enum Alike {
    /// Always: the pools are one, or one grew out of the other.
    Always,
    /// Below these numbers.
    Below(Common),
}

impl Alike {
    pub(super) fn between(old: &Pool, new: &Pool) -> Self {
        let common = old.common(new);
        let (a, b) = (old.lens(), new.lens());
        let shorter = Common {
            styles: a.styles.min(b.styles),
            links: a.links.min(b.links),
            clusters: a.clusters.min(b.clusters),
        };
        if common == shorter { Alike::Always } else { Alike::Below(common) }
    }

    /// The cell's numbers mean the same in both pools.
    pub(super) fn vouches_for(&self, cell: Cell) -> bool {
        let Alike::Below(common) = self else { return true };
        let cluster = match cell.glyph() {
            Glyph::Char(_) => true,
            Glyph::Cluster(id) => id.index() < common.clusters,
        };
        cluster && cell.style().index() < common.styles && cell.link().index() < common.links
    }
}

/// A row as the reader has it and as it should be; as many columns of either as are shown.
pub(super) struct Pair<'r> {
    pub old: &'r [Cell],
    pub new: &'r [Cell],
    /// Columns before this one are no longer as `old` says: something was printed over them.
    pub spoilt: usize,
}

/// Whether a row's end is kept free, or marked as a soft wrap.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Ending {
    Free,
    Marked,
}

impl<'a, 'o> Painter<'a, 'o> {
    pub(super) fn new(
        old: &'a Pool,
        new: &'a Pool,
        dialect: &Dialect,
        out: &'o mut Vec<u8>,
    ) -> Self {
        Self {
            dialect: *dialect,
            out,
            cursor: Cursor::LOST,
            pen: Pen::PLAIN,
            old: ReaderView::new(old, dialect),
            new: ReaderView::new(new, dialect),
            alike: Alike::between(old, new),
            joinable: None,
            wrapping: false,
            below: Below::Text,
            lines: Lines::Alike,
            purpose: Purpose::Brevity,
            erased_all: false,
        }
    }

    /// Moves text where that saves octets, then draws the remaining differences.
    pub(super) fn rows(&mut self, standing: &mut [Standing<'_>], wanted: &[&Arc<Row>]) {
        let bottom = standing.last().copied().flatten();
        if scroll::any_moved(standing, wanted) {
            self.scroll(standing, wanted);
        }
        let stale_marks = self.stale_marks(standing, wanted);
        self.erased_all = false;
        if self.lines == Lines::Mixed {
            self.set_line_sizes(standing, wanted);
        }
        let many = self.changes_many(standing, wanted);
        let moved = if many { self.scroll_block(standing, wanted) } else { None };
        match moved {
            Some(moved) => {
                let mut standing = standing.to_vec();
                for (row, moved) in standing[moved.top..].iter_mut().zip(&moved.rows) {
                    *row = Some(moved);
                }
                self.erase_stale(&mut standing, wanted);
                self.draw(&standing, wanted, bottom);
            }
            None => {
                if many {
                    self.erase_stale(standing, wanted);
                }
                self.draw(standing, wanted, bottom);
            }
        }
        if stale_marks.is_some() || self.erased_all {
            self.set_marks(&stale_marks.unwrap_or_default(), wanted);
        }
    }

    /// Enough rows change for [`Self::scroll_block`] and [`Self::erase_stale`]. Never on a tty, where the user would
    /// see what they do.
    fn changes_many(&self, standing: &[Standing<'_>], wanted: &[&Arc<Row>]) -> bool {
        if self.dialect.reader() == Reader::Tty || self.lines == Lines::Mixed {
            return false;
        }
        let changes = |(old, new): &(&Standing<'_>, &&Arc<Row>)| {
            old.is_some_and(|old| !Arc::ptr_eq(old, new))
        };
        standing.iter().zip(wanted).filter(changes).nth(CHANGES_MIN - 1).is_some()
    }

    /// ED from the cursor on.
    pub(super) fn erase_below(&mut self) {
        self.out.extend_from_slice(b"\x1b[J");
        self.erased_all |= self.cursor.is_home();
    }

    /// ED here would put the picture into the history of some terminals, as `erase_in_place` tells.
    pub(super) fn erasing_feeds_history(&self) -> bool {
        self.purpose == Purpose::InPlace && self.cursor.is_home()
    }

    /// Draws the differences. `bottom` is the last row before any move.
    fn draw(&mut self, standing: &[Standing<'_>], wanted: &[&Arc<Row>], bottom: Standing<'_>) {
        let blank = |row: &Row| {
            row.occupied().is_empty() && !row.is_wrapped() && row.size() == LineSize::Single
        };
        let written = |row: &Standing<'_>| row.is_some_and(|row| !blank(row));
        let old_end = standing.iter().rposition(written).map_or(0, |last| last + 1);
        let new_end = wanted.iter().rposition(|row| !blank(row)).map_or(0, |last| last + 1);
        for (row, (old, new)) in standing.iter().zip(wanted).enumerate() {
            let is = if row + 1 == wanted.len() { CellSite::Last } else { CellSite::Inner };
            let was = match (old, bottom) {
                (Some(old), Some(bottom)) if Arc::ptr_eq(old, bottom) => CellSite::Last,
                _ => CellSite::Inner,
            };
            let same = old.is_some_and(|old| Arc::ptr_eq(old, new));
            if same && !self.wrapping && (was == is || !new.is_wrapped()) {
                continue;
            }
            self.below = match new_end <= row + 1 && row + 1 < old_end {
                true => Below::Leftovers,
                false => Below::Text,
            };
            self.row(row, (*old, was), (new, is));
            if self.below == Below::Erased {
                break;
            }
        }
        self.below = Below::Text;
    }

    /// Goes to a place, where the next character then prints.
    pub(super) fn go(&mut self, row: usize, col: usize) {
        if !self.cursor.is_at(row, col) {
            self.joinable = None;
            if self.lines == Lines::Mixed && self.cursor.row != row {
                self.cursor.footing = CursorKnowledge::Lost;
            }
            self.cursor.go(row, col, &self.dialect, self.out);
        }
    }

    pub(super) fn set_pen(&mut self, pen: Pen<'a>) {
        self.pen.set_style(pen.style, &self.dialect, self.out);
        self.pen.set_link(pen.link, self.out);
    }

    pub(super) fn set_style(&mut self, style: Style) {
        self.pen.set_style(style, &self.dialect, self.out);
    }

    /// Prints the text at `col`, in a row of `cols` columns.
    pub(super) fn print(&mut self, row: usize, col: usize, look: &Look<'a>, cols: usize) {
        let wrapping = core::mem::take(&mut self.wrapping);
        if wrapping {
            self.cursor = Cursor { row, col, footing: CursorKnowledge::Firm };
        } else {
            self.go(row, col);
        }
        self.set_pen(Pen { style: look.style, link: look.link });
        if wrapping && self.would_join(look.text) {
            // A blank wraps instead, and is printed over.
            self.print_text(&Look { text: Text::Char(' '), columns: 1, ..*look }, cols);
            self.go(row, col);
        }
        self.print_text(look, cols);
    }

    /// Printed now, the text would become part of what was printed before it.
    fn would_join(&self, text: Text<'_>) -> bool {
        let plain = matches!(text, Text::Char(c) if c.is_ascii());
        !plain && self.joinable.is_some_and(|last| last.is_joined_by(text))
    }

    fn print_text(&mut self, look: &Look<'a>, cols: usize) {
        let text = look.text;
        if self.would_join(text) {
            // Any motion ends a cluster, also one to where the cursor is.
            let Cursor { row, col, .. } = self.cursor;
            self.cursor.footing = CursorKnowledge::Lost;
            self.go(row, col);
        }
        text.write(self.out);
        self.advance(look.columns, cols);
        self.joinable = Some(text);
        if !text.is_steady() && self.dialect.reader() != Reader::RovePeer {
            self.cursor.footing = CursorKnowledge::Lost;
        }
    }

    /// The reader's cursor has printed this many columns.
    pub(super) fn advance(&mut self, columns: usize, cols: usize) {
        self.cursor.col += columns;
        if self.cursor.col >= cols {
            self.cursor.col = cols - 1;
            self.cursor.footing = CursorKnowledge::Deferred;
        }
    }

    /// The reader's cursor stands beyond the last column of the row above this one, whose text goes on here.
    pub(super) fn begin_wrapped(&mut self) {
        self.wrapping = true;
    }

    /// The next cell printed must make the reader wrap, so no other octets may come before it.
    pub(super) fn is_wrapping(&self) -> bool {
        self.wrapping
    }

    /// Sets the text before the cursor after a motion other than [`Painter::go`].
    pub(super) fn stands_behind(&mut self, text: Option<Text<'a>>) {
        self.joinable = text;
    }

    fn scroll(&mut self, standing: &mut [Standing<'_>], wanted: &[&Arc<Row>]) {
        let mut margins = false;
        for _ in 0..scroll::SCROLLS_MAX {
            let Some(scroll) = scroll::find(standing, wanted, self.purpose) else { break };
            if self.pen.style.bg != Color::DEFAULT {
                // Rows come in with the pen's background.
                self.set_style(Style::PLAIN);
            }
            if margins || scroll.top > 0 || scroll.bottom < standing.len() {
                put(self.out, format_args!("\x1b[{};{}r", scroll.top + 1, scroll.bottom));
                self.cursor = Cursor::HOME;
                margins = true;
            }
            self.scroll_region(&scroll);
            scroll::apply(&scroll, standing);
        }
        if margins {
            self.out.extend_from_slice(b"\x1b[r");
            self.cursor = Cursor::HOME;
        }
    }

    /// Scrolls what lies within the margins set. Line feeds are used where they are shorter, and on
    /// a tty, where they also feed the terminal's own history.
    fn scroll_region(&mut self, scroll: &Scroll) {
        self.joinable = None;
        let at_bottom =
            self.cursor.row + 1 == scroll.bottom && self.cursor.footing == CursorKnowledge::Firm;
        let has_scroll = self.dialect.can(Ability::ScrollUpDown);
        match scroll.direction {
            Direction::Up if has_scroll && !(at_bottom && scroll.count <= FEEDS_MAX) => {
                sequence(scroll.count, b'S', self.out);
            }
            Direction::Up => {
                if !at_bottom {
                    self.go(scroll.bottom - 1, 0);
                }
                self.out.extend(core::iter::repeat_n(b'\n', scroll.count));
            }
            Direction::Down if has_scroll => sequence(scroll.count, b'T', self.out),
            Direction::Down => {
                self.go(scroll.top, 0);
                sequence(scroll.count, b'L', self.out);
            }
        }
    }

    /// Draws the differences in one row.
    pub(super) fn row(
        &mut self,
        row: usize,
        (standing, was): (Standing<'_>, CellSite),
        (wanted, is): (&Row, CellSite),
    ) {
        let cols = columns(wanted, &self.dialect);
        let blank;
        let old = match standing {
            Some(row) => row.cells(),
            None => {
                blank = vec![Cell::BLANK; cols];
                &blank
            }
        };
        let mut pair = Pair { old: &old[..cols], new: &wanted.cells()[..cols], spoilt: 0 };
        let marked = standing.is_some_and(|row| self.old.marks_wrap(row, was));
        let ending = match self.new.marks_wrap(wanted, is) {
            true => Ending::Marked,
            false => Ending::Free,
        };
        let shifted;
        if standing.is_some_and(|row| !row.occupied().is_empty())
            && !marked
            && ending == Ending::Free
            && cols == wanted.cells().len()
            && let Some(cells) = self.shift(row, pair.old, pair.new)
        {
            shifted = cells;
            pair.old = &shifted;
        }
        let col = if self.wrapping { self.print_changed(row, &mut pair, 0) } else { 0 };
        let end_written = self.changes(row, &mut pair, col, ending);
        match ending {
            Ending::Marked if !marked || end_written => self.mark_wrap(row, &pair),
            Ending::Free if marked && !end_written => self.print_end(row, &pair),
            _ => {}
        }
    }

    /// Makes lines as large as they should be, and blank where they were not. Before anything is
    /// printed: the end of one line may wrap into the next.
    pub(super) fn set_line_sizes(&mut self, standing: &mut [Standing<'_>], wanted: &[&Arc<Row>]) {
        for (row, (old, new)) in standing.iter_mut().zip(wanted).enumerate() {
            if old.map_or(LineSize::Single, |old| old.size()) == new.size() {
                continue;
            }
            self.go(row, 0);
            self.out.extend_from_slice(match new.size() {
                LineSize::DoubleTop => b"\x1b#3",
                LineSize::DoubleBottom => b"\x1b#4",
                LineSize::Single => b"\x1b#5",
                LineSize::DoubleWidth => b"\x1b#6",
            });
            self.set_style(Style::PLAIN);
            self.out.extend_from_slice(b"\x1b[K");
            *old = None;
        }
    }

    /// Leaves the reader's cursor beyond the last column, so that the next row's first cell wraps.
    fn mark_wrap(&mut self, row: usize, pair: &Pair<'_>) {
        let at_end = self.cursor.row == row && self.cursor.footing == CursorKnowledge::Deferred;
        if !at_end {
            self.print_end(row, pair);
        }
        self.wrapping = true;
    }

    /// Prints the last cell again, which takes a soft wrap's mark away.
    fn print_end(&mut self, row: usize, pair: &Pair<'_>) {
        let cols = pair.new.len();
        let (last, look) = self.new.last(pair.new);
        self.print(row, last, &look, cols);
    }
}
