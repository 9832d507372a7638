//! The differ against the emulator: for any two screens, a reader that holds one and is fed the frame to the other
//! shows the other, as far as it can; and the frame holds nothing but a small, known grammar.
//!
//! `SEED=17 cargo test -p rove-term --test frame` runs just that seed; `SEEDS=100000` runs that
//! many.

mod classes;
mod grammar;
mod laws;
mod lines;
mod looks;
mod scrolls;
mod sizes;
mod streams;
