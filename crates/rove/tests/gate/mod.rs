//! The words of a test that cannot run on this machine, for the gate.
#![allow(dead_code)] // Each test program uses a part of it.

use std::io::Write;

/// Says that this machine lacks what the test needs. The gate fails on each name that `scripts/not-checked` lacks.
pub fn not_checked(test: &str, why: &str) {
    say(&format!("NOT CHECKED: {test}: {why}"));
}

/// Past the test harness, which keeps the words of tests that pass to itself.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
