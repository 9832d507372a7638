//! Unix sockets that listen: at a path, or under a name by which the user's processes find them.

use std::io;
use std::os::unix::net::UnixListener;
use std::path::Path;

use socket2::{Domain, Socket, Type};

use crate::os::system;

/// Makes a Unix socket that only this user can reach, for a runtime to watch.
pub(crate) fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    system::sockets::bind_private(&socket, path)?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Connections that wait to be accepted.
pub(crate) const BACKLOG: i32 = 128;
