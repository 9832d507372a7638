//! A session and its clients in virtual time, over paths that lose nothing but where a test says so.

use std::net::SocketAddr;
use std::time::Duration;

use rove_session::client;
use rove_session::server::{self, Config, Full, Joining, Others, Rights};
use rove_session::{Client, LetGo, Peer, Server, ViewerId};
use rove_ssp::{
    Arrival, ConnId, Machine, NativeWire, Outbox, Reject, Role, SessionSecrets, Time, Timing,
};
use rove_term::{Dialect, Size, same};

use crate::common::{client_config, echo, ms, server_address, size};

const DELAY: Duration = ms(20);

/// A client, and what it has painted and heard.
pub struct Seat {
    pub client: Client,
    pub number: u32,
    pub exit: Option<client::Exit>,
    /// Datagrams do not pass.
    pub is_cut: bool,
    /// How many of the client's datagrams are lost once it knows of the end.
    pub last_lost: u32,
}

/// A datagram on its way.
pub struct Flying {
    pub at: Time,
    pub number: u64,
    /// The client; `None`: the server.
    pub to: Option<u32>,
    pub from: SocketAddr,
    pub octets: Vec<u8>,
}

/// A session, and all who ever were in it.
pub struct Room {
    pub now: Time,
    pub server: Server,
    pub seats: Vec<Seat>,
    pub flying: Vec<Flying>,
    pub read: Vec<u8>,
    pub exit: Option<server::Exit>,
    pub sent: u64,
    /// Those of the server.
    pub said: u64,
}

fn wire(number: u32, role: Role) -> Box<NativeWire> {
    let octet = number as u8;
    let secrets = SessionSecrets::from_bytes([octet; 32], [octet + 100; 32], [3; 32]);
    Box::new(NativeWire::new(&secrets, ConnId::new(number + 7), role))
}

pub fn address_of(number: u32) -> SocketAddr {
    format!("198.51.100.{number}:40000").parse().unwrap()
}

impl Room {
    /// A session with its first client, number 1.
    pub fn new(name: Option<&str>) -> Room {
        Room::bounded(name, None)
    }

    /// The same, whose client may be silent for this long.
    pub fn bounded(name: Option<&str>, network_timeout: Option<Duration>) -> Room {
        let config = Config {
            wire: wire(1, Role::Server),
            timing: Timing { final_acks: 4, ..Timing::ROVE },
            peer: Peer::Rove,
            size: Size::DEFAULT,
            claim_wait: server::CLAIM_WAIT,
            network_timeout,
            screen_rate: Some(server::SCREEN_RATE),
            seed: 2,
        };
        let mut server = Server::new(Time::ZERO, config);
        if let Some(name) = name {
            server.keep(name, true);
        }
        let mut room = Room {
            now: Time::ZERO,
            server,
            seats: Vec::new(),
            flying: Vec::new(),
            read: Vec::new(),
            exit: None,
            sent: 0,
            said: 0,
        };
        room.sit(1, size(24, 80));
        room.run(ms(500));
        room
    }

    fn sit(&mut self, number: u32, size: Size) {
        let config = client::Config {
            wire: wire(number, Role::Client),
            timing: Timing::ROVE,
            size,
            ..client_config(Peer::Rove)
        };
        let client = Client::new(self.now, config);
        self.seats.push(Seat { client, number, exit: None, is_cut: false, last_lost: 0 });
    }

    pub fn join(
        &mut self,
        number: u32,
        size: Size,
        rights: Rights,
        others: Others,
    ) -> Result<ViewerId, Full> {
        let joining = Joining {
            wire: wire(number, Role::Server),
            timing: Timing { final_acks: 4, ..Timing::ROVE },
            rights,
            others,
            size_policy: None,
            fill: None,
            screen_rate: Some(server::SCREEN_RATE),
            seed: number.into(),
        };
        let joined = self.server.join(self.now, joining)?;
        self.sit(number, size);
        Ok(joined)
    }

    pub fn seat(&mut self, number: u32) -> &mut Seat {
        self.seats.iter_mut().find(|seat| seat.number == number).unwrap()
    }

    pub fn type_keys(&mut self, number: u32, keys: &[u8]) {
        let now = self.now;
        self.seat(number).client.handle_keys(now, keys);
    }

    /// The text of the bar that a client shows, if it shows one.
    pub fn bar(&mut self, number: u32) -> String {
        self.seat(number).client.shown().unwrap().row_text(0).trim_end().to_owned()
    }

    /// Why the session has ended for a client alone, and because of whom.
    pub fn let_go(&mut self, number: u32) -> (Option<LetGo>, String) {
        let seat = self.seat(number);
        assert!(seat.exit.is_some_and(|exit| exit.clean), "client {number}: {:?}", seat.exit);
        let session = seat.client.view().session().unwrap();
        (session.ended, session.who.clone())
    }

    pub fn run(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            self.turn();
            let arrivals = self.flying.iter().map(|it| it.at);
            let clients = self.seats.iter().filter_map(|seat| seat.client.poll_timeout());
            let next = arrivals.chain(clients).chain(self.server.poll_timeout()).min();
            let Some(next) = next.filter(|&next| next <= end) else { break };
            self.now = next.max(self.now);
            self.arrive();
        }
        self.now = end;
        self.turn();
    }

    fn turn(&mut self) {
        let mut out = Outbox::default();
        let mut typed = Vec::new();
        loop {
            self.server.poll_input(&mut typed);
            if typed.is_empty() {
                break;
            }
            self.read.extend(&typed);
            self.server.handle_output(self.now, &echo(&typed));
        }
        while let Some(transmit) = self.server.poll_transmit(self.now, &mut out) {
            self.sent += 1;
            self.said += 1;
            let to = self.seats.iter().find(|seat| transmit.to == address_of(seat.number));
            if let Some(seat) = to.filter(|seat| !seat.is_cut) {
                let at = self.now + DELAY;
                let datagram = out.datagram.to_vec();
                let (number, to, from) = (self.sent, Some(seat.number), server_address());
                self.flying.push(Flying { at, number, to, from, octets: datagram });
            }
        }
        let due = self.server.poll_timeout();
        assert!(due.is_none_or(|due| due > self.now), "drained, and due at {due:?}");
        while let Some(event) = self.server.poll_event() {
            if let server::Event::Exited(exit) = event {
                assert_eq!(self.exit.replace(exit), None, "a session ends once");
            }
        }
        for seat in &mut self.seats {
            while seat.client.poll_transmit(self.now, &mut out).is_some() {
                self.sent += 1;
                if seat.last_lost > 0 && seat.client.endpoint().closing() {
                    seat.last_lost -= 1;
                } else if !seat.is_cut {
                    let (at, from) = (self.now + DELAY, address_of(seat.number));
                    let octets = out.datagram.to_vec();
                    self.flying.push(Flying { at, number: self.sent, to: None, from, octets });
                }
            }
            seat.client.poll_paint(self.now, &mut Vec::new());
            while let Some(event) = seat.client.poll_event() {
                if let client::Event::Exited(exit) = event {
                    seat.exit = Some(exit);
                }
            }
        }
    }

    fn arrive(&mut self) {
        self.flying.sort_by_key(|it| (it.at, it.number));
        while self.flying.first().is_some_and(|it| it.at <= self.now) {
            let Flying { to, from, octets: mut datagram, .. } = self.flying.remove(0);
            let arrival = Arrival { from: from.into(), congested: false };
            let taken = match to {
                None => self.server.handle_datagram(self.now, arrival, &mut datagram),
                Some(number) => {
                    let now = self.now;
                    self.seat(number).client.handle_datagram(now, arrival, &mut datagram)
                }
            };
            assert!(matches!(taken, Ok(()) | Err(Reject::Foreign | Reject::Ended)), "{taken:?}");
        }
    }

    pub fn check_screens(&self, numbers: &[u32]) {
        for seat in self.seats.iter().filter(|seat| numbers.contains(&seat.number)) {
            let (shown, wanted) = (seat.client.view().screen(), self.server.screen());
            let equal = same(shown, wanted, &Dialect::ROVE);
            assert!(equal, "client {}\n{:#?}\n{:#?}", seat.number, shown.text(), wanted.text());
        }
    }
}
