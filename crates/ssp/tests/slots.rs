//! While a run of slots is on, what leaves either end says nothing of keys: the same departures, octet for octet in length
//! and microsecond for microsecond in time, with keys, without, and with twice as many.
//!
//! The gate takes 2,000 seeds, which is some ten seconds. `SEEDS=2001-4000 cargo test -p rove-ssp --test slots departures`
//! takes those, and `scripts/soak` 2,000 others each time.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // Helpers of tests are tests.

mod common;

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use common::{
    Client, Log, Page, Server, client_address, ms, native_wire, server_address, server_with,
};
use rove_ssp::{
    Arrival, Config, Endpoint, Event, Machine, Outbox, Remote, Rng, Role, Session, SlotTiming,
    StreamId, Time, Timing, Transmit,
};

/// The keys of a play, all but the last at the same times.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Typed {
    /// Keys that are kept.
    Nothing,
    Keys,
    TwiceAsMany,
    /// The same keys, and one more at some moment between two of them, which draws the run's end anew.
    Between,
}

/// A hostile path, the same for all that are compared: the fate of each departure depends on its place alone.
#[derive(Clone, Copy, Debug)]
struct Path {
    seed: u64,
    loss: u64,
    duplicates: u64,
    roams: bool,
    /// Nothing passes to the client for so long, from 2 s after the first key on.
    deaf: Duration,
    /// Nothing passes at all.
    dead: Duration,
    /// Nothing passes to the server.
    mute: Duration,
    /// A stream carries the session, and nothing passes by UDP.
    by_stream: bool,
    /// At which loss two datagrams leave in a slot's time.
    copy_loss_min: f64,
}

const STREAM: StreamId = StreamId::new(1);

struct Pair {
    now: Time,
    client: Client,
    server: Server,
    flying: Vec<(Time, u64, Role, Remote, Vec<u8>)>,
    sent: [u64; 2],
    path: Path,
    /// When the first key is typed.
    start: Time,
    departures: Vec<(Time, Role, usize)>,
    /// How long before it left each of them was made.
    early: Vec<Duration>,
    from: SocketAddr,
    echoes: bool,
    echoed: usize,
    /// Times at which the server got keys, and the client echoes, with the length of each by then.
    came: [Vec<(Time, usize)>; 2],
    /// When each key was typed, and how many there were then.
    typed_at: Vec<(Time, usize)>,
}

fn answering() -> Timing {
    Timing { answers_slots: true, ..Timing::ROVE }
}

const START: Time = Time::from_millis(6_400);
const DELAY: Duration = Duration::from_millis(20);

impl Pair {
    fn new(path: Path) -> Pair {
        let slots = SlotTiming { copy_loss_min: path.copy_loss_min, ..SlotTiming::ROVE };
        let timing = Timing { slots: Some(slots), ..Timing::ROVE };
        let mut client = Endpoint::new(
            Time::ZERO,
            Config {
                role: Role::Client,
                wire: Box::new(native_wire(Role::Client)),
                timing,
                peer: Some(server_address()),
                local: Log::default(),
                remote: Page::default(),
                seed: path.seed,
            },
        );
        if path.by_stream {
            client.stream_opened(Time::ZERO, STREAM);
        }
        Pair {
            now: Time::ZERO,
            client,
            server: server_with(Time::ZERO, answering(), Box::new(native_wire(Role::Server))),
            flying: Vec::new(),
            sent: [0; 2],
            path,
            start: START,
            departures: Vec::new(),
            early: Vec::new(),
            from: client_address(),
            echoes: false,
            echoed: 5,
            came: Default::default(),
            typed_at: Vec::new(),
        }
    }

    fn fly(&mut self, to: Role, sent: Transmit, datagram: &[u8], is_in_run: bool) {
        let (way, leaves) = (sent.to, sent.at.unwrap_or(self.now));
        if is_in_run {
            self.departures.push((leaves, to, datagram.len()));
            self.early.push(leaves.since(self.now));
        }
        let nth = self.sent[to as usize];
        self.sent[to as usize] += 1;
        let mut rng = Rng::new(self.path.seed ^ nth << 8 ^ (to as u64) << 60);
        let since = self.now.since(self.start);
        let is_hostile = self.now >= self.start;
        let one_way = if to == Role::Client { self.path.deaf } else { self.path.mute };
        let outage = [self.path.dead, one_way];
        let lost = u64::from(rng.below(100)) < self.path.loss;
        let swallowed = outage
            .iter()
            .any(|span| since >= Duration::from_secs(2) && since < Duration::from_secs(2) + *span);
        if is_hostile && (lost || swallowed) || self.path.by_stream && !way.is_stream() {
            return;
        }
        let from = match way {
            Remote::Stream(_) => way,
            Remote::Udp(_) if to == Role::Server => self.from.into(),
            Remote::Udp(_) => server_address().into(),
        };
        let copies = 1 + u64::from(is_hostile && u64::from(rng.below(100)) < self.path.duplicates);
        for copy in 0..copies {
            let at = leaves + DELAY + Duration::from_millis(copy * 7);
            self.flying.push((at, nth, to, from, datagram.to_vec()));
        }
    }

    fn turn(&mut self) {
        let mut out = Outbox::default();
        loop {
            let is_in_run = self.client.is_in_run(self.now);
            let Some(sent) = self.client.poll_transmit(self.now, &mut out) else { break };
            self.fly(Role::Server, sent, &out.datagram, is_in_run);
        }
        loop {
            let is_in_run = self.server.is_in_run(self.now);
            let Some(sent) = self.server.poll_transmit(self.now, &mut out) else { break };
            self.fly(Role::Client, sent, &out.datagram, is_in_run);
        }
        for timeout in [self.client.poll_timeout(), self.server.poll_timeout()] {
            assert!(timeout.is_none_or(|at| at > self.now), "{timeout:?} at {:?}", self.now);
        }
    }

    fn run_until(&mut self, end: Time) {
        loop {
            self.turn();
            let next = self.flying.iter().map(|it| it.0).min();
            let next = [next, self.client.poll_timeout(), self.server.poll_timeout()];
            let Some(next) = next.into_iter().flatten().min().filter(|at| *at <= end) else {
                break;
            };
            self.now = next.max(self.now);
            self.flying.sort_by_key(|it| (it.0, it.1));
            while self.flying.first().is_some_and(|it| it.0 <= self.now) {
                let (_, _, to, from, mut datagram) = self.flying.remove(0);
                let arrival = Arrival { from, congested: false };
                let _ = match to {
                    Role::Server => self.server.handle_datagram(self.now, arrival, &mut datagram),
                    Role::Client => self.client.handle_datagram(self.now, arrival, &mut datagram),
                };
                while let Some(event) = self.server.poll_event() {
                    if let (true, Event::NewRemote { .. }) = (self.echoes, event) {
                        let length = self.server.remote().len();
                        if length > std::mem::replace(&mut self.echoed, length) {
                            self.server.update(self.now, |page| page.write(length, b"x"));
                        }
                    }
                }
                while self.client.poll_event().is_some() {}
                let lengths = [self.server.remote().len(), echoes(self.client.remote())];
                for (came, length) in self.came.iter_mut().zip(lengths) {
                    if came.last().is_none_or(|last| last.1 < length) {
                        came.push((self.now, length));
                    }
                }
            }
        }
        self.now = end;
        self.turn();
    }
}

/// How far the page has echoes.
fn echoes(page: &Page) -> usize {
    page.0.iter().rposition(|octet| *octet == b'x').map_or(0, |place| place + 1)
}

/// Types for `span` and lets the run end. Returns what left during the run, and the pair.
fn play(path: Path, typed: Typed, span: Duration) -> (Vec<(Time, Role, usize)>, Pair) {
    let mut pair = Pair::new(path);
    pair.client.update(Time::ZERO, |log| log.push(b"hello"));
    pair.run_until(START);
    assert_eq!(pair.client.answers_slots(), Some(true));
    pair.echoes = typed != Typed::Nothing;
    let mut rng = Rng::new(path.seed);
    let mut others = Rng::new(!path.seed);
    pair.departures.clear();
    let mut next_key = START;
    let roams_at = START + Duration::from_millis(3_300);
    while next_key < START + span {
        pair.run_until(next_key);
        let now = pair.now;
        pair.client.typed(now);
        match typed {
            Typed::Nothing => {}
            Typed::Keys | Typed::Between => pair.client.update(now, |log| log.push(b"k")),
            Typed::TwiceAsMany => pair.client.update(now, |log| log.push(b"kk")),
        }
        pair.typed_at.push((now, pair.client.local().len()));
        next_key = now + Duration::from_micros(u64::from(30_000 + rng.below(900_000)));
        if path.roams && next_key > roams_at {
            pair.from = "203.0.113.7:4444".parse().unwrap();
        }
        if typed == Typed::Between {
            let gap = next_key.since(now).as_micros() as u32;
            pair.run_until(now + Duration::from_micros(u64::from(1 + others.below(gap - 1))));
            let now = pair.now;
            pair.client.typed(now);
            pair.client.update(now, |log| log.push(b"b"));
            pair.typed_at.push((now, pair.client.local().len()));
        }
    }
    while pair.client.is_in_run(pair.now) {
        pair.run_until(pair.now + Duration::from_millis(5));
    }
    (std::mem::take(&mut pair.departures), pair)
}

/// When the last slot's datagram left.
fn last_slot(departures: &[(Time, Role, usize)]) -> Time {
    departures.iter().filter(|it| it.1 == Role::Server).map(|it| it.0).max().unwrap()
}

fn before(departures: &[(Time, Role, usize)], end: Time) -> Vec<(Time, Role, usize)> {
    departures.iter().filter(|it| it.0 < end).copied().collect()
}

fn seeds() -> RangeInclusive<u64> {
    let Ok(text) = std::env::var("SEEDS") else { return 1..=2000 };
    let (first, last) = text.split_once('-').unwrap_or(("1", &text));
    let seeds = first.parse().unwrap()..=last.parse().unwrap();
    assert!(!seeds.is_empty(), "SEEDS={text} has no seeds");
    seeds
}

fn path(seed: u64) -> Path {
    Path {
        seed,
        loss: (seed % 6) * 10,
        duplicates: (seed / 6 % 2) * 20,
        roams: seed % 4 == 3,
        deaf: Duration::ZERO,
        dead: Duration::ZERO,
        mute: Duration::ZERO,
        by_stream: false,
        copy_loss_min: SlotTiming::ROVE.copy_loss_min,
    }
}

/// One that loses nothing, and a session that has begun.
fn fair() -> Pair {
    let mut pair = Pair::new(Path { loss: 0, duplicates: 0, roams: false, ..path(6) });
    pair.client.update(Time::ZERO, |log| log.push(b"hello"));
    pair.run_until(START);
    pair
}

#[test]
fn departures_in_a_run_say_nothing_of_keys() {
    for seed in seeds() {
        let path = path(seed);
        let span = Duration::from_secs(8);
        let (none, _) = play(path, Typed::Nothing, span);
        for typed in [Typed::Keys, Typed::Between] {
            let (with, mut pair) = play(path, typed, span);
            // Keys at other moments end the run at another one: what is on in both is compared.
            let end = match typed {
                Typed::Between => last_slot(&none).min(last_slot(&with)),
                _ => Time::from_micros(u64::MAX),
            };
            let [without, with] = [&none, &with].map(|all| before(all, end));
            let differs = without.iter().zip(&with).find(|(a, b)| a != b);
            assert_eq!(differs, None, "SEEDS={seed}-{seed} {typed:?} {path:?}");
            assert_eq!(without.len(), with.len(), "SEEDS={seed}-{seed} {typed:?}");
            assert!(end > START + span + Duration::from_secs(1), "SEEDS={seed}-{seed} {typed:?}");
            pair.path.loss = 0;
            pair.run_until(pair.now + Duration::from_secs(60));
            let (typed, came) = (pair.client.local().len(), pair.server.remote().len());
            assert_eq!(typed, came, "SEEDS={seed}-{seed}: each key once");
            assert_eq!(
                *pair.client.remote(),
                *pair.server.local(),
                "SEEDS={seed}-{seed}: one screen"
            );
        }
        let own = none.iter().filter(|it| it.1 == Role::Server);
        let lengths: Vec<usize> = own.map(|it| it.2).collect();
        assert!(lengths.iter().all(|length| *length == 128), "SEEDS={seed}-{seed} {lengths:?}");
        assert!(lengths.len() > 100, "SEEDS={seed}-{seed} {}", lengths.len());
    }
}

/// An answer is no shorter than the datagram that it answers.
#[test]
fn a_paste_does_not_show_twice() {
    let mut pair = fair();
    pair.client.typed(START);
    pair.run_until(START + Duration::from_millis(400));
    let mut octets = Vec::new();
    Rng::new(1).fill(900, &mut octets);
    for (pasted, wanted) in [(90, 256), (300, 512), (900, 1200)] {
        pair.departures.clear();
        pair.client.typed(pair.now);
        pair.client.pasted();
        pair.client.update(pair.now, |log| log.push(&octets[..pasted]));
        pair.run_until(pair.now + Duration::from_millis(400));
        let to = |role: Role| pair.departures.iter().filter(move |it| it.1 == role);
        let long: Vec<_> = to(Role::Server).filter(|it| it.2 > 128).collect();
        assert!(!long.is_empty() && long.iter().all(|it| it.2 == wanted), "{long:?}");
        for slot in to(Role::Server).filter(|it| it.0 + 2 * DELAY < pair.now) {
            let came = slot.0 + DELAY;
            let answer = to(Role::Client).find(|it| it.0 >= came).unwrap();
            assert!(answer.0 < came + Duration::from_millis(5), "{answer:?}");
            assert_eq!(answer.2, slot.2, "{pasted} octets");
        }
    }
}

/// How long it takes to make a datagram does not show: each is made before it leaves.
#[test]
fn datagrams_are_made_before_they_leave() {
    let (_, pair) =
        play(Path { roams: false, ..path(6) }, Typed::TwiceAsMany, Duration::from_secs(8));
    assert!(pair.early.len() > 200, "{}", pair.early.len());
    assert!(pair.early.iter().all(|early| *early == Duration::from_micros(500)));
}

/// Keys that pile up, for one who drops answers, or all of it, make no datagram longer.
#[test]
fn keys_that_pile_up_do_not_show() {
    for (deaf, dead) in [(10, 0), (0, 30)] {
        let path =
            Path { deaf: Duration::from_secs(deaf), dead: Duration::from_secs(dead), ..path(6) };
        let span = Duration::from_secs(40);
        let (none, _) = play(path, Typed::Nothing, span);
        let (with, mut pair) = play(path, Typed::TwiceAsMany, span);
        assert_eq!(none.iter().zip(&with).find(|(a, b)| a != b), None, "{path:?}");
        pair.run_until(pair.now + Duration::from_secs(60));
        assert_eq!(pair.client.local().len(), pair.server.remote().len());
    }
}

/// Frames of a stream are slots as well, and UDP is tried beside them at times that no key decides.
#[test]
fn slots_are_the_same_by_a_stream() {
    for seed in 1..=10 {
        let path = Path { loss: 0, duplicates: 0, roams: false, by_stream: true, ..path(seed) };
        let span = Duration::from_secs(20);
        let (none, pair) = play(path, Typed::Nothing, span);
        assert!(pair.client.peer().is_some_and(Remote::is_stream));
        for typed in [Typed::Keys, Typed::TwiceAsMany] {
            let (with, mut pair) = play(path, typed, span);
            assert_eq!(none.iter().zip(&with).find(|(a, b)| a != b), None, "{seed} {typed:?}");
            pair.run_until(pair.now + Duration::from_secs(5));
            assert_eq!(pair.client.local().len(), pair.server.remote().len());
        }
        let tries = none.iter().filter(|it| it.1 == Role::Server && it.2 != 128).count();
        assert!((4..=12).contains(&tries), "UDP is tried: {tries}");
        let answers = none.iter().filter(|it| it.1 == Role::Client);
        assert!(answers.clone().count() > 200 && answers.clone().all(|it| it.2 == 128));
    }
}

#[test]
fn a_server_that_does_not_answer_slots_has_no_runs() {
    let mut pair = Pair::new(path(6));
    pair.client.typed(ms(0));
    assert!(!pair.client.is_in_run(ms(0)), "nobody has said that it answers");
}

/// A machine that slept amid a run finds it over, and does at once what has become due.
#[test]
fn a_run_is_over_for_a_machine_that_slept() {
    let mut pair = fair();
    pair.client.typed(START);
    pair.run_until(START + Duration::from_millis(300));
    assert!(pair.client.is_in_run(pair.now));
    pair.now = pair.now + Duration::from_secs(300);
    pair.flying.clear();
    pair.client.update(pair.now, |log| log.push(b"k"));
    // Each turn asserts that what is drained has nothing to do before its timeout.
    pair.run_until(pair.now + Duration::from_secs(10));
    assert!(!pair.client.is_in_run(pair.now));
    assert_eq!(pair.client.local().len(), pair.server.remote().len());
}

/// Of answers that are due at once those that may not go to an address that is not proven are left out, and what they would
/// have said is not taken to be sent.
#[test]
fn answers_that_may_not_be_sent_are_left_out() {
    let mut pair = fair();
    pair.client.typed(START);
    pair.run_until(START + Duration::from_millis(400));
    pair.from = "203.0.113.7:4444".parse().unwrap();
    let together = pair.now + Duration::from_millis(320);
    let mut together_slots = 0;
    let mut octets = Vec::new();
    Rng::new(1).fill(195, &mut octets);
    while pair.now < together {
        pair.run_until(pair.now + Duration::from_millis(1));
        let to_server = pair.flying.iter_mut().filter(|it| it.2 == Role::Server);
        to_server.for_each(|it| it.0 = it.0.max(together));
        let flying = pair.flying.iter().filter(|it| it.2 == Role::Server).count();
        together_slots = together_slots.max(flying);
        if pair.now == together - Duration::from_millis(5) {
            pair.server.update(pair.now, |page| page.write(5, &octets));
        }
    }
    pair.departures.clear();
    // Each turn asserts that what is drained has nothing to do before its timeout.
    pair.run_until(together + Duration::from_millis(10));
    let answers: Vec<usize> =
        pair.departures.iter().filter(|it| it.1 == Role::Client).map(|it| it.2).collect();
    // Some have the page, and those that may not be so long acknowledge.
    assert!(answers.contains(&512) && answers.contains(&128), "{answers:?}");
    assert!(answers.iter().sum::<usize>() <= 3 * 128 * together_slots, "{answers:?}");
    pair.run_until(together + Duration::from_secs(10));
    assert_eq!(*pair.client.remote(), *pair.server.local());
}

/// An answer that is too long for an address that is not proven waits for the first that may be so long. Until then
/// each slot is answered, and asks the address.
#[test]
fn an_answer_too_long_for_an_address_goes_once_that_is_proven() {
    let mut pair = fair();
    pair.client.typed(START);
    pair.run_until(START + Duration::from_millis(400));
    pair.from = "203.0.113.7:4444".parse().unwrap();
    while pair.server.peer() != Some(pair.from.into()) {
        pair.run_until(pair.now + Duration::from_millis(1));
    }
    let came = pair.now;
    let mut octets = Vec::new();
    Rng::new(1).fill(900, &mut octets);
    pair.server.update(came, |page| page.write(5, &octets));
    pair.departures.clear();
    while *pair.client.remote() != *pair.server.local() {
        pair.run_until(pair.now + Duration::from_millis(1));
        assert!(pair.now < came + Duration::from_secs(1), "{:?}", pair.departures);
    }
    let took = pair.now.since(came);
    let answers = pair.departures.iter().filter(|it| it.1 == Role::Client);
    let answers: Vec<(u128, usize)> =
        answers.map(|it| (it.0.since(came).as_millis(), it.2)).collect();
    // The answer to the slot that came asks, the next slot proves, and its answer has all.
    let lengths: Vec<usize> = answers.iter().map(|it| it.1).collect();
    assert!(matches!(lengths[..], [128, 512]), "{answers:?}");
    assert_eq!(answers[1].0 - answers[0].0, SlotTiming::ROVE.slot.as_millis(), "{answers:?}");
    let most = SlotTiming::ROVE.slot + SlotTiming::ROVE.hold + DELAY + Duration::from_millis(2);
    assert!(took <= most, "{took:?} {answers:?}");
}

/// Where a path loses much, two datagrams in a slot's time bring keys and echoes sooner.
#[test]
fn two_in_a_slot_shorten_waits_where_much_is_lost() {
    for (loss, gain_ms) in [(10, 2.0), (20, 12.0), (29, 15.0)] {
        let [once, twice] = [1.0, 0.1].map(|copy_loss_min| {
            let (mut keys, mut echoes, mut sent) = (Vec::new(), Vec::new(), 0);
            for seed in 1..=30 {
                let calm = Path { duplicates: 0, roams: false, ..path(seed) };
                let path = Path { loss, copy_loss_min, ..calm };
                let (departures, pair) = play(path, Typed::Keys, Duration::from_secs(20));
                sent += departures.len();
                // Loss shows after some time.
                let typed = pair.typed_at.iter().filter(|it| it.0 > START + Duration::from_secs(5));
                for (at, length) in typed {
                    let came = |came: &[(Time, usize)], length: usize| {
                        let first = came.iter().find(|it| it.1 >= length)?;
                        Some(first.0.since(*at).as_micros() as f64 / 1e3)
                    };
                    keys.extend(came(&pair.came[0], *length));
                    echoes.extend(came(&pair.came[1], length + 1));
                }
            }
            let told = [keys, echoes].map(|mut waits| {
                waits.sort_unstable_by(f64::total_cmp);
                let mean = waits.iter().sum::<f64>() / waits.len() as f64;
                (mean, waits[waits.len() * 99 / 100], waits.len())
            });
            println!("{loss} % lost, two from {copy_loss_min}: {told:?}, {sent} datagrams");
            told
        });
        for (once, twice) in once.iter().zip(&twice) {
            assert!(once.0 - twice.0 > gain_ms, "{loss} %: {once:?} {twice:?}");
            assert!(once.1 > twice.1, "{loss} %: {once:?} {twice:?}");
        }
    }
}

/// A session at rest hears nothing for long. That is no silence.
#[test]
fn a_key_after_a_rest_does_not_wait_for_an_answer() {
    let mut pair = fair();
    pair.run_until(START + Duration::from_secs(90));
    while pair.client.last_heard().unwrap() > pair.now - Duration::from_secs(5) {
        pair.run_until(pair.now + Duration::from_secs(1));
    }
    let now = pair.now;
    for key in 0..3 {
        pair.run_until(now + Duration::from_millis(100 * key));
        pair.client.typed(pair.now);
        pair.client.update(pair.now, |log| log.push(b"k"));
        pair.run_until(pair.now + SlotTiming::ROVE.slot + DELAY);
        assert_eq!(pair.client.local().len(), pair.server.remote().len(), "key {key}");
    }
}

/// Slots that nothing answers are rare, also where the server is heard: they would fill a stream that stands still.
#[test]
fn slots_that_do_not_arrive_are_rare() {
    for by_stream in [false, true] {
        let mut pair = fair();
        pair.path = Path { mute: Duration::from_secs(30), ..pair.path };
        if by_stream {
            pair.path.by_stream = true;
            pair.client.stream_opened(pair.now, STREAM);
        }
        let mut turns = 0;
        while pair.now < START + Duration::from_secs(32) {
            pair.client.typed(pair.now);
            if pair.now == START + Duration::from_secs(6) {
                pair.departures.clear();
            }
            turns += 1;
            pair.server.update(pair.now, |page| page.write(turns, b"x"));
            pair.run_until(pair.now + Duration::from_millis(500));
        }
        let heard = pair.client.last_heard().unwrap();
        assert!(by_stream || heard > pair.now - Duration::from_secs(3), "{heard:?}");
        let sent = pair.departures.iter().filter(|it| it.1 == Role::Server).count();
        assert!((60..150).contains(&sent), "{sent} in 26 s");
        pair.run_until(pair.now + Duration::from_secs(20));
        assert_eq!(*pair.client.remote(), *pair.server.local());
    }
}
