//! What stock's programs were seen to survive and not to survive (the `tolerance` vectors, mosh-protocol.md §10): ours
//! survive all that stock's do, take what stock's take, and go on after all else but a diff that is no message.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::net::SocketAddr;

use common::{client_address, client_config, ms, server_address, server_config};
use rove_session::messages::{Dimensions, HostEvent, UserEvent, write_host, write_user};
use rove_session::{Client, Peer, Server, client, server};
use rove_ssp::{
    Arrival, Envelope, Fragment, Key, Machine, MoshWire, Outbox, Role, Seq, Time, Used, Wire,
    fragments,
};
use serde_json::Value;

fn vectors() -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../ssp/tests/vectors/mosh-vectors.json");
    let mut vectors: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let Value::Array(entries) = vectors["tolerance"].take() else { panic!("no list") };
    entries
}

fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number > 127 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn octets(field: u64, octets: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    varint(field << 3 | 2, &mut out);
    varint(octets.len() as u64, &mut out);
    out.extend_from_slice(octets);
    out
}

/// Octets as zlib would store them: level 0.
fn stored(bytes: &[u8]) -> Vec<u8> {
    let len = bytes.len() as u16;
    let (mut low, mut high) = (1_u32, 0_u32);
    for byte in bytes {
        low = (low + u32::from(*byte)) % 65_521;
        high = (high + low) % 65_521;
    }
    let head = [&[0x78, 0x01, 0x01][..], &len.to_le_bytes(), &(!len).to_le_bytes()].concat();
    [&head[..], bytes, &(high << 16 | low).to_be_bytes()].concat()
}

/// An instruction from the first state: version, new state, throwaway number, diff, further fields.
fn instruction(version: Option<u64>, new: u64, throwaway: Option<u64>, tail: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for (field, value) in [(1, version), (2, Some(0)), (3, Some(new)), (4, Some(0)), (5, throwaway)]
    {
        if let Some(value) = value {
            varint(field << 3, &mut out);
            varint(value, &mut out);
        }
    }
    out.extend_from_slice(tail);
    out
}

fn unknown_fields() -> Vec<u8> {
    [8, 9, 100, 500_000_000].into_iter().flat_map(|field| octets(field, b"unknown")).collect()
}

/// A peer with the key that sends datagrams of the test's choice.
struct Speaker {
    wire: Box<dyn Wire>,
    id: u64,
}

impl Speaker {
    fn seal(&mut self, payload: &[u8]) -> Vec<u8> {
        let mut datagram = Vec::new();
        self.wire.seal(&Envelope::default(), payload, &mut datagram).unwrap();
        datagram
    }

    /// The fragments of a compressed instruction, each in a datagram's payload.
    fn cut(&mut self, packed: &[u8], room: usize) -> Vec<Vec<u8>> {
        self.id += 1;
        fragments(self.id.into(), packed, room)
            .map(|fragment| {
                let mut payload = Vec::new();
                fragment.encode(&mut payload);
                payload
            })
            .collect()
    }

    fn say(&mut self, message: &[u8]) -> Vec<Vec<u8>> {
        self.cut(&stored(message), 1200).iter().map(|payload| self.seal(payload)).collect()
    }

    /// The probe's datagrams. `diff` is what a state brings that does something harmless.
    fn probe(&mut self, name: &str, diff: &[u8], other: &mut dyn Wire) -> Vec<Vec<u8>> {
        let (known, none) = (Some(2), Some(0));
        let with = |tail: &[u8]| instruction(known, 1, none, &[&octets(6, diff), tail].concat());
        let own = |diff: &[u8]| instruction(known, 1, none, &octets(6, diff));
        let extension = octets(1, &octets(50, b"unknown"));
        let plain = with(&[]);
        match name {
            "unknown Instruction fields 8,9,100,500000000 on every packet" => {
                self.say(&with(&unknown_fields()))
            }
            "chaff of 400 octets" => self.say(&with(&octets(7, &[9; 400]))),
            "chaff of 600 octets" => self.say(&with(&octets(7, &[9; 600]))),
            "empty chaff always" => self.say(&with(&octets(7, b""))),
            "UserMessage instruction with only unknown extension 50"
            | "diff holding only unknown extension 50" => self.say(&own(&extension)),
            "UserMessage keystroke instruction that also has extension 50"
            | "HostMessage hostbytes instruction that also has extension 50" => {
                // The event's own field, with one more behind it.
                let event = [&diff[2..], &octets(50, b"unknown")].concat();
                self.say(&own(&octets(1, &event)))
            }
            "UserMessage unknown top-level fields 2 and 3"
            | "HostMessage unknown top-level field 2 and an instruction with only extension 50" => {
                let more = [octets(2, b"unknown"), octets(3, b"unknown"), extension].concat();
                self.say(&own(&[diff, &more].concat()))
            }
            "Keystroke message with unknown field 9" => {
                let keys = [&diff[4..], &octets(9, b"unknown")].concat();
                self.say(&own(&octets(1, &octets(2, &keys))))
            }
            "protocol_version 3" => self.say(&instruction(Some(3), 1, none, &octets(6, diff))),
            "protocol_version absent" => self.say(&instruction(None, 1, none, &octets(6, diff))),
            "throwaway_num and chaff absent" => {
                self.say(&instruction(known, 1, None, &octets(6, diff)))
            }
            "throwaway_num above old_num" => {
                self.say(&instruction(known, 1, Some(7), &octets(6, diff)))
            }
            "state number jumps by 1000" => {
                self.say(&instruction(known, 1001, none, &octets(6, diff)))
            }
            "datagram sequence number jumps by 2^40" => {
                let next = Seq::new(1 << 40);
                let key = Key::from_bytes([7; Key::BYTES]);
                self.wire = Box::new(MoshWire::resume(key, Role::Client, Used { next, blocks: 0 }));
                self.say(&plain)
            }
            "unauthenticated garbage datagrams (0, 10, 100, 5000 octets)"
            | "unauthenticated garbage" => {
                [0, 10, 100, 5000].map(|length| vec![0x5a; length]).to_vec()
            }
            "authentic datagram with the wrong direction bit" => {
                let payload = self.cut(&stored(&plain), 1200).remove(0);
                let mut datagram = Vec::new();
                other.seal(&Envelope::default(), &payload, &mut datagram).unwrap();
                vec![datagram]
            }
            "authentic, contents not zlib" => {
                let payload = self.cut(b"this is not zlib", 1200).remove(0);
                vec![self.seal(&payload)]
            }
            "zlib level 0 (stored blocks)" => self.say(&plain),
            "instruction cut into 7-octet fragments"
            | "fragments sent in reverse order"
            | "first fragment sent twice"
            | "frame in many small fragments (room 162)" => {
                let long = with(&octets(7, &[9; 300]));
                let room = if name.contains("162") { 162 } else { 17 };
                let mut cut = self.cut(&stored(&long), room);
                if name.contains("reverse") {
                    cut.reverse();
                } else if name.contains("twice") {
                    cut.insert(1, cut[0].clone());
                }
                assert!(cut.len() > 2);
                cut.iter().map(|payload| self.seal(payload)).collect()
            }
            "whole instruction sent twice" => [self.say(&plain), self.say(&plain)].concat(),
            "same fragment number twice, contents differ" => [b"abc", b"xyz"]
                .map(|contents| {
                    let mut payload = Vec::new();
                    Fragment { id: 77.into(), number: 0, last: false, contents }
                        .encode(&mut payload);
                    self.seal(&payload)
                })
                .to_vec(),
            "authentic payload shorter than a fragment header" => vec![self.seal(b"short")],
            "authentic, instruction is not a protobuf" => self.say(&[0x0a, 0x05]),
            "authentic, diff is not a protobuf" => self.say(&own(&[0x0a, 0x05])),
            "resize to 0x0" => {
                let mut diff = Vec::new();
                write_user(UserEvent::Resize(Dimensions { width: 0, height: 0 }), &mut diff);
                self.say(&own(&diff))
            }
            "control datagrams: unknown old_num; new_num already held; both with field 100" => {
                let mut unheld = vec![0x08, 2, 0x10, 99, 0x18, 100, 0x20, 0, 0x28, 0];
                unheld.extend(octets(100, b"unknown"));
                let held = instruction(known, 0, none, &octets(100, b"unknown"));
                [self.say(&unheld), self.say(&held)].concat()
            }
            "host bytes with sequences outside stock's set (1049, OSC 8, 4:3, DECSCUSR, APC)" => {
                let bytes =
                    b"\x1b[?1049h\x1b]8;;http://x\x07a\x1b]8;;\x07\x1b[4:3mb\x1b[3 q\x1b_c\x1b\\";
                self.say(&own(&host(HostEvent::Bytes(bytes))))
            }
            "host bytes containing a query (DA)" => {
                self.say(&own(&host(HostEvent::Bytes(b"\x1b[c"))))
            }
            "echo ack goes backwards" => {
                let first = own(&host(HostEvent::EchoAck(7)));
                let then = instruction(known, 2, none, &octets(6, &host(HostEvent::EchoAck(3))));
                [self.say(&first), self.say(&then)].concat()
            }
            "server imposes 200x60 on an 80x24 client" => {
                self.say(&own(&host(HostEvent::Resize(Dimensions { width: 200, height: 60 }))))
            }
            "client changes its source port" => self.say(&plain),
            name => panic!("no probe for {name}"),
        }
    }
}

fn user(keys: &[u8]) -> Vec<u8> {
    let mut diff = Vec::new();
    write_user(UserEvent::Keys(keys), &mut diff);
    diff
}

fn host(event: HostEvent<'_>) -> Vec<u8> {
    let mut diff = Vec::new();
    write_host(event, &mut diff);
    diff
}

fn hear(machine: &mut dyn Machine, now: Time, from: SocketAddr, datagrams: &[Vec<u8>]) {
    for datagram in datagrams {
        // What is refused may be refused.
        let arrival = Arrival { from: from.into(), congested: false };
        let _ = machine.handle_datagram(now, arrival, &mut datagram.clone());
    }
}

fn typed(server: &mut Server) -> Vec<u8> {
    let mut out = Vec::new();
    server.poll_input(&mut out);
    out
}

fn is_fatal(name: &str) -> bool {
    name == "authentic, diff is not a protobuf"
}

/// Options of the server's command line are tested with the program: `rove/tests/server.rs`.
const OPTION: &str = "server option";

#[test]
fn ours_tolerate_what_stocks_do() {
    let entries = vectors();
    assert_eq!(entries.len(), 46);
    let mut tried = [0; 2];
    for entry in &entries {
        let name = entry["probe"].as_str().unwrap();
        match entry["against"].as_str().unwrap() {
            "mosh-server" if name.starts_with(OPTION) => {}
            "mosh-server" => {
                tried[0] += 1;
                against_server(name, entry);
            }
            "mosh-client" => {
                tried[1] += 1;
                against_client(name, entry);
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(tried, [28, 15]);
}

fn against_server(name: &str, entry: &Value) {
    let mut server = Server::new(Time::ZERO, server_config(Peer::Stock));
    let mut speaker = Speaker { wire: client_config(Peer::Stock).wire, id: 0 };
    let mut other = server_config(Peer::Stock).wire;
    let now = Time::ZERO;
    let probe = speaker.probe(name, &user(b"k"), &mut *other);
    hear(&mut server, now, client_address(), &probe);
    let mut read = typed(&mut server);
    match entry["note"].as_str() {
        Some(note) if note.contains("applied: True") => assert_eq!(read, b"k", "{name}"),
        Some(note) if note.contains("applied: False") => assert_eq!(read, b"", "{name}"),
        _ => {}
    }
    let moved: SocketAddr = "198.51.100.1:40001".parse().unwrap();
    let from = if name.contains("source port") { moved } else { client_address() };
    let alive = instruction(Some(2), 9000, Some(0), &octets(6, &user(b"kalive")));
    let alive = speaker.say(&alive);
    hear(&mut server, now, from, &alive);
    read.extend(typed(&mut server));
    let exited = std::iter::from_fn(|| server.poll_event())
        .any(|event| matches!(event, server::Event::Exited(_)));
    if is_fatal(name) {
        // It says goodbye first, and reads nothing more.
        assert_eq!((read, entry["server_alive"].as_bool()), (Vec::new(), Some(false)), "{name}");
        return;
    }
    assert!(!exited, "{name}");
    assert_eq!(String::from_utf8_lossy(&read), "kalive", "{name}");
    let mut out = Outbox::default();
    let sent = server.poll_transmit(now + ms(500), &mut out).unwrap();
    assert_eq!(sent.to, from, "{name}");
}

fn against_client(name: &str, entry: &Value) {
    let mut client = Client::new(Time::ZERO, client_config(Peer::Stock));
    let mut speaker = Speaker { wire: server_config(Peer::Stock).wire, id: 0 };
    let mut other = client_config(Peer::Stock).wire;
    let now = Time::ZERO;
    let probe = speaker.probe(name, &host(HostEvent::Bytes(b"k")), &mut *other);
    hear(&mut client, now, server_address(), &probe);
    let alive = instruction(Some(2), 9000, Some(0), &octets(6, &host(HostEvent::Bytes(b"alive"))));
    let alive = speaker.say(&alive);
    hear(&mut client, now, server_address(), &alive);
    let exited = std::iter::from_fn(|| client.poll_event())
        .any(|event| matches!(event, client::Event::Exited(_)));
    assert!(!exited, "{name}; stock's lives: {}", entry["client_alive"]);
    assert_eq!(client.view().screen().row_text(0), "alive", "{name}");
    client.handle_keys(now, b"z");
    let (mut out, mut seen) = (Outbox::default(), false);
    for wait in 0..300 {
        while client.poll_transmit(now + ms(wait), &mut out).is_some() {
            let (_, range) = speaker.wire.open(&mut out.datagram).unwrap();
            let fragment = Fragment::decode(&out.datagram[range]).unwrap();
            seen |= speaker.wire.unpack(fragment.contents).unwrap().diff.ends_with(b"z");
        }
    }
    assert!(seen, "{name}: the key goes out");
}
