//! UDP sockets that the runtime watches.

use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, RawFd};
use std::task::{Context, Poll};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::os::unix::watch::watch;

/// What owns a UDP socket, and always the same one.
#[derive(Debug)]
pub(crate) struct Watched<T: AsRef<UdpSocket>>(AsyncFd<Owner<T>>);

#[derive(Debug)]
struct Owner<T>(T);

impl<T: AsRef<UdpSocket>> AsRawFd for Owner<T> {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_ref().as_raw_fd()
    }
}

impl<T: AsRef<UdpSocket>> Watched<T> {
    /// Needs a tokio runtime with I/O.
    pub(crate) fn new(socket: T) -> io::Result<Watched<T>> {
        Ok(Watched(watch(Owner(socket), Interest::READABLE)?))
    }

    /// Ready while there may be something to read.
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_read_ready(cx).map(|ready| ready.map(drop))
    }

    /// Reads, if there may be something. `read` says `WouldBlock` where there is not.
    pub(crate) fn try_read<R>(&self, read: impl FnOnce(&T) -> io::Result<R>) -> io::Result<R> {
        self.0.try_io(Interest::READABLE, |owner| read(&owner.0))
    }

    /// The owner.
    pub(crate) fn get_ref(&self) -> &T {
        &self.0.get_ref().0
    }
}
