//! A server's answers on the channel of a connection or a listening socket.

use std::io;

/// The server's answer for a connection that succeeded.
pub(crate) const CONNECTED: u8 = 0;

/// The server's answer for a connection or a listening socket that failed. The reason follows.
pub(crate) const FAILED: u8 = 1;

/// The server has left a listening socket to another session, because its client was away.
pub(crate) const GIVEN_UP: u8 = 2;

/// What the server says, once, when a connection has to wait until one of [`CONNECTIONS_MAX`](crate::services::forward::listen::CONNECTIONS_MAX) others ends.
pub(crate) const FULL: u8 = 3;

/// Why a socket or a target is unavailable, without the system's number.
pub(crate) fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "it is taken".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        io::ErrorKind::AddrNotAvailable => "this machine has no such address".into(),
        io::ErrorKind::ConnectionRefused => "connection refused".into(),
        _ => error.to_string(),
    }
}
