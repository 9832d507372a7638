//! The programs of rove: clocks, sockets, ptys and ssh around the machines of `rove-session`.

pub mod bootstrap;
pub mod cli;
pub mod client;
pub mod copy;
pub mod failure;
pub mod net;
pub mod notice;
pub mod os;
pub mod printable;
pub mod program;
pub mod runtime;
pub mod seen_hosts;
pub mod server;
pub mod services;
pub mod ssh;
pub mod trace;
