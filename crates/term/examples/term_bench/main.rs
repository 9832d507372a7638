//! How fast the emulator is, beside alacritty_terminal 0.26, on ten inputs of 8 MB and a 120x40 screen: `cargo run
//! --release -p rove-term --example term_bench [-- --seed N] [--only NAME] [--alone PASSES]`. With `--alone` only our
//! emulator runs, that number of times for each input: for profilers and counters of instructions.
#![allow(clippy::disallowed_methods, reason = "a benchmark measures time")]

mod inputs;

use std::hint::black_box;
use std::time::{Duration, Instant};

use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::term::{Config, Term};
use alacritty_terminal::vte::ansi::Processor;
use rove_term::{Dialect, Size, Terminal};

use inputs::{COLS, INPUTS, ROWS};

/// Time each contestant gets for an input, at least; the best pass counts.
const PASSES: Duration = Duration::from_millis(600);
/// The pty is read in pieces of this size.
const CHUNK: usize = 64 << 10;

struct Window;

impl Dimensions for Window {
    fn total_lines(&self) -> usize {
        ROWS
    }
    fn screen_lines(&self) -> usize {
        ROWS
    }
    fn columns(&self) -> usize {
        COLS
    }
}

fn main() {
    let option = |name: &str| std::env::args().skip_while(|word| word != name).nth(1);
    let seed = option("--seed").and_then(|seed| seed.parse().ok()).unwrap_or_else(fresh_seed);
    let only = option("--only");
    let alone = option("--alone").and_then(|passes| passes.parse::<u32>().ok());
    println!("seed {seed}");
    println!("{:<18} {:>9} {:>11} {:>7} {:>7}  ", "", "ours", "alacritty", "ratio", "bar");
    for (name, make, bar) in INPUTS {
        if only.as_deref().is_some_and(|only| only != name) {
            continue;
        }
        let input = inputs::generate(make, seed);
        if let Some(passes) = alone {
            (0..passes).for_each(|_| {
                black_box(ours(&input));
            });
            continue;
        }
        let [ours, theirs] = best(&input, [ours, theirs]);
        let ratio = ours / theirs;
        let verdict = if ratio >= bar { "" } else { "  below" };
        println!("{name:<18} {ours:>6.0} MB/s {theirs:>6.0} MB/s {ratio:>7.2} {bar:>7.1}{verdict}");
    }
    if alone.is_none() {
        snapshots();
    }
}

fn fresh_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(1, |since| since.as_nanos() as u64 % 1_000_000)
}

/// Megabytes a second of each contestant's best pass. They take turns, so that what else the machine does
/// hits both.
fn best(input: &[u8], contestants: [fn(&[u8]) -> Duration; 2]) -> [f64; 2] {
    let begin = Instant::now();
    let mut best = [Duration::MAX; 2];
    while begin.elapsed() < 2 * PASSES {
        for (best, pass) in best.iter_mut().zip(contestants) {
            *best = pass(input).min(*best);
        }
    }
    best.map(|best| input.len() as f64 / best.as_secs_f64() / 1e6)
}

fn size() -> Size {
    Size::clamped(ROWS as i64, COLS as i64)
}

fn ours(input: &[u8]) -> Duration {
    let mut terminal = Terminal::new(size(), Dialect::ROVE);
    let begin = Instant::now();
    for chunk in input.chunks(CHUNK) {
        terminal.advance(chunk);
    }
    let elapsed = begin.elapsed();
    black_box(terminal.screen());
    elapsed
}

fn theirs(input: &[u8]) -> Duration {
    let mut term = Term::new(Config::default(), &Window, VoidListener);
    let mut parser: Processor = Processor::new();
    let begin = Instant::now();
    for chunk in input.chunks(CHUNK) {
        parser.advance(&mut term, chunk);
    }
    let elapsed = begin.elapsed();
    black_box(term.grid());
    elapsed
}

/// What a snapshot costs, and the first write after it.
fn snapshots() {
    const ROUNDS: u32 = 100_000;
    let mut terminal = Terminal::new(size(), Dialect::ROVE);
    terminal.advance(&inputs::generate(inputs::INPUTS[3].1, 1)[..1 << 20]);
    let begin = Instant::now();
    for _ in 0..ROUNDS {
        black_box(terminal.screen().clone());
    }
    let snapshot = begin.elapsed() / ROUNDS;
    let begin = Instant::now();
    for _ in 0..ROUNDS {
        terminal.advance(b"\rx");
    }
    let write = begin.elapsed() / ROUNDS;
    let begin = Instant::now();
    for _ in 0..ROUNDS {
        let held = terminal.screen().clone();
        terminal.advance(b"\rx");
        black_box(held);
    }
    let first = begin.elapsed() / ROUNDS;
    println!("snapshot {snapshot:?}, write of 2 bytes {write:?}, snapshot and write {first:?}");
}
