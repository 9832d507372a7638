//! Holds the state of an emulator that is not part of its screen.

use triomphe::Arc;

use crate::screen::grid::Grid;
use crate::screen::pool::Pool;
use crate::screen::{Extras, Screen, Size, State};

/// The updates of a terminal's programs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Updates {
    /// How many programs have begun.
    pub begun: u64,
    pub before: Option<Before>,
}

/// A screen, and its tables only if the terminal's are others by now.
#[derive(Clone, Debug)]
pub(crate) struct Before {
    pub state: State,
    pub grid: Arc<Grid>,
    pub hidden: Option<Arc<Grid>>,
    pub extras: Arc<Extras>,
    /// `None`: those of the terminal's screen, which have only grown since. Sharing them would make the next write
    /// copy a table.
    pub pool: Option<Pool>,
}

impl Updates {
    /// The picture before the update under way; `pool` holds the terminal's tables.
    pub(crate) fn before(&self, pool: &Pool) -> Option<Screen> {
        let Before { state, grid, hidden, extras, pool: own } = self.before.as_ref()?.clone();
        Some(Screen { state, grid, hidden, pool: own.unwrap_or_else(|| pool.clone()), extras })
    }

    /// Forgets the picture: the screen is about to be replaced, or the update is over.
    pub(crate) fn forget(&mut self) {
        self.before = None;
    }

    /// Keeps the tables `old` for the picture: the terminal's tables give other numbers from now on.
    pub(crate) fn renumbered(&mut self, old: &Pool) {
        if let Some(before) = &mut self.before {
            before.pool.get_or_insert_with(|| old.clone());
        }
    }
}

/// A window nobody sees.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    /// In pixels from the left and the top.
    pub position: (u16, u16),
    pub iconified: bool,
    /// The size before it was maximised.
    pub restore: Option<Size>,
}
