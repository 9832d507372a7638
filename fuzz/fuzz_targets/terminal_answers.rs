//! A terminal that answers whatever it likes, cut anywhere: what is no answer is typed, in its order and
//! to the last octet, and what is held is bounded.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rove_term::{Dialect, Listener};

const TERMS: [&str; 4] = ["xterm-256color", "screen", "tmux", "linux"];

fuzz_target!(|bytes: &[u8]| {
    let [term, cut, late, rest @ ..] = bytes else { return };
    let mut dialect = Dialect::tty(TERMS[usize::from(term % 4)], "");
    let mut listener = Listener::new(&dialect);
    let (mut typed, mut questions) = (Vec::new(), Vec::new());
    for (turn, piece) in rest.chunks(usize::from(*cut).max(1)).enumerate() {
        if turn == usize::from(*late) {
            listener.give_up();
        }
        if turn % 16 == usize::from(*late) % 16 {
            listener.ask_cursor(&mut questions);
        }
        listener.read(piece, &mut typed);
        if let Some(report) = listener.take_cursor() {
            for (row, col) in [Some(report.cursor), report.end].into_iter().flatten() {
                assert!(row < u16::MAX && col < u16::MAX);
            }
        }
        listener.take_questions(&mut questions);
        assert!(listener.held() <= 512);
    }
    listener.release(&mut typed);
    assert_eq!(listener.held(), 0);
    // Each report of a changed scheme asks three questions at most, when the last ones are taken.
    assert!(questions.len() <= 2048 + 12 * rest.len());
    let mut left = rest.iter();
    assert!(typed.iter().all(|octet| left.any(|other| other == octet)), "keys out of nowhere");
    let may_answer = rest.windows(3).any(|part| part.starts_with(b"\x1b["));
    if TERMS[usize::from(term % 4)] == "linux" && !may_answer {
        assert_eq!(typed, rest);
    }
    dialect = dialect.told(listener.told());
    assert_eq!(dialect, dialect.told(listener.told()));
});
