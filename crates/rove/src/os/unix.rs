//! The calls that every Unix has.

pub(crate) mod account;
pub(crate) mod crash;
pub(crate) mod environment;
pub(crate) mod interfaces;
pub(crate) mod locked;
pub(crate) mod process;
pub(crate) mod pty;
pub(crate) mod signals;
pub(crate) mod socket_file;
pub(crate) mod terminfo;
pub(crate) mod tty;
pub(crate) mod watch;
