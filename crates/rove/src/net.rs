//! Datagrams: sockets, and the ways to a server.

pub mod routes;
pub mod udp;
