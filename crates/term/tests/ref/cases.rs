//! The format of the files beside this one: what a program writes, and the screen it leaves.
//!
//! ```text
//! case CUP stops at the corner
//! in \e[99;99Hx
//! |              |        every row, from top to bottom
//! |             x|
//! at 1,13                 the cursor, from 0; in a deferred wrap, the last column
//! reply \e[0n             what the terminal answered, if it did
//! ```
//!
//! `size 24x80` before `in` is the size, [`SIZE`] if not given; several `in` lines are one input. In `in` and
//! `reply`, `\e \r \n \t \\ \xNN` are octets. What stands before the first case is a comment. `ours WHY` after the
//! name says that the case is not xterm's: we decided the expected screen.

#![allow(dead_code, reason = "shared by two tests, each of which needs a part")]

use std::fmt::Write as _;

/// Rows and columns, where a case gives none.
pub const SIZE: (u16, u16) = (6, 14);

/// One case.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Case {
    /// What it shows.
    pub name: String,
    /// Why xterm is not the arbiter, if it is not.
    pub ours: Option<String>,
    /// Rows and columns.
    pub size: (u16, u16),
    /// What the program writes.
    pub input: Vec<u8>,
    /// The expected screen.
    pub seen: Seen,
}

/// What a terminal shows and said.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Seen {
    /// Every row, trailing blanks cut.
    pub rows: Vec<String>,
    /// Row and column, from 0.
    pub cursor: (u16, u16),
    /// All answers.
    pub reply: Vec<u8>,
}

/// A file: its comment, and its cases.
pub fn parse(text: &str) -> (String, Vec<Case>) {
    let mut comment = String::new();
    let mut cases: Vec<Case> = Vec::new();
    for line in text.lines() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if word == "case" {
            cases.push(Case { name: rest.to_owned(), size: SIZE, ..Case::default() });
            continue;
        }
        let Some(case) = cases.last_mut() else {
            comment.push_str(line);
            comment.push('\n');
            continue;
        };
        match word {
            _ if line.starts_with('|') => {
                let row = line[1..].strip_suffix('|').expect("a row ends with a bar");
                case.seen.rows.push(row.trim_end_matches(' ').to_owned());
            }
            "" => {}
            "ours" => case.ours = Some(rest.to_owned()),
            "size" => case.size = pair(rest, 'x'),
            "in" => case.input.extend(unescape(rest)),
            "at" => case.seen.cursor = pair(rest, ','),
            "reply" => case.seen.reply.extend(unescape(rest)),
            _ => panic!("{}: what is {line:?}?", case.name),
        }
    }
    (comment, cases)
}

/// The file again.
pub fn format(comment: &str, cases: &[Case]) -> String {
    let mut out = comment.to_owned();
    for (index, case) in cases.iter().enumerate() {
        if index > 0 {
            out.push('\n');
        }
        let (height, width) = case.size;
        writeln!(out, "case {}", case.name).expect("a string takes it");
        if let Some(why) = &case.ours {
            writeln!(out, "ours {why}").expect("a string takes it");
        }
        if case.size != SIZE {
            writeln!(out, "size {height}x{width}").expect("a string takes it");
        }
        for piece in pieces(&case.input) {
            writeln!(out, "in {}", escape(piece)).expect("a string takes it");
        }
        for row in &case.seen.rows {
            writeln!(out, "|{row:<0$}|", usize::from(width)).expect("a string takes it");
        }
        writeln!(out, "at {},{}", case.seen.cursor.0, case.seen.cursor.1)
            .expect("a string takes it");
        if !case.seen.reply.is_empty() {
            writeln!(out, "reply {}", escape(&case.seen.reply)).expect("a string takes it");
        }
    }
    out
}

/// What differs, for a person; `None` if nothing does.
pub fn difference(case: &Case, seen: &Seen) -> Option<String> {
    (case.seen != *seen).then(|| {
        let mut got = case.clone();
        got.seen = seen.clone();
        format!("wanted\n{}got\n{}", format("", std::slice::from_ref(case)), format("", &[got]))
    })
}

/// An input in lines a person can read: at line feeds, and not too long.
fn pieces(input: &[u8]) -> impl Iterator<Item = &[u8]> {
    const LONG: usize = 80;
    input.split_inclusive(|byte| *byte == b'\n').flat_map(|line| line.chunks(LONG))
}

fn pair(text: &str, between: char) -> (u16, u16) {
    let (first, second) = text.split_once(between).expect("two numbers");
    (first.parse().expect("a number"), second.parse().expect("a number"))
}

fn escape(bytes: &[u8]) -> String {
    let mut out = String::new();
    for (index, byte) in bytes.iter().enumerate() {
        match byte {
            0x1b => out.push_str("\\e"),
            b'\r' => out.push_str("\\r"),
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            b'\\' => out.push_str("\\\\"),
            // A blank at either end would not be seen.
            b' ' if index == 0 || index + 1 == bytes.len() => out.push_str("\\x20"),
            b' '..=b'~' => out.push(char::from(*byte)),
            _ => write!(out, "\\x{byte:02x}").expect("a string takes it"),
        }
    }
    out
}

fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        out.push(match bytes.next() {
            Some(b'e') => 0x1b,
            Some(b'r') => b'\r',
            Some(b'n') => b'\n',
            Some(b't') => b'\t',
            Some(b'\\') => b'\\',
            Some(b'x') => {
                let digits = [bytes.next(), bytes.next()].map(|digit| digit.unwrap_or(b'?'));
                let digits = std::str::from_utf8(&digits).expect("ASCII");
                u8::from_str_radix(digits, 16).expect("two digits after \\x")
            }
            other => panic!("what is \\{other:?}?"),
        });
    }
    out
}
