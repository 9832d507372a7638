//! Edits a snapshot: predictions, notices and tests draw over the program's screen. None of them moves the cursor or
//! changes the pen, unless that is what it is for.

use alloc::string::String;
use alloc::sync::Arc as StdArc;

use triomphe::Arc;

use crate::screen::cell::{Cell, Glyph, LinkId, Width};
use crate::screen::modes::Modes;
use crate::screen::row::LineSize;
use crate::screen::style::Style;
use crate::screen::{Clipboard, Cursor, Notification, Palette, Screen, Size, Titles};
use crate::width;

/// The clipboard and notification that a screen announces. Two are equal if a reader that has one gets no news from
/// the other.
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

    /// The part of this screen that begins at a row and a column, as a screen of its own of this size. What lies beyond
    /// this one is blank.
    #[must_use]
    pub fn part(&self, row: u16, col: u16, size: Size) -> Self {
        let mut screen = self.clone();
        let (row, col) = (row.min(self.state.size.rows - 1), col.min(self.state.size.cols - 1));
        let grid = self.grid.part(row.into(), col.into());
        screen.state.size = Size::clamped(grid.rows() as u16, grid.cols() as u16);
        screen.grid = Arc::new(grid);
        let Cursor { row: cursor_row, col: cursor_col, .. } = self.state.cursor;
        let mut part = screen.resized(size);
        part.set_cursor(cursor_row.saturating_sub(row), cursor_col.saturating_sub(col));
        part
    }

    /// Replaces the titles of this snapshot.
    pub fn set_titles(&mut self, titles: Titles) {
        Arc::make_mut(&mut self.extras).titles = titles;
    }

    /// The colours that programs changed, to change them in this snapshot.
    pub fn palette_mut(&mut self) -> &mut Palette {
        StdArc::make_mut(&mut Arc::make_mut(&mut self.extras).palette)
    }

    /// The last clipboard text and the last notification: a reader gets each once.
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
        row.written_to(row.cells.len());
        row.size = LineSize::Single;
    }

    /// Takes the links of all cells if a frame that draws them would write more than `octets_max` octets of links. A
    /// program can copy two links of two thousand octets each over all cells with twenty sequences; drawn, they would
    /// be hundreds of megabytes.
    pub fn bound_links(&mut self, octets_max: usize) {
        if self.link_octets(octets_max) <= octets_max {
            return;
        }
        for grid in [Some(&mut self.grid), self.hidden.as_mut()].into_iter().flatten() {
            let grid = Arc::make_mut(grid);
            for row in 0..grid.rows() {
                if grid.row(row).occupied().iter().any(|cell| cell.link() != LinkId::NONE) {
                    let cells = &mut grid.row_mut(row).cells;
                    cells.iter_mut().for_each(|cell| *cell = cell.with_link(LinkId::NONE));
                }
            }
            grid.take_touched();
        }
    }

    /// The octets of links that a frame of both grids may write: where a link begins, and where none goes on. Counts
    /// no further than just beyond `enough`, and not at all where it cannot come to that.
    fn link_octets(&self, enough: usize) -> usize {
        const AROUND: usize = b"\x1b]8;id=;\x07\x1b]8;;\x07".len();
        let grids = || [Some(&self.grid), self.hidden.as_ref()].into_iter().flatten();
        let cells: usize = grids().map(|grid| grid.rows() * grid.cols()).sum();
        let most = cells.saturating_mul(self.pool.longest_link() + AROUND);
        if most <= enough || self.pool.lens().links == 1 {
            return 0;
        }
        let mut octets = 0;
        for row in grids().flat_map(|grid| grid.iter()) {
            let mut last = LinkId::NONE;
            for link in row.occupied().iter().map(|cell| cell.link()) {
                if link != last {
                    let text =
                        self.pool.link(link).map_or(0, |link| link.id.len() + link.uri.len());
                    octets += text + AROUND;
                }
                last = link;
            }
            if octets > enough {
                break;
            }
        }
        octets
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
        row.written_to(end);
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
    use crate::{Dialect, Terminal, repaint};

    #[test]
    fn links_are_bound_by_what_drawing_them_takes() {
        let link = |letter: &str| format!("\x1b]8;;http://{}\x07", letter.repeat(1000));
        let short = "\x1b]8;id=7;http://a\x07a\x1b]8;;\x07 ".repeat(100);
        let long = format!("{}{}", link("a"), "x".repeat(300));
        // Sixteen cells in each of two rows, and a link in each.
        let copied = [2, 4, 8].map(|cols| format!("\x1b[1;1;1;{cols};1;1;{}$v", cols + 1)).concat();
        let copied = copied + "\x1b[1;1;1;16;1;2;1$v";
        let bomb = format!("{}x{}y{copied}", link("a"), link("b"));
        for (output, octets_max, kept) in [
            (short.as_str(), 10_000, true),
            (&short, 1000, false),
            (&long, 10_000, true),
            (&bomb, 40_000, true),
            (&bomb, 20_000, false),
            (&format!("{bomb}\x1b[?1049h"), 20_000, false),
            (&format!("\x1b[?1049h{bomb}\x1b[?47l"), 20_000, false),
        ] {
            let mut terminal = Terminal::new(Size::clamped(20u16, 60u16), Dialect::ROVE);
            terminal.advance(output.as_bytes());
            let mut screen = terminal.screen().clone();
            screen.bound_links(octets_max);
            assert_eq!(screen.shares_grid(terminal.screen()), kept, "{octets_max}");
            assert_eq!(screen.text(), terminal.screen().text());
            assert_eq!(screen.fault(), None);
            let mut drawn = Vec::new();
            repaint(&screen, &Dialect::ROVE, &mut drawn);
            let links = drawn.windows(4).filter(|octets| octets == b"http").count();
            assert_eq!(links > 0, kept, "{octets_max}");
            assert!(drawn.len() <= octets_max + 3000, "{}", drawn.len());
        }
    }

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
