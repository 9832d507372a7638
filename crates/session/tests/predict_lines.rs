//! Enter: no confidence is carried over it, wherever it was typed; and text found elsewhere than foreseen.

mod desk;

use desk::{Desk, real_text, shown_text};
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

/// Types a secret after Enter, before any output comes, and checks that none of it is shown.
fn check_nothing_is_carried(desk: &mut Desk, what: &str) {
    for key in b"\rhunter2".chunks(1) {
        desk.types(key);
        let (shown, real) = (desk.shown(), desk.terminal.screen().clone());
        assert!(!shown.text().concat().contains("hu"), "{what}: {:?}", shown.text());
        assert_eq!(shown.text()[1..], real.text()[1..], "{what}");
    }
}

#[test]
fn nothing_is_carried_over_enter() {
    check_nothing_is_carried(&mut editor(""), "an editor's first line");
    check_nothing_is_carried(&mut taught(""), "an editor's third line");
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

/// A paste in many reads is more than is followed: Enter behind it is under way all the same.
#[test]
fn nothing_is_carried_over_enter_behind_a_long_paste() {
    for reads in [10, 255, 256, 300] {
        let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
        desk.settles(b"ls");
        (0..reads).for_each(|_| {
            desk.reads(&[b'x'; 200]);
        });
        desk.types(b"\r");
        // What was typed before Enter is there, and nothing shows of it.
        desk.acks(reads - 1);
        desk.types(b"hunter2").writes(b"\r\nh");
        assert_eq!(shown_text(&desk), real_text(&desk), "{reads} reads");
        desk.acks(2).writes(b"u");
        assert_eq!(shown_text(&desk), real_text(&desk), "{reads} reads");
    }
}

#[test]
fn an_imitated_editor_that_asks_for_a_password_gets_none_shown() {
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
    assert_eq!(shown_text(&desk), real_text(&desk), "nor after its answer");
}

#[test]
fn no_report_of_the_line_carries_anything_over_enter() {
    for line in [None, Some(LineMode::Raw), Some(LineMode::Cooked), Some(LineMode::Hidden)] {
        let mut desk = taught("below");
        desk.line = line;
        desk.types(b"\rhunter2");
        assert_eq!(shown_text(&desk), real_text(&desk), "{line:?}");
        // The report may come while it is on its way.
        let mut late = taught("below");
        late.types(b"\rhunter2");
        late.line = line;
        late.wait(1);
        assert_eq!(shown_text(&late), real_text(&late), "{line:?}, later");
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

/// A question whose last blank comes by itself, as if a blank typed at it had been echoed.
#[test]
fn the_blank_of_a_question_is_no_echo() {
    for (line, ahead) in [None, Some(LineMode::Raw)].into_iter().zip([1, 2]) {
        let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
        desk.line = line;
        desk.settles(b"sudo x").types(b"\r").echoes(b"\r\nPassword:");
        desk.types(&b"  "[..ahead]).writes(b" ");
        for key in b"hunter2".chunks(1) {
            assert_eq!(shown_text(desk.acks(1)), real_text(&desk), "{line:?}: acknowledged");
            assert_eq!(shown_text(desk.types(key)), real_text(&desk), "{line:?}: typed");
        }
    }
}

/// In raw mode, in a window with a bar at its foot as tmux draws it: two lines of `ed`, a key each.
fn in_a_window() -> Desk {
    let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
    desk.line = Some(LineMode::Raw);
    desk.echoes(b"\x1b[H\x1b[2J\x1b[24H[0] 0:ed\x1b[1;23r\x1b[H");
    desk.settles(b"a").types(b"\r").echoes(b"\r\n").settles(b"x").types(b"\r").echoes(b"\r\n");
    desk.settles(b".").types(b"\r").echoes(b"\r\n").settles(b"!").settles(b"s");
    desk
}

/// A question may come in a frame that acknowledges none of the keys before it.
#[test]
fn a_question_that_comes_before_its_echo_ack_gets_no_answer_shown() {
    let mut desk = in_a_window();
    desk.types(b"\r").writes(b"\r\n[sudo] password for me: ");
    for key in b"hunter2\r".chunks(1) {
        desk.types(key);
        assert_eq!(shown_text(&desk), real_text(&desk), "the question is there");
    }
    desk.acks(1);
    assert_eq!(shown_text(&desk), real_text(&desk), "and now its echo ack");
    // The same with the answer typed ahead of the question.
    let mut desk = taught("below");
    desk.types(b"\rhu").writes(b"\r\nPassword: ").types(b"nter2");
    assert_eq!(shown_text(&desk), real_text(&desk), "typed ahead in part");
}

/// A reader of cooked lines without a prompt opens rows as an editor does, where nothing tells of the line.
#[test]
fn lines_without_a_prompt_are_not_an_editors() {
    for line in [None, Some(LineMode::Raw)] {
        let mut desk = in_a_window();
        desk.line = line;
        desk.types(b"\rhunter2");
        assert_eq!(shown_text(&desk), real_text(&desk), "{line:?}");
    }
}

/// What an editor did with Enter says nothing of the shell that it leaves behind, at once or later.
#[test]
fn leaving_an_editor_ends_what_it_taught() {
    for leaves in [&b"\x1b[?1049l\x1b[2;1H"[..], b"\x1b[H\x1b[2J\x1b[24Hbar\x1b[2H"] {
        let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
        desk.echoes(b"\x1b[24Hbar\x1b[H\x1b[?1049h\x1b[H\x1b[2J\r\nbelow\x1b[24H^G Help\x1b[H");
        desk.settles(b"one").types(b"\r").echoes(OPENS).settles(b"two");
        desk.types(b"\x1b").echoes(b"").types(b":").echoes(b"\x1b[24H\x1b[K:");
        desk.settles(b"wq").types(b"\r").acks(1);
        desk.writes(leaves).settles(b"su").types(b"\rhunter2");
        assert_eq!(shown_text(&desk), real_text(&desk), "{leaves:?}");
    }
}

/// A busy host: keys and then Enter are acknowledged before any of them shows. That what came before Enter
/// shows at last says nothing of what comes after it.
#[test]
fn a_late_echo_of_the_line_before_shows_nothing_after_enter() {
    for acked in [0, 1, 2] {
        let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
        desk.settles(b"s").settles(b"u").types(b"d").acks(1);
        desk.types(b"\r").acks(1).types(b"hu").acks(acked).types(b"nt");
        desk.writes(b"d").types(b"er2");
        assert_eq!(shown_text(&desk), real_text(&desk), "{acked} acknowledged");
    }
}

/// An echo that comes later than its echo ack, with Enter under way meanwhile, as through an ssh in the session.
#[test]
fn a_late_echo_with_enter_under_way_shows_nothing_after_enter() {
    let mut ahead = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
    ahead.settles(b"s").settles(b"u").types(b"d").acks(1).types(b"\r").writes(b"d");
    let mut asked = ahead.clone();
    ahead.types(b"hunter2");
    assert_eq!(shown_text(&ahead), real_text(&ahead), "typed ahead");
    asked.acks(1).writes(b"\r\nPassword: ").types(b"h");
    assert_eq!(shown_text(&asked), real_text(&asked), "typed at the question");
}

/// A line and its Enter in one read, of which a frame shows the line alone.
#[test]
fn an_echo_of_what_came_along_with_enter_shows_nothing_after_it() {
    for (before, read, after) in [("", "su\r", ""), ("", "su", "\r"), ("s", "u\r", "")] {
        let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
        desk.types(before.as_bytes()).reads(read.as_bytes()).types(after.as_bytes());
        desk.types(b"hunter2");
        for frame in ["s", "u", "", "\r\n", "", "Password: "] {
            desk.writes(frame.as_bytes());
            assert!(!shown_text(&desk).concat().contains('h'), "{read:?}: {frame:?}");
            desk.acks(u64::from(frame.is_empty()));
            assert!(!shown_text(&desk).concat().contains('h'), "{read:?}: {frame:?}");
        }
    }
}

/// Typed ahead of a row that an editor opens, where no line has a prompt: its own echo confirms it.
#[test]
fn a_line_without_a_prompt_is_confirmed_by_its_own_echo() {
    for line in [None, Some(LineMode::Raw)] {
        let mut desk = editor("");
        desk.line = line;
        desk.settles(b"one").types(b"\rtwo").writes(OPENS).acks(1);
        assert_eq!(shown_text(&desk), real_text(&desk), "{line:?}: nothing of it has echoed");
        assert_eq!(desk.writes(b"t").shown().row_text(1), "two", "{line:?}");
    }
    // Below a shell's line the kernel echoes what is typed ahead; the same where the frame that shows
    // Enter done shows some of it.
    for shown in 1..=3 {
        let (password, mut desk) =
            (b"hunter2", Desk::new(Settings::ROVE.with_display(Display::Always), 250));
        desk.settles(b"ssh host").types(b"\r").types(password);
        desk.writes(&[b"\r\n", &password[..shown]].concat()).acks(1 + shown as u64);
        desk.writes(&password[shown..=shown]).writes(&password[shown + 1..shown + 2]);
        assert_eq!(shown_text(&desk), real_text(&desk), "{shown} with Enter");
    }
}
