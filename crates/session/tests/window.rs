//! What a session does to the terminal it is shown on: its two screens, and its history.
#![allow(clippy::unwrap_used)] // A check that fails says where.

mod common;

use std::time::Duration;

use common::{DEAD, GOOD, Pair, client_config, server_config, size, trimmed};
use rove_session::Peer;
use rove_session::client::{Config, Event, TtyScreen};
use rove_term::screen::Buffer;
use rove_term::{CursorShape, Dialect, Terminal, Underline};

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A session on a terminal where the user had typed two commands.
fn session(peer: Peer, window: TtyScreen) -> Pair {
    let mut client = client_config(peer);
    client.window = window;
    let mut pair = Pair::with(GOOD, client, server_config(peer));
    pair.tty = Terminal::new(size(24, 80), Dialect::ROVE);
    pair.tty.advance(b"$ ls\r\nfile\r\n$ rove h\r\n");
    let open = pair.client.tty_open();
    pair.tty.advance(&open);
    pair.run(secs(1));
    pair
}

fn main_screen() -> Pair {
    session(Peer::Rove, TtyScreen::Main)
}

fn history(pair: &Pair) -> Vec<String> {
    let history = pair.tty.history();
    (0..history.len()).map(|line| history.text(line).unwrap()).collect()
}

/// What the user had before the session: the blank line is the cursor's.
const BEFORE: [&str; 4] = ["$ ls", "file", "$ rove h", ""];

#[test]
fn what_the_user_had_goes_to_the_history() {
    let mut pair = main_screen();
    pair.output(b"host$ ").run(secs(1));
    assert_eq!(pair.text(), ["host$"]);
    assert_eq!(history(&pair), BEFORE);
}

#[test]
fn lines_that_leave_at_the_top_go_to_the_history() {
    let mut pair = main_screen();
    for line in 1..=30 {
        pair.output(format!("line {line}\r\n").as_bytes()).run(secs(1));
    }
    let lines: Vec<String> = (1..=7).map(|line| format!("line {line}")).collect();
    assert_eq!(history(&pair), [&BEFORE.map(String::from)[..], &lines].concat());
    assert_eq!(pair.text().first().map(String::as_str), Some("line 8"));
}

/// Nor do what was guessed or the bar's colours stay where the picture goes on.
#[test]
fn the_bar_does_not_go_to_the_history() {
    let mut pair = main_screen();
    let lines: Vec<String> = (1..=23).map(|line| format!("line {line}\r\n")).collect();
    pair.output(lines.concat().as_bytes()).run(secs(1));
    pair.link = DEAD;
    pair.output(b"line 24\r\nline 25\r\n").run(secs(20));
    assert!(pair.top().starts_with("rove: Last contact"), "{}", pair.top());
    pair.link = GOOD;
    pair.run(secs(5));
    assert_eq!(pair.top(), "line 3");
    assert_eq!(history(&pair)[BEFORE.len()..], ["line 1", "line 2"]);
}

/// Lines under the panel, which scroll off in one picture.
#[test]
fn the_status_panel_does_not_go_to_the_history() {
    let mut pair = main_screen();
    let lines: Vec<String> = (1..=37).map(|line| format!("{line} ").repeat(20)).collect();
    pair.output(lines[..23].join("\r\n").as_bytes()).run(secs(1));
    pair.keys(b"\x1es").run(secs(1));
    assert!(pair.text()[23].contains("s closes"), "{:#?}", pair.text());
    pair.output(format!("\r\n{}", lines[23..].join("\r\n")).as_bytes()).run(secs(1));
    assert!(pair.text()[23].contains("s closes"), "{:#?}", pair.text());
    let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
    assert_eq!(history(&pair)[BEFORE.len()..], lines[..13]);
}

#[test]
fn the_alternate_screen_is_the_programs() {
    let mut pair = main_screen();
    pair.output(b"host$ vi\r\n").run(secs(1));
    pair.output(b"\x1b[?1049h\x1b[2;5Hfull\x1b[?2004h").run(secs(1));
    assert_eq!(pair.text(), ["", "    full"]);
    pair.resize(size(28, 80)).run(secs(1));
    assert_eq!(pair.text(), ["", "    full"]);
    pair.output(b"\x1b[?1049lhost$ ").run(secs(1));
    assert_eq!(pair.text(), ["host$ vi", "host$"]);
    assert_eq!(history(&pair), BEFORE);
    let close = pair.client.tty_close();
    pair.tty.advance(&close);
    assert_eq!(*pair.tty.screen().modes(), rove_term::Modes::RESET);
}

#[test]
fn the_prompt_goes_on_below_the_last_line() {
    let full: String = (1..=24).map(|line| format!("\r\nline {line}")).collect();
    for (peer, output, row, last) in [
        (Peer::Rove, "", 0, ""),
        (Peer::Rove, "host$ exit\r\n", 1, "host$ exit"),
        (Peer::Rove, "host$ vi\r\n\x1b[?1049h\x1b[9;9Hfull screen", 1, "host$ vi"),
        (Peer::Rove, &full, 23, "line 24"),
        (Peer::Stock, "one\r\ntwo", 2, "two"),
    ] {
        let mut pair = session(peer, TtyScreen::Main);
        pair.output(output.as_bytes()).run(secs(1));
        let close = pair.client.tty_close();
        pair.tty.advance(&close);
        let screen = pair.tty.screen();
        assert_eq!((screen.cursor().row, screen.cursor().col), (row, 0), "{output:?}");
        assert_eq!(trimmed(screen).last().map_or("", String::as_str), last, "{output:?}");
        assert_eq!(screen.row_text(row), "", "{output:?}");
        assert_eq!(history(&pair)[..BEFORE.len()], BEFORE, "{output:?}");
    }
}

#[test]
fn a_session_on_the_alternate_screen_leaves_no_trace() {
    for peer in [Peer::Stock, Peer::Rove] {
        let mut pair = session(peer, TtyScreen::Alternate);
        pair.output(b"host$ \x1b[?1049hfull").run(secs(1));
        let close = pair.client.tty_close();
        pair.tty.advance(&close);
        assert_eq!(pair.text(), ["$ ls", "file", "$ rove h"], "{peer:?}");
        assert_eq!(pair.tty.screen().cursor().row, 3, "{peer:?}");
        assert!(history(&pair).is_empty(), "{peer:?}");
    }
}

/// Given back and taken again, the terminal shows the same picture; what the user did meanwhile is
/// scrolled up. Taken again without having been given back, nothing is.
#[test]
fn a_session_that_was_suspended() {
    let mut pair = main_screen();
    pair.output(b"host$ ").run(secs(1));
    let close = pair.client.tty_close();
    pair.tty.advance(&close);
    pair.tty.advance(b"$ date\r\nnow\r\n$ fg\r\n");
    let open = pair.client.tty_open();
    pair.tty.advance(&open);
    pair.client.resumed();
    pair.run(secs(1));
    assert_eq!(pair.text(), ["host$"]);
    let then = ["host$ ", "$ date", "now", "$ fg", ""];
    assert_eq!(history(&pair), [&BEFORE[..], &then].concat());
    let reopen = pair.client.tty_reopen();
    pair.tty.advance(&reopen);
    pair.client.resumed();
    pair.run(secs(1));
    assert_eq!(pair.text(), ["host$"]);
    assert_eq!(history(&pair).len(), BEFORE.len() + then.len());
}

/// A terminal rearranges its own lines when its window changes, each in its own way.
#[test]
fn a_window_that_changes() {
    let mut pair = main_screen();
    pair.output(b"host$ a line that is longer than the window is wide in the end\r\nhost$ ");
    pair.run(secs(1));
    for (rows, cols) in [(24, 40), (10, 40), (10, 100), (40, 20), (24, 80)] {
        pair.resize(size(rows, cols)).run(secs(2));
        assert_eq!(pair.text(), trimmed(pair.client.view().screen()), "{rows} by {cols}");
        assert_eq!(pair.tty.screen().cursor(), pair.client.view().screen().cursor());
    }
}

/// A window that grows brings lines of the history back: the session's own the server brings back too, and
/// the user's go back to where they came from.
#[test]
fn a_window_that_grows() {
    for (lines, grown, ours) in [(2, 28, 0), (30, 28, 3), (30, 31, 0), (30, 35, 0), (30, 20, 11)] {
        let mut pair = main_screen();
        for line in 1..=lines {
            pair.output(format!("line {line}\r\n").as_bytes()).run(secs(1));
        }
        pair.resize(size(grown, 80)).run(secs(2));
        assert_eq!(pair.text(), trimmed(pair.client.view().screen()), "{lines} {grown}");
        let session: Vec<String> = (1..=ours).map(|line| format!("line {line}")).collect();
        let wanted = [&BEFORE.map(String::from)[..], &session].concat();
        assert_eq!(history(&pair), wanted, "{lines} {grown}");
    }
}

/// Lets the terminal's answers arrive, with what is typed between.
fn answer(pair: &mut Pair, typed: &[u8]) {
    let mut answers = pair.tty.take_replies();
    assert!(answers.len() > 100, "it was asked");
    answers.extend(typed);
    for piece in answers.chunks(7) {
        pair.client.handle_keys(pair.now, piece);
    }
}

/// The terminal is asked once; its answers change what it is sent and are never typed.
#[test]
fn what_the_terminal_says_of_itself() {
    for late in [0, 5] {
        let mut pair = main_screen();
        pair.output(b"\x1b[4:3;58:2::1:2:3mcurly").run(secs(late));
        answer(&mut pair, b"ty\x1b[Aped");
        pair.run(secs(2));
        assert_eq!(pair.typed, b"ty\x1b[Aped", "{late} s late");
        assert!(pair.client_events.contains(&Event::TerminalKnown), "{late} s late");
        let style = pair.tty.screen().cell_style(0, 0);
        assert_eq!(style.attrs.underline(), Underline::Curly, "{late} s late");
        assert_eq!(pair.tty.take_replies(), b"", "{late} s late: asked again");
    }
}

/// Without answers nothing is delayed, but for an escape in the first second.
#[test]
fn a_terminal_that_says_nothing() {
    for (start, wait) in [(100, 60), (1500, 1)] {
        let mut pair = Pair::with(GOOD, client_config(Peer::Rove), server_config(Peer::Rove));
        pair.run_ms(start);
        pair.keys(b"\x1b").run_ms(wait + 100);
        assert_eq!(pair.typed, b"\x1b", "after {start} ms");
    }
}

fn main_config() -> Config {
    let mut client = client_config(Peer::Rove);
    client.window = TtyScreen::Main;
    client
}

/// What a terminal had that programs change is as it was afterwards.
#[test]
fn the_cursor_and_the_keyboard_are_left_as_they_were() {
    let mut pair = Pair::with(GOOD, main_config(), server_config(Peer::Rove));
    pair.tty.advance(b"\x1b[6 q\x1b[=5;1u");
    pair.run_ms(50);
    answer(&mut pair, b"");
    pair.output(b"\x1b[2 q\x1b[=1;1uhello").run(secs(1));
    let modes = *pair.tty.screen().modes();
    assert_eq!((modes.cursor_shape, modes.keyboard_flags), (CursorShape::Block, 1));
    let close = pair.client.tty_close();
    pair.tty.advance(&close);
    let modes = *pair.tty.screen().modes();
    assert_eq!((modes.cursor_shape, modes.keyboard_flags), (CursorShape::Bar, 5));
}

/// Programs on the host are told of the terminal their user sits at, as soon as it has said.
#[test]
fn programs_learn_what_the_terminal_looks_like() {
    const QUERIES: &[u8] = b"\x1b]11;?\x07\x1b]4;1;?\x07\x1b[?996n\x1b[16t";
    const LIGHT: &str =
        "\x1b]11;rgb:ffff/ffff/eeee\x07\x1b]4;1;rgb:1111/2222/3333\x07\x1b[?997;2n\x1b[6;18;9t";
    const NOBODY_KNOWS: &str =
        "\x1b]11;rgb:0000/0000/0000\x07\x1b]4;1;rgb:cdcd/0000/0000\x07\x1b[?997;1n\x1b[6;20;10t";
    for (client, server, heard) in [
        (Peer::Rove, Peer::Rove, LIGHT),
        // Two roves under stock's names find out.
        (Peer::Stock, Peer::Stock, LIGHT),
    ] {
        let mut pair = Pair::with(GOOD, client_config(client), server_config(server));
        pair.program = |_| Vec::new();
        pair.run_ms(50);
        pair.output(QUERIES).run_ms(5);
        assert_eq!(String::from_utf8_lossy(&pair.typed), NOBODY_KNOWS, "{client:?}");
        pair.typed.clear();
        pair.client.handle_keys(
            pair.now,
            b"\x1b]11;rgb:ffff/ffff/eeee\x07\x1b]4;1;rgb:11/22/33\x07\x1b[6;18;9t\x1b[?62c",
        );
        pair.run(secs(1));
        pair.output(QUERIES).run(secs(1));
        assert_eq!(String::from_utf8_lossy(&pair.typed), heard, "{client:?}");
    }
}

/// A terminal that changes its colours tells the program that wants to know.
#[test]
fn a_changed_colour_scheme_is_told_on() {
    let mut pair = main_screen();
    pair.program = |_| Vec::new();
    answer(&mut pair, b"");
    pair.output(b"\x1b[?2031h").run(secs(1));
    assert_eq!(pair.typed, b"");
    pair.client.handle_keys(pair.now, b"\x1b[?997;2n");
    pair.run(secs(1));
    assert_eq!(String::from_utf8_lossy(&pair.typed), "\x1b[?997;2n");
    assert!(pair.tty.screen().modes().scheme_reports);
    let close = pair.client.tty_close();
    pair.tty.advance(&close);
    assert!(!pair.tty.screen().modes().scheme_reports);
}

/// The octets kept for a crash undo all settings, on either screen, though they were made before.
#[test]
fn a_crash_gives_the_terminal_back() {
    for output in ["host$ ", "host$ \x1b[?1049hfull \x1b[2 q\x1b[=1;1u\x1b[?2004h"] {
        let mut pair = Pair::with(GOOD, main_config(), server_config(Peer::Rove));
        pair.tty.advance(b"\x1b[6 q\x1b[=5;1u");
        let open = pair.client.tty_open();
        pair.tty.advance(&open);
        pair.run_ms(50);
        pair.output(b"host$ ").run_ms(50);
        answer(&mut pair, b"");
        let kept = pair.client.tty_abandon();
        let (before, painted) = (pair.tty.clone(), pair.painted.len());
        pair.output(output.as_bytes()).run(secs(1));
        let paint = &pair.painted[painted..];
        // Wherever in a paint it happens: half a sequence may have been written.
        for cut in 0..=paint.len() {
            let mut tty = before.clone();
            tty.advance(&paint[..cut]);
            tty.advance(&kept);
            let modes = *tty.screen().modes();
            let keys = (modes.cursor_shape, modes.keyboard_flags);
            assert_eq!(keys, (CursorShape::Bar, 5), "{output:?} cut at {cut}");
            let left = modes.scheme_reports || modes.bracketed_paste || modes.synchronized;
            assert!(!left && modes.cursor_visible, "{output:?} cut at {cut}");
            assert_eq!(tty.screen().buffer(), Buffer::Primary, "{output:?} cut at {cut}");
        }
    }
}

/// The user's colours are the user's: a repaint and the end give back what programs changed, and nothing else.
#[test]
fn the_users_colours_stay() {
    let mut pair = main_screen();
    pair.tty.advance(b"\x1b]4;1;#010203\x07\x1b]11;#040506\x07");
    let users = pair.tty.screen().palette().clone();
    pair.resize(size(30, 80)).run_ms(200);
    assert_eq!(*pair.tty.screen().palette(), users);
    pair.output(b"\x1b]4;2;#aabbcc\x07\x1b]12;#aabbcc\x07").run_ms(200);
    assert!(pair.client_events.contains(&Event::TerminalKnown));
    let mut crashed = pair.tty.clone();
    assert_ne!(*crashed.screen().palette(), users);
    crashed.advance(&pair.client.tty_abandon());
    assert_eq!(*crashed.screen().palette(), users);
    // What is reset while the picture is not known is reset by the next one.
    pair.output(b"\x1b]104;2\x07").resize(size(24, 80)).run_ms(200);
    assert_eq!(pair.tty.screen().palette().entries, users.entries);
    let close = pair.client.tty_close();
    pair.tty.advance(&close);
    assert_eq!(*pair.tty.screen().palette(), users);
}

/// Each answer of the terminal changes the octets that undo the session, and the client reports that.
#[test]
fn each_answer_is_reported() {
    for answer in [&b"\x1b[?2031;2$y"[..], b"\x1b[?5u", b"\x1bP1$r6 q\x1b\\"] {
        let mut pair = Pair::with(GOOD, main_config(), server_config(Peer::Rove));
        pair.run_ms(50);
        let before = pair.client.tty_abandon();
        pair.client.handle_keys(pair.now, answer);
        assert_ne!(pair.client.tty_abandon(), before);
        assert_eq!(pair.client.poll_event(), Some(Event::TerminalKnown));
        pair.client.handle_keys(pair.now, b"a key");
        assert_eq!(pair.client.poll_event(), None);
    }
}

/// What may be waited for before the terminal is given back: answers to what was asked, and not for long.
#[test]
fn how_long_answers_may_come() {
    let mut pair = Pair::with(GOOD, main_config(), server_config(Peer::Rove));
    assert_eq!(pair.client.answers_due(), None, "nothing is asked yet");
    pair.run_ms(100);
    let due = pair.client.answers_due().unwrap();
    assert!(due.since(pair.now) <= secs(1));
    pair.client.handle_keys(pair.now, b"\x1b[?2026;2$y");
    assert_eq!(pair.client.answers_due(), Some(due));
    pair.client.handle_keys(pair.now, b"\x1b[?62c");
    assert_eq!(pair.client.answers_due(), None);
    let mut pair = Pair::with(GOOD, main_config(), server_config(Peer::Rove));
    pair.run(secs(2));
    assert_eq!(pair.client.answers_due(), None);
}

/// A terminal that leaves a question unanswered has its keys to itself in the end.
#[test]
fn what_looks_like_an_answer_much_later() {
    for (late, typed) in [(5, ""), (20, "\x1b]10;rgb:0/0/0\x07")] {
        let mut pair = Pair::with(GOOD, main_config(), server_config(Peer::Rove));
        pair.run(secs(late));
        pair.keys(b"\x1b]10;rgb:").run_ms(200);
        pair.keys(b"0/0/0\x07").run_ms(200);
        assert_eq!(String::from_utf8_lossy(&pair.typed), typed, "{late} s late");
    }
}

/// A program that sets the clipboard in a loop is heard twice a second, and to the last.
#[test]
fn announcements_have_a_rate() {
    for (form, last) in
        [("\x1b]52;c;{}\x07", "]52;c;QTkw"), ("\x1b]777;notify;t;{}\x07", "notify;t;QTkw")]
    {
        let mut pair = Pair::with(GOOD, main_config(), server_config(Peer::Rove));
        pair.run(secs(1));
        pair.painted.clear();
        for number in 0..=90 {
            pair.output(
                form.replace("{}", &format!("QT{number:02}").replace("QT90", "QTkw")).as_bytes(),
            );
            pair.run_ms(33);
        }
        let told =
            |pair: &Pair, what: &str| String::from_utf8_lossy(&pair.painted).matches(what).count();
        let kind = &form[1..5];
        let count = told(&pair, kind);
        assert!((4..=8).contains(&count), "{count} in three seconds");
        pair.run(secs(1));
        assert_eq!(told(&pair, last), 1, "{last}");
        pair.run(secs(2));
        assert!(told(&pair, kind) <= count + 1);
        assert_eq!(told(&pair, last), 1);
    }
}

/// Announcements made while the picture was not known come with the next one, and come once.
#[test]
fn announcements_survive_a_repaint() {
    let mut pair = main_screen();
    pair.painted.clear();
    pair.output(b"\x1b]52;c;YQ==\x07").run_ms(100);
    pair.client.resumed();
    pair.run_ms(100);
    pair.output(b"\x1b]52;c;Yg==\x07").run_ms(100);
    pair.client.resumed();
    pair.run(secs(1));
    let painted = String::from_utf8_lossy(&pair.painted);
    for data in ["YQ==", "Yg=="] {
        assert_eq!(painted.matches(data).count(), 1, "{data}");
    }
}
