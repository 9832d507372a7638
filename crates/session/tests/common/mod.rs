//! A client and a server in virtual time over a simple channel: what the driver does, without a driver.
#![allow(dead_code)] // Each test file uses a part.

use std::net::SocketAddr;
use std::time::Duration;

use rove_session::client::{self, TtyScreen};
use rove_session::{Client, Escape, Peer, Server, server};
use rove_ssp::{
    Arrival, ConnId, Key, Machine, MoshWire, NativeWire, Outbox, Rng, Role, SessionSecrets, Time,
    Timing,
};
use rove_term::{Dialect, Screen, Size, Terminal};

/// The two ends, what lies between them, and what is attached to them.
pub struct Pair {
    pub now: Time,
    pub client: Client,
    pub server: Server,
    /// The user's terminal.
    pub tty: Terminal,
    /// Octets painted on it.
    pub painted: Vec<u8>,
    /// What the program at the pty does with what it reads.
    pub program: fn(&[u8]) -> Vec<u8>,
    /// All that the program has read.
    pub typed: Vec<u8>,
    /// All datagrams that went out: when, to whom, and how long.
    pub flown: Vec<(Time, Role, usize)>,
    pub client_events: Vec<client::Event>,
    pub server_events: Vec<server::Event>,
    pub link: Link,
    /// Replaces `link` on the way to the server.
    pub up: Option<Link>,
    /// What the client sends waits, and arrives in bursts so far apart.
    pub bursts: Option<Duration>,
    /// Datagrams on their way: arrival, order, to whom.
    flying: Vec<(Time, u64, Role, Vec<u8>)>,
    sent: u64,
    rng: Rng,
}

/// The way between them, the same in both directions.
#[derive(Clone, Copy)]
pub struct Link {
    pub delay: Duration,
    /// Lost datagrams, in percent.
    pub loss: u32,
    /// Added delay, uniform from zero.
    pub jitter: Duration,
}

pub const GOOD: Link = Link { delay: ms(10), loss: 0, jitter: ms(0) };
pub const BAD: Link = Link { delay: ms(100), loss: 30, jitter: ms(150) };
pub const DEAD: Link = Link { delay: ms(0), loss: 100, jitter: ms(0) };

pub const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub fn size(rows: u16, cols: u16) -> Size {
    Size::new(rows, cols).unwrap()
}

pub fn client_config(peer: Peer) -> client::Config {
    client::Config {
        wire: Box::new(MoshWire::new(key(), Role::Client)),
        timing: Timing::MOSH,
        server: server_address(),
        peer,
        size: size(24, 80),
        tty: Dialect::tty("xterm-256color", "truecolor"),
        window: TtyScreen::Alternate,
        escape: Escape::Default,
        name: "rove",
        title_prefix: "[rove] ".to_owned(),
        obscure: client::Obscure::Secrets,
        history_lines: rove_session::past::LINES_MAX,
        seed: 1,
    }
}

pub fn server_config(peer: Peer) -> server::Config {
    server::Config {
        wire: Box::new(MoshWire::new(key(), Role::Server)),
        timing: Timing::MOSH,
        peer,
        size: Size::DEFAULT,
        claim_wait: server::CLAIM_WAIT,
        network_timeout: None,
        screen_rate: Some(server::SCREEN_RATE),
        seed: 2,
    }
}

fn key() -> Key {
    Key::from_bytes([7; Key::BYTES])
}

pub fn server_address() -> SocketAddr {
    "192.0.2.1:60001".parse().unwrap()
}

pub fn client_address() -> SocketAddr {
    "198.51.100.1:40000".parse().unwrap()
}

/// Echoes as a terminal in cooked mode and `cat` without its output would.
pub fn echo(typed: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for &octet in typed {
        match octet {
            b'\r' => out.extend(b"\r\n"),
            _ => out.push(octet),
        }
    }
    out
}

impl Pair {
    pub fn new(link: Link) -> Self {
        Self::with(link, client_config(Peer::Stock), server_config(Peer::Stock))
    }

    pub fn with(link: Link, client: client::Config, server: server::Config) -> Self {
        let size = client.size;
        let client = Client::new(Time::ZERO, client);
        let mut tty = Terminal::new(size, Dialect::ROVE);
        tty.advance(&client.tty_open());
        Self {
            now: Time::ZERO,
            client,
            server: Server::new(Time::ZERO, server),
            tty,
            painted: Vec::new(),
            program: echo,
            typed: Vec::new(),
            flown: Vec::new(),
            client_events: Vec::new(),
            server_events: Vec::new(),
            link,
            up: None,
            bursts: None,
            flying: Vec::new(),
            sent: 0,
            rng: Rng::new(17),
        }
    }

    /// Lets `span` pass.
    pub fn run(&mut self, span: Duration) -> &mut Self {
        let end = self.now + span;
        let mut turns = 0;
        loop {
            self.turn();
            turns += 1;
            assert!(turns < 1_000_000, "busy loop at {:?}", self.now);
            let arrival = self.flying.iter().map(|datagram| datagram.0).min();
            let next = [arrival, self.client.poll_timeout(), self.server.poll_timeout()];
            let Some(next) = next.into_iter().flatten().min().filter(|&next| next <= end) else {
                self.now = end;
                self.turn();
                return self;
            };
            self.now = next.max(self.now);
            self.arrive();
        }
    }

    pub fn run_ms(&mut self, span: u64) -> &mut Self {
        self.run(ms(span))
    }

    pub fn keys(&mut self, octets: &[u8]) -> &mut Self {
        self.client.handle_keys(self.now, octets);
        self
    }

    pub fn output(&mut self, octets: &[u8]) -> &mut Self {
        self.server.handle_output(self.now, octets);
        self
    }

    pub fn resize(&mut self, size: Size) -> &mut Self {
        self.client.handle_resize(self.now, size);
        self.tty.resize(size);
        self
    }

    /// The text of the user's terminal, without the blank rows at its end.
    pub fn text(&self) -> Vec<String> {
        trimmed(self.tty.screen())
    }

    pub fn top(&self) -> String {
        self.tty.screen().row_text(0)
    }

    pub fn client_exit(&self) -> Option<client::Exit> {
        self.client_events.iter().find_map(|event| match event {
            client::Event::Exited(exit) => Some(*exit),
            _ => None,
        })
    }

    pub fn server_exit(&self) -> Option<server::Exit> {
        self.server_events.iter().find_map(|event| match event {
            server::Event::Exited(exit) => Some(*exit),
            _ => None,
        })
    }

    pub fn sizes(&self) -> Vec<Size> {
        let size = |event: &server::Event| match event {
            server::Event::Resize(size) => Some(*size),
            _ => None,
        };
        self.server_events.iter().filter_map(size).collect()
    }

    /// Does what is to be done now, as a driver would, and checks what a driver relies on.
    fn turn(&mut self) {
        let mut octets = Vec::new();
        loop {
            self.server.poll_input(&mut octets);
            if octets.is_empty() {
                break;
            }
            self.typed.extend(&octets);
            let output = (self.program)(&octets);
            self.server.handle_output(self.now, &output);
        }
        let mut out = Outbox::default();
        while let Some(transmit) = self.client.poll_transmit(self.now, &mut out) {
            assert_eq!(transmit.to, server_address());
            self.fly(Role::Server, &out.datagram);
        }
        while let Some(transmit) = self.server.poll_transmit(self.now, &mut out) {
            assert_eq!(transmit.to, client_address());
            self.fly(Role::Client, &out.datagram);
        }
        let mut out = Vec::new();
        let painted = self.client.poll_paint(self.now, &mut out);
        assert_eq!(painted, !out.is_empty());
        self.tty.advance(&out);
        self.painted.append(&mut out);
        self.client_events.extend(std::iter::from_fn(|| self.client.poll_event()));
        self.server_events.extend(std::iter::from_fn(|| self.server.poll_event()));
        for (who, timeout) in
            [("client", self.client.poll_timeout()), ("server", self.server.poll_timeout())]
        {
            assert!(timeout.is_none_or(|time| time > self.now), "{who}: {timeout:?}");
        }
    }

    fn fly(&mut self, to: Role, datagram: &[u8]) {
        self.flown.push((self.now, to, datagram.len()));
        let link = self.up.filter(|_| to == Role::Server).unwrap_or(self.link);
        if self.rng.below(100) < link.loss {
            return;
        }
        let jitter = self.rng.below(link.jitter.as_micros() as u32 + 1);
        let mut arrival = self.now + link.delay + Duration::from_micros(jitter.into());
        if let Some(bursts) = self.bursts.filter(|_| to == Role::Server) {
            let bursts = bursts.as_micros() as u64;
            arrival = Time::from_micros(arrival.as_micros().next_multiple_of(bursts));
        }
        self.sent += 1;
        self.flying.push((arrival, self.sent, to, datagram.to_vec()));
    }

    fn arrive(&mut self) {
        self.flying.sort_by_key(|datagram| (datagram.0, datagram.1));
        while self.flying.first().is_some_and(|datagram| datagram.0 <= self.now) {
            let (_, _, to, mut datagram) = self.flying.remove(0);
            let before = self.client.view().echo_ack();
            let (from, machine): (_, &mut dyn Machine) = match to {
                Role::Client => (server_address(), &mut self.client),
                Role::Server => (client_address(), &mut self.server),
            };
            // A datagram that comes after the end is refused, and that is all.
            let _ = machine.handle_datagram(
                self.now,
                Arrival { from: from.into(), congested: false },
                &mut datagram,
            );
            assert!(self.client.view().echo_ack() >= before, "the echo ack fell");
        }
    }
}

/// Two roves on their own wire.
pub fn native(link: Link) -> Pair {
    native_in(link, TtyScreen::Alternate)
}

/// The same on this screen of the user's terminal.
pub fn native_in(link: Link, window: TtyScreen) -> Pair {
    let secrets = SessionSecrets::from_bytes([1; 32], [2; 32], [3; 32]);
    let wire = |role| Box::new(NativeWire::new(&secrets, ConnId::new(7), role));
    let timing = Timing::ROVE;
    let client = client_config(Peer::Rove);
    let client =
        client::Config { wire: wire(Role::Client), timing: timing.clone(), window, ..client };
    let server = server_config(Peer::Rove);
    Pair::with(link, client, server::Config { wire: wire(Role::Server), timing, ..server })
}

/// The text of a screen without the blank rows at its end.
pub fn trimmed(screen: &Screen) -> Vec<String> {
    let mut text = screen.text();
    while text.last().is_some_and(String::is_empty) {
        text.pop();
    }
    text
}
