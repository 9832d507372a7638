//! A hostile server's host bytes: whatever they make of a client's screen, what the user's terminal
//! is sent shows that screen, and holds nothing but the grammar of frames (threats row 6).
#![no_main]

use libfuzzer_sys::fuzz_target;
use rove_term::{Dialect, Screen, Size, Terminal, announces, frame, project, same};

#[path = "../../crates/term/tests/frame/grammar.rs"]
mod grammar;

fuzz_target!(|bytes: &[u8]| {
    // The first octets say how large the screen is and where the diff is cut in two.
    let [rows, cols, cut, diff @ ..] = bytes else { return };
    let size = Size::clamped(u16::from(rows % 30) + 1, u16::from(cols % 100) + 1);
    let (first, second) = diff.split_at(diff.len() * usize::from(*cut) / 256);
    for wire in [Dialect::MOSH, Dialect::ROVE] {
        let mut client = Terminal::resume(Screen::new(size), wire);
        client.advance(first);
        let before = client.screen().clone();
        client.advance(second);
        for reader in [
            Dialect::MOSH,
            Dialect::ROVE,
            Dialect::tty("xterm-256color", "truecolor"),
            Dialect::tty("linux", ""),
        ] {
            check(&before, client.screen(), &reader);
        }
    }
});

fn check(old: &Screen, new: &Screen, dialect: &Dialect) {
    let mut bytes = Vec::new();
    frame(old, new, dialect, &mut bytes);
    if let Err(fault) = grammar::check(&bytes, dialect) {
        panic!("{fault} in {:?}", String::from_utf8_lossy(&bytes));
    }
    assert_eq!(bytes.is_empty(), same(old, new, dialect) && !announces(old, new, dialect));
    let mut reader = Terminal::resume(project(old, dialect), *dialect);
    reader.advance(&bytes);
    assert!(same(reader.screen(), new, dialect), "{:?}", String::from_utf8_lossy(&bytes));
    bytes.clear();
    frame(new, new, dialect, &mut bytes);
    assert_eq!(bytes, b"");
}
