//! The bar and the guesses that the client lays over the server's screen, and how it sets the
//! terminal up and gives it back (`mosh-protocol.md` §8.1, 8.3).

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use rove_term::probe::DeviceReports;
use rove_term::screen::{Palette, Titles};
use rove_term::{
    Ability, Attrs, Color, Dialect, LineSize, Screen, Size, Style, enter, leave, scroll_out,
};

use crate::client::panel::PANEL_COLS;
use crate::view::Peer;

/// Which of the terminal's two screens a session is shown on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TtyScreen {
    /// The alternate one, for the whole session: the user's picture comes back afterwards. Stock mosh's way, since its screens do not say whether a program asked for the alternate one.
    Alternate,
    /// The main one, and the alternate one while the program is on its own. What the user had there
    /// is scrolled up first, into the terminal's history, and so are lines that leave at the top.
    Main,
    /// The main one as well, from the cursor on: what the user had above it stays until the session needs the room.
    Inline,
}

/// The state in which the client finds the terminal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Found {
    /// As the user had it.
    Theirs,
    /// As the client left it, but for what others may have done to it meanwhile.
    Ours,
}

impl TtyScreen {
    /// The window that suits what this peer tells about its program's screens.
    pub fn of(peer: Peer) -> Self {
        match peer {
            Peer::Stock => Self::Alternate,
            Peer::Rove => Self::Inline,
        }
    }

    /// The part of a terminal's abilities that the painter may use.
    pub(crate) fn narrow(self, tty: Dialect) -> Dialect {
        match self {
            // We are in it already: a program must not lead the user out of it.
            Self::Alternate => tty.without(Ability::Alternate),
            Self::Main | Self::Inline => tty,
        }
    }

    /// What to write before the first paint. Arrow keys arrive as `ESC O x` from then on; the server
    /// turns them into what the program asked for.
    pub(crate) fn open(self, found: Found, size: Size, tty: &Dialect) -> Vec<u8> {
        let mut out = Vec::new();
        if self.switches(tty) {
            out.extend_from_slice(b"\x1b[?1049h");
        } else if (self, found) == (Self::Main, Found::Theirs) {
            scroll_away(size, &mut out);
        }
        if found == Found::Theirs {
            enter(&self.narrow(*tty), &mut out);
        }
        out.extend_from_slice(b"\x1b[?1h");
        out
    }

    /// Appends what sends lines at the screen's top back to the terminal's history, as the beginning of the
    /// repaint that follows: a terminal that can be held is held from here on.
    pub(crate) fn give_back_lines(self, lines: u16, tty: &Dialect, out: &mut Vec<u8>) {
        if lines == 0 || self.switches(tty) {
            return;
        }
        if tty.can(Ability::Synchronized) {
            out.extend_from_slice(b"\x1b[?2026h");
        }
        if tty.can(Ability::Alternate) {
            out.extend_from_slice(b"\x1b[?1049l");
        }
        out.extend_from_slice(b"\x1b[m\x1b[r");
        scroll_out(lines.into(), out);
    }

    /// What to write after the last paint: all that a paint may have switched on is off then, and these colours
    /// are as they were. The cursor goes to the line below the first `used` rows; `None` if it was never moved.
    pub(crate) fn close(
        self,
        shown: Option<&Screen>,
        colors: &Palette,
        used: Option<u16>,
        tty: &Dialect,
    ) -> Vec<u8> {
        let mut out = Vec::new();
        leave(shown, colors, &self.narrow(*tty), &mut out);
        out.extend_from_slice(b"\x1b[?1l");
        if self.switches(tty) {
            out.extend_from_slice(b"\x1b[?1049l");
            return out;
        }
        let below = match used {
            None => String::new(),
            Some(0) => "\x1b[H".to_owned(),
            Some(last) => format!("\x1b[{last};1H\r\n"),
        };
        out.extend_from_slice(below.as_bytes());
        out
    }

    pub(crate) fn switches(self, tty: &Dialect) -> bool {
        self == Self::Alternate && tty.can(Ability::Alternate)
    }
}

/// Appends what scrolls away all of a terminal that the user had: wherever the cursor is, its line and all above it
/// leave the screen, and nothing below was worth keeping.
pub(crate) fn scroll_away(size: Size, out: &mut Vec<u8>) {
    out.push(b'\r');
    out.extend(core::iter::repeat_n(b'\n', size.rows.into()));
}

/// Appends what makes the terminal tell of changes that it said it can tell of.
pub(crate) fn listen(told: &DeviceReports, out: &mut Vec<u8>) {
    if told.reports_scheme() {
        out.extend_from_slice(b"\x1b[?2031h");
    }
}

/// Appends what puts back what the terminal said it had before: beyond what every terminal is left with.
pub(crate) fn restore(told: &DeviceReports, window: TtyScreen, out: &mut Vec<u8>) {
    if told.reports_scheme() {
        out.extend_from_slice(b"\x1b[?2031l");
    }
    if let Some(shape @ 1..) = told.cursor_shape() {
        out.extend_from_slice(format!("\x1b[{shape} q").as_bytes());
    }
    // Each screen has flags of its own, and the alternate one's go with it.
    if let Some(flags @ 1..) = told.keyboard().filter(|_| window != TtyScreen::Alternate) {
        out.extend_from_slice(format!("\x1b[={flags};1u").as_bytes());
    }
}

/// Puts `prefix` before the window title, and before the icon name if that is the same. A terminal
/// whose title no program set keeps its own.
pub(crate) fn prefix_title(screen: &mut Screen, prefix: &str) {
    let Some(title) = screen.title().filter(|_| !prefix.is_empty()) else { return };
    let window = format!("{prefix}{title}").into();
    let icon = match screen.icon() {
        Some(icon) if icon == title => Some(alloc::sync::Arc::clone(&window)),
        icon => icon.map(Into::into),
    };
    screen.set_titles(Titles { window: Some(window), icon });
}

/// Cuts the picture to the user's window, which may be smaller or larger than the server's screen: until the two
/// agree, or as long as others decide on the size.
pub(crate) fn cut(screen: &mut Screen, size: Size) {
    if screen.size() != size {
        // What is added is nobody's: it takes no colour from the program's pen.
        screen.set_pen_style(Style::PLAIN);
        *screen = screen.resized(size);
    }
}

/// Where the part of a screen begins that a smaller window shows.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Corner {
    row: u16,
    col: u16,
}

impl Corner {
    /// Cuts the picture to a window that shows the cursor, and follows it no farther than it has to.
    pub(crate) fn cut(&mut self, screen: &mut Screen, size: Size) {
        let (all, cursor) = (screen.size(), screen.cursor());
        self.row = follow(self.row, cursor.row, size.rows, all.rows);
        self.col = follow(self.col, cursor.col, size.cols, all.cols);
        if *self != Corner::default() {
            screen.set_pen_style(Style::PLAIN);
            *screen = screen.part(self.row, self.col, size);
        } else {
            cut(screen, size);
        }
    }
}

/// Where a window of `len` of `all` cells begins if it began at `from` and is to show the cell `at`.
fn follow(from: u16, at: u16, len: u16, all: u16) -> u16 {
    let first = (at + 1).saturating_sub(len);
    from.clamp(first, at.max(first)).min(all.saturating_sub(len))
}

/// Bold white on blue, as stock paints it.
fn bar_style() -> Style {
    Style { fg: Color::indexed(7), bg: Color::indexed(4), attrs: Attrs::BOLD, ..Style::default() }
}

/// Lays the bar over this row. A cursor in that row is hidden.
pub(crate) fn bar(screen: &mut Screen, row: u16, text: &str) {
    screen.fill_row(row, bar_style());
    screen.put(row, 0, text, bar_style());
    if screen.cursor().row == row {
        screen.modes_mut().cursor_visible = false;
    }
}

/// Lays the lines of a panel over the lower right corner. A cursor below it is hidden.
pub(crate) fn panel(screen: &mut Screen, lines: &[String]) {
    let Size { rows, cols, .. } = screen.size();
    let top = rows.saturating_sub(lines.len() as u16);
    let left = cols.saturating_sub(PANEL_COLS);
    for (row, line) in (top..rows).zip(lines) {
        if screen.row(row).size() != LineSize::Single {
            screen.fill_row(row, Style::PLAIN);
        }
        screen.put(row, left, line, bar_style());
    }
    let cursor = screen.cursor();
    if cursor.row >= top && cursor.col >= left {
        screen.modes_mut().cursor_visible = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smaller_window_follows_the_cursor() {
        for (from, at, len, all, expected) in [
            (0, 0, 24, 24, 0),
            (0, 30, 24, 24, 0),
            (0, 23, 24, 50, 0),
            (0, 24, 24, 50, 1),
            (10, 12, 24, 50, 10),
            (10, 9, 24, 50, 9),
            (10, 49, 24, 50, 26),
            (10, 5, 60, 50, 0),
        ] {
            assert_eq!(follow(from, at, len, all), expected, "{from} {at} {len} {all}");
        }
        let mut terminal = rove_term::Terminal::new(Size::clamped(4, 10), Dialect::ROVE);
        terminal.advance("one\r\ntwo\r\n\u{65e5}\u{672c}\u{8a9e}xy\x1b[3;8H".as_bytes());
        let (mut corner, mut screen) = (Corner::default(), terminal.into_screen());
        corner.cut(&mut screen, Size::clamped(2, 5));
        assert_eq!(screen.text(), ["", " \u{8a9e}xy"].map(str::to_owned));
        assert_eq!((screen.cursor().row, screen.cursor().col), (1, 4));
    }

    /// The repaint opens the bracket once more and closes it once.
    #[test]
    fn lines_are_given_back_in_one_paint() {
        for (term, held) in [("xterm-256color", true), ("vt100", false)] {
            let tty = Dialect::tty(term, "");
            let mut out = Vec::new();
            TtyScreen::Main.give_back_lines(0, &tty, &mut out);
            assert_eq!(out, b"");
            TtyScreen::Main.give_back_lines(3, &tty, &mut out);
            assert_eq!(out.starts_with(b"\x1b[?2026h"), held);
            rove_term::repaint(&Screen::new(Size::DEFAULT), &tty, &mut out);
            assert_eq!(out.ends_with(b"\x1b[?2026l"), held);
        }
    }
}
