//! Listening sockets that another session of the user's goes on with.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use tokio::net::{TcpListener, UnixListener};

use crate::os::socket_file::SocketFile;
use crate::services::forward::listen::{Incoming, Listener};
use crate::services::forward::spec::Listen;

impl Listener {
    /// Goes on with the sockets of a listener of the same that was [left](Listener::leave).
    ///
    /// # Errors
    /// The system's; there is no socket, or one that is not of this place.
    pub(crate) fn of(listen: &Listen, sockets: Vec<OwnedFd>) -> io::Result<Listener> {
        let sockets = sockets.into_iter().map(|socket| Incoming::of(listen, socket));
        let sockets = sockets.collect::<io::Result<Vec<_>>>()?;
        if sockets.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(match listen {
            Listen::Unix(path) => Listener { sockets, port: 0, place: Some(SocketFile::of(path)?) },
            Listen::Tcp { port, .. } => Listener { sockets, port: *port, place: None },
        })
    }

    /// The sockets, for somebody else to go on with; none if they cannot be reached any more, since another
    /// file has taken a Unix socket's place.
    pub(crate) fn sockets(&self) -> Vec<BorrowedFd<'_>> {
        if self.place.as_ref().is_some_and(|place| !place.is_there()) {
            return Vec::new();
        }
        let sockets = self.sockets.iter().map(|socket| match socket {
            Incoming::Tcp(listener) => listener.as_fd(),
            Incoming::Unix(listener) => listener.as_fd(),
        });
        sockets.collect()
    }

    /// Leaves the sockets to somebody else who has them, and a Unix socket its file.
    pub(crate) fn leave(self) {
        if let Some(place) = self.place {
            place.leave();
        }
    }
}

impl Incoming {
    /// A socket that somebody else says listens there.
    fn of(listen: &Listen, socket: OwnedFd) -> io::Result<Incoming> {
        let incoming = match listen {
            Listen::Tcp { port, .. } => {
                let listener = std::net::TcpListener::from(socket);
                let is_there = listener.local_addr()?.port() == *port;
                listener.set_nonblocking(true)?;
                is_there.then_some(Incoming::Tcp(TcpListener::from_std(listener)?))
            }
            Listen::Unix(path) => {
                let listener = std::os::unix::net::UnixListener::from(socket);
                let is_there = listener.local_addr()?.as_pathname() == Some(path);
                listener.set_nonblocking(true)?;
                is_there.then_some(Incoming::Unix(UnixListener::from_std(listener)?))
            }
        };
        incoming.ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
    }
}
