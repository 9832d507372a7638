//! Shows what the emulator makes of bytes, for suites that judge it from outside.
//!
//! `vtdump --cols C --rows R` reads all of standard input and prints one JSON object;
//! `--batch` reads one case a line, `{"cols","rows","input_b64"}`, and prints one object a line;
//! `--serve` speaks frames `type(1) len(u32 LE) payload`: D data and Z "CxR" are answered by R replies,
//! Q by S with the object. Checksum queries (DECRQCRA) are answered, and
//! programs may resize the screen (XTWINOPS, DECCOLM): both are what conformance suites work with.

mod protocol;

use std::io::BufWriter;
use std::process::ExitCode;

use protocol::{Outcome, batch, plain, serve};
use rove_term::Size;

enum Input {
    Plain,
    Batch,
    Serve,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("vtdump: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Outcome {
    let (mut cols, mut rows, mut input) = (80, 24, Input::Plain);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--cols" => cols = words.next().ok_or("--cols needs a number")?.parse()?,
            "--rows" => rows = words.next().ok_or("--rows needs a number")?.parse()?,
            "--batch" => input = Input::Batch,
            "--serve" => input = Input::Serve,
            _ => return Err(format!("unknown option {word}").into()),
        }
    }
    let size = Size::clamped(rows, cols);
    let stdin = std::io::stdin().lock();
    let out = BufWriter::new(std::io::stdout().lock());
    match input {
        Input::Plain => plain(size, stdin, out),
        Input::Batch => batch(stdin, out),
        Input::Serve => serve(size, stdin, out),
    }
}
