//! The calls that every Unix has.

pub(crate) mod account;
pub(crate) mod crash;
pub(crate) mod environment;
pub(crate) mod ffi;
pub(crate) mod file_names;
pub(crate) mod fs;
pub(crate) mod handover;
pub(crate) mod interfaces;
pub(crate) mod local_socket;
pub(crate) mod login_record;
pub(crate) mod machine;
pub(crate) mod memory;
pub(crate) mod network_changes;
pub(crate) mod pipe;
pub(crate) mod private;
pub(crate) mod process;
pub(crate) mod pty;
pub(crate) mod signal_frames;
pub(crate) mod signals;
pub(crate) mod slave;
pub(crate) mod socket_file;
pub(crate) mod stdio;
pub(crate) mod tty;
pub(crate) mod walk;
pub(crate) mod watch;
pub(crate) mod watched;
