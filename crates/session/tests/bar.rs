//! What the client lays over the picture in a session in virtual time: its bar, and the status panel.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::time::Duration;

use common::{DEAD, GOOD, Pair, ms, native, server_address, size};
use rove_session::client::Cause;
use rove_session::server;
use rove_ssp::{Arrival, Machine, Reject, Session, Time};

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Nothing seals the version of a datagram: once the server was heard, nobody gets one shown.
#[test]
fn a_strangers_version_is_shown_to_nobody() {
    let mut pair = native(GOOD);
    let says = |pair: &mut Pair| {
        let now = pair.now;
        let mut datagram = [[0x24, 0, 0, 0, 7].as_slice(), &[0; 30]].concat();
        let arrival = Arrival { from: server_address().into(), congested: false };
        let refused = pair.client.handle_datagram(now, arrival, &mut datagram);
        assert_eq!(refused, Err(Reject::Version { version: 1 }));
        pair.run_ms(10).tty.screen().text().concat().contains("version 1")
    };
    assert!(says(&mut pair), "an old client is to learn why it gets no further");
    pair.output(b"$").run(secs(30));
    assert!(!says(&mut pair));
}

/// A wrong key is no blocked port.
#[test]
fn somebody_else_is_there() {
    let mut pair = Pair::new(DEAD);
    let arrival = Arrival { from: server_address().into(), congested: false };
    assert!(pair.client.handle_datagram(pair.now, arrival, &mut [7; 60]).is_err());
    pair.run_ms(250);
    let text = "What comes from UDP port 60001 is not sealed with this session's key.";
    assert_eq!(pair.top(), cut(&format!("rove: {text} [To quit: Ctrl-^ .]"), 80));
}

#[test]
fn nobody_is_there() {
    let mut pair = Pair::new(DEAD);
    pair.run_ms(249);
    assert_eq!(pair.top(), "");
    let text = "Nothing received from server on UDP port 60001.";
    for (now, bar) in [
        (250, format!("rove: {text} [To quit: Ctrl-^ .]")),
        (6500, format!("rove: {text} [To quit: Ctrl-^ .]")),
        (7000, format!("rove: {text} (7 s without contact.) [To quit: Ctrl-^ .]")),
        (
            15_001,
            "rove: Timed out waiting for server... (15 s without contact.) [To quit: Ctrl-^ .]"
                .into(),
        ),
    ] {
        let wait = Time::from_millis(now).since(pair.now);
        pair.run(wait);
        assert_eq!(pair.top(), cut(&bar, 80), "{now}");
    }
    pair.run(secs(11));
    let exit = pair.client_exit().expect("the client gave up");
    assert_eq!((exit.cause, exit.clean, exit.contact), (Cause::NoContact, false, false));
    assert_eq!(exit.server.port(), 60001);
    pair.run(secs(60));
    assert_eq!(pair.server_exit().map(|exit| exit.cause), Some(server::Cause::NoContact));
    assert_eq!(pair.now.since(Time::ZERO), secs(86) + ms(1));
}

/// As the bar is cut at the right margin.
fn cut(text: &str, columns: usize) -> String {
    text.chars().take(columns).collect::<String>().trim_end().to_owned()
}

#[test]
fn the_bar_comes_and_goes() {
    let mut pair = Pair::new(GOOD);
    pair.output("日本 hello\r\n".as_bytes()).run(secs(1));
    pair.link = DEAD;
    pair.run(secs(12));
    let top = pair.top();
    assert!(top.starts_with("rove: Last contact 1") && top.contains("seconds ago."), "{top}");
    let style = pair.tty.screen().cell_style(0, 79);
    assert_eq!(style.bg, rove_term::Color::indexed(4), "the bar is a whole row wide");
    assert!(pair.tty.screen().modes().cursor_visible, "the cursor is below");
    pair.painted.clear();
    pair.run(secs(10));
    assert!(pair.painted.len() < 10 * 40, "a second costs {} octets", pair.painted.len() / 10);
    pair.keys(b"ls\r").run_ms(1);
    assert!(pair.top().contains(" seconds ago; 3 keys wait. [To quit"), "{}", pair.top());
    pair.run(secs(3600));
    assert!(pair.top().starts_with("rove: Last contact 1:00:"), "{}", pair.top());
    pair.link = GOOD;
    pair.run(secs(5));
    assert_eq!(pair.text(), ["日本 hello", "ls"]);
}

#[test]
fn the_bar_hides_the_cursor_it_would_cover() {
    let mut pair = Pair::new(GOOD);
    pair.run(secs(1));
    pair.keys(b"\x1e").run_ms(1);
    let help = "rove: Commands: . quits, s status, Ctrl-Z suspends, ^ types Ctrl-^";
    assert_eq!(pair.top(), help);
    assert!(!pair.tty.screen().modes().cursor_visible);
    pair.keys(b"^").run_ms(1);
    assert_eq!(pair.top(), "");
    assert!(pair.tty.screen().modes().cursor_visible);
    pair.run_ms(100);
    assert_eq!(pair.typed, b"\x1e");
}

#[test]
fn network_errors_are_shown_for_a_while() {
    let mut pair = Pair::new(GOOD);
    pair.run(secs(1));
    pair.client.send_failed(pair.now, "sendto: Network is unreachable");
    pair.run_ms(3000);
    assert_eq!(pair.top(), "rove: sendto: Network is unreachable [To quit: Ctrl-^ .]");
    pair.run_ms(200);
    assert_eq!(pair.top(), "");
}

#[test]
fn only_one_way_is_broken() {
    let mut pair = Pair::new(GOOD);
    pair.run(secs(1));
    // Nothing the client sends arrives, while the server is heard.
    pair.up = Some(DEAD);
    pair.run(secs(9));
    assert_eq!(pair.top(), "");
    pair.run(secs(4));
    let top = pair.top();
    assert!(top.starts_with("rove: Last reply 1") && top.contains("seconds ago."), "{top}");
    pair.up = None;
    pair.run(secs(5));
    assert_eq!(pair.top(), "");
}

/// The panel is laid over the picture until a key is typed; `s` is not sent, all others are.
#[test]
fn the_status_panel() {
    let mut pair = Pair::new(GOOD);
    pair.output(b"$ ").run(secs(3));
    pair.keys(b"\x1es").run(secs(1));
    let lines = pair.text();
    assert_eq!(lines.len(), 24);
    assert!(lines[0] == "$" && lines[11].contains("+- rove --"), "{lines:#?}");
    assert!(lines[12].contains("round trip 20 ms"), "{lines:#?}");
    assert!(lines[23].contains("s closes"), "{lines:#?}");
    let received = lines[18].clone();
    pair.output(b"\x1b[H\x1b[2Kbelow goes on").run(secs(2));
    let lines = pair.text();
    assert_eq!(lines[0], "below goes on");
    assert!(lines[18] != received, "the figures are of the last second: {lines:#?}");
    pair.keys(b"s").run(secs(1));
    assert_eq!(pair.text(), ["below goes on"]);
    pair.keys(b"\x1es").run(secs(1));
    pair.keys(b"xs").run(secs(1));
    assert_eq!(pair.text(), ["below goes onxs"]);
    assert_eq!(pair.typed, b"xs");
}

/// A window smaller than the panel shows what fits.
#[test]
fn the_status_panel_in_a_small_window() {
    let mut pair = Pair::new(GOOD);
    pair.resize(size(5, 20)).run(secs(1));
    pair.keys(b"\x1es").run(secs(1));
    assert_eq!(pair.text()[0], "+- rove ------------");
    assert_eq!(pair.text()[4], "|            receive");
    pair.keys(b"s").run(secs(1));
    assert_eq!(pair.text(), [""; 0]);
}
