//! The calls that every Unix has.

pub(crate) mod account;
pub(crate) mod crash;
pub(crate) mod environment;
pub(crate) mod handover;
pub(crate) mod interfaces;
pub(crate) mod local_socket;
pub(crate) mod locked;
pub(crate) mod network_changes;
pub(crate) mod process;
pub(crate) mod pty;
pub(crate) mod reach;
pub(crate) mod signals;
pub(crate) mod slave;
pub(crate) mod socket_file;
pub(crate) mod stat;
pub(crate) mod terminfo;
pub(crate) mod tty;
pub(crate) mod walk;
pub(crate) mod watch;
