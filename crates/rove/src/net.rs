//! Datagrams: sockets, and the routes to a server.

pub(crate) mod routes;
pub(crate) mod udp;
