//! A whole session in virtual time, through the public interface: what a user and a program would see.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::time::Duration;

use common::{
    BAD, DEAD, GOOD, Link, Pair, client_config, echo, ms, native, server_config, size, trimmed,
};
use rove_session::client::{self, Cause, TtyScreen};
use rove_session::{Escape, Peer, Server, server};
use rove_ssp::{Machine, Outbox, State, StateNum, Time};
use rove_term::{Checksums, Size};

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn peers() -> [Peer; 2] {
    [Peer::Stock, Peer::Rove]
}

fn pair(link: Link, peer: Peer) -> Pair {
    Pair::with(link, client_config(peer), server_config(peer))
}

#[test]
fn the_first_state_says_the_size_and_the_server_follows() {
    for peer in peers() {
        let mut client = client_config(peer);
        client.size = size(40, 100);
        let mut pair = Pair::with(GOOD, client, server_config(peer));
        pair.output(b"ready").run_ms(100);
        let events = [server::Event::FirstContact, server::Event::Resize(size(40, 100))];
        assert_eq!(pair.server_events, events);
        assert_eq!(pair.client.view().screen().size(), size(40, 100));
        assert_eq!(pair.text(), ["ready"]);
    }
}

/// A server whose client never comes ends after a minute: until then it waits, and says nothing to anybody.
#[test]
fn an_unclaimed_server_ends_after_a_minute() {
    for peer in peers() {
        let mut server = Server::new(Time::ZERO, server_config(peer));
        let mut ended = None;
        let mut now = Time::ZERO;
        while ended.is_none() {
            assert!(server.poll_transmit(now, &mut Outbox::default()).is_none());
            ended = server.poll_event();
            if ended.is_none() {
                now = server.poll_timeout().unwrap();
            }
        }
        let Some(server::Event::Exited(exit)) = ended else { panic!("{ended:?}") };
        assert_eq!((exit.cause, now), (server::Cause::NoContact, Time::ZERO + secs(60)));
    }
}

/// What a program says at once is there a round trip and 20 ms after the first datagram.
#[test]
fn the_first_frame_comes_after_one_round_trip() {
    for delay_ms in [1, 10, 50, 150, 1000] {
        let mut pair = native(Link { delay: ms(delay_ms), ..GOOD });
        let bound = ms(2 * delay_ms + 20);
        while pair.server_events.is_empty() {
            pair.run_ms(1);
            assert!(pair.now.since(Time::ZERO) <= bound, "nobody is heard, {delay_ms} ms");
        }
        pair.output(b"$");
        while trimmed(pair.client.view().screen()).is_empty() {
            pair.run_ms(1);
            assert!(pair.now.since(Time::ZERO) <= bound, "no prompt after {bound:?}");
        }
        assert_eq!(trimmed(pair.client.view().screen()), ["$"]);
    }
}

/// A key each 5 s, heartbeats counted, in a session too young to know much of its path.
#[test]
fn a_key_alone_takes_no_more_datagrams_than_stocks() {
    for delay_ms in [10, 50, 150] {
        let link = Link { delay: ms(delay_ms), ..GOOD };
        let datagrams = |mut pair: Pair| {
            let sent = |pair: &Pair| {
                pair.client.endpoint().stats().sent.datagrams
                    + pair.server.endpoint().stats().sent.datagrams
            };
            pair.run(secs(30));
            let before = sent(&pair);
            (0..4).for_each(|_| drop(pair.keys(b"x").run(secs(5)).text()));
            sent(&pair) - before
        };
        let (ours, stocks) = (datagrams(native(link)), datagrams(pair(link, Peer::Stock)));
        assert!(ours <= stocks, "{delay_ms} ms one way: {ours} for four keys, stock {stocks}");
    }
}

#[test]
fn typed_keys_reach_the_program_once_and_in_order() {
    for (link, peer) in [(GOOD, Peer::Stock), (BAD, Peer::Stock), (BAD, Peer::Rove)] {
        let mut pair = pair(link, peer);
        pair.run(secs(2));
        let mut all: Vec<u8> = Vec::new();
        for n in 0..200 {
            let key = format!("{n:x}");
            all.extend(key.as_bytes());
            pair.keys(key.as_bytes()).run_ms(100);
        }
        pair.link = GOOD;
        pair.run(secs(10));
        assert_eq!(pair.typed, all);
        assert_eq!(pair.text(), trimmed(pair.server.screen()));
        assert_eq!(pair.text().concat().as_bytes(), all);
        assert_eq!(pair.client.endpoint().local().held(), 0, "all is acknowledged");
    }
}

#[test]
fn a_paste_is_slowed_down_rather_than_lost() {
    let mut pair = Pair::new(GOOD);
    pair.program = |_| Vec::new();
    pair.run_ms(100);
    pair.link = DEAD;
    let block = b"0123456789abcdef".repeat(4096);
    let mut pasted: Vec<u8> = Vec::new();
    while pair.client.wants_keys() {
        pair.keys(&block);
        pasted.extend(&block);
    }
    assert_eq!(pasted.len(), 1 << 20);
    pair.run(secs(1));
    assert!(!pair.client.wants_keys());
    pair.link = GOOD;
    pair.run(secs(20));
    assert!(pair.client.wants_keys());
    assert!(pair.typed == pasted);
}

/// While too much is unacknowledged nobody reads the terminal. That is no pause in a paste: what comes of it afterwards
/// is no command, although it looks like keys and comes late.
#[test]
fn a_paste_that_waits_for_an_outage_is_no_command() {
    for closed in ["", "\x1b[201~"] {
        let mut pair = Pair::new(GOOD);
        pair.program = |_| Vec::new();
        pair.output(b"\x1b[?2004h").run(secs(1));
        pair.link = DEAD;
        let block = b"0123456789abcdef".repeat(4096);
        let mut pasted = b"\x1b[200~".to_vec();
        pair.keys(b"\x1b[200~");
        while pair.client.wants_keys() {
            let last = [&block, closed.as_bytes()].concat();
            pair.keys(&last);
            pasted.extend(&last);
        }
        pair.run(secs(10));
        assert!(!pair.client.wants_keys());
        pair.link = GOOD;
        while !pair.client.wants_keys() {
            pair.run_ms(1);
        }
        pair.keys(b"\x1e.").run(secs(20));
        pasted.extend(b"\x1e.");
        assert!(pair.typed == pasted, "{closed:?}: {} of {}", pair.typed.len(), pasted.len());
        assert_eq!(pair.client_events, []);
        // What is typed later is a command.
        pair.keys(b"\x1e.").run(secs(1));
        assert!(matches!(pair.client_events[..], [client::Event::Exited(_)]), "{closed:?}");
    }
}

#[test]
fn the_echo_ack_comes_50_ms_after_the_key_and_covers_the_echo() {
    let mut pair = Pair::new(GOOD);
    pair.run(secs(1));
    let before = pair.client.view().echo_ack();
    pair.keys(b"x");
    let typed_at = pair.now;
    while pair.client.view().echo_ack() == before {
        pair.run_ms(1);
    }
    // 1 ms to gather keys, 10 ms each way, 50 ms to judge, 8 ms to gather screens.
    let took = pair.now.since(typed_at);
    assert!((ms(70)..=ms(100)).contains(&took), "{took:?}");
    assert_eq!(pair.text(), ["x"]);
}

#[test]
fn a_state_without_events_gets_no_echo_ack() {
    let mut pair = Pair::new(GOOD);
    pair.run(secs(1));
    assert_eq!(pair.client.view().echo_ack(), StateNum::from(1));
    pair.run(secs(30));
    assert_eq!(pair.client.view().echo_ack(), StateNum::from(1));
}

#[test]
fn a_resize_storm_ends_at_the_last_size() {
    for peer in peers() {
        let mut pair = pair(GOOD, peer);
        pair.output(b"one\r\ntwo").run(secs(1));
        let before = pair.sizes().len();
        for n in 0..200 {
            pair.resize(size(20 + n % 30, 60 + n)).run_ms(5);
        }
        pair.run(secs(2));
        let sizes = pair.sizes();
        assert_eq!(sizes.last(), Some(&size(39, 259)));
        // One second of storm: at most 20 changes, and the last.
        assert!(sizes.len() - before <= 22, "{}", sizes.len());
        assert_eq!(pair.client.view().screen().size(), size(39, 259));
        assert_eq!(pair.text(), ["one", "two"]);
    }
}

#[test]
fn resizes_without_answer_do_not_pile_up() {
    let mut pair = Pair::new(GOOD);
    pair.run(secs(1));
    pair.link = DEAD;
    for n in 0..1000 {
        pair.resize(size(24, 80 + n % 100)).run_ms(1);
    }
    assert!(pair.client.endpoint().local().resizes() <= 64);
    pair.link = GOOD;
    pair.resize(size(30, 90)).run(secs(10));
    assert_eq!(pair.sizes().last(), Some(&size(30, 90)));
}

#[test]
fn the_picture_waits_for_the_servers_size() {
    let mut pair = Pair::new(Link { delay: ms(200), ..GOOD });
    pair.output(b"hello").run(secs(2));
    pair.painted.clear();
    pair.resize(size(30, 90)).run_ms(300);
    assert_eq!(pair.painted, b"");
    pair.run_ms(300);
    assert_ne!(pair.painted, b"");
    assert_eq!(pair.text(), ["hello"]);
}

#[test]
fn a_screen_larger_than_the_window_is_cut() {
    let mut pair = Pair::new(Link { delay: ms(500), ..GOOD });
    pair.output(b"\x1b[20;70Hcorner\x1b[H\x1b[30mtop left").run(secs(3));
    assert_eq!(pair.text().len(), 20);
    // The server's answer is a second away; a frame of the old size comes first.
    pair.resize(size(10, 20)).output(b"!").run_ms(800);
    assert_eq!(pair.text(), ["top left!"]);
    assert_eq!(pair.client.view().screen().size(), size(24, 80));
    pair.run(secs(2));
    assert_eq!(pair.client.view().screen().size(), size(10, 20));
}

#[test]
fn ctrl_l_is_sent_and_repaints() {
    let mut pair = Pair::new(GOOD);
    pair.output(b"hello").run(secs(1));
    pair.tty.advance(b"\x1b[Hgarbage\x1b[5;5Hmore garbage");
    pair.keys(b"\x0c").run(secs(1));
    assert_eq!(pair.typed, b"\x0c");
    assert_eq!(pair.text(), ["hello"]);
}

#[test]
fn suspending_repaints_when_it_is_over() {
    let mut pair = Pair::new(GOOD);
    pair.output(b"hello").run(secs(1));
    pair.keys(b"a\x1e\x1ab").run(secs(1));
    assert_eq!(pair.client_events, [client::Event::Suspend]);
    assert_eq!(pair.typed, b"ab");
    let (open, close) = (pair.client.tty_open(), pair.client.tty_close());
    pair.tty.advance(&close);
    pair.tty.advance(b"$ fg\r\n");
    pair.tty.advance(&open);
    pair.client.resumed();
    pair.run_ms(10);
    assert_eq!(pair.text(), ["helloab"]);
}

#[test]
fn the_server_ends_when_its_program_does() {
    for (peer, status) in [(Peer::Stock, None), (Peer::Rove, Some(3))] {
        let mut pair = pair(GOOD, peer);
        pair.output(b"$ ").run(secs(1));
        pair.output(b"exit\r\n");
        pair.server.child_exited(pair.now, 3);
        pair.run(secs(1));
        let exit = pair.client_exit().expect("the client has left");
        assert_eq!((exit.cause, exit.clean, exit.status), (Cause::PeerLeft, true, status));
        let exit = pair.server_exit().expect("the server has left");
        assert_eq!((exit.cause, exit.clean), (server::Cause::Closed, true));
        assert_eq!(pair.text(), ["$ exit"], "the last screen rides on the end");
        assert_eq!(pair.client.poll_timeout(), None);
        assert_eq!(pair.server.poll_timeout(), None);
    }
}

#[test]
fn a_program_that_ends_before_the_client_comes_is_shown_to_it() {
    let mut pair = pair(GOOD, Peer::Rove);
    pair.output(b"done").server.child_exited(Time::ZERO, 1);
    pair.run(secs(2));
    assert_eq!(pair.text(), ["done"]);
    assert_eq!(pair.client_exit().map(|exit| (exit.clean, exit.status)), Some((true, Some(1))));
}

#[test]
fn the_user_quits() {
    let mut pair = Pair::new(GOOD);
    pair.run(secs(1));
    pair.keys(b"ab\x1e.never typed").run_ms(5);
    assert_eq!(pair.top(), "rove: Exiting on user request... [To quit: Ctrl-^ .]");
    pair.run(secs(1));
    assert_eq!(pair.typed, b"ab", "what was typed before is delivered");
    assert_eq!(pair.top(), "ab", "no bar is left behind");
    let exit = pair.client_exit().expect("the client has left");
    assert_eq!((exit.cause, exit.clean), (Cause::Quit, true));
    let exit = pair.server_exit().expect("the server has left");
    assert_eq!((exit.cause, exit.clean), (server::Cause::PeerLeft, true));
}

#[test]
fn ends_without_an_answer() {
    let mut pair = Pair::new(GOOD);
    pair.run(secs(1));
    pair.link = DEAD;
    pair.client.handle_signal(pair.now);
    pair.run_ms(5);
    assert_eq!(pair.top(), "rove: Signal received, shutting down... [To quit: Ctrl-^ .]");
    pair.run(secs(11));
    let exit = pair.client_exit().expect("the client gave up");
    assert_eq!((exit.cause, exit.clean, exit.contact), (Cause::Signal, false, true));
    // A second one is not kept waiting.
    let mut pair = Pair::new(GOOD);
    pair.run(secs(1));
    pair.link = DEAD;
    pair.client.handle_eof(pair.now);
    pair.client.handle_signal(pair.now);
    pair.server.close(pair.now);
    pair.server.close(pair.now);
    pair.run_ms(1);
    assert_eq!(pair.client_exit().map(|exit| exit.clean), Some(false));
    assert_eq!(pair.server_exit().map(|exit| exit.clean), Some(false));
}

#[test]
fn titles_get_the_prefix() {
    for (prefix, title) in [("[rove] ", "[rove] vim"), ("", "vim")] {
        let mut client = client_config(Peer::Stock);
        client.title_prefix = prefix.to_owned();
        let mut pair = Pair::with(GOOD, client, server_config(Peer::Stock));
        pair.run(secs(1));
        assert_eq!(pair.tty.screen().title(), None, "nobody set one");
        pair.output(b"\x1b]0;vim\x07").run(secs(1));
        assert_eq!(pair.tty.screen().title(), Some(title));
        assert_eq!(pair.tty.screen().icon(), Some(title));
    }
}

#[test]
fn the_terminal_is_left_as_it_was() {
    for window in [TtyScreen::Alternate, TtyScreen::Main] {
        let mut client = client_config(Peer::Stock);
        client.window = window;
        let mut pair = Pair::with(GOOD, client, server_config(Peer::Stock));
        let modes = "\x1b[?5h\x1b[?9h\x1b[?1003h\x1b[?1006h\x1b[?1004h\x1b[?2004h\x1b[?25l\x1b[4 q";
        pair.output(format!("{modes}\x1b[5;5H\x1b[1;31mfull screen").as_bytes()).run(secs(1));
        assert!(pair.tty.screen().modes().bracketed_paste);
        let close = pair.client.tty_close();
        pair.tty.advance(&close);
        assert_eq!(*pair.tty.screen().modes(), rove_term::Modes::RESET, "{window:?}");
        assert_eq!(pair.tty.screen().pen(), Default::default(), "{window:?}");
        let left = match window {
            TtyScreen::Alternate => (0, vec![]),
            TtyScreen::Main | TtyScreen::Inline => (5, vec!["    full screen".to_owned()]),
        };
        let text = trimmed(pair.tty.screen()).into_iter().filter(|row| !row.is_empty()).collect();
        assert_eq!((pair.tty.screen().cursor().row, text), left, "{window:?}");
    }
}

#[test]
fn arrow_keys_are_what_the_program_asked_for() {
    for (mode, keys) in [("", "\x1b[A"), ("\x1b[?1h", "\x1bOA")] {
        let mut pair = Pair::new(GOOD);
        pair.output(mode.as_bytes()).run(secs(1));
        pair.keys(b"\x1bO").run_ms(40);
        pair.keys(b"A").run(secs(1));
        assert_eq!(pair.typed, keys.as_bytes(), "{mode:?}");
    }
}

#[test]
fn queries_are_answered_by_the_server_alone() {
    let mut pair = Pair::new(GOOD);
    pair.program = |_| Vec::new();
    pair.run(secs(1));
    pair.output(b"\x1b[5n").run(secs(1));
    assert_eq!(pair.typed, b"\x1b[0n");
    assert!(!pair.painted.windows(4).any(|octets| octets == b"\x1b[5n"));
}

#[test]
fn synchronized_output_is_held_but_not_for_long() {
    let mut pair = Pair::new(GOOD);
    pair.run(secs(1));
    pair.output(b"\x1b[?2026hhalf").run_ms(100);
    assert_eq!(pair.top(), "");
    pair.output(b" whole\x1b[?2026l").run_ms(50);
    assert_eq!(pair.top(), "half whole");
    pair.output(b"\x1b[?2026h, and stuck").run_ms(140);
    assert_eq!(pair.top(), "half whole");
    pair.run_ms(60);
    assert_eq!(pair.top(), "half whole, and stuck");
}

/// However a program's output is cut: it may never be read between two of its updates.
#[test]
fn updates_without_a_pause_are_seen_picture_by_picture() {
    let mut pair = Pair::new(GOOD);
    pair.run(secs(1));
    pair.output(b"\x1b[?2026hhalf");
    let mut last = 0;
    for picture in 1..=40 {
        let rest = format!("\r{picture} whole\x1b[?2026l\x1b[?2026h\x1b[2J\x1b[Hhalf");
        pair.output(rest.as_bytes()).run_ms(30);
        let top = pair.top();
        let shown = top.strip_suffix(" whole").and_then(|number| number.parse::<u32>().ok());
        assert!(shown.is_some() || top.is_empty(), "{top:?} while {picture} was drawn");
        last = shown.unwrap_or(last);
    }
    assert!(last >= 39, "{last}");
    pair.run_ms(200);
    assert_eq!(pair.top(), "half", "the last one is stuck");
    pair.output(b"\rwhole\x1b[?2026l").run_ms(50);
    assert_eq!(pair.top(), "whole");
}

/// What a program leaves undone when it ends is shown as it is.
#[test]
fn an_update_that_its_program_does_not_end() {
    let mut pair = Pair::new(GOOD);
    pair.run(secs(1));
    pair.output(b"\x1b[?2026hlast words").run_ms(20);
    pair.server.child_exited(pair.now, 0);
    pair.run(secs(1));
    assert_eq!(pair.top(), "last words");
}

#[test]
fn a_client_that_is_silent_for_too_long_loses_the_session() {
    let mut server = server_config(Peer::Stock);
    server.network_timeout = Some(secs(60));
    let mut pair = Pair::with(GOOD, client_config(Peer::Stock), server);
    pair.run(secs(300));
    assert_eq!(pair.server_exit(), None, "keep-alives are contact");
    pair.link = DEAD;
    pair.run(secs(75));
    let exit = pair.server_exit().expect("the server gave up");
    assert_eq!((exit.cause, exit.clean), (server::Cause::Silence, false));
}

/// As far as a clock that never steps can jump: the machines have slept. Nothing is counted over that time.
#[test]
fn ten_years_asleep() {
    for mut pair in [Pair::new(GOOD), native(GOOD)] {
        pair.keys(b"be").run(secs(2));
        pair.now = pair.now + secs(10 * 365 * 24 * 3600);
        pair.keys(b"fore").run(secs(5));
        assert_eq!(
            (pair.typed.as_slice(), pair.text()),
            (&b"before"[..], vec!["before".to_owned()])
        );
    }
}

#[test]
fn an_idle_session_is_quiet() {
    let mut pair = Pair::new(GOOD);
    pair.run(secs(10));
    pair.painted.clear();
    let (client, server) = (
        pair.client.endpoint().stats().sent.datagrams,
        pair.server.endpoint().stats().sent.datagrams,
    );
    pair.run(secs(300));
    assert_eq!(pair.painted, b"");
    let sent = pair.client.endpoint().stats().sent.datagrams - client;
    assert!((90..=110).contains(&sent), "{sent} in 5 minutes");
    let sent = pair.server.endpoint().stats().sent.datagrams - server;
    assert!((90..=110).contains(&sent), "{sent} in 5 minutes");
}

#[test]
fn the_escape_key_can_be_another_or_none() {
    for (setting, keys, typed) in
        [(&b""[..], &b"\x1e.~."[..], &b"\x1e.~."[..]), (b"~", b"\x1e.\r~~~\r~z", b"\x1e.\r~~\r~z")]
    {
        let mut client = client_config(Peer::Stock);
        client.escape = Escape::from_setting(setting);
        let mut pair = Pair::with(GOOD, client, server_config(Peer::Stock));
        pair.run(secs(1));
        pair.keys(keys).run(secs(1));
        assert_eq!(pair.typed, typed, "{setting:?}");
        assert_eq!(pair.client_exit(), None);
    }
}

/// `mosh-protocol.md` §10: what aborts a stock client only counts here.
#[test]
fn faulty_events_are_ignored_and_counted() {
    use rove_session::View;
    use rove_session::messages::{Dimensions, HostEvent, write_host};
    let mut diff = Vec::new();
    for event in [
        HostEvent::EchoAck(5),
        HostEvent::Bytes(b"a\x1b[c"),
        HostEvent::EchoAck(4),
        HostEvent::Resize(Dimensions { width: 0, height: 0 }),
        HostEvent::Bytes(b"b\x1b[6n"),
    ] {
        write_host(event, &mut diff);
    }
    let mut view = View::new(Size::DEFAULT, Peer::Stock);
    assert_eq!(view.apply(&diff), Ok(()));
    assert_eq!((view.ignored(), view.echo_ack()), (4, StateNum::from(5)));
    assert_eq!((view.screen().size(), view.screen().row_text(0)), (Size::DEFAULT, "ab".into()));
    assert!(view.apply(b"\x0a\x05").is_err());
}

#[test]
fn echo_is_what_a_terminal_does() {
    assert_eq!(echo(b"a\r"), b"a\r\n");
}

/// A checksum of one cell tells what stands there: it is for test suites.
#[test]
fn checksums_are_answered_where_that_is_allowed() {
    for (checksums, answer) in
        [(Checksums::Ignored, &b""[..]), (Checksums::Answered, &b"\x1bP1!~FF9F\x1b\\"[..])]
    {
        let mut server = Server::new(Time::ZERO, server_config(Peer::Rove));
        server.set_checksums(checksums);
        server.handle_output(Time::ZERO, b"a\x1b[1;0;1;1;1;1*y");
        let mut input = Vec::new();
        server.poll_input(&mut input);
        assert_eq!(input, answer, "{checksums:?}");
    }
}
