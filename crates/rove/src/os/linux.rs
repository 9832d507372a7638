//! The calls that only Linux has.

pub(crate) mod clock;
pub(crate) mod files;
pub(crate) mod logins;
pub(crate) mod memory;
pub(crate) mod netlink;
pub(crate) mod process;
pub mod sandbox;
pub(crate) mod sockets;
pub(crate) mod terminal;
pub(crate) mod udp;
