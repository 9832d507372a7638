//! UDP sockets that the runtime watches.

use std::io;
use std::net::UdpSocket;
use std::task::{Context, Poll};

use tokio::io::Interest;

/// What owns a UDP socket, and always the same one.
#[derive(Debug)]
pub(crate) struct Watched<T> {
    /// The same socket under another handle: the runtime wants one of its own.
    watched: tokio::net::UdpSocket,
    owner: T,
}

impl<T: AsRef<UdpSocket>> Watched<T> {
    /// Needs a tokio runtime with I/O.
    pub(crate) fn new(owner: T) -> io::Result<Watched<T>> {
        let second = owner.as_ref().try_clone()?;
        second.set_nonblocking(true)?;
        Ok(Watched { watched: tokio::net::UdpSocket::from_std(second)?, owner })
    }

    /// Ready while there may be something to read.
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.watched.poll_recv_ready(cx)
    }

    /// Reads, if there may be something. `read` says `WouldBlock` where there is not.
    pub(crate) fn try_read<R>(&self, read: impl FnOnce(&T) -> io::Result<R>) -> io::Result<R> {
        self.watched.try_io(Interest::READABLE, || read(&self.owner))
    }

    /// The owner.
    pub(crate) fn get_ref(&self) -> &T {
        &self.owner
    }
}
