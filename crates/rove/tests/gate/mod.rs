//! The words of a test for the gate: that it cannot run on this machine, or that it passed only when run again.
#![allow(dead_code)] // Each test program uses a part of it.

use std::io::Write;

/// Says that this machine lacks what the test needs. The gate fails on each name that `scripts/not-checked` lacks.
pub fn not_checked(test: &str, why: &str) {
    say(&format!("NOT CHECKED: {test}: {why}"));
}

/// Says that a test in real time passed only when it was run again, and why it had not. The gate counts these lines.
pub fn retried(test: &str, why: &str) {
    say(&format!("RETRIED: {test}: {}", why.trim().replace('\n', "; ")));
}

/// Past the test harness, which keeps the words of tests that pass to itself.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
