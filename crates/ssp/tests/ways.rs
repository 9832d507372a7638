//! A stream beside UDP (`docs/wire.md` §11), in virtual time: where both ends go, and what is sent where.
#![allow(clippy::unwrap_used, reason = "what is missing fails the test")]

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use rove_ssp::{
    Arrival, BadDiff, Config, ConnId, Context, Endpoint, Event, KeyPair, Machine, NativeWire,
    Outbox, Remote, Role, Session, State, StateNum, StreamId, Time, Timing,
};
use zeroize::Zeroizing;

#[derive(Clone, Debug, Default, PartialEq)]
struct Page(Vec<u8>);

impl State for Page {
    fn diff_from(&self, base: &Page, out: &mut Vec<u8>) {
        if self != base {
            out.extend_from_slice(&self.0);
        }
    }

    fn apply(&mut self, diff: &[u8]) -> Result<(), BadDiff> {
        self.0 = diff.to_vec();
        Ok(())
    }

    fn weight(&self) -> usize {
        self.0.capacity()
    }
}

type End = Endpoint<Page, Page>;

const STREAM: Remote = Remote::Stream(StreamId::new(3));
const UP: usize = 0;
const DOWN: usize = 1;

fn client_at() -> SocketAddr {
    "192.0.2.7:40000".parse().unwrap()
}

fn server_at() -> SocketAddr {
    "198.51.100.1:60001".parse().unwrap()
}

/// Octets that become no shorter by packing.
fn random(seed: u32, octets: usize) -> Vec<u8> {
    let mut random = seed | 1;
    let mut next = || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (random >> 24) as u8
    };
    (0..octets).map(|_| next()).collect()
}

/// Two ends, 20 ms apart by both ways.
struct Ends {
    now: Time,
    ends: [End; 2],
    /// When a datagram arrives at the other end, in order, and how it went.
    way: [VecDeque<(Time, Remote, Vec<u8>)>; 2],
    /// Whether UDP works up and down, and whether the stream does.
    udp: [bool; 2],
    stream: [bool; 2],
    /// Datagrams by UDP, up and down.
    by_udp: [u32; 2],
    /// The longest datagram by the stream, and octets of all, up and down.
    longest: usize,
    by_stream: [usize; 2],
}

impl Ends {
    fn new() -> Ends {
        let pairs = [[7; 32], [8; 32]].map(|octets| KeyPair::from_random(Zeroizing::new(octets)));
        let conn = ConnId::new(5);
        let context = Context { nonce: [9; 16], conn };
        let [client, server] = pairs;
        let (own, other) = (client.public(), server.public());
        let secrets = [
            client.agree_as_client(&other, &context).unwrap(),
            server.agree_as_server(&own, &context).unwrap(),
        ];
        let mut roles = [Role::Client, Role::Server].into_iter();
        let ends = secrets.map(|secrets| {
            let role = roles.next().unwrap();
            let config = Config {
                role,
                wire: Box::new(NativeWire::new(&secrets, conn, role)),
                timing: Timing { final_acks: 4, ..Timing::ROVE },
                peer: (role == Role::Client).then(server_at),
                local: Page::default(),
                remote: Page::default(),
                seed: 1,
            };
            Endpoint::new(Time::ZERO, config)
        });
        Ends {
            now: Time::ZERO,
            ends,
            way: Default::default(),
            udp: [true; 2],
            stream: [true; 2],
            by_udp: [0; 2],
            longest: 0,
            by_stream: [0; 2],
        }
    }

    /// With the stream from the first moment.
    fn carried(udp: [bool; 2]) -> Ends {
        let mut ends = Ends { udp, ..Ends::new() };
        ends.ends[UP].stream_opened(Time::ZERO, StreamId::new(3));
        ends
    }

    fn run(&mut self, millis: u64) {
        for _ in 0..millis {
            for at in [UP, DOWN] {
                while self.way[at].front().is_some_and(|(due, ..)| *due <= self.now) {
                    let (_, from, mut octets) = self.way[at].pop_front().unwrap();
                    let arrival = Arrival { from, congested: false };
                    let _ = self.ends[1 - at].handle_datagram(self.now, arrival, &mut octets);
                }
                let mut out = Outbox::default();
                while let Some(transmit) = self.ends[at].poll_transmit(self.now, &mut out) {
                    let (from, works) = match transmit.to {
                        Remote::Udp(_) => {
                            self.by_udp[at] += 1;
                            ([client_at(), server_at()][at].into(), self.udp[at])
                        }
                        to => {
                            self.longest = self.longest.max(out.datagram.len());
                            self.by_stream[at] += out.datagram.len();
                            (to, self.stream[at])
                        }
                    };
                    if works {
                        let due = self.now + Duration::from_millis(20);
                        self.way[at].push_back((due, from, out.datagram.clone()));
                    }
                }
                assert!(self.ends[at].poll_timeout().is_none_or(|due| due > self.now));
            }
            self.now = self.now + Duration::from_millis(1);
        }
    }

    /// One end says something. The other has to have it within this time.
    fn say(&mut self, at: usize, octets: usize, within_ms: u64) {
        let text = random(octets as u32, octets);
        self.ends[at].update(self.now, |page| page.0.clone_from(&text));
        let since = self.now;
        while self.ends[1 - at].remote().0 != text {
            self.run(1);
            let waited = self.now.since(since).as_millis() as u64;
            assert!(waited <= within_ms, "{octets} octets of {at} take more than {within_ms} ms");
        }
    }

    fn peers(&self) -> [Option<Remote>; 2] {
        [self.ends[UP].peer(), self.ends[DOWN].peer()]
    }
}

const BY_UDP: [fn() -> SocketAddr; 2] = [server_at, client_at];

fn by_udp() -> [Option<Remote>; 2] {
    BY_UDP.map(|at| Some(at().into()))
}

const BY_STREAM: [Option<Remote>; 2] = [Some(STREAM); 2];

#[test]
fn a_session_begins_on_the_stream_and_goes_on_by_udp() {
    let mut ends = Ends::carried([true; 2]);
    ends.say(UP, 5, 25);
    assert_eq!(ends.peers()[DOWN], Some(STREAM));
    // A try, the question by UDP, its answer.
    ends.run(100);
    assert_eq!(ends.peers(), by_udp());
    ends.say(DOWN, 3000, 40);
    ends.say(UP, 9, 40);
    assert_eq!([UP, DOWN].map(|at| ends.ends[at].stats().to_udp), [1, 1]);
}

/// A listener's window of TCP may be shut for minutes, while UDP comes and goes.
#[test]
fn a_stream_that_stands_still_is_not_filled_again() {
    let mut ends = Ends::carried([true; 2]);
    ends.run(3000);
    assert_eq!(ends.peers(), by_udp());
    ends.stream = [true, false];
    let (before, mut turns) = (ends.by_stream[DOWN], 0);
    for turn in 0..20 {
        for udp in [false, true] {
            ends.udp = [udp; 2];
            for step in 0..30 {
                ends.ends[UP].update(ends.now, |page| page.0 = vec![turn as u8, step as u8]);
                ends.ends[DOWN].update(ends.now, |page| page.0 = random(turn * 100 + step, 6000));
                ends.run(100);
            }
            turns += u32::from(!udp && ends.peers()[DOWN] == Some(STREAM));
        }
    }
    assert!(turns >= 15, "{turns} times the stream took the place of UDP");
    let octets = ends.by_stream[DOWN] - before;
    // The window, a frame, and what asks for an answer, in a minute.
    assert!(octets < 64 << 10, "{octets} octets stand in the stream");
}

#[test]
fn without_udp_it_stays_on_the_stream() {
    for udp in [[false, false], [false, true], [true, false]] {
        let mut ends = Ends::carried(udp);
        for turn in 0..30 {
            ends.say(UP, 5 + turn, 100);
            ends.say(DOWN, 2000 + turn, 100);
            ends.run(1000);
            assert_eq!(ends.peers(), BY_STREAM, "{udp:?}");
        }
        assert!((1300..=1400).contains(&ends.longest), "{} octets", ends.longest);
        let stats = [UP, DOWN].map(|at| ends.ends[at].stats());
        // 11 tries in 10 s, and then one each 4 s while something is said.
        assert!((11..=40).contains(&ends.by_udp[UP]), "{udp:?} {:?}", ends.by_udp);
        assert_eq!(ends.by_udp[DOWN] > 0, udp[UP], "who is not heard is not asked");
        assert_eq!(stats.map(|stats| stats.resends), [0, 0], "nothing is said twice");
        assert_eq!(stats.map(|stats| stats.parity_sent), [0, 0]);
        assert!(ends.by_udp[DOWN] <= 3 * ends.by_udp[UP]);
    }
}

#[test]
fn udp_that_dies_is_left_in_three_timeouts_and_taken_back() {
    let mut ends = Ends::carried([true; 2]);
    ends.say(UP, 5, 100);
    ends.run(5000);
    assert_eq!(ends.peers(), by_udp());
    for (turn, udp) in [[false, false], [true, false], [false, true]].into_iter().enumerate() {
        ends.udp = udp;
        // Whoever speaks finds out.
        ends.say([UP, DOWN, UP][turn], 50 + turn, 3500);
        ends.say(DOWN, 80 + turn, 3500);
        ends.run(4000);
        assert_eq!(ends.peers(), BY_STREAM, "{udp:?}");
        ends.udp = [true; 2];
        ends.run(1100);
        assert_eq!(ends.peers(), by_udp(), "{udp:?}");
    }
}

#[test]
fn a_stream_that_ends_leaves_udp() {
    let mut ends = Ends::carried([false; 2]);
    ends.say(UP, 5, 100);
    ends.run(60_000);
    (ends.udp, ends.stream) = ([true; 2], [false; 2]);
    for end in &mut ends.ends {
        end.stream_closed(ends.now, StreamId::new(3));
    }
    assert_eq!(ends.peers(), [Some(server_at().into()), None]);
    ends.say(UP, 6, 400);
    ends.say(DOWN, 7, 400);
    // A second one does as well as the first.
    (ends.udp, ends.stream) = ([false; 2], [true; 2]);
    ends.ends[UP].stream_opened(ends.now, StreamId::new(3));
    ends.say(DOWN, 8, 4000);
    assert_eq!(ends.peers(), BY_STREAM);
}

/// A copy of the client's datagram from elsewhere moves nobody while the stream is in use.
#[test]
fn a_stranger_with_a_copy_is_asked_and_not_followed() {
    let mut ends = Ends::carried([true, false]);
    ends.say(UP, 5, 100);
    let stranger: SocketAddr = "203.0.113.66:666".parse().unwrap();
    let mut spent = 0;
    for _ in 0..2000 {
        let from_client = ends.way[UP].iter_mut().filter(|(_, from, _)| !from.is_stream());
        for (_, from, octets) in from_client {
            if *from != Remote::Udp(stranger) {
                spent += octets.len();
            }
            *from = stranger.into();
        }
        ends.run(1);
        assert_eq!(ends.peers()[DOWN], Some(STREAM));
    }
    assert!(spent > 0 && ends.by_udp[DOWN] >= 1);
    assert!(ends.by_udp[DOWN] as usize * 55 <= 3 * spent, "{} {spent}", ends.by_udp[DOWN]);
}

/// A server whose client is nowhere keeps its last state until the client is heard, wherever that is then. It says nothing
/// meanwhile.
#[test]
fn a_goodbye_waits_for_a_client_that_is_nowhere() {
    for by_stream in [true, false] {
        let mut ends = if by_stream { Ends::carried([false; 2]) } else { Ends::new() };
        ends.say(UP, 5, 2000);
        ends.say(DOWN, 6, 2000);
        (ends.udp, ends.stream) = ([false; 2], [false; 2]);
        if by_stream {
            ends.ends[DOWN].stream_closed(ends.now, StreamId::new(3));
        }
        while ends.ends[DOWN].poll_event().is_some() {}
        ends.ends[DOWN].close_and_wait();
        ends.run(60_000);
        let said = ends.by_udp[DOWN];
        assert!(said <= 30, "{said} datagrams to a client that is gone");
        assert_eq!((ends.peers()[DOWN], ends.ends[DOWN].poll_timeout()), (None, None));
        ends.run(60_000);
        assert_eq!(ends.by_udp[DOWN], said);
        assert_eq!(ends.ends[DOWN].poll_event(), None);
        ends.ends[UP].stream_closed(ends.now, StreamId::new(3));
        ends.udp = [true; 2];
        let ended = |ends: &mut Ends| {
            let events = std::iter::from_fn(|| ends.ends[DOWN].poll_event());
            events.filter(|event| matches!(event, Event::Closed { clean: true })).count()
        };
        let told = (0..15_000).find(|_| {
            ends.run(1);
            ends.ends[UP].remote_num() == StateNum::SHUTDOWN && ended(&mut ends) == 1
        });
        assert!(told.is_some(), "the client was not told: {:?}", ends.peers());
    }
}

/// A client that leaves takes its stream with it, as soon as it has the answer to its goodbye or before. The server is over
/// then: nobody hears what else it has to say.
#[test]
fn a_client_that_leaves_with_its_stream_leaves_no_server_behind() {
    for waits in [true, false] {
        let mut ends = Ends::carried([false; 2]);
        ends.say(UP, 5, 2000);
        while ends.ends[UP].poll_event().is_some() {}
        ends.ends[UP].close(ends.now);
        let gone = (0..1000).find(|_| {
            ends.run(1);
            let mut events = std::iter::from_fn(|| ends.ends[UP].poll_event());
            let has_answer = events.any(|event| event == Event::Closed { clean: true });
            has_answer || !waits && ends.ends[DOWN].remote_num() == StateNum::SHUTDOWN
        });
        assert!(gone.is_some(), "the client was not heard");
        for end in &mut ends.ends {
            end.stream_closed(ends.now, StreamId::new(3));
        }
        ends.run(1);
        let events = std::iter::from_fn(|| ends.ends[DOWN].poll_event());
        let closed = events.filter(|event| matches!(event, Event::Closed { .. })).count();
        assert_eq!(closed, 1, "waits for the answer: {waits}");
        assert_eq!(ends.ends[DOWN].poll_timeout(), None);
    }
}
