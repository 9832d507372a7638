//! What the tests share: two small states, two endpoints, and a bad network between them in virtual time.
#![allow(dead_code, clippy::unwrap_used)] // Each test file uses its part; a failure here is a failed test.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use rove_ssp::{
    Announcement, Arrival, BadDiff, Config, ConnId, Deflater, Endpoint, Envelope, Event,
    Instruction, Key, Machine, MoshWire, NativeWire, Outbox, Reject, Rng, Role, SessionSecrets,
    State, StateNum, Time, Timing, Transmit, Wire, fragments,
};

pub const KEY: [u8; 16] = [0x5c; 16];

/// Octets that only grow, as a user stream: the prefix that both ends hold is forgotten.
#[derive(Clone, Debug, Default)]
pub struct Log {
    trimmed: usize,
    bytes: Vec<u8>,
}

impl Log {
    /// Diffs begin with this octet, so that some diffs cannot be read.
    const MARK: u8 = b'+';

    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// All octets there ever were.
    pub fn len(&self) -> usize {
        self.trimmed + self.bytes.len()
    }

    pub fn held(&self) -> usize {
        self.bytes.len()
    }

    /// What came after the first `start` octets.
    pub fn since(&self, start: usize) -> &[u8] {
        &self.bytes[start.saturating_sub(self.trimmed).min(self.bytes.len())..]
    }
}

impl PartialEq for Log {
    fn eq(&self, other: &Log) -> bool {
        let start = self.trimmed.max(other.trimmed);
        self.len() == other.len() && self.since(start) == other.since(start)
    }
}

impl State for Log {
    fn diff_from(&self, base: &Log, out: &mut Vec<u8>) {
        if self.len() > base.len() {
            out.push(Log::MARK);
            out.extend_from_slice(self.since(base.len()));
        }
    }

    fn apply(&mut self, diff: &[u8]) -> Result<(), BadDiff> {
        let (&mark, bytes) = diff.split_first().ok_or(BadDiff("empty"))?;
        if mark != Log::MARK {
            return Err(BadDiff("no log"));
        }
        self.push(bytes);
        Ok(())
    }

    fn towards(&self, base: &Log, octets: usize) -> Option<Log> {
        let end = base.len() + octets;
        let bytes = self.bytes.get(..end - self.trimmed).filter(|_| end < self.len())?.to_vec();
        Some(Log { bytes, trimmed: self.trimmed })
    }

    fn subtract(&mut self, known: &Log) {
        let cut = known.len().saturating_sub(self.trimmed).min(self.bytes.len());
        self.bytes.drain(..cut);
        self.trimmed += cut;
    }

    fn weight(&self) -> usize {
        self.bytes.capacity()
    }
}

/// Cells that are written over, as a screen: it may change back. No diff is an error to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Page(pub Vec<u8>);

impl Default for Page {
    fn default() -> Page {
        Page(vec![b' '; 200])
    }
}

impl Page {
    pub fn write(&mut self, start: usize, text: &[u8]) {
        let start = start % self.0.len();
        for (cell, &byte) in self.0[start..].iter_mut().zip(text) {
            *cell = byte;
        }
    }
}

impl State for Page {
    fn diff_from(&self, base: &Page, out: &mut Vec<u8>) {
        for (index, (new, old)) in self.0.iter().zip(&base.0).enumerate() {
            if new != old {
                out.extend_from_slice(&[index as u8, *new]);
            }
        }
    }

    fn apply(&mut self, diff: &[u8]) -> Result<(), BadDiff> {
        for change in diff.chunks_exact(2) {
            if let Some(cell) = self.0.get_mut(usize::from(change[0])) {
                *cell = change[1];
            }
        }
        Ok(())
    }

    fn weight(&self) -> usize {
        self.0.len()
    }
}

pub type Client = Endpoint<Log, Page>;
pub type Server = Endpoint<Page, Log>;

pub fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

pub fn span(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub fn client_address() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 4000))
}

pub fn server_address() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 2], 60001))
}

pub fn mosh_wire(role: Role) -> MoshWire {
    MoshWire::new(Key::from_bytes(KEY), role)
}

pub fn client(now: Time, timing: Timing) -> Client {
    client_with(now, timing, Box::new(mosh_wire(Role::Client)))
}

pub fn client_with(now: Time, timing: Timing, wire: Box<dyn Wire>) -> Client {
    Endpoint::new(
        now,
        Config {
            role: Role::Client,
            wire,
            timing,
            peer: Some(server_address()),
            local: Log::default(),
            remote: Page::default(),
            seed: 1,
        },
    )
}

pub fn server(now: Time, timing: Timing) -> Server {
    server_with(now, timing, Box::new(mosh_wire(Role::Server)))
}

pub fn server_with(now: Time, timing: Timing, wire: Box<dyn Wire>) -> Server {
    Endpoint::new(
        now,
        Config {
            role: Role::Server,
            wire,
            timing,
            peer: None,
            local: Page::default(),
            remote: Log::default(),
            seed: 2,
        },
    )
}

/// A native wire of the one session that tests have.
pub fn native_wire(role: Role) -> NativeWire {
    NativeWire::new(&SessionSecrets::from_bytes([1; 32], [2; 32], [3; 32]), ConnId::new(7), role)
}

/// The other end of an endpoint, played by hand: seals what it is told, opens what it is sent.
pub struct Hand {
    pub wire: MoshWire,
    address: SocketAddr,
    next_id: u64,
}

impl Hand {
    pub fn new(role: Role) -> Hand {
        let address = match role {
            Role::Client => client_address(),
            Role::Server => server_address(),
        };
        Hand { wire: mosh_wire(role), address, next_id: 1 }
    }

    pub fn arrival(&self) -> Arrival {
        Arrival { from: self.address.into(), congested: false }
    }

    pub fn seal(&mut self, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        self.wire.seal(&Envelope::default(), payload, &mut out).unwrap();
        out
    }

    /// The datagrams of an instruction.
    pub fn datagrams(&mut self, message: &Instruction) -> Vec<Vec<u8>> {
        let mut packed = Vec::new();
        self.wire.pack(message, &mut Deflater::default(), &mut packed);
        self.next_id += 1;
        let mut payload = Vec::new();
        fragments(self.next_id.into(), &packed, 1214)
            .map(|fragment| {
                payload.clear();
                fragment.encode(&mut payload);
                self.seal(&payload)
            })
            .collect()
    }

    pub fn send<M: Machine>(
        &mut self,
        now: Time,
        machine: &mut M,
        message: &Instruction,
    ) -> Result<(), Reject> {
        let arrival = self.arrival();
        self.datagrams(message)
            .iter_mut()
            .try_for_each(|datagram| machine.handle_datagram(now, arrival, datagram))
    }

    /// The instruction in a datagram, if it holds a whole one.
    pub fn read(&mut self, datagram: &[u8]) -> Instruction {
        let mut datagram = datagram.to_vec();
        let (_, range) = self.wire.open(&mut datagram).unwrap();
        let fragment = rove_ssp::Fragment::decode(&datagram[range]).unwrap();
        assert!(fragment.last && fragment.number == 0, "a single fragment");
        self.wire.unpack(fragment.contents).unwrap()
    }
}

pub fn message(old: u64, new: u64, ack: u64, diff: &[u8]) -> Instruction {
    Instruction {
        old: old.into(),
        new: new.into(),
        ack: ack.into(),
        throwaway: StateNum::ZERO,
        diff: diff.to_vec(),
        chaff: Vec::new(),
        announcement: Announcement::NONE,
    }
}

/// Polls a machine as a driver does, and holds it to its contract.
pub fn drain<M: Machine>(now: Time, machine: &mut M) -> Vec<(Transmit, Vec<u8>)> {
    let mut sent = Vec::new();
    let mut out = Outbox::default();
    while let Some(transmit) = machine.poll_transmit(now, &mut out) {
        sent.push((transmit, out.datagram.clone()));
        assert!(sent.len() <= 40_000, "at {now:?} it never stops");
    }
    assert_eq!(machine.poll_timeout(), machine.poll_timeout(), "asking changes nothing");
    if let Some(timeout) = machine.poll_timeout() {
        assert!(timeout > now, "at {now:?} it would wake at {timeout:?}");
    }
    sent
}

/// Sleeps and drains until `end`; all transmits, and when.
pub fn run_until<M: Machine>(end: Time, machine: &mut M) -> Vec<(Time, Transmit, Vec<u8>)> {
    let mut all = Vec::new();
    while let Some(now) = machine.poll_timeout().filter(|&timeout| timeout <= end) {
        let sent = drain(now, machine);
        all.extend(sent.into_iter().map(|(transmit, datagram)| (now, transmit, datagram)));
        assert!(all.len() < 1_000_000);
    }
    all
}

/// What the network does to each datagram, in both directions.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    pub loss_percent: u32,
    pub delay_ms: u32,
    pub jitter_ms: u32,
    pub duplicate_percent: u32,
    pub corrupt_percent: u32,
}

impl Weather {
    pub const CLEAR: Weather = Weather {
        loss_percent: 0,
        delay_ms: 20,
        jitter_ms: 0,
        duplicate_percent: 0,
        corrupt_percent: 0,
    };
}

/// Two endpoints and the network between them.
pub struct World {
    pub now: Time,
    pub client: Client,
    pub server: Server,
    pub weather: Weather,
    pub client_events: Vec<Event>,
    pub server_events: Vec<Event>,
    /// What the server's consumer has read: it looks after every datagram, as a session does.
    pub read: Vec<u8>,
    pub datagrams: u64,
    pub turns: u64,
    /// Where the client's datagrams come from now.
    pub client_from: SocketAddr,
    /// Octets of the longest datagram that arrives; longer ones vanish.
    pub mtu: usize,
    /// Octets of each datagram that either end sent.
    pub sizes: Vec<usize>,
    rng: Rng,
    in_flight: BTreeMap<(Time, u64), (Role, Vec<u8>)>,
    serial: u64,
}

impl World {
    pub fn new(seed: u64, weather: Weather, timing: &Timing) -> World {
        let client = client(Time::ZERO, timing.clone());
        World::between(client, server(Time::ZERO, timing.clone()), seed, weather)
    }

    pub fn native(seed: u64, weather: Weather, timing: &Timing) -> World {
        let wire = |role| Box::new(native_wire(role));
        let client = client_with(Time::ZERO, timing.clone(), wire(Role::Client));
        let server = server_with(Time::ZERO, timing.clone(), wire(Role::Server));
        World::between(client, server, seed, weather)
    }

    pub fn between(client: Client, server: Server, seed: u64, weather: Weather) -> World {
        World {
            now: Time::ZERO,
            client,
            server,
            weather,
            client_events: Vec::new(),
            server_events: Vec::new(),
            read: Vec::new(),
            datagrams: 0,
            turns: 0,
            client_from: client_address(),
            mtu: usize::MAX,
            sizes: Vec::new(),
            rng: Rng::new(seed),
            in_flight: BTreeMap::new(),
            serial: 0,
        }
    }

    /// Lets the world go on until `end`.
    pub fn run(&mut self, end: Time) {
        loop {
            self.drain();
            let arrival = self.in_flight.keys().next().map(|key| key.0);
            let timeouts = [arrival, self.client.poll_timeout(), self.server.poll_timeout()];
            let Some(next) = timeouts.into_iter().flatten().min().filter(|&next| next <= end)
            else {
                break;
            };
            self.now = self.now.max(next);
            while let Some(entry) = self.in_flight.first_entry()
                && entry.key().0 <= self.now
            {
                let (to, mut datagram) = entry.remove();
                self.deliver(to, &mut datagram);
            }
        }
        self.now = end;
    }

    pub fn drain(&mut self) {
        self.turns += 1;
        for (transmit, datagram) in drain(self.now, &mut self.client) {
            assert_eq!(transmit.to, server_address());
            self.carry(Role::Server, datagram);
        }
        for (transmit, datagram) in drain(self.now, &mut self.server) {
            if transmit.to == self.client_from {
                self.carry(Role::Client, datagram);
            }
        }
        self.client_events.extend(std::iter::from_fn(|| self.client.poll_event()));
        self.server_events.extend(std::iter::from_fn(|| self.server.poll_event()));
    }

    fn carry(&mut self, to: Role, datagram: Vec<u8>) {
        self.datagrams += 1;
        self.sizes.push(datagram.len());
        if datagram.len() > self.mtu {
            return;
        }
        let copies = 1 + u32::from(self.chance(self.weather.duplicate_percent));
        for _ in 0..copies {
            if self.chance(self.weather.loss_percent) {
                continue;
            }
            let mut datagram = datagram.clone();
            if self.chance(self.weather.corrupt_percent) {
                let index = self.rng.below(datagram.len() as u32) as usize;
                datagram[index] ^= 1 << self.rng.below(8);
            }
            let delay = self.weather.delay_ms + self.rng.below(self.weather.jitter_ms + 1);
            self.serial += 1;
            let key = (self.now + span(delay.into()), self.serial);
            self.in_flight.insert(key, (to, datagram));
        }
    }

    fn deliver(&mut self, to: Role, datagram: &mut [u8]) {
        let from = |from: SocketAddr| Arrival { from: from.into(), congested: false };
        let _ = match to {
            Role::Client => self.client.handle_datagram(self.now, from(server_address()), datagram),
            Role::Server => self.server.handle_datagram(self.now, from(self.client_from), datagram),
        };
        self.read.extend_from_slice(self.server.remote().since(self.read.len()));
    }

    pub fn chance(&mut self, percent: u32) -> bool {
        self.rng.below(100) < percent
    }

    pub fn below(&mut self, bound: u32) -> u32 {
        self.rng.below(bound)
    }
}
