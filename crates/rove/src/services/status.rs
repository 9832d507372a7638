//! A server's answers on the channel of a connection or a listening socket.

use std::io;

/// What the server says of a connection: it is there.
pub(crate) const CONNECTED: u8 = 0;

/// What the server says of a connection or a listening socket that cannot be had. The reason follows.
pub(crate) const FAILED: u8 = 1;

/// What the server says once it has left a listening socket to another session, because its client was away.
pub(crate) const GIVEN_UP: u8 = 2;

/// What the server says, once, when a connection has to wait until one of [`CONNECTIONS_MAX`](crate::services::forward::listen::CONNECTIONS_MAX) others ends.
pub(crate) const FULL: u8 = 3;

/// Why a socket cannot be had, or nothing reached, without the system's number.
pub(crate) fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "it is taken".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        io::ErrorKind::AddrNotAvailable => "this machine has no such address".into(),
        io::ErrorKind::ConnectionRefused => "connection refused".into(),
        _ => error.to_string(),
    }
}
