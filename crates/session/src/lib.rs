//! The two ends of a mobile shell, as machines without clocks or sockets.
//!
//! [`Client`] turns keys into states of the user stream ([`Input`]) and paints the newest [`View`];
//! [`Server`] gives those keys to a program and makes views of what it writes. Both are
//! [`Machine`](rove_ssp::Machine)s over an [`Endpoint`](rove_ssp::Endpoint): a driver tells them the
//! time, moves their datagrams, and does what their events ask for.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod client;
pub mod connection;
pub mod escape;
pub mod exit;
pub mod input;
pub mod line_mode;
pub mod messages;
pub mod predict;
pub mod pty;
pub mod server;
pub mod view;
pub mod work;

pub use client::Client;
pub use connection::Connection;
pub use escape::Escape;
pub use input::Input;
pub use line_mode::LineMode;
pub use predict::Predictor;
pub use server::Server;
pub use view::{Peer, View};
