//! Questions that are drawn in the midst of a screen, and what stands for a secret there: stars, or nothing.

mod desk;

use desk::{Desk, row};
use rove_session::predict::{Display, LineMode, Settings};
use rove_term::Size;

/// The terminal line as reported, and when guesses are shown.
type Mode = (Option<LineMode>, Display);

fn desk(mode: Mode) -> Desk {
    let mut desk = Desk::new(Settings::ROVE.with_display(mode.1), 250);
    desk.line = mode.0;
    desk
}

/// Programs that read in raw mode, which is all that is reported of them, and those of a server that reports nothing.
const LINES: [Mode; 4] = [
    (None, Display::Always),
    (Some(LineMode::Raw), Display::Always),
    (None, Display::Experimental),
    (Some(LineMode::Raw), Display::Experimental),
];

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

/// A form goes on in the row below with its question for a password.
#[test]
fn another_row_confirms_anew() {
    for (line, (down, up)) in LINES.iter().flat_map(|line| {
        [(&b"\x1b[B"[..], &b"\x1b[A"[..]), (b"\x0e", b"\x10")].map(|it| (*line, it))
    }) {
        for trained in 0..2 {
            let mut desk = desk(line);
            // An editor teaches what the keys do.
            desk.echoes(b"\x1b[H\x1b[2Ja\r\nb\x1b[H");
            for _ in 0..trained {
                desk.reads(down).echoes(b"\x1b[B").reads(up).echoes(b"\x1b[A");
            }
            desk.echoes(b"\x1b[2J\x1b[5Hpass: \r\nuser: \r\npass: \x1b[6;7H");
            desk.settles(b"bob");
            for key in [up, down] {
                let mut desk = desk.clone();
                desk.reads(key);
                check_secret(&mut desk, &format!("{key:?}, {trained}, {line:?}"));
                let to = if key == up { "\x1b[5;7H" } else { "\x1b[7;7H" };
                desk.terminal.advance(to.as_bytes());
                desk.acks(4);
                assert_eq!(desk.shown().text(), desk.terminal.screen().text(), "{key:?}: done");
            }
            // In the same column.
            desk.reads(down);
            check_secret(&mut desk, &format!("{trained}, {line:?}: ahead"));
            desk.terminal.advance(b"\x1b[B");
            desk.acks(4);
            assert_eq!(desk.shown().text(), desk.terminal.screen().text(), "{trained}, {line:?}");
        }
    }
}

/// A late echo of keys before such a key confirms none of those behind it.
#[test]
fn a_late_echo_does_not_reach_another_row() {
    for (line, acked) in LINES.iter().flat_map(|line| [0, 1].map(|acked| (*line, acked))) {
        let mut desk = desk(line);
        desk.echoes(b"\x1b[H\x1b[2Ja\r\nb\x1b[H").reads(b"\x1b[B").echoes(b"\x1b[B");
        desk.echoes(b"\x1b[2J\x1b[5Huser: ").settles(b"bo");
        desk.types(b"b").acks(1).reads(b"\x1b[B");
        check_secret(&mut desk, "late");
        desk.acks(acked).writes(b"b");
        assert_eq!(desk.shown().text(), desk.terminal.screen().text(), "{acked}: it came");
        desk.writes(b"\x1b[B");
        assert_eq!(desk.shown().text(), desk.terminal.screen().text(), "{acked}: all came");
    }
}

/// Motions go on, and so does typing once it was echoed in the new row.
#[test]
fn an_editor_is_followed_over_its_rows() {
    let mut desk = desk(LINES[1]);
    desk.echoes(b"\x1b[H\x1b[2Jone\r\ntwo\r\nthree\r\nfour\x1b[H").settles(b"");
    desk.types(b"x").echoes(b"\x1b[@x").reads(b"\x1b[B").echoes(b"\x1b[B");
    desk.reads(b"\x1b[A").echoes(b"\x1b[A").reads(b"\x1b[B").echoes(b"\x1b[B");
    let at = |desk: &Desk| (desk.shown().cursor().row, desk.shown().cursor().col);
    assert_eq!(at(desk.reads(b"\x1b[B")), (2, 1));
    assert_eq!(at(desk.reads(b"\x1b[B").reads(b"\x1b[C")), (3, 2));
    desk.echoes(b"\x1b[B\x1b[B\x1b[C");
    assert_eq!(at(desk.reads(b"\x1b[A")), (2, 2));
    desk.types(b"y");
    assert_eq!(row(&desk, 2), "th|ree");
    desk.echoes(b"\x1b[A\x1b[@y").types(b"z");
    assert_eq!(row(&desk, 2), "thyz|ree");
}

/// A question that comes without a key was not there when the last key was echoed.
#[test]
fn a_question_that_comes_by_itself_confirms_anew() {
    for (line, question) in LINES.iter().flat_map(|line| {
        ["[sudo] password for u: ", "\r\nPassword: ", "\x1b[H\x1b[2JLocked. "].map(|it| (*line, it))
    }) {
        for reflected in [false, true] {
            let mut desk = desk(line);
            desk.settles(b"./ask").types(b"\r").echoes(b"\r\nSure? ");
            match reflected {
                true => desk.types(b"y").writes(b"y"),
                false => desk.settles(b"y"),
            };
            desk.writes(question.as_bytes());
            check_secret(&mut desk, &format!("{question:?}, {line:?}"));
        }
    }
}

/// The experimental mode shows no more of what is typed than the others: not where a program echoes nothing, and not
/// when nothing is heard after Enter.
#[test]
fn the_experimental_mode_keeps_the_guard() {
    for line in [None, Some(LineMode::Raw), Some(LineMode::Cooked), Some(LineMode::Hidden)] {
        for heard in [false, true] {
            let mut desk = desk((Some(LineMode::Raw), Display::Experimental));
            desk.settles(b"s").types(b"u\r");
            if heard {
                desk.line = line;
                desk.echoes(b"u\r\nPassword: ");
            }
            check_secret(&mut desk, &format!("{line:?}, {heard}"));
            desk.line = Some(LineMode::Raw);
            desk.echoes(if heard { b"\r\n$ " } else { b"u\r\nPassword: \r\n$ " });
            assert_eq!(row(&desk, 2), "$ |", "{line:?}, {heard}: nor what was typed meanwhile");
            desk.settles(b"l").types(b"s");
            assert_eq!(row(&desk, 2), "$ ls|", "{line:?}, {heard}: a line that is echoed");
        }
    }
}

/// It shows where motions go before anything has shown that the program knows them, and nothing that is typed there.
#[test]
fn the_experimental_mode_shows_motions() {
    for (mode, shown) in [(LINES[1], "$ ls -l|"), (LINES[3], "$ |ls -l")] {
        let mut desk = desk(mode);
        desk.settles(b"ls -l").reads(b"\x01");
        assert_eq!(row(&desk, 0), shown, "{mode:?}");
        assert_eq!(row(desk.types(b"x"), 0), shown, "{mode:?}: it may be another window's");
    }
}

/// A motion loses the trust that it has earned in a shell where a multiplexer takes the key for itself.
#[test]
fn a_motion_that_does_nothing_is_believed_no_more() {
    for line in [LINES[0], LINES[1]] {
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
    let mut desk = desk(LINES[0]);
    desk.echoes(b"\x1b[24H> ").settles(&[b'm'; 75]);
    desk.types(b"n").writes(b"\r> mmmmmmmmn\x1b[K").acks(1);
    desk.terminal.resize(Size::clamped(24, 200));
    desk.predictor.reset();
    desk.echoes(b"\x1b[H\x1b[2J> ").settles(&[b'k'; 75]);
    desk.types(b"xyz");
    assert!(row(&desk, 0).ends_with("kxyz|"), "{}", row(&desk, 0));
}

/// A field of a form, or a question that came by itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Field {
    User,
    Secret,
    Question,
}

/// A form: its field, and how much stands in each.
#[derive(Clone, Debug)]
struct Form {
    field: Field,
    lengths: [usize; 3],
    mark: &'static str,
}

impl Form {
    const DRAWN: &'static [u8] = b"\x1b[H\x1b[2J\x1b[5Huser: \r\npass: \x1b[5;7H";

    /// Where the cursor belongs.
    fn place(&self) -> String {
        let (row, col) = [(5, 7), (6, 7), (10, 7)][self.field as usize];
        let shown = self.field == Field::User || !self.mark.is_empty();
        let length = self.lengths[self.field as usize];
        format!("\x1b[{row};{}H", col + if shown { length } else { 0 })
    }

    /// What it writes when this is typed.
    fn press(&mut self, key: &str) -> String {
        let echo = if self.field == Field::User { key } else { self.mark };
        let length = &mut self.lengths[self.field as usize];
        match (key, self.field) {
            ("\x1b[B" | "\x0e", Field::User) => self.field = Field::Secret,
            ("\x1b[A" | "\x10", Field::Secret) => self.field = Field::User,
            ("\x1b[A" | "\x1b[B" | "\x0e" | "\x10", _) => return String::new(),
            ("\x7f", _) if *length == 0 => return String::new(),
            ("\x7f", _) => {
                *length -= 1;
                return if echo.is_empty() { String::new() } else { "\x08 \x08".to_owned() };
            }
            _ => {
                *length += 1;
                return echo.to_owned();
            }
        }
        self.place()
    }
}

/// No order of keys, frames and acknowledgments shows a letter that the program draws as a mark, or not at all.
#[test]
fn no_order_of_things_shows_what_is_typed_into_a_form() {
    const USER: [&str; 7] = ["a", "b", "c", "\x7f", "\x1b[B", "\x0e", "\x1b[A"];
    const SECRET: [&str; 8] = ["S", "E", "C", "\x7f", "\x7f", "\x1b[A", "\x10", "MARK"];
    for (line, seed) in LINES.iter().flat_map(|line| (1..=2000).map(|seed| (*line, seed))) {
        let mut state = seed;
        let mut pick = |count: usize| chance(&mut state) as usize % count;
        let mut desk = desk(line);
        desk.echoes(b"\x1b[H\x1b[2Ja\r\nb\x1b[H");
        for (key, moved) in
            [("\x1b[B", "\x1b[B"), ("\x1b[A", "\x1b[A"), ("\x0e", "\x1b[B"), ("\x10", "\x1b[A")]
        {
            if pick(2) == 0 {
                desk.reads(key.as_bytes()).echoes(moved.as_bytes());
            }
        }
        desk.echoes(Form::DRAWN);
        let mark = ["*", ".", "\u{2022}", ""][pick(4)];
        let mut server = Form { field: Field::User, lengths: [0; 3], mark };
        let mut typist = server.clone();
        // Keys that the program has yet to get, and how many it has got that are not acknowledged.
        let (mut waiting, mut got) = (std::collections::VecDeque::new(), 0);
        for _ in 0..60 {
            match pick(8) {
                0..=2 => {
                    let key = match typist.field {
                        Field::User => USER[pick(USER.len())],
                        _ => SECRET[pick(SECRET.len())],
                    };
                    let key =
                        if key == "MARK" { [mark, "*"][usize::from(mark.is_empty())] } else { key };
                    typist.press(key);
                    waiting.push_back(key);
                    desk.reads(key.as_bytes());
                }
                3..=5 => {
                    let Some(key) = waiting.pop_front() else { continue };
                    desk.terminal.advance(server.press(key).as_bytes());
                    got += 1;
                    if pick(3) == 0 {
                        continue; // The frame comes with the next.
                    }
                    desk.wait(1);
                }
                6 if got > 0 => {
                    let count = 1 + pick(got);
                    got -= count;
                    desk.acks(count as u64);
                }
                // The user sees each question before they type at it.
                7 if waiting.is_empty() => {
                    let asks = server.field == Field::User;
                    server.field = if asks { Field::Question } else { Field::User };
                    let drawn = if asks { "\x1b[10;1H\x1b[Kpass: " } else { "" };
                    server.lengths[Field::Question as usize] = 0;
                    typist.clone_from(&server);
                    desk.writes(format!("{drawn}{}", server.place()).as_bytes());
                }
                _ => {}
            }
            let shown = desk.shown().text().concat();
            let secret = shown.contains(char::is_uppercase);
            assert!(!secret, "seed {seed}, {line:?}, {mark:?}: {shown}");
        }
    }
}

/// xorshift64*: a stream of chance that is the same everywhere.
fn chance(state: &mut u64) -> u64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33
}
