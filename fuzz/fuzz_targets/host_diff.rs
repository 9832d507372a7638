//! A hostile server's host bytes: they touch no more cells than a diff may (threats rows 1 and 10), and whatever
//! they make of a client's screen, what the user's terminal is sent shows that screen, and holds nothing but the
//! grammar of frames (threats row 6). A frame between two such screens, however made, is at most half of what a
//! diff may be; those of honest sessions are an eighth (lab/tests/work.rs).
#![no_main]

use libfuzzer_sys::fuzz_target;
use rove_session::messages::{HostEvent, write_host};
use rove_session::work::{TURN_CELLS, TURN_OCTETS, diff_cells_max};
use rove_session::{Peer, View};
use rove_ssp::{Applied, State};
use rove_term::history::Keeping;
use rove_term::{Dialect, Screen, Size, Terminal, announces, frame, project, same};

#[path = "../../crates/term/tests/frame/grammar.rs"]
mod grammar;

fuzz_target!(|bytes: &[u8]| {
    // The first octets say how large the screen is and where the diff is cut in two.
    let [rows, cols, cut, diff @ ..] = bytes else { return };
    let size = Size::clamped(u16::from(rows % 30) + 1, u16::from(cols % 100) + 1);
    let (first, second) = diff.split_at(diff.len() * usize::from(*cut) / 256);
    for peer in [Peer::Stock, Peer::Rove] {
        check_work(size, peer, diff);
        let mut client = Terminal::resume(Screen::new(size), peer.dialect());
        client.advance(first);
        let before = client.screen().clone();
        client.advance(second);
        for reader in [
            Dialect::MOSH,
            Dialect::ROVE,
            grammar::tty("xterm-256color", "truecolor"),
            grammar::tty("linux", ""),
        ] {
            check(&before, client.screen(), &reader);
        }
    }
});

/// A diff is read if it touches no more than it may, and refused before it has touched much more.
fn check_work(size: Size, peer: Peer, octets: &[u8]) {
    let mut message = Vec::new();
    write_host(HostEvent::Bytes(octets), &mut message);
    let most = diff_cells_max(size, size, message.len());
    let mut view = View::new(size, peer);
    let mut terminal = Terminal::resume(view.screen().clone(), peer.dialect());
    terminal.set_history(Keeping::Nothing);
    terminal.advance(octets);
    let mut turns = 1;
    let applied = loop {
        match view.apply_part(&message) {
            Ok(Applied::Part) => turns += 1,
            done => break done,
        }
    };
    assert_eq!(applied.is_ok(), terminal.cells_touched() <= most, "{applied:?}");
    if applied.is_ok() {
        assert_eq!(view.cells_touched(), terminal.cells_touched());
    }
    assert!(turns <= 2 + most / TURN_CELLS + (message.len() / TURN_OCTETS) as u64);
}

fn check(old: &Screen, new: &Screen, dialect: &Dialect) {
    let mut bytes = Vec::new();
    frame(old, new, dialect, &mut bytes);
    if let Err(fault) = grammar::check(&bytes, dialect) {
        panic!("{fault} in {:?}", String::from_utf8_lossy(&bytes));
    }
    assert_eq!(bytes.is_empty(), same(old, new, dialect) && !announces(old, new, dialect));
    let mut reader = Terminal::resume(project(old, dialect), *dialect);
    let held = reader.screen().clone();
    reader.advance(&bytes);
    drop(held);
    let most = diff_cells_max(old.size(), new.size(), bytes.len());
    assert!(reader.cells_touched() <= most / 2, "{} of {most} cells", reader.cells_touched());
    assert!(same(reader.screen(), new, dialect), "{:?}", String::from_utf8_lossy(&bytes));
    bytes.clear();
    frame(new, new, dialect, &mut bytes);
    assert_eq!(bytes, b"");
}
