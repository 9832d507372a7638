//! Diffs and output that would take long (threats rows 1, 9 and 10): a diff that takes more work than any screen
//! needs cannot be read, and what takes less is done in turns, between which keys are looked at.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::ops::Range;

use common::{client_config, server_address, server_config, size};
use rove_session::client::{Cause, Event};
use rove_session::messages::{Dimensions, HostEvent, write_host};
use rove_session::work::{LINK_OCTETS_MAX, TURN_CELLS, TURN_OCTETS, diff_cells_max};
use rove_session::{Client, LineMode, Peer, Server, View};
use rove_ssp::{
    Applied, Arrival, BadDiff, Deflater, Envelope, Exhausted, Fragment, Header, Instruction,
    Machine, Outbox, Reject, Seq, State, StateNum, Time, Wire,
};
use rove_term::{Dialect, Size, Terminal};

fn diff(events: &[HostEvent<'_>]) -> Vec<u8> {
    let mut diff = Vec::new();
    events.iter().for_each(|&event| write_host(event, &mut diff));
    diff
}

fn bytes(octets: &str) -> Vec<u8> {
    diff(&[HostEvent::Bytes(octets.as_bytes())])
}

fn resize(size: Size) -> HostEvent<'static> {
    HostEvent::Resize(Dimensions { width: size.cols.into(), height: size.rows.into() })
}

const TOO_MUCH: BadDiff = BadDiff("it takes more work than a screen can need");

/// Sequences that take long each, for few octets: once they are an honest diff, or nobody's business; so often
/// that they would freeze a client, they are not. The first two are the review's of 164 octets.
const HOSTILE: [(&str, &str); 14] = [
    ("", "\x1b#8"),
    ("", "\x1b[;;;;1;4;5;7$t"),
    ("", "\x1bc"),
    ("", "\x1b[2J"),
    ("\x1b[41m", "\x1b[J"),
    ("", "\x1b[1;1;;;1;2;1$v"),
    ("", "\x1b[999S"),
    ("", "\x1b[999L"),
    ("", "x\x1b[65535b"),
    ("", "\x1b[?1047h\x1b[?1047l"),
    ("\x1b[?69h\x1b[2;999s\x1b[999;5H", "\n"),
    ("\x1b[?69h\x1b[2;999s\x1b[999;5H", "\x1bD"),
    ("\x1b[4h\x1b[?69h\x1b[2;3s\x1b[999;3H", "xxxx"),
    ("\x1bV", "\x1b[X\x1b[2K\x1b[1J\x1b[J"),
];

#[test]
fn a_diff_that_takes_too_much_work_cannot_be_read() {
    for (rows, cols) in [(200, 1000), (1000, 200), (24, 80)] {
        let size = size(rows, cols);
        for (set_up, sequence) in HOSTILE {
            let fresh = || View::new(size, Peer::Rove);
            let once = bytes(&format!("{set_up}{}", sequence.repeat(2)));
            assert_eq!(fresh().apply(&once), Ok(()), "{sequence:?} on {size:?}");
            let often = bytes(&format!("{set_up}{}", sequence.repeat(100_000)));
            assert_eq!(fresh().apply(&often), Err(TOO_MUCH), "{sequence:?} on {size:?}");
        }
    }
}

/// What stock knows of them. Its terminal has no margins at the sides, and no rectangles.
#[test]
fn nor_one_of_a_stock_server() {
    for sequence in ["\x1b#8", "\x1bc", "\x1b[2J", "\x1b[999L", "\x1b[?3h"] {
        let mut view = View::new(size(200, 1000), Peer::Stock);
        assert_eq!(view.apply(&bytes(&sequence.repeat(5))), Ok(()), "{sequence:?}");
        assert_eq!(view.apply(&bytes(&sequence.repeat(9000))), Err(TOO_MUCH), "{sequence:?}");
    }
}

/// Work done before a diff is refused is no more than it might take.
#[test]
fn a_diff_is_refused_in_time() {
    for (set_up, sequence) in HOSTILE {
        let size = size(200, 1000);
        let mut view = View::new(size, Peer::Rove);
        let diff = bytes(&format!("{set_up}{}", sequence.repeat(100_000)));
        let mut turns = 1;
        let refused = loop {
            match view.apply_part(&diff) {
                Ok(Applied::Part) => turns += 1,
                done => break done,
            }
        };
        assert_eq!(refused, Err(TOO_MUCH), "{sequence:?}");
        let most = diff_cells_max(size, size, diff.len()) / TURN_CELLS;
        let most = most + (diff.len() / TURN_OCTETS) as u64 + 2;
        assert!(turns <= most, "{sequence:?}: {turns} turns of {most}");
    }
}

#[test]
fn a_diff_resizes_once() {
    let twice = [resize(size(10, 10)), HostEvent::Bytes(b"x"), resize(size(10, 10))];
    let none = HostEvent::Resize(Dimensions { width: 0, height: 10 });
    for (events, read) in [
        (&[resize(size(200, 1000))][..], Ok(())),
        (&[none, resize(size(10, 10)), none], Ok(())),
        (&twice, Err(BadDiff("the screen is resized twice"))),
        (&[resize(size(200, 1000)); 4096], Err(BadDiff("the screen is resized twice"))),
    ] {
        let mut view = View::new(Size::DEFAULT, Peer::Rove);
        assert_eq!(view.apply(&diff(events)), read, "{:?}", &events[..events.len().min(3)]);
    }
}

/// A diff of many turns: text that takes octets, and sequences that take cells.
fn long_diff() -> Vec<u8> {
    let text = "in the first event \u{4e16}\u{754c} ".repeat(12_000);
    let screens = "\x1b#8\x1b[31m\x1b[2J\x1b[c".repeat(10);
    diff(&[
        HostEvent::EchoAck(7),
        resize(size(200, 1000)),
        HostEvent::Bytes(text.as_bytes()),
        HostEvent::Line(LineMode::Cooked.into()),
        HostEvent::Bytes(screens.as_bytes()),
        HostEvent::Bytes(b"the end"),
        HostEvent::ExitStatus(3),
    ])
}

#[test]
fn parts_make_the_same_as_the_whole() {
    let diff = long_diff();
    let mut whole = View::new(Size::DEFAULT, Peer::Rove);
    whole.apply(&diff).unwrap();
    let mut view = View::new(Size::DEFAULT, Peer::Rove);
    let mut turns = 1;
    while view.apply_part(&diff).unwrap() == Applied::Part {
        turns += 1;
    }
    let octets = diff.len() / TURN_OCTETS;
    let cells = whole.cells_touched() / TURN_CELLS;
    assert!(octets >= 4 && cells >= 4 && turns > 7, "{octets}, {cells}, {turns}");
    assert_eq!(view.cells_touched(), whole.cells_touched());
    // A part goes on from a copy, too.
    let mut copy = View::new(Size::DEFAULT, Peer::Rove);
    for _ in 0..5 {
        assert_eq!(copy.apply_part(&diff), Ok(Applied::Part));
        copy = copy.clone();
    }
    copy.apply(&diff).unwrap();
    for view in [view, copy] {
        assert!(view == whole);
        assert_eq!((view.ignored(), whole.ignored()), (1, 1));
        assert_eq!((view.line(), view.exit_status()), (Some(LineMode::Cooked), Some(3)));
        assert!(view.screen().row_text(0).starts_with("the end"));
    }
}

/// Neither seals nor compresses: the server's instructions as they are.
struct Glass;

impl Wire for Glass {
    fn overhead(&self) -> usize {
        8
    }

    fn assemblies_max(&self) -> usize {
        1
    }

    fn seal(&mut self, _: &Envelope, payload: &[u8], out: &mut Vec<u8>) -> Result<Seq, Exhausted> {
        out.clear();
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(payload);
        Ok(Seq::new(0))
    }

    fn open(&mut self, datagram: &mut [u8]) -> Result<(Header, Range<usize>), Reject> {
        let seq = Seq::new(u64::from_be_bytes(datagram[..8].try_into().unwrap()));
        Ok((Header { seq, ..Header::default() }, 8..datagram.len()))
    }

    fn pack(&self, message: &Instruction, _: &mut Deflater, out: &mut Vec<u8>) {
        out.clear();
        message.encode(out);
    }

    fn unpack(&self, bytes: &[u8]) -> Result<Instruction, Reject> {
        Instruction::decode(bytes)
    }
}

fn client() -> Client {
    let mut config = client_config(Peer::Rove);
    config.wire = Box::new(Glass);
    let mut client = Client::new(Time::ZERO, config);
    client.apply_in_parts();
    client
}

/// Hands the client the state `new` that this diff makes of `old`, in one datagram.
fn tell(client: &mut Client, now: Time, [old, new]: [u64; 2], diff: &[u8]) {
    let (old, new) = (StateNum::from(old), StateNum::from(new));
    let message = Instruction { old, new, diff: diff.to_vec(), ..Instruction::default() };
    let mut packed = Vec::new();
    message.encode(&mut packed);
    let mut datagram = new.get().to_be_bytes().to_vec();
    Fragment { id: new.get().into(), number: 0, last: true, contents: &packed }
        .encode(&mut datagram);
    let arrival = Arrival { from: server_address().into(), congested: false };
    assert_eq!(client.handle_datagram(now, arrival, &mut datagram), Ok(()));
}

/// Between two turns keys go out, the escape key closes, and the picture is the last whole one.
#[test]
fn keys_are_looked_at_between_the_turns_of_a_diff() {
    let now = Time::from_millis(1);
    let (mut client, mut out) = (client(), Vec::new());
    tell(&mut client, now, [0, 1], &bytes("before"));
    assert!(!client.is_applying());
    tell(&mut client, now, [1, 2], &long_diff());
    let mut turns = 0;
    while client.is_applying() {
        assert_eq!(
            (client.endpoint().remote_num(), client.view().echo_ack()),
            (1.into(), StateNum::ZERO)
        );
        client.handle_keys(now, b"k");
        client.poll_paint(now, &mut out);
        while client.poll_transmit(now, &mut Outbox::default()).is_some() {}
        client.apply_part(now);
        turns += 1;
    }
    assert!(turns > 6, "{turns}");
    assert_eq!((client.endpoint().remote_num(), client.view().echo_ack()), (2.into(), 7.into()));
    assert_eq!(client.view().exit_status(), Some(3));

    // Whoever hands over the next datagram at once gets both.
    tell(&mut client, now, [2, 3], &bytes(&"\x1b#8".repeat(40)));
    assert!(client.is_applying());
    tell(&mut client, now, [3, 4], &bytes("\x1b[Hafter"));
    assert!(!client.is_applying());
    assert!(client.view().screen().row_text(0).starts_with("afterEEE"));

    tell(&mut client, now, [4, 5], &bytes(&"\x1b#8".repeat(60)));
    assert!(client.is_applying());
    client.handle_keys(now, b"\x1e.");
    client.handle_keys(now, b"\x1e.");
    let Some(Event::Exited(exit)) = client.poll_event() else { panic!("the user has left") };
    assert_eq!(exit.cause, Cause::Quit);
    assert_eq!(client.poll_timeout(), None);
}

#[test]
fn a_diff_that_is_refused_in_a_later_turn_ends_the_session() {
    let now = Time::from_millis(1);
    let mut client = client();
    tell(&mut client, now, [0, 1], &bytes(&"\x1b#8".repeat(100_000)));
    while client.is_applying() {
        assert_eq!(client.poll_event(), None);
        client.apply_part(now);
    }
    let Some(Event::Exited(exit)) = client.poll_event() else { panic!("the session has failed") };
    let Cause::Failed(failure) = exit.cause else { panic!("{exit:?}") };
    let told = failure.to_string();
    assert_eq!(
        told,
        "the peer sent a diff that cannot be read: it takes more work than a screen can need"
    );
}

/// A program cannot keep its server from keys.
#[test]
fn a_server_takes_output_for_the_work_of_a_turn() {
    for (set_up, sequence) in HOSTILE {
        let mut config = server_config(Peer::Rove);
        config.size = size(200, 1000);
        let mut server = Server::new(Time::ZERO, config);
        server.handle_output(Time::ZERO, set_up.as_bytes());
        let octets = sequence.repeat(20_000);
        let taken = server.handle_output_part(Time::ZERO, octets.as_bytes());
        let mut terminal = Terminal::new(size(200, 1000), Dialect::ROVE);
        terminal.advance(set_up.as_bytes());
        let before = terminal.cells_touched();
        terminal.advance(&octets.as_bytes()[..taken]);
        let touched = terminal.cells_touched() - before;
        let most = TURN_CELLS + 4 * size(200, 1000).work();
        assert!((TURN_CELLS..=most).contains(&touched), "{sequence:?}: {touched} for {taken}");
    }
    let mut server = Server::new(Time::ZERO, server_config(Peer::Rove));
    let text = "a line of a log\r\n".repeat(TURN_OCTETS / 17);
    assert_eq!(server.handle_output_part(Time::ZERO, text.as_bytes()), text.len());
    assert_eq!(server.handle_output_part(Time::ZERO, b""), 0);
}

/// Two links of two thousand octets, copied over the largest screen by turns: 400 octets of which a frame would
/// make 400 MB.
fn many_links() -> String {
    let link = |letter: &str| format!("\x1b]8;;http://{}\x07x", letter.repeat(2000));
    let mut octets = link("a") + &link("b");
    for cols in (1..10).map(|power| 1 << power) {
        octets += &format!("\x1b[1;1;1;{cols};1;1;{}$v", cols + 1);
    }
    for rows in (0..8).map(|power| 1 << power) {
        octets += &format!("\x1b[1;1;{rows};1000;1;{};1;1$v", rows + 1);
    }
    octets
}

#[test]
fn links_do_not_grow_a_frame_or_a_paint() {
    const FRAME_OCTETS_MAX: usize = LINK_OCTETS_MAX + (1 << 20);
    let largest = size(200, 1000);
    let now = Time::from_millis(1);
    // What a server makes of its program's screen.
    let mut config = server_config(Peer::Rove);
    config.size = largest;
    let mut server = Server::new(Time::ZERO, config);
    server.handle_output(now, many_links().as_bytes());
    server.child_exited(now, 0);
    while server.poll_transmit(now, &mut Outbox::default()).is_some() {}
    let mut diff = Vec::new();
    server.endpoint().local().diff_from(&View::new(largest, Peer::Rove), &mut diff);
    assert!(diff.len() < FRAME_OCTETS_MAX, "{}", diff.len());
    // What a client makes of a server's.
    let mut config = client_config(Peer::Rove);
    (config.wire, config.size) = (Box::new(Glass), largest);
    let (mut client, mut painted) = (Client::new(Time::ZERO, config), Vec::new());
    tell(&mut client, now, [0, 1], &bytes(&many_links()));
    client.poll_paint(now, &mut painted);
    assert!((200_000..FRAME_OCTETS_MAX).contains(&painted.len()), "{}", painted.len());
    assert!(client.shown().unwrap().row_text(199).ends_with("xx"));
}
