//! The law of frames over text chosen by kind: every combination of what our table and stock's say of a
//! character, on every kind of cell, at every kind of column, for every reader. Random streams meet few
//! of these.

use std::collections::BTreeMap;

use rove_term::dialect::Ability;
use rove_term::width::{self, Properties};
use rove_term::{Dialect, Screen, Size, Terminal, frame, project, same};

use crate::grammar;
use crate::laws::difference;

/// The columns of the screens that texts are put on.
const COLS: u16 = 8;
/// Where texts begin, from 1: at the margin, inside, and so that two, one or no further cells follow.
const STARTS: [u16; 4] = [1, 6, 7, 8];
/// How many texts one screen holds, and its rows.
const TEXTS: usize = 60;
const ROWS: usize = 2 * TEXTS + 1;

/// Characters that rules name one by one.
const NAMED: [char; 16] = [
    ' ',
    '#',
    'a',
    '\u{a0}',
    '\u{ad}',
    '\u{34f}',
    '\u{605}',
    '\u{903}',
    '\u{200b}',
    '\u{200d}',
    '\u{20e3}',
    '\u{2d7f}',
    '\u{302e}',
    '\u{fe0e}',
    '\u{fe0f}',
    '\u{1f3fb}',
];

/// The first and the last character of each kind, apart from control characters, which are no text.
fn samples() -> Vec<char> {
    let mut kinds: BTreeMap<(u8, Option<u8>, usize), (char, char)> = BTreeMap::new();
    for c in (0..=0x10_ffff).filter_map(char::from_u32).filter(|c| !c.is_control()) {
        let kind = (width::of(c), width::stock(c), Properties::of(c).class() as usize);
        kinds.entry(kind).or_insert((c, c)).1 = c;
    }
    let mut samples: Vec<char> = kinds.into_values().flat_map(|(a, b)| [a, b]).collect();
    samples.extend(NAMED);
    samples.sort_unstable();
    samples.dedup();
    samples
}

/// One character of each kind: what three in a row are made of.
fn few_samples() -> Vec<char> {
    let mut seen: BTreeMap<(u8, Option<u8>, usize), char> = BTreeMap::new();
    for c in samples() {
        seen.insert((width::of(c), width::stock(c), Properties::of(c).class() as usize), c);
    }
    seen.into_values().chain([' ', '\u{a0}', '\u{fe0f}']).collect()
}

/// A screen with texts on it, one every other row, since they may wrap.
fn screen(texts: &[String], rows: usize, start: u16, wire: Dialect) -> Screen {
    let mut terminal = Terminal::new(Size::clamped(rows as i64, i64::from(COLS)), wire);
    for (index, text) in texts.iter().enumerate() {
        terminal.advance(format!("\x1b[{};{start}H{text}", 2 * index + 1).as_bytes());
    }
    terminal.into_screen()
}

/// What the law says of these two screens.
fn check(old: &Screen, new: &Screen, dialect: &Dialect) -> Result<(), String> {
    let mut bytes = Vec::new();
    frame(old, new, dialect, &mut bytes);
    let shown = String::from_utf8_lossy(&bytes).into_owned();
    grammar::check(&bytes, dialect)?;
    let wanted = project(new, dialect);
    let mut reader = Terminal::resume(project(old, dialect), *dialect);
    reader.advance(&bytes);
    if !same(reader.screen(), new, dialect) {
        let wrong = difference(reader.screen(), &wanted);
        return Err(format!("from {:?}\nby {shown:?}\n{wrong}", old.text()));
    }
    let mut nothing = Vec::new();
    frame(new, &wanted, dialect, &mut nothing);
    frame(&wanted, new, dialect, &mut nothing);
    if !nothing.is_empty() {
        return Err(format!(
            "projected: {:?}\n{:?}",
            String::from_utf8_lossy(&nothing),
            new.text()
        ));
    }
    Ok(())
}

/// One reader of each kind that text is written for.
fn readers() -> [(&'static str, Dialect); 4] {
    [
        ("mosh", Dialect::MOSH),
        ("rove", Dialect::ROVE),
        ("xterm", grammar::tty("xterm-256color", "truecolor")),
        ("linux", grammar::tty("linux", "")),
    ]
}

/// Draws all texts at each start, on a blank screen and then over each other, for every reader.
fn check_all(texts: &[String], starts: &[u16]) {
    for (wire_name, wire) in [("rove", Dialect::ROVE), ("mosh", Dialect::MOSH)] {
        for start in starts {
            let blank = screen(&[], ROWS, *start, wire);
            let mut old = blank.clone();
            for some in texts.chunks(TEXTS) {
                let new = screen(some, ROWS, *start, wire);
                for (name, dialect) in readers() {
                    let both = [&blank, &old].map(|old| check(old, &new, &dialect));
                    if let Err(fault) = both.into_iter().collect::<Result<Vec<()>, _>>() {
                        let alone = blame(some, *start, wire, &dialect).unwrap_or(fault);
                        panic!("{name}, from a {wire_name} screen, column {start}:\n{alone}");
                    }
                }
                old = new;
            }
        }
    }
}

/// The faults that single texts make.
fn blame(texts: &[String], start: u16, wire: Dialect, dialect: &Dialect) -> Option<String> {
    let blank = screen(&[], 3, start, wire);
    let faults = texts.iter().filter_map(|text| {
        let new = screen(std::slice::from_ref(text), 3, start, wire);
        let fault = check(&blank, &new, dialect).err()?;
        Some(format!("{text:?}: {fault}\n"))
    });
    let faults: String = faults.collect();
    (!faults.is_empty()).then_some(faults)
}

#[test]
fn pairs_of_characters() {
    let samples = samples();
    let mut texts = Vec::new();
    for a in &samples {
        // A mark after the cursor has moved goes elsewhere than one after text.
        texts.extend(samples.iter().flat_map(|b| {
            let coloured = format!("\x1b[41m{a}\x1b[44m{b}\x1b[m");
            [format!("{a}{b}"), format!("{a}x\x08{b}"), coloured]
        }));
    }
    check_all(&texts, &STARTS[..]);
}

#[test]
fn three_characters() {
    let samples = few_samples();
    let mut texts = Vec::new();
    for a in &samples {
        for b in &samples {
            texts.extend(samples.iter().map(|c| format!("{a}{b}{c}")));
        }
    }
    check_all(&texts, &[3]);
}

/// A frame for each: what the last one printed still stands before the reader's cursor.
#[test]
fn characters_one_by_one() {
    let samples = samples();
    let blank = Screen::new(Size::clamped(2, i64::from(COLS)));
    for wire in [Dialect::ROVE, Dialect::MOSH] {
        for (name, dialect) in readers() {
            for (start, a, b) in pairs(&samples, &[4, 8]) {
                let mut program = Terminal::resume(blank.clone(), wire);
                let mut reader = Terminal::resume(project(&blank, &dialect), dialect);
                for text in [format!("\x1b[{start}G{a}"), b.to_string()] {
                    let old = program.screen().clone();
                    program.advance(text.as_bytes());
                    let mut bytes = Vec::new();
                    frame(&old, program.screen(), &dialect, &mut bytes);
                    reader.advance(&bytes);
                }
                assert!(
                    same(reader.screen(), program.screen(), &dialect),
                    "{name}, column {start}, {a:?} then {b:?}: {:?}",
                    (reader.screen().text(), program.screen().text()),
                );
            }
        }
    }
}

fn pairs(samples: &[char], starts: &[u16]) -> Vec<(u16, char, char)> {
    let mut pairs = Vec::new();
    for start in starts {
        for a in samples {
            pairs.extend(samples.iter().map(|b| (*start, *a, *b)));
        }
    }
    pairs
}

/// What stock's wide cell hides is not what it shows, also where that is a blank of another colour.
#[test]
fn blanks_behind_characters() {
    let mut texts = Vec::new();
    for c in samples() {
        for blank in ["\x1b[K", "\x1b[X", "\x1b[4X", "\x1b[P", "\x1b[@", "  ", "    |"] {
            texts.push(format!("\x1b[41m{c}\x08\x1b[44m{blank}\x1b[m"));
            texts.push(format!("\x1b[41m{c}\x1b[44m{blank}\x1b[m"));
        }
    }
    check_all(&texts, &[1, 3, 7]);
}

/// Marks up to and beyond what a cell of either emulator takes, of each length and on bases of each length.
#[test]
fn piles_of_marks() {
    let bases =
        ["", " ", "a", "\u{a0}", "\u{915}", "\u{4e16}", "\u{1f600}", "\u{605}", "\u{1f1e6}"];
    let marks =
        ['\u{301}', '\u{fe0f}', '\u{20dd}', '\u{200d}', '\u{1e944}', '\u{1160}', '\u{e0100}'];
    let mut texts = Vec::new();
    for base in bases {
        for mark in marks {
            for count in 6..20 {
                texts.push(format!("{base}{}", mark.to_string().repeat(count)));
                texts.push(format!("{base}{}{mark}", "\u{301}".repeat(count)));
            }
        }
    }
    check_all(&texts, &[3, 8]);
}

/// ECH saves octets where the reader has it; to another it is nothing.
#[test]
fn blanks_are_erased_where_the_reader_can() {
    let screen = |text: &str| {
        let mut terminal = Terminal::new(Size::clamped(2, 60), Dialect::ROVE);
        terminal.advance(text.as_bytes());
        terminal.screen().clone()
    };
    let (old, new) = (screen(&"a".repeat(60)), screen("aa\x1b[1;56Haaaaa"));
    for (dialect, erases) in
        [(Dialect::ROVE, true), (Dialect::ROVE.without(Ability::EraseCharacters), false)]
    {
        let mut diff = Vec::new();
        frame(&old, &new, &dialect, &mut diff);
        let diff = String::from_utf8(diff).unwrap();
        assert_eq!(diff.contains("\x1b[53X"), erases, "{diff:?}");
        assert_eq!(diff.contains('X'), erases, "{diff:?}");
    }
}
