//! What hostile output costs in time, against the work it is counted as ([`Terminal::cells_touched`]):
//! `cargo run --release -p rove-term --example work_bench [NAME]`.
//!
//! Each line: the size, octets, cells counted, time, and time for each cell and each octet. The limits of diffs and
//! turns (rove-session's `work`) rest on this: what takes long is counted as many cells, and what is not counted is
//! no slower than its octets.
#![allow(clippy::disallowed_methods, reason = "a benchmark measures time")]

mod inputs;

use std::time::Instant;

use rove_term::{Dialect, Size, Terminal};

use inputs::Input;

/// Rows and columns: the largest screens, the narrowest, and the usual one.
const SIZES: [(i64, i64); 4] = [(200, 1000), (1000, 200), (1000, 1), (24, 80)];
/// A server reads pieces of this size.
const CHUNK: usize = 64 << 10;
/// What a line is marked for: nanoseconds a cell, and those an octet that nothing is said of below.
const CELL_NANOS_MAX: f64 = 10.0;
const OCTET_NANOS_MAX: f64 = 80.0;

fn main() {
    let only = std::env::args().nth(1);
    println!(
        "{:<26} {:>9} {:>8} {:>10} {:>8} {:>8} {:>9}",
        "", "size", "octets", "cells", "ms", "ns/cell", "ns/octet"
    );
    for (rows, cols) in SIZES {
        let size = Size::clamped(rows, cols);
        for input in inputs::all(size) {
            if only.as_deref().is_none_or(|only| input.name.contains(only)) {
                measure(size, &input);
            }
        }
    }
}

fn measure(size: Size, input: &Input) {
    let mut terminal = Terminal::new(size, Dialect::ROVE);
    terminal.advance(input.set_up.as_bytes());
    // Rows are shared with a snapshot, as they are at the beginning of a diff.
    let snapshot = terminal.screen().clone();
    let octets = input.octets.repeat(input.times);
    let before = terminal.cells_touched();
    let start = Instant::now();
    octets.as_bytes().chunks(CHUNK).for_each(|chunk| terminal.advance(chunk));
    let nanos = start.elapsed().as_nanos() as f64;
    drop(snapshot);
    let cells = terminal.cells_touched() - before;
    let (cell, octet) = (nanos / cells.max(1) as f64, nanos / octets.len() as f64);
    let slow = cell > CELL_NANOS_MAX && octet > OCTET_NANOS_MAX;
    println!(
        "{:<26} {:>9} {:>8} {cells:>10} {:>8.2} {cell:>8.2} {octet:>9.1}{}",
        input.name,
        format!("{}x{}", size.rows, size.cols),
        octets.len(),
        nanos / 1e6,
        if slow { "  slow" } else { "" }
    );
}
