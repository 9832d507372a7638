//! Compares ours and xterm for every control function, with the parameters on which terminals differ and in the
//! states that matter to it: both leave the same screen, write the next character in the same cell, and give the
//! same answers.
//!
//! `CASE=text cargo test -p rove-lab --test xterm_sweep` runs the cases whose input, escaped, contains the text.
#![allow(clippy::unwrap_used, reason = "a test file")]
#![allow(clippy::disallowed_methods, reason = "tests are steered by their environment")]

mod common;

use std::io;

use common::say;
use rove_lab::testing::xterm::Xterm;
use rove_term::{Checksums, Dialect, Resizing, Size, Terminal};

const SIZE: (u16, u16) = (6, 14);

/// Text in every cell, a protected stretch among it. Wide characters that are cut in two xterm leaves in halves.
const TEXT: &str = "\x1b[1;1Habcdefghijklmn\x1b[2;1HABCDEFGHIJKLMN\x1b[3;1H0123456789:;<=\
                    \x1b[4;1Hopq\x1b[1\"qRST\x1b[0\"quvwxyzab\x1b[5;1H....,,,,;;;;::\x1b[6;1H++++----====~~";

/// States: their names, and the sequences that lead to them.
const STATES: [(&str, &str); 19] = [
    ("in the middle", "\x1b[3;5H"),
    ("on a right half", "\x1b[3;6H"),
    ("in the corner", "\x1b[1;1H"),
    ("in the last column", "\x1b[2;14H"),
    ("behind the last column", "\x1b[2;14H*"),
    ("behind the last cell", "\x1b[6;14H*"),
    ("on a protected cell", "\x1b[4;5H"),
    ("behind a guarded area", "\x1b[4;5H\x1bVzz\x1bW\x1b[4;6H"),
    ("between margins", "\x1b[2;5r\x1b[?69h\x1b[4;10s\x1b[3;6H"),
    ("at the lower right of margins", "\x1b[2;5r\x1b[?69h\x1b[4;10s\x1b[5;10H"),
    ("at the upper left of margins", "\x1b[2;5r\x1b[?69h\x1b[4;10s\x1b[2;4H"),
    ("behind the right margin", "\x1b[2;5r\x1b[?69h\x1b[4;10s\x1b[3;10H*"),
    ("right of margins", "\x1b[2;5r\x1b[?69h\x1b[4;10s\x1b[3;12H"),
    ("left of margins", "\x1b[2;5r\x1b[?69h\x1b[4;10s\x1b[3;2H"),
    ("above margins", "\x1b[2;5r\x1b[?69h\x1b[4;10s\x1b[1;6H"),
    ("below margins", "\x1b[2;5r\x1b[?69h\x1b[4;10s\x1b[6;6H"),
    ("in origin mode", "\x1b[2;5r\x1b[?69h\x1b[4;10s\x1b[?6h\x1b[2;3H"),
    ("on the alternate screen", "\x1b[?1049hxyz\x1b[3;5Hx\x1b[2;2H"),
    ("where lines wrap back", "\x1b[?45h\x1b[2;2H"),
];

/// Functions of one count.
const COUNTED: [&str; 27] = [
    "@", "A", "B", "C", "D", "E", "F", "G", "I", "J", "K", "L", "M", "P", "S", "T", "X", "Z", "^",
    "`", "a", "d", "e", "g", " @", " A", "'}",
];
/// More of them.
const COUNTED_TOO: [&str; 4] = ["'~", "x", "\"q", "#q"];
const COUNTS: [&str; 9] = ["", "0", "1", "2", "3", "5", "6", "14", "99"];
/// Functions of two numbers.
const ADDRESSED: [&str; 4] = ["H", "f", "r", "s"];
const ADDRESSES: [&str; 16] = [
    "", "0", "1", "6", "99", ";", ";0", ";5", "0;0", "2;2", "2;5", "5;2", "3;99", "99;3", "6;14",
    "99;99",
];
/// Rectangles, before the four numbers and after them.
const AREAS: [(&str, &str); 13] = [
    ("", "$z"),
    ("", "${"),
    ("42;", "$x"),
    ("", ";1$r"),
    ("", ";7$t"),
    ("", ";1;1;1;1$v"),
    ("", ";1;3;5;1$v"),
    ("", ";1;2;7;1$v"),
    ("", ";;6;14;1$v"),
    ("1;1;", "*y"),
    ("7;0;", "*y"),
    ("0;", "$x"),
    ("127;", "$x"),
];
const RECTANGLES: [&str; 12] = [
    "",
    "0;0;0;0",
    "1;1;1;1",
    "2;3;4;5",
    "3;5;3;5",
    "3;6;5;9",
    "4;5;2;3",
    "2;3",
    "2;;4;",
    ";3;;5",
    "6;14;99;99",
    "7;15;8;16",
];
/// Sequences without numbers, or with numbers of their own.
const OTHERS: [&str; 78] = [
    "\n",
    "\r",
    "\x08",
    "\t",
    "\x0b",
    "\x0c",
    "\x1bD",
    "\x1bE",
    "\x1bM",
    "\x1bH\x1b[1;1H\t",
    "\x1b6",
    "\x1b9",
    "\x1b7\x1b[1;1H\x1b8",
    "\x1b8",
    "\x1b[s\x1b[1;1H\x1b[u",
    "\x1b[u",
    "\x1b#8",
    "\x1bc",
    "\x1b[!p",
    "\x1b[!p\x1b8",
    "\x1b[?6h",
    "\x1b[?6l",
    "\x1b[?69l",
    "\x1b[?69h\x1b[3;8s",
    "\x1b[4hxy",
    "\x1b[?7lxyzxyzxyzxyzxyz",
    "xyzxyzxyzxyzxyzxyz",
    "\x1b[4hxyzxyzxyzxyzxyz",
    "\x1b[20h\n",
    "\x1b[20h\x0b",
    "\x1b[20h\x1bD",
    "x\x1b[b",
    "x\x1b[3b",
    "x\x1b[99b",
    "\x1b[2b",
    "\x1b[?J",
    "\x1b[?1J",
    "\x1b[?2J",
    "\x1b[?3J",
    "\x1b[?K",
    "\x1b[?1K",
    "\x1b[?2K",
    "\x1b[?3K",
    "\x1b[3J",
    "\x1b[5n",
    "\x1b[6n",
    "\x1b[?6n",
    "\x1b[?15n",
    "\x1b[?25n",
    "\x1b[?26n",
    "\x1b[?56n",
    "\x1b[?62n",
    "\x1b[?63n",
    "\x1b[?63;9n",
    "\x1b[?75n",
    "\x1b[?85n",
    "\x1b[2$w",
    "\x1b[0$w",
    "\x1b[18t",
    "\x1b(0qx\x1b(B",
    "\x0eq\x0f",
    "\x1b)0\x0eqx\x0f",
    "\x1b*0\x1bNqq",
    "\x1b+0\x1bOqq",
    "\x1b(A#\x1b(B",
    "\x1b[?5W\t",
    "\x1b[3g\t",
    "\x1b[g\t",
    "\x1bP2$t5/9\x1b\\\t",
    "\x1b[?1048h\x1b[1;1H\x1b[?1048l",
    "\x1b[?47hq\x1b[?47l",
    "\x1b[?1047hq\x1b[?1047l",
    "\x1b[?1049hq\x1b[?1049l",
    "\x1bP1$t2;3;1;I;@;@;0;2;@;BBBB\x1b\\x",
    "\x1bP1$t2;3;1;@;@;A;0;2;@;BBBB\x1b\\x",
    "\x1bP1$t2;14;1;@;@;H;0;2;@;BBBB\x1b\\x",
    "\x1bP1$t9;99;1;@;@;@;1;2;@;B0BB\x1b\\qx",
    "\x1bP1$t2;3\x1b\\x",
];
/// The arguments of DECRQSS.
const SETTINGS: [&str; 10] = ["m", "r", "s", "*|", "\"p", "\"q", "$}", "$~", ",|", "x"];
/// The settings before that.
const SET: [&str; 10] = [
    "",
    "\x1b[1;3;4;5;7;9m",
    "\x1b[2;21;38;5;9;48;5;200m",
    "\x1b[38;2;1;2;3;48:2::4:5:6m",
    "\x1b[91;102m",
    "\x1b[1\"q",
    "\x1b[2\"q",
    "\x1b[2*x",
    "\x1b[5 q",
    "\x1b[64;1\"p",
];
/// Modes that one of the two has and the other has not, or that its user sets: xterm's keyboard, graphics and
/// printer, and a mode that came after it.
const OWN_MODES: [u16; 19] =
    [2, 8, 10, 38, 43, 46, 64, 67, 80, 1001, 1045, 1046, 1050, 1051, 1052, 1053, 1060, 1061, 1070];

fn cases() -> Vec<String> {
    let mut inputs = Vec::new();
    for function in COUNTED.iter().chain(&COUNTED_TOO) {
        inputs.extend(COUNTS.iter().map(|count| format!("\x1b[{count}{function}")));
    }
    for function in ADDRESSED {
        inputs.extend(ADDRESSES.iter().map(|address| format!("\x1b[{address}{function}")));
    }
    inputs.extend(OTHERS.map(str::to_owned));
    let mut cases = Vec::new();
    for (_, state) in STATES {
        let inputs = inputs.iter().filter(|input| !is_disputed(state, input));
        cases.extend(inputs.map(|input| format!("{TEXT}{state}{input}")));
    }
    for (before, after) in AREAS {
        for (_, state) in [STATES[0], STATES[7], STATES[8], STATES[16]] {
            let agreed = |rectangle: &&str| !is_counted_twice(state, rectangle);
            let rectangles = RECTANGLES.into_iter().filter(agreed);
            cases.extend(rectangles.map(|area| format!("{TEXT}{state}\x1b[{before}{area}{after}")));
        }
    }
    for set in SET {
        cases.extend(SETTINGS.map(|what| format!("{set}\x1bP$q{what}\x1b\\")));
    }
    let modes = (0..=120).chain(1000..=1070).chain(2000..=2010);
    let modes = modes.filter(|mode| !OWN_MODES.contains(mode));
    for mode in modes {
        cases.push(format!("\x1b[?{mode}$p\x1b[?{mode}h\x1b[?{mode}$p\x1b[?{mode}l\x1b[?{mode}$p"));
    }
    for mode in 0..=22 {
        cases.push(format!("\x1b[{mode}$p"));
    }
    cases
}

/// An oversight of xterm: the flag of a deferred wrap outlives CBT and a DECRSPS cut short, and DECSTR saves it for
/// DECRC.
fn is_disputed(state: &str, input: &str) -> bool {
    let keeps = input.ends_with('Z') || input.contains("!p") || input.contains("$t2;3\x1b");
    state.ends_with('*') && keeps
}

/// In origin mode xterm counts omitted parameters from the margins twice.
fn is_counted_twice(state: &str, rectangle: &str) -> bool {
    let given = rectangle.split(';').filter(|number| !matches!(*number, "" | "0"));
    state.contains("?6h") && given.count() < 4
}

/// The screen, the cursor, and the answers.
type Seen = (Vec<String>, (u16, u16), String);

fn ours(input: &str) -> Seen {
    let mut terminal = Terminal::new(Size::clamped(SIZE.0, SIZE.1), Dialect::ROVE);
    terminal.set_resizing(Resizing::Obeyed);
    terminal.set_checksums(Checksums::Answered);
    terminal.advance(input.as_bytes());
    let cursor = terminal.screen().cursor();
    let reply = String::from_utf8(terminal.take_replies()).unwrap();
    (terminal.screen().text(), (cursor.row, cursor.col), reply)
}

fn xterms(xterm: &mut Xterm, input: &str) -> io::Result<Seen> {
    xterm.reset(SIZE.0, SIZE.1)?;
    let reply = xterm.write(input.as_bytes())?;
    let look = xterm.look()?;
    Ok((look.rows, look.cursor, String::from_utf8_lossy(&reply).into_owned()))
}

#[test]
fn every_function_in_every_state() {
    let wanted = std::env::var("CASE").unwrap_or_default();
    let mut xterm = Xterm::start().unwrap();
    let mut failed = Vec::new();
    let mut count = 0;
    for case in cases() {
        let escaped = case.escape_debug().to_string();
        if !escaped.contains(&wanted) {
            continue;
        }
        count += 1;
        // The cursor, and the effect of the next character there.
        let input = format!("{case}\x1b[6n!");
        let want = match xterms(&mut xterm, &input) {
            Ok(want) => want,
            // xterm has faults, too: one that kills it says nothing about us.
            Err(error) => {
                say(&format!("xterm: {error} at {escaped}"));
                xterm = Xterm::start().unwrap();
                continue;
            }
        };
        let have = ours(&input);
        if have != want {
            let shown = escaped.trim_start_matches(&TEXT.escape_debug().to_string()).to_owned();
            failed.push(format!("{shown}\n  ours  {have:?}\n  xterm {want:?}"));
        }
    }
    say(&format!("xterm: {count} cases"));
    assert!(failed.is_empty(), "{} of {count}\n{}", failed.len(), failed.join("\n"));
}
