//! A session below what the user had on the screen, on a terminal that tells where its cursor is.
#![allow(clippy::unwrap_used)] // A check that fails says where.

mod common;

use common::{DEAD, GOOD, Pair, client_config, server_config, size, trimmed};
use rove_session::client::{Config, Event, TtyScreen};
use rove_session::{Peer, client};
use rove_term::{Dialect, Terminal};

/// What the user had on the screen; the cursor is in the row below.
const BEFORE: [&str; 3] = ["$ ls", "file", "$ rove h"];

fn config(history_lines: u64) -> Config {
    client::Config { window: TtyScreen::Inline, history_lines, ..client_config(Peer::Rove) }
}

/// A session that was just begun there, before anything was painted.
fn begin(history_lines: u64) -> Pair {
    begin_with(config(history_lines))
}

fn begin_with(config: Config) -> Pair {
    let mut pair = Pair::with(GOOD, config, server_config(Peer::Rove));
    pair.tty = Terminal::new(size(24, 80), Dialect::ROVE);
    pair.tty.advance(BEFORE.map(|line| format!("{line}\r\n")).concat().as_bytes());
    let open = pair.client.tty_open();
    pair.tty.advance(&open);
    pair
}

/// The same, after the terminal has answered.
fn session(history_lines: u64) -> Pair {
    let mut pair = begin(history_lines);
    pair.run_ms(1);
    answer(&mut pair);
    pair.run_ms(1_000);
    pair
}

/// Both kinds of sessions: those that are told all lines, and others.
fn sessions() -> [Pair; 2] {
    [session(10_000), session(0)]
}

/// Gives the client what the terminal has answered.
fn answer(pair: &mut Pair) {
    let answers = pair.tty.take_replies();
    assert!(answers.starts_with(b"\x1b["), "it was asked");
    pair.keys(&answers);
}

/// The same, if it was asked.
fn answer_all(pair: &mut Pair) {
    let answers = pair.tty.take_replies();
    if !answers.is_empty() {
        pair.keys(&answers);
    }
}

/// Time goes on, and the terminal answers at once.
fn run_answering(pair: &mut Pair, ms: u64) {
    for _ in 0..ms {
        pair.run_ms(1);
        answer_all(pair);
    }
}

/// Another window, and the terminal's answer.
fn resize(pair: &mut Pair, rows: u16, cols: u16) {
    pair.run_ms(1_000).resize(size(rows, cols)).run_ms(1);
    answer(pair);
    pair.run_ms(2_000);
}

fn close(pair: &mut Pair) {
    pair.run_ms(1_000);
    let close = pair.client.tty_close();
    pair.tty.advance(&close);
}

/// The terminal's history, and below it its screen.
fn all(pair: &Pair) -> Vec<String> {
    let history = pair.tty.history();
    let lines = (0..history.len()).map(|line| history.text(line).unwrap());
    lines.map(|line| line.trim_end().to_owned()).chain(trimmed(pair.tty.screen())).collect()
}

fn lines(from: u32, to: u32) -> Vec<String> {
    (from..=to).map(|number| format!("line {number}")).collect()
}

fn output(from: u32, to: u32) -> String {
    lines(from, to).iter().map(|line| format!("{line}\r\n")).collect()
}

fn with_before(session: Vec<String>) -> Vec<String> {
    BEFORE.iter().map(ToString::to_string).chain(session).collect()
}

#[test]
fn a_command_leaves_its_lines_and_no_more() {
    for count in [0, 1, 3, 19, 20, 21, 22, 23, 24, 25, 60] {
        for (mut pair, a_time) in sessions().into_iter().zip([60, 1]) {
            // A session that is told no lines has those that it was shown.
            for first in (1..=count).step_by(a_time) {
                pair.output(output(first, count.min(first + a_time as u32 - 1)).as_bytes());
                pair.run_ms(1_000);
            }
            close(&mut pair);
            assert_eq!(all(&pair), with_before(lines(1, count)), "{count} lines, {a_time} a time");
            let cursor = pair.tty.screen().cursor();
            assert_eq!(cursor.row, (count as u16 + 3).min(23), "{count} lines");
            assert_eq!(cursor.col, 0);
        }
    }
}

/// The first picture is that of a program with many rows, or of one on the alternate screen.
#[test]
fn programs_that_need_room() {
    for mut pair in sessions() {
        pair.output(b"\x1b[24;1Hfoot\x1b[H").run_ms(1_000);
        assert_eq!(pair.tty.screen().row_text(23), "foot");
        assert_eq!(all(&pair)[..3], BEFORE);
    }
    for mut pair in sessions() {
        pair.output(b"\x1b[?1049h\x1b[24;1Hfoot").run_ms(1_000);
        assert_eq!(pair.tty.screen().row_text(23), "foot");
        pair.output(b"\x1b[?1049lone\r\n");
        close(&mut pair);
        assert_eq!(all(&pair), with_before(vec!["one".into()]));
    }
    for mut pair in sessions() {
        pair.output(b"one\x1b[?1000h").run_ms(1_000);
        assert_eq!(pair.tty.screen().row_text(0), "one", "the mouse's places are the terminal's");
    }
}

/// As when the answer comes that was meant for a window which was larger.
#[test]
fn rows_that_the_window_does_not_have() {
    for mut pair in sessions() {
        pair.output(b"\x1b[9;1Hfoot\x1b[Hhead\r").run_ms(1_000);
        pair.resize(size(10, 80)).run_ms(1);
        assert!(!pair.tty.take_replies().is_empty(), "it was asked");
        pair.keys(b"\x1b[65535;1R\x1b[0n").run_ms(2_000);
        assert_eq!(trimmed(pair.tty.screen()).last().map(String::as_str), Some("foot"));
        assert!(pair.tty.history().len() < 30, "{} lines", pair.tty.history().len());
    }
}

/// The program goes on in the smaller window before the terminal has told what it did with its lines.
#[test]
fn lines_that_come_before_the_answer() {
    for rows in [10, 30] {
        let mut pair = session(10_000);
        pair.output(output(1, 40).as_bytes()).run_ms(2_000);
        pair.resize(size(rows, 80)).run_ms(1);
        let answers = pair.tty.take_replies();
        assert!(!answers.is_empty(), "it was asked");
        pair.run_ms(40).output(output(41, 80).as_bytes()).run_ms(50);
        pair.keys(&answers).run_ms(3_000);
        assert_eq!(all(&pair), with_before(lines(1, 80)), "{rows} rows");
    }
}

/// Such as Linux' console: a program's other screen takes the place of all that is there.
#[test]
fn a_terminal_without_another_screen() {
    for (history_lines, first) in [(10_000, ""), (0, ""), (10_000, "one\r\n"), (0, "one\r\n")] {
        let tty = Dialect::tty("linux", "");
        let mut pair = begin_with(Config { tty, ..config(history_lines) });
        pair.run_ms(1);
        answer(&mut pair);
        pair.output(first.as_bytes()).run_ms(1_000);
        pair.output(b"\x1b[?1049h\x1b[3;1Hother").run_ms(1_000);
        assert_eq!(trimmed(pair.tty.screen()), ["", "", "other"], "{history_lines} {first:?}");
        assert_eq!(all(&pair)[..3], BEFORE, "{history_lines} {first:?}");
    }
}

#[test]
fn the_bar_and_the_panel_spare_the_lines_above() {
    for mut pair in sessions() {
        pair.output(output(1, 2).as_bytes()).run_ms(1_000);
        pair.link = DEAD;
        pair.run_ms(20_000);
        assert_eq!(all(&pair)[..3], BEFORE);
        assert!(pair.tty.screen().row_text(3).starts_with("rove: Last contact"));
        pair.link = GOOD;
        pair.output(b"\x1b[?1049hother").run_ms(9_000);
        pair.link = DEAD;
        pair.run_ms(20_000);
        let top = pair.tty.screen().row_text(0);
        assert!(top.starts_with("rove: Last contact"), "a screen of the program's alone: {top:?}");
        pair.link = GOOD;
        pair.output(b"\x1b[?1049l").run_ms(9_000);
        pair.output(output(3, 4).as_bytes()).run_ms(9_000);
        assert_eq!(all(&pair), with_before(lines(1, 4)));
        pair.keys(b"\x1es").run_ms(1_000);
        assert!(pair.tty.screen().row_text(23).contains("s closes"));
        assert_eq!(all(&pair)[..3], BEFORE);
        pair.keys(b"s").run_ms(1_000);
        close(&mut pair);
        assert_eq!(all(&pair), with_before(lines(1, 4)));
    }
}

/// A window of another height, and of another width: the lines above are whole and stay there.
#[test]
fn windows_of_other_sizes() {
    for sizes in [
        &[(30, 80), (24, 80)][..],
        &[(10, 80), (24, 80)],
        &[(5, 80), (3, 80), (40, 80)],
        &[(24, 100), (24, 60), (24, 80)],
    ] {
        for count in [0, 2, 12, 40] {
            let told = if count < 24 { &[10_000, 0][..] } else { &[10_000] };
            for mut pair in told.iter().map(|lines| session(*lines)) {
                pair.output(output(1, count).as_bytes()).run_ms(1_000);
                for (rows, cols) in sizes {
                    resize(&mut pair, *rows, *cols);
                }
                pair.output(output(count + 1, count + 3).as_bytes());
                close(&mut pair);
                assert_eq!(all(&pair), with_before(lines(1, count + 3)), "{sizes:?} {count}");
            }
        }
    }
}

/// The same as [`session`], in what calls itself tmux.
fn session_in_tmux() -> Pair {
    let mut pair = begin(10_000);
    pair.run_ms(1);
    let answers = pair.tty.take_replies();
    let name = answers.windows(5).position(|part| part == b"rove(").unwrap();
    let end = name + answers[name..].iter().position(|octet| *octet == 0x1b).unwrap();
    let answers = [&answers[..name], b"tmux 3.5a", &answers[end..]].concat();
    pair.keys(&answers).run_ms(1_000);
    pair
}

/// tmux tells of the second of two resizes later. The lines that come back onto the screen meanwhile stay what they are,
/// whether the terminal tells how large it is by then or not.
#[test]
fn a_resize_that_is_told_late() {
    for (mut pair, shows) in [(session(10_000), "line 110"), (session_in_tmux(), "line 100")] {
        pair.output(output(1, 100).as_bytes());
        resize(&mut pair, 12, 80);
        pair.resize(size(20, 80)).run_ms(1);
        answer(&mut pair);
        run_answering(&mut pair, 20);
        pair.tty.resize(size(24, 80));
        pair.output(output(101, 110).as_bytes());
        run_answering(&mut pair, 229);
        assert_eq!(trimmed(pair.tty.screen()).last().unwrap(), shows);
        pair.resize(size(24, 80)).run_ms(1);
        answer(&mut pair);
        run_answering(&mut pair, 400);
        assert_eq!(all(&pair), with_before(lines(1, 110)));
    }
}

/// While an edge is dragged, each size may be another one by the time it is told.
#[test]
fn sizes_that_are_never_those_of_the_window() {
    let mut pair = session_in_tmux();
    pair.output(output(1, 100).as_bytes());
    resize(&mut pair, 20, 80);
    let mut painted = Vec::new();
    for step in 0..16 {
        pair.output(output(101 + step, 101 + step).as_bytes());
        // Told every 250 ms, when the window has a further size already.
        pair.tty.resize(size(21 + step as u16, 80));
        pair.client.handle_resize(pair.now, size(20 + step as u16, 80));
        for _ in 0..250 {
            let before = pair.tty.screen().text();
            pair.run_ms(1);
            painted.extend((before != pair.tty.screen().text()).then_some(pair.now));
            answer_all(&mut pair);
        }
    }
    pair.client.handle_resize(pair.now, size(36, 80));
    run_answering(&mut pair, 1_000);
    let waits = painted.windows(2).map(|pair| pair[1].since(pair[0]).as_millis());
    let longest = waits.max().unwrap();
    assert!((300..1_000).contains(&longest), "{longest} ms without a picture");
    let shown = all(&pair);
    assert!(lines(1, 116).iter().all(|line| shown.contains(line)), "{shown:?}");
    assert_eq!(trimmed(pair.tty.screen()).last().unwrap(), "line 116");
}

/// A terminal that never tells is painted on all the same, once no more sizes are expected.
#[test]
fn a_resize_that_is_never_told() {
    let mut pair = session_in_tmux();
    pair.output(output(1, 100).as_bytes()).run_ms(1_000);
    pair.resize(size(20, 80)).run_ms(1);
    answer(&mut pair);
    run_answering(&mut pair, 1);
    pair.tty.resize(size(24, 80));
    pair.output(output(101, 103).as_bytes());
    for (ms, shows) in [(290, "line 100"), (500, "line 103")] {
        run_answering(&mut pair, ms);
        assert!(trimmed(pair.tty.screen()).iter().any(|line| line == shows), "{ms} ms");
        let is_last = |line: &String| line == "line 103";
        assert_eq!(trimmed(pair.tty.screen()).iter().any(is_last), shows == "line 103", "{ms} ms");
    }
}

/// An answer that comes too late is neither a key nor news of the next window.
#[test]
fn an_answer_of_the_window_before() {
    let mut pair = session_in_tmux();
    pair.resize(size(20, 80)).run_ms(1);
    answer(&mut pair);
    run_answering(&mut pair, 1);
    pair.output(b"one\r\n").run_ms(60);
    let late = pair.tty.take_replies();
    assert!(late.starts_with(b"\x1b["), "it was asked");
    let typed = pair.client.typed();
    pair.run_ms(150).keys(&late).run_ms(1);
    pair.output(b"two\r\n");
    run_answering(&mut pair, 100);
    assert_eq!(pair.client.typed(), typed);
    assert!(trimmed(pair.tty.screen()).iter().any(|line| line == "two"));
}

/// Lines that were erased do not come back with those that do.
#[test]
fn a_window_that_grows_after_its_history_was_erased() {
    let mut pair = session(10_000);
    pair.output(output(1, 100).as_bytes()).run_ms(1_000);
    pair.output(b"\x1b[H\x1b[2J\x1b[3J").run_ms(1_000);
    pair.output(output(101, 130).as_bytes()).run_ms(1_000);
    resize(&mut pair, 40, 80);
    close(&mut pair);
    assert_eq!(all(&pair), lines(101, 130));
}

/// What the user did meanwhile is above the picture then.
#[test]
fn a_session_that_was_suspended() {
    for mut pair in sessions() {
        pair.output(b"host$ ").keys(b"\x1e\x1a").run_ms(1_000);
        assert!(pair.client_events.contains(&Event::Suspend));
        close(&mut pair);
        pair.tty.advance(b"$ fg\r\n");
        let open = pair.client.tty_open();
        pair.tty.advance(&open);
        pair.client.resumed();
        pair.client.resumed();
        pair.run_ms(1);
        answer(&mut pair);
        pair.output(b"ls\r\n");
        close(&mut pair);
        let after = ["host$", "$ fg", "host$ ls"].map(str::to_owned);
        assert_eq!(all(&pair), with_before(after.to_vec()));
    }
}

/// A stopped process that was only continued does not know who wrote where.
#[test]
fn a_process_that_was_stopped() {
    for mut pair in sessions() {
        pair.output(b"host$ ").run_ms(1_000);
        let reopen = pair.client.tty_reopen();
        pair.tty.advance(&reopen);
        pair.client.resumed();
        pair.run_ms(1_000);
        assert_eq!(pair.text(), ["host$"]);
        assert_eq!(all(&pair), with_before(vec!["host$".into()]));
    }
}

/// As a session on the whole screen: all that was there is in the history.
#[test]
fn a_terminal_that_does_not_tell() {
    let mut pair = begin(10_000);
    pair.run_ms(99);
    assert_eq!(trimmed(pair.tty.screen()), BEFORE, "nothing is painted yet");
    pair.run_ms(1_000);
    pair.output(output(1, 2).as_bytes()).run_ms(1_000);
    assert_eq!(pair.text(), lines(1, 2));
    let before = [&BEFORE.map(str::to_owned)[..], &[String::new()]].concat();
    assert_eq!(all(&pair), [&before[..], &lines(1, 2)].concat());
    // A late answer is no key.
    answer(&mut pair);
    pair.run_ms(1_000);
    assert_eq!(String::from_utf8_lossy(&pair.typed), "");
}

/// Ctrl-F3 looks like an answer. It is typed before, behind, and between the answers of both questions.
#[test]
fn what_is_typed_at_the_question_is_no_answer() {
    const KEYS: [&str; 5] =
        ["\x1b[1;5R", "\x1b", "ls\r\x1b[1;2R", "\x1b[A\x1b[1;5R", "\x1b[1;6R\x1b"];
    for keys in KEYS {
        for (before, cut) in [(true, 1000), (false, 1000), (true, 3), (false, 5)] {
            for resized in [false, true] {
                let mut pair = if resized { session(10_000) } else { begin(10_000) };
                if resized {
                    pair.resize(size(20, 80));
                }
                pair.run_ms(1);
                let answers = pair.tty.take_replies();
                let all = match before {
                    true => [keys.as_bytes(), &answers].concat(),
                    false => [&answers, keys.as_bytes()].concat(),
                };
                for piece in all.chunks(cut) {
                    pair.keys(piece).run_ms(1);
                }
                pair.run_ms(2_000);
                let case = format!("{keys:?}, before {before}, cut {cut}, resized {resized}");
                assert_eq!(String::from_utf8_lossy(&pair.typed), keys, "{case}");
                assert_eq!(pair.client.rows_above(), 3, "{case}");
            }
        }
    }
}

/// As over ssh, unless the user asked to keep it.
#[test]
fn a_history_that_is_erased() {
    for keeps in [false, true] {
        let mut pair = begin(10_000);
        if keeps {
            pair.client.keep_history();
        }
        pair.run_ms(1);
        answer(&mut pair);
        pair.output(output(1, 30).as_bytes()).run_ms(2_000);
        pair.output(b"\x1b[H\x1b[2J\x1b[3J").run_ms(1_000);
        pair.output(output(31, 32).as_bytes());
        close(&mut pair);
        let left = if keeps { with_before(lines(1, 7)) } else { Vec::new() };
        assert_eq!(all(&pair), [left, lines(31, 32)].concat(), "keeps: {keeps}");
    }
}

/// The cursor is not in the first column, or in the last row.
#[test]
fn where_the_cursor_was() {
    for (shown, all_lines) in [
        ("$ \r\nmine", vec!["$", "mine", "one"]),
        (&"\r\n".repeat(23), vec![""; 23].into_iter().chain(["one"]).collect()),
        ("\x1b[24;1Hmine", vec![""; 23].into_iter().chain(["mine", "one"]).collect()),
    ] {
        let mut pair = begin(10_000);
        pair.tty = Terminal::new(size(24, 80), Dialect::ROVE);
        pair.tty.advance(shown.as_bytes());
        pair.run_ms(1);
        answer(&mut pair);
        pair.output(b"one\r\n");
        close(&mut pair);
        assert_eq!(all(&pair), all_lines, "{shown:?}");
    }
}
