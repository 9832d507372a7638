//! A paste of more than an instruction holds, between a client and a server.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{Link, Pair, client_config, echo, ms, native, server_config, trimmed};
use rove_session::Peer;
use rove_session::client::{self, Cause};
use rove_session::predict::{Display, Settings};
use rove_ssp::{Rng, Time, Timing};

/// The octet that pastes consist of. The program reads it without an echo.
const PASTED: u8 = b'x';

/// Echoes as a terminal does, but nothing of what is pasted.
fn echo_typed(typed: &[u8]) -> Vec<u8> {
    echo(&typed.iter().copied().filter(|octet| *octet != PASTED).collect::<Vec<u8>>())
}

fn steady(delay_ms: u64, loss: u32) -> Pair {
    let mut pair = native(Link { delay: ms(delay_ms), loss, jitter: ms(0) });
    pair.program = echo_typed;
    pair.run_ms(1000);
    pair
}

/// A terminal gives what is pasted in pieces of 4 KiB, over a path that loses some: the program reads all of it,
/// never more than 64 datagrams of it at once.
#[test]
fn a_long_paste_in_pieces_reaches_the_program_in_parts() {
    let mut pair = steady(50, 5);
    pair.program = |_| Vec::new();
    let mut rng = Rng::new(3);
    let text: Vec<u8> = (0..1 << 19).map(|_| b'0' + rng.below(64) as u8).collect();
    let (mut pieces, mut held) = (text.chunks(4096), 0);
    for turn in 0..20_000 {
        if let Some(piece) = pieces.next() {
            pair.keys(piece);
        }
        pair.run_ms(1);
        let came = pair.typed.len() - held;
        assert!(came <= 64 * 1452, "{came} octets at once, {turn} ms after the first");
        held = pair.typed.len();
        if held == text.len() {
            break;
        }
    }
    assert!(pair.typed == text, "{held} octets");
}

/// Stock's server takes parts for the states of a fast typist.
#[test]
fn a_long_paste_reaches_stocks_server() {
    let timing = Timing::ROVE_TO_STOCK;
    let client = client::Config { timing, ..client_config(Peer::Stock) };
    let link = Link { delay: ms(50), loss: 2, jitter: ms(0) };
    let mut pair = Pair::with(link, client, server_config(Peer::Stock));
    pair.program = |_| Vec::new();
    pair.run_ms(1000);
    let mut rng = Rng::new(3);
    let text: Vec<u8> = (0..200_000).map(|_| b'0' + rng.below(64) as u8).collect();
    pair.keys(&text);
    let mut held = 0;
    while held < text.len() {
        pair.run_ms(1);
        let came = pair.typed.len() - held;
        assert!(came <= 64 * 1452, "{came} octets at once");
        held = pair.typed.len();
        assert!(pair.now < Time::from_millis(300_000), "{held} octets");
    }
    assert!(pair.typed == text);
}

/// What the user sees is what the server showed.
fn check_nothing_is_guessed(pair: &mut Pair, span_ms: u64) {
    for _ in 0..span_ms {
        pair.run_ms(1);
        assert_eq!(pair.text(), trimmed(pair.client.view().screen()));
    }
}

/// Enter behind a paste is under way until the program has read it, and with it all that could be a password.
#[test]
fn nothing_is_carried_over_enter_behind_a_paste_in_parts() {
    for typed_at_ms in (0..1500).step_by(100) {
        let mut pair = steady(250, 0);
        pair.client.predict(Settings::ROVE.with_display(Display::Always));
        pair.output(b"$ ").run_ms(1000);
        for key in b"ls".chunks(1) {
            pair.keys(key).run_ms(1000);
        }
        pair.keys(&[PASTED; 200_000]).run_ms(100);
        pair.keys(b"sudo y\r").run_ms(typed_at_ms);
        assert_eq!(pair.text(), ["$ ls"], "no answer yet, {typed_at_ms} ms after Enter");
        for key in b"hunter2".chunks(1) {
            pair.keys(key);
            check_nothing_is_guessed(&mut pair, 60);
        }
        check_nothing_is_guessed(&mut pair, 3000);
        assert_eq!(pair.text(), ["$ lssudo y", "hunter2"]);
    }
}

/// Nobody is there to read the rest.
#[test]
fn a_paste_holds_no_goodbye_up() {
    let mut pair = steady(50, 0);
    let mut rng = Rng::new(3);
    let text: Vec<u8> = (0..1 << 19).map(|_| b'0' + rng.below(64) as u8).collect();
    pair.keys(&text).run_ms(300);
    assert!(pair.typed.len() < text.len() / 2);
    let sent = pair.client.endpoint().stats().sent.bytes;
    pair.server.child_exited(pair.now, 0);
    pair.run_ms(300);
    let exit = pair.client_exit().expect("the server has left");
    assert_eq!((exit.cause, exit.clean), (Cause::PeerLeft, true));
    assert!(pair.server_exit().expect("and is told").clean);
    // What was on its way when the server left, and the goodbyes.
    let after = pair.client.endpoint().stats().sent.bytes - sent;
    assert!(after < 3 * 64 * 1452, "{after} octets");
}
