//! Authentic peers that go wrong in every octet (`threats.md` rows 9 to 12): a million mutations inside
//! validly sealed payloads, half against the client, half against the server. Nothing panics, every
//! limit holds, a diff that cannot be read ends its own session with one line, and a session that was
//! not ended goes on as if nothing had been.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::net::SocketAddr;

use common::{client_address, client_config, ms, server_address, server_config, size};
use rove_session::host::QUEUE_OCTETS_MAX;
use rove_session::messages::{Dimensions, HostEvent, UserEvent, write_host, write_user};
use rove_session::{Client, LineMode, Peer, Server, client, server};
use rove_ssp::{
    ASSEMBLY_BYTES_MAX, Arrival, Assembler, Envelope, Fragment, Instruction, Machine, Outbox, Rng,
    Role, StateNum, Time, Timing, Usage, Wire,
};
use rove_term::Screen;

/// Mutations in each direction.
const TRIES: u64 = 500_000;
/// Mutations between two checks that an honest exchange still works.
const ROUND: u64 = 32;
/// The small window everything is shown in.
const ROWS: u16 = 6;
const COLS: u16 = 20;

#[test]
fn mutations_against_a_client() {
    besiege::<Client>(1);
}

#[test]
fn mutations_against_a_server() {
    besiege::<Server>(2);
}

/// How a victim's session ended.
enum End {
    /// The peer's last state came, as a mutation may say.
    Left,
    /// It cannot go on, for this reason.
    Failed(String),
}

/// One end of a real session, and what an honest peer would have it show.
trait Victim: Machine {
    const PEER: Role;
    fn fresh(now: Time, peer: Peer) -> Self;
    /// Where the peer's datagrams come from.
    fn peer_address() -> SocketAddr;
    /// One event as an honest peer writes it, filled with what a hostile program or user says.
    fn event(rng: &mut Rng, out: &mut Vec<u8>);
    /// A diff after which [`shows`](Self::shows) holds, also after mutated ones.
    fn honest(text: &str) -> Vec<u8>;
    fn shows(&mut self, text: &str) -> bool;
    /// Lets the user or the program at this end act.
    fn live(&mut self, now: Time);
    fn end(&mut self) -> Option<End>;
    fn assert_within_limits(&self);
}

impl Victim for Client {
    const PEER: Role = Role::Server;

    fn fresh(now: Time, peer: Peer) -> Self {
        Client::new(now, client::Config { size: size(ROWS, COLS), ..client_config(peer) })
    }

    fn peer_address() -> SocketAddr {
        server_address()
    }

    fn event(rng: &mut Rng, out: &mut Vec<u8>) {
        match rng.below(8) {
            0 => write_host(HostEvent::EchoAck(rng.below(100).into()), out),
            1 => write_host(HostEvent::Resize(dimensions(rng)), out),
            2 if rng.below(2) == 0 => {
                let mode = [LineMode::Cooked, LineMode::Hidden, LineMode::Raw];
                write_host(HostEvent::Line(mode[rng.below(3) as usize].into()), out);
            }
            2 => write_host(HostEvent::ExitStatus(rng.bits() as i32), out),
            _ => write_host(HostEvent::Bytes(&hostile(rng)), out),
        }
    }

    fn honest(text: &str) -> Vec<u8> {
        let mut diff = Vec::new();
        write_host(HostEvent::Resize(size(ROWS, COLS).into()), &mut diff);
        write_host(HostEvent::Bytes(format!("\x1bc\x1b[H{text}").as_bytes()), &mut diff);
        diff
    }

    fn shows(&mut self, text: &str) -> bool {
        self.view().screen().row_text(0) == text
            && self.shown().is_some_and(|shown| shown.size() == size(ROWS, COLS))
    }

    fn live(&mut self, now: Time) {
        let mut painted = Vec::new();
        self.poll_paint(now, &mut painted);
    }

    fn end(&mut self) -> Option<End> {
        let event = self.poll_event()?;
        let client::Event::Exited(exit) = event else { panic!("{event:?}") };
        assert_eq!(self.poll_timeout(), None, "it is over");
        Some(match exit.cause {
            client::Cause::Failed(failure) => End::Failed(failure.to_string()),
            client::Cause::PeerLeft => End::Left,
            cause => panic!("{cause:?}"),
        })
    }

    fn assert_within_limits(&self) {
        assert_held(self.endpoint().held());
        assert_size(self.view().screen());
    }
}

impl Victim for Server {
    const PEER: Role = Role::Client;

    fn fresh(now: Time, peer: Peer) -> Self {
        Server::new(now, server::Config { size: size(ROWS, COLS), ..server_config(peer) })
    }

    fn peer_address() -> SocketAddr {
        client_address()
    }

    fn event(rng: &mut Rng, out: &mut Vec<u8>) {
        match rng.below(4) {
            0 => write_user(UserEvent::Resize(dimensions(rng)), out),
            _ => write_user(UserEvent::Keys(&hostile(rng)), out),
        }
    }

    fn honest(text: &str) -> Vec<u8> {
        // Mutations fork the user stream, and what the program has read of a longer branch is not read
        // again from this one: go past the longest.
        let mut diff = Vec::new();
        write_user(UserEvent::Keys(&[b' '; 1600]), &mut diff);
        write_user(UserEvent::Resize(size(ROWS, COLS).into()), &mut diff);
        write_user(UserEvent::Keys(text.as_bytes()), &mut diff);
        diff
    }

    fn shows(&mut self, text: &str) -> bool {
        let (mut typed, mut octets) = (Vec::new(), Vec::new());
        while self.pending_input() > 0 {
            self.poll_input(&mut octets);
            typed.extend(&octets);
        }
        self.screen().size() == size(ROWS, COLS) && typed.ends_with(text.as_bytes())
    }

    fn live(&mut self, now: Time) {
        self.handle_output(now, b"output\r\n");
    }

    fn end(&mut self) -> Option<End> {
        if let Some(server::Cause::Failed(failure)) = self.cause() {
            return Some(End::Failed(failure.to_string()));
        }
        loop {
            let server::Event::Exited(exit) = self.poll_event()? else { continue };
            return Some(match exit.cause {
                server::Cause::PeerLeft => End::Left,
                cause => panic!("{cause:?}"),
            });
        }
    }

    fn assert_within_limits(&self) {
        assert_held(self.endpoint().held());
        assert_size(self.screen());
        assert_size(self.endpoint().local().screen());
        assert!(self.pending_input() <= QUEUE_OCTETS_MAX);
    }
}

fn assert_held(held: Usage) {
    let Usage { sent_states, received_states, received_bytes, assembly_bytes, events } = held;
    assert!(sent_states <= Timing::MOSH.sent_states_max, "{sent_states}");
    assert!(received_states <= Timing::MOSH.received_states_max + 1, "{received_states}");
    assert!(received_bytes <= 2 * Timing::MOSH.received_bytes_max);
    assert!(assembly_bytes <= ASSEMBLY_BYTES_MAX, "{assembly_bytes}");
    assert!(events <= 5, "{events}");
}

fn assert_size(screen: &Screen) {
    let size = screen.size();
    assert!((1..=1000).contains(&size.rows) && (1..=1000).contains(&size.cols), "{size:?}");
    assert!(u32::from(size.rows) * u32::from(size.cols) <= 200_000, "{size:?}");
}

/// Mostly small: large screens are rare enough here to be affordable.
fn dimensions(rng: &mut Rng) -> Dimensions {
    let mut side = || match rng.below(40) {
        0 => rng.bits() as i32,
        1 => -1,
        n => n as i32 - 2,
    };
    Dimensions { width: side(), height: side() }
}

/// What a program writes, or a user's terminal sends, that means no good.
fn hostile(rng: &mut Rng) -> Vec<u8> {
    const PIECES: [&[u8]; 24] = [
        b"text",
        b"\r\n",
        b"\x1b[",
        b"99999",
        b"\x1b[99999b",
        b"\x1b[5;2r",
        b"\x1b[?6h\x1b[?69h",
        b"\x1b[?1049h",
        b"\x1b[?1049l",
        b"\x1b]0;title\x07",
        b"\x1b]52;c;aGk=\x07",
        b"\x1b]8;;http://a\x1b\\",
        b"\x1bP$q",
        b"\x1b[c\x1b[6n",
        b"\x1b[38:2::1:2:3m",
        "\u{65e5}\u{301}".as_bytes(),
        "\u{1f469}\u{200d}\u{1f4bb}".as_bytes(),
        b"\xff\xc0\x80",
        b"\x1b[999L",
        b"\x1b[999@",
        b"\x1b[?2026h",
        b"\x1bOA",
        b"\x1b7\x1b#8\x1b8",
        b"\x1b(0qqq\x0e",
    ];
    let mut made = Vec::new();
    for _ in 0..=rng.below(4) {
        made.extend_from_slice(PIECES[rng.below(PIECES.len() as u32) as usize]);
    }
    if rng.below(4) == 0 {
        mutate(rng, &mut made);
    }
    made
}

/// Flips, cuts, splices, duplicates, or inserts a number far too large.
fn mutate(rng: &mut Rng, bytes: &mut Vec<u8>) {
    if bytes.is_empty() {
        return;
    }
    let mut index = || rng.below(bytes.len() as u32) as usize;
    let (one, two) = (index(), index());
    let (start, end) = (one.min(two), one.max(two) + 1);
    match rng.below(8) {
        0 => bytes.truncate(one),
        1 => drop(bytes.drain(start..end)),
        2 => {
            let piece = bytes[start..end].to_vec();
            bytes.splice(one..one, piece);
        }
        3 => bytes.insert(one, rng.bits() as u8),
        4 => {
            let mut huge = vec![0xff; rng.below(11) as usize];
            huge.push(rng.bits() as u8 & 0x7f);
            bytes.splice(one..one, huge);
        }
        5 => bytes[one] = rng.bits() as u8,
        _ => bytes[one] ^= 1 << rng.below(8),
    }
}

/// A zlib stream of one stored block (RFC 1950, RFC 1951 §3.2.4): no compressor needed.
fn stored(bytes: &[u8]) -> Vec<u8> {
    let len = u16::try_from(bytes.len()).unwrap();
    let mut out = vec![0x78, 0x01, 1];
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&(!len).to_le_bytes());
    out.extend_from_slice(bytes);
    let (mut low, mut high) = (1u32, 0u32);
    for &byte in bytes {
        low = (low + u32::from(byte)) % 65_521;
        high = (high + low) % 65_521;
    }
    out.extend_from_slice(&(high << 16 | low).to_be_bytes());
    out
}

/// Prints the seed if any check panics.
struct Run {
    seed: u64,
    turn: u64,
}

impl Drop for Run {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}, mutation {}", self.seed, self.turn);
        }
    }
}

/// A peer with the key.
struct Traitor {
    wire: Box<dyn Wire>,
    rng: Rng,
    fragment_id: u64,
    /// The newest state that the victim said it has.
    acked: u64,
    /// The number of the newest state sent.
    num: u64,
    /// The victim's newest state.
    heard: u64,
}

impl Traitor {
    fn new(role: Role, seed: u64) -> Self {
        let wire = match role {
            Role::Client => client_config(Peer::Stock).wire,
            Role::Server => server_config(Peer::Stock).wire,
        };
        Self { wire, rng: Rng::new(seed), fragment_id: 0, acked: 0, num: 0, heard: 0 }
    }

    fn seal(&mut self, payload: &[u8]) -> Vec<u8> {
        let mut datagram = Vec::new();
        self.wire.seal(&Envelope::default(), payload, &mut datagram).unwrap();
        datagram
    }

    fn number(&mut self, honest: u64) -> StateNum {
        StateNum::from(match self.rng.below(64) {
            0 => 0,
            1 => self.rng.bits(),
            2 => honest.saturating_sub(1),
            3 => honest.saturating_add(1),
            _ => honest,
        })
    }

    /// An honest instruction, changed in at least one of its layers.
    fn mutation<V: Victim>(&mut self) -> Vec<u8> {
        let mut diff = Vec::new();
        for _ in 0..=self.rng.below(3) {
            V::event(&mut self.rng, &mut diff);
        }
        let layer = self.rng.below(8);
        if layer < 4 {
            mutate(&mut self.rng, &mut diff);
        }
        self.num = self.num.saturating_add(1);
        let message = Instruction {
            old: self.number(self.acked),
            new: self.number(self.num),
            ack: self.number(self.heard),
            throwaway: self.number(0),
            diff,
            ..Instruction::default()
        };
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        if (3..6).contains(&layer) {
            mutate(&mut self.rng, &mut bytes);
        }
        let mut packed = stored(&bytes);
        if layer == 6 {
            mutate(&mut self.rng, &mut packed);
        }
        self.fragment_id += 1;
        let mut payload = Vec::new();
        let id = self.fragment_id.into();
        Fragment { id, number: 0, last: true, contents: &packed }.encode(&mut payload);
        if layer == 7 {
            mutate(&mut self.rng, &mut payload);
        }
        self.seal(&payload)
    }

    /// The next state, from the newest that the victim has.
    fn honest(&mut self, diff: Vec<u8>) -> Vec<u8> {
        self.num = self.acked + 1;
        let message = Instruction {
            old: self.acked.into(),
            new: self.num.into(),
            ack: self.heard.into(),
            throwaway: self.acked.into(),
            diff,
            ..Instruction::default()
        };
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        self.fragment_id += 1;
        let mut payload = Vec::new();
        // Far from what a mutated header may have begun.
        let (id, contents) = ((1 << 40 | self.fragment_id).into(), &stored(&bytes)[..]);
        Fragment { id, number: 0, last: true, contents }.encode(&mut payload);
        self.seal(&payload)
    }

    /// Lets a second pass, and reads what the victim says meanwhile.
    fn listen<V: Victim>(&mut self, now: &mut Time, victim: &mut V) {
        let end = *now + ms(1000);
        let (mut out, mut assembler) = (Outbox::default(), Assembler::new(1));
        for turn in 0.. {
            assert!(turn < 1000, "a busy loop");
            while victim.poll_transmit(*now, &mut out).is_some() {
                let (_, payload) = self.wire.open(&mut out.datagram).unwrap();
                let fragment = Fragment::decode(&out.datagram[payload]).unwrap();
                let Some(packed) = assembler.add(fragment).unwrap() else { continue };
                let message = self.wire.unpack(&packed).unwrap();
                (self.acked, self.heard) = (message.ack.get(), message.new.get());
            }
            if turn == 0 {
                victim.live(*now);
            }
            match victim.poll_timeout().filter(|&time| time < end) {
                Some(time) => *now = time.max(*now + ms(1)),
                None => break,
            }
        }
        *now = end;
        victim.live(end);
    }
}

fn besiege<V: Victim>(seed: u64) {
    let mut run = Run { seed, turn: 0 };
    let mut traitor = Traitor::new(V::PEER, seed);
    let mut now = Time::ZERO;
    let mut victim = V::fresh(now, Peer::Stock);
    let (mut failed, mut left, mut recovered) = (0u64, 0u64, 0u64);
    let arrival = Arrival { from: V::peer_address().into(), congested: false };
    while run.turn < TRIES {
        run.turn += 1;
        let mut datagram = traitor.mutation::<V>();
        let _ = victim.handle_datagram(now, arrival, &mut datagram);
        victim.assert_within_limits();
        let mut end = victim.end();
        if end.is_none() && run.turn.is_multiple_of(ROUND) {
            traitor.listen(&mut now, &mut victim);
            end = victim.end();
            // The last states' numbers leave no room for an honest one.
            if end.is_none() && traitor.acked > u64::MAX - 8 {
                end = Some(End::Left);
            }
        }
        if let Some(end) = end {
            match end {
                End::Left => left += 1,
                End::Failed(line) => {
                    assert_eq!(line.lines().count(), 1, "{line}");
                    failed += 1;
                }
            }
            let peer = if traitor.rng.below(2) == 0 { Peer::Stock } else { Peer::Rove };
            victim = V::fresh(now, peer);
            (traitor.acked, traitor.num, traitor.heard) = (0, 0, 0);
        } else if run.turn.is_multiple_of(ROUND) {
            let text = format!("ok{}", run.turn);
            let mut datagram = traitor.honest(V::honest(&text));
            assert_eq!(victim.handle_datagram(now, arrival, &mut datagram), Ok(()));
            traitor.listen(&mut now, &mut victim);
            assert_eq!(traitor.acked, traitor.num, "the honest state arrived");
            assert!(victim.shows(&text), "{text} is shown");
            victim.assert_within_limits();
            recovered += 1;
        }
    }
    eprintln!("seed {seed}: {failed} failed, {left} left, {recovered} recovered");
    assert!(failed > TRIES / 1000, "{failed} sessions could not go on");
    assert!(recovered > TRIES / ROUND / 4, "{recovered} recoveries, {left} sessions left");
}
