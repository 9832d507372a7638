//! One frame: what leads from a picture to the next, in the order in which a reader takes it: events and state, then the
//! grids, then modes and the cursor. `paint.rs` draws the rows.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use triomphe::Arc;

use crate::dialect::{Ability, Dialect, Reader};
use crate::render::modes::Extent;
use crate::render::motion::Cursor;
use crate::render::paint::{Lines, Painter};
use crate::render::pen::Pen;
use crate::render::picture::{Picture, cursor_of, kept_style};
use crate::render::scroll::{Purpose, Standing};
use crate::render::{extras, marks, modes, project};
use crate::screen::Screen;
use crate::screen::cell::Cell;
use crate::screen::grid::Grid;
use crate::screen::modes::Modes;
use crate::screen::row::Row;
use crate::screen::style::Style;

/// Paints up to this many octets reach a terminal in one piece; longer ones are bracketed, so that
/// nobody sees half of them.
const UNBRACKETED_MAX: usize = 64;

/// Appends the bytes that turn a reader showing `old` into one showing `new`: nothing if it shows
/// that already.
///
/// The reader holds [`project`]`(old)`. When the sizes differ it has been resized already, and
/// everything is drawn anew (mosh-protocol.md §5.2).
pub fn frame(old: &Screen, new: &Screen, dialect: &Dialect, out: &mut Vec<u8>) {
    let bracket = Bracket::open(new, dialect, out);
    extras::write_events(old, new, dialect, out);
    extras::write_state(Some(old), new, dialect, out);
    let frame = Frame::new(old, new, Scrolling::Free, dialect, out);
    if old.size() == new.size() {
        frame.update();
    } else {
        frame.redraw(0);
    }
    bracket.close(out);
}

/// What scrolls of a terminal's picture may do to its history.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Scrolling {
    /// Lines that leave the screen at its top go there.
    Free,
    /// Nothing: the picture changes in place.
    InPlace,
}

/// Appends the bytes that make a terminal show `new` from any picture and any state.
///
/// Colours of the palette that `new` does not change stay as they are: the user may have set them.
///
/// For a tty: a stock peer would not understand all of it, and needs none.
pub fn repaint(new: &Screen, dialect: &Dialect, out: &mut Vec<u8>) {
    repaint_below(new, 0, dialect, out);
}

/// The same, but for the first `above` rows, which stay as they are: `new` is blank there
/// (see [`Screen::lowered`]).
pub fn repaint_below(new: &Screen, above: u16, dialect: &Dialect, out: &mut Vec<u8>) {
    let bracket = Bracket::open(new, dialect, out);
    if dialect.can(Ability::Links) {
        out.extend_from_slice(b"\x1b]8;;\x07");
    }
    out.extend_from_slice(SETTLE);
    let wrap: &[u8] = if dialect.can(Ability::SoftWrap) { b"\x1b[?7h" } else { b"\x1b[?7l" };
    out.extend_from_slice(wrap);
    extras::write_state(None, new, dialect, out);
    Frame::new(new, new, Scrolling::Free, dialect, out).redraw(above);
    bracket.close(out);
}

/// Undoes the state that another program may have left in the terminal: ASCII in use, replace mode, no origin mode.
const SETTLE: &[u8] = b"\x0f\x1b(B\x1b[4l\x1b[?6l";

/// One frame in the making.
pub(super) struct Frame<'a, 'o> {
    old: &'a Screen,
    new: &'a Screen,
    scrolling: Scrolling,
    dialect: Dialect,
    pub(super) painter: Painter<'a, 'o>,
}

impl<'a, 'o> Frame<'a, 'o> {
    pub(super) fn new(
        old: &'a Screen,
        new: &'a Screen,
        scrolling: Scrolling,
        dialect: &Dialect,
        out: &'o mut Vec<u8>,
    ) -> Self {
        let mut painter = Painter::new(old.pool(), new.pool(), dialect, out);
        painter.pen.style = kept_style(old, dialect);
        let double = old.state.double_lines || new.state.double_lines;
        if double && dialect.can(Ability::LineSize) {
            painter.lines = Lines::Mixed;
        }
        let (row, col) = cursor_of(old, dialect);
        painter.cursor = Cursor { row, col, ..Cursor::HOME };
        let before = painter.old.before(old.grid.row(row).cells(), col);
        painter.stands_behind(before);
        Self { old, new, scrolling, dialect: *dialect, painter }
    }

    /// From a known picture of the same size.
    pub(super) fn update(mut self) {
        let (before, after) =
            (Picture::of(self.old, &self.dialect), Picture::of(self.new, &self.dialect));
        let switched = self.grids(before, after);
        if switched || self.old.modes() != self.new.modes() {
            let old = modes::seen(self.old.modes(), &self.dialect);
            let new = modes::seen(self.new.modes(), &self.dialect);
            self.modes(&old, &new, Extent::Changes);
            if switched || old.keyboard_flags != new.keyboard_flags {
                modes::write_keyboard(new.keyboard_flags, &self.dialect, self.painter.out);
            }
        }
        self.settle();
        let (old, new) = (self.old.modes(), self.new.modes());
        if old.cursor_visible != new.cursor_visible {
            modes::write_visibility(new.cursor_visible, self.painter.out);
        }
    }

    /// From an unknown picture, of which the first `above` rows stay.
    pub(super) fn redraw(mut self, above: u16) {
        let after = Picture::of(self.new, &self.dialect);
        if self.dialect.can(Ability::Alternate) {
            self.painter.out.extend_from_slice(b"\x1b[?1049l");
        }
        self.painter.out.extend_from_slice(b"\x1b[r\x1b[0m");
        match self.dialect.reader() {
            Reader::StockPeer | Reader::RovePeer => {
                self.painter.out.extend_from_slice(b"\x1b[H\x1b[2J");
            }
            Reader::Tty => erase_in_place(self.new, above, &self.dialect, self.painter.out),
        }
        self.painter.pen.style = Style::PLAIN;
        self.painter.cursor = Cursor { row: above.into(), ..Cursor::HOME };
        self.painter.stands_behind(None);
        let blank = Picture { shown: None, hidden: None };
        self.grids(blank, after);
        let before = modes::seen(self.old.modes(), &self.dialect);
        let modes = modes::seen(self.new.modes(), &self.dialect);
        self.modes(&before, &modes, Extent::Everything);
        modes::write_keyboard(modes.keyboard_flags, &self.dialect, self.painter.out);
        self.settle();
        modes::write_visibility(modes.cursor_visible, self.painter.out);
    }

    fn modes(&mut self, old: &Modes, new: &Modes, extent: Extent) {
        if modes::write(old, new, extent, &self.dialect, self.painter.out) {
            self.painter.pen.style = Style::PLAIN;
        }
    }

    /// Draws one or both grids; returns whether the reader went from one to the other.
    fn grids(&mut self, before: Picture<'a>, after: Picture<'a>) -> bool {
        match (before.hidden, after.hidden) {
            (None, None) => {
                self.grid(before.shown, after.shown);
                false
            }
            (None, Some(primary)) => {
                self.grid(before.shown, Some(primary));
                self.enter_alternate();
                self.grid(None, after.shown);
                true
            }
            (Some(primary), None) => {
                self.leave_alternate();
                self.grid(Some(primary), after.shown);
                true
            }
            (Some(old), Some(new))
                if project::same_grids(old, new, self.old, self.new, &self.dialect) =>
            {
                self.grid(before.shown, after.shown);
                false
            }
            (Some(old), Some(new)) => {
                self.leave_alternate();
                self.grid(Some(old), Some(new));
                self.enter_alternate();
                self.grid(None, after.shown);
                true
            }
        }
    }

    /// Draws a grid over another one, or over blank rows.
    pub(super) fn grid(&mut self, old: Option<&'a Arc<Grid>>, new: Option<&'a Arc<Grid>>) {
        let Some(new) = new else { return };
        if old.is_some_and(|old| Arc::ptr_eq(old, new)) {
            return;
        }
        self.painter.purpose = match (self.dialect.reader(), old) {
            _ if self.scrolling == Scrolling::InPlace => Purpose::InPlace,
            // Between pictures that look alike nothing is written, even if rows moved.
            (Reader::Tty, Some(old))
                if !project::same_grids(old, new, self.old, self.new, &self.dialect) =>
            {
                Purpose::History
            }
            _ => Purpose::Brevity,
        };
        let wanted: Vec<&Arc<Row>> = new.iter().collect();
        let mut standing: Vec<Standing<'_>> = match old {
            Some(old) => old.iter().map(Some).collect(),
            None => vec![None; new.rows()],
        };
        self.painter.rows(&mut standing, &wanted);
    }

    /// The alternate screen comes up blank.
    fn enter_alternate(&mut self) {
        self.painter.set_pen(Pen::PLAIN);
        self.painter.out.extend_from_slice(b"\x1b[?1049h");
        self.painter.cursor = Cursor::LOST;
    }

    /// Cursor and pen come back as they were when the alternate screen came up, which is long
    /// forgotten.
    fn leave_alternate(&mut self) {
        self.painter.out.extend_from_slice(b"\x1b[?1049l\x1b[0m");
        self.painter.pen.style = Style::PLAIN;
        self.painter.cursor = Cursor::LOST;
    }

    /// Leaves cursor and pen as the reader keeps them.
    fn settle(&mut self) {
        let (row, col) = cursor_of(self.new, &self.dialect);
        let kept = Pen { style: kept_style(self.new, &self.dialect), link: None };
        self.painter.reach(row, self.new.grid.row(row).cells(), col, kept);
        self.painter.set_pen(kept);
    }
}

/// Erases a terminal below its first `above` rows for a picture of these rows, and leaves the cursor where that begins. No
/// line of it goes to the terminal's history: some terminals scroll what ED 2 erases into it, and tmux also what ED 0
/// erases from the first cell on. Nor is the first of these rows erased whole, since tmux and others take from the line
/// above an erased one the mark that it goes on: ED 0 erases from the second cell on, and the first one is written next,
/// has a blank of its own, or is erased alone.
pub(super) fn erase_in_place(new: &Screen, above: u16, dialect: &Dialect, out: &mut Vec<u8>) {
    let size = new.size();
    let first = match above {
        0 => "\x1b[H".to_owned(),
        above => format!("\x1b[{}H", above + 1),
    };
    out.extend_from_slice(first.as_bytes());
    if dialect.can(Ability::LineSize) {
        // ED 0 leaves the cursor's line as wide as it is.
        out.extend_from_slice(b"\x1b#5");
    }
    let is_written = new.grid.row(above.into()).cells()[0] != Cell::BLANK;
    out.extend_from_slice(match size.cols {
        1 => b"\x1b[K\x1b[J",
        _ if is_written => b" \x1b[J",
        _ if dialect.can(Ability::EraseCharacters) => b"\x1b[X\x1b[C\x1b[J",
        _ => b"\x1b[K\x1b[C\x1b[J",
    });
    out.extend_from_slice(first.as_bytes());
    if dialect.can(Ability::ShellMarks) {
        // Nor does such an ED take marks away.
        let marks = [marks::NONE].repeat((size.rows - above).into());
        out.extend_from_slice(&marks.join(&b'\n'));
        out.extend_from_slice(first.as_bytes());
    }
}

/// Keeps a terminal from showing half a paint, by synchronized output or else a hidden cursor. A peer needs neither:
/// its emulator's screen is read between frames only.
pub(super) struct Bracket {
    start: usize,
    open: &'static [u8],
    close: &'static [u8],
}

impl Bracket {
    pub(super) fn open(new: &Screen, dialect: &Dialect, out: &mut Vec<u8>) -> Self {
        let (open, close): (&[u8], &[u8]) = match dialect.reader() {
            Reader::StockPeer | Reader::RovePeer => (b"", b""),
            Reader::Tty if dialect.can(Ability::Synchronized) => (b"\x1b[?2026h", b"\x1b[?2026l"),
            Reader::Tty if new.modes().cursor_visible => (b"\x1b[?25l", b"\x1b[?25h"),
            Reader::Tty => (b"\x1b[?25l", b""),
        };
        let start = out.len();
        out.extend_from_slice(open);
        Self { start, open, close }
    }

    pub(super) fn close(self, out: &mut Vec<u8>) {
        let body = self.start + self.open.len();
        if out.len() - body > UNBRACKETED_MAX {
            out.extend_from_slice(self.close);
        } else {
            out.drain(self.start..body);
        }
    }
}
