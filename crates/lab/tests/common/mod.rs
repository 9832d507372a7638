//! Helpers shared by the tests with real programs.
#![allow(dead_code, reason = "each test uses its part")]
#![allow(clippy::disallowed_methods, reason = "tests are steered by their environment")]

use std::fmt::Display;
use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::Command;

use rove_lab::testing::run::limited;

/// The program under test: `ROVE_BIN`, else the release build of this workspace.
pub fn rove_program() -> PathBuf {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/release/rove");
    let named = std::env::var_os("ROVE_BIN").filter(|name| !name.is_empty());
    let path = named.map_or_else(|| PathBuf::from(default), PathBuf::from);
    path.canonicalize().unwrap_or_else(|error| {
        let path = path.display();
        panic!("{path}: {error}; build it with `cargo build --release -p rove-shell`")
    })
}

/// The lab's program, built with this test.
pub fn lab_program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_rove-lab"))
}

/// Whether a name is among those that the variable asks for; all are if it is not set.
pub fn chosen(variable: &str, name: &str) -> bool {
    match std::env::var(variable) {
        Ok(part) => name.contains(&part),
        Err(_) => true,
    }
}

/// Compares a text octet by octet with `tests/golden/<name>.txt`, and tells the lines that differ. With RECORD=1 in the
/// environment the file is written first.
pub fn check_golden(name: &str, found: &str) {
    let file = format!("{}/tests/golden/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("RECORD").is_some() {
        fs::write(&file, found).unwrap_or_else(|error| panic!("{file}: {error}"));
    }
    let recorded = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let differing: Vec<String> = recorded
        .lines()
        .zip(found.lines())
        .filter(|(recorded, found)| recorded != found)
        .map(|(recorded, found)| format!("recorded {recorded}\nfound    {found}"))
        .collect();
    assert!(differing.is_empty(), "{name}:\n{}", differing.join("\n"));
    assert_eq!(recorded, found, "{name}");
}

/// The lab's program, ended when it takes longer than any test may.
pub fn lab_command() -> Command {
    limited(lab_program(), 300)
}

/// The result of making networks of our own; `None`, told as not checked, where this machine allows none.
pub fn possible<T>(test: &str, made: io::Result<T>) -> Option<T> {
    match made {
        // Unsupported: no right to make any, or no TUN device. NotFound: no ip(8).
        Err(error)
            if matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::NotFound) =>
        {
            not_checked(test, &error);
            None
        }
        made => Some(made.unwrap_or_else(|error| panic!("{error}"))),
    }
}

/// Says that this machine lacks what the test needs. The gate fails on each name that `scripts/not-checked` lacks.
pub fn not_checked(test: &str, why: impl Display) {
    let why = why.to_string();
    say(&format!("NOT CHECKED: {test}: {}", why.trim().replace('\n', "; ")));
}

/// Says that a test in real time passed only when it was run again, and why it had not. The gate counts these lines.
pub fn retried(test: &str, why: impl Display) {
    say(&format!("RETRIED: {test}: {}", why.to_string().trim().replace('\n', "; ")));
}

/// Past the test harness, which keeps the words of tests that pass to itself.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
