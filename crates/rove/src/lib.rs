//! The programs of rove: clocks, sockets, ptys and ssh around the machines of `rove-session`.
//!
//! A program begins at [`main`]; everything else is private, so that the compiler reports dead code.
//!
//! On Windows there is a client and no server. What it does without has a small module of the same name in
//! `client_only`, which says so to users; this file alone, besides `os`, knows of that.
#![warn(unreachable_pub)]
#![cfg_attr(
    windows,
    allow(
        dead_code,
        unreachable_pub,
        unused_imports,
        reason = "some is a server's or the tests' alone"
    )
)]

mod bootstrap;
mod cli;
mod client;
mod copy;
mod doctor;
mod driver;
mod failure;
mod install;
#[cfg_attr(windows, path = "client_only/keeper.rs")]
mod keeper;
mod net;
mod notice;
mod os;
mod printable;
mod program;
mod quoted;
mod runtime;
mod seen_hosts;
#[cfg_attr(windows, path = "client_only/server.rs")]
mod server;
mod services;
#[cfg_attr(windows, path = "client_only/sessions.rs")]
mod sessions;
mod ssh;
#[cfg(unix)]
#[doc(hidden)]
pub mod testing;
mod trace;

pub use program::main;
