//! A transfer in each direction beside a session: while a run of slots is on, no packet of theirs leaves at another time or
//! with another length because somebody types. Without slots they show it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rove_lab::testing::link::Profile;
use rove_lab::testing::rng::{Chance, Rng};
use rove_session::client::Obscure;
use rove_ssp::Time;
use rove_streams::{Channel, Streams};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::network::{Departure, Net};
use crate::terminal::{self, Typing};
use crate::{say, virtual_time};

/// Sessions that are compared.
const SEEDS: u64 = 6;

/// The first key begins a run, which is on for two seconds at least. By then the transfers are at their full rate.
const FIRST: Time = Time::from_millis(6_000);
const COMPARED: Duration = Duration::from_millis(2_000);

/// As long as all of that, and a little.
const SPAN: Duration = Duration::from_millis(8_500);

/// At each loss.
const LOSSY_SEEDS: u64 = 3;

const MS: Duration = Duration::from_millis(1);

#[test]
fn bulk_tells_nothing_of_keys_while_a_run_is_on() {
    let mut all = 0;
    for seed in 1..=SEEDS {
        let one = departures(seed, Obscure::Always, &[FIRST]);
        for keys in [5, 10] {
            let more = departures(seed, Obscure::Always, &keys_of(seed, keys));
            assert!(one == more, "SEED={seed}, {keys} keys: {}", difference(&one, &more));
        }
        let bulk: Vec<&Departure> = one.iter().filter(|it| it.is_quic).collect();
        assert!(bulk.iter().any(|it| it.is_up) && bulk.iter().any(|it| !it.is_up));
        // In a run they leave most of the path to the session.
        assert!(bulk.len() > 20 && bulk.len() < one.len(), "{} of {}", bulk.len(), one.len());
        all += one.len();
    }
    say(&format!("{all} departures in {SEEDS} runs are the same with 1, 5 and 10 keys"));
}

/// The same where datagrams are lost. In all, transfers bring half as much as beside keys that go at once, or more: what they
/// leave to the session does not stop them.
#[test]
fn bulk_beside_slots_gets_on_where_datagrams_are_lost() {
    let mut came = [0; 2];
    for percent in [10, 20, 29] {
        for seed in 1..=LOSSY_SEEDS {
            let one = play(seed, percent, Obscure::Always, &[FIRST]);
            for keys in [5, 10] {
                let more = play(seed, percent, Obscure::Always, &keys_of(seed, keys));
                let (one, more) = (&one.departures, &more.departures);
                let differs = difference(one, more);
                assert!(one == more, "SEED={seed}, {percent} % lost, {keys} keys: {differs}");
            }
            let plain = play(seed, percent, Obscure::Secrets, &[FIRST]);
            came[0] += one.octets.iter().sum::<u64>();
            came[1] += plain.octets.iter().sum::<u64>();
        }
    }
    let [slots, plain] = came.map(|octets| octets / 1000);
    say(&format!("at 10 to 29 % loss transfers bring {slots} kB beside slots, {plain} without"));
    assert!(slots * 2 >= plain && slots > 300, "{slots} kB beside slots, {plain} without");
}

/// Where keys go at once, the same transfers show them: what the test above compares is not blind.
#[test]
fn bulk_shows_keys_without_slots() {
    let seed = 1;
    let bulk = |keys: &[Time]| -> Vec<Departure> {
        let all = departures(seed, Obscure::Secrets, keys);
        all.into_iter().filter(|it| it.is_quic).collect()
    };
    assert!(bulk(&[FIRST]) == bulk(&[FIRST]), "another run of this seed differs");
    assert!(bulk(&[FIRST]) != bulk(&keys_of(seed, 10)), "bulk yields to nobody");
}

/// The first key, and others in the time that is compared.
fn keys_of(seed: u64, count: usize) -> Vec<Time> {
    let mut rng = Rng::new(!seed);
    let others = (1..count).map(|_| FIRST + rng.span_within(10 * MS, COMPARED - 100 * MS));
    let mut keys: Vec<Time> = others.chain([FIRST]).collect();
    keys.sort_unstable();
    keys
}

fn difference(one: &[Departure], other: &[Departure]) -> String {
    let place = one.iter().zip(other).position(|(a, b)| a != b);
    let place = place.unwrap_or(one.len().min(other.len()));
    format!("departure {place}: {:?} and {:?}", one.get(place), other.get(place))
}

/// What leaves both ends in the time that is compared, where nothing is lost but in queues.
fn departures(seed: u64, obscure: Obscure, keys: &[Time]) -> Vec<Departure> {
    play(seed, 0, obscure, keys).departures
}

/// What a listener sees in the time that is compared, and what transfers bring in it, down and up.
struct Played {
    departures: Vec<Departure>,
    octets: [u64; 2],
}

fn play(seed: u64, percent: u32, obscure: Obscure, keys: &[Time]) -> Played {
    let mut heard = Vec::new();
    let came: [Arc<AtomicU64>; 2] = Default::default();
    let count = |came: &[Arc<AtomicU64>; 2]| came.each_ref().map(|it| it.load(Ordering::Relaxed));
    let (mut before, mut after) = ([0; 2], [0; 2]);
    virtual_time(async {
        let mut rng = Rng::new(seed);
        let path = Profile::delay(rng.pick(&[5, 20, 60]) * MS).rate(6_000_000, 64_000);
        let path = path.loss(Chance::percent(percent));
        let net = Net::new([path.clone(), path], &mut rng);
        let mut world = JoinSet::new();
        let (networks, _) = watch::channel(0);
        let typing = Typing { obscure, keys: keys.to_vec(), networks: networks.subscribe() };
        let (seen, mut tasks) = (Arc::default(), JoinSet::new());
        let [client, server] = terminal::start(&net, &mut rng, typing, &seen, &mut tasks);
        world.spawn(Arc::clone(&net).run());
        world.spawn(transfer_as_client(client.clone(), Arc::clone(&came[0])));
        world.spawn(transfer_as_server(server.clone(), Arc::clone(&came[1])));
        net.listen();
        net.until(FIRST).await;
        before = count(&came);
        net.until(FIRST + COMPARED).await;
        after = count(&came);
        net.until(Time::ZERO + SPAN).await;
        heard = net.heard();
        world.shutdown().await;
        tasks.shutdown().await;
    });
    let span = FIRST..FIRST + COMPARED;
    let departures = heard.into_iter().filter(|it| span.contains(&it.at)).collect();
    Played { departures, octets: [after[0] - before[0], after[1] - before[1]] }
}

async fn transfer_as_client(streams: Streams, came: Arc<AtomicU64>) {
    let channel = streams.open(b"bulk").await.unwrap();
    transfer(channel, &came).await;
}

async fn transfer_as_server(streams: Streams, came: Arc<AtomicU64>) {
    let (_, channel) = streams.accept().await.unwrap();
    transfer(channel, &came).await;
}

/// Writes for ever, and reads what the other end writes.
async fn transfer(channel: Channel, came: &AtomicU64) {
    let (mut reader, mut writer) = channel.split();
    let write = async { while writer.write_all(&[7; 16_384]).await.is_ok() {} };
    let read = async {
        let mut octets = vec![0; 65_536];
        while let Ok(read @ 1..) = reader.read(&mut octets).await {
            came.fetch_add(read as u64, Ordering::Relaxed);
        }
    };
    tokio::join!(write, read);
}
