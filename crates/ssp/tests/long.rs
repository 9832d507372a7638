//! What takes several datagrams: on paths of any length, where long datagrams vanish, and under loss
//! (`docs/wire.md` sections 7 and 9).
#![allow(clippy::unwrap_used)] // In helpers, too: a failure here is a failed test.

mod common;

use std::net::SocketAddr;
use std::time::Duration;

use common::{Weather, World, client_address, drain, ms, server_address};
use rove_ssp::{Arrival, Machine, Rng, Session, Timing};

/// Octets that deflate makes no shorter.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut octets = Vec::new();
    Rng::new(seed).fill(len, &mut octets);
    octets
}

/// Sends `len` octets and waits until they have arrived; how long that took.
fn deliver(world: &mut World, len: usize) -> Duration {
    let start = world.now;
    let text = noise(start.as_micros(), len);
    let before = world.read.len();
    world.client.update(start, |log| log.push(&text));
    while world.read.len() < before + len {
        let next = world.now + Duration::from_millis(5);
        world.run(next);
        assert!(next.since(start) < Duration::from_secs(60), "{len} octets never arrive");
    }
    assert!(world.read[before..] == text[..]);
    world.now.since(start)
}

fn longest(world: &mut World) -> usize {
    world.sizes.drain(..).max().unwrap_or(0)
}

/// Long datagrams vanish without a word, from the first one on, and the path changes in mid-flight.
#[test]
fn paths_of_any_length_are_used() {
    let mut world = World::native(3, Weather::CLEAR, &Timing::ROVE);
    // Octets that arrive, and the longest that are sent once the path is known.
    for (mtu, found) in [(548, 548), (1472, 1452), (1300, 1200), (548, 548), (1280, 1200)] {
        world.mtu = mtu;
        let later = world.now + Duration::from_secs(601);
        world.run(later);
        for _ in 0..12 {
            deliver(&mut world, 6000);
            // The rest of a first frame is on its way when the path changes.
            let now = world.now;
            world.client.update(now, |log| log.push(&noise(9, 3000)));
            world.server.update(now, |page| page.write(0, b"x"));
            world.run(now + Duration::from_millis(400));
            world.server.update(now, |page| page.write(0, b"y"));
            world.run(now + Duration::from_millis(1500));
        }
        longest(&mut world);
        deliver(&mut world, 6000);
        // A head is seldom as long as there is room for.
        let longest = longest(&mut world);
        assert!((found - 60..=found).contains(&longest), "{longest} on a path that takes {mtu}");
    }
}

/// A path of 576 octets, on which the padded first datagrams vanish.
#[test]
fn a_narrow_path_is_no_reason_not_to_begin() {
    for mtu in [548, 1000] {
        let mut world = World::native(3, Weather::CLEAR, &Timing::ROVE);
        world.mtu = mtu;
        world.client.update(ms(0), |log| log.push(b"first words"));
        world.run(ms(10_000));
        assert_eq!(world.read, b"first words", "a path that takes {mtu}");
        assert!(world.client.last_heard().is_some());
    }
}

/// An enemy on the path makes the client's datagrams come from a victim: nothing is tried out there.
#[test]
fn a_victim_gets_no_probes() {
    let victim = SocketAddr::from(([192, 0, 2, 99], 1000));
    let mut world = World::native(5, Weather::CLEAR, &Timing::ROVE);
    world.run(ms(3000));
    let (mut spent, mut got) = (0, 0);
    for turn in 0..400_u64 {
        let now = ms(3000 + turn * 25);
        world.server.update(now, |page| page.write(turn as usize, &noise(turn, 200)));
        world.client.update(now, |log| log.push(b"k"));
        for (_, mut datagram) in drain(now, &mut world.client) {
            spent += datagram.len();
            let arrival = Arrival { from: victim.into(), congested: false };
            let _ = world.server.handle_datagram(now, arrival, &mut datagram);
        }
        for (transmit, datagram) in drain(now, &mut world.server) {
            if transmit.to == victim {
                got += datagram.len();
                assert!(datagram.len() <= 1200, "{} octets", datagram.len());
            }
        }
        assert!(got <= 3 * spent, "{got} octets for {spent}");
    }
    assert!(got > 0 && client_address() != victim && server_address() != victim);
}

/// Of a megabyte only what is lost goes again: whole, it would never arrive.
#[test]
fn only_lost_fragments_are_sent_again() {
    for (loss_percent, share_percent) in [(0, 108), (5, 118), (20, 150)] {
        let weather = Weather { loss_percent, ..Weather::CLEAR };
        let mut world = World::native(5, weather, &Timing::ROVE);
        world.run(ms(1000));
        world.sizes.clear();
        deliver(&mut world, 1 << 20);
        let long: Vec<usize> = world.sizes.iter().copied().filter(|size| *size > 500).collect();
        let sent: usize = long.iter().sum();
        let percent = sent * 100 / (1 << 20);
        assert!(percent <= share_percent, "{percent} % of it at {loss_percent} % loss");
    }
}

/// Parity saves most of the round trips that repairs take.
#[test]
fn parity_saves_round_trips() {
    let slow = |timing: &Timing| {
        let weather = Weather { loss_percent: 10, delay_ms: 50, ..Weather::CLEAR };
        let mut world = World::native(5, weather, timing);
        world.run(ms(1000));
        let mut slow = 0;
        for turn in 0..200 {
            let took = deliver(&mut world, 5500);
            // The first ones teach how much is lost.
            slow += u32::from(turn >= 20 && took > Duration::from_millis(100));
            let later = world.now + Duration::from_millis(700);
            world.run(later);
        }
        slow
    };
    let (with, without) = (slow(&Timing::ROVE), slow(&Timing::METERED));
    // At 10 % loss 41 in a hundred frames of five lose something; three or more of seven, 3 in a hundred.
    assert!(without > 50 && with * 3 < without, "{with} of 180 waited, {without} without parity");
}

/// Octets arrive in the order in which they were typed, so a key cannot overtake the paste before it; but it
/// waits for no more than that, though it was typed while the paste was under way.
#[test]
fn a_key_behind_a_megabyte_waits_for_nothing_else() {
    let mut world = World::native(5, Weather { delay_ms: 50, ..Weather::CLEAR }, &Timing::ROVE);
    world.run(ms(1000));
    let start = world.now;
    world.client.update(start, |log| log.push(&noise(7, 1 << 20)));
    world.run(start + Duration::from_millis(200));
    let now = world.now;
    world.client.update(now, |log| log.push(b"k"));
    let until = |world: &mut World, octets: usize| {
        while world.read.len() < octets {
            let next = world.now + Duration::from_millis(5);
            world.run(next);
            assert!(next.since(start) < Duration::from_secs(5), "{octets} octets are late");
        }
        world.now
    };
    let (paste, key) = (until(&mut world, 1 << 20), until(&mut world, (1 << 20) + 1));
    assert!(key.since(paste) <= Duration::from_millis(20), "{:?}", key.since(paste));
}

/// What a path loses anyway makes a megabyte slower, and not by much.
#[test]
fn a_megabyte_arrives_over_a_lossy_path() {
    for (loss_percent, seconds) in [(0, 2), (1, 4), (5, 12), (20, 18)] {
        for seed in [5, 6, 7] {
            let weather = Weather { delay_ms: 50, loss_percent, ..Weather::CLEAR };
            let mut world = World::native(seed, weather, &Timing::ROVE);
            world.run(ms(1000));
            let took = deliver(&mut world, 1 << 20);
            assert!(took < Duration::from_secs(seconds), "{took:?} at {loss_percent} %");
        }
    }
}

/// A program reads the beginning of what is pasted while the rest is under way, and who is elsewhere in the
/// middle of it does not begin anew. No part is longer than 64 datagrams.
#[test]
fn a_megabyte_comes_in_parts() {
    let weather = Weather { delay_ms: 50, loss_percent: 2, ..Weather::CLEAR };
    let mut world = World::native(5, weather, &Timing::ROVE);
    world.run(ms(1000));
    let (start, text) = (world.now, noise(7, 1 << 20));
    world.client.update(start, |log| log.push(&text));
    let (mut held, mut parts) = (0, 0);
    while world.read.len() < text.len() {
        let next = world.now + Duration::from_millis(1);
        world.run(next);
        let came = world.read.len() - held;
        assert!(came <= 64 * 1452, "{came} octets at once");
        (held, parts) = (world.read.len(), parts + u32::from(came > 0));
        if parts == 5 && came > 0 {
            world.client.network_changed(next);
            world.sizes.clear();
        }
        assert!(next.since(start) < Duration::from_secs(20), "{held} octets after 20 s");
    }
    assert!(world.read == text && parts >= 12, "{parts} parts");
    let sent: usize = world.sizes.iter().copied().filter(|size| *size > 500).sum();
    assert!(sent < text.len() * 9 / 10, "{sent} octets after the move");
}

/// A terminal gives a paste in pieces of 4 KiB: the states that begin with the first of them do not grow to the
/// whole of it, and over a lossy path none is told at once either.
#[test]
fn what_is_pasted_in_pieces_comes_in_parts() {
    for (loss_percent, seconds) in [(0, 2), (5, 12)] {
        for seed in [5, 6, 7] {
            let weather = Weather { delay_ms: 50, loss_percent, ..Weather::CLEAR };
            let mut world = World::native(seed, weather, &Timing::ROVE);
            world.run(ms(1000));
            // There is room for all of it by now.
            deliver(&mut world, 1 << 19);
            let (start, before, text) = (world.now, world.read.len(), noise(7, 1 << 20));
            let mut pieces = text.chunks(4096);
            let (mut held, mut most) = (before, 0);
            while held < before + text.len() {
                let now = world.now;
                if let Some(piece) = pieces.next() {
                    world.client.update(now, |log| log.push(piece));
                }
                world.run(now + Duration::from_millis(1));
                most = most.max(world.read.len() - held);
                held = world.read.len();
                let took = world.now.since(start);
                assert!(took < Duration::from_secs(seconds), "{held} at {loss_percent} %");
            }
            assert!(world.read[before..] == text[..]);
            assert!(most <= 64 * 1452, "{most} octets at once at {loss_percent} %");
        }
    }
}

/// A part that was cut for long datagrams comes in short ones, and so do those after it.
#[test]
fn parts_come_where_datagrams_must_become_shorter() {
    for after_ms in [20, 130, 260] {
        let mut world = World::native(5, Weather { delay_ms: 50, ..Weather::CLEAR }, &Timing::ROVE);
        world.run(ms(1000));
        deliver(&mut world, 1 << 18);
        let (start, before, text) = (world.now, world.read.len(), noise(7, 300_000));
        world.client.update(start, |log| log.push(&text));
        world.run(start + Duration::from_millis(after_ms));
        world.mtu = 600;
        while world.read.len() < before + text.len() {
            world.run(world.now + Duration::from_millis(5));
            assert!(world.now.since(start) < Duration::from_secs(30), "{after_ms} ms");
        }
        assert!(world.read[before..] == text[..]);
    }
}
