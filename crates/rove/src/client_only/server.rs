//! A server on a system that has none.

#[path = "../server/program.rs"]
pub(crate) mod program;

use std::ffi::OsString;
use std::process::ExitCode;

use self::program::Program;
use crate::failure::{Failure, fail};

/// Says that there is none.
pub(crate) fn main(_: Program, _: &[OsString]) -> ExitCode {
    fail(&Failure::new(
        "no rove server runs on this system: it is a client's alone",
        "From here: rove HOST. A server runs on Linux, macOS and FreeBSD.",
    ))
}
