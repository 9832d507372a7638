//! Keys on a line that does not echo wait for its Enter. A listener sees only that the line was sent.
#![allow(clippy::unwrap_used)]

mod common;

use common::{BAD, DEAD, GOOD, Link, Pair, client_config, ms, native, server_config};
use rove_session::client::{self, Obscure};
use rove_session::{LineMode, LineReport, Peer, server};
use rove_ssp::{Rng, Role, Time, Timing};

/// The two wires that two roves may speak.
#[derive(Clone, Copy, Debug)]
enum Wire {
    Native,
    Mosh,
}

const WIRES: [Wire; 2] = [Wire::Native, Wire::Mosh];

/// Two roves that have met. Nothing is echoed.
fn met(wire: Wire, link: Link) -> Pair {
    let mut pair = match wire {
        Wire::Native => native(link),
        Wire::Mosh => {
            let client = client::Config { timing: Timing::ROVE, ..client_config(Peer::Rove) };
            let server = server::Config { timing: Timing::ROVE, ..server_config(Peer::Rove) };
            Pair::with(link, client, server)
        }
    };
    pair.program = |_| Vec::new();
    pair.run_ms(1000);
    // Both ends learn that the path loses nothing.
    for _ in 0..12 {
        pair.keys(b"l").run_ms(300);
    }
    pair.run_ms(1000);
    pair
}

fn hidden(number: u64) -> LineReport {
    LineReport { mode: LineMode::Hidden, hidden: Some(number), may_be_kept: true }
}

/// The program asks, and the client knows that it may keep what is typed.
fn ask(pair: &mut Pair, number: u64) {
    pair.server.handle_line(hidden(number));
    pair.output(b"\r\nPassword: ").run_ms(1500);
    assert_eq!(pair.client.view().line_report(), Some(hidden(number)));
    pair.flown.clear();
    pair.typed.clear();
}

/// A letter each 150 ms.
fn type_slowly(pair: &mut Pair, keys: &[u8]) {
    for key in keys {
        pair.keys(&[*key]).run_ms(150);
    }
}

/// Datagrams of the client, without those that only keep in touch.
fn departures(pair: &Pair) -> Vec<(Time, usize)> {
    let own = pair.flown.iter().filter(|(_, to, _)| *to == Role::Server);
    own.map(|(at, _, length)| (*at, *length)).collect()
}

#[test]
fn a_password_leaves_with_its_enter_whatever_its_length() {
    for wire in WIRES {
        let mut seen = Vec::new();
        for length in [1, 4, 8, 20, 40] {
            let mut pair = met(wire, GOOD);
            ask(&mut pair, 1);
            let word: Vec<u8> = (0..length).map(|n| b'a' + n % 26).collect();
            let start = pair.now;
            // As long as the longest takes, less than a beat.
            for key in &word {
                pair.keys(&[*key]).run_ms(10);
            }
            assert_eq!((pair.typed.len(), pair.client.keys_held()), (0, word.len()));
            pair.run(ms(500).saturating_sub(pair.now.since(start)));
            let before = departures(&pair).len();
            pair.keys(b"\r").run_ms(15);
            assert_eq!(pair.typed, [&word[..], b"\r"].concat(), "{wire:?} {length}");
            pair.run_ms(400);
            let own = departures(&pair);
            let enter = own[before].0;
            let all = pair.flown.iter().filter(|(at, _, _)| *at >= enter).count();
            assert_eq!(own[before].1, 128, "{wire:?} {length}");
            assert!(all <= 6, "{wire:?} {length}: {:?}", pair.flown);
            seen.push((own.len() - before, all));
        }
        seen.dedup();
        assert_eq!(seen.len(), 1, "{wire:?}: {seen:?}");
    }
}

#[test]
fn what_sends_a_line() {
    for (typed, rest) in [
        ("abc", "\x03"),
        ("abc", "\x04"),
        ("abc", "\x1a"),
        ("abc", "\x1c"),
        ("abc", "\x13"),
        ("abc", "\x11"),
        ("abc", "\x16"),
        ("abc", "\t"),
        ("abc", "\n"),
        ("ab\x7fc\x15\x17\x08", "\r"),
        ("sécret", "\r"),
        ("", "pasted\nand more\r"),
        ("", "secret\r"),
        ("abc", "pasted\r\nand more"),
    ] {
        let mut pair = met(Wire::Native, GOOD);
        ask(&mut pair, 1);
        type_slowly(&mut pair, typed.as_bytes());
        assert_eq!(pair.typed, b"", "{typed:?}");
        pair.keys(rest.as_bytes()).run_ms(15);
        let whole = format!("{typed}{rest}");
        assert_eq!(departures(&pair).last().map(|(_, length)| *length), Some(128));
        assert_eq!(String::from_utf8_lossy(&pair.typed), whole);
        pair.run_ms(1000);
        assert_eq!(pair.typed.len(), whole.len(), "{whole:?} once");
    }
}

#[test]
fn a_long_line_is_sent() {
    let mut pair = met(Wire::Native, GOOD);
    ask(&mut pair, 1);
    // Nothing that deflates.
    let mut rng = Rng::new(1);
    for _ in 0..239 {
        pair.keys(&[b'!' + rng.below(94) as u8]).run_ms(1);
    }
    pair.run_ms(100);
    assert_eq!(pair.typed.len(), 0);
    pair.keys(b"x").run_ms(15);
    assert_eq!(pair.typed.len(), 240);
    let sent = departures(&pair).into_iter().map(|(_, length)| length).max();
    assert_eq!(sent, Some(512));
    // Until the host has answered, keys go as ever.
    pair.keys(b"y").run_ms(300);
    assert_eq!(pair.typed.len(), 241);
}

#[test]
fn a_line_that_ends_by_itself_is_not_typed_at_another_program() {
    for after in [LineMode::Cooked.into(), LineMode::Raw.into(), hidden(2)] {
        let mut pair = met(Wire::Native, GOOD);
        ask(&mut pair, 1);
        type_slowly(&mut pair, b"secr");
        pair.server.handle_line(after);
        pair.output(b"\r\ntimed out\r\n$ ").run_ms(100);
        assert_eq!(pair.client.keys_held(), 0);
        let bar = pair.top();
        let words = "rove: the hidden line ended; what was typed there was not sent";
        assert!(bar.starts_with(words), "{after:?}: {bar}");
        pair.keys(b"et\r").run_ms(2000);
        assert_eq!(pair.typed, b"et\r", "{after:?}");
        let again = after != LineMode::Cooked.into();
        // Keys of whoever reads them with echo off are lost once at most.
        ask(&mut pair, 3);
        pair.keys(b"x").run_ms(100);
        assert_eq!(pair.typed == b"x", again, "{after:?}");
        // A line that echoes was seen: from here on it is as before.
        pair.server.handle_line(LineMode::Cooked);
        pair.output(b"\r\n$ ").run_ms(1000);
        ask(&mut pair, 4);
        pair.keys(b"x").run_ms(100);
        assert_eq!(pair.typed, b"");
    }
}

#[test]
fn two_prompts_in_one_blackout() {
    let mut pair = met(Wire::Native, GOOD);
    ask(&mut pair, 1);
    type_slowly(&mut pair, b"half");
    pair.link = DEAD;
    pair.server.handle_line(LineMode::Cooked);
    pair.output(b"\r\n$ ").run_ms(1000);
    pair.server.handle_line(hidden(2));
    pair.output(b"ssh other\r\nother's password: ").run_ms(1000);
    pair.link = GOOD;
    pair.run_ms(3000);
    assert_eq!(pair.client.view().line_report(), Some(hidden(2)));
    assert_eq!((pair.client.keys_held(), pair.typed.len()), (0, 0), "it was another's");
}

#[test]
fn keys_between_enter_and_its_answer_go_at_once() {
    let mut pair = met(Wire::Native, GOOD);
    ask(&mut pair, 1);
    pair.keys(b"first\r").run_ms(5);
    pair.keys(b"n").run_ms(300);
    assert_eq!(pair.typed, b"first\rn");
    // The line is the same one; once its echo ack has come, the next password waits.
    pair.output(b"\r\nRetype: ").run_ms(500);
    pair.keys(b"first").run_ms(500);
    assert_eq!(pair.typed, b"first\rn");
    pair.keys(b"\r").run_ms(15);
    assert_eq!(pair.typed, b"first\rnfirst\r");
}

#[test]
fn a_line_that_may_not_be_kept_any_more_is_sent() {
    let mut pair = met(Wire::Native, GOOD);
    ask(&mut pair, 1);
    pair.keys(b"se").run_ms(100);
    pair.server.handle_line(LineReport { may_be_kept: false, ..hidden(1) });
    pair.run_ms(100);
    assert_eq!(pair.typed, b"se");
    pair.keys(b"x").run_ms(20);
    assert_eq!(pair.typed, b"sex");
}

#[test]
fn commands_leave_it_and_the_end_forgets_it() {
    let mut pair = met(Wire::Native, GOOD);
    ask(&mut pair, 1);
    pair.keys(b"se").run_ms(100);
    pair.keys(b"\x1es").run_ms(200);
    assert_eq!((pair.client.keys_held(), pair.typed.len()), (2, 0));
    pair.keys(b"cret\r").run_ms(100);
    assert_eq!(pair.typed, b"secret\r");
    pair.run_ms(500);
    pair.typed.clear();
    pair.keys(b"again").run_ms(100);
    assert_eq!(pair.client.keys_held(), 5);
    assert!(!format!("{:?}", pair.client).contains("again"));
    pair.keys(b"\x1e.").run_ms(2000);
    assert_eq!((pair.client.keys_held(), pair.typed.len()), (0, 0));
    assert!(pair.client_exit().is_some());
}

#[test]
fn never_is_never() {
    let mut pair = met(Wire::Native, GOOD);
    let mut config = client_config(Peer::Rove);
    config.obscure = Obscure::Never;
    config.timing = Timing::ROVE;
    let server = server::Config { timing: Timing::ROVE, ..server_config(Peer::Rove) };
    let mut never = Pair::with(GOOD, config, server);
    never.program = |_| Vec::new();
    never.run_ms(1000);
    for (pair, sent) in [(&mut pair, 0), (&mut never, 1)] {
        ask(pair, 1);
        pair.keys(b"x").run_ms(100);
        assert_eq!(pair.typed.len(), sent);
    }
}

/// Copies, repeats, and a key behind Enter told from an older state: nothing with a part of it has another length.
#[test]
fn every_datagram_with_a_part_of_it_has_the_same_length() {
    for wire in WIRES {
        for turn in 0..40 {
            let mut pair = met(wire, GOOD);
            ask(&mut pair, 1);
            pair.link = BAD;
            let word: Vec<u8> = (0..=turn).map(|n| b'a' + n % 26).collect();
            pair.keys(&word).run_ms(50);
            let start = pair.now;
            pair.keys(b"\r").run_ms(u64::from(turn) * 10);
            pair.keys(b"x");
            let keys = pair.client.endpoint().sent_num();
            let mut open = Vec::new();
            for _ in 0..2000 {
                pair.run_ms(1);
                if pair.client.endpoint().acked() < keys {
                    open = departures(&pair);
                }
            }
            let odd: Vec<_> =
                open.iter().filter(|(at, length)| *at >= start && *length != 128).collect();
            assert!(odd.is_empty(), "{wire:?} {turn}: {odd:?}");
            pair.link = GOOD;
            pair.run_ms(20_000);
            let mut all = [&word[..], b"\rx"].concat();
            // Answered by then, the next line has begun.
            all.truncate(all.len() - pair.client.keys_held());
            assert_eq!(pair.typed, all, "{wire:?} {turn}");
        }
    }
}
