//! Datagrams: sockets, the routes to a server, ssh's stream, what carries them, and where a driver meets the system.

pub(crate) mod carrier;
pub(crate) mod choice;
pub(crate) mod frames;
#[cfg(test)]
pub(crate) mod memory;
pub(crate) mod port;
pub(crate) mod refusal;
pub(crate) mod routes;
pub(crate) mod stdio;
pub(crate) mod udp;
