//! Unix sockets that listen: at a path, or under a name by which the user's processes find them.

use std::io;
use std::os::fd::AsFd;
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

/// Whether the other end of a connection belongs to this user. Root is not special, and nobody is not everybody.
pub(crate) fn is_own_peer(connection: impl AsFd) -> bool {
    let own = rustix::process::geteuid().as_raw();
    system::sockets::peer_user(connection).is_ok_and(|peer| is_same(peer, own))
}

fn is_same(peer: u32, own: u32) -> bool {
    peer == own && peer != NOBODY
}

/// The user id that the system shows for users without a number in a user namespace (`overflowuid`,
/// user_namespaces(7)).
const NOBODY: u32 = 65_534;

/// Connections that wait to be accepted.
pub(crate) const BACKLOG: i32 = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_not_everybody() {
        assert!(is_same(1000, 1000) && is_same(0, 0) && !is_same(1000, 0));
        assert!(!is_same(NOBODY, NOBODY));
    }
}
