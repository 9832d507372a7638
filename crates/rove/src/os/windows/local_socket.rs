//! Sockets that listen. There are no Unix sockets here.
#![allow(unsafe_code)]

use std::convert::Infallible;
use std::io;
use std::os::windows::io::AsRawSocket;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use socket2::Socket;
use tokio::io::{AsyncRead, AsyncWrite, Empty, ReadBuf, Sink};
use windows_sys::Win32::Networking::WinSock::{
    SO_EXCLUSIVEADDRUSE, SOCKET, SOL_SOCKET, setsockopt,
};

use crate::os::windows::socket_file::SocketFile;

/// Connections that wait to be accepted.
pub(crate) const BACKLOG: i32 = 128;

/// A socket that listens: there is none.
#[derive(Debug)]
pub(crate) struct LocalListener(Infallible);

/// A connection: there is none.
#[derive(Debug)]
pub(crate) struct LocalStream(Infallible);

fn absent() -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        "Unix sockets are not forwarded on Windows; forward a TCP port",
    )
}

/// Refuses.
pub(crate) fn listen(_: &Path) -> io::Result<(LocalListener, SocketFile)> {
    Err(absent())
}

/// The same listener.
pub(crate) fn moved_here(listener: LocalListener) -> io::Result<LocalListener> {
    Ok(listener)
}

/// There is none to come.
pub(crate) fn poll_accept(
    listener: &LocalListener,
    _: &mut Context<'_>,
) -> Poll<io::Result<LocalStream>> {
    match listener.0 {}
}

/// The port of a socket of TCP whose earlier connections are still being closed can be had anyway.
pub(crate) fn take_port(socket: &Socket) -> io::Result<()> {
    keep_port(socket)
}

/// Keeps other programs from taking the port of a socket, as they may here unless they are told not to.
pub(crate) fn keep_port(socket: &Socket) -> io::Result<()> {
    let (yes, size) = (1_i32, size_of::<i32>() as i32);
    let socket = socket.as_raw_socket() as SOCKET;
    let from = (&raw const yes).cast();
    // SAFETY: an open socket, and a number that the call reads.
    match unsafe { setsockopt(socket, SOL_SOCKET, SO_EXCLUSIVEADDRUSE, from, size) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Refuses.
pub(crate) async fn connect(_: &Path) -> io::Result<LocalStream> {
    Err(absent())
}

impl LocalStream {
    /// Its two directions.
    pub(crate) fn into_split(self) -> (Empty, Sink) {
        match self.0 {}
    }
}

impl AsyncRead for LocalStream {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.0 {}
    }
}

impl AsyncWrite for LocalStream {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        match self.0 {}
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.0 {}
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.0 {}
    }
}
