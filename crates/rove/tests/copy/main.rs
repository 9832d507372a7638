//! Copies between two ends in one process: what arrives, what is refused, and what is left behind
//! when something fails.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // Helpers of tests are tests.

mod ends;
mod faults;
#[path = "../gate/mod.rs"]
mod gate;
mod hostile;
mod links;
mod mutations;
mod others;
mod session;
mod whole;
