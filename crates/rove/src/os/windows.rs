//! What a client needs of Windows. A server, an agent, Unix sockets and the suspending of programs are not there.

pub(crate) mod clock;
mod console;
mod crash;
pub(crate) mod environment;
pub(crate) mod ffi;
pub(crate) mod file_names;
pub(crate) mod files;
pub(crate) mod fs;
pub(crate) mod local_socket;
pub(crate) mod machine;
pub(crate) mod memory;
pub(crate) mod network_changes;
pub(crate) mod pipe;
pub(crate) mod private;
pub(crate) mod process;
mod programs;
mod queue;
pub(crate) mod signals;
pub(crate) mod socket_file;
pub(crate) mod stdio;
pub(crate) mod tty;
pub(crate) mod udp;
pub(crate) mod watched;
