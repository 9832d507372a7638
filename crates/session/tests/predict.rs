//! Our rules: which guesses are shown, when, and which never are.

mod desk;

use desk::{Desk, row};
use rove_session::predict::{Display, LineMode, Settings};

fn desk() -> Desk {
    Desk::new(Settings::ROVE.with_display(Display::Always), 250)
}

#[test]
fn the_first_key_waits_for_its_echo() {
    let mut desk = desk();
    assert_eq!(row(desk.types(b"l"), 0), "$ |");
    assert_eq!(row(desk.types(b"s"), 0), "$ |");
    // The echo itself confirms, ahead of its echo ack.
    assert_eq!(row(desk.writes(b"l"), 0), "$ ls|");
    assert_eq!(row(desk.types(b" -"), 0), "$ ls -|");
    assert_eq!(row(desk.writes(b"s"), 0), "$ ls -|");
    assert_eq!(row(desk.acks(2), 0), "$ ls -|");
    assert_eq!(row(desk.echoes(b" -"), 0), "$ ls -|");
}

/// A line that begins with blanks: the cursor says that they are echoed, where nobody else moves it.
#[test]
fn blanks_that_take_the_cursor_along_are_an_echo() {
    for (what, before, blanks, echo, confirms) in [
        ("a block of Python", "\r\n... ", "  ", "  ", true),
        ("the question may have its own", "\r\n... ", " ", " ", false),
        ("one is not the other", "\r\n... ", " ", "\x1b[2C", false),
        ("an editor's row", "\x1b[H\x1b[2J\x1b[23H^G Help\x1b[2H", " ", " ", true),
        ("text to go over", "\x1b[H\x1b[2J\r\n a b\x1b[23H^G Help\x1b[2H", " ", "\x1b[C", false),
        ("echo is off", "\r\nPassword: ", "  ", "", false),
    ] {
        let mut desk = desk();
        desk.settles(b"vi").types(b"\r").echoes(before.as_bytes());
        desk.types(blanks.as_bytes()).echoes(echo.as_bytes());
        let hidden = !desk.types(b"pq").shown().text().concat().contains("pq");
        assert_eq!(hidden, !confirms, "{what}");
    }
}

#[test]
fn typing_on_survives_a_miss() {
    let mut desk = desk();
    desk.settles(b"a").types(b"bcdef");
    assert_eq!(row(&desk, 0), "$ abcdef|");
    // The program does something else with b, and echoes the rest as it comes.
    assert_eq!(row(desk.writes(b"<>").acks(1), 0), "$ a<>|", "repaired");
    assert_eq!(row(desk.writes(b"c"), 0), "$ a<>cdef|", "the keys in flight are replayed");
    assert_eq!(row(desk.types(b"g"), 0), "$ a<>cdefg|");
    assert_eq!(row(desk.echoes(b"defg"), 0), "$ a<>cdefg|");
}

#[test]
fn a_slow_program_is_believed_when_it_answers() {
    let mut desk = desk();
    desk.settles(b"a").types(b"bc");
    assert_eq!(row(desk.acks(2), 0), "$ a|", "no effect within the echo ack");
    assert_eq!(row(desk.types(b"d").writes(b"b"), 0), "$ ab|", "late, but an echo");
    assert_eq!(row(desk.writes(b"c"), 0), "$ abcd|", "all that was missing has come");
}

/// Two lines that wrap or scroll where the first one did.
#[test]
fn margins_are_learnt() {
    let text = |desk: &Desk| {
        let shown = desk.shown();
        let at = (shown.cursor().row, shown.cursor().col);
        (shown.row_text(0), shown.row_text(1), at)
    };
    for (what, typed, frame, again, next, shown) in [
        (
            "a letter wraps",
            "aaaa bbb",
            "\r$ aaaa\x1b[K\r\n  bbbb",
            "\x1b[H\x1b[2J$ cccc de",
            "ddxy",
            ("$ cccc", "  dedddxy", (1, 9)),
        ),
        (
            "a space wraps",
            "aaa bbbb",
            "\r$ aaa\x1b[K\r\nbbbb ",
            "\x1b[H\x1b[2J$ cccc de",
            "d xy",
            ("$ cccc", "dedd xy", (1, 7)),
        ),
        (
            "an input line scrolls",
            "aaaa bbb",
            "\r$ a bbbb\x1b[K",
            "\x1b[H\x1b[2J$ cccc de",
            "ddxy",
            ("$ cdddxy", "", (0, 8)),
        ),
    ] {
        let mut desk = desk();
        desk.echoes(b"").settles(typed.as_bytes());
        let last = if what == "a space wraps" { b" " } else { b"b" };
        desk.types(last).echoes(frame.as_bytes());
        // Another line, up to the margin.
        desk.echoes(again.as_bytes()).settles(b"d");
        desk.types(next.as_bytes());
        assert_eq!(
            (text(&desk).0.as_str(), text(&desk).1.as_str(), text(&desk).2),
            shown,
            "{what}"
        );
    }
}

/// A margin is learnt though keys whose place nobody knows are under way behind it.
#[test]
fn a_line_that_scrolls_is_learnt_while_typing_goes_on() {
    let mut desk = desk();
    desk.echoes(b"\x1b[24H> ").settles(&[b'm'; 75]);
    // Beyond the last column, what is typed is not foreseen.
    desk.types(b"nopqr").writes(b"\r> mmmmmmmmn\x1b[K").acks(1);
    desk.echoes(b"opqr");
    // The next line: as far as where it scrolled, and beyond.
    desk.types(b"\r").echoes(b"\r> \x1b[K").settles(&[b'k'; 74]).settles(b"l").types(b"abc");
    assert_eq!(row(&desk, 23), "> kkkkkkklabc|");
}

/// A row that text was seen to make way for makes way again, and what stands right of the cursor goes along.
#[test]
fn a_word_that_wraps_opens_a_row() {
    let mut desk = desk();
    desk.echoes(b"\x1b[H\x1b[2J\r\nbelow\x1b[H").settles(b"aaa bbbb").types(b" ");
    desk.echoes(b"\raaa\x1b[K\r\n\x1b[Lbbbb ");
    for (tail, next) in [("", "dddd xy|"), ("end", "dddd xy|end")] {
        let mut desk = Desk { predictor: desk.predictor.clone(), ..self::desk() };
        desk.sent = 100;
        desk.echoes(format!("\x1b[H\x1b[2J\r\nbelow\x1b[H{tail}").as_bytes());
        desk.echoes(b"\x1b[H\x1b[4h").settles(b"ccc dddd");
        desk.types(b" xy");
        assert_eq!((row(&desk, 0).as_str(), row(&desk, 1).as_str()), ("ccc", next), "{tail:?}");
    }
}

#[test]
fn a_key_that_was_wrong_is_trusted_again_once_it_was_right() {
    let mut desk = desk();
    desk.settles(b"abcd").types(b"\x7f").echoes(b"!");
    desk.settles(b"e").types(b"\x7f");
    assert_eq!(row(&desk, 0), "$ abcd!e|", "it has earned nothing yet");
    desk.echoes(b"\x08\x1b[K").types(b"\x7f");
    assert_eq!(row(&desk, 0), "$ abcd|");
}

/// An editor takes letters for commands, and what was foreseen of a key behind them was never shown.
#[test]
fn a_key_that_nobody_saw_wrong_keeps_its_trust() {
    let mut desk = desk();
    desk.settles(b"abcd").types(b"\x1b").echoes(b"\x08").types(b"x\x7f").echoes(b"\x08\x08!");
    desk.types(b"e").echoes(b"\x1b[@e").types(b"\x7f");
    assert_eq!(row(&desk, 0), "$ a!|cd");
}

#[test]
fn nothing_typed_after_enter_is_shown_before_the_lines_own_echo() {
    let mut desk = desk();
    desk.settles(b"a").types(b"b").wait(100).types(b"\rxyz");
    assert_eq!(row(&desk, 0), "$ ab|");
    desk.writes(b"b\r\n$ ");
    assert_eq!((row(&desk, 0).as_str(), row(&desk, 1).as_str()), ("$ ab", "$ |"));
    desk.acks(2);
    assert_eq!(row(&desk, 1), "$ |");
    assert_eq!(row(desk.writes(b"x"), 1), "$ xyz|", "an echo at a prompt");
}

/// Everything a password is typed at must leave the screen as the server has it.
fn check_hidden(desk: &mut Desk, what: &str) {
    for key in b"hunter2 hunter2".chunks(1) {
        desk.types(key);
        assert_eq!(desk.shown().text(), desk.terminal.screen().text(), "{what}: typed");
        desk.acks(1);
        assert_eq!(desk.shown().text(), desk.terminal.screen().text(), "{what}: acknowledged");
    }
}

#[test]
fn no_character_is_shown_at_a_password_prompt() {
    for (what, command, prompt) in [
        ("sudo", &b"sudo x"[..], &b"\r\n[sudo] password for u: "[..]),
        ("ssh", b"ssh h", b"\r\nu@h's password: "),
        ("su", b"su", b"\r\nPassword: "),
        ("read -s", b"read -s x", b"\r\n"),
        ("getpass", b"./ask", b"\r\nPassword: "),
    ] {
        let mut desk = desk();
        desk.settles(command).types(b"\r").echoes(prompt);
        check_hidden(&mut desk, what);
    }
    // In a full-screen program: a prompt at the bottom that shows stars, or nothing.
    for (what, prompt) in [(":X", &b"\x1b[24H\x1b[KEnter encryption key: "[..]), ("IMAP", b"")] {
        let mut desk = desk();
        desk.echoes(b"\x1b[H\x1b[2J~\r\n~\x1b[24H").settles(b":").settles(b"X");
        desk.types(b"\r").echoes(prompt);
        for key in b"hunter2".chunks(1) {
            desk.types(key);
            assert_eq!(desk.shown().text(), desk.terminal.screen().text(), "{what}");
            desk.echoes(b"*");
            assert_eq!(desk.shown().text(), desk.terminal.screen().text(), "{what}");
        }
    }
}

#[test]
fn a_password_typed_ahead_is_not_shown() {
    // All of it is under way before the prompt comes; what comes before echo is off, the kernel echoes.
    for echoed in 0..4 {
        let mut desk = desk();
        desk.settles(b"sudo x").types(b"\rhunter2");
        desk.writes(b"\r\n").acks(1);
        assert_eq!(desk.shown().text(), desk.terminal.screen().text());
        for key in b"hunter2".chunks(1).take(echoed) {
            desk.writes(key);
            assert_eq!(desk.shown().text(), desk.terminal.screen().text(), "the kernel echoes");
            desk.acks(1);
            assert_eq!(desk.shown().text(), desk.terminal.screen().text(), "the kernel echoes");
        }
        desk.writes(b"[sudo] password for u: ");
        for _ in echoed..7 {
            assert_eq!(desk.shown().text(), desk.terminal.screen().text());
            desk.acks(1);
        }
        check_hidden(&mut desk, "the rest");
    }
}

/// After Enter the kernel echoes until the program switches that off; by then more is under way.
#[test]
fn an_echo_of_the_kernels_own_confirms_nothing() {
    for line in [LineMode::Cooked, LineMode::Raw] {
        let mut desk = desk();
        desk.line = Some(LineMode::Raw);
        desk.settles(b"ssh host").types(b"\r");
        desk.line = Some(line);
        desk.echoes(b"\r\n").types(b"hunter2").writes(b"h");
        assert_eq!(row(&desk, 1), "h|", "{line:?}");
    }
    // Nor does what stands left of it, if that was typed ahead as well.
    let mut ahead = desk();
    ahead.line = Some(LineMode::Raw);
    ahead.settles(b"ssh host").types(b"\rh");
    ahead.line = Some(LineMode::Cooked);
    ahead.echoes(b"\r\nh").types(b"u").echoes(b"u").types(b"nter2").writes(b"n");
    assert_eq!(row(&ahead, 1), "hun|");
    // Where somebody has asked, it does: this is no password, or echo would be off.
    let mut desk = desk();
    desk.line = Some(LineMode::Cooked);
    desk.settles(b"./ask").types(b"\r").echoes(b"\r\nname? ").types(b"eve").writes(b"e");
    assert_eq!(row(&desk, 1), "name? eve|");
}

/// Keys behind Enter stay hidden, whether or not the line's mode is reported to have changed.
#[test]
fn enter_is_no_way_around_a_report() {
    for (before, after) in [
        (LineMode::Raw, LineMode::Hidden),
        (LineMode::Cooked, LineMode::Hidden),
        (LineMode::Raw, LineMode::Raw),
        (LineMode::Cooked, LineMode::Cooked),
    ] {
        let mut desk = desk();
        desk.line = Some(before);
        desk.settles(b"sudo x").types(b"\rhun");
        desk.line = Some(after);
        assert_eq!(row(desk.echoes(b"\r\nPassword: "), 1), "Password: |");
        check_hidden(&mut desk, "a report");
    }
}

#[test]
fn a_report_that_echo_is_off_hides_at_once() {
    let mut desk = desk();
    desk.settles(b"a").types(b"b");
    assert_eq!(row(&desk, 0), "$ ab|");
    desk.line = Some(LineMode::Hidden);
    desk.wait(1);
    assert_eq!(row(&desk, 0), "$ a|");
    desk.types(b"c");
    desk.line = Some(LineMode::Raw);
    desk.wait(1);
    assert_eq!(row(&desk, 0), "$ a|", "what was typed meanwhile stays hidden");
}

#[test]
fn a_hidden_cursor_judges_nothing() {
    let mut desk = desk();
    desk.settles(b"a").types(b"b");
    desk.writes(b"\x1b[?25l\x1b[10;10Hb");
    assert_eq!(desk.shown().row_text(0), "$ ab", "the program is drawing");
    desk.echoes(b"\x1b[10;10H \x1b[1;4Hb\x1b[?25h");
    assert_eq!(row(&desk, 0), "$ ab|");
    // It stays hidden: the program draws a cursor of its own, who knows where.
    desk.echoes(b"\x1b[?25l").types(b"c").acks(1);
    assert_eq!(desk.types(b"d").shown().row_text(0), "$ ab");
}

/// xorshift64*: a stream of chance that is the same everywhere.
fn chance(state: &mut u64) -> u64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33
}

#[test]
fn once_all_is_acknowledged_the_screen_is_the_servers() {
    const KEYS: [&[u8]; 16] = [
        b"a",
        b"b",
        b" ",
        b"\x7f",
        b"\r",
        b"\x1b[D",
        b"\x1b[C",
        b"\x01",
        b"\x05",
        b"\x15",
        b"\x17",
        b"\x0b",
        b"\x1bb",
        b"\x1bf",
        "\u{4e2d}".as_bytes(),
        b"\x1b[A",
    ];
    const FRAMES: [&[u8]; 14] = [
        b"a",
        b"b",
        b" ",
        b"\x08 \x08",
        b"\r\n$ ",
        b"\x08",
        b"\x1b[C",
        b"\r",
        b"\x1b[K",
        b"x",
        b"\x1b[24;80Hz",
        b"\x1b[?25l",
        b"\x1b[?25h",
        "\u{4e2d}".as_bytes(),
    ];
    for rules in [Settings::ROVE, Settings::STOCK] {
        for seed in 1..=300 {
            let mut state = seed;
            let mut desk = Desk::new(rules.with_display(Display::Always), 250);
            for _ in 0..60 {
                match chance(&mut state) % 4 {
                    0 | 1 => desk.reads(KEYS[chance(&mut state) as usize % KEYS.len()]),
                    2 => desk.writes(FRAMES[chance(&mut state) as usize % FRAMES.len()]),
                    _ => {
                        let behind = desk.sent - desk.echo_ack.max(1);
                        let more = chance(&mut state) % (behind + 1);
                        desk.acks(more)
                    }
                };
                desk.shown();
            }
            desk.echoes(b"\x1b[?25h");
            let (shown, real) = (desk.shown(), desk.terminal.screen().clone());
            assert_eq!(shown.text(), real.text(), "seed {seed}");
            let at = |cursor: rove_term::Cursor| (cursor.row, cursor.col);
            assert_eq!(at(shown.cursor()), at(real.cursor()), "seed {seed}");
        }
    }
}
