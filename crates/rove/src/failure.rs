//! A failure as the user meets it: what happened, and what to do next.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use thiserror::Error;

/// A failure of rove itself; the program ends with status 255.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub struct Failure {
    /// What happened, in one line.
    pub what: String,
    /// What the user can do about it; empty where `what` says it.
    pub next: String,
}

impl Failure {
    /// A failure and the next step.
    pub fn new(what: impl Into<String>, next: impl Into<String>) -> Failure {
        Failure { what: what.into(), next: next.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.next.as_str() {
            "" => write!(f, "rove: {}", self.what),
            next => write!(f, "rove: {}\n      {next}", self.what),
        }
    }
}

/// The status of every failure of rove itself, as ssh has it; the shell's own status otherwise.
pub(crate) const FAILED: u8 = 255;

pub(crate) fn fail(failure: &Failure) -> ExitCode {
    let _ = writeln!(io::stderr(), "{failure}");
    FAILED.into()
}
