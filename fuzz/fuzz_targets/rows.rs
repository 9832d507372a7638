//! Lines of a hostile server (threats rows 1 and 6): an event that says what its text prints is taken, another is not;
//! what is taken is bounded, and what the user's terminal is sent of it holds nothing but the grammar of frames, and
//! the line feeds that push it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rove_session::messages::{DepthFields, HostEvent, RowsFields, write_host};
use rove_session::{Peer, View};
use rove_ssp::State;
use rove_term::{Size, Terminal, feed, project, same};

#[path = "../../crates/term/tests/frame/grammar.rs"]
mod grammar;

fuzz_target!(|bytes: &[u8]| {
    // The first octets say what is told of the text.
    let [size, cols, count, kept, first, flags, text @ ..] = bytes else { return };
    let size = Size::clamped(u16::from(size % 12) + 1, u16::from(size / 12) + 1);
    let mut view = View::new(size, Peer::Rove);
    let (first, count) = (u64::from(*first % 16), u64::from(*count % 32));
    let is_named = flags & 8 == 0;
    let mut message = Vec::new();
    let depth = DepthFields { depth: 9, told: 9, erased: 0, falls: u64::from(*flags) };
    write_host(HostEvent::Depth(depth), &mut message);
    write_host(HostEvent::Bytes(text), &mut message);
    if view.apply(&message).is_err() {
        return;
    }
    let (one, two) = text.split_at(text.len() / 2);
    message.clear();
    if flags & 4 == 0 {
        write_host(HostEvent::Depth(DepthFields { depth: 30, ..depth }), &mut message);
    }
    for (at, text) in [one, two].into_iter().enumerate() {
        let rows = RowsFields {
            first: (at == 0 && is_named).then_some(first),
            kept: u64::from(*kept % 16),
            text,
            count,
            cols: u64::from(*cols),
            open: flags & 1 << at != 0,
        };
        write_host(HostEvent::Rows(rows), &mut message);
    }
    let shown = view.screen().clone();
    view.apply(&message).expect("what cannot be taken is left out");
    let Some(news) = view.past().and_then(|past| past.news()) else { return };
    assert!(
        news.first() >= if is_named { first } else { depth.told }
            && news.len() as u64 <= 2 * (count + 15)
    );
    for term in ["xterm-256color", "linux"] {
        let dialect = grammar::tty(term, "");
        let mut octets = Vec::new();
        let lines = match shown.buffer() {
            rove_term::screen::Buffer::Primary => news.first()..news.end(),
            rove_term::screen::Buffer::Alternate => 0..0,
        };
        feed(&shown, news, lines, &shown, &dialect, &mut octets);
        if let Err(fault) = grammar::check(&octets, &dialect) {
            panic!("{fault} in {:?}", String::from_utf8_lossy(&octets));
        }
        let mut reader = Terminal::resume(project(&shown, &dialect), dialect);
        reader.advance(&octets);
        assert!(same(reader.screen(), &shown, &dialect), "{:?}", String::from_utf8_lossy(&octets));
    }
});
