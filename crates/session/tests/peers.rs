//! Authentic peers that say what they should not (`mosh-protocol.md` §10): what aborts a stock program
//! is skipped here, and what cannot be read ends the session with one line.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::time::Duration;

use common::{client_address, client_config, ms, server_address, server_config, size, trimmed};
use rove_session::client::{self, Cause};
use rove_session::messages::{Dimensions, HostEvent, UserEvent, write_host, write_user};
use rove_session::{Client, Peer, Server, View, server};
use rove_ssp::{
    Arrival, BadDiff, Config, Deflater, Endpoint, Envelope, Fragment, Instruction, Machine, Outbox,
    Role, State, StateNum, Time, Timing, Wire,
};
use rove_term::Size;

/// A state whose diffs the test makes up.
#[derive(Clone, Debug, Default, PartialEq)]
struct Raw {
    version: u64,
    diff: Vec<u8>,
}

impl State for Raw {
    fn diff_from(&self, base: &Self, out: &mut Vec<u8>) {
        if self.version != base.version {
            out.extend_from_slice(&self.diff);
        }
    }

    fn apply(&mut self, diff: &[u8]) -> Result<(), BadDiff> {
        self.version += 1;
        self.diff = diff.to_vec();
        Ok(())
    }

    fn weight(&self) -> usize {
        self.diff.len()
    }
}

type RawEnd = Endpoint<Raw, Raw>;

fn raw(role: Role, wire: Box<dyn Wire>) -> RawEnd {
    let peer = (role == Role::Client).then(server_address);
    let (local, remote) = (Raw::default(), Raw::default());
    let config = Config { role, wire, timing: Timing::MOSH, peer, local, remote, seed: 3 };
    Endpoint::new(Time::ZERO, config)
}

/// Makes `diff` what the next state brings.
fn say(end: &mut RawEnd, now: Time, diff: &[u8]) {
    end.update(now, |state| {
        state.version += 1;
        state.diff = diff.to_vec();
    });
}

/// Lets a client and a server talk for `span` over a path without delay.
fn talk(client: &mut dyn Machine, server: &mut dyn Machine, now: &mut Time, span: Duration) {
    let (end, mut out) = (*now + span, Outbox::default());
    while *now < end {
        for _ in 0..3 {
            while client.poll_transmit(*now, &mut out).is_some() {
                let arrival = Arrival { from: client_address().into(), congested: false };
                let _ = server.handle_datagram(*now, arrival, &mut out.datagram.clone());
            }
            while server.poll_transmit(*now, &mut out).is_some() {
                let arrival = Arrival { from: server_address().into(), congested: false };
                let _ = client.handle_datagram(*now, arrival, &mut out.datagram.clone());
            }
        }
        *now = *now + ms(1);
    }
}

/// Our server before a client whose states bring these diffs, one after the other.
fn serve(diffs: &[Vec<u8>]) -> (Server, Vec<server::Event>) {
    let mut server = Server::new(Time::ZERO, server_config(Peer::Stock));
    let mut client = raw(Role::Client, client_config(Peer::Stock).wire);
    let (mut now, mut events) = (Time::ZERO, Vec::new());
    for diff in diffs {
        say(&mut client, now, diff);
        talk(&mut client, &mut server, &mut now, ms(300));
        events.extend(std::iter::from_fn(|| server.poll_event()));
    }
    (server, events)
}

/// Our client before a server whose states bring these diffs.
fn watch(diffs: &[Vec<u8>]) -> (Client, Vec<client::Event>) {
    let mut client = Client::new(Time::ZERO, client_config(Peer::Stock));
    let mut server = raw(Role::Server, server_config(Peer::Stock).wire);
    let (mut now, mut out) = (Time::ZERO, Vec::new());
    for diff in diffs {
        say(&mut server, now, diff);
        talk(&mut client, &mut server, &mut now, ms(300));
        client.poll_paint(now, &mut out);
    }
    let events = std::iter::from_fn(|| client.poll_event()).collect();
    (client, events)
}

fn user(event: UserEvent<'_>) -> Vec<u8> {
    let mut diff = Vec::new();
    write_user(event, &mut diff);
    diff
}

fn host(event: HostEvent<'_>) -> Vec<u8> {
    let mut diff = Vec::new();
    write_host(event, &mut diff);
    diff
}

/// Threats row 9.
#[test]
fn no_size_harms_the_server() {
    let sides = [-1, 0, 1, 1000, 65_535, i32::MIN, i32::MAX];
    let mut diffs = Vec::new();
    for (width, height) in sides.iter().flat_map(|&width| sides.map(|height| (width, height))) {
        diffs.push(user(UserEvent::Resize(Dimensions { width, height })));
    }
    diffs.push(user(UserEvent::Keys(b"alive")));
    let (mut server, events) = serve(&diffs);
    assert!(events.len() > 5, "{events:?}");
    for event in events {
        match event {
            server::Event::FirstContact => {}
            server::Event::Resize(size) => {
                assert!((1..=1000).contains(&size.rows) && (1..=1000).contains(&size.cols));
                assert!(u32::from(size.rows) * u32::from(size.cols) <= 200_000, "{size:?}");
            }
            event => panic!("{event:?}"),
        }
    }
    let mut typed = Vec::new();
    server.poll_input(&mut typed);
    assert_eq!(typed, b"alive");
}

/// States of a client count octets from the session's start (docs/wire.md §6).
#[test]
fn what_was_typed_is_not_typed_again_by_another_state() {
    let mut server = Server::new(Time::ZERO, server_config(Peer::Stock));
    let mut wire = client_config(Peer::Stock).wire;
    // Old, new, keys; what is typed for it.
    for (id, (old, new, keys, typed)) in [
        (0, 5, "abc", "abc"),
        (0, 6, "xyz", ""),
        (0, 7, "wxyz1", "z1"),
        (5, 4, "d", ""),
        (4, 8, "de", "e"),
    ]
    .into_iter()
    .enumerate()
    {
        let message = Instruction {
            old: StateNum::from(old),
            new: StateNum::from(new),
            diff: user(UserEvent::Keys(keys.as_bytes())),
            ..Instruction::default()
        };
        let (mut packed, mut payload, mut datagram) = (Vec::new(), Vec::new(), Vec::new());
        wire.pack(&message, &mut Deflater::default(), &mut packed);
        let id = (id as u64 + 1).into();
        Fragment { id, number: 0, last: true, contents: &packed }.encode(&mut payload);
        wire.seal(&Envelope::default(), &payload, &mut datagram).unwrap();
        let arrival = Arrival { from: client_address().into(), congested: false };
        server.handle_datagram(Time::ZERO, arrival, &mut datagram).unwrap();
        let mut read = Vec::new();
        server.poll_input(&mut read);
        assert_eq!(String::from_utf8_lossy(&read), typed, "{old} {new} {keys}");
    }
}

#[test]
fn unknown_events_are_skipped_and_get_no_echo_ack() {
    let unknown = vec![0x0a, 0x05, 0x92, 0x03, 0x02, 0x7a, 0x7a];
    let keys = user(UserEvent::Keys(b"k"));
    for (diffs, typed, echo_ack) in [
        (vec![keys.clone(), unknown.clone()], &b"k"[..], 1),
        (vec![unknown.clone(), [unknown.clone(), keys].concat()], b"k", 2),
        (vec![unknown], b"", 0),
    ] {
        let (mut server, _) = serve(&diffs);
        let mut read = Vec::new();
        server.poll_input(&mut read);
        assert_eq!(read, typed);
        assert_eq!(server.endpoint().local().echo_ack(), StateNum::from(echo_ack), "{diffs:?}");
    }
}

#[test]
fn a_diff_that_cannot_be_read_ends_the_session_with_one_line() {
    let too_many = user(UserEvent::Keys(b"x")).repeat(4097);
    for diff in [vec![0x0a, 0x05], too_many.clone()] {
        let (server, events) = serve(&[diff]);
        assert_eq!(server.poll_timeout(), None);
        let Some(server::Event::Exited(exit)) = events.last() else { panic!("{events:?}") };
        assert!(matches!(exit.cause, server::Cause::Failed(_)), "{exit:?}");
    }
    let (_, events) = serve(&[too_many[7..].to_vec()]);
    assert!(!events.iter().any(|event| matches!(event, server::Event::Exited(_))), "{events:?}");

    let (client, events) = watch(&[host(HostEvent::Bytes(b"hello")), vec![0x0a, 0x05]]);
    assert_eq!(client.poll_timeout(), None);
    let [client::Event::Exited(exit)] = events[..] else { panic!("{events:?}") };
    assert!(matches!(exit.cause, Cause::Failed(_)) && !exit.clean, "{exit:?}");
    assert_eq!(trimmed(client.view().screen()), ["hello"]);
}

/// The reason stands on the last screen, below any text and on the primary grid, and the session ends in order.
#[test]
fn a_client_whose_diff_cannot_be_read_is_told_why() {
    for shown in [&b""[..], b"$ vi\r\n", b"\x1b[?1049h\x1b[5;10r\x1b[1mfull screen"] {
        let mut server = Server::new(Time::ZERO, server_config(Peer::Stock));
        let config = Config {
            role: Role::Client,
            wire: client_config(Peer::Stock).wire,
            timing: Timing::MOSH,
            peer: Some(server_address()),
            local: Raw::default(),
            remote: View::new(Size::DEFAULT, Peer::Stock),
            seed: 3,
        };
        let mut client = Endpoint::new(Time::ZERO, config);
        let mut now = Time::ZERO;
        if !shown.is_empty() {
            talk(&mut client, &mut server, &mut now, ms(100));
            server.handle_output(now, shown);
            talk(&mut client, &mut server, &mut now, ms(100));
        }
        client.update(now, |state| {
            *state =
                Raw { version: 1, diff: [&user(UserEvent::Keys(b"k"))[..], b"\x0a\x05"].concat() };
        });
        talk(&mut client, &mut server, &mut now, ms(500));
        let screen = trimmed(client.remote().screen());
        let line = "rove server: bad data from the client: the diff is not a protobuf message";
        assert_eq!(screen.iter().rev().find(|row| !row.is_empty()).unwrap(), line, "{screen:?}");
        assert!(!screen.iter().any(|row| row.contains("full screen")), "{screen:?}");
        assert_eq!(client.remote_num(), StateNum::SHUTDOWN);
        let mut typed = Vec::new();
        server.poll_input(&mut typed);
        assert_eq!(typed, b"", "nothing of such a diff is typed");
        let exit = std::iter::from_fn(|| server.poll_event()).last();
        let Some(server::Event::Exited(exit)) = exit else { panic!("{exit:?}") };
        assert!(matches!(exit.cause, server::Cause::Failed(_)) && exit.clean, "{exit:?}");
    }
}

#[test]
fn what_aborts_a_stock_client_is_skipped() {
    let diffs = [
        [host(HostEvent::EchoAck(7)), host(HostEvent::Bytes(b"a\x1b[c"))].concat(),
        host(HostEvent::EchoAck(3)),
        host(HostEvent::Resize(Dimensions { width: 0, height: 0 })),
        host(HostEvent::Resize(Dimensions { width: -1, height: 24 })),
        host(HostEvent::Bytes(b"b\x1b[6n\x1b]52;c;?\x07")),
    ];
    let (client, events) = watch(&diffs);
    assert_eq!(events, []);
    assert_eq!(trimmed(client.shown().unwrap()), ["ab"]);
    assert_eq!(client.view().echo_ack(), StateNum::from(7));
    assert_eq!(client.view().screen().size(), Size::DEFAULT);
    assert!(client.view().ignored() > 0);
}

#[test]
fn a_server_may_impose_a_size() {
    let diff = [
        host(HostEvent::Resize(Dimensions { width: 200, height: 60 })),
        host(HostEvent::Bytes(b"\x1b[Htop\x1b[60;190Hcorner")),
    ]
    .concat();
    let (client, events) = watch(&[diff]);
    assert_eq!(events, []);
    assert_eq!(client.view().screen().size(), size(60, 200));
    assert_eq!(trimmed(client.shown().unwrap()), ["top"]);
    assert_eq!(client.shown().unwrap().size(), Size::DEFAULT);
}
