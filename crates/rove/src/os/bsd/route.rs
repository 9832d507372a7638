//! The kernel's news of links, addresses and routes (route(4)).

use std::io;
use std::os::fd::OwnedFd;

use socket2::{Domain, Protocol, Socket, Type};

/// A socket that does not block, and gets a message of each change, of both families.
pub(crate) fn open() -> io::Result<OwnedFd> {
    let socket = Socket::new(Domain::from(libc::PF_ROUTE), Type::RAW, Some(Protocol::from(0)))?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}
