//! The rows of the acceptance table of a working day, on real programs and through a real sshd: one case a row. Row 4 is
//! `lines_that_were_missed` of `tests/experiments.rs`, row 6 is `tests/interop.rs` and the vectors of two crates, and row 7
//! is `earlier.rs` of `session/tests`.
#![allow(clippy::unwrap_used, reason = "what is missing fails the test")]

#[path = "../common/mod.rs"]
mod common;
mod contact;
mod doctor;
#[path = "../common/host.rs"]
mod host;
mod inline;
mod killed;
mod scrollback;
mod secret_lines;
mod sessions;
mod tmux;
mod way_back;
mod ways;
mod xterm;
