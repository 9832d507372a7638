//! Either end of the release before scrollback and sessions: its octets, as the examples of `docs/wire.md` (§11) have kept
//! them since then, against the other end of today. The session works, such a server is asked to keep nothing, and such a
//! client is told nothing of lines and sessions.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // Helpers of tests are tests.

mod common;
#[allow(dead_code, reason = "each test uses its part")]
#[path = "../../ssp/tests/common/vectors.rs"]
mod vectors;

use std::time::Duration;

use common::{client_address, client_config, ms, server_address, server_config, size};
use rove_session::client::{self, TtyScreen};
use rove_session::messages::{HostEvent, UserEvent, read_host, read_user};
use rove_session::{Client, Peer, Server, server};
use rove_ssp::{
    Announcement, Arrival, Assembler, ConnId, Control, Deflater, Envelope, Flags, Instruction,
    Machine, NativeWire, Outbox, Role, SessionSecrets, StateNum, Time, Timing, Wire, fragments,
};
use vectors::{kept, list, octets};

/// As many as either end of the kept session has sent, and more.
const SEALED: u32 = 8;

/// The wires of the two ends of the kept session.
fn wires() -> [NativeWire; 2] {
    let session = &kept()["session"];
    let secret = |end: &str| octets(&session[end]).try_into().unwrap();
    let secrets = SessionSecrets::from_bytes(secret("client"), secret("server"), [0; 32]);
    let conn = ConnId::parse(session["connection"].as_str().unwrap()).unwrap();
    [Role::Client, Role::Server].map(|role| NativeWire::new(&secrets, conn, role))
}

/// The datagrams of each message that this end has said.
fn said(from: &str) -> Vec<Vec<Vec<u8>>> {
    let all = kept();
    let messages = list(&all["session"]["messages"]).iter().filter(|it| it["from"] == from);
    messages.map(|it| list(&it["datagrams"]).iter().map(octets).collect()).collect()
}

/// An end of today, and all diffs that it has said.
struct Today<'a> {
    end: &'a mut dyn Machine,
    /// Reads what it says.
    reader: NativeWire,
    assembler: Assembler,
    diffs: Vec<Vec<u8>>,
    /// The last question by which it validates the address of the other end.
    asked: Option<u64>,
}

impl<'a> Today<'a> {
    fn new(end: &'a mut dyn Machine, mut reader: NativeWire) -> Today<'a> {
        // A report is believed of as many datagrams as were sealed.
        for _ in 0..SEALED {
            reader.seal(&Envelope::default(), b"", &mut Vec::new()).unwrap();
        }
        Today { end, reader, assembler: Assembler::new(64), diffs: Vec::new(), asked: None }
    }

    fn hear(&mut self, now: Time, from: std::net::SocketAddr, message: &[Vec<u8>]) {
        for datagram in message {
            let arrival = Arrival { from: from.into(), congested: false };
            self.end.handle_datagram(now, arrival, &mut datagram.clone()).unwrap();
        }
    }

    fn run(&mut self, now: &mut Time, span: Duration) {
        let until = *now + span;
        while *now < until {
            let mut out = Outbox::default();
            while self.end.poll_transmit(*now, &mut out).is_some() {
                let mut datagram = out.datagram.to_vec();
                let (header, payload) = self.reader.open(&mut datagram).unwrap();
                self.asked = header.control.challenge.or(self.asked);
                // One with control messages alone is about the path.
                if payload.is_empty() {
                    continue;
                }
                let piece = self.reader.decode_piece(&datagram[payload]).unwrap();
                if let Some(whole) = self.assembler.take(piece).unwrap() {
                    self.diffs.push(self.reader.unpack(&whole).unwrap().diff);
                }
            }
            *now = *now + ms(5);
        }
    }
}

#[test]
fn a_server_of_the_release_before() {
    let [wire, reader] = wires();
    let config = client::Config {
        wire: Box::new(wire),
        timing: Timing::ROVE,
        size: size(30, 100),
        window: TtyScreen::Main,
        ..client_config(Peer::Rove)
    };
    let mut client = Client::new(Time::ZERO, config);
    let messages = said("server");
    let mut now = Time::ZERO;
    let mut today = Today::new(&mut client, reader);
    today.run(&mut now, ms(100));
    today.hear(now, server_address(), &messages[0]);
    today.run(&mut now, ms(200));
    let mut diffs = today.diffs;
    assert!(client.view().screen().text().iter().any(|row| row.trim_end() == "9e3779b9"));
    assert!(client.view().past().is_none() && client.view().session().is_none());
    // Such a server keeps no session, and the client does not tell it to.
    client.handle_keys(now, b"\x1ed");
    let [_, reader] = wires();
    let mut today = Today::new(&mut client, reader);
    today.run(&mut now, ms(300));
    today.hear(now, server_address(), &messages[1]);
    today.run(&mut now, ms(1_000));
    diffs.append(&mut today.diffs);
    let exit = std::iter::from_fn(|| client.poll_event()).find_map(|event| match event {
        client::Event::Exited(exit) => Some(exit),
        _ => None,
    });
    assert_eq!(exit.map(|exit| (exit.clean, exit.status)), Some((true, Some(0))));
    // It skips the wish for lines, and the properties of the terminal are as it knows them.
    let is_size = |event: &UserEvent<'_>| matches!(event, UserEvent::Resize(_));
    assert!(
        diffs.iter().any(|diff| read_user(diff).unwrap().iter().any(is_size)),
        "nothing was read"
    );
    let is_new = |event: &UserEvent<'_>| matches!(event, UserEvent::Leaving);
    assert!(diffs.iter().all(|diff| !read_user(diff).unwrap().iter().any(is_new)));
}

/// The kept client goes on: it answers the server's questions, and says that it has the last state.
struct OldClient(NativeWire);

impl OldClient {
    /// Its numbers follow those of the kept datagrams.
    fn new() -> OldClient {
        let [mut wire, _] = wires();
        for _ in said("client").iter().flatten() {
            wire.seal(&Envelope::default(), b"", &mut Vec::new()).unwrap();
        }
        OldClient(wire)
    }

    fn answer(&mut self, token: u64) -> Vec<Vec<u8>> {
        let control = Control { response: Some(token), ..Control::default() };
        self.seal(&Envelope { control, ..Envelope::default() }, b"")
    }

    fn last_word(&mut self) -> Vec<Vec<u8>> {
        let message = Instruction {
            old: 1.into(),
            new: 1.into(),
            ack: StateNum::SHUTDOWN,
            throwaway: 1.into(),
            announcement: Announcement::KNOWS,
            ..Instruction::default()
        };
        let (mut packed, mut payload) = (Vec::new(), Vec::new());
        self.0.pack(&message, &mut Deflater::default(), &mut packed);
        for fragment in fragments(3.into(), &packed, 1000) {
            self.0.encode_fragment(&fragment, &mut payload);
        }
        let flags = Flags { again: false, ack_only: true };
        self.seal(&Envelope { flags, ..Envelope::default() }, &payload)
    }

    fn seal(&mut self, envelope: &Envelope, payload: &[u8]) -> Vec<Vec<u8>> {
        let mut datagram = Vec::new();
        self.0.seal(envelope, payload, &mut datagram).unwrap();
        vec![datagram]
    }
}

/// A server of today, and what it has said to the kept client.
struct Told {
    server: Server,
    now: Time,
    diffs: Vec<Vec<u8>>,
    asked: Option<u64>,
}

impl Told {
    /// A tenth of a second, at whose begin the client says this.
    fn hear(&mut self, message: &[Vec<u8>]) {
        let [reader, _] = wires();
        let mut today = Today::new(&mut self.server, reader);
        today.hear(self.now, client_address(), message);
        today.run(&mut self.now, ms(100));
        self.diffs.append(&mut today.diffs);
        self.asked = today.asked.or(self.asked);
    }
}

#[test]
fn a_client_of_the_release_before() {
    let [_, wire] = wires();
    let config =
        server::Config { wire: Box::new(wire), timing: Timing::ROVE, ..server_config(Peer::Rove) };
    let server = Server::new(Time::ZERO, config);
    let mut told = Told { server, now: Time::ZERO, diffs: Vec::new(), asked: None };
    // As each session of today; who does not say how it calls the host is not told of that.
    told.server.keep("1", false);
    let (kept, mut client) = (said("client"), OldClient::new());
    told.hear(&kept[0]);
    assert_eq!((told.server.screen().size(), told.server.exit_status()), (size(30, 100), None));
    let mut typed = Vec::new();
    told.server.poll_input(&mut typed);
    assert_eq!(typed, b"exit\r");
    let token = told.asked.expect("whoever is heard from somewhere is asked whether it is there");
    told.hear(&client.answer(token));
    // More than a screen, so that lines leave it.
    for number in 0..90_u64 {
        let line = format!("{:x}\r\n", number * number * 0x9e37_79b9);
        told.server.handle_output(told.now, line.as_bytes());
        told.hear(&[]);
    }
    told.hear(&kept[1]);
    told.server.child_exited(told.now, 3);
    // The last state comes a send interval after the one before.
    (0..10).for_each(|_| told.hear(&[]));
    told.hear(&client.last_word());
    let Told { mut server, diffs, .. } = told;
    let exit = std::iter::from_fn(|| server.poll_event()).find_map(|event| match event {
        server::Event::Exited(exit) => Some(exit),
        _ => None,
    });
    assert!(exit.is_some_and(|exit| exit.clean), "{exit:?}");
    let events: Vec<HostEvent<'_>> =
        diffs.iter().flat_map(|diff| read_host(diff).unwrap()).collect();
    let shows = |text: &[u8]| {
        events.iter().any(|event| match event {
            HostEvent::Bytes(bytes) => bytes.windows(text.len()).any(|part| part == text),
            _ => false,
        })
    };
    let last = format!("{:x}", 89 * 89 * 0x9e37_79b9_u64);
    assert!(shows(last.as_bytes()), "the last line was not told");
    assert!(events.contains(&HostEvent::ExitStatus(3)));
    // Extensions 19, 20 and 21.
    let is_new = |event: &&HostEvent<'_>| {
        matches!(event, HostEvent::Depth(_) | HostEvent::Rows(_) | HostEvent::Session(_))
    };
    assert_eq!(events.iter().find(is_new), None);
}
