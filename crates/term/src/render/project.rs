//! Projects a screen to the one that a reader of a dialect holds, and compares screens through a dialect.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use triomphe::Arc;

use crate::dialect::{Ability, Dialect, Emulation, Notices};
use crate::render::marks::marks;
use crate::render::paint::{Painter, Pair};
use crate::render::picture::{Picture, cursor_of, kept_style};
use crate::render::view::{CellSite, Look, ReaderView, Text, columns};
use crate::render::{extras, modes};
use crate::screen::cell::{Cell, Glyph, LinkId, StyleId, Width};
use crate::screen::grid::Grid;
use crate::screen::pool::Pool;
use crate::screen::row::{Ending, LineSize, Row};
use crate::screen::style::Style;
use crate::screen::{Buffer, Charsets, Cursor, Extras, Margins, Pen, Screen, State, Titles};

/// Whether two screens are the same to a reader: a [`frame`](crate::frame) from one to the other
/// would be empty but for the events that [`announces`](crate::announces) names.
pub fn same(a: &Screen, b: &Screen, dialect: &Dialect) -> bool {
    if a.size() != b.size()
        || cursor_of(a, dialect) != cursor_of(b, dialect)
        || kept_style(a, dialect) != kept_style(b, dialect)
        || !same_modes(a, b, dialect)
        || !extras::same_state(a, b, dialect)
    {
        return false;
    }
    let (left, right) = (Picture::of(a, dialect), Picture::of(b, dialect));
    let both = |left: Option<&Arc<Grid>>, right: Option<&Arc<Grid>>| match (left, right) {
        (Some(left), Some(right)) => same_grids(left, right, a, b, dialect),
        (left, right) => left.is_none() && right.is_none(),
    };
    both(left.shown, right.shown) && both(left.hidden, right.hidden)
}

fn same_modes(a: &Screen, b: &Screen, dialect: &Dialect) -> bool {
    a.modes() == b.modes() || modes::seen(a.modes(), dialect) == modes::seen(b.modes(), dialect)
}

/// Whether two grids, of these two screens, look alike.
pub(super) fn same_grids(
    a: &Arc<Grid>,
    b: &Arc<Grid>,
    of_a: &Screen,
    of_b: &Screen,
    dialect: &Dialect,
) -> bool {
    if Arc::ptr_eq(a, b) {
        return true;
    }
    if a.rows() != b.rows() || a.cols() != b.cols() {
        return false;
    }
    let mut nothing = Vec::new();
    let painter = Painter::new(of_a.pool(), of_b.pool(), dialect, &mut nothing);
    (0..a.rows()).all(|row| {
        let (old, new) = (a.row(row), b.row(row));
        let site = if row + 1 == a.rows() { CellSite::Last } else { CellSite::Inner };
        Arc::ptr_eq(old, new) || painter.looks_alike(old, new, site)
    })
}

/// The first of these rows in which two screens differ to a reader, or the row of the cursor if that does. A row is
/// compared as [`same`] compares it, so that one who knows which rows have changed need not compare the others.
pub fn unlike_row(
    a: &Screen,
    b: &Screen,
    dialect: &Dialect,
    rows: impl IntoIterator<Item = u16>,
) -> Option<u16> {
    let mut nothing = Vec::new();
    let painter = Painter::new(a.pool(), b.pool(), dialect, &mut nothing);
    let last = a.size().rows.saturating_sub(1);
    let unlike = |&row: &u16| {
        let site = if row == last { CellSite::Last } else { CellSite::Inner };
        !painter.looks_alike(a.row(row), b.row(row), site)
    };
    let moved = cursor_of(a, dialect) != cursor_of(b, dialect);
    rows.into_iter().find(unlike).or(moved.then_some(b.cursor().row))
}

impl Painter<'_, '_> {
    fn looks_alike(&self, old: &Row, new: &Row, site: CellSite) -> bool {
        let cols = columns(new, &self.dialect);
        let sized = old.size() == new.size() || !self.dialect.can(Ability::LineSize);
        let pair = Pair { old: &old.cells()[..cols], new: &new.cells()[..cols], spoilt: 0 };
        sized
            && marks(old, &self.dialect) == marks(new, &self.dialect)
            && self.old.marks_wrap(old, site) == self.new.marks_wrap(new, site)
            && self.next_change(&pair, 0).is_none()
    }
}

/// The screen of a reader of this dialect once it shows `screen`. Parts that it cannot have are degraded or gone, and
/// parts that a frame leaves in a known state are in that state.
pub fn project(screen: &Screen, dialect: &Dialect) -> Screen {
    let mut pool = Pool::new();
    let picture = Picture::of(screen, dialect);
    let view = ReaderView::new(screen.pool(), dialect);
    let mut grid = |grid: &Arc<Grid>| Arc::new(project_grid(grid, &view, &mut pool, dialect));
    let shown = grid(&screen.grid);
    let hidden = picture.hidden.map(&mut grid);
    let (row, col) = cursor_of(screen, dialect);
    let state = State {
        buffer: if hidden.is_some() { Buffer::Alternate } else { Buffer::Primary },
        cursor: Cursor { row: row as u16, col: col as u16, pending_wrap: false },
        pen: Pen { style: kept_style(screen, dialect), ..Pen::default() },
        modes: modes::seen(screen.modes(), dialect),
        margins: Margins::whole(screen.size()),
        charsets: Charsets::default(),
        last_cell: None,
        last_char: None,
        ..screen.state
    };
    let extras = Arc::new(project_extras(screen, dialect));
    Screen { state, grid: shown, hidden, pool, extras }
}

fn project_extras(screen: &Screen, dialect: &Dialect) -> Extras {
    let mut seen = Extras { tabs: crate::screen::default_tabs(), ..Extras::default() };
    if dialect.can(Ability::Titles) {
        let (window, icon) = extras::titles(screen);
        seen.titles = Titles {
            window: screen.title().map(|_| window.into()),
            icon: screen.icon().map(|_| icon.into()),
        };
    }
    if dialect.can(Ability::Palette) {
        seen.palette = screen.extras.palette.clone();
    }
    if dialect.can(Ability::Shell) {
        seen.directory = extras::directory(screen, dialect).into();
    }
    if dialect.can(Ability::Progress) {
        seen.progress = screen.progress();
    }
    if dialect.notices() != Notices::None {
        seen.notification = screen.extras.notification.clone();
    }
    if dialect.can(Ability::Clipboard) {
        seen.clipboard = screen.extras.clipboard.clone();
    }
    seen
}

fn project_grid(grid: &Grid, view: &ReaderView<'_>, pool: &mut Pool, dialect: &Dialect) -> Grid {
    let rows = (0..grid.rows()).map(|at| {
        let row = grid.row(at);
        let site = if at + 1 == grid.rows() { CellSite::Last } else { CellSite::Inner };
        let mut cells = vec![Cell::BLANK; row.cells().len()].into_boxed_slice();
        project_cells(
            &row.cells()[..columns(row, dialect)],
            &mut cells,
            view,
            pool,
            dialect.emulation(),
        );
        Arc::new(Row {
            occupied: cells.len() as u16,
            plain: false,
            cells,
            id: row.id(),
            ending: if view.marks_wrap(row, site) { Ending::Wrapped } else { Ending::Hard },
            size: if dialect.can(Ability::LineSize) { row.size() } else { LineSize::Single },
            marks: marks(row, dialect),
        })
    });
    Grid::from_rows(rows.collect(), grid.cols())
}

fn project_cells(
    from: &[Cell],
    to: &mut [Cell],
    view: &ReaderView<'_>,
    pool: &mut Pool,
    emulation: Emulation,
) {
    let mut col = 0;
    while col < from.len() {
        let Some(look) = view.look(from, col) else { break };
        let pen = pen_of(&look, pool);
        let width = if look.columns == 2 { Width::Wide } else { Width::Narrow };
        to[col] = pen.with_glyph(glyph_of(look.text, pool), width);
        if look.columns == 2 {
            to[col + 1] = covered(&look, pen, pool, emulation);
        }
        col += look.columns;
    }
}

/// The right half of a wide cell. Stock has none: it holds the blank that erasing would leave.
fn covered(look: &Look<'_>, pen: Cell, pool: &mut Pool, emulation: Emulation) -> Cell {
    match emulation {
        Emulation::Full => pen.with_glyph(Glyph::Char(' '), Width::Tail),
        Emulation::Mosh => {
            Cell::BLANK.with_style(pool.intern_style(Style::background(look.style.bg)))
        }
    }
}

fn pen_of(look: &Look<'_>, pool: &mut Pool) -> Cell {
    let style: StyleId = pool.intern_style(look.style);
    let link = look.link.map_or(LinkId::NONE, |link| pool.intern_link(link.id, link.uri));
    Cell::BLANK.with_style(style).with_link(link)
}

fn glyph_of(text: Text<'_>, pool: &mut Pool) -> Glyph {
    if let Text::Char(c) = text {
        return Glyph::Char(c);
    }
    let mut bytes = Vec::new();
    text.write(&mut bytes);
    let written = String::from_utf8_lossy(&bytes);
    match pool.intern_cluster(&written) {
        Some(id) => Glyph::Cluster(id),
        None => Glyph::Char(text.first()),
    }
}
