//! Unix sockets that listen: at a path, or under a name by which the user's processes find them.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::task::{Context, Poll, ready};

use socket2::{Domain, Socket, Type};

use crate::os::system;
use crate::os::unix::socket_file::SocketFile;

pub(crate) use tokio::net::{UnixListener as LocalListener, UnixStream as LocalStream};

/// Makes a Unix socket that only this user can reach, for a runtime to watch.
pub(crate) fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    system::sockets::bind_private(&socket, path)?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Listens at a path, whose file goes with the second result. Needs a tokio runtime with I/O.
pub(crate) fn listen(path: &Path) -> io::Result<(LocalListener, SocketFile)> {
    let listener = bind_unix(path)?;
    let place = SocketFile::of(path)?;
    Ok((LocalListener::from_std(listener)?, place))
}

/// The same listener, watched by the runtime that this is called in.
pub(crate) fn moved_here(listener: LocalListener) -> io::Result<LocalListener> {
    LocalListener::from_std(listener.into_std()?)
}

/// The next connection.
pub(crate) fn poll_accept(
    listener: &LocalListener,
    cx: &mut Context<'_>,
) -> Poll<io::Result<LocalStream>> {
    let (stream, _) = ready!(listener.poll_accept(cx))?;
    Poll::Ready(Ok(stream))
}

/// Lets a socket of TCP have a port whose earlier connections are still being closed.
pub(crate) fn take_port(socket: &Socket) -> io::Result<()> {
    socket.set_reuse_address(true)
}

/// Nothing: nobody else gets the port of a socket that has not asked to share it.
pub(crate) fn keep_port(_: &Socket) -> io::Result<()> {
    Ok(())
}

/// Connects to a path.
pub(crate) async fn connect(path: &Path) -> io::Result<LocalStream> {
    LocalStream::connect(path).await
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
