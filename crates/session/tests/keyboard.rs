//! Keys and the mouse, from terminals with each protocol to programs that asked for each.
#![allow(clippy::unwrap_used)] // A check that fails says where.

mod common;

use std::time::Duration;

use common::{GOOD, Pair, client_config, server_config};
use rove_session::Peer;
use rove_session::client::{Event, TtyScreen};
use rove_term::Ability::{self, KittyKeys, ModifyOtherKeys};
use rove_term::MouseEncoding;

/// A session on a terminal that knows these protocols, whose program has written `program`.
fn session(has: &[Ability], program: &str) -> Pair {
    let mut client = client_config(Peer::Rove);
    let without = client.tty.without(KittyKeys).without(ModifyOtherKeys);
    client.tty = has.iter().fold(without, |dialect, ability| dialect.with(*ability));
    client.window = TtyScreen::Main;
    let mut pair = Pair::with(GOOD, client, server_config(Peer::Rove));
    pair.program = |_| Vec::new();
    pair.output(program.as_bytes()).run(Duration::from_secs(2));
    pair
}

const BOTH: &[Ability] = &[KittyKeys, ModifyOtherKeys];
const KITTY: &str = "\x1b[>1u";
const MODIFY: &str = "\x1b[>4;2m";

/// What the terminal is asked for, what it sends then for Ctrl-I, and what the program gets.
#[test]
fn each_terminal_and_each_program() {
    for (has, program, asked, sent, typed) in [
        (BOTH, KITTY, (1, 0), "\x1b[105;5u", "\x1b[105;5u"),
        (&[KittyKeys], KITTY, (1, 0), "\x1b[105;5u", "\x1b[105;5u"),
        (&[ModifyOtherKeys], KITTY, (0, 2), "\x1b[27;5;105~", "\x1b[105;5u"),
        (&[], KITTY, (0, 0), "\x1b", "\x1b[27u"),
        (BOTH, MODIFY, (0, 2), "\x1b[27;5;105~", "\x1b[27;5;105~"),
        (&[ModifyOtherKeys], MODIFY, (0, 2), "\x1b[27;5;105~", "\x1b[27;5;105~"),
        (&[KittyKeys], MODIFY, (5, 0), "\x1b[105;5u", "\x1b[27;5;105~"),
        (&[], MODIFY, (0, 0), "\t", "\t"),
        (BOTH, "", (0, 0), "\x1b[105;5u", "\x1b[105;5u"),
    ] {
        let mut pair = session(has, program);
        let modes = *pair.tty.screen().modes();
        let what = format!("{has:?}, {program:?}");
        assert_eq!((modes.keyboard_flags, modes.modify_other_keys), asked, "{what}");
        pair.keys(sent.as_bytes()).run_ms(400);
        assert_eq!(String::from_utf8_lossy(&pair.typed), typed, "{what}");
        let close = pair.client.tty_close();
        pair.tty.advance(&close);
        let modes = *pair.tty.screen().modes();
        assert_eq!((modes.keyboard_flags, modes.modify_other_keys), (0, 0), "{what}");
    }
}

/// Escape may begin an answer of the terminal as well as a key; that is waited for once.
#[test]
fn a_lone_escape_waits_once() {
    let mut client = client_config(Peer::Rove);
    client.tty = client.tty.without(KittyKeys).without(ModifyOtherKeys);
    let mut pair = Pair::with(GOOD, client, server_config(Peer::Rove));
    pair.program = |_| Vec::new();
    // Answers are still expected.
    pair.output(KITTY.as_bytes()).run_ms(500);
    let typed_at = pair.now;
    pair.keys(b"\x1b");
    while pair.typed.is_empty() {
        pair.run_ms(1);
    }
    assert_eq!(pair.typed, b"\x1b[27u");
    let took = pair.now.since(typed_at);
    let wait = Duration::from_millis(50);
    assert!((wait..wait * 2).contains(&took), "{took:?}");
}

/// A program that ends takes its wishes along, on whichever screen it had them.
#[test]
fn a_program_that_ends() {
    for has in [BOTH, &[KittyKeys], &[ModifyOtherKeys]] {
        let mut pair = session(has, "\x1b[?1049h\x1b[>1u\x1b[>4;2m");
        let modes = *pair.tty.screen().modes();
        assert_eq!(modes.keyboard_flags != 0, has.contains(&KittyKeys));
        assert_eq!(modes.modify_other_keys != 0, has.contains(&ModifyOtherKeys));
        pair.output(b"\x1b[<u\x1b[>4m\x1b[?1049l").run_ms(500);
        let modes = *pair.tty.screen().modes();
        assert_eq!((modes.keyboard_flags, modes.modify_other_keys), (0, 0));
        pair.keys(b"\x18\x1b").run_ms(500);
        assert_eq!(pair.typed, b"\x18\x1b");
    }
}

/// The escape key is found in kitty's protocol too.
#[test]
fn the_escape_key_under_kitty() {
    let mut pair = session(BOTH, "\x1b[>31u");
    pair.keys(b"\x1b[54:94;6u\x1b[54;6:3u\x1b[122;5u\x1b[122;5:3u").run_ms(500);
    assert!(pair.client_events.contains(&Event::Suspend));
    assert_eq!(String::from_utf8_lossy(&pair.typed), "\x1b[54;6:3u\x1b[122;5:3u");
}

/// A program that wants places in pixels gets them, as large as it was told that cells are.
#[test]
fn the_mouse_in_pixels() {
    const ANSWERS: [(&str, MouseEncoding, &str); 3] = [
        // The terminal tells of pixels itself.
        ("\x1b[?1016;2$y\x1b[6;18;9t\x1b[?62c", MouseEncoding::SgrPixels, "\x1b[<0;2;2M"),
        ("\x1b[?1016;0$y\x1b[6;18;9t\x1b[?62c", MouseEncoding::Sgr, "\x1b[<0;14;28M"),
        ("\x1b[?1016;2$y\x1b[?62c", MouseEncoding::Sgr, "\x1b[<0;16;31M"),
    ];
    for (answers, encoding, typed) in ANSWERS {
        let mut pair = session(&[], "\x1b[?1000;1016h");
        pair.client.handle_keys(pair.now, answers.as_bytes());
        pair.run(Duration::from_secs(1));
        assert_eq!(pair.tty.screen().modes().mouse_encoding, encoding, "{answers:?}");
        pair.keys(b"\x1b[<0;2;2M").run_ms(400);
        assert_eq!(String::from_utf8_lossy(&pair.typed), typed, "{answers:?}");
    }
}
