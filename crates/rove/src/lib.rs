//! The programs of rove: clocks, sockets, ptys and ssh around the machines of `rove-session`.
//!
//! A program begins at [`main`]; everything else is private, so that the compiler reports dead code.
#![warn(unreachable_pub)]

mod bootstrap;
mod cli;
mod client;
mod copy;
mod doctor;
mod driver;
mod failure;
mod install;
mod keeper;
mod net;
mod notice;
mod os;
mod printable;
mod program;
mod quoted;
mod runtime;
mod seen_hosts;
mod server;
mod services;
mod sessions;
mod ssh;
#[doc(hidden)]
pub mod testing;
mod trace;

pub use program::main;
