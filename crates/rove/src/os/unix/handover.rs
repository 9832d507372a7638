//! Passes open sockets from one process of a user to another, by a socket that they find by a name.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::cmsg_space;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use tokio::net::UnixListener;

use crate::os::system::sockets;
use crate::os::unix::socket_file::SocketFile;

/// The most sockets that pass at once.
pub(crate) const SOCKETS_MAX: usize = 32;

/// A socket that processes of this user find by its name.
#[derive(Debug)]
pub(crate) struct NamedSocket {
    pub(crate) listener: UnixListener,
    /// Its file, where such sockets have one.
    file: Option<SocketFile>,
}

impl NamedSocket {
    /// Listens under this name. Call it while no other process can hold it: what else listens there is cut off, where
    /// such sockets have files.
    pub(crate) fn listen(name: &str) -> io::Result<NamedSocket> {
        let path = place(name)?;
        sockets::clear(&path);
        let listener = UnixListener::bind(&path)?;
        Ok(NamedSocket { listener, file: sockets::file_of(&path) })
    }

    /// Goes on with one that another process has left.
    pub(crate) fn of(socket: OwnedFd, name: &str) -> io::Result<NamedSocket> {
        let listener = std::os::unix::net::UnixListener::from(socket);
        listener.set_nonblocking(true)?;
        let listener = UnixListener::from_std(listener)?;
        Ok(NamedSocket { listener, file: sockets::file_of(&place(name)?) })
    }

    /// Leaves it to another process that has it.
    pub(crate) fn leave(self) {
        if let Some(file) = self.file {
            file.leave();
        }
    }
}

/// Where the user's processes find a socket of this name.
pub(crate) fn place(name: &str) -> io::Result<PathBuf> {
    sockets::named(name)
}

/// Sends an octet, and sockets with it. Of more than [`SOCKETS_MAX`] none goes.
pub(crate) fn give(to: impl AsFd, octet: u8, given: &[BorrowedFd<'_>]) -> io::Result<()> {
    send_with(to, &[octet], given).map(drop)
}

/// Sends octets, and files with the first of them. Returns how many octets went.
pub(crate) fn send_with(
    to: impl AsFd,
    octets: &[u8],
    given: &[BorrowedFd<'_>],
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(SOCKETS_MAX))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !given.is_empty() {
        beside.push(SendAncillaryMessage::ScmRights(given));
    }
    // The Rust runtime ignores SIGPIPE.
    Ok(sendmsg(to, &[IoSlice::new(octets)], &mut beside, SendFlags::empty())?)
}

/// Receives an octet, and the sockets with it.
pub(crate) fn receive(from: impl AsFd) -> io::Result<Vec<OwnedFd>> {
    receive_with(from, &mut [0]).map(|(_, came)| came)
}

/// Receives octets, and the files that came with them. Returns how many octets came; 0 at the end.
pub(crate) fn receive_with(
    from: impl AsFd,
    octets: &mut [u8],
) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(SOCKETS_MAX))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let into = &mut [IoSliceMut::new(octets)];
    let received = recvmsg(from, into, &mut beside, sockets::RECEIVING)?;
    let came = beside.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(sockets) => Some(sockets),
        _ => None,
    });
    let came: Vec<OwnedFd> = came.flatten().collect();
    for socket in &came {
        fcntl_setfd(socket, FdFlags::CLOEXEC)?;
    }
    if received.flags.contains(ReturnFlags::CTRUNC) {
        // This process may have no more files.
        return Err(io::ErrorKind::QuotaExceeded.into());
    }
    Ok((received.bytes, came))
}
