//! Unix sockets with the rights of one user, and those that are found by a name.

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use rustix::net::RecvFlags;
use socket2::{SockAddr, Socket};

use crate::os::unix::socket_file::SocketFile;

/// Open files that come with a message are closed when a program is executed.
pub(crate) const RECEIVING: RecvFlags = RecvFlags::CMSG_CLOEXEC;

/// Gives a socket a path that only this user can reach.
pub(crate) fn bind_private(socket: &Socket, path: &Path) -> io::Result<()> {
    // Linux gives the socket's mode to the file, so that there is no moment in which others get in.
    rustix::fs::fchmod(socket, Mode::RUSR | Mode::WUSR)?;
    socket.bind(&SockAddr::unix(path)?)
}

/// The user at the other end of a connection.
pub(crate) fn peer_user(connection: impl AsFd) -> io::Result<u32> {
    Ok(rustix::net::sockopt::socket_peercred(connection)?.uid.as_raw())
}

/// Where the user's processes find a socket of this name: one without a file (unix(7), "abstract").
pub(crate) fn named(name: &str) -> io::Result<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    Ok(format!("\0rove/{user}/{name}").into())
}

/// Makes the place of a name free. Nothing stays there when its socket is closed.
pub(crate) fn clear(_: &Path) {}

/// The file of such a socket: none.
pub(crate) fn file_of(_: &Path) -> Option<SocketFile> {
    None
}
