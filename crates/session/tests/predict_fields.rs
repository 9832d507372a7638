//! Questions that are drawn in the midst of a screen, and what stands for a secret there: stars, or nothing.

mod desk;

use desk::{Desk, row};
use rove_session::predict::{Display, LineMode, Settings};
use rove_term::Size;

fn desk(line: Option<LineMode>) -> Desk {
    let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
    desk.line = line;
    desk
}

/// Programs that read in raw mode, which is all that is reported of them, and those of a server that reports nothing.
const LINES: [Option<LineMode>; 2] = [None, Some(LineMode::Raw)];

/// Types a secret, of which nobody sees anything, and checks that nothing is shown of it.
fn check_secret(desk: &mut Desk, what: &str) {
    for key in b"hunter2".chunks(1) {
        desk.types(key);
        assert_eq!(desk.shown().text(), desk.terminal.screen().text(), "{what}");
    }
}

/// A mark that is taken back again stands for a letter that nobody sees.
#[test]
fn marks_of_a_secret_that_are_taken_back_confirm_nothing() {
    for (line, mark) in LINES.iter().flat_map(|line| ["*", ".", "\u{2022}"].map(|it| (*line, it))) {
        let echo = mark.as_bytes();
        for (keys, frame) in [
            (&b"\x7f"[..], &b"\x08 \x08"[..]),
            (b"\x08", b"\x08 \x08"),
            (b"\x7f\x7f", b"\x08\x08  \x08\x08"),
            (b"\x17", b"\x08\x08  \x08\x08"),
            (b"\x1b\x7f", b"\x08\x08  \x08\x08"),
            (b"\x1b[D\x1b[3~", b"\x08 \x08"),
            (b"\x1b[D\x0b", b"\x08 \x08"),
        ] {
            let mut desk = desk(line);
            desk.settles(b"x").types(b"\r").echoes(b"\r\n[sudo] password for u: ");
            desk.types(b"h").echoes(echo).types(b"u").echoes(echo);
            desk.reads(keys).echoes(frame);
            check_secret(&mut desk, &format!("{mark}, {keys:?}, {line:?}"));
        }
    }
}

/// A letter that looks like its mark is no letter that is seen.
#[test]
fn a_letter_that_is_its_own_mark_confirms_nothing() {
    for (line, mark) in LINES
        .iter()
        .flat_map(|line| ["*", ".", "#", "-", "\u{2022}", "\u{25cf}"].map(|it| (*line, it)))
    {
        for before in ["", "h", "hu"] {
            for marks in 1..=4 {
                let mut desk = desk(line);
                desk.settles(b"x").types(b"\r").echoes(b"\r\n[sudo] password for u: ");
                before.bytes().for_each(|key| {
                    desk.types(&[key]).echoes(mark.as_bytes());
                });
                desk.reads(mark.repeat(marks).as_bytes()).echoes(mark.repeat(marks).as_bytes());
                check_secret(&mut desk, &format!("{mark}, {before:?}, {marks}, {line:?}"));
            }
        }
        // Whatever is shown in place of each letter.
        let mut desk = desk(line);
        desk.settles(b"x").types(b"\r").echoes(b"\r\nkey: ").types(b"h").echoes(b"x");
        desk.types(b"x").echoes(b"x");
        check_secret(&mut desk, "x");
    }
}

/// The experimental mode waits for no echo, but for echo to be on.
#[test]
fn the_experimental_mode_heeds_reports() {
    let mut desk = Desk::new(Settings::ROVE.with_display(Display::Experimental), 250);
    desk.line = Some(LineMode::Raw);
    assert_eq!(row(desk.types(b"l"), 0), "$ l|");
    desk.echoes(b"l").types(b"\r");
    desk.line = Some(LineMode::Hidden);
    desk.echoes(b"\r\nPassword: ");
    check_secret(&mut desk, "hidden");
    desk.line = Some(LineMode::Raw);
    assert_eq!(row(desk.writes(b"\r\n$ "), 2), "$ |", "nor what was typed meanwhile");
    assert_eq!(row(desk.acks(7).types(b"l"), 2), "$ l|");
}

/// What was earned in a shell is lost where a multiplexer takes the key for itself.
#[test]
fn a_motion_that_does_nothing_is_believed_no_more() {
    for line in LINES {
        let mut desk = desk(line);
        desk.settles(b"ls").reads(b"\x01").echoes(b"\x1b[2D").reads(b"\x05").echoes(b"\x1b[2C");
        desk.settles(b" -l").reads(b"\x01");
        assert_eq!(row(&desk, 0), "$ |ls -l");
        desk.acks(1).types(b"n");
        assert_eq!(row(&desk, 0), "$ ls -l|", "{line:?}");
        desk.echoes(b"\x1b[H\x1b[2J$ ").settles(b"ls").reads(b"\x01");
        assert_eq!(row(&desk, 0), "$ ls|", "{line:?}: it has to earn it again");
    }
}

/// Where lines end says nothing of a window of another width.
#[test]
fn a_margin_goes_with_its_window() {
    let mut desk = desk(None);
    desk.echoes(b"\x1b[24H> ").settles(&[b'm'; 75]);
    desk.types(b"n").writes(b"\r> mmmmmmmmn\x1b[K").acks(1);
    desk.terminal.resize(Size::clamped(24, 200));
    desk.predictor.reset();
    desk.echoes(b"\x1b[H\x1b[2J> ").settles(&[b'k'; 75]);
    desk.types(b"xyz");
    assert!(row(&desk, 0).ends_with("kxyz|"), "{}", row(&desk, 0));
}
