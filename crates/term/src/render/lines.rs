//! Writes a row as text, as a program prints a line: the form in which lines of a history travel.

use alloc::vec::Vec;

use triomphe::Arc;

use crate::dialect::{Ability, Dialect};
use crate::render::marks::marks;
use crate::render::motion::Cursor;
use crate::render::paint::{Lines, Painter};
use crate::render::pen::Pen;
use crate::render::view::{CellSite, Text};
use crate::screen::pool::Pool;
use crate::screen::prompt_marks::Marks;
use crate::screen::row::{LineSize, Row};
use crate::screen::style::Color;

/// How a row begins or ends.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum LineEdge {
    /// There the line begins, or ends.
    #[default]
    Hard,
    /// The line comes from the row above, or goes on in the row below.
    Wrapped,
}

/// Appends what prints a row on a terminal as wide as the row: from the plain pen to the plain pen. It ends with CR LF,
/// or, if its line goes on, beyond the last column, so that the next row's first character wraps. Returns how it ends.
///
/// `above` is how the row above ended.
pub fn write_line(
    row: &Row,
    above: LineEdge,
    pool: &Pool,
    dialect: &Dialect,
    out: &mut Vec<u8>,
) -> LineEdge {
    let mut painter = Painter::new(pool, pool, dialect, out);
    painter.cursor = Cursor::HOME;
    let marked = !marks(row, dialect).is_none();
    if above == LineEdge::Wrapped {
        let first = painter.new.look(row.cells(), 0);
        let is_plain = first.is_some_and(|look| {
            matches!(look.text, Text::Char(c) if c.is_ascii()) && look.style.bg == Color::DEFAULT
        });
        if is_plain && !marked {
            painter.begin_wrapped();
        } else {
            // A blank wraps instead: marks belong to the row below, what is no ASCII could join the row above, and the
            // new row takes the background of what wraps.
            painter.out.extend_from_slice(b" \r");
        }
    } else if row.size() != LineSize::Single && dialect.can(Ability::LineSize) {
        painter.lines = Lines::Mixed;
        painter.set_line_sizes(&mut [None], &[&Arc::new(row.clone())]);
    }
    if marked {
        painter.set_marks(&[Marks::NONE], &[&Arc::new(row.clone())]);
    }
    painter.row(0, (None, CellSite::Inner), (row, CellSite::Inner));
    let ends = if painter.is_wrapping() { LineEdge::Wrapped } else { LineEdge::Hard };
    painter.set_pen(Pen::PLAIN);
    if ends == LineEdge::Hard {
        out.extend_from_slice(b"\r\n");
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::Size;
    use crate::screen::history::History;
    use crate::terminal::Terminal;

    const COLS: u16 = 12;

    /// The history of a terminal of one row that is sent these lines.
    fn printed(octets: &[u8]) -> History {
        let mut terminal = Terminal::new(Size { rows: 1, cols: COLS }, Dialect::ROVE);
        terminal.advance(octets);
        terminal.history().clone()
    }

    fn written(history: &History) -> Vec<u8> {
        let (mut out, mut pool, mut edge) = (Vec::new(), Pool::new(), LineEdge::Hard);
        for position in history.first()..history.end() {
            let row = history.row_at(position, COLS, &mut pool).unwrap();
            edge = write_line(&row, edge, &pool, &Dialect::ROVE, &mut out);
        }
        out
    }

    #[test]
    fn what_is_printed_again_is_the_same() {
        for (input, want) in [
            ("one\r\n\r\n  two\r\n", "one\r\n\r\n  two\r\n"),
            ("twelve chars and more\r\n", "twelve chars and more\r\n"),
            ("a\x1b[12G  indented\r\n", ""),
            ("\x1b[1;31mred\x1b[m and\r\n", "\x1b[1;31mred\x1b[m and\r\n"),
            ("\x1b[44m\x1b[K\x1b[m\r\nx\r\n", "\x1b[44m\x1b[K\x1b[m\r\nx\r\n"),
            ("\u{4e16}\u{754c} e\u{301}\r\n", "\u{4e16}\u{754c} e\u{301}\r\n"),
            ("0123456789a\u{4e16}x\r\n", ""),
            ("0123456789e\u{301}a\u{1f1e9}\u{1f1ea}\u{1f1e9}\u{1f1ea}\r\n", ""),
            ("\x1b[44m0123456789abcdef\x1b[m\x1b[K\r\n", ""),
            ("\x1b]8;id=a;http://x/\x07link\x1b]8;;\x07 text\r\n", ""),
            ("\x1b#6double\r\nsingle\r\n", ""),
            ("\x1b]133;A\x07$ \x1b]133;B\x07ls\r\n\x1b]133;C\x07out\r\n\x1b]133;D;7\x07$\r\n", ""),
        ] {
            let first = printed(input.as_bytes());
            let octets = written(&first);
            if !want.is_empty() {
                assert_eq!(String::from_utf8_lossy(&octets), want, "{input:?}");
            }
            let again = printed(&octets);
            assert_eq!(again.len(), first.len(), "{input:?}");
            let mut pool = Pool::new();
            for position in 0..first.end() {
                let rows = [&first, &again]
                    .map(|history| history.row_at(position, COLS, &mut pool).unwrap());
                let [a, b] = &rows;
                assert_eq!(a.cells(), b.cells(), "{input:?}");
                assert_eq!((a.is_wrapped(), a.size()), (b.is_wrapped(), b.size()), "{input:?}");
                assert_eq!(a.marks(), b.marks(), "{input:?}");
            }
        }
    }
}
