//! Unix sockets with the rights of one user, and those that are found by a name.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode};
use rustix::net::RecvFlags;
use socket2::{SockAddr, Socket};

use crate::os::stat::FileType;
use crate::os::unix::fs::lstat;
use crate::os::unix::socket_file::SocketFile;

/// macOS cannot close open files that come with a message when a program is executed: the receiver says so of each.
pub(crate) const RECEIVING: RecvFlags = RecvFlags::empty();

/// Gives a socket a path that only this user can reach.
pub(crate) fn bind_private(socket: &Socket, path: &Path) -> io::Result<()> {
    socket.bind(&SockAddr::unix(path)?)?;
    // Nobody is listened to yet. Whoever may write to the directory can have put a link there by now, to any file of
    // ours.
    let mode = Mode::RUSR | Mode::WUSR;
    Ok(rustix::fs::chmodat(CWD, path, mode, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// The user at the other end of a connection (getpeereid(3)).
pub(crate) fn peer_user(connection: impl AsFd) -> io::Result<u32> {
    let (mut user, mut group) = (0, 0);
    // SAFETY: the file is open, and the call writes two numbers to where these lie.
    match unsafe { libc::getpeereid(connection.as_fd().as_raw_fd(), &mut user, &mut group) } {
        0 => Ok(user),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Where the user's processes find a socket of this name: in a directory that only the user can enter.
pub(crate) fn named(name: &str) -> io::Result<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    // A path of a socket is short, and the directory that macOS has for each user's temporary files is not.
    let directory = PathBuf::from(format!("/tmp/rove-{user}"));
    match rustix::fs::mkdir(&directory, Mode::RWXU) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    // Anybody can have made it before.
    let stat = lstat(&directory)?;
    let is_private = stat.kind() == FileType::Directory && stat.st_mode & 0o077 == 0;
    match is_private && stat.st_uid == user {
        true => Ok(directory.join(name)),
        false => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

/// Makes the place of a name free: a process that was killed leaves its file.
pub(crate) fn clear(path: &Path) {
    let _ = rustix::fs::unlink(path);
}

/// The file of such a socket.
pub(crate) fn file_of(path: &Path) -> Option<SocketFile> {
    SocketFile::of(path).ok()
}
