//! Programs that print without end, in virtual time: the screen keeps to its pace, and keys are answered at once.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::time::Duration;

use common::{GOOD, Link, Pair, client_config, ms, server_config, size};
use rove_session::{Peer, server};
use rove_ssp::Rng;

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Threats row 33, on a screen whose frames cost most of a tenth of a second each.
#[test]
fn a_flooding_program_is_held_to_the_rate_and_interrupted_at_once() {
    let mut config = client_config(Peer::Stock);
    config.size = size(100, 200);
    let link = Link { delay: ms(50), ..GOOD };
    let mut pair = Pair::with(link, config, server_config(Peer::Stock));
    pair.program = |_| b"\r\n$ interrupted".to_vec();
    pair.run(secs(1));
    let (before, start) = (pair.server.endpoint().stats().sent.bytes, pair.now);
    let mut noise = Rng::new(5);
    let mut answers = Vec::new();
    for key in 1..=10 {
        while pair.now.since(start) < secs(2) * key {
            flood(&mut pair, &mut noise);
        }
        let (typed_at, typed) = (pair.now, pair.typed.len());
        pair.keys(b"\x03");
        while pair.typed.len() == typed {
            flood(&mut pair, &mut noise);
        }
        while !pair.client.view().screen().text().concat().contains("$ interrupted") {
            pair.run_ms(1);
        }
        answers.push(pair.now.since(typed_at));
    }
    let sent = pair.server.endpoint().stats().sent.bytes - before;
    let span = pair.now.since(start).as_secs_f64();
    let allowed = server::SCREEN_RATE as f64 / 8.0 * (span + 0.6);
    assert!((0.8 * allowed..allowed).contains(&(sent as f64)), "{sent} octets in {span} s");
    // RTT + 50 ms. A key or an answer that just missed a datagram waits for the next, half an RTT later
    // (`mosh-protocol.md` §4.1), so one may take longer.
    let mean = answers.iter().sum::<Duration>() / 10;
    assert!(mean <= ms(150) && answers.iter().all(|&answer| answer <= ms(200)), "{answers:?}");
}

/// What a key lets go ahead of the pace is its answer: output that begins long after it waits its turn.
#[test]
fn what_comes_long_after_a_key_is_no_answer() {
    let mut config = client_config(Peer::Stock);
    config.size = size(100, 200);
    let mut pair = Pair::with(Link { delay: ms(50), ..GOOD }, config, server_config(Peer::Stock));
    pair.program = |_| Vec::new();
    pair.run(secs(1));
    let mut noise = Rng::new(7);
    for _ in 0..1000 {
        flood(&mut pair, &mut noise);
    }
    pair.keys(b"\x03");
    while pair.typed.is_empty() {
        flood(&mut pair, &mut noise);
    }
    pair.run_ms(100).output(b"\r\nlate").run_ms(1);
    let is_shown =
        |pair: &Pair| pair.server.endpoint().local().screen().text().concat().contains("late");
    assert!(!is_shown(&pair));
    pair.run_ms(300);
    assert!(is_shown(&pair));
}

/// Keys without end let the screen go ahead of its pace by no more than one does.
#[test]
fn a_held_key_leaves_a_flood_at_its_rate() {
    let mut config = client_config(Peer::Stock);
    config.size = size(100, 200);
    let mut pair = Pair::with(Link { delay: ms(50), ..GOOD }, config, server_config(Peer::Stock));
    pair.program = <[u8]>::to_vec;
    pair.run(secs(1));
    let (before, start) = (pair.server.endpoint().stats().sent.bytes, pair.now);
    let mut noise = Rng::new(9);
    for step in 0..5000 {
        if step % 30 == 0 {
            pair.keys(b"x");
        }
        flood(&mut pair, &mut noise);
    }
    let sent = (pair.server.endpoint().stats().sent.bytes - before) as f64;
    let span = pair.now.since(start).as_secs_f64();
    // 500 ms ahead, and a frame of 112 ms that begins just before that.
    let allowed = server::SCREEN_RATE as f64 / 8.0 * (span + 0.65);
    assert!((0.8 * allowed..allowed).contains(&sent), "{sent} octets in {span} s");
}

/// Lines of noise, 1 ms of them.
fn flood(pair: &mut Pair, noise: &mut Rng) {
    let mut lines = Vec::new();
    for _ in 0..15 {
        lines.extend((0..190).map(|_| b' ' + noise.below(95) as u8));
        lines.extend(b"\r\n");
    }
    pair.output(&lines).run_ms(1);
}
