//! What the tests with real programs share.
#![allow(dead_code, reason = "each test uses its part")]
#![allow(clippy::disallowed_methods, reason = "tests are steered by their environment")]

use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use rove_lab::run::limited;

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

/// The lab's program, ended when it takes longer than any test may.
pub fn lab_command() -> Command {
    limited(lab_program(), 300)
}

/// Past the test harness, which keeps the words of tests that pass to itself.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
