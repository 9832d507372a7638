//! The two ends of a session in the lab's world: a user at a client's terminal, and a program under a server. The
//! callers ([`replay`](super::replay), [`live`](super::live)) decide what they type and run.

use std::net::SocketAddr;

use rove_session::predict::Settings;
use rove_session::{Client, Escape, Peer, Server, client, server};
use rove_ssp::{Key, Machine, MoshWire, Role, Time, Timing};
use rove_term::{Dialect, Screen, Size, Terminal, Width};

use crate::world::{Fault, Node};

/// Someone before a client.
pub(crate) trait Person {
    /// The user's terminal.
    fn seat(&mut self) -> &mut Seat;
    /// Types the keys that are due.
    fn act(&mut self, now: Time);
    /// Looks at the terminal, after all that happened at once.
    fn look(&mut self, now: Time);
    /// When they type next, if that is known.
    fn wake(&self) -> Option<Time>;
}

/// A program under a server.
pub(crate) trait Host {
    /// The terminal of the program.
    fn server(&mut self) -> &mut Server;
    /// Takes typed keys, and writes the output that is due.
    ///
    /// # Errors
    /// A broken invariant.
    fn act(&mut self, now: Time) -> Result<(), Fault>;
    /// Looks at the datagrams, after all events of one instant.
    fn settle(&mut self, _now: Time) {}
    /// When it does something next, if that is known.
    fn wake(&self) -> Option<Time>;
}

/// A node of the world.
pub(crate) enum End<P, H> {
    /// The near end.
    Person(Box<P>),
    /// The far end.
    Host(Box<H>),
}

impl<P, H> End<P, H> {
    /// The person, where there is one.
    pub(crate) fn person(&mut self) -> &mut P {
        match self {
            Self::Person(person) => person,
            Self::Host(_) => unreachable!("this node is the host"),
        }
    }

    /// The host, where there is one.
    pub(crate) fn host(&mut self) -> &mut H {
        match self {
            Self::Host(host) => host,
            Self::Person(_) => unreachable!("this node is the person"),
        }
    }
}

impl<P: Person, H: Host> Node for End<P, H> {
    fn machine(&mut self) -> &mut dyn Machine {
        match self {
            Self::Person(person) => &mut person.seat().client,
            Self::Host(host) => host.server(),
        }
    }

    fn turn(&mut self, now: Time) -> Result<(), Fault> {
        match self {
            Self::Person(person) => person.act(now),
            Self::Host(host) => host.act(now)?,
        }
        Ok(())
    }

    fn settle(&mut self, now: Time) -> Result<(), Fault> {
        match self {
            Self::Person(person) => person.look(now),
            Self::Host(host) => host.settle(now),
        }
        Ok(())
    }

    fn wake(&self) -> Option<Time> {
        match self {
            Self::Person(person) => person.wake(),
            Self::Host(host) => host.wake(),
        }
    }
}

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
        let config = client::Config {
            wire: wire(Role::Client),
            timing: Timing::MOSH,
            server,
            peer: Peer::Rove,
            size,
            tty: Dialect::ROVE,
            window: client::TtyScreen::Main,
            escape: Escape::default(),
            name: "rove",
            title_prefix: String::new(),
            seed: 1,
        };
        let mut client = Client::new(Time::ZERO, config);
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
