//! Measures the time of a snapshot and of a frame. `cargo run --release -p rove-term --example frame_bench`
//!
//! Each line: the operation, the number of samples, median and 99th percentile, octets of the frame.

// Measuring time is what a benchmark is for.
#![allow(clippy::disallowed_methods)]

use std::hint::black_box;
use std::time::Instant;

use rove_term::{Dialect, Screen, Size, Terminal, frame, same};

/// Calls between two looks at the clock, which costs about 25 ns.
const BATCH: usize = 100;
const SAMPLES: usize = 2000;

fn main() {
    let size = Size::clamped(50, 200);
    let base = screen(size, "");
    println!("{} x {}, {SAMPLES} samples of {BATCH} calls each", size.rows, size.cols);
    println!("{:38} {:>8} {:>10} {:>10} {:>7}", "", "n", "median ns", "p99 ns", "octets");
    report("snapshot (Screen::clone)", 0, || {
        black_box(base.clone());
    });
    let mut writer = Terminal::resume(base.clone(), Dialect::ROVE);
    report("snapshot, then the first write", 0, || {
        black_box(writer.screen().clone());
        writer.advance(b"\x1b[5;5Hx");
    });
    let same_text = screen(size, "");
    report("same, equal rows of another program", 0, || {
        black_box(same(&base, &same_text, &Dialect::ROVE));
    });

    let row: String = (0..200).map(|col| char::from(b'A' + (col * 7 % 26) as u8)).collect();
    let colours: String = (0..200)
        .map(|col| format!("\x1b[3{}m{}", col / 4 % 8, (b'a' + (col % 26) as u8) as char))
        .collect();
    let page: String =
        (0..50).map(|line| format!("\x1b[{};1H{}", line + 1, &row[line..])).collect();
    for (name, output) in [
        ("nothing changed", ""),
        ("one cell", "\x1b[20;30H#"),
        ("a row of 200", &format!("\x1b[20;1H{row}")),
        ("a row of 200, a colour every 4", &format!("\x1b[20;1H{colours}")),
        ("scroll by one, new line of 60", &format!("\x1b[50;1H\n{}", &row[..60])),
        ("scroll by one under a header", &format!("\x1b[2;50r\x1b[50;1H\n{}\x1b[r", &row[..60])),
        ("scroll by twenty", &format!("\x1b[50;1H{}", "\n".repeat(20))),
        ("all 50 rows", &page),
    ] {
        let next = after(&base, output);
        for (dialect_name, dialect) in [("rove", Dialect::ROVE), ("mosh", Dialect::MOSH)] {
            let mut out = Vec::new();
            frame(&base, &next, &dialect, &mut out);
            let octets = out.len();
            report(&format!("{name} ({dialect_name})"), octets, || {
                out.clear();
                frame(black_box(&base), black_box(&next), &dialect, &mut out);
            });
        }
    }
    let mut out = Vec::new();
    let tty = Dialect::tty("xterm-256color", "truecolor");
    rove_term::repaint(&base, &tty, &mut out);
    let octets = out.len();
    report("full repaint (tty)", octets, || {
        out.clear();
        rove_term::repaint(black_box(&base), &tty, &mut out);
    });
}

/// A screen full of lines, some of them coloured.
fn screen(size: Size, more: &str) -> Screen {
    let mut terminal = Terminal::new(size, Dialect::ROVE);
    for line in 0..size.rows {
        let text = format!("\x1b[{};1H\x1b[3{}m{line:04}\x1b[m ", line + 1, line % 8);
        terminal.advance(text.as_bytes());
        terminal.advance("lorem ipsum dolor sit amet ".repeat(6).as_bytes());
    }
    terminal.advance(more.as_bytes());
    terminal.into_screen()
}

fn after(base: &Screen, output: &str) -> Screen {
    let mut terminal = Terminal::resume(base.clone(), Dialect::ROVE);
    terminal.advance(output.as_bytes());
    terminal.into_screen()
}

fn report(name: &str, octets: usize, mut call: impl FnMut()) {
    let mut nanos: Vec<f64> = (0..SAMPLES)
        .map(|_| {
            let start = Instant::now();
            (0..BATCH).for_each(|_| call());
            start.elapsed().as_nanos() as f64 / BATCH as f64
        })
        .collect();
    nanos.sort_by(f64::total_cmp);
    let at = |share: f64| nanos[((nanos.len() - 1) as f64 * share) as usize];
    println!("{name:38} {:>8} {:>10.0} {:>10.0} {octets:>7}", SAMPLES * BATCH, at(0.5), at(0.99));
}
