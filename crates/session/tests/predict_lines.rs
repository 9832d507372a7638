//! Enter: where confidence is carried over it, and where never; and text found elsewhere than foreseen.

mod desk;

use desk::Desk;
use rove_session::predict::{Display, LineMode, Settings};

/// Before an editor that keeps a bar at the foot of the screen, with this text below the cursor.
fn editor(below: &str) -> Desk {
    let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
    desk.echoes(format!("\x1b[H\x1b[2J\r\n{below}\x1b[24H^G Help\x1b[H").as_bytes());
    desk
}

/// The same after a line that Enter ended, opening a row.
fn taught(below: &str) -> Desk {
    let mut desk = editor(below);
    desk.settles(b"one").types(b"\r").echoes(OPENS).settles(b"two");
    desk
}

/// What an editor answers to Enter.
const OPENS: &[u8] = b"\r\n\x1b7\x1b[1;20r\x1b8\x1b[L\x1b7\x1b[r\x1b8";

/// The first rows as the user sees them, and where the cursor is.
fn top(desk: &Desk) -> (Vec<String>, (u16, u16)) {
    let shown = desk.shown();
    ((0..4).map(|row| shown.row_text(row)).collect(), (shown.cursor().row, shown.cursor().col))
}

#[test]
fn enter_is_foreseen_in_text_once_it_has_opened_a_row() {
    let mut desk = editor("below");
    desk.settles(b"one").types(b"\rtwo");
    assert_eq!(top(&desk).0[..3], ["one", "below", ""], "not yet");
    let mut desk = taught("below");
    desk.types(b"\rthree\rfour");
    assert_eq!(top(&desk), (["one", "two", "three", "four"].map(str::to_owned).to_vec(), (3, 4)));
    assert_eq!(desk.shown().row_text(4), "below", "what stands below moves down");
    assert_eq!(desk.shown().row_text(23), "^G Help", "and what stays does not");
    desk.writes(OPENS).acks(1);
    assert_eq!(top(&desk).0, ["one", "two", "three", "four"]);
    desk.echoes(&[b"three", OPENS, b"four"].concat());
    assert_eq!(top(&desk), (["one", "two", "three", "four"].map(str::to_owned).to_vec(), (3, 4)));
    assert_eq!(desk.terminal.screen().text(), desk.shown().text());
}

#[test]
fn the_next_line_is_indented_and_takes_the_rest_of_this_one_along() {
    let mut desk = editor("");
    desk.echoes(b"    ").settles(b"one").types(b"\r").echoes(b"\r\n    ").settles(b"two");
    desk.types(b"\rx");
    assert_eq!(top(&desk).0[..3], ["    one", "    two", "    x"]);
    let mut desk = taught("");
    desk.settles(b"!").reads(b"\x1b[D").types(b"\rx");
    assert_eq!(top(&desk), (["one", "two", "x!", ""].map(str::to_owned).to_vec(), (2, 1)));
}

/// Types a secret after Enter, ahead of whatever comes, and checks that none of it is shown.
fn check_nothing_is_carried(desk: &mut Desk, what: &str) {
    for key in b"\rhunter2".chunks(1) {
        desk.types(key);
        let (shown, real) = (desk.shown(), desk.terminal.screen().clone());
        assert!(!shown.text().concat().contains("hu"), "{what}: {:?}", shown.text());
        assert_eq!(shown.text()[1..], real.text()[1..], "{what}");
    }
}

#[test]
fn nothing_is_carried_over_enter_where_a_password_may_be_asked_for() {
    // Nothing was learnt: at a shell's prompt, in an editor's first line, where all scrolls.
    check_nothing_is_carried(&mut editor(""), "an editor's first line");
    let mut shell = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
    for _ in 0..8 {
        shell.settles(b"ls").types(b"\r").echoes(b"\r\n");
    }
    shell.settles(b"sudo x");
    shell.types(b"\rhunter2");
    assert_eq!(shown_text(&shell), real_text(&shell), "lines without prompt, nothing below them");
    for (what, then) in [
        ("at a prompt", &b"\r\n$ "[..]),
        ("where text stands left of the line", b"\x1b[2;1H> \x1b[2;3H"),
        ("on the last row", b"\x1b[24H\x1b[K"),
        ("above the last row", b"\x1b[23H"),
    ] {
        let mut desk = taught("");
        desk.echoes(then).settles(b"sudo x").types(b"\rhunter2");
        assert_eq!(shown_text(&desk), real_text(&desk), "{what}");
    }
    for key in [&b"\x18"[..], b"\x1b", b"\x1bx", b"\t"] {
        let mut desk = taught("");
        desk.reads(key).types(b"word\rhunter2");
        assert_eq!(shown_text(&desk), real_text(&desk), "after {key:?}");
    }
}

fn shown_text(desk: &Desk) -> Vec<String> {
    desk.shown().text()
}

fn real_text(desk: &Desk) -> Vec<String> {
    desk.terminal.screen().text()
}

#[test]
fn an_enter_that_did_something_else_ends_it() {
    let mut desk = taught("");
    // A program that has imitated an editor, and now asks.
    for _ in 0..5 {
        desk.types(b"\r").echoes(OPENS).settles(b"x");
    }
    desk.types(b"\r").echoes(b"\r\nPassword: ");
    for key in b"hunter2\rhunter2".chunks(1) {
        desk.types(key);
        assert_eq!(shown_text(&desk), real_text(&desk), "the question is there");
        desk.acks(1);
    }
    desk.echoes(b"\r\n\r\n").settles(b"y");
    desk.types(b"\rhunter2");
    assert_eq!(shown_text(&desk), real_text(&desk), "all of it is to be earned again");
}

#[test]
fn a_report_that_the_kernel_echoes_ends_it() {
    for (line, shown) in [
        (None, "hunter2"),
        (Some(LineMode::Raw), "hunter2"),
        (Some(LineMode::Cooked), ""),
        (Some(LineMode::Hidden), ""),
    ] {
        let mut desk = taught("");
        desk.line = line;
        desk.types(b"\rhunter2");
        assert_eq!(desk.shown().row_text(2), shown, "{line:?}");
        // The report may come while it is on its way.
        let mut late = taught("");
        late.types(b"\rhunter2");
        assert_eq!(late.shown().row_text(2), "hunter2");
        late.line = line;
        late.wait(1);
        assert_eq!(late.shown().row_text(2), shown, "{line:?}, later");
    }
}

#[test]
fn a_line_found_again_in_its_middle_goes_on_to_the_left() {
    let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
    // The program does more than was typed; from then on nobody knows where its line begins.
    desk.settles(b"ab").types(b"\t").echoes(b"cdef").settles(b"g");
    desk.types(b"\x7f\x7f");
    assert_eq!(desk.shown().row_text(0), "$ abcde");
    // After Enter the line begins where it is typed: no shell goes left of its prompt.
    desk.echoes(b"\x08\x08\x1b[K").types(b"\r").echoes(b"\r\n$ ").settles(b"g");
    desk.types(b"\x7f\x7f");
    assert_eq!(desk.shown().row_text(1), "$");
}

/// A frame that shows what was typed at another place: enough of it, and not by the kernel's hand.
#[test]
fn moved_text_confirms_only_if_it_is_told_apart() {
    for (line, typed, acks, frame, shown) in [
        (None, &b"horse"[..], 5, "\r\n\n> horse", "> horse!"),
        (None, b"ab", 2, "\r\n\n> ab", "> ab"),
        (Some(LineMode::Cooked), b"horse", 5, "\r\n\n> horse", "> horse"),
    ] {
        let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
        desk.line = line;
        desk.types(typed);
        desk.terminal.advance(frame.as_bytes());
        desk.acks(acks).types(b"!");
        assert_eq!(desk.shown().row_text(2), shown, "{line:?} {frame:?}");
    }
}
