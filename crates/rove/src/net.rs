//! Datagrams: sockets, and the routes to a server.

pub mod routes;
pub mod udp;
