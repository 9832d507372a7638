//! Enemies without the key, with forgeries and with old datagrams.

use rove_ssp::Remote;

use super::*;

/// Everything about an endpoint that an enemy could want to change.
#[derive(Debug, PartialEq)]
struct Standing<R> {
    remote: R,
    nums: [StateNum; 3],
    heard: Option<Time>,
    peer: Option<Remote>,
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
    Arrival {
        from: SocketAddr::from(([192, 0, 2, 66], port)).into(),
        congested: port.is_multiple_of(2),
    }
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
    let rejected = client.stats().rejected.total + server.stats().rejected.total;

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
    let total = client.stats().rejected.total + server.stats().rejected.total;
    assert_eq!(total - rejected, TRIES, "all are counted");
    assert!(resident().saturating_sub(grown) < GROWTH_BYTES_MAX);
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

/// Row 15: a stranger who cannot seal gets no answer at all, so there is nothing to reflect at others.
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
