//! A client with the terminal that a user looks at, and a server for a program. The callers
//! ([`replay`](super::replay), [`live`](super::live)) decide what is typed and run.

use std::net::SocketAddr;

use rove_session::client::Obscure;
use rove_session::predict::Settings;
use rove_session::{Client, Peer, Server, client, server};
use rove_ssp::{Key, MoshWire, Role, Time, Timing};
use rove_term::{Dialect, Screen, Size, Terminal, Width};

use crate::experiments::sender::{Desk, Sender};

/// A client, and the terminal that it writes to.
pub(crate) struct Seat {
    /// The client.
    pub client: Client,
    /// The user's screen.
    pub tty: Terminal,
}

impl Seat {
    /// A session with the server at this address.
    pub(crate) fn new(size: Size, settings: Settings, server: SocketAddr) -> Self {
        Self::with(size, settings, server, Obscure::Never)
    }

    /// The same, and a listener is kept from learning this.
    pub(crate) fn with(
        size: Size,
        settings: Settings,
        server: SocketAddr,
        obscure: Obscure,
    ) -> Self {
        let sender = Sender { peer: Peer::Rove, obscure, ..Sender::stock() };
        let (tty, window) = (Dialect::ROVE, client::TtyScreen::Main);
        let desk = Desk { size, tty, window, title_prefix: "" };
        let mut client = sender.client(Time::ZERO, wire(Role::Client), server, desk, 1);
        client.predict(settings);
        let mut tty = Terminal::new(size, Dialect::ROVE);
        tty.advance(&client.tty_open());
        Self { client, tty }
    }

    /// Brings the terminal up to date; whether anything was written to it.
    pub(crate) fn paint(&mut self, now: Time) -> bool {
        let mut out = Vec::new();
        let painted = self.client.poll_paint(now, &mut out);
        if painted {
            self.tty.advance(&out);
        }
        painted
    }
}

/// A server with this screen, whose screens use at most `screen_rate` bits a second.
pub(crate) fn server(size: Size, screen_rate: Option<u64>) -> Server {
    let config = server::Config {
        wire: wire(Role::Server),
        timing: Timing::MOSH,
        peer: Peer::Rove,
        size,
        claim_wait: server::CLAIM_WAIT,
        network_timeout: None,
        screen_rate,
        seed: 2,
    };
    Server::new(Time::ZERO, config)
}

fn wire(role: Role) -> Box<MoshWire> {
    Box::new(MoshWire::new(Key::from_bytes([4; Key::BYTES]), role))
}

/// The grapheme in a cell; empty outside of the screen, and in the right half of a wide one.
pub(crate) fn text(screen: &Screen, row: u16, col: u16) -> String {
    let mut text = String::new();
    if let Some(cell) = screen.cell(row, col).filter(|cell| cell.width() != Width::Tail) {
        screen.pool().push_text(cell, &mut text);
    }
    text
}
