//! Runs the program that the first words name; only this file knows all programs.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use crate::cli;
use crate::failure::fail;
use crate::server;
use crate::server::program::Program;

/// Runs the program that the first words name.
pub fn main() -> ExitCode {
    let mut words = std::env::args_os();
    let program = words.next().unwrap_or_default();
    let words: Vec<OsString> = words.collect();
    match Path::new(&program).file_name().and_then(OsStr::to_str) {
        Some("mosh-client") => cli::mosh_client::main(&words),
        Some("mosh-server") => server::main(Program::Mosh, &words),
        _ if words.first().is_some_and(|word| word == "server") => {
            server::main(Program::Rove, &words[1..])
        }
        _ if words.first().is_some_and(|word| word == "cp") => cli::copy::main(&words[1..]),
        _ if words.first().is_some_and(|word| word == "exec") => {
            cli::exec::main(&words[1..]).unwrap_or_else(|failure| fail(&failure))
        }
        _ => cli::rove(&words),
    }
}
