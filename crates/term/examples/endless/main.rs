//! A gibibyte of each kind of hostile output, each in a process of its own: what it adds to the memory in use.
//!
//! `cargo run --release -p rove-term --example endless -- [MEBIBYTES]` prints the table of `results/endless.md`.

#[path = "../../tests/memory/inputs.rs"]
mod inputs;

use std::error::Error;
use std::process::{Command, ExitCode};

use inputs::{INPUTS, Input};
use rove_term::{Dialect, Size, Terminal};

const MEBIBYTES: usize = 1024;
/// Mebibytes after which the memory in use is the measure.
const SETTLED: usize = 8;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("endless: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mebibytes = words.first().map_or(Ok(MEBIBYTES), |word| word.parse())?;
    if let Some(number) = words.get(1) {
        let input = INPUTS.get(number.parse::<usize>()?).ok_or("no such input")?;
        return one(*input, mebibytes);
    }
    println!("| output, {mebibytes} MiB of it | peak, MiB | of that after the first {SETTLED} |");
    println!("|---|---:|---:|");
    for number in 0..INPUTS.len() {
        let program = std::env::current_exe()?;
        let words = [mebibytes.to_string(), number.to_string()];
        if !Command::new(program).args(words).status()?.success() {
            return Err(format!("input {number} failed").into());
        }
    }
    Ok(())
}

fn one(input: Input, mebibytes: usize) -> Result<(), Box<dyn Error>> {
    let mut terminal = Terminal::new(Size::DEFAULT, Dialect::ROVE);
    let mut settled = 0;
    for (count, piece) in input.pieces().take(mebibytes).enumerate() {
        terminal.advance(&piece);
        // As a session does: answers go out when there is room.
        terminal.take_replies();
        if count + 1 == SETTLED {
            settled = peak_kib()?;
        }
    }
    let peak = peak_kib()?;
    let mib = |kib: u64| kib as f64 / 1024.0;
    println!("| {} | {:.1} | +{:.1} |", input.name, mib(peak), mib(peak - settled));
    Ok(())
}

/// The most memory this process ever had, in KiB.
fn peak_kib() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM")).ok_or("no VmHWM")?;
    Ok(line.split_whitespace().nth(1).ok_or("no number")?.parse()?)
}
