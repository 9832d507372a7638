//! Runs the program that the first words name; only this file knows all programs.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use crate::cli::{self, Manner, Subcommand};
use crate::failure::fail;
use crate::os;
use crate::server;
use crate::server::program::Program;

/// Runs the program that the first words name.
pub fn main() -> ExitCode {
    os::process::prepare();
    let mut words = std::env::args_os();
    let program = words.next().unwrap_or_default();
    let words: Vec<OsString> = words.collect();
    match Path::new(&program).file_name().and_then(OsStr::to_str) {
        Some("mosh-client") => cli::mosh_client::main(&words),
        Some("mosh-server") => server::main(Program::Mosh, &words),
        Some("rove-server") => server::main(Program::Rove, &words),
        Some("rove-ssh") => cli::exec::main(&words).unwrap_or_else(|failure| fail(&failure)),
        Some("mosh") => cli::rove(&words, Manner::Mosh),
        _ => rove(&words),
    }
}

/// Runs the command that the first word names which is no option.
fn rove(words: &[OsString]) -> ExitCode {
    let (command, words) = match cli::subcommand(words) {
        Ok(Some(found)) => found,
        Ok(None) => return cli::rove(words, Manner::Ssh),
        Err(failure) => return fail(&failure),
    };
    match command {
        Subcommand::Server => server::main(Program::Rove, &words),
        Subcommand::Copy => cli::copy::main(&words),
        Subcommand::Doctor => cli::doctor::main(&words).unwrap_or_else(|failure| fail(&failure)),
        Subcommand::Install => cli::install::main(&words).unwrap_or_else(|failure| fail(&failure)),
        Subcommand::List => cli::sessions::ls(&words).unwrap_or_else(|failure| fail(&failure)),
        Subcommand::Attach => cli::attach::main(&words).unwrap_or_else(|failure| fail(&failure)),
        Subcommand::New => cli::attach::new(&words).unwrap_or_else(|failure| fail(&failure)),
        Subcommand::Kill => cli::sessions::kill(&words).unwrap_or_else(|failure| fail(&failure)),
        Subcommand::Help => cli::help::main(&words).unwrap_or_else(|failure| fail(&failure)),
        Subcommand::Exec => cli::exec::main(&words).unwrap_or_else(|failure| fail(&failure)),
    }
}
