//! Resizing: lines keep their text, the cursor its character, and the screen is what a modern terminal shows.
//!
//! `SEED=17 cargo test -p rove-term --test resize` runs just that seed; `SEEDS=100000` runs that many.

#[path = "frame/streams.rs"]
#[allow(dead_code, reason = "of the streams only the generator is used here")]
mod streams;

use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::Flags;
use alacritty_terminal::term::{Config, Term};
use alacritty_terminal::vte::ansi::Processor;
use rove_term::{Dialect, Size, Terminal};
use streams::{Random, seeds};

/// Text without blanks, so that the column left free where a wide character had no room can be told from text.
fn line(random: &mut Random) -> String {
    let words = ["a", "bcd", "0123456789", "\u{e9}t\u{e9}", "\u{4e16}", "\u{754c}\u{4e16}"];
    (0..random.below(9)).map(|_| random.pick(&words)).collect()
}

/// Lines one after the other, the cursor behind the last.
fn text(random: &mut Random) -> String {
    let lines: Vec<String> = (0..1 + random.below(12)).map(|_| line(random)).collect();
    lines.join("\r\n")
}

/// At least two columns: a wide character needs them.
fn size(random: &mut Random) -> Size {
    Size::clamped(1 + random.below(9) as i64, 2 + random.below(30) as i64)
}

fn higher(size: Size) -> Size {
    Size::clamped(size.rows + 1, size.cols)
}

/// The lines above the screen and on it, unwrapped; and the line and how far into it the cursor is.
fn unwrapped(terminal: &Terminal) -> (Vec<String>, (usize, usize)) {
    let screen = terminal.screen();
    let mut pool = screen.pool().clone();
    let history = terminal.history();
    let mut lines = vec![String::new()];
    let mut goes_on = true;
    let begin = |goes_on: &mut bool, wrapped: bool, lines: &mut Vec<String>| {
        if !std::mem::replace(goes_on, wrapped) {
            lines.push(String::new());
        }
    };
    for index in 0..history.len() {
        let row = history.row(index, 0, &mut pool).expect("it has so many lines");
        begin(&mut goes_on, row.is_wrapped(), &mut lines);
        let last = lines.last_mut().expect("there is a line");
        row.cells().iter().for_each(|cell| pool.push_text(*cell, last));
    }
    let mut at = (0, 0);
    for (index, row) in screen.rows().enumerate() {
        begin(&mut goes_on, row.is_wrapped(), &mut lines);
        let number = lines.len() - 1;
        let cursor = screen.cursor();
        for (col, cell) in row.cells().iter().enumerate() {
            if (index, col) == (cursor.row.into(), cursor.col.into()) {
                at = (number, lines[number].replace(' ', "").chars().count());
            }
            screen.pool().push_text(*cell, &mut lines[number]);
            if cursor.pending_wrap && index == usize::from(cursor.row) {
                at = (number, lines[number].replace(' ', "").chars().count());
            }
        }
    }
    let mut lines: Vec<String> = lines.iter().map(|line| line.replace(' ', "")).collect();
    lines.truncate(at.0 + 1);
    (lines, at)
}

#[test]
fn lines_keep_their_text_and_the_cursor_its_place() {
    for seed in seeds(2000) {
        let mut random = Random::new(seed);
        let mut terminal = Terminal::new(size(&mut random), Dialect::ROVE);
        terminal.advance(text(&mut random).as_bytes());
        for _ in 0..8 {
            let before = unwrapped(&terminal);
            let size = size(&mut random);
            terminal.resize(size);
            let context = || format!("SEED={seed} {size:?} {:#?}", terminal.screen().text());
            assert_eq!(terminal.screen().fault(), None, "{}", context());
            assert_eq!(unwrapped(&terminal), before, "{}", context());
            let more = line(&mut random);
            terminal.advance(more.as_bytes());
            if random.chance(30) {
                terminal.advance(b"\r\n");
            }
        }
    }
}

/// For any output of programs and any position of the cursor.
#[test]
fn no_screen_is_malformed() {
    for seed in seeds(1500) {
        let mut random = Random::new(seed ^ 0x512e);
        let mut terminal = Terminal::new(size(&mut random), Dialect::ROVE);
        for _ in 0..8 {
            let Size { rows, cols, .. } = terminal.screen().size();
            let steps = random.below(30);
            terminal.advance(&streams::output(&mut random, steps, rows.into(), cols.into()));
            let held = (terminal.screen().clone(), terminal.screen().text());
            let size = Size::clamped(1 + random.below(9) as i64, 1 + random.below(30) as i64);
            terminal.resize(size);
            assert_eq!(terminal.screen().fault(), None, "SEED={seed}");
            assert_eq!(held.0.text(), held.1, "SEED={seed}: a snapshot changed");
        }
    }
}

struct Window(Size);

impl Dimensions for Window {
    fn total_lines(&self) -> usize {
        self.screen_lines()
    }

    fn screen_lines(&self) -> usize {
        self.0.rows.into()
    }

    fn columns(&self) -> usize {
        self.0.cols.into()
    }
}

/// The rows as alacritty has them.
fn theirs(term: &Term<VoidListener>) -> Vec<String> {
    let grid = term.grid();
    let rows = (0..grid.screen_lines() as i32).map(|row| {
        let cells = (0..grid.columns()).map(|col| &grid[Line(row)][Column(col)]);
        let shown = cells.filter(|cell| !cell.flags.contains(Flags::WIDE_CHAR_SPACER));
        shown.map(|cell| cell.c).collect::<String>().trim_end().to_owned()
    });
    rows.collect()
}

/// Text with the cursor behind it, as a shell leaves it; then the window becomes higher, lower, wider and
/// narrower. Wider and narrower only while the text fills it: where blank rows are left below it, alacritty files
/// lines that would have had room; and never one row high, where it loses the last line.
#[test]
fn the_screen_is_what_alacritty_shows() {
    for seed in seeds(2000) {
        let mut random = Random::new(seed ^ 0xa1ac);
        let mut now = higher(size(&mut random));
        let mut terminal = Terminal::new(now, Dialect::ROVE);
        let mut term = Term::new(Config::default(), &Window(now), VoidListener);
        let mut parser: Processor = Processor::new();
        let text = text(&mut random);
        terminal.advance(text.as_bytes());
        parser.advance(&mut term, text.as_bytes());
        for _ in 0..6 {
            let next = higher(size(&mut random));
            let full = |terminal: &Terminal| {
                let screen = terminal.screen();
                screen.cursor().row + 1 == screen.size().rows
            };
            let was_full = full(&terminal);
            let wider = random.chance(50);
            now = match wider {
                true => Size::clamped(now.rows, next.cols),
                false => Size::clamped(next.rows, now.cols),
            };
            terminal.resize(now);
            if wider && !(was_full && full(&terminal)) {
                break;
            }
            term.resize(Window(now));
            assert_eq!(terminal.screen().text(), theirs(&term), "SEED={seed} {now:?} {text:?}");
            if term.grid().cursor.point.line.0 != i32::from(terminal.screen().cursor().row) {
                // It loses its cursor where a wide character had no room; later it shows other rows for that.
                break;
            }
        }
    }
}

/// A part of a screen is a screen of its own: as large as asked for, and blank beyond the larger one.
#[test]
fn a_part_of_a_screen() {
    let mut terminal = Terminal::new(Size::clamped(4, 10), Dialect::ROVE);
    terminal.advance(b"0123456789\r\nabcdefghij\r\nABCDEFGHIJ\r\nlast\x1b[3;8H");
    let screen = terminal.screen();
    for (row, col, size, text, cursor) in [
        (1, 5, Size::clamped(2, 3), &["fgh", "FGH"][..], (1, 2)),
        (1, 5, Size::clamped(4, 10), &["fghij", "FGHIJ", "", ""], (1, 2)),
        (0, 0, Size::clamped(4, 10), &["0123456789", "abcdefghij", "ABCDEFGHIJ", "last"], (2, 7)),
        (3, 0, Size::clamped(2, 20), &["last", ""], (0, 7)),
        (9, 99, Size::clamped(1, 2), &[""], (0, 0)),
    ] {
        let part = screen.part(row, col, size);
        assert_eq!(part.size(), size);
        assert_eq!(part.text().iter().map(|row| row.trim_end()).collect::<Vec<_>>(), text);
        assert_eq!((part.cursor().row, part.cursor().col), cursor, "{row} {col}");
    }
}
