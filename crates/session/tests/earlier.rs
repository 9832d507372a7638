//! A server of the release before scrollback and sessions: its octets, as the examples of `docs/wire.md` (§11) have kept
//! them since then, against a client of today. The session works, and such a server is asked to keep nothing.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // Helpers of tests are tests.

mod common;
#[allow(dead_code, reason = "each test uses its part")]
#[path = "../../ssp/tests/common/vectors.rs"]
mod vectors;

use std::time::Duration;

use common::{client_config, ms, server_address, size};
use rove_session::client::{self, TtyScreen};
use rove_session::messages::{UserEvent, read_user};
use rove_session::{Client, Peer};
use rove_ssp::{
    Arrival, Assembler, ConnId, Envelope, Machine, NativeWire, Outbox, Role, SessionSecrets, Time,
    Timing, Wire,
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
}

impl<'a> Today<'a> {
    fn new(end: &'a mut dyn Machine, mut reader: NativeWire) -> Today<'a> {
        // A report is believed of as many datagrams as were sealed.
        for _ in 0..SEALED {
            reader.seal(&Envelope::default(), b"", &mut Vec::new()).unwrap();
        }
        Today { end, reader, assembler: Assembler::new(64), diffs: Vec::new() }
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
                let (_, payload) = self.reader.open(&mut datagram).unwrap();
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
