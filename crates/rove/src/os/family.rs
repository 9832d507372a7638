//! What the systems of a family have in common: the Unixes, and Windows.

#[cfg(unix)]
pub(crate) use super::unix::{
    account, environment, ffi, file_names, fs, handover, interfaces, local_socket, machine,
    network_changes, pipe, private, process, pty, signals, socket_file, stdio, tty, watched,
};
#[cfg(windows)]
pub(crate) use super::windows::{
    environment, ffi, file_names, fs, local_socket, machine, network_changes, pipe, private,
    process, signals, socket_file, stdio, tty, watched,
};
