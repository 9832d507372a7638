//! With `--obscure` what is typed goes in slots, between two roves on the native wire, and the user is told where it does not.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeSet;
use std::time::Duration;

use common::{GOOD, Pair, client_config, server_config};
use rove_session::client::{self, Obscure};
use rove_session::{LineMode, Peer, server};
use rove_ssp::{ConnId, NativeWire, Role, SessionSecrets, SlotTiming, Time, Timing, Wire};

fn obscured() -> Pair {
    let secrets = SessionSecrets::from_bytes([1; 32], [2; 32], [3; 32]);
    let wire = |role| Box::new(NativeWire::new(&secrets, ConnId::new(7), role));
    let client = client::Config {
        wire: wire(Role::Client),
        timing: Timing {
            slots: Some(SlotTiming::ROVE),
            slot_jitter: Duration::ZERO,
            ..Timing::ROVE
        },
        obscure: Obscure::Always,
        ..client_config(Peer::Rove)
    };
    let server = server::Config {
        wire: wire(Role::Server),
        timing: Timing { answers_slots: true, ..Timing::ROVE },
        ..server_config(Peer::Rove)
    };
    let mut pair = Pair::with(GOOD, client, server);
    pair.run_ms(3500);
    pair.flown.clear();
    pair.typed.clear();
    pair
}

fn departures(pair: &Pair, to: Role) -> Vec<(Time, usize)> {
    let all = pair.flown.iter().filter(|(_, whom, _)| *whom == to);
    all.map(|(at, _, length)| (*at, *length)).collect()
}

/// From the first slot to the last: before and after there are beats.
fn in_run(all: Vec<(Time, usize)>) -> Vec<(Time, usize)> {
    let first = all.iter().position(|it| it.1 == 128).unwrap();
    let last = all.iter().rposition(|it| it.1 == 128).unwrap();
    all[first..=last].to_vec()
}

/// Types a line at the pace of a person, and lets the run end.
fn type_line(pair: &mut Pair, keys: &[u8]) {
    for key in keys {
        pair.keys(&[*key]).run_ms(130);
    }
    while pair.client.is_in_run(pair.now) {
        pair.run_ms(1);
    }
}

#[test]
fn keys_go_in_slots_of_one_length() {
    let mut pair = obscured();
    pair.server.handle_line(LineMode::Cooked);
    type_line(&mut pair, b"cargo test --workspace\r");
    assert_eq!(pair.typed, b"cargo test --workspace\r");
    assert_eq!(pair.text()[0], "cargo test --workspace");
    let own = in_run(departures(&pair, Role::Server));
    let lengths: BTreeSet<usize> = own.iter().map(|(_, length)| *length).collect();
    assert_eq!(lengths, BTreeSet::from([128]));
    let gaps: BTreeSet<u128> =
        own.windows(2).map(|it| it[1].0.since(it[0].0).as_micros()).collect();
    assert_eq!(gaps, BTreeSet::from([55_000]));
    // Each is answered by one.
    let answers = in_run(departures(&pair, Role::Client));
    assert!(answers.len().abs_diff(own.len()) <= 1, "{} of {}", answers.len(), own.len());
    let lengths: BTreeSet<usize> = answers.iter().map(|(_, length)| *length).collect();
    assert!(lengths.is_subset(&BTreeSet::from([128, 256, 512])), "{lengths:?}");
}

/// No key waits longer than a slot.
#[test]
fn a_key_waits_for_a_slot_at_most() {
    let mut pair = obscured();
    for n in 0..40_u64 {
        let before = pair.typed.len();
        pair.keys(b"k");
        let start = pair.now;
        while pair.typed.len() == before {
            pair.run_ms(1);
        }
        let took = pair.now.since(start).as_millis();
        assert!(took <= 55 + 10 + 1, "{took} ms");
        pair.run_ms(100 + n * 13 % 70);
    }
}

/// The mouse prolongs a run by a second and no more, while it moves; a press of its button does as a key.
#[test]
fn motion_of_the_mouse_prolongs_a_run_by_a_second() {
    let moves =
        |button: u32, place: u32| format!("\x1b[<{button};{};{}M", 10 + place % 40, 5 + place % 9);
    for (last, wanted) in [(35, 900..=1_100), (64, 1_900..=5_100)] {
        let mut pair = obscured();
        pair.keys(b"k");
        for place in 0..60 {
            pair.keys(moves(35, place).as_bytes()).run_ms(100);
            assert!(pair.client.is_in_run(pair.now));
        }
        pair.keys(moves(last, 60).as_bytes());
        let end = pair.now;
        while pair.client.is_in_run(pair.now) {
            pair.run_ms(1);
        }
        let took = pair.now.since(end).as_millis();
        assert!(wanted.contains(&took), "{last}: {took} ms");
    }
}

#[test]
fn a_paste_goes_at_once() {
    let mut pair = obscured();
    let text = "0123456789".repeat(500);
    pair.keys(text.as_bytes()).run_ms(200);
    assert_eq!(pair.typed.len(), text.len());
    while pair.client.is_in_run(pair.now) {
        pair.run_ms(1);
    }
    pair.run_ms(3000);
    assert_eq!(pair.typed, text.as_bytes());
}

#[test]
fn the_user_is_told_where_typing_cannot_be_hidden() {
    let native = |role| {
        let secrets = SessionSecrets::from_bytes([1; 32], [2; 32], [3; 32]);
        Box::new(NativeWire::new(&secrets, ConnId::new(7), role)) as Box<dyn Wire>
    };
    let mosh = |role| {
        if role == Role::Client {
            client_config(Peer::Rove).wire
        } else {
            server_config(Peer::Rove).wire
        }
    };
    for (peer, wire, version, words) in [
        (
            Peer::Stock,
            &mosh as &dyn Fn(Role) -> Box<dyn Wire>,
            None,
            "rove: mosh-server cannot hide typing",
        ),
        (Peer::Rove, &mosh, Some("rove 0.1.0"), "rove: the mosh wire cannot hide typing"),
        (
            Peer::Rove,
            &native,
            Some("rove 0.0.9"),
            "rove: this host cannot hide typing (rove 0.0.9 there)",
        ),
        (Peer::Rove, &native, None, "rove: this host cannot hide typing "),
    ] {
        let client = client::Config {
            wire: wire(Role::Client),
            obscure: Obscure::Always,
            ..client_config(peer)
        };
        let server = server::Config { wire: wire(Role::Server), ..server_config(peer) };
        let mut pair = Pair::with(GOOD, client, server);
        if let Some(version) = version {
            pair.client.name_server("build7", Some(version));
        }
        pair.run_ms(500);
        let bar = pair.top();
        assert!(bar.starts_with(words), "{bar}");
        pair.keys(b"x").run_ms(100);
        assert_eq!(pair.typed, b"x");
        // It is said once.
        for _ in 0..60 {
            pair.keys(b"x").run_ms(1_000);
        }
        assert!(!pair.top().contains("hide"), "{}", pair.top());
    }
    let mut pair = obscured();
    pair.run_ms(500);
    assert!(!pair.top().contains("hide"), "{}", pair.top());
}
