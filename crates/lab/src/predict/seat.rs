//! A client with the terminal that a user looks at, and a server for a program. The callers
//! ([`replay`](super::replay), [`live`](super::live)) decide what is typed and run.

use std::net::SocketAddr;

use rove_session::client::Obscure;
use rove_session::predict::Settings;
use rove_session::{Client, Peer, Server, client, server};
use rove_ssp::{
    ConnId, Key, MoshWire, NativeWire, Role, SessionSecrets, SlotTiming, Time, Timing, Wire,
};
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

    /// The same, and a listener is kept from learning this: with slots, for a server with [slots](server_with_slots).
    pub(crate) fn with(
        size: Size,
        settings: Settings,
        server: SocketAddr,
        obscure: Obscure,
    ) -> Self {
        let slots = (obscure == Obscure::Always).then_some(SlotTiming::ROVE);
        let (wire, timing) = match slots {
            None => (mosh(Role::Client), Timing::MOSH),
            Some(slots) => (native(Role::Client), Timing { slots: Some(slots), ..Timing::ROVE }),
        };
        let sender = Sender { peer: Peer::Rove, obscure, client: timing, ..Sender::stock() };
        let (tty, window) = (Dialect::ROVE, client::TtyScreen::Main);
        let desk = Desk { size, tty, window, title_prefix: "" };
        let mut client = sender.client(Time::ZERO, wire, server, desk, 1);
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
    server_by(mosh(Role::Server), Timing::MOSH, size, screen_rate)
}

/// The same for a client that types in slots.
pub(crate) fn server_with_slots(size: Size, screen_rate: Option<u64>) -> Server {
    let timing = Timing { answers_slots: true, ..Timing::ROVE };
    server_by(native(Role::Server), timing, size, screen_rate)
}

fn server_by(wire: Box<dyn Wire>, timing: Timing, size: Size, screen_rate: Option<u64>) -> Server {
    let config = server::Config {
        wire,
        timing,
        peer: Peer::Rove,
        size,
        claim_wait: server::CLAIM_WAIT,
        network_timeout: None,
        screen_rate,
        seed: 2,
    };
    Server::new(Time::ZERO, config)
}

fn mosh(role: Role) -> Box<dyn Wire> {
    Box::new(MoshWire::new(Key::from_bytes([4; Key::BYTES]), role))
}

fn native(role: Role) -> Box<dyn Wire> {
    let secrets = SessionSecrets::from_bytes([1; 32], [2; 32], [3; 32]);
    Box::new(NativeWire::new(&secrets, ConnId::new(7), role))
}

/// The grapheme in a cell; empty outside of the screen, and in the right half of a wide one.
pub(crate) fn text(screen: &Screen, row: u16, col: u16) -> String {
    let mut text = String::new();
    if let Some(cell) = screen.cell(row, col).filter(|cell| cell.width() != Width::Tail) {
        screen.pool().push_text(cell, &mut text);
    }
    text
}
