//! What macOS and FreeBSD have where Linux has calls of its own.

pub(crate) mod clock;
pub(crate) mod files;
pub(crate) mod logins;
pub(crate) mod memory;
pub(crate) mod process;
pub(crate) mod route;
pub(crate) mod sockets;
pub(crate) mod terminal;
pub(crate) mod udp;
