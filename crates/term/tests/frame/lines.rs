//! The law of lines: `feed` brings the lines of a program's history to a reader's history in order, each once. Each has
//! the text, renditions and links that this reader shows.

use rove_term::screen::Buffer;
use rove_term::{
    Cell, Dialect, History, LineEdge, LineSize, Pool, Row, Size, Style, Terminal, Width, feed,
    project, same, write_line,
};

use crate::grammar;
use crate::laws::{difference, reader as reader_of};
use crate::streams::{Random, output, page, seeds};

/// The text, width, style and link of a cell, to be compared with cells of other pools.
type Seen = (String, Width, Style, Option<String>);

fn seen(cell: Cell, pool: &Pool) -> Seen {
    let mut text = String::new();
    pool.push_text(cell, &mut text);
    let link = pool.link(cell.link()).map(|link| format!("{link:?}"));
    (text, cell.width(), pool.style(cell.style()), link)
}

/// The first cells of a row, as many as are shown, up to the last one that is not blank.
fn row_seen(row: &Row, pool: &Pool, shown: usize) -> Vec<Seen> {
    let mut cells: Vec<Seen> = row.cells()[..shown].iter().map(|cell| seen(*cell, pool)).collect();
    let blank = seen(Cell::BLANK, pool);
    let used = cells.iter().rposition(|cell| *cell != blank).map_or(0, |last| last + 1);
    cells.truncate(used);
    cells
}

/// A line of a program's history as a reader shall show it.
struct Line {
    seen: Vec<Seen>,
    /// How many columns the program shows of it. A double line has half as many.
    shown: usize,
    goes_on: bool,
}

/// Reads a line of a history: by a screen on which it is printed, which is projected.
fn read(history: &History, position: u64, cols: u16, dialect: &Dialect) -> Line {
    let mut pool = Pool::new();
    let row = history.row_at(position, cols, &mut pool).expect("a line that is fed is kept");
    let mut octets = Vec::new();
    write_line(&row, LineEdge::Hard, &pool, &Dialect::ROVE, &mut octets);
    let mut printed = Terminal::new(Size::clamped(2, cols), Dialect::ROVE);
    printed.advance(&octets);
    let screen = project(printed.screen(), dialect);
    let shown = match row.size() {
        LineSize::Single => row.cells().len(),
        _ => (row.cells().len() / 2).max(1),
    };
    Line { seen: row_seen(screen.row(0), screen.pool(), shown), shown, goes_on: row.is_wrapped() }
}

#[test]
fn lines_are_fed_as_they_left() {
    let mut fed_lines = 0;
    let mut goes_on = 0;
    let seeds = seeds(400);
    let least = seeds.clone().count();
    for seed in seeds {
        let mut random = Random::new(seed ^ 0x11e5);
        let size = Size::clamped(1 + random.below(6) as i64, 2 + random.below(40) as i64);
        let (rows, cols) = (usize::from(size.rows), usize::from(size.cols));
        let steps: Vec<Vec<u8>> = (0..8)
            .map(|_| {
                let mut octets = match random.below(2) {
                    0 => output(&mut random, 12, rows, cols),
                    _ => page(&mut random, rows, cols),
                };
                octets.extend(b"\r\n".repeat(random.below(2 * rows)));
                octets
            })
            .collect();
        for (name, dialect) in [
            ("xterm-256color", grammar::tty("xterm-256color", "")),
            ("kitty", grammar::tty("xterm-kitty", "truecolor")),
            ("screen", grammar::tty("screen", "")),
            ("vt100", grammar::tty("vt100", "")),
        ] {
            let mut program = Terminal::new(size, Dialect::ROVE);
            let mut shown = program.screen().clone();
            let mut reader = reader_of(&shown, &dialect);
            let mut out = Vec::new();
            let mut wanted: Vec<Line> = Vec::new();
            let mut fed = 0;
            for step in &steps {
                program.advance(step);
                let (history, new) = (program.history(), program.screen().clone());
                fed = fed.max(history.first());
                let both = [&shown, &new].iter().all(|screen| screen.buffer() == Buffer::Primary);
                let lines = if both { fed..new.depth() } else { fed..fed };
                fed = lines.end;
                let read = |position| read(history, position, size.cols, &dialect);
                wanted.extend(lines.clone().map(read));
                out.clear();
                feed(&shown, history, lines, &new, &dialect, &mut out);
                reader.advance(&out);
                assert!(
                    same(reader.screen(), &new, &dialect),
                    "SEED={seed} {name}\n{}",
                    difference(reader.screen(), &project(&new, &dialect))
                );
                shown = new;
            }
            let history = reader.history();
            assert_eq!(history.len(), wanted.len(), "SEED={seed} {name}");
            for (index, line) in wanted.iter().enumerate() {
                let mut pool = Pool::new();
                let row = history.row(index, size.cols, &mut pool).unwrap();
                let found = row_seen(&row, &pool, line.shown);
                assert_eq!(found, line.seen, "SEED={seed} {name}: line {index}");
                // Not each line that goes on can be marked so, but no other is.
                let is_marked = row.is_wrapped();
                assert!(line.goes_on || !is_marked, "SEED={seed} {name}: line {index} goes on");
                goes_on += usize::from(is_marked);
            }
            fed_lines += wanted.len();
        }
    }
    let is_enough = fed_lines >= 25 * least && goes_on >= least / 2;
    assert!(is_enough, "{fed_lines} lines, {goes_on} of them go on");
}
