//! Turns a program's bytes into a screen, and two screens into the shortest bytes between them.
#![forbid(unsafe_code)]

pub mod dialect;

pub use dialect::{Ability, Colors, Dialect, Emulation};
