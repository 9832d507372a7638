//! The programs of rove: clocks, sockets, ptys and ssh around the machines of `rove-session`.

pub mod clock;
pub mod server;
pub mod sys;
pub mod udp;
