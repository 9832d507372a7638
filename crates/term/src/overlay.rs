//! Edits of a snapshot: what predictions, notices and tests lay over what the program drew. None of them
//! moves the cursor or changes the pen, unless that is what it is for.

use std::sync::Arc as StdArc;

use triomphe::Arc;

use crate::cell::{Cell, Glyph, Width};
use crate::modes::Modes;
use crate::row::{Ending, LineSize};
use crate::screen::{Clipboard, Cursor, Notification, Palette, Screen, Size, Titles};
use crate::style::Style;
use crate::width;

/// What a screen announces besides bells. Two are equal if a reader that was told of one has nothing to
/// hear of the other.
#[derive(Clone, Debug, Default)]
pub struct Announced(StdArc<Clipboard>, StdArc<Notification>);

impl PartialEq for Announced {
    fn eq(&self, other: &Self) -> bool {
        (self.0.count, self.1.count) == (other.0.count, other.1.count)
    }
}

impl Screen {
    /// Moves the cursor of this snapshot (an overlay's, for example); clamped to the screen.
    pub fn set_cursor(&mut self, row: u16, col: u16) {
        let Size { rows, cols } = self.state.size;
        self.state.cursor =
            Cursor { row: row.min(rows - 1), col: col.min(cols - 1), pending_wrap: false };
        self.state.last_cell = None;
    }

    /// The switches, to change them in this snapshot.
    pub fn modes_mut(&mut self) -> &mut Modes {
        &mut self.state.modes
    }

    /// Replaces the titles of this snapshot.
    pub fn set_titles(&mut self, titles: Titles) {
        Arc::make_mut(&mut self.extras).titles = titles;
    }

    /// The colours that programs changed, to change them in this snapshot.
    pub fn palette_mut(&mut self) -> &mut Palette {
        StdArc::make_mut(&mut Arc::make_mut(&mut self.extras).palette)
    }

    /// What was last put on the clipboard and last notified: what a reader is told of once.
    pub fn announced(&self) -> Announced {
        let extras = &self.extras;
        Announced(StdArc::clone(&extras.clipboard), StdArc::clone(&extras.notification))
    }

    /// Has this snapshot announce these, and nothing later.
    pub fn set_announced(&mut self, announced: &Announced) {
        let extras = Arc::make_mut(&mut self.extras);
        extras.clipboard = StdArc::clone(&announced.0);
        extras.notification = StdArc::clone(&announced.1);
    }

    /// Sets the style that the next characters written get.
    pub fn set_pen_style(&mut self, style: Style) {
        self.state.pen.style = style;
    }

    /// Blanks a row of this snapshot in `style`'s background.
    pub fn fill_row(&mut self, row: u16, style: Style) {
        if row >= self.state.size.rows {
            return;
        }
        let blank = self.blank(style.bg);
        let row = Arc::make_mut(&mut self.grid).row_mut(row.into());
        row.cells.fill(blank);
        row.occupy(row.cells.len());
        row.ending = Ending::Hard;
        row.size = LineSize::Single;
    }

    /// Replaces the window title of this snapshot.
    pub fn set_title(&mut self, title: Option<&str>) {
        Arc::make_mut(&mut self.extras).titles.window = title.map(StdArc::from);
    }

    /// Replaces the icon name of this snapshot.
    pub fn set_icon(&mut self, icon: Option<&str>) {
        Arc::make_mut(&mut self.extras).titles.icon = icon.map(StdArc::from);
    }

    /// Writes one character at a place: a narrow one, or a wide one with its tail. Outside the screen, or
    /// where the tail has no room, nothing happens.
    pub fn set_char(&mut self, row: u16, col: u16, c: char, width: Width, style: Style) {
        self.set_glyph(row, col, Glyph::Char(c), width, style);
    }

    fn set_glyph(&mut self, row: u16, col: u16, glyph: Glyph, width: Width, style: Style) {
        let columns = if width == Width::Wide { 2 } else { 1 };
        let start = usize::from(col);
        let end = start + columns;
        if row >= self.state.size.rows || end > usize::from(self.state.size.cols) {
            return;
        }
        let bits = Cell::BLANK.with_style(self.pool.intern_style(style));
        let row = Arc::make_mut(&mut self.grid).row_mut(row.into());
        row.split(start);
        row.split(end);
        row.cells[start] = bits.with_glyph(glyph, width);
        if columns == 2 {
            row.cells[start + 1] = bits.with_glyph(Glyph::Char(' '), Width::Tail);
        }
        row.occupy(end);
        if end == row.cells.len() {
            row.ending = Ending::Hard;
        }
    }

    /// Writes text from a place on, cut at the right edge; clusters count as the emulator counts them, and
    /// controls are left out.
    pub fn put(&mut self, row: u16, col: u16, text: &str, style: Style) {
        let mut col = col;
        let mut cluster = String::new();
        for c in text.chars().filter(|c| !c.is_control()) {
            if !width::joins(&cluster, c) {
                col = self.put_cluster(row, col, &cluster, style);
                cluster.clear();
            }
            if cluster.chars().count() < width::CLUSTER_CHARS_MAX
                && cluster.len() + c.len_utf8() <= width::CLUSTER_BYTES_MAX
            {
                cluster.push(c);
            }
        }
        self.put_cluster(row, col, &cluster, style);
    }

    /// Writes one cluster and returns the column behind it.
    fn put_cluster(&mut self, row: u16, col: u16, cluster: &str, style: Style) -> u16 {
        let columns = width::cluster(cluster);
        let mut chars = cluster.chars();
        let glyph = match (chars.next(), chars.next()) {
            (Some(only), None) => Glyph::Char(only),
            _ => self.pool.intern_cluster(cluster).map_or(Glyph::Char(' '), Glyph::Cluster),
        };
        match columns {
            0 => {}
            1 => self.set_glyph(row, col, glyph, Width::Narrow, style),
            _ => self.set_glyph(row, col, glyph, Width::Wide, style),
        }
        col.saturating_add(columns.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn put() {
        for (col, text, want) in [
            (0, "abc", "abc"),
            (2, "abc", "  abc"),
            (8, "abc", "        ab"),
            (0, "e\u{301}x", "e\u{301}x"),
            (9, "\u{4e16}", ""),
            (0, "a\x1b[mb", "a[mb"),
            (65535, "a", ""),
        ] {
            let mut screen = Screen::new(Size::clamped(2u16, 10u16));
            screen.put(0, col, text, Style::PLAIN);
            assert_eq!(screen.row_text(0), want, "{text:?} at {col}");
        }
        let mut screen = Screen::new(Size::clamped(1u16, 6u16));
        screen.put(0, 0, "\u{4e16}\u{754c}\u{4e16}", Style::PLAIN);
        screen.put(0, 1, "ab", Style::PLAIN);
        assert_eq!(screen.row_text(0), " ab \u{4e16}");
        screen.put(9, 0, "outside", Style::PLAIN);
    }
}
