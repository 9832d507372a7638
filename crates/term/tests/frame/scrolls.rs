//! Scrolls cost what a line costs, wherever on the screen they happen (mosh-protocol.md §11,
//! weakness 8).

use rove_term::{Dialect, Screen, Size, Terminal, frame, project, same};

/// Octets that a line scrolled under a header may cost a stock peer on 80x24; stock sends 1,681.
const BOUND: usize = 150;

fn line(number: usize) -> String {
    format!("{number:04} the quick brown fox jumps over the lazy dog, again and again")
}

/// A screen full of lines, the last row without a line end.
fn full_screen() -> Terminal {
    let mut terminal = Terminal::new(Size::DEFAULT, Dialect::ROVE);
    let lines: Vec<_> = (0..24).map(line).collect();
    terminal.advance(lines.join("\r\n").as_bytes());
    terminal
}

/// The size of the frame that `output` takes on a full screen after `setup`.
fn cost(setup: &str, output: &str, dialect: &Dialect) -> usize {
    let mut terminal = full_screen();
    terminal.advance(setup.as_bytes());
    let old = terminal.screen().clone();
    terminal.advance(output.as_bytes());
    let mut bytes = Vec::new();
    frame(&old, terminal.screen(), dialect, &mut bytes);
    check_reader(&old, terminal.screen(), &bytes, dialect);
    bytes.len()
}

fn check_reader(old: &Screen, new: &Screen, bytes: &[u8], dialect: &Dialect) {
    let mut reader = Terminal::resume(project(old, dialect), *dialect);
    reader.advance(bytes);
    assert!(same(reader.screen(), new, dialect), "{:?}", String::from_utf8_lossy(bytes));
}

#[test]
fn one_line_scrolls_for_the_price_of_a_line() {
    let new = line(99);
    let scrolls = [
        ("whole screen", String::new(), format!("\r\n{new}")),
        ("under a header", "\x1b[2;24r\x1b[24;1H".into(), format!("\r\n{new}")),
        ("above a status line", "\x1b[1;23r\x1b[23;1H".into(), format!("\r\n{new}")),
        ("in the upper half of a split", "\x1b[1;11r\x1b[11;1H".into(), format!("\r\n{new}")),
        ("in the lower half of a split", "\x1b[13;23r\x1b[23;1H".into(), format!("\r\n{new}")),
        ("backwards", "\x1b[1;1H".into(), format!("\x1bM{new}")),
        ("backwards in a split", "\x1b[2;11r\x1b[2;1H".into(), format!("\x1bM{new}")),
        ("a line inserted", "\x1b[5;1H".into(), format!("\x1b[L{new}")),
        ("a line deleted", "\x1b[5;1H".into(), "\x1b[M".into()),
    ];
    for (name, setup, output) in &scrolls {
        for dialect in [Dialect::MOSH, Dialect::ROVE, Dialect::tty("xterm-256color", "")] {
            let cost = cost(setup, output, &dialect);
            assert!(cost < BOUND, "{name}: {cost} octets for {dialect:?}");
        }
    }
}

#[test]
fn several_regions_scroll_in_one_frame() {
    let setup = "\x1b[12;1H-----";
    let output =
        format!("\x1b[1;11r\x1b[11;1H\r\n{}\x1b[13;23r\x1b[13;1H\x1bM{}\x1b[r", line(98), line(99));
    for dialect in [Dialect::MOSH, Dialect::ROVE] {
        let cost = cost(setup, &output, &dialect);
        assert!(cost < 2 * BOUND, "{cost} octets for {dialect:?}");
    }
}

/// mosh issue 1400: blank rows that moved are no scroll.
#[test]
fn blank_rows_are_not_moved() {
    let mut terminal = Terminal::new(Size::DEFAULT, Dialect::ROVE);
    terminal.advance(b"\x1b[1;1Htop\x1b[24;1Hbottom");
    let old = terminal.screen().clone();
    terminal.advance(b"\x1b[2;23r\x1b[23;1H\n\n\n\x1b[r\x1b[24;7H");
    let mut bytes = Vec::new();
    frame(&old, terminal.screen(), &Dialect::MOSH, &mut bytes);
    assert_eq!(String::from_utf8_lossy(&bytes), "");
}

/// Windows side by side, as vim and tmux draw them: each line of the left one is written anew.
#[test]
fn a_window_beside_another_scrolls() {
    let draw = |first: usize| -> String {
        let rows = (1..=22).map(|row| {
            let (left, right) = (line(first + row), line(row + 500));
            format!("\x1b[{row};1H{}|{}", &left[..39], &right[..40])
        });
        rows.collect()
    };
    for (from, to) in [(10, 11), (11, 10), (10, 13)] {
        let (setup, output) = (format!("\x1b[2J{}", draw(from)), draw(to));
        let cost = cost(&setup, &output, &Dialect::ROVE);
        assert!(cost < BOUND + 40 * from.abs_diff(to), "{from} to {to}: {cost} octets");
    }
}

/// A column of digits that counts up: it moved by a row, but no terminal has a region of one column.
#[test]
fn one_column_does_not_scroll_by_itself() {
    for width in [1_usize, 2, 3] {
        let columns = |first: usize| -> String {
            let digits = |row: usize| (0..width).map(move |n| (row + first + n) % 10);
            let line = |row| digits(row).map(|digit| digit.to_string()).collect::<String>();
            (1..=60).map(|row| format!("\x1b[{row}H{row}\x1b[40G{}", line(row))).collect()
        };
        let mut terminal = Terminal::new(Size::clamped(60, 100), Dialect::ROVE);
        terminal.advance(columns(0).as_bytes());
        let old = terminal.screen().clone();
        terminal.advance(columns(1).as_bytes());
        for dialect in [Dialect::MOSH, Dialect::ROVE, Dialect::tty("xterm-256color", "")] {
            let mut bytes = Vec::new();
            frame(&old, terminal.screen(), &dialect, &mut bytes);
            check_reader(&old, terminal.screen(), &bytes, &dialect);
        }
    }
}
