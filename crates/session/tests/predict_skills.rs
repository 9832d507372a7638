//! Our rules, skill by skill: what each kind of edit does to a line, and what of it is shown when.

mod desk;

use desk::{Desk, row};
use rove_session::predict::{Display, Settings};

/// Behind this text, typed at a prompt and echoed.
fn line(text: &str) -> Desk {
    let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
    desk.settles(text.as_bytes());
    desk
}

/// A key that is shown from the first time on.
#[track_caller]
fn is_shown(text: &str, keys: &[u8], shown: &str) {
    assert_eq!(row(line(text).reads(keys), 0), shown, "{keys:?}");
}

/// A key that must have done once what is foreseen of it, this frame, before it is shown. Each time the
/// cursor first goes `left` columns back from the end of the text.
#[track_caller]
fn is_earned(text: &str, left: usize, key: &[u8], frame: &[u8], shown: &str) {
    let mut desk = line(text);
    let (keys, frames) = (b"\x1b[D".repeat(left), b"\x08".repeat(left));
    let before = row(desk.reads(&keys).echoes(&frames), 0);
    assert_eq!(row(desk.reads(key), 0), before, "{key:?} has earned nothing yet");
    assert_eq!(row(desk.echoes(frame), 0), shown, "{key:?}: what the frame shows");
    // Back to where it was, and once more.
    desk.echoes(format!("\r$ {text}").as_bytes())
        .settles(b"!")
        .types(b"\x7f")
        .echoes(b"\x08\x1b[K");
    assert_eq!(row(desk.reads(&keys).echoes(&frames), 0), before);
    assert_eq!(row(desk.reads(key), 0), shown, "{key:?} has been right");
}

#[test]
fn backspace() {
    is_shown("abc def", b"\x7f", "$ abc de|");
    is_shown("abc def", b"\x1b[D\x1b[D\x7f", "$ abc |ef");
}

#[test]
fn left_and_right() {
    is_shown("abc def", b"\x1b[D", "$ abc de|f");
    is_shown("abc def", b"\x1b[D\x1b[D\x1b[C", "$ abc de|f");
    is_shown("abc def", b"\x1b[C", "$ abc def|");
}

#[test]
fn home_and_end() {
    is_shown("abc def", b"\x1b[H", "$ |abc def");
    is_shown("abc def", b"\x1b[H\x1b[F!", "$ abc def!|");
}

/// A blank that was typed is text, also where other text was taken out before it.
#[test]
fn the_end_is_behind_typed_blanks() {
    is_shown("abc", b" \x1b[H\x1b[F!", "$ abc !|");
    is_shown("abc", b"d. \x1b[D\x1b[D\x7f\x1b[F!", "$ abc. !|");
    is_shown("abc", b" \x7f\x1b[H\x1b[F!", "$ abc!|");
    // The same once it has been echoed.
    is_shown("abc ", b"\x1b[H\x1b[F!", "$ abc !|");
    let mut desk = line("abc. ");
    let (back, delete) = (b"\x1b[D\x1b[D", b"\x7f");
    desk.reads(back).echoes(b"\x08\x08").reads(delete).echoes(b"\x08\x1b[P");
    assert_eq!(row(desk.reads(b"\x1b[F!"), 0), "$ ab. !|");
    assert_eq!(
        row(line("abc ").types(b"\x7f").echoes(b"\x08").reads(b"\x1b[H\x1b[F!"), 0),
        "$ abc!|"
    );
}

#[test]
fn text_before_text_moves_it() {
    is_shown("abc def", b"\x1b[D\x1b[DX", "$ abc dX|ef");
    is_shown("abc def", b"\x1b[D\x1b[D\x7fXY", "$ abc XY|ef");
}

#[test]
fn ctrl_a_and_ctrl_e() {
    is_earned("abc def", 0, b"\x01", b"\x1b[7D", "$ |abc def");
    is_shown("abc def", b"\x1b[D\x1b[D\x05", "$ abc def|");
}

#[test]
fn ctrl_u() {
    is_earned("abc def", 0, b"\x15", b"\r$ \x1b[K", "$ |");
    is_earned("abc def", 3, b"\x15", b"\r$ \x1b[4P", "$ |def");
}

#[test]
fn ctrl_k() {
    is_earned("abc def", 3, b"\x0b", b"\x1b[K", "$ abc |");
}

#[test]
fn ctrl_w_and_alt_del() {
    for key in [&b"\x17"[..], b"\x1b\x7f"] {
        is_earned("abc def", 0, key, b"\x1b[3D\x1b[K", "$ abc |");
    }
}

#[test]
fn word_left() {
    for key in [&b"\x1bb"[..], b"\x1b[1;5D", b"\x1b[1;3D"] {
        is_earned("abc def", 0, key, b"\x1b[3D", "$ abc |def");
    }
}

#[test]
fn word_right() {
    for key in [&b"\x1bf"[..], b"\x1b[1;5C", b"\x1b[1;3C"] {
        is_earned("abc def", 6, key, b"\x1b[2C", "$ abc| def");
    }
}

#[test]
fn delete_forward() {
    for key in [&b"\x1b[3~"[..], b"\x04"] {
        is_earned("abc def", 3, key, b"\x1b[P", "$ abc |ef");
    }
}

/// The cursor stays where it is: only the text tells how many of them a frame shows.
#[test]
fn deletes_are_told_apart() {
    let mut desk = line("");
    desk.settles(b"abcdefgh").types(b"\x1b").echoes(b"\x1b[6D");
    desk.reads(b"\x1b[3~").echoes(b"\x1b[P").types(b"x").echoes(b"\x1b[@x");
    desk.reads(b"\x1b[3~").reads(b"\x1b[3~");
    assert_eq!(row(&desk, 0), "$ abx|fgh");
    assert_eq!(row(desk.writes(b"\x1b[P"), 0), "$ abx|fgh", "the first of two is there");
}

/// What they bring nobody knows: neither they nor what is typed behind them is shown before its own echo.
#[test]
fn history_keys_are_not_foreseen() {
    for key in [&b"\x1b[A"[..], b"\x1b[B", b"\x1bOA", b"\x1bOB", b"\x10", b"\x0e", b"\x12"] {
        let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
        desk.echoes(b"\x1b[6H$ ").settles(b"abc");
        assert_eq!(row(desk.reads(key), 5), "$ abc|", "{key:?}");
        assert_eq!(row(desk.types(b"xy"), 5), "$ abc|", "{key:?} and more");
        assert_eq!(row(desk.writes(b"\r$ make\x1b[K").acks(1), 5), "$ make|", "{key:?}: its line");
        assert_eq!(row(desk.writes(b"x"), 5), "$ makexy|", "{key:?}: an echo");
    }
}

#[test]
fn suggestions_are_typed_over() {
    // Dim or not: it came by itself.
    for dim in [&b"\x1b[90m"[..], b"\x1b[2m", b""] {
        let mut desk = line("cat ");
        desk.types(b"t").echoes(&[b"t", dim, b"ail.log\x1b[m\x1b[7D"].concat());
        assert_eq!(row(desk.types(b"a"), 0), "$ cat ta|il.log", "as suggested");
        assert_eq!(row(desk.types(b"x"), 0), "$ cat tax|l.log", "otherwise");
    }
}

/// It came with a frame that no key explains: that it is no text of the line shows when something is typed before it.
#[test]
fn what_does_not_move_along_is_a_suggestion() {
    for (frame, shown) in [(&b"s"[..], "$ cat sr|c/"), (b"s\x1b[K", "$ cat sr|")] {
        let mut desk = line("cat ");
        desk.writes(b"src/\x1b[4D").types(b"s");
        assert_eq!(row(&desk, 0), "$ cat s|src/", "it might be text");
        assert_eq!(row(desk.echoes(frame).types(b"r"), 0), shown, "{frame:?}");
    }
}

#[test]
fn right_prompts_stay() {
    let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
    desk.terminal.advance(b"\x1b[70G12:34\x1b[3G");
    desk.settles(b"a").types(b"bc");
    assert_eq!(row(&desk, 0), format!("$ abc|{}12:34", " ".repeat(64)));
    assert_eq!(row(desk.types(b"\x7f"), 0), format!("$ ab|{}12:34", " ".repeat(65)));
}

/// Lines wrap there, or scroll, or stop: nobody knows until it was seen.
#[test]
fn the_last_column_waits() {
    let text = format!("{}k", "m".repeat(75));
    let mut desk = line(&text);
    assert_eq!(row(desk.types(b"n"), 0), format!("$ {text}n|"));
    assert_eq!(row(desk.types(b"op"), 0), format!("$ {text}n|"));
    desk.echoes(b"nop").settles(b"q");
    assert_eq!(row(desk.types(b"r"), 1), "pqr|", "the line went on below");
}

#[test]
fn wide_characters() {
    is_shown("abc", "\u{4e2d}\u{e9}".as_bytes(), "$ abc\u{4e2d}\u{e9}|");
    is_shown("abc", "\u{4e2d}\x7f".as_bytes(), "$ abc|");
    is_shown("abc", "\x1b[D\u{4e2d}".as_bytes(), "$ ab\u{4e2d}|c");
    let mut desk = line("");
    let text = "\u{4e2d}\u{6587}".as_bytes();
    desk.reads(text).echoes(text);
    let cursor = desk.reads(b"\x1b[D").shown().cursor();
    assert_eq!((cursor.row, cursor.col), (0, 4), "left over both columns");
}

#[test]
fn combining_characters() {
    is_shown("abc", "e\u{301}x".as_bytes(), "$ abce\u{301}x|");
    is_shown("abc", "\u{301}".as_bytes(), "$ abc\u{301}|");
}

#[test]
fn a_short_paste_is_shown_and_a_long_one_is_not() {
    let paste = |text: &str| {
        let mut desk = line("abc ");
        desk.terminal.advance(b"\x1b[?2004h");
        row(desk.reads(format!("\x1b[200~{text}\x1b[201~").as_bytes()), 0)
    };
    assert_eq!(paste("some words"), "$ abc some words|");
    assert_eq!(paste(&"x".repeat(100)), "$ abc |");
    // Without the mode the brackets are keys like any other.
    let mut desk = line("abc ");
    assert_eq!(row(desk.reads(b"\x1b[200~words\x1b[201~"), 0), "$ abc |");
}
