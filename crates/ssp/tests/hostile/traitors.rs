//! Enemies that have the key: peers that send anything, and peers that never acknowledge.

use super::*;

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
    assert!(resident().saturating_sub(grown) < GROWTH_BYTES_MAX);
}

#[test]
fn treason_against_a_server() {
    let grown = resident();
    let fresh = |now| -> Server { common::server(now, Timing::MOSH) };
    let (victims, recoveries) = betray(Role::Client, TRIES / 2, fresh, b"+x");
    assert!(recoveries > TRIES / 100, "{recoveries} of {victims} victims");
    assert!(resident().saturating_sub(grown) < GROWTH_BYTES_MAX);
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
    assert_eq!(server.stats().rejected.total, 9);
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

/// A wire whose peer lies in its reports: it names numbers that were never sent, and contradicts its last report.
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
        let arrival = Arrival { from: server_address().into(), congested: false };
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
    assert!(resident().saturating_sub(grown) < GROWTH_BYTES_MAX);
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
        let from = Arrival { from: client_address().into(), congested: false };
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
    assert!(resident().saturating_sub(grown) < GROWTH_BYTES_MAX);

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
