//! What a driver gives a new client, and what it is told by one.

use alloc::boxed::Box;
use alloc::string::String;
use core::net::SocketAddr;

use rove_ssp::{Timing, Wire};
use rove_term::{Dialect, Size};

use crate::client::overlay::TtyScreen;
use crate::escape::Escape;
use crate::exit::Cause;
use crate::view::Peer;

/// The parts and settings of a new client.
pub struct Config {
    /// The envelope, with its key.
    pub wire: Box<dyn Wire>,
    /// When to send what.
    pub timing: Timing,
    /// Where the server is.
    pub server: SocketAddr,
    /// Which program the server is.
    pub peer: Peer,
    /// The user's window.
    pub size: Size,
    /// What the user's terminal understands.
    pub tty: Dialect,
    /// Which of the terminal's screens is used.
    pub window: TtyScreen,
    /// The key that begins a command to the client.
    pub escape: Escape,
    /// The program's name, with which each bar begins: `rove`, or `mosh` when called so.
    pub name: &'static str,
    /// Stands before window titles: `[rove] `, `[mosh] `, or nothing.
    pub title_prefix: String,
    /// How much a listener is kept from learning of typed keys.
    pub obscure: Obscure,
    /// How many missed lines the terminal's history is to get at most, 0 for none.
    pub history_lines: u64,
    /// Seeds what is random on the wire without being secret.
    pub seed: u64,
}

/// How much a listener is kept from learning of typed keys by when datagrams leave and how long they are.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Obscure {
    /// Nothing: each key goes at once.
    Never,
    /// When the keys of a hidden line were typed, and how many they were: they go with its Enter.
    #[default]
    Secrets,
    /// The same, and of all other keys when and how often they are typed: they go in slots
    /// ([`Timing::slots`](rove_ssp::Timing::slots)), if the server answers those.
    Always,
}

/// A task for the driver.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The user wants their local shell: write [`Client::tty_close`](crate::Client::tty_close), restore the terminal, stop the
    /// process group, and once continued write [`Client::tty_open`](crate::Client::tty_open) and call [`Client::resumed`](crate::Client::resumed).
    Suspend,
    /// The terminal has said something of itself, or colours of it are changed for the first time:
    /// [`Client::tty_abandon`](crate::Client::tty_abandon) is another from now on.
    TerminalKnown,
    /// The session is over. Paint once more, then write [`Client::tty_close`](crate::Client::tty_close) and leave.
    Exited(Exit),
}

/// How a session ended at this end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exit {
    /// Why.
    pub cause: Cause,
    /// Both ends know that it is over.
    pub clean: bool,
    /// Whether the server was ever heard.
    pub contact: bool,
    /// The server's address.
    pub server: SocketAddr,
    /// The program's exit status, if the server sent it.
    pub status: Option<i32>,
}
