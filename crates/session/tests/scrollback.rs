//! The history of the user's terminal, in virtual time: it has each line of the program's, in order and once.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{BAD, DEAD, GOOD, Link, Pair, client_config, ms, native_in, server_config, size};
use rove_session::client::TtyScreen;
use rove_session::messages::{DepthFields, HostEvent, RowsFields, write_host};
use rove_session::past::Past;
use rove_session::{Peer, View, client, server};
use rove_ssp::state::laws;
use rove_ssp::{Role, State, Timing};
use rove_term::{Dialect, History, Pool};

/// What a state with lines may hold of them: 64 KiB on their way, and the last 16 KiB that were told.
const OCTETS_MAX: usize = 80 << 10;

/// The same where octets cost: 8 KiB on their way, and the last 8 KiB.
const METERED_OCTETS_MAX: usize = 16 << 10;

fn config() -> client::Config {
    client::Config { window: TtyScreen::Main, ..client_config(Peer::Rove) }
}

fn pair(link: Link) -> Pair {
    let mut pair = Pair::with(link, config(), server_config(Peer::Rove));
    pair.run_ms(2_000);
    pair
}

/// `count` numbered lines, from 1 on.
fn numbered(count: u32) -> String {
    (1..=count).map(|n| format!("{n}\r\n")).collect()
}

/// The numbers in the terminal's history and on its screen.
fn numbers(pair: &Pair) -> Vec<u32> {
    let history = pair.tty.history();
    let above = (0..history.len()).filter_map(|line| history.text(line));
    let all = above.chain(pair.tty.screen().text());
    all.filter_map(|line| line.trim_end().parse().ok()).collect()
}

fn assert_has(pair: &Pair, count: u32) {
    let numbers = numbers(pair);
    let right = numbers.iter().zip(1..).take_while(|(a, b)| **a == *b).count();
    assert!(numbers.iter().copied().eq(1..=count), "{right} of {} are right", numbers.len());
}

#[test]
fn a_burst_arrives_whole() {
    for link in [GOOD, BAD] {
        let mut pair = pair(link);
        pair.output(numbered(5_000).as_bytes()).run_ms(60_000);
        assert_has(&pair, 5_000);
    }
}

#[test]
fn lines_of_an_outage_follow() {
    let mut pair = pair(GOOD);
    pair.link = DEAD;
    for first in 0..60 {
        let lines: String = (1..=100).map(|n| format!("{}\r\n", first * 100 + n)).collect();
        pair.output(lines.as_bytes()).run_ms(500);
    }
    pair.link = GOOD;
    pair.run_ms(20_000);
    assert_has(&pair, 6_000);
}

/// What a program erases is saved where the terminal itself does so, and only if the user wants it.
#[test]
fn an_erased_screen_is_saved_where_the_terminal_saves_it() {
    for (term, keeps, erase, saved) in [
        ("alacritty", true, "\x1b[H\x1b[2J", true),
        ("alacritty", true, "\x1b[2J\x1b[H", true),
        ("alacritty", true, "\x1b[H\x1b[J", false),
        ("tmux-256color", true, "\x1b[H\x1b[J", true),
        ("tmux-256color", true, "\x1b[H\x1b[2J", true),
        ("tmux-256color", false, "\x1b[H\x1b[2J", false),
        ("xterm-256color", true, "\x1b[H\x1b[2J", false),
    ] {
        let config = client::Config { tty: Dialect::tty(term, ""), ..config() };
        let mut pair = Pair::with(BAD, config, server_config(Peer::Rove));
        if keeps {
            pair.client.save_erased();
        }
        pair.run_ms(5_000).output(numbered(10).as_bytes()).run_ms(5_000);
        pair.output(erase.as_bytes()).output(b"11\r\n12").run_ms(10_000);
        let first = if saved { 1 } else { 11 };
        let wanted: Vec<u32> = (first..=12).collect();
        assert_eq!(numbers(&pair), wanted, "{term} {keeps} {erase:?}");
        assert_eq!(pair.tty.screen().text()[0].trim_end(), "11", "{term} {erase:?}");
    }
}

/// A silent client costs its server few octets: lines on their way are taken back, and told again when the client answers.
#[test]
fn who_is_silent_is_not_told_lines_again_and_again() {
    let mut pair = native_in(Link { delay: ms(50), ..GOOD }, TtyScreen::Main);
    pair.run_ms(2_000).output(numbered(9_000).as_bytes()).run_ms(300);
    let told = |pair: &Pair| pair.server.endpoint().local().past().map_or(0, Past::octets);
    assert!(told(&pair) > 20_000, "{} octets on their way", told(&pair));
    pair.link = DEAD;
    pair.run_ms(5_000);
    let since = pair.now;
    pair.run_ms(60_000);
    let sent = pair.flown.iter().filter(|(at, to, _)| *at > since && *to == Role::Client);
    let octets: usize = sent.map(|(_, _, octets)| octets).sum();
    assert!(octets < 40_000, "{octets} octets in a minute");
    pair.link = GOOD;
    pair.run_ms(20_000);
    assert_has(&pair, 9_000);
}

/// A path that carries what the client says only now and then brings lines all the same. Once it is steady again, a silent
/// client is soon taken for that.
#[test]
fn lines_come_where_answers_come_in_bursts() {
    for bursts in [2_200, 3_000, 5_000, 9_000] {
        let mut pair = native_in(Link { delay: ms(50), ..GOOD }, TtyScreen::Main);
        pair.run_ms(5_000).bursts = Some(ms(bursts));
        pair.output(numbered(3_000).as_bytes()).run_ms(90_000);
        assert_has(&pair, 3_000);
        pair.bursts = None;
        pair.run_ms(40_000).output(numbered(9_000).as_bytes()).run_ms(300);
        pair.link = DEAD;
        pair.run_ms(5_000);
        let told = pair.server.endpoint().local().past().map_or(0, Past::octets);
        assert!(told < 20_000, "{told} octets on their way after {bursts} ms");
    }
}

/// A client that was away for long costs its server no memory for lines.
#[test]
fn lines_for_nobody_are_bounded() {
    let mut pair = pair(GOOD);
    pair.link = DEAD;
    let lines = "a line of some length, printed again and again\r\n".repeat(20);
    let mut most = 0;
    for _ in 0..3_000 {
        pair.output(lines.as_bytes()).run_ms(100);
        most = most.max(pair.server.endpoint().local().past().map_or(0, Past::octets));
    }
    assert!(most <= OCTETS_MAX, "{most} octets");
    assert!(most > 0, "no line was told");
}

/// Where octets cost, few lines are on their way, and none within a second of a key.
#[test]
fn lines_of_a_metered_session_are_few_at_a_time() {
    let server = server::Config { timing: Timing::METERED, ..server_config(Peer::Rove) };
    let mut pair = Pair::with(Link { delay: ms(50), ..GOOD }, config(), server);
    pair.run_ms(2_000).output(numbered(3_000).as_bytes()).keys(b"x").run_ms(1_000);
    let told = |pair: &Pair| pair.client.view().past().map_or(0, Past::told);
    // Frames take some along.
    assert!(told(&pair) < 600, "{} lines while somebody types", told(&pair));
    let mut most = 0;
    for _ in 0..600 {
        pair.run_ms(50);
        most = most.max(pair.server.endpoint().local().past().map_or(0, Past::octets));
    }
    assert!(most <= METERED_OCTETS_MAX, "{most} octets");
    let numbers = numbers(&pair);
    assert_eq!(numbers.iter().filter(|number| **number > 0).count(), 3_000);
}

#[test]
fn the_end_of_a_program_waits_for_its_lines() {
    let mut pair = pair(Link { delay: ms(50), ..GOOD });
    pair.output(numbered(8_000).as_bytes());
    pair.server.child_exited(pair.now, 3);
    pair.run_ms(20_000);
    assert_eq!(pair.client_exit().map(|exit| (exit.clean, exit.status)), Some((true, Some(3))));
    assert_eq!(pair.client.view().past().map(|past| past.depth() - past.told()), Some(0));
}

/// Also where nothing comes through around it.
#[test]
fn an_outage_at_the_end_of_a_program_loses_no_line() {
    for (before, outage) in [(100, 3_000), (100, 8_000), (3_000, 3_000)] {
        let mut pair = native_in(Link { delay: ms(50), ..GOOD }, TtyScreen::Main);
        pair.run_ms(2_000).output(numbered(3_000).as_bytes()).run_ms(60);
        pair.link = DEAD;
        pair.run_ms(before);
        pair.server.child_exited(pair.now, 3);
        pair.run_ms(outage);
        pair.link = GOOD;
        pair.run_ms(30_000);
        let exit = pair.client_exit().map(|exit| (exit.clean, exit.status));
        assert_eq!(exit, Some((true, Some(3))), "{before} {outage}");
        assert_has(&pair, 3_000);
    }
}

/// Keys that come then hold up no line.
#[test]
fn the_end_of_a_program_waits_for_its_lines_while_somebody_types() {
    let mut pair = native_in(Link { delay: ms(50), loss: 30, jitter: ms(0) }, TtyScreen::Main);
    pair.run_ms(5_000).output(numbered(3_000).as_bytes());
    pair.server.child_exited(pair.now, 3);
    for _ in 0..120 {
        pair.keys(b"x").run_ms(500);
    }
    assert_eq!(pair.client_exit().map(|exit| (exit.clean, exit.status)), Some((true, Some(3))));
    assert_has(&pair, 3_000);
}

/// On a lossy path few lines go while somebody types, but some do.
#[test]
fn who_types_on_and_on_gets_lines() {
    let mut pair = native_in(Link { delay: ms(50), loss: 30, jitter: ms(0) }, TtyScreen::Main);
    // Until it is known that datagrams are lost.
    for _ in 0..100 {
        pair.keys(b"x").run_ms(200);
    }
    pair.output(numbered(3_000).as_bytes());
    let told = |pair: &Pair| pair.client.view().past().map_or(0, Past::told);
    let mut after = Vec::new();
    for _ in 0..3 {
        for _ in 0..50 {
            pair.keys(b"x").run_ms(400);
        }
        after.push(told(&pair));
    }
    assert!(after[0] < after[2] && after[0] < 2_000, "{after:?}");
}

/// What a client leaves out moves nothing that comes after it: it is missing.
#[test]
fn lines_that_are_left_out_keep_their_places() {
    let mut view = View::new(size(3, 10), Peer::Rove);
    let mut apply = |events: &[HostEvent<'_>]| {
        let mut diff = Vec::new();
        events.iter().for_each(|event| write_host(*event, &mut diff));
        view.apply(&diff).unwrap();
        let past = view.past().unwrap();
        let news = past.news().map(|news| (news.first(), news.end()));
        (past.depth(), past.told(), news)
    };
    let rows = |text, count| {
        HostEvent::Rows(RowsFields { text, count, cols: 10, ..RowsFields::default() })
    };
    let start = HostEvent::Depth(DepthFields { depth: 5, told: 5, erased: 2, falls: 1 });
    assert_eq!(apply(&[start]), (5, 5, None));
    assert_eq!(apply(&[rows(b"one\r\n", 2), rows(b"three\r\n", 1)]), (8, 8, Some((7, 8))));
    assert_eq!(apply(&[rows(b"one\r\n", 3)]), (11, 11, None));
    assert_eq!(apply(&[rows(b"one\r\ntwo\r\n", 2)]), (13, 13, Some((11, 13))));
}

/// A client that died keeps no server.
#[test]
fn nobody_waits_for_a_client_that_is_gone() {
    let mut pair = pair(GOOD);
    pair.link = DEAD;
    pair.output(numbered(9_000).as_bytes());
    pair.server.child_exited(pair.now, 0);
    pair.run_ms(40_000);
    assert!(pair.server_exit().is_some());
}

/// More lines than the client wants, before it is first told of any: a mark counts those before them, unless no others
/// were asked for.
#[test]
fn lines_before_the_first_that_is_told() {
    for wants_fewer in [false, true] {
        let config = client::Config { history_lines: 300, ..config() };
        let mut pair = Pair::with(GOOD, config, server_config(Peer::Rove));
        if wants_fewer {
            pair.client.want_fewer();
        }
        pair.output(numbered(1_000).as_bytes()).run_ms(20_000);
        let numbers = numbers(&pair);
        let first = numbers[0];
        assert!(numbers.iter().copied().eq(first..=1_000), "{} lines", numbers.len());
        assert!((650..800).contains(&first), "{first} is the first");
        let history = pair.tty.history();
        let marks = (0..history.len()).filter_map(|line| history.text(line));
        let marks = marks.filter(|line| line.starts_with("---")).collect::<Vec<_>>();
        let mark = format!("--- rove: {} lines are missing here ---", first - 1);
        assert_eq!(marks, if wants_fewer { vec![] } else { vec![mark] }, "{wants_fewer}");
    }
}

/// Nobody is told of lines who did not ask.
#[test]
fn who_does_not_ask_is_told_nothing() {
    let without = client::Config { history_lines: 0, ..config() };
    let alternate = client::Config { window: TtyScreen::Alternate, ..config() };
    for config in [without, alternate] {
        let mut pair = Pair::with(GOOD, config, server_config(Peer::Rove));
        pair.run_ms(1_000).output(numbered(300).as_bytes()).run_ms(5_000);
        assert!(pair.client.view().past().is_none());
    }
}

/// Positions of a hostile server may be any number.
#[test]
fn positions_beyond_all_bounds() {
    for (first, depth, told, erased) in [
        (u64::MAX, u64::MAX, u64::MAX, u64::MAX),
        (u64::MAX - 1, 0, u64::MAX, 0),
        (1 << 62, 1 << 62, 1 << 62, 1 << 62),
        (0, u64::MAX, 1, 0),
    ] {
        let mut view = View::new(size(3, 10), Peer::Rove);
        for falls in 0..3 {
            let mut diff = Vec::new();
            let fields = DepthFields { depth, told, erased, falls };
            write_host(HostEvent::Depth(fields), &mut diff);
            let text = b"one\r\ntwo\r\n";
            let first = Some(first);
            let rows = RowsFields { first, kept: 0, text, count: 2, cols: 10, open: false };
            write_host(HostEvent::Rows(rows), &mut diff);
            view.apply(&diff).unwrap();
            let rows = RowsFields { text, count: 2, cols: 10, ..RowsFields::default() };
            write_host(HostEvent::Rows(rows), &mut diff);
            view.apply(&diff).unwrap();
            let past = view.past().unwrap();
            assert!(past.depth().max(past.told()).max(past.erased()) <= 1 << 62);
            assert!(past.news().is_none_or(|news| news.end() <= (1 << 62) + 2));
        }
    }
}

/// A process that was only stopped has left the terminal as it was.
#[test]
fn a_stop_without_a_suspension() {
    let mut pair = pair(GOOD);
    pair.output(numbered(100).as_bytes()).run_ms(1_000);
    pair.client.resumed();
    pair.run_ms(100).output(b"101\r\n102\r\n").run_ms(1_000);
    assert_has(&pair, 102);
}

/// A window that changed while the terminal took lines may have wrapped them elsewhere: they come again.
#[test]
fn lines_on_their_way_while_the_window_changed_are_brought_again() {
    let mut pair = pair(GOOD);
    pair.output(numbered(100).as_bytes()).run_ms(5_000);
    let before = pair.client.lines_printed();
    let more: String = (101..=300).map(|n| format!("{n}\r\n")).collect();
    pair.output(more.as_bytes()).run_ms(5_000);
    assert!(before > 0 && pair.client.lines_printed() > before);
    assert!(!pair.client.pushes_lines(), "all are there");
    assert_has(&pair, 300);
    pair.client.print_again(before);
    assert!(pair.client.pushes_lines());
    pair.resize(size(30, 80)).run_ms(5_000);
    let numbers = numbers(&pair);
    let again = numbers.iter().filter(|number| u64::from(**number) > before);
    assert!(again.count() as u64 > 300 - before, "none has come again");
    let last: Vec<u32> = (before as u32 + 1..=300).collect();
    assert!(numbers.ends_with(&last), "{numbers:?}");
    assert!((1..=300).all(|number| numbers.contains(&number)), "{numbers:?}");
}

/// The picture goes to the terminal's history. Its last line is likely to go on, so it may stand there twice.
#[test]
fn the_users_own_shell_between() {
    let mut pair = pair(GOOD);
    pair.output(numbered(100).as_bytes()).run_ms(1_000);
    pair.keys(b"\x1e\x1a").run_ms(10);
    let (close, open) = (pair.client.tty_close(), pair.client.tty_open());
    pair.tty.advance(&close);
    pair.tty.advance(b"$ fg\r\n");
    pair.tty.advance(&open);
    pair.client.resumed();
    pair.run_ms(100);
    // The signal that it goes on comes after the first paint.
    pair.client.resumed();
    pair.run_ms(100);
    let more: String = (101..=200).map(|n| format!("{n}\r\n")).collect();
    pair.output(more.as_bytes()).run_ms(1_000);
    let mut numbers = numbers(&pair);
    let all = numbers.len();
    numbers.dedup();
    assert!(numbers.iter().copied().eq(1..=200), "{numbers:?}");
    assert!(all <= 201, "{all}");
}

/// More than a client takes from one diff, on a path whose acknowledgments are late.
#[test]
fn very_many_short_lines() {
    let mut pair = pair(Link { delay: ms(400), ..GOOD });
    pair.output("\r\n".repeat(9_000).as_bytes()).run_ms(300);
    pair.output("\r\n".repeat(9_000).as_bytes()).run_ms(100);
    pair.output(numbered(2_000).as_bytes()).run_ms(60_000);
    assert_has(&pair, 2_000);
    assert_eq!(pair.client.view().ignored(), 0);
}

/// Rows that wrapped have the width of the window then, and those that did not have today's: each takes an event of its
/// own, and a diff may not have more events than a client takes.
#[test]
fn rows_of_two_widths_in_turn() {
    let mut pair = pair(Link { delay: ms(400), ..GOOD });
    pair.resize(size(24, 4)).run_ms(3_000);
    pair.output("abcdef\r\n".repeat(4_900).as_bytes()).run_ms(100);
    pair.resize(size(24, 9)).run_ms(3_000);
    pair.output("abcdef\r\n".repeat(4_900).as_bytes()).run_ms(60_000);
    assert_eq!(pair.client_exit().map(|exit| exit.cause), None);
    let history = pair.tty.history();
    let texts = (0..history.len()).filter_map(|at| history.text(at));
    assert!(texts.filter(|text| text.trim_end() == "abcdef").count() > 4_800);
    assert_eq!(pair.client.view().past().map(|past| past.depth() - past.told()), Some(0));
}

/// Lines with more links than may travel keep their text.
#[test]
fn a_line_of_links() {
    let mut pair = pair(GOOD);
    let links: String = (0..70)
        .map(|n| format!("\x1b]8;;http://x/{n}{}\x07{}", "y".repeat(1_900), n % 10))
        .collect();
    let line: String = (0..70).map(|n| (n % 10).to_string()).collect();
    let output = format!("{}{links}\x1b]8;;\x07\r\n", numbered(30));
    pair.output(output.as_bytes()).output(numbered(60).as_bytes()).run_ms(20_000);
    assert_eq!(pair.client.view().ignored(), 0);
    let history = pair.tty.history();
    let found = (0..history.len()).filter(|&at| history.text(at).unwrap().trim_end() == line);
    assert_eq!(found.count(), 1);
}

/// Each state leads to each later one by a diff, with lines that leave, come back, are erased, given up and told again:
/// the lines of the diff are those of the history when the later one was taken, with their text and renditions.
#[test]
fn states_with_lines_obey_the_laws() {
    let mut pair = pair(GOOD);
    pair.link = DEAD;
    let taken =
        |pair: &Pair| (pair.server.endpoint().local().clone(), pair.server.history().clone());
    let mut states: Vec<(View, History)> = vec![taken(&pair)];
    let steps = [
        numbered(10),
        looks(40),
        "\x1b[?1049hfull screen".to_owned(),
        format!("\x1b[?1049l{}", numbered(30)),
        "a line that is wrapped at the margin ".repeat(40),
        "\x1b[H\x1b[J\x1b[3J".to_owned(),
        looks(200),
        numbered(12_000),
    ];
    for step in &steps {
        pair.output(step.as_bytes()).run_ms(700);
        states.push(taken(&pair));
    }
    let mut compared = 0;
    for (at, (state, _)) in states.iter().enumerate() {
        for (later, history) in &states[at..] {
            laws(state, later);
            compared += compare_lines(state, later, history);
        }
    }
    let told = |view: &View| view.past().map(Past::told);
    assert!(told(&states[2].0) > told(&states[0].0), "no line was told");
    assert!(compared > 50, "{compared} lines were compared");
}

/// Lines of all kinds of text and renditions, each with its number.
fn looks(count: u32) -> String {
    let look = |n: u32| match n % 6 {
        0 => format!("\x1b[1;38;5;{}mcolour {n}\x1b[m and \x1b[4:3;58:5:9mcurls\x1b[m", n % 256),
        1 => format!("\x1b[48;2;1;2;{}mground {n} \x1b[K\x1b[m", n % 256),
        2 => format!("\x1b]8;id={n};http://x/{n}\x07link {n}\x1b]8;;\x07"),
        3 => format!("\u{6f22}\u{5b57} e\u{301} \u{1f468}\u{200d}\u{1f469} {n}"),
        4 => format!("\x1b#6double {n}"),
        _ => format!("\x1b]133;A\x07$ \x1b]133;B\x07{n} {}", "a line that goes on ".repeat(9)),
    };
    (1..=count).map(|n| format!("{}\r\n", look(n))).collect()
}

/// Compares the lines that one who has `state` is told with those of the history when `later` was taken. Returns how
/// many there are.
fn compare_lines(state: &View, later: &View, history: &History) -> u64 {
    let mut diff = Vec::new();
    later.diff_from(state, &mut diff);
    let mut told = state.clone();
    if !diff.is_empty() {
        told.apply(&diff).unwrap();
    }
    let Some(news) = told.past().and_then(Past::news) else { return 0 };
    assert_eq!(Some(news.end()), later.past().map(Past::told));
    let mut pool = Pool::new();
    // Of those that are erased or forgotten meanwhile nothing can be said.
    let kept = news.first().max(history.first())..news.end();
    for position in kept.clone() {
        assert_eq!(news.agrees(history, position), Some(true), "line {position}");
        let marks =
            [news, history].map(|lines| lines.row_at(position, 0, &mut pool).unwrap().marks());
        assert_eq!(marks[0], marks[1], "line {position}");
    }
    kept.end.saturating_sub(kept.start)
}

/// A path that fails just then, for longer than a few tries take.
#[test]
fn an_end_outlasts_a_blackout() {
    for blackout in [1_000, 4_000, 8_000] {
        let mut pair = native_in(GOOD, TtyScreen::Main);
        pair.run_ms(2_000).output(numbered(3_000).as_bytes());
        pair.link = DEAD;
        pair.server.child_exited(pair.now, 3);
        pair.run_ms(blackout);
        pair.link = GOOD;
        pair.run_ms(20_000);
        let exit = pair.client_exit().map(|exit| (exit.clean, exit.status));
        assert_eq!(exit, Some((true, Some(3))), "after {blackout} ms");
        assert_has(&pair, 3_000);
    }
}
