//! Unix sockets that listen at a path.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use socket2::{Domain, SockAddr, Socket, Type};

/// Makes a Unix socket that only this user can reach, for a runtime to watch.
pub(crate) fn bind_unix(path: &Path) -> io::Result<std::os::unix::net::UnixListener> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    let mode = Mode::RUSR | Mode::WUSR;
    // Linux gives the socket's mode to the file, so that there is no moment in which others get in.
    rustix::fs::fchmod(&socket, mode)?;
    socket.bind(&SockAddr::unix(path)?)?;
    // Elsewhere it is made to be so before anybody is listened to. Whoever may write to the directory can have put a
    // link there by now, to any file of ours.
    #[cfg(not(target_os = "linux"))]
    rustix::fs::chmodat(rustix::fs::CWD, path, mode, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// A file of ours, removed when this is dropped, unless another has taken its place.
#[derive(Debug)]
pub(crate) struct SocketFile {
    pub(crate) path: PathBuf,
    pub(crate) device: u64,
    pub(crate) number: u64,
    pub(crate) is_ours: bool,
}

impl SocketFile {
    /// The file of this path, which is ours.
    pub(crate) fn of(path: &Path) -> io::Result<SocketFile> {
        let stat = rustix::fs::lstat(path)?;
        let (device, number) = (stat.st_dev, stat.st_ino);
        Ok(SocketFile { path: path.to_owned(), device, number, is_ours: true })
    }

    /// Lets the file stay.
    pub(crate) fn leave(mut self) {
        self.is_ours = false;
    }

    /// Whether this file still has its path.
    pub(crate) fn is_there(&self) -> bool {
        rustix::fs::lstat(&self.path)
            .is_ok_and(|stat| (stat.st_dev, stat.st_ino) == (self.device, self.number))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.is_ours && self.is_there() {
            let _ = rustix::fs::unlink(&self.path);
        }
    }
}

/// Connections that wait to be accepted.
pub(crate) const BACKLOG: i32 = 128;
