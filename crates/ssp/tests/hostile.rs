//! Enemies: without the key, with old datagrams, and with the key (`threats.md` rows 10 to 13 and 15).
//! The session must hold still, keep its limits, and go on afterwards.
#![allow(clippy::unwrap_used)] // In helpers, too: a failure here is a failed test.

mod common;

use std::collections::HashSet;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

use common::{
    Client, Hand, Page, Server, Weather, World, client_address, drain, message, mosh_wire, ms,
    server_address,
};
use rove_ssp::{
    ASSEMBLY_BYTES_MAX, Announcement, Arrival, BadDiff, Config, Deflater, Endpoint, Envelope,
    Event, Exhausted, Fragment, Header, Instruction, Key, MESSAGE_BYTES_MAX, Machine, MoshWire,
    Outbox, Reject, Report, Rng, Role, Seq, Session, State, StateNum, Stats, Time, Timing, Usage,
    Wire,
};

/// How often each enemy tries.
const TRIES: u64 = 1_000_000;
/// How much the process may grow meanwhile: the allocator keeps what the few largest messages took.
const GROWTH_BYTES_MAX: u64 = 16 << 20;

/// The resident set, in octets.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

fn assert_within_limits(held: Usage) {
    assert_within(&Timing::MOSH, held);
}

fn assert_within(timing: &Timing, held: Usage) {
    let Usage { sent_states, received_states, received_bytes, assembly_bytes, events } = held;
    assert!(sent_states <= timing.sent_states_max);
    assert!(received_states <= timing.received_states_max + 1);
    assert!(received_bytes <= 2 * timing.received_bytes_max);
    assert!(assembly_bytes <= ASSEMBLY_BYTES_MAX);
    assert!(events <= 5);
}

/// Everything about an endpoint that an enemy could want to change.
#[derive(Debug, PartialEq)]
struct Standing<R> {
    remote: R,
    nums: [StateNum; 3],
    heard: Option<Time>,
    peer: Option<SocketAddr>,
    srtt: Duration,
    samples: u64,
    timeout: Option<Time>,
    held: Usage,
    stats: Stats,
}

fn standing<L: State, R: State>(endpoint: &Endpoint<L, R>) -> Standing<R> {
    let mut stats = endpoint.stats().clone();
    stats.rejected = Default::default();
    Standing {
        remote: endpoint.remote().clone(),
        nums: [endpoint.remote_num(), endpoint.sent_num(), endpoint.acked()],
        heard: endpoint.last_heard(),
        peer: endpoint.peer(),
        srtt: endpoint.rtt().srtt(),
        samples: endpoint.rtt().samples(),
        timeout: endpoint.poll_timeout(),
        held: endpoint.held(),
        stats,
    }
}

/// Genuine datagrams of both directions, of this session and of another with another key.
struct Loot {
    genuine: Vec<Vec<u8>>,
    known: HashSet<Vec<u8>>,
    rng: Rng,
}

impl Loot {
    fn new() -> Loot {
        let mut rng = Rng::new(17);
        let mut genuine = Vec::new();
        for (role, key) in [
            (Role::Client, common::KEY),
            (Role::Server, common::KEY),
            (Role::Client, [1; 16]),
            (Role::Server, [1; 16]),
        ] {
            let mut wire = MoshWire::new(Key::from_bytes(key), role);
            for _ in 0..100 {
                let (mut payload, mut out) = (Vec::new(), Vec::new());
                let size = rng.below(200) as usize * if rng.below(8) == 0 { 6 } else { 1 };
                rng.fill(size, &mut payload);
                wire.seal(&Envelope::default(), &payload, &mut out).unwrap();
                genuine.push(out);
            }
        }
        let known = genuine.iter().cloned().collect();
        Loot { genuine, known, rng }
    }

    fn pick(&mut self) -> Vec<u8> {
        let count = self.genuine.len() as u32;
        self.genuine[self.rng.below(count) as usize].clone()
    }

    /// A datagram that no peer of this session has sealed for this end.
    fn forgery(&mut self) -> Vec<u8> {
        loop {
            let made = self.make();
            if !self.known.contains(&made) {
                return made;
            }
        }
    }

    fn make(&mut self) -> Vec<u8> {
        let mut made = self.pick();
        match self.rng.below(6) {
            0 => {
                for _ in 0..=self.rng.below(8) {
                    let index = self.rng.below(made.len() as u32) as usize;
                    made[index] ^= 1 << self.rng.below(8);
                }
            }
            1 => made.truncate(self.rng.below(made.len() as u32) as usize),
            2 => {
                let extra = 1 + self.rng.below(40) as usize;
                self.rng.fill(extra, &mut made);
            }
            3 => {
                let other = self.pick();
                let cut = self.rng.below(made.len().min(other.len()) as u32) as usize;
                made.truncate(cut);
                made.extend_from_slice(&other[cut..]);
            }
            4 => {
                // Another number on the same seal.
                let number = self.rng.below(200) as u64 | u64::from(self.rng.below(2)) << 63;
                made[..8].copy_from_slice(&number.to_be_bytes());
            }
            _ => {
                let size = self.rng.below(2100) as usize;
                made.clear();
                self.rng.fill(size, &mut made);
            }
        }
        made
    }
}

fn arrival(port: u16) -> Arrival {
    Arrival { from: SocketAddr::from(([192, 0, 2, 66], port)), congested: port.is_multiple_of(2) }
}

#[test]
fn forgeries_change_nothing() {
    let mut world = World::new(1, Weather::CLEAR, &Timing::MOSH);
    world.client.update(ms(0), |log| log.push(b"hello"));
    world.server.update(ms(0), |page| page.write(0, b"hello"));
    world.run(ms(5000));
    let now = world.now;
    let (mut client, mut server) = (world.client, world.server);
    let before = (standing(&client), standing(&server));
    let rejected = client.stats().rejected.total() + server.stats().rejected.total();

    let mut loot = Loot::new();
    let grown = resident();
    let mut out = Outbox::default();
    for turn in 0..TRIES {
        let mut datagram = loot.forgery();
        let taken = match turn % 2 {
            0 => client.handle_datagram(now, arrival(turn as u16), &mut datagram),
            _ => server.handle_datagram(now, arrival(turn as u16), &mut datagram),
        };
        assert!(taken.is_err(), "turn {turn}");
        if turn % 1024 == 0 {
            assert_eq!(client.poll_transmit(now, &mut out), None);
            assert_eq!(server.poll_transmit(now, &mut out), None);
        }
    }
    assert!((standing(&client), standing(&server)) == before, "nothing has changed");
    let total = client.stats().rejected.total() + server.stats().rejected.total();
    assert_eq!(total - rejected, TRIES, "all are counted");
    assert!(resident() - grown.min(resident()) < GROWTH_BYTES_MAX);
}

#[test]
fn reflections_and_other_sessions_change_nothing() {
    let mut server = common::server(ms(0), Timing::MOSH);
    let before = standing(&server);
    let loot = Loot::new();
    for (index, genuine) in loot.genuine.iter().enumerate() {
        // The first hundred are this session's, from the client: they are no forgeries.
        let expect = match index / 100 {
            0 => continue,
            1 | 3 => Reject::Reflected,
            _ => Reject::Forged,
        };
        let taken = server.handle_datagram(ms(1), arrival(1), &mut genuine.clone());
        assert_eq!(taken, Err(expect), "datagram {index}");
    }
    assert!(standing(&server) == before);
}

/// Row 15: whoever cannot seal gets no answer at all, so there is nothing to reflect at others.
#[test]
fn strangers_get_no_answer() {
    let mut server = common::server(ms(0), Timing::MOSH);
    let mut loot = Loot::new();
    for turn in 0..TRIES {
        let now = ms(turn / 10);
        assert!(server.handle_datagram(now, arrival(1), &mut loot.forgery()).is_err());
        if turn % 64 == 0 {
            server.update(now, |page| page.write(turn as usize, b"x"));
            assert_eq!(drain(now, &mut server), []);
            assert_eq!((server.peer(), server.poll_timeout()), (None, None));
        }
    }
    assert_eq!(server.stats().sent.datagrams, 0);
}

/// Row 13: nothing old is applied twice, moves the address, or measures the path.
#[test]
fn replays_change_nothing() {
    let mut server = common::server(ms(0), Timing::MOSH);
    let mut hand = Hand::new(Role::Client);
    let mut rng = Rng::new(13);
    let mut recorded: Vec<Vec<u8>> = Vec::new();
    let mut typed = Vec::new();
    let mut read = Vec::new();
    let mut ack = 0;
    let mut out = Outbox::default();
    for round in 0..1000 {
        let now = ms(round * 30);
        typed.push(round as u8);
        let text = [b'+', round as u8];
        // The oldest state that replayed diffs start from is held for long.
        let mut honest = message(round, round + 1, ack, &text);
        honest.throwaway = round.saturating_sub(500).into();
        for mut datagram in hand.datagrams(&honest) {
            recorded.push(datagram.clone());
            server.handle_datagram(now, hand.arrival(), &mut datagram).unwrap();
        }
        read.extend_from_slice(server.remote().since(read.len()));
        let (samples, peer) = (server.rtt().samples(), server.peer());
        let (num, timeout) = (server.remote_num(), server.poll_timeout());
        for turn in 0..TRIES / 1000 {
            let pick = rng.below(recorded.len() as u32) as usize;
            let mut replayed = recorded[pick].clone();
            let _ = server.handle_datagram(now, arrival(turn as u16), &mut replayed);
        }
        assert_eq!((server.rtt().samples(), server.peer()), (samples, peer));
        assert_eq!((server.remote_num(), server.poll_timeout()), (num, timeout));
        while server.poll_transmit(now, &mut out).is_some() {
            ack = hand.read(&out.datagram).new.get();
        }
    }
    assert_eq!(read, typed);
    assert_eq!(server.stats().roams, 0);
    assert_eq!(server.stats().states_received, 1000);
    assert_eq!(server.stats().late, TRIES);
    assert_within_limits(server.held());
}

/// A zlib stream of stored blocks (RFC 1950, RFC 1951 §3.2.4): no compressor needed.
fn stored(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0x78, 0x01];
    let mut chunks = bytes.chunks(65_535).peekable();
    if chunks.peek().is_none() {
        out.extend_from_slice(&[1, 0, 0, 255, 255]);
    }
    while let Some(chunk) = chunks.next() {
        let len = chunk.len() as u16;
        out.push(u8::from(chunks.peek().is_none()));
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&(!len).to_le_bytes());
        out.extend_from_slice(chunk);
    }
    let (mut low, mut high) = (1u32, 0u32);
    for &byte in bytes {
        low = (low + u32::from(byte)) % 65_521;
        high = (high + low) % 65_521;
    }
    out.extend_from_slice(&(high << 16 | low).to_be_bytes());
    out
}

/// A peer that holds the key and means harm: each payload is sealed, and wrong somewhere inside.
struct Traitor {
    hand: Hand,
    rng: Rng,
    payload: Vec<u8>,
}

impl Traitor {
    fn number(&mut self, near: u64) -> StateNum {
        StateNum::from(match self.rng.below(8) {
            0 => 0,
            1 => u64::MAX - u64::from(self.rng.below(2)),
            2 => self.rng.bits(),
            _ => near.saturating_add(self.rng.below(6).into()).saturating_sub(3),
        })
    }

    fn mutate(&mut self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let index = self.rng.below(bytes.len() as u32) as usize;
        match self.rng.below(4) {
            0 => bytes.truncate(index),
            1 => bytes.insert(index, self.rng.bits() as u8),
            _ => bytes[index] ^= 1 << self.rng.below(8),
        }
    }

    /// The next payload, aimed at a peer whose newest state has this number.
    fn payload(&mut self, near: u64) -> Vec<u8> {
        let mut diff = Vec::new();
        let diff_bytes = self.rng.below(60) as usize;
        self.rng.fill(diff_bytes, &mut diff);
        let message = Instruction {
            old: self.number(near),
            new: self.number(near.saturating_add(2)),
            ack: self.number(1),
            throwaway: self.number(near),
            diff,
            chaff: Vec::new(),
            announcement: [Announcement::NONE, Announcement::ASKS, Announcement::KNOWS]
                [self.rng.below(3) as usize],
        };
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        let layer = self.rng.below(5);
        if layer == 0 {
            self.mutate(&mut bytes);
        }
        let mut packed = stored(&bytes);
        if layer == 1 {
            self.mutate(&mut packed);
        }
        // Few ids, so that fragments meet; far from those of honest instructions.
        let id = 1 << 40 | u64::from(self.rng.below(4));
        let (number, last) = match layer {
            2 => ((self.rng.bits() as u16) >> (1 + self.rng.below(15)), self.rng.below(2) == 0),
            _ => (0, true),
        };
        let mut payload = std::mem::take(&mut self.payload);
        payload.clear();
        Fragment { id: id.into(), number, last, contents: &packed }.encode(&mut payload);
        if layer == 3 {
            self.mutate(&mut payload);
        }
        payload
    }

    fn attack<L: State, R: State>(&mut self, now: Time, victim: &mut Endpoint<L, R>) {
        let payload = self.payload(victim.remote_num().get());
        let mut datagram = self.hand.seal(&payload);
        self.payload = payload;
        let _ = victim.handle_datagram(now, self.hand.arrival(), &mut datagram);
    }
}

/// Attacks victims, each as long as it lives, and checks now and then that an honest instruction still
/// gets through. Returns how many victims there were and how often one recovered.
fn betray<L: State, R: State>(
    role: Role,
    tries: u64,
    fresh: impl Fn(Time) -> Endpoint<L, R>,
    honest: &[u8],
) -> (u64, u64) {
    let traitor = || Traitor { hand: Hand::new(role), rng: Rng::new(99), payload: Vec::new() };
    let mut traitor = traitor();
    let mut victim = fresh(ms(0));
    let (mut victims, mut recoveries) = (1, 0);
    let mut out = Outbox::default();
    for turn in 0..tries {
        let now = ms(turn);
        traitor.attack(now, &mut victim);
        if turn % 16 != 0 {
            continue;
        }
        while victim.poll_transmit(now, &mut out).is_some() {}
        let over = std::iter::from_fn(|| victim.poll_event())
            .any(|event| matches!(event, Event::Closed { .. } | Event::BadRemote(_)));
        if over || victim.remote_num().get() > u64::MAX - 8 {
            // Sent by the traitor in so many words: a last state, or a diff that cannot be read.
            victim = fresh(now);
            traitor.hand = Hand::new(role);
            victims += 1;
            continue;
        }
        assert_within_limits(victim.held());
        let num = victim.remote_num();
        let mut good = message(num.get(), num.get() + 1, 0, honest);
        good.throwaway = num;
        assert_eq!(traitor.hand.send(now, &mut victim, &good), Ok(()), "turn {turn}");
        assert_eq!(victim.remote_num(), num.next(), "turn {turn}");
        recoveries += 1;
    }
    (victims, recoveries)
}

#[test]
fn treason_against_a_client() {
    let grown = resident();
    let fresh = |now| -> Client { common::client(now, Timing::MOSH) };
    let (victims, recoveries) = betray(Role::Server, TRIES / 2, fresh, &[7, b'x']);
    assert!(recoveries > TRIES / 100, "{recoveries} of {victims} victims");
    assert!(resident() - grown.min(resident()) < GROWTH_BYTES_MAX);
}

#[test]
fn treason_against_a_server() {
    let grown = resident();
    let fresh = |now| -> Server { common::server(now, Timing::MOSH) };
    let (victims, recoveries) = betray(Role::Client, TRIES / 2, fresh, b"+x");
    assert!(recoveries > TRIES / 100, "{recoveries} of {victims} victims");
    assert!(resident() - grown.min(resident()) < GROWTH_BYTES_MAX);
}

/// What aborts a stock peer (`mosh-protocol.md` §10) is counted here, and the session lives.
#[test]
fn what_aborts_stock_is_survived() {
    let mut server = common::server(ms(0), Timing::MOSH);
    let mut hand = Hand::new(Role::Client);
    hand.send(ms(0), &mut server, &message(0, 1, 0, b"+a")).unwrap();

    let fragment = |id: u64, number, last, contents: &'static [u8]| {
        let mut payload = Vec::new();
        Fragment { id: id.into(), number, last, contents }.encode(&mut payload);
        payload
    };
    let mut throwaway = Vec::new();
    Instruction { throwaway: 2.into(), ..message(1, 2, 0, b"+b") }.encode(&mut throwaway);
    let mut version = Vec::new();
    message(1, 2, 0, b"+b").encode(&mut version);
    version[1] = 3;
    let packed = |bytes: &[u8]| {
        let mut payload = fragment(1000, 0, true, b"");
        payload.extend_from_slice(&stored(bytes));
        payload
    };
    let stray = Reject::StrayFragment { number: 9 };
    for (payload, reject) in [
        (vec![0; 9], Some(Reject::ShortFragment { have: 9 })),
        (Vec::new(), Some(Reject::ShortFragment { have: 0 })),
        (packed(b"\xff\xff\xff"), Some(Reject::Protobuf)),
        (packed(&version), Some(Reject::Version { version: 3 })),
        (packed(b""), Some(Reject::Version { version: 0 })),
        (packed(&throwaway), Some(Reject::Throwaway { throwaway: 2, old: 1 })),
        (fragment(7, 0, false, b"one"), None),
        (fragment(7, 0, false, b"two"), Some(Reject::UnequalFragment { number: 0 })),
        (fragment(7, 2, true, b"end"), None),
        (fragment(7, 9, false, b"past"), Some(stray)),
        (fragment(8, 0, true, b"no zlib"), Some(Reject::Inflate)),
    ] {
        let mut datagram = hand.seal(&payload);
        let taken = server.handle_datagram(ms(1), hand.arrival(), &mut datagram);
        assert_eq!(taken.err(), reject, "{payload:x?}");
    }
    assert_eq!(server.stats().rejected.total(), 9);
    hand.send(ms(2), &mut server, &message(1, 2, 0, b"+b")).unwrap();
    assert_eq!(server.remote().since(0), b"ab");
}

#[test]
fn after_an_unreadable_diff_the_peer_is_told_and_not_heeded() {
    let mut server = common::server(ms(0), Timing::MOSH);
    let mut hand = Hand::new(Role::Client);
    hand.send(ms(0), &mut server, &message(0, 1, 0, b"?")).unwrap();
    assert_eq!(server.poll_event(), Some(Event::BadRemote(BadDiff("no log"))));
    hand.send(ms(1), &mut server, &message(0, 2, 0, b"+x")).unwrap();
    assert_eq!((server.poll_event(), server.remote_num()), (None, 0.into()));
    server.close(ms(2));
    let due = server.poll_timeout().expect("the last state is to be told");
    assert!(!drain(due, &mut server).is_empty());
    let last = Instruction { ack: StateNum::SHUTDOWN, ..message(0, 3, 0, b"?") };
    hand.send(due, &mut server, &last).unwrap();
    assert_eq!(server.poll_event(), Some(Event::Closed { clean: true }));
    assert_eq!((server.poll_event(), server.poll_timeout()), (None, None));
}

/// Row 10, through the whole stack: a bomb in fragments is refused, and costs what its limit allows.
#[test]
fn a_bomb_in_fragments_is_refused() {
    let mut server = common::server(ms(0), Timing::MOSH);
    let mut hand = Hand::new(Role::Client);
    let bomb = message(0, 1, 0, &vec![b'+'; MESSAGE_BYTES_MAX + 1]);
    assert_eq!(hand.send(ms(0), &mut server, &bomb), Err(Reject::InflateOverflow));
    let largest = message(0, 1, 0, &vec![b'+'; MESSAGE_BYTES_MAX - 64]);
    assert_eq!(hand.send(ms(0), &mut server, &largest), Ok(()));
    assert_eq!(server.remote_num(), 1.into());
}

/// Neither seals nor compresses: lets a test run through more instructions than a cipher would.
struct Glass {
    role: Role,
    next: u64,
}

impl Wire for Glass {
    fn overhead(&self) -> usize {
        9
    }

    fn assemblies_max(&self) -> usize {
        1
    }

    fn seal(&mut self, _: &Envelope, payload: &[u8], out: &mut Vec<u8>) -> Result<Seq, Exhausted> {
        let seq = Seq::new(self.next);
        self.next += 1;
        out.clear();
        out.push(u8::from(self.role == Role::Server));
        out.extend_from_slice(&seq.get().to_be_bytes());
        out.extend_from_slice(payload);
        Ok(seq)
    }

    fn open(&mut self, datagram: &mut [u8]) -> Result<(Header, Range<usize>), Reject> {
        let seq = Seq::new(u64::from_be_bytes(datagram[1..9].try_into().unwrap()));
        Ok((Header { seq, ..Header::default() }, 9..datagram.len()))
    }

    fn pack(&self, message: &Instruction, _: &mut Deflater, out: &mut Vec<u8>) {
        out.clear();
        message.encode(out);
    }

    fn unpack(&self, bytes: &[u8]) -> Result<Instruction, Reject> {
        Instruction::decode(bytes)
    }
}

/// Row 12: a peer that sends states and never acknowledges ours. One acknowledgment recovers.
#[test]
fn a_peer_that_never_acknowledges_is_bounded() {
    for timing in [Timing::MOSH, Timing::ROVE] {
        never_acknowledge(timing);
    }
}

/// A wire whose peer reports whatever it likes: what was never sent, and what it has reported otherwise before.
struct Liar {
    glass: Glass,
    heard: u64,
    rng: Rng,
}

impl Wire for Liar {
    fn overhead(&self) -> usize {
        self.glass.overhead()
    }

    fn assemblies_max(&self) -> usize {
        1
    }

    fn carries_reports(&self) -> bool {
        true
    }

    fn seal(&mut self, _: &Envelope, payload: &[u8], out: &mut Vec<u8>) -> Result<Seq, Exhausted> {
        self.glass.seal(&Envelope::default(), payload, out)
    }

    fn open(&mut self, datagram: &mut [u8]) -> Result<(Header, Range<usize>), Reject> {
        let (seq, end, rng) = (Seq::new(self.heard), self.glass.next, &mut self.rng);
        self.heard += 1;
        let newest = match rng.below(4) {
            0 => rng.bits(),
            1 => end + u64::from(rng.below(3)),
            _ => end.saturating_sub(u64::from(rng.below(2000))),
        };
        let report = Report {
            newest: Seq::new(newest),
            received: u128::from(rng.bits()) << 64 | u128::from(rng.bits()),
            loss: rng.bits() as u8,
            queue: Duration::from_millis(rng.below(1 << 16).into()),
            ack_delay: Duration::from_millis(rng.below(1 << 16).into()),
        };
        Ok((Header { seq, report: Some(report), ..Header::default() }, 0..datagram.len()))
    }

    fn pack(&self, message: &Instruction, deflater: &mut Deflater, out: &mut Vec<u8>) {
        self.glass.pack(message, deflater, out);
    }

    fn unpack(&self, bytes: &[u8]) -> Result<Instruction, Reject> {
        self.glass.unpack(bytes)
    }
}

/// Row 12: a peer whose reports make no sense, while we send short and long states, and sleep.
#[test]
fn reports_may_say_anything() {
    let grown = resident();
    for seed in 0..4 {
        let glass = Glass { role: Role::Client, next: 0 };
        let wire = Liar { glass, heard: 0, rng: Rng::new(seed) };
        let mut victim: Client = common::client_with(ms(0), Timing::ROVE, Box::new(wire));
        let (mut rng, mut out, mut now) = (Rng::new(seed), Outbox::default(), ms(0));
        let arrival = Arrival { from: server_address(), congested: false };
        for turn in 0..TRIES / 100 {
            now = now + Duration::from_millis(rng.below(60).into());
            if turn % 8 == 0 {
                let octets = if turn % 512 == 0 { 20_000 } else { 1 + rng.below(40) };
                victim.update(now, |log| log.push(&vec![b'x'; octets as usize]));
            }
            if rng.below(500) == 0 {
                victim.network_changed(now);
            }
            while victim.poll_transmit(now, &mut out).is_some() {}
            assert!(victim.poll_timeout().is_none_or(|at| at > now), "turn {turn}");
            assert_eq!(victim.handle_datagram(now, arrival, &mut []), Ok(()));
            assert_within(&Timing::ROVE, victim.held());
        }
    }
    assert!(resident() - grown.min(resident()) < GROWTH_BYTES_MAX);
}

fn never_acknowledge(timing: Timing) {
    let config = Config {
        role: Role::Server,
        wire: Box::new(Glass { role: Role::Server, next: 0 }),
        timing: timing.clone(),
        peer: None,
        local: Page::default(),
        remote: Page::default(),
        seed: 1,
    };
    let mut server = Endpoint::new(ms(0), config);
    let mut peer = Glass { role: Role::Client, next: 0 };
    let mut num = 0;
    let mut send = |server: &mut Endpoint<Page, Page>, now: Time, ack: StateNum| {
        num += 1;
        let (mut payload, mut datagram) = (Vec::new(), Vec::new());
        let mut packed = Vec::new();
        peer.pack(
            &message(0, num, ack.get(), &[num as u8, 1]),
            &mut Deflater::default(),
            &mut packed,
        );
        Fragment { id: num.into(), number: 0, last: true, contents: &packed }.encode(&mut payload);
        peer.seal(&Envelope::default(), &payload, &mut datagram).unwrap();
        let from = Arrival { from: client_address(), congested: false };
        server.handle_datagram(now, from, &mut datagram).unwrap();
    };

    let grown = resident();
    let mut out = Outbox::default();
    let mut now = ms(0);
    let (mut step, mut most) = (0usize, 0);
    while server.sent_num() < TRIES.into() {
        step += 1;
        if step % 8 == 1 {
            send(&mut server, now, StateNum::ZERO);
        }
        server.update(now, |page| page.write(step, &step.to_le_bytes()[..3]));
        now = now.max(server.poll_timeout().unwrap());
        while server.poll_transmit(now, &mut out).is_some() {}
        now = now.max(server.poll_timeout().unwrap());
        while server.poll_transmit(now, &mut out).is_some() {}
        let held = server.held();
        most = most.max(held.sent_states);
        assert_within(&timing, held);
        assert_eq!(server.acked(), StateNum::ZERO, "the base stays");
    }
    assert_eq!(most, timing.sent_states_max, "as many as may be");
    assert!(server.stats().quenched > 0);
    assert!(resident() - grown.min(resident()) < GROWTH_BYTES_MAX);

    // One acknowledgment, and the next frame is a diff from that state.
    let last = server.sent_num();
    send(&mut server, now, last);
    assert_eq!((server.acked(), server.held().sent_states), (last, 1));
    server.update(now, |page| page.write(0, b"!!"));
    now = now + Duration::from_secs(1);
    assert!(server.poll_transmit(now, &mut out).is_some());
    let (_, range) = peer_open(&mut out.datagram);
    let fragment = Fragment::decode(&out.datagram[range]).unwrap();
    let frame = Instruction::decode(fragment.contents).unwrap();
    assert_eq!((frame.old, frame.throwaway), (last, last));
}

fn peer_open(datagram: &mut [u8]) -> (Header, Range<usize>) {
    Glass { role: Role::Client, next: 0 }.open(datagram).unwrap()
}

#[test]
fn a_used_up_key_ends_the_session() {
    let used = rove_ssp::Used { next: Seq::new(Seq::MAX.get() - 1), blocks: 0 };
    let wire = MoshWire::resume(Key::from_bytes(common::KEY), Role::Client, used);
    let mut client = common::client_with(ms(0), Timing::MOSH, Box::new(wire));
    let mut peer = mosh_wire(Role::Server);
    let mut sent = common::run_until(ms(60_000), &mut client);
    assert_eq!(sent.len(), 2);
    for (_, transmit, datagram) in &mut sent {
        assert_eq!(transmit.to, server_address());
        assert!(peer.open(datagram).is_ok());
    }
    let failed = Event::Failed(rove_ssp::Failure::Exhausted);
    assert_eq!(client.poll_event(), Some(failed));
    assert_eq!(client.poll_timeout(), None);
}
