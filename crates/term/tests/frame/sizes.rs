//! Frames that people cause all day, octet for octet: what a change in the differ does to them is
//! seen here.

use rove_term::{Dialect, Size, Terminal, frame};

fn check(setup: &str, output: &str, dialect: &Dialect, want: &str) {
    let mut terminal = Terminal::new(Size::DEFAULT, Dialect::ROVE);
    terminal.advance(setup.as_bytes());
    let old = terminal.screen().clone();
    terminal.advance(output.as_bytes());
    let mut bytes = Vec::new();
    frame(&old, terminal.screen(), dialect, &mut bytes);
    assert_eq!(String::from_utf8_lossy(&bytes), want, "{setup:?} then {output:?}");
}

#[test]
fn usual_frames() {
    let bar = "=".repeat(80);
    for (setup, output, mosh, rove) in [
        ("$ ", "l", "l", "l"),
        ("$ ls", "\x08 \x08", "\x08 \x08", "\x08 \x08"),
        ("$ ls -la", "\r$ \x1b[K", "\r$ \x1b[K", "\r$ \x1b[K"),
        ("$ ls", "\r\nfile\r\n$ ", "\r\nfile\r\n$ ", "\r\nfile\r\n$ "),
        ("", "\x1b[1;31mred\x1b[0m", "\x1b[1;31mred\x1b[m", "\x1b[1;31mred\x1b[m"),
        ("", "\x1b[2mfaint\x1b[0m", "faint", "\x1b[2mfaint\x1b[m"),
        ("ab cd ef", "\x1b[1;2HX\x1b[1;8HY", "\raX\x1b[5CY", "\raX\x1b[5CY"),
        ("", &bar, &format!("{bar}\x1b[80G"), "=\x1b[79b\x1b[80G"),
        ("", "\x07\x07\x07", "\x07", "\x07"),
        ("", "\x1b]0;t\x07", "\x1b]0;t\x07", "\x1b]0;t\x07"),
        ("", "\x1b]52;c;aGk=\x07", "\x1b]52;c;aGk=\x07", "\x1b]52;c;aGk=\x07"),
        ("", "\x1b]52;c;?\x07", "", ""),
        ("", "\x1b[?1000;1006h", "\x1b[?1000h\x1b[?1006h", "\x1b[?1000h\x1b[?1006h"),
        ("\x1b[?1000h", "\x1b[?1002h", "\x1b[?1000l\x1b[?1002h", "\x1b[?1000l\x1b[?1002h"),
    ] {
        check(setup, output, &Dialect::MOSH, mosh);
        check(setup, output, &Dialect::ROVE, rove);
    }
}

/// mosh-protocol.md §11, weakness 9: a full last row with the cursor in its last column.
#[test]
fn the_cursor_in_the_last_column_is_addressed() {
    let setup = "\x1b[24;1H";
    let output = "x".repeat(80);
    check(setup, &output, &Dialect::MOSH, &format!("{output}\x1b[80G"));
}
