//! The programs of rove: clocks, sockets, ptys and ssh around the machines of `rove-session`.

pub mod bootstrap;
pub mod carried;
pub mod cli;
pub mod client;
pub mod clock;
pub mod confine;
pub mod copy;
pub mod failure;
pub mod hosts;
pub mod links;
pub mod local;
mod names;
pub mod notice;
pub mod paths;
pub mod printable;
pub mod program;
pub mod runtime;
pub mod server;
pub mod services;
pub mod signals;
pub mod socket_file;
pub mod ssh;
pub mod sys;
pub mod terminfo;
pub mod trace;
pub mod tty;
pub mod udp;
