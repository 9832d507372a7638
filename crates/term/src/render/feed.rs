//! Brings lines into the history of a terminal, in order, and a picture after them onto its screen.
//!
//! Terminals agree on one way: a line feed on the last row of the whole screen sends row 0 to the history. So the lines
//! are brought to the top of the screen, where they mostly stand already, and are fed from there; all else changes in
//! place. Rows of screens that come in between are drawn as those of any other.

use alloc::vec::Vec;
use core::ops::Range;

use triomphe::Arc;

use crate::dialect::Dialect;
use crate::render::extras;
use crate::render::frame::{Bracket, Frame, Scrolling, erase_in_place};
use crate::render::pen::Pen;
use crate::render::project::same_grids;
use crate::screen::Screen;
use crate::screen::cell::Cell;
use crate::screen::grid::{Fill, Grid, take_line};
use crate::screen::history::History;
use crate::screen::reflow::rewrap;
use crate::screen::row::{Ending, LineSize, Row};

/// Where lines that are fed are numbered from: no emulator comes so far.
const NEXT_LINE: u64 = 1 << 63;

/// Appends what makes a terminal that shows `old` show `new`, with these lines of a history between what it has in its
/// own history and its screen. Nothing else goes to its history.
///
/// There are lines only where both are of one size and show their primary screens.
pub fn feed(
    old: &Screen,
    history: &History,
    lines: Range<u64>,
    new: &Screen,
    dialect: &Dialect,
    out: &mut Vec<u8>,
) {
    let bracket = Bracket::open(new, dialect, out);
    extras::write_events(old, new, dialect, out);
    extras::write_state(Some(old), new, dialect, out);
    let mut shown = old.clone();
    // Numbers that no line of either screen has.
    shown.state.next_line = NEXT_LINE;
    let rows = rows_of(history, lines, &mut shown);
    let mut rows = rows.as_slice();
    while !rows.is_empty() {
        let height = shown.grid.rows();
        // The last row of a screen that is full does not tell yet whether its line goes on.
        let count = if rows.len() < height { rows.len() } else { (height - 1).max(1) };
        let mut with_lines = over(&shown, &rows[..rows.len().min(height)]);
        if shown.grid.iter().any(|row| row.is_wrapped())
            && !same_grids(&shown.grid, &with_lines.grid, &shown, &with_lines, dialect)
        {
            // Some terminals take the mark that a line goes on away with the whole row alone.
            erase(&mut shown, &with_lines, dialect, out);
            with_lines = over(&shown, &rows[..rows.len().min(height)]);
        }
        draw(&shown, &with_lines, dialect, out);
        shown = with_lines;
        leave_at_top(&mut shown, count, out);
        rows = &rows[count..];
    }
    let frame = Frame::new(&shown, new, Scrolling::InPlace, dialect, out);
    if shown.size() == new.size() {
        frame.update();
    } else {
        frame.redraw(0);
    }
    bracket.close(out);
}

/// These lines as rows of this screen.
fn rows_of(history: &History, lines: Range<u64>, screen: &mut Screen) -> Vec<Arc<Row>> {
    let Screen { state, pool, .. } = screen;
    let row = |position| {
        let mut row = history.row_at(position, state.size.cols, pool)?;
        row.id = take_line(&mut state.next_line);
        Some(Arc::new(row))
    };
    let rows: Vec<Arc<Row>> = lines.filter_map(row).collect();
    rewrap(rows, state.size.cols.into(), &mut state.next_line)
}

/// The screen with these rows at its top.
fn over(screen: &Screen, rows: &[Arc<Row>]) -> Screen {
    let mut with_rows = screen.clone();
    let below = screen.grid.iter().skip(rows.len());
    let all = rows.iter().chain(below).cloned().collect();
    with_rows.grid = Arc::new(Grid::from_rows(all, screen.grid.cols()));
    with_rows.state.double_lines |= rows.iter().any(|row| row.size() != LineSize::Single);
    with_rows
}

/// Makes the screen blank, in place, for another.
fn erase(screen: &mut Screen, new: &Screen, dialect: &Dialect, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\x1b[r\x1b[0m");
    erase_in_place(new, 0, dialect, out);
    let (rows, cols) = (screen.grid.rows(), screen.grid.cols());
    screen.grid = Arc::new(Grid::blank(rows, cols, &mut screen.state.next_line));
    screen.set_cursor(0, 0);
}

/// Draws one over the other, and leaves the cursor where that ends.
fn draw(old: &Screen, new: &Screen, dialect: &Dialect, out: &mut Vec<u8>) {
    let mut frame = Frame::new(old, new, Scrolling::InPlace, dialect, out);
    frame.grid(Some(&old.grid), Some(&new.grid));
    frame.painter.set_pen(Pen::PLAIN);
}

/// Appends what sends the rows at the top of a terminal to its history, between two frames: as many rows, however many
/// it has by now.
pub fn scroll_out(count: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\x1b[9999;1H");
    out.extend(core::iter::repeat_n(b'\n', count));
}

/// Feeds the top rows to the history.
fn leave_at_top(screen: &mut Screen, count: usize, out: &mut Vec<u8>) {
    scroll_out(count, out);
    let rows = screen.grid.rows();
    let grid = Arc::make_mut(&mut screen.grid);
    if grid.row(rows - 1).is_wrapped() {
        // The last row has no mark on the terminal that its line goes on.
        grid.row_mut(rows - 1).ending = Ending::Hard;
    }
    let mut fill = Fill { blank: Cell::BLANK, next_line: &mut screen.state.next_line };
    grid.scroll_up(0, rows, count, &mut fill);
    screen.set_cursor(rows as u16 - 1, 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Ability;
    use crate::screen::Size;
    use crate::screen::pool::Pool;
    use crate::terminal::Terminal;

    fn texts(terminal: &Terminal) -> Vec<String> {
        let history = terminal.history();
        let lines = (0..history.len()).filter_map(|line| history.text(line));
        let lines = lines.map(|line| line.trim_end().to_owned());
        lines.chain(terminal.screen().text()).collect()
    }

    /// Which lines of the history go on.
    fn wraps(terminal: &Terminal) -> Vec<bool> {
        let history = terminal.history();
        let row = |line| history.row(line, 0, &mut Pool::new());
        (0..history.len()).filter_map(row).map(|row| row.is_wrapped()).collect()
    }

    /// A terminal that is shown what a program has drawn now and then has all of its lines in the end.
    fn check(size: Size, program: &[&str]) {
        for dialect in [Dialect::tty("xterm-256color", ""), Dialect::tty("vt100", "")] {
            let mut server = Terminal::new(size, Dialect::ROVE);
            let mut tty = Terminal::new(size, Dialect::ROVE);
            let mut shown = server.screen().clone();
            let mut out = Vec::new();
            crate::repaint(&shown, &dialect, &mut out);
            tty.advance(&out);
            let mut fed = 0;
            for octets in program {
                server.advance(octets.as_bytes());
                let new = server.screen().clone();
                out.clear();
                feed(&shown, server.history(), fed..new.depth(), &new, &dialect, &mut out);
                fed = new.depth();
                tty.advance(&out);
                assert_eq!(texts(&tty), texts(&server), "{octets:?} {out:?}");
                if dialect.can(Ability::SoftWrap) && size.rows > 1 {
                    assert_eq!(wraps(&tty), wraps(&server), "{octets:?}");
                }
                let (at, want) = (tty.screen().cursor(), new.cursor());
                assert_eq!((at.row, at.col), (want.row, want.col), "{octets:?}");
                shown = new;
            }
        }
    }

    fn lines(range: core::ops::Range<u32>) -> String {
        range.map(|n| format!("line {n}\r\n")).collect()
    }

    #[test]
    fn a_terminal_has_all_lines() {
        let size = Size::clamped(5, 12);
        check(size, &["one\r\ntwo\r\n", "three\r\nfour\r\nfive\r\n", "six"]);
        check(size, &[&lines(0..100), "x\r\n", &lines(0..4), &lines(0..5), &lines(0..6)]);
        check(size, &["a line that is wrapped more than once and goes on", &lines(0..20)]);
        check(
            size,
            &["1\r\n2\r\n3\r\n4\r\n5\x1b[1;3r\x1b[3;1H\n\n\nfoot\x1b[r", "\x1b[H\x1b[J", "x"],
        );
        check(size, &[&lines(0..3), "\x1b[2J\x1b[H", &lines(5..20), "\x1b[H\x1b[J$ "]);
        check(
            size,
            &["\u{4e16}\u{754c}\u{4e16}\u{754c}\u{4e16}\u{754c}\u{4e16}\r\n", &lines(0..9)],
        );
        let long = "0123456789-0123456789-0123456789\r\n".repeat(20);
        check(size, &["x\r\n", &long, &long[..40], &long[40..90], "y\r\n"]);
        check(Size::clamped(1, 12), &["one\r\n", &lines(0..3), "a line that is wrapped"]);
    }

    /// A terminal copies blanks that were printed, and none that were erased.
    #[test]
    fn no_blanks_are_printed_behind_a_line() {
        let size = Size::clamped(5, 12);
        let dialect = Dialect::tty("xterm-256color", "");
        let mut server = Terminal::new(size, Dialect::ROVE);
        server.advance(b"1000\r\n1001\r\n1002\r\nfoo  bar\r\nfoo  bar");
        let shown = server.screen().clone();
        server.advance(b"\x1b[H\x1b[J7\r\n88\r\n999\r\nfoo\r\nfox");
        let mut out = Vec::new();
        feed(&shown, server.history(), 0..0, server.screen(), &dialect, &mut out);
        let out = String::from_utf8_lossy(&out);
        let erased = "\x1b[1;1H7\x1b[K\r\n88\x1b[K\r\n999\x1b[K\n\x1b[K\x08\nx\x1b[K";
        assert_eq!(out, erased);
    }

    /// In tmux a line loses the mark that it goes on if the one below it is erased whole.
    #[test]
    fn the_line_below_one_that_goes_on_is_never_erased() {
        let size = Size::clamped(5, 12);
        let dialect = Dialect::tty("xterm-256color", "");
        // The second has a row that begins with a blank, at the top once the first part of its line has left.
        for (first, cell) in [
            ("a line that is wrapped and goes on, for five rows and more", "\x1b[H \x1b[J"),
            (
                "123456789abc 23456789abc 23456789abc 23456789abc 23456789abc",
                "\x1b[H\x1b[X\x1b[C\x1b[J",
            ),
        ] {
            let mut server = Terminal::new(size, Dialect::ROVE);
            let mut shown = server.screen().clone();
            let mut fed = 0;
            for octets in [first, "\r\nnext"] {
                server.advance(octets.as_bytes());
                let new = server.screen().clone();
                assert!(new.row(0).is_wrapped());
                let mut out = Vec::new();
                feed(&shown, server.history(), fed..new.depth(), &new, &dialect, &mut out);
                let out = String::from_utf8_lossy(&out);
                assert_eq!(out.contains(cell), fed > 0, "{out:?}");
                assert!(!out.contains("\x1b[K"), "{out:?}");
                (shown, fed) = (new, server.screen().depth());
            }
        }
    }

    /// What changes in place is no line of the terminal's history.
    #[test]
    fn nothing_else_goes_to_the_history() {
        let size = Size::clamped(5, 12);
        let dialect = Dialect::tty("xterm-256color", "");
        let mut server = Terminal::new(size, Dialect::ROVE);
        server.advance(lines(0..4).as_bytes());
        let shown = server.screen().clone();
        let mut tty = Terminal::new(size, Dialect::ROVE);
        let mut out = Vec::new();
        crate::repaint(&shown, &dialect, &mut out);
        server.advance(lines(4..30).as_bytes());
        feed(&shown, server.history(), 0..0, server.screen(), &dialect, &mut out);
        tty.advance(&out);
        assert_eq!(tty.screen().text(), server.screen().text());
        assert!(tty.history().is_empty());
    }
}
