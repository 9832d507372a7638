//! Tests that our terminal does what xterm does: each recording in `crates/term/tests/ref` is what xterm shows and
//! answers, and random streams leave the same screen, cursor and answers on both.
//!
//! `RECORD=1 cargo test -p rove-lab --test xterm` records the files again, except for the cases marked `ours`.
//! `SEED=17 cargo test -p rove-lab --test xterm streams` runs just that stream.
#![allow(clippy::unwrap_used, reason = "a test file")]
#![allow(clippy::disallowed_methods, reason = "tests are steered by their environment")]

#[path = "../../term/tests/ref/cases.rs"]
mod cases;
mod common;

use std::process::Command;

use cases::Seen;
use common::say;
use rove_lab::testing::rng::Rng;
use rove_lab::testing::xterm::Xterm;
use rove_term::{Dialect, Resizing, Size, Terminal};

const STREAMS: u64 = 3000;

fn judge(xterm: &mut Xterm, (rows, cols): (u16, u16), input: &[u8]) -> Seen {
    xterm.reset(rows, cols).unwrap();
    let reply = xterm.write(input).unwrap();
    let look = xterm.look().unwrap();
    Seen { rows: look.rows, cursor: look.cursor, reply }
}

#[test]
fn recordings_are_what_xterm_does() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../term/tests/ref");
    let record = std::env::var_os("RECORD").is_some();
    let mut xterm = Xterm::start().unwrap();
    let mut failed = Vec::new();
    let mut count = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        let (comment, mut all) = cases::parse(&std::fs::read_to_string(&path).unwrap());
        for case in all.iter_mut().filter(|case| case.ours.is_none()) {
            count += 1;
            let seen = judge(&mut xterm, case.size, &case.input);
            if record {
                case.seen = seen;
            } else if let Some(difference) = cases::difference(case, &seen) {
                failed.push(format!("{}: {difference}", path.display()));
            }
        }
        if record {
            std::fs::write(&path, cases::format(&comment, &all)).unwrap();
        }
    }
    say(&format!("xterm: {count} recordings"));
    assert!(failed.is_empty(), "{} of {count}\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn an_xterm_that_ends_is_not_waited_for() {
    let mut xterm = Xterm::start().unwrap();
    let kill = Command::new("kill").args(["-KILL", &xterm.pid().to_string()]).status();
    assert!(kill.unwrap().success());
    let error = loop {
        match xterm.write(b"there?") {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert_ne!(error.kind(), std::io::ErrorKind::TimedOut, "{error}");
}

/// Both terminals see the same random streams, without sequences in which they are known to differ: CBT after a
/// deferred wrap, whose flag xterm keeps; insert mode with side margins, where xterm takes runs of text as they
/// happen to arrive; autowrap turned on again after text that did not wrap.
#[test]
fn random_streams_leave_the_same_screen() {
    const SIZE: (u16, u16) = (6, 14);
    let mut xterm = Xterm::start().unwrap();
    let mut failed = Vec::new();
    let seeds: Vec<u64> = match std::env::var("SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (1..=STREAMS).collect(),
    };
    for seed in seeds {
        let pieces = stream(seed);
        if agree(&mut xterm, SIZE, &pieces).is_none() {
            continue;
        }
        let pieces = shortest(pieces, |pieces| agree(&mut xterm, SIZE, pieces).is_some());
        let difference = agree(&mut xterm, SIZE, &pieces).unwrap_or_default();
        failed.push(format!("SEED={seed}: {difference}"));
    }
    assert!(failed.is_empty(), "{} streams differ\n{}", failed.len(), failed.join("\n"));
}

/// The differences, with xterm's as the wanted value.
fn agree(xterm: &mut Xterm, size: (u16, u16), pieces: &[String]) -> Option<String> {
    let input = pieces.concat();
    let mut terminal = Terminal::new(Size::clamped(size.0, size.1), Dialect::ROVE);
    terminal.set_resizing(Resizing::Obeyed);
    terminal.advance(input.as_bytes());
    let (rows, cursor) = (terminal.screen().text(), terminal.screen().cursor());
    let ours = Seen { rows, cursor: (cursor.row, cursor.col), reply: terminal.take_replies() };
    let seen = judge(xterm, size, input.as_bytes());
    let name = "a random stream".to_owned();
    let case = cases::Case { name, size, input: input.into(), seen, ours: None };
    cases::difference(&case, &ours)
}

/// The pieces without which the streams would agree.
fn shortest(mut pieces: Vec<String>, mut differs: impl FnMut(&[String]) -> bool) -> Vec<String> {
    let mut index = 0;
    while index < pieces.len() {
        let mut fewer = pieces.clone();
        fewer.remove(index);
        if differs(&fewer) {
            pieces = fewer;
            index = 0;
        } else {
            index += 1;
        }
    }
    pieces
}

const NUMBERS: [&str; 12] = ["", "0", "1", "2", "3", "4", "5", "6", "9", "12", "14", "99"];
const CONTROLS: [&str; 7] = ["\n", "\r", "\r\n", "\x08", "\t", "\x0b", "\x0c"];
const COUNTED: [&str; 26] = [
    "@", "A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "L", "M", "P", "S", "X", "^", "`",
    "a", "d", "e", "b", "g", " @", "'}",
];
const ESCAPES: [&str; 16] = [
    "\x1bD",
    "\x1bE",
    "\x1bM",
    "\x1b6",
    "\x1b9",
    "\x1bH",
    "\x1b7",
    "\x1b8",
    "\x1b[s",
    "\x1b[u",
    "\x1b[?1048h",
    "\x1b[?1048l",
    "\x1b[6n",
    "\x1bP$qr\x1b\\",
    "\x1bP$qs\x1b\\",
    "\x1b[?6$p",
];
const MODES: [u16; 9] = [6, 6, 45, 69, 41, 47, 1047, 1049, 95];
const PROTECTION: [&str; 9] = [
    "\x1b[1\"q",
    "\x1b[0\"q",
    "\x1b[2\"q",
    "\x1b[?J",
    "\x1b[?1J",
    "\x1b[?2J",
    "\x1b[?K",
    "\x1b[?1K",
    "\x1b[?2K",
];

fn stream(seed: u64) -> Vec<String> {
    let mut rng = Rng::new(seed);
    (0..rng.within(3, 25)).map(|_| piece(&mut rng)).collect()
}

fn piece(rng: &mut Rng) -> String {
    let (row, col) = (rng.within(1, 6), rng.within(1, 8));
    let (bottom, right) = (rng.within(1, 7), rng.within(1, 16));
    let (first, second) = (rng.pick(&NUMBERS), rng.pick(&NUMBERS));
    let switch = rng.pick(&["h", "l"]);
    match rng.below(100) {
        0..28 => {
            let length = rng.pick(&[1, 1, 2, 3, 5, 9, 14, 15, 30]);
            (0..length).map(|_| char::from(b'A' + rng.below(26) as u8)).collect()
        }
        28..36 => rng.pick(&CONTROLS).to_owned(),
        36..46 => format!("\x1b[{bottom};{right}H"),
        46..70 => format!("\x1b[{first}{}", rng.pick(&COUNTED)),
        70..79 => rng.pick(&ESCAPES).to_owned(),
        79..83 => format!("\x1b[{first};{second}r"),
        83..86 => format!("\x1b[?69h\x1b[{first};{second}s"),
        86..92 => format!("\x1b[?{}{switch}", rng.pick(&MODES)),
        92 => format!("\x1b[20{switch}"),
        93 => format!("\x1b[42;{row};{col};{bottom};{right}$x"),
        94 => format!("\x1b[{row};{col};{bottom};{right}$z"),
        95 => format!("\x1b[{row};{col};{bottom};{right}${{"),
        96 => format!("\x1b[{row};{col};{bottom};{right};1;{col};{row};1$v"),
        97..99 => rng.pick(&PROTECTION).to_owned(),
        _ => rng.pick(&["\x1b[!p", "\x1b#8", "\x1bc"]).to_owned(),
    }
}
