//! Defines the parts of a screen that a reader keeps between frames.

use triomphe::Arc;

use crate::dialect::{Ability, Dialect, Reader};
use crate::render::{degrade, view};
use crate::screen::grid::Grid;
use crate::screen::style::Style;
use crate::screen::{Buffer, Screen};

/// The grids a reader holds.
#[derive(Clone, Copy)]
pub(super) struct Picture<'a> {
    pub(super) shown: Option<&'a Arc<Grid>>,
    /// The primary grid, while the reader shows the alternate one.
    pub(super) hidden: Option<&'a Arc<Grid>>,
}

impl<'a> Picture<'a> {
    pub(super) fn of(screen: &'a Screen, dialect: &Dialect) -> Self {
        let alternate = screen.buffer() == Buffer::Alternate && dialect.can(Ability::Alternate);
        let hidden = if alternate { screen.hidden.as_ref() } else { None };
        Self { shown: Some(&screen.grid), hidden }
    }
}

/// The pen's style that a reader keeps between frames.
pub(super) fn kept_style(screen: &Screen, dialect: &Dialect) -> Style {
    match dialect.reader() {
        Reader::StockPeer | Reader::RovePeer => degrade::style(screen.pen().style, dialect),
        Reader::Tty => Style::PLAIN,
    }
}

/// Where the reader has the cursor: in one of the columns shown.
pub(super) fn cursor_of(screen: &Screen, dialect: &Dialect) -> (usize, usize) {
    let cursor = screen.cursor();
    let row = cursor.row.min(screen.size().rows - 1);
    let columns = view::columns(screen.row(row), dialect);
    (row.into(), usize::from(cursor.col).min(columns - 1))
}
