//! Runs the emulator over one chunk of bytes. It borrows the parts of a screen separately and resolves the pen to
//! cell bits. The modules below it write text and carry out the control functions.

mod cluster;
mod csi;
mod edit;
mod escape;
mod keyboard;
pub(crate) mod memo;
mod modes;
mod motion;
mod notify;
mod osc;
mod osc133;
mod presentation;
mod print;
pub(crate) mod profile;
mod rectangles;
mod rep;
mod reports;
mod reset;
mod sgr;
pub(crate) mod state;
mod synchronized;
mod xtcolors;
pub(crate) mod xtwinops;

use alloc::string::String;
use alloc::vec::Vec;

use triomphe::Arc;

use crate::emulator::memo::ClusterCache;
use crate::emulator::profile::Profile;
use crate::emulator::state::{Updates, Window};
use crate::screen::cell::{Cell, PROTECTED, StyleId};
use crate::screen::grid::{Fill, Grid};
use crate::screen::history::History;
use crate::screen::pool::{Pool, Sweep};
use crate::screen::properties::TerminalProperties;
use crate::screen::row::LineSize;
use crate::screen::style::{Color, Style};
use crate::screen::{Charset, Extras, State};

/// Bytes of answers kept until they are taken; later answers are dropped whole. Only a program that asks on without
/// reading its answers loses some.
const REPLIES_MAX: usize = 64 << 10;

/// The cost of making one octet of an answer, in cells.
const REPLY_CELLS: usize = 8;

/// One chunk's view of a terminal.
pub(crate) struct Emulator<'a> {
    pub state: &'a mut State,
    pub grid: &'a mut Grid,
    pub hidden: &'a mut Option<Arc<Grid>>,
    pub pool: &'a mut Pool,
    pub extras: &'a mut Arc<Extras>,
    pub replies: &'a mut Vec<u8>,
    pub profile: &'static Profile,
    pub history: &'a mut History,
    /// Reading stops once the cells touched reach this number.
    pub cells_max: u64,
    pub scratch: &'a mut String,
    pub pen: ResolvedPen,
    pub memo: &'a mut ClusterCache,
    /// No charset, insert mode or foreign rule stands between characters and cells.
    pub direct: bool,
    /// DECRQCRA is answered.
    pub checksums: bool,
    /// The window that programs may move and resize, if there is one.
    pub window: &'a mut Option<Window>,
    /// Updates that the program brackets.
    pub updates: &'a mut Updates,
    /// The properties of the user's terminal, as far as it reported them.
    pub around: &'a TerminalProperties,
}

/// The pen as bits of cells, each resolved when it is first needed.
#[derive(Clone, Copy)]
pub(crate) struct ResolvedPen {
    /// A written cell without its glyph.
    pub template: Option<u64>,
    /// An erased cell.
    pub blank: Option<Cell>,
}

impl ResolvedPen {
    /// Must be resolved before use.
    pub(crate) const STALE: Self = Self { template: None, blank: None };
}

impl Emulator<'_> {
    /// Charset, insert mode or the like may have changed.
    #[inline]
    pub(crate) fn text_rules_changed(&mut self) {
        let charsets = &self.state.charsets;
        self.direct = !self.state.modes.insert
            && charsets.single.is_none()
            && charsets.current() == Charset::Us;
    }

    /// The pen's style, link or protection changed.
    #[inline]
    pub(crate) fn pen_changed(&mut self) {
        self.pen = ResolvedPen::STALE;
    }

    #[inline]
    pub(crate) fn template(&mut self) -> u64 {
        match self.pen.template {
            Some(template) => template,
            None => self.resolve_template(),
        }
    }

    /// An erased cell: the pen's background and nothing else.
    #[inline]
    pub(crate) fn blank(&mut self) -> Cell {
        match self.pen.blank {
            Some(blank) => blank,
            None => self.resolve_blank(),
        }
    }

    /// A narrow cell as written by the pen.
    pub(crate) fn written(&mut self, c: char) -> Cell {
        Cell(self.template() | u64::from(c))
    }

    fn resolve_template(&mut self) -> u64 {
        let pen = self.state.pen;
        let style = self.pool.intern_style(pen.style);
        let protection = if pen.protected { PROTECTED } else { 0 };
        let bare = Cell(protection).with_link(pen.link).with_semantic(pen.semantic);
        let template = bare.with_style(style).0;
        self.pen.template = Some(template);
        template
    }

    fn resolve_blank(&mut self) -> Cell {
        let background = match self.state.pen.style.bg {
            Color::DEFAULT => StyleId::PLAIN,
            bg => self.pool.intern_style(Style::background(bg)),
        };
        let blank = Cell::BLANK.with_style(background);
        self.pen.blank = Some(blank);
        blank
    }

    /// Renumbers the entries that cells still use and frees the others, once enough were given out. Callers hold no
    /// numbers meanwhile.
    #[inline]
    pub(crate) fn sweep_if_due(&mut self) {
        if self.pool.needs_sweep() {
            self.sweep();
        }
    }

    #[cold]
    fn sweep(&mut self) {
        let old = self.pool.clone();
        let mut sweep = Sweep::new(&old);
        // The tables are paid for by the numbers that were given out since the last sweep: as many as there were.
        let mut cells = 0;
        let mut renumber = |row: &mut crate::screen::row::Row| {
            let occupied = usize::from(row.occupied);
            cells += occupied;
            for cell in &mut row.cells[..occupied] {
                *cell = sweep.renumber(*cell);
            }
        };
        self.grid.for_each_mut(&mut renumber);
        if let Some(hidden) = self.hidden {
            let hidden = Arc::make_mut(hidden);
            hidden.for_each_mut(&mut renumber);
            cells += hidden.take_touched() as usize;
        }
        self.touched(cells);
        self.state.pen.link = sweep.link(self.state.pen.link);
        for saved in &mut Arc::make_mut(self.extras).saved {
            saved.pen.link = sweep.link(saved.pen.link);
        }
        *self.pool = sweep.finish();
        self.updates.renumbered(&old);
        self.memo.clear();
        self.history.renumbered();
        self.pen = ResolvedPen::STALE;
    }

    /// Answers a query at once.
    pub(crate) fn reply(&mut self, bytes: &[u8]) {
        // Also of an answer that is dropped: it was made.
        self.touched(REPLY_CELLS * bytes.len());
        if self.replies.len() + bytes.len() <= REPLIES_MAX {
            self.replies.extend_from_slice(bytes);
        }
    }

    /// Counts work: cells written, moved, erased or looked at, and other work by the cells that cost as much.
    #[inline]
    pub(crate) fn touched(&mut self, cells: usize) {
        self.grid.touch(cells);
    }

    /// The limit of work for this call is reached.
    #[inline]
    pub(crate) fn is_spent(&self) -> bool {
        self.grid.touched() >= self.cells_max
    }

    /// New blank lines for a scroll.
    #[inline]
    pub(crate) fn fill(&mut self) -> (&mut Grid, Fill<'_>) {
        let blank = self.blank();
        (self.grid, Fill { blank, next_line: &mut self.state.next_line })
    }

    /// One past the last column the cursor's line can be written to.
    #[inline]
    pub(crate) fn right_limit(&self) -> usize {
        let cursor = &self.state.cursor;
        let limit = if cursor.col < self.state.margins.right {
            self.state.margins.right
        } else {
            self.state.size.cols
        };
        if self.state.double_lines { self.double_limit(limit) } else { limit.into() }
    }

    fn double_limit(&self, limit: u16) -> usize {
        let row = self.grid.row(self.state.cursor.row.into());
        match row.size {
            LineSize::Single => limit.into(),
            _ => usize::from(limit.min((self.state.size.cols / 2).max(1))),
        }
    }
}
