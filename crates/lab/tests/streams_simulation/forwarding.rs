//! A forwarding: both ends open channels at the same time, write, read, shut down and drop them over a hostile path.
//! Readers get the octets that were written, once and in order.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rove_lab::testing::rng::{Chance, Rng};
use rove_ssp::Time;
use rove_streams::{Channel, Ended, Reader, Streams, Writer, clock};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::counts::Counts;
use crate::network::{Net, SECOND};
use crate::paths::{Course, HOSTILE};
use crate::session::{self, End, HELD_MAX};

/// The most octets of one direction of a channel.
const OCTETS_MAX: u64 = 400_000;

/// Over a fair path something arrives within this time, as long as something is to arrive: attempts are at most
/// 15 s apart, and one takes a few round trips.
const STALL: Duration = Duration::from_secs(20);

/// Counts of one seed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Tally {
    octets: u64,
    channels: u64,
    given_up: u64,
    cut_short: u64,
}

/// The state that the tasks of both ends share.
#[derive(Clone, Default)]
struct Shared {
    tally: Arc<Mutex<Tally>>,
    /// Octets and ends that have been read.
    moved: Arc<AtomicU64>,
    /// A process was killed, so that not all arrives.
    is_cut: Arc<AtomicU64>,
}

impl Shared {
    /// Adds to the counts of all seeds.
    fn count(&self, counts: &mut Counts) -> Tally {
        let tally = *self.tally.lock().unwrap();
        counts.forwarded += tally.octets;
        counts.channels += tally.channels;
        counts.given_up += tally.given_up;
        counts.cut_short += tally.cut_short;
        tally
    }
}

/// One channel.
#[derive(Clone, Copy, Debug)]
struct Talk {
    number: u8,
    /// Which end opens it: 0 is the client.
    opener: usize,
    begins: Duration,
    /// From the opener, and back.
    there: Direction,
    back: Direction,
}

/// One direction of a channel.
#[derive(Clone, Copy, Debug)]
struct Direction {
    octets: u64,
    /// Octets in one write, and the pause after it.
    piece: u64,
    pause: Duration,
    /// Its reader goes away after this many octets.
    gives_up: Option<u64>,
}

/// Runs the forwarding of this seed.
pub async fn run(mut rng: Rng, counts: &mut Counts) {
    let course = Course::hostile(&mut rng);
    let net = Net::new(course.profile.clone(), &mut rng);
    let (networks, _) = watch::channel(0);
    let mut ends = session::start(&net, &mut rng, &networks);
    let mut world = JoinSet::new();
    world.spawn(Arc::clone(&net).run());
    let moves = course.moves.clone();
    world.spawn(course.run(Arc::clone(&net), networks));

    let shared = Shared::default();
    let mut tasks = begin(&mut rng, ends.each_ref().map(|end| end.streams.clone()), &shared);
    let death =
        rng.happens(Chance::percent(15)).then(|| (rng.span_below(HOSTILE), rng.below(2) as usize));
    tokio::select! {
        biased;
        () = finished(&mut tasks) => {}
        () = watch_over(&net, &ends, &shared) => {}
        () = session::hold_within(ends.each_ref().map(|end| end.streams.clone()), HELD_MAX) => {}
        () = die(&net, death) => {
            let (_, place) = death.unwrap();
            counts.deaths[place] += 1;
            shared.is_cut.store(1, Ordering::Relaxed);
            ends[place].kill().await;
            // The other end waits for it, and ends nothing by itself.
            clock::sleep(10 * SECOND).await;
            ends[1 - place].streams.close();
            ends[place].streams.close();
            finished(&mut tasks).await;
        }
    }
    counts.add_network(net.now(), net.passed());
    counts.roams += moves.iter().filter(|(at, _)| *at < net.now()).count() as u64;
    let tally = shared.count(counts);
    counts.reconnects += ends[0].streams.connections().saturating_sub(1);
    ends.iter().for_each(|end| counts.add_choices_of_streams(end.streams.buggified()));
    counts.add_trace(tally.octets);
    for end in &mut ends {
        end.kill().await;
    }
}

/// Runs channels of this chance between two ends that live, to their ends.
pub async fn converse_all(rng: &mut Rng, streams: [Streams; 2], counts: &mut Counts) {
    let shared = Shared::default();
    finished(&mut begin(rng, streams, &shared)).await;
    shared.count(counts);
}

/// Begins channels of this chance.
fn begin(rng: &mut Rng, streams: [Streams; 2], shared: &Shared) -> JoinSet<()> {
    let talks: Vec<Talk> = (0..rng.within(1, 6)).map(|number| talk(number as u8, rng)).collect();
    let mut tasks = JoinSet::new();
    for (place, streams) in streams.into_iter().enumerate() {
        let own = talks.iter().filter(|talk| talk.opener == place).copied();
        for talk in own {
            tasks.spawn(open(talk, streams.clone(), shared.clone()));
        }
        let others = talks.iter().filter(|talk| talk.opener != place).copied().collect();
        tasks.spawn(accept(others, streams, shared.clone()));
    }
    tasks
}

fn talk(number: u8, rng: &mut Rng) -> Talk {
    let opener = rng.below(2) as usize;
    Talk {
        number,
        opener,
        begins: rng.span_below(HOSTILE),
        there: direction(rng),
        back: direction(rng),
    }
}

fn direction(rng: &mut Rng) -> Direction {
    let octets = rng.pick(&[0, 1, 1_000, 60_000, OCTETS_MAX]);
    let octets = rng.within(octets / 2, octets);
    let piece = rng.pick(&[100, 5_000, 65_536]).max(octets / 100);
    let pause = rng.pick(&[Duration::ZERO, Duration::ZERO, SECOND / 100, SECOND]);
    let gives_up = rng.happens(Chance::percent(10)).then(|| rng.below(octets.max(1)));
    Direction { octets, piece, pause, gives_up }
}

/// The octet at a place of a direction.
fn octet(number: u8, place: u64) -> u8 {
    ((place ^ u64::from(number) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

async fn open(talk: Talk, streams: Streams, shared: Shared) {
    clock::sleep(talk.begins).await;
    match streams.open(&[talk.number]).await {
        Ok(channel) => converse(talk.number, channel, talk.there, talk.back, shared).await,
        Err(ended) => {
            assert_eq!(ended, Ended::Closed);
            assert!(shared.is_cut.load(Ordering::Relaxed) > 0, "the session ended by itself");
        }
    }
}

/// Takes the channels that the other end opens, each once.
async fn accept(mut others: Vec<Talk>, streams: Streams, shared: Shared) {
    let mut tasks = JoinSet::new();
    while !others.is_empty() {
        let Some((request, channel)) = streams.accept().await else {
            assert!(shared.is_cut.load(Ordering::Relaxed) > 0, "the session ended by itself");
            break;
        };
        let place = others.iter().position(|talk| request == [talk.number]);
        let talk = others.remove(place.expect("each channel is opened once"));
        let (there, back) = (talk.there, talk.back);
        tasks.spawn(converse(talk.number ^ 0x80, channel, back, there, shared.clone()));
    }
    finished(&mut tasks).await;
}

/// Writes one direction and reads the other. `number` has 0x80 set in the direction from who accepts.
async fn converse(number: u8, channel: Channel, out: Direction, back: Direction, shared: Shared) {
    let (reader, writer) = channel.split();
    shared.tally.lock().unwrap().channels += 1;
    tokio::join!(write(number, writer, out, &shared), read(number ^ 0x80, reader, back, &shared));
}

async fn write(number: u8, mut writer: Writer, direction: Direction, shared: &Shared) {
    let mut written = 0;
    while written < direction.octets {
        let piece = direction.piece.min(direction.octets - written);
        let octets: Vec<u8> = (written..written + piece).map(|at| octet(number, at)).collect();
        if let Err(error) = writer.write_all(&octets).await {
            return explain(
                error.kind(),
                ErrorKind::BrokenPipe,
                direction.gives_up.is_some(),
                shared,
            );
        }
        written += piece;
        if !direction.pause.is_zero() {
            clock::sleep(direction.pause).await;
        }
    }
    if let Err(error) = writer.shutdown().await {
        return explain(error.kind(), ErrorKind::BrokenPipe, direction.gives_up.is_some(), shared);
    }
    // This waits for the acknowledgment.
    if let Err(error) = writer.arrived().await {
        explain(error.kind(), ErrorKind::BrokenPipe, direction.gives_up.is_some(), shared);
    }
}

async fn read(number: u8, mut reader: Reader, direction: Direction, shared: &Shared) {
    let mut place = 0;
    let mut buffer = vec![0; 16 << 10];
    loop {
        let most = direction.gives_up.map_or(u64::MAX, |last| last.saturating_sub(place));
        if most == 0 {
            shared.tally.lock().unwrap().given_up += 1;
            return;
        }
        let length = most.min(buffer.len() as u64) as usize;
        let count = match reader.read(&mut buffer[..length]).await {
            Ok(count) => count,
            Err(error) => return explain(error.kind(), ErrorKind::ConnectionReset, false, shared),
        };
        shared.moved.fetch_add(1, Ordering::Relaxed);
        if count == 0 {
            assert_eq!(place, direction.octets, "direction {number:#x} ends early, or late");
            return;
        }
        shared.tally.lock().unwrap().octets += count as u64;
        for (read, at) in buffer[..count].iter().zip(place..) {
            assert_eq!(*read, octet(number, at), "octet {at} of direction {number:#x}");
        }
        place += count as u64;
    }
}

/// An error of a channel must have its reason: its reader went away, or a process died.
fn explain(kind: ErrorKind, expected: ErrorKind, is_given_up: bool, shared: &Shared) {
    let is_cut = shared.is_cut.load(Ordering::Relaxed) > 0;
    if is_cut && kind == ErrorKind::ConnectionAborted {
        shared.tally.lock().unwrap().cut_short += 1;
        return;
    }
    assert!(is_given_up && kind == expected, "{kind:?} without a reason");
}

async fn finished(tasks: &mut JoinSet<()>) {
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}

/// Ends at the time of a process's death.
async fn die(net: &Net, death: Option<(Duration, usize)>) {
    match death {
        Some((at, _)) => net.until(Time::ZERO + at).await,
        None => std::future::pending().await,
    }
}

/// Fails if nothing moves over a fair path.
async fn watch_over(net: &Net, ends: &[End; 2], shared: &Shared) {
    let (mut moved, mut since) = (0, net.now());
    loop {
        clock::sleep(SECOND).await;
        let now = net.now();
        let heals = Time::ZERO + HOSTILE;
        let count = shared.moved.load(Ordering::Relaxed);
        if count != moved || now < heals {
            (moved, since) = (count, now);
        }
        let stalled = now.since(since);
        assert!(
            stalled < STALL,
            "nothing moves for {stalled:?} over a fair path; kept for the peers: {:?}",
            ends.each_ref().map(|end| end.streams.on_the_way())
        );
    }
}
