//! A database of terminals that anybody may have written: whatever an entry holds, it is read within its
//! bounds, and it can take nothing from a frame but what frames may do without.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rove_term::{Dialect, Size, Terminal, Terminfo, frame, same};

const TERMS: [&str; 4] = ["", "xterm-256color", "tmux", "linux"];

fuzz_target!(|bytes: &[u8]| {
    let [term, wide, names, bools, numbers, strings, table, rest @ ..] = bytes else { return };
    let _ = Terminfo::parse(bytes);
    // What no chance finds is given: the first number, and counts that can be right.
    let magic: u16 = if wide % 2 == 0 { 0o432 } else { 0o1036 };
    let counts = [names % 4, *bools, *numbers, *strings, *table].map(u16::from);
    let counts = [counts[0], counts[1], counts[2], counts[3] * 2, counts[4]];
    let header = [magic].into_iter().chain(counts).flat_map(u16::to_le_bytes);
    let entry: Vec<u8> = header.chain(rest.iter().copied()).collect();
    let Some(info) = Terminfo::parse(&entry) else { return };
    let dialect = Dialect::tty_described(TERMS[usize::from(term % 4)], "", &info);
    let mut program = Terminal::new(Size::clamped(2, 12), Dialect::ROVE);
    let before = program.screen().clone();
    program.advance(b"\x1b[1;3;4:3;9;38;2;1;2;3mtext\x1b[44m\x1b[K\x1b[?1049hmore\x1b[5X");
    let mut out = Vec::new();
    frame(&before, program.screen(), &dialect, &mut out);
    let mut reader = Terminal::resume(before, dialect);
    reader.advance(&out);
    assert!(same(reader.screen(), program.screen(), &dialect));
});
