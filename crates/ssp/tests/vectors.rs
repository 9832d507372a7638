//! The vectors of `mosh-protocol.md` §12 that concern this crate: keys, stamps, datagrams, fragments,
//! instructions, and five captured sessions with stock peers.

#![allow(clippy::unwrap_used)] // In helpers, too: a failure here is a failed test.

mod common;

use std::net::SocketAddr;
use std::time::Duration;

use common::{client_address, server_address};
use rove_ssp::{
    Announcement, Arrival, Assembler, BadDiff, Config, Deflater, Endpoint, Event, Fragment,
    Instruction, Key, Machine, MoshWire, Role, Seq, Stamp, Stamps, State, StateNum, Time, Timing,
    Used, Wire, fragments,
};
use serde_json::Value;

fn vectors() -> Value {
    serde_json::from_str(include_str!("vectors/mosh-vectors.json")).unwrap()
}

/// The entries under a key; never none, so that no test passes for want of vectors.
fn entries<'a>(vectors: &'a Value, key: &str) -> &'a [Value] {
    let entries = vectors[key].as_array().unwrap();
    assert!(!entries.is_empty(), "{key}");
    entries
}

fn hex(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap();
    assert!(text.len().is_multiple_of(2));
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap() as u8;
    text.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

fn key(value: &Value) -> Key {
    Key::from_base64(value.as_str().unwrap()).unwrap()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

fn stamp(value: &Value) -> Option<Stamp> {
    Stamp::from_wire(number(value).try_into().unwrap())
}

fn sender(entry: &Value) -> Role {
    if number(&entry["direction"]) == 0 { Role::Client } else { Role::Server }
}

fn other(role: Role) -> Role {
    match role {
        Role::Client => Role::Server,
        Role::Server => Role::Client,
    }
}

fn instruction(fields: &Value) -> Instruction {
    assert_eq!(fields["protocol_version"], 2);
    Instruction {
        old: number(&fields["old_num"]).into(),
        new: number(&fields["new_num"]).into(),
        ack: number(&fields["ack_num"]).into(),
        throwaway: number(&fields["throwaway_num"]).into(),
        diff: hex(&fields["diff"]),
        chaff: hex(&fields["chaff"]),
        announcement: Announcement::NONE,
    }
}

/// A section that no test names is read by none.
#[test]
fn every_section_is_read() {
    let vectors = vectors();
    let readers = [
        include_str!("vectors.rs"),
        include_str!("../../session/src/messages.rs"),
        include_str!("../../session/tests/captures.rs"),
        include_str!("../../session/tests/predict_stock.rs"),
        include_str!("../../session/tests/tolerance.rs"),
    ];
    for section in vectors.as_object().unwrap().keys() {
        let read = match section.as_str() {
            "about" => true,
            // `term/tests/stock.rs` reads all of its own copy.
            "emulation" => {
                let copy = include_str!("../../term/tests/vectors/emulation.json");
                serde_json::from_str::<Value>(copy).unwrap() == vectors[section]
            }
            section => readers.iter().any(|text| text.contains(&format!("\"{section}\""))),
        };
        assert!(read, "{section} is read by no test");
    }
}

#[test]
fn keys() {
    let vectors = vectors();
    for entry in entries(&vectors, "keys_valid") {
        let octets: [u8; 16] = hex(&entry["hex"]).try_into().unwrap();
        assert_eq!(Key::from_bytes(octets).to_base64().as_str(), entry["text"]);
        // A key shows itself only in its text.
        assert_eq!(key(&entry["text"]).to_base64().as_str(), entry["text"]);
    }
    for entry in entries(&vectors, "keys_invalid") {
        let text = entry["text"].as_str().unwrap();
        let error = Key::from_base64(text).expect_err(entry["why"].as_str().unwrap());
        assert!(!error.to_string().contains(text), "an error does not print the key");
    }
}

#[test]
fn stamps() {
    let vectors = vectors();
    for entry in entries(&vectors, "timestamps") {
        let made = Stamp::at(Time::from_millis(number(&entry["ms"])));
        assert_eq!(Some(made), stamp(&entry["ts16"]), "{entry}");
    }
    for entry in entries(&vectors, "timestamp_differences") {
        let difference = stamp(&entry["new"]).unwrap().since(stamp(&entry["old"]).unwrap());
        assert_eq!(difference, Duration::from_millis(number(&entry["ms"])), "{entry}");
    }
}

#[test]
fn datagrams() {
    let vectors = vectors();
    for entry in entries(&vectors, "datagrams") {
        let stamps =
            Stamps { sent: stamp(&entry["timestamp"]), reply: stamp(&entry["timestamp_reply"]) };
        let (payload, packet) = (hex(&entry["payload"]), hex(&entry["packet"]));
        let next = Seq::new(number(&entry["seq"]));

        let mut from =
            MoshWire::resume(key(&entry["key"]), sender(entry), Used { next, blocks: 0 });
        let mut made = Vec::new();
        assert_eq!(from.seal(&stamps.into(), &payload, &mut made), Ok(next));
        assert_eq!(made, packet, "{entry}");

        let mut to = MoshWire::new(key(&entry["key"]), other(sender(entry)));
        let (header, range) = to.open(&mut made).unwrap();
        assert_eq!((header.seq, header.stamps), (next, stamps));
        assert_eq!(made[range], payload);
    }
}

#[test]
fn bad_datagrams() {
    let vectors = vectors();
    for entry in entries(&vectors, "datagrams_bad") {
        for role in [Role::Client, Role::Server] {
            let mut packet = hex(&entry["packet"]);
            let opened = MoshWire::new(key(&entry["key"]), role).open(&mut packet);
            assert!(opened.is_err(), "{role:?}: {}", entry["why"]);
        }
    }
}

#[test]
fn fragment_headers() {
    let vectors = vectors();
    for entry in entries(&vectors, "fragments") {
        let contents = hex(&entry["contents"]);
        let fragment = Fragment {
            id: number(&entry["id"]).into(),
            number: number(&entry["num"]).try_into().unwrap(),
            last: entry["final"].as_bool().unwrap(),
            contents: &contents,
        };
        let mut payload = Vec::new();
        fragment.encode(&mut payload);
        assert_eq!(payload, hex(&entry["bytes"]));
        assert_eq!(Fragment::decode(&payload), Ok(fragment));
    }
}

#[test]
fn fragmentation() {
    let vectors = vectors();
    let cases = entries(&vectors, "fragmentation");
    let message = Instruction::decode(&hex(&cases[0]["instruction"])).unwrap();
    let packed = hex(&cases[0]["compressed"]);
    let wire = MoshWire::new(Key::from_bytes([0; 16]), Role::Client);
    for case in cases {
        let expect: Vec<Vec<u8>> = entries(case, "fragments").iter().map(hex).collect();
        let room = number(&case["room"]) as usize;
        let made: Vec<Vec<u8>> = fragments(number(&case["id"]).into(), &packed, room)
            .map(|fragment| {
                let mut payload = Vec::new();
                fragment.encode(&mut payload);
                payload
            })
            .collect();
        assert!(made == expect, "{}", case["family"]);

        let mut assembler = Assembler::new(1);
        let mut done = None;
        for payload in made.iter().rev() {
            done = assembler.add(Fragment::decode(payload).unwrap()).unwrap();
        }
        assert_eq!(wire.unpack(&done.unwrap()), Ok(message.clone()));
    }
}

#[test]
fn instructions() {
    let vectors = vectors();
    let wire = MoshWire::new(Key::from_bytes([0; 16]), Role::Client);
    for entry in entries(&vectors, "instructions") {
        let name = entry["name"].as_str().unwrap();
        let message = instruction(&entry["fields"]);
        let bytes = hex(&entry["bytes"]);
        assert_eq!(Instruction::decode(&bytes).as_ref(), Ok(&message), "{name}");
        assert_eq!(wire.unpack(&hex(&entry["compressed"])).as_ref(), Ok(&message), "{name}");
        if !name.contains("unknown") {
            let mut made = Vec::new();
            message.encode(&mut made);
            assert_eq!(made, bytes, "{name}");
        }
        let mut packed = Vec::new();
        wire.pack(&message, &mut Deflater::default(), &mut packed);
        assert_eq!(wire.unpack(&packed), Ok(message), "{name}");
    }
}

#[test]
fn captures_decode_as_recorded() {
    let vectors = vectors();
    for capture in entries(&vectors, "captures") {
        let mut assemblers = [Assembler::new(1), Assembler::new(1)];
        for packet in entries(capture, "packets") {
            let from = sender(packet);
            let mut datagram = hex(&packet["packet"]);
            let mut wire = MoshWire::new(key(&capture["key"]), other(from));
            let (header, range) = wire.open(&mut datagram).unwrap();
            assert_eq!(header.seq.get(), number(&packet["seq"]));
            assert_eq!(header.stamps.sent, stamp(&packet["timestamp"]));
            assert_eq!(header.stamps.reply, stamp(&packet["timestamp_reply"]));

            let fragment = Fragment::decode(&datagram[range]).unwrap();
            assert_eq!(fragment.id.get(), number(&packet["fragment"]["id"]));
            assert_eq!(u64::from(fragment.number), number(&packet["fragment"]["num"]));
            assert_eq!(fragment.last, packet["fragment"]["final"]);
            assert_eq!(fragment.contents.len() as u64, number(&packet["fragment"]["size"]));

            let done = assemblers[usize::from(from == Role::Server)].add(fragment).unwrap();
            let message = done.map(|packed| wire.unpack(&packed).unwrap());
            let expect = packet.get("instruction").filter(|value| !value.is_null());
            assert_eq!(message, expect.map(instruction));
        }
    }
}

/// An object that keeps every diff it was given, and whose own diffs are its octets.
#[derive(Clone, Debug, Default, PartialEq)]
struct Tape(Vec<Vec<u8>>);

impl State for Tape {
    fn diff_from(&self, base: &Tape, out: &mut Vec<u8>) {
        self.0[base.0.len()..].iter().for_each(|diff| out.extend_from_slice(diff));
    }

    fn apply(&mut self, diff: &[u8]) -> Result<(), BadDiff> {
        self.0.push(diff.to_vec());
        Ok(())
    }

    fn weight(&self) -> usize {
        self.0.len() // Not measured: captures are small.
    }
}

/// An endpoint of ours takes the place of either end of a capture: it is fed what the other end really
/// sent, at the recorded times, and must follow it to the recorded end.
#[test]
fn endpoints_follow_the_captured_peers() {
    let vectors = vectors();
    for capture in entries(&vectors, "captures") {
        for role in [Role::Client, Role::Server] {
            follow(capture, role);
        }
    }
}

fn follow(capture: &Value, role: Role) {
    let name = format!("{}, as {role:?}", capture["name"]);
    let peer: SocketAddr = match role {
        Role::Client => server_address(),
        Role::Server => client_address(),
    };
    let config = Config {
        role,
        wire: Box::new(MoshWire::new(key(&capture["key"]), role)),
        timing: Timing::MOSH,
        peer: (role == Role::Client).then_some(peer),
        local: Tape::default(),
        remote: Tape::default(),
        seed: 1,
    };
    let mut endpoint = Endpoint::new(Time::ZERO, config);
    let mut newest = StateNum::ZERO;
    let mut read = MoshWire::new(key(&capture["key"]), other(role));
    let mut acks = Vec::new();
    for packet in entries(capture, "packets").iter().filter(|packet| sender(packet) != role) {
        let now = Time::from_millis(number(&packet["t_ms"]));
        let mut datagram = hex(&packet["packet"]);
        let arrival = Arrival { from: peer.into(), congested: false };
        endpoint.handle_datagram(now, arrival, &mut datagram).unwrap();
        if let Some(message) = packet.get("instruction").filter(|value| !value.is_null()) {
            let message = instruction(message);
            newest = newest.max(message.new);
            assert_eq!(endpoint.remote_num(), newest, "{name}");
            if !message.diff.is_empty() {
                assert_eq!(endpoint.remote().0.last(), Some(&message.diff), "{name}");
            }
        }
        assert_eq!(endpoint.stats().rejected.total, 0, "{name}");
        for (_, mut datagram) in common::drain(now, &mut endpoint) {
            let (_, range) = read.open(&mut datagram).unwrap();
            let fragment = Fragment::decode(&datagram[range]).unwrap();
            acks.push(read.unpack(fragment.contents).unwrap().ack);
        }
    }
    let last = Time::from_millis(60_000);
    for (.., mut datagram) in common::run_until(last, &mut endpoint) {
        let (_, range) = read.open(&mut datagram).unwrap();
        let fragment = Fragment::decode(&datagram[range]).unwrap();
        acks.push(read.unpack(fragment.contents).unwrap().ack);
    }
    assert!(acks.is_sorted(), "{name}");
    assert_eq!(acks.last(), Some(&newest), "{name}: all is acknowledged");
    let events: Vec<Event> = std::iter::from_fn(|| endpoint.poll_event()).collect();
    if newest == StateNum::SHUTDOWN {
        assert!(events.contains(&Event::PeerClosing), "{name}");
        assert_eq!(events.last(), Some(&Event::Closed { clean: true }), "{name}");
    }
}
