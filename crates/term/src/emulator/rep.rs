//! REP, which could be a loop of 65,535 insertions that each scroll: done line by line, and without
//! scrolling more than once (threats row 2).

use crate::emulator::Emulator;
use crate::screen::cell::Glyph;
use crate::screen::row::Ending;
use crate::width;

impl Emulator<'_> {
    /// REP: the last graphic character again. Once the screen is full of it, further whole lines change
    /// nothing and are left out.
    pub(crate) fn repeat(&mut self, count: u16) {
        let Some(c) = self.state.last_char else { return };
        let columns = width::of(c).max(1);
        let most = self.rows() * self.cols() / usize::from(columns);
        let margins = self.state.margins;
        let line = usize::from((margins.right - margins.left) / u16::from(columns)).max(1);
        let beyond = usize::from(count).saturating_sub(most) % line;
        let mut left = self.make_room(usize::from(count).min(most) + beyond, columns.into());
        let insert = core::mem::take(&mut self.state.modes.insert);
        while left > 0 {
            if self.state.cursor.pending_wrap {
                self.wrap(Ending::Wrapped);
            }
            let cursor = self.state.cursor;
            let room = self.right_limit().saturating_sub(cursor.col.into()) / usize::from(columns);
            let step = room.clamp(1, left);
            if insert && room > 0 && self.inside_columns() {
                let limit = self.right_limit();
                self.shift_right(cursor.col.into(), step * usize::from(columns), limit);
            }
            for _ in 0..step {
                self.place(Glyph::Char(c), columns);
            }
            left -= step;
        }
        self.state.modes.insert = insert;
        self.state.last_cell = None;
    }

    /// Scrolling between side margins moves every cell, so all lines that `count` characters need are
    /// scrolled in at once. Returns how many characters are left to write: those whose lines would have
    /// scrolled away again are not.
    fn make_room(&mut self, count: usize, columns: usize) -> usize {
        let margins = self.state.margins;
        let whole = margins.left == 0 && margins.right == self.state.size.cols;
        if whole || !self.state.modes.autowrap || !self.inside_margins() {
            return count;
        }
        let cursor = self.state.cursor;
        let line = usize::from(margins.right - margins.left) / columns;
        let first =
            if cursor.pending_wrap { 0 } else { usize::from(margins.right - cursor.col) / columns };
        if line == 0 || count <= first {
            return count;
        }
        let lines = (count - first).div_ceil(line);
        let scrolls = lines.saturating_sub(usize::from(margins.bottom - 1 - cursor.row));
        if scrolls == 0 {
            return count;
        }
        let height = margins.bottom - margins.top;
        self.scroll_up(margins.top, scrolls.min(height.into()) as u16);
        let above = usize::from(cursor.row - margins.top);
        if scrolls <= above {
            self.state.cursor.row -= scrolls as u16;
            return count;
        }
        self.move_to(margins.top, margins.left);
        count - first - (scrolls - above - 1) * line
    }
}
