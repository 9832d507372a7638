//! The two ends of a mobile shell, as machines without clocks or sockets.
//!
//! [`Client`] turns keys into states of the user stream ([`Input`]) and paints the newest [`View`].
//! [`Host`] is one program on one terminal, and a [`Viewer`] is one client of it: it gives the client's
//! keys to the host and makes views of the host's screen. [`Server`] is a host with its viewers. A
//! [`Connection`] is what every end of a session has, with a terminal or without. All are
//! [`Machine`](rove_ssp::Machine)s or parts of one: a driver tells them the time, moves their datagrams,
//! and does what their events ask for.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(unreachable_pub)]

extern crate alloc;

pub mod client;
pub mod connection;
pub mod escape;
mod events;
pub mod exit;
pub mod host;
pub mod input;
pub mod line_mode;
pub mod messages;
pub mod past;
pub mod predict;
pub mod server;
pub mod session_info;
pub mod view;
pub mod viewer;
pub mod work;

pub use client::Client;
pub use connection::Connection;
pub use escape::Escape;
pub use host::{Host, ViewerId};
pub use input::Input;
pub use line_mode::{LineMode, LineReport};
pub use predict::Predictor;
pub use server::Server;
pub use session_info::{LetGo, SessionInfo};
pub use view::{Peer, View};
pub use viewer::Viewer;
