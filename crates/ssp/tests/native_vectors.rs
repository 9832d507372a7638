//! The examples of `docs/wire.md` (§11): each is made as the file has it, and what the file has is
//! read into the fields that it names. `rove-session` has those of diffs and of a whole session.
//!
//! `ROVE_WRITE_VECTORS=1 cargo test -p rove-ssp -p rove-session --test native_vectors made` writes the
//! file anew.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // Helpers of tests are tests.

#[path = "common/vectors.rs"]
mod vectors;

use std::time::Duration;

use rove_ssp::{
    Announce, Announcement, ConnId, Context, Control, Deflater, Envelope, Flags, Fragment, Header,
    Instruction, KeyPair, NativeWire, Parity, Piece, Report, Role, Seq, SessionSecrets, Slot,
    Stamp, Stamps, StateNum, Time, Wire, protect,
};
use serde_json::{Map, Value, json};
use vectors::{hex, kept, list, octets};
use zeroize::Zeroizing;

const CONN: ConnId = ConnId::new(0x1a2b_3c4d);
/// Numbers that need more than the 32 bits that travel. No end gets that far within a phase; the
/// number is all that matters here.
const HIGH: u64 = (1 << 33) + 5;
/// Octets in the clear before a datagram's text, and of its tag.
const CLEAR: usize = 9;
const TAG: usize = 16;

fn exchange() -> (Value, SessionSecrets, SessionSecrets) {
    let pair = |octet| KeyPair::from_random(Zeroizing::new([octet; 32]));
    let (client, server) = (pair(0x11), pair(0x22));
    let (to_server, to_client) = (client.public(), server.public());
    let context = Context { nonce: [0x33; 16], conn: CONN };
    let ours = client.agree_as_client(&to_client, &context).unwrap();
    let theirs = server.agree_as_server(&to_server, &context).unwrap();
    let value = json!({
        "client_private": hex(&[0x11; 32]), "server_private": hex(&[0x22; 32]),
        "client_public": to_server.to_string(), "server_public": to_client.to_string(),
        "nonce": hex(&context.nonce), "connection": CONN.to_string(), "quic": hex(ours.streams()),
    });
    assert_eq!(ours.streams(), theirs.streams());
    (value, ours, theirs)
}

/// Both ends as they are when this many datagrams have gone each way.
fn ends(sent: u64) -> (NativeWire, NativeWire) {
    let (_, ours, theirs) = exchange();
    let client = NativeWire::new(&ours, CONN, Role::Client).after(sent, sent);
    (client, NativeWire::new(&theirs, CONN, Role::Server).after(sent, sent))
}

fn envelopes(newest: u64) -> [(&'static str, Envelope); 7] {
    let stamps = Stamps { sent: Stamp::from_wire(1000), reply: None };
    let report = Report { newest: Seq::new(newest), received: u128::MAX, ..Report::default() };
    let measured = Report {
        loss: 26,
        queue: Duration::from_millis(14),
        ack_delay: Duration::from_millis(60),
        ..report
    };
    let missing = Report { newest: Seq::new(newest + 3), received: !0b101, ..measured };
    let control = Control {
        challenge: Some(0x0102_0304_0506_0708),
        response: Some(0x1112_1314_1516_1718),
        announce: Some(Announce { version_max: 0, features: Announce::PARITY | Announce::SLOTS }),
        slot: None,
        padding: 5,
    };
    // Parity, and extensions that nobody knows yet.
    let speaks = Announce { version_max: 7, features: 0xa000_0001 };
    [
        ("plain", stamps.into()),
        ("report", Envelope { report: Some(report), ..stamps.into() }),
        (
            "all",
            Envelope {
                stamps: Stamps { sent: Stamp::from_wire(2000), reply: Stamp::from_wire(3000) },
                report: Some(measured),
                flags: Flags { again: true, ack_only: true },
                control,
            },
        ),
        ("control", Envelope { control, ..stamps.into() }),
        // Of the numbers before the newest but the last one and the third last have come.
        ("missing", Envelope { report: Some(missing), ..stamps.into() }),
        (
            "speaks",
            Envelope {
                control: Control { announce: Some(speaks), ..Control::default() },
                ..Envelope::default()
            },
        ),
        (
            "slot",
            Envelope {
                flags: Flags { again: false, ack_only: true },
                control: Control {
                    slot: Some(Slot { slot_ms: 55, hold_ms: 3, answer_bytes: 128 }),
                    padding: 70,
                    ..Control::default()
                },
                ..stamps.into()
            },
        ),
    ]
}

/// What a datagram says beside its payload, by the names of `docs/wire.md` §5 and §8.
fn fields(header: &Header) -> Value {
    let Header { stamps, report, flags, control, .. } = header;
    let stamp = |stamp: Option<Stamp>| stamp.map(|stamp| Stamp::to_wire(Some(stamp)));
    let report = report.map(|report| {
        let lost = (0..128).filter(|bit| report.received >> bit & 1 == 0);
        let missing: Vec<u64> = lost.map(|bit| report.newest.get() - 1 - bit).collect();
        json!({
            "newest": report.newest.get(), "missing": missing, "lost_256ths": report.loss,
            "queue_ms": report.queue.as_millis() as u64,
            "ack_delay_ms": report.ack_delay.as_millis() as u64,
        })
    });
    let token = |token: Option<u64>| token.map(|token| hex(&token.to_be_bytes()));
    let speaks = control.announce.map(|Announce { version_max, features }| {
        json!({ "version": version_max, "extensions": features })
    });
    let slot = control.slot.map(|Slot { slot_ms, hold_ms, answer_bytes }| {
        json!({ "slot_ms": slot_ms, "hold_ms": hold_ms, "answer_bytes": answer_bytes })
    });
    json!({
        "again": flags.again, "ack_only": flags.ack_only,
        "sent": stamp(stamps.sent), "reply": stamp(stamps.reply), "report": report,
        "question": token(control.challenge), "answer": token(control.response),
        "speaks": speaks, "slot": slot, "padding": control.padding,
    })
}

/// A conversation in which both ends move on by a phase.
fn conversation() -> Vec<Value> {
    let (mut client, mut server) = ends(0);
    let mut values = Vec::new();
    for seconds in [0, 1, 125] {
        for (name, envelope) in envelopes(0) {
            for end in ["client", "server"] {
                // The very first datagram has nothing to report.
                let report = envelope.report.filter(|_| !values.is_empty());
                let envelope = Envelope { report, ..envelope };
                values.push(datagram(&mut client, &mut server, seconds, end, name, envelope));
            }
        }
    }
    assert_eq!((client.phases(), server.phases()), ((1, 1), (1, 1)));
    values
}

/// The same each way, once, with numbers of more than 32 bits.
fn high() -> Vec<Value> {
    let (mut client, mut server) = ends(HIGH);
    let mut values = Vec::new();
    for (name, envelope) in envelopes(HIGH - 4) {
        for end in ["client", "server"] {
            values.push(datagram(&mut client, &mut server, 0, end, name, envelope));
        }
    }
    values
}

fn datagram(
    client: &mut NativeWire,
    server: &mut NativeWire,
    seconds: u64,
    end: &str,
    name: &str,
    envelope: Envelope,
) -> Value {
    let (from, to) = if end == "client" { (client, server) } else { (server, client) };
    let (now, timeout) = (Time::from_millis(seconds * 1000), Duration::from_millis(300));
    from.advance(now, timeout);
    to.advance(now, timeout);
    let payload = format!("{name} of the {end}");
    let mut out = Vec::new();
    let seq = from.seal(&envelope, payload.as_bytes(), &mut out).unwrap();
    let datagram = hex(&out);
    to.open(&mut out).unwrap();
    json!({
        "from": end, "seq": seq.get(), "phase": from.phases().0, "name": name,
        "fields": fields(&Header::new(seq, envelope)), "payload": hex(payload.as_bytes()),
        "text": hex(&out[CLEAR..out.len() - TAG]), "datagram": datagram,
    })
}

fn instructions() -> Vec<(&'static str, Instruction)> {
    let numbers = |old: u64, new: u64, ack: u64, throwaway: u64| Instruction {
        old: old.into(),
        new: new.into(),
        ack: ack.into(),
        throwaway: throwaway.into(),
        diff: b"a diff".to_vec(),
        ..Instruction::default()
    };
    let key = || numbers(300, 301, 7, 299);
    vec![
        ("key", key()),
        ("chaff", Instruction { chaff: vec![9; 3], ..key() }),
        ("asks", Instruction { announcement: Announcement::ASKS, ..key() }),
        ("knows", Instruction { announcement: Announcement::KNOWS, ..key() }),
        ("deflated", Instruction { diff: b"one text ".repeat(20), ..key() }),
        ("idle", Instruction { diff: Vec::new(), ..numbers(301, 301, 7, 301) }),
        ("empty state", Instruction { diff: Vec::new(), ..numbers(301, 302, 7, 301) }),
        ("high numbers", numbers(HIGH, HIGH + 300, 1 << 40, HIGH - 7)),
        ("new below old", numbers(9, 5, 7, 3)),
        ("the last state", numbers(301, StateNum::SHUTDOWN.get(), StateNum::SHUTDOWN.get(), 301)),
    ]
}

fn instruction_fields(message: &Instruction) -> Value {
    json!({
        "old": message.old.get(), "new": message.new.get(),
        "ack": message.ack.get(), "throwaway": message.throwaway.get(),
        "diff": hex(&message.diff), "chaff": hex(&message.chaff),
        "announcement": message.announcement.to_number(),
    })
}

fn packed(wire: &mut NativeWire) -> Vec<Value> {
    let pack = |(name, message): (&str, Instruction)| {
        let mut out = Vec::new();
        wire.pack(&message, &mut Deflater::default(), &mut out);
        let mut entry = instruction_fields(&message);
        entry["name"] = json!(name);
        entry["packed"] = json!(hex(&out));
        entry
    };
    instructions().into_iter().map(pack).collect()
}

fn fragments(wire: &NativeWire) -> Vec<Value> {
    let cut = |(id, number, last): (u64, u16, bool)| {
        let mut out = Vec::new();
        let fragment = Fragment { id: id.into(), number, last, contents: b"contents" };
        wire.encode_fragment(&fragment, &mut out);
        json!({
            "id": id, "number": number, "last": last, "contents": hex(fragment.contents),
            "fragment": hex(&out),
        })
    };
    let shapes = [(5, 0, true), (5, 0, false), (5, 1, true), (HIGH, 0x7fff, true)];
    shapes.into_iter().map(cut).collect()
}

/// Three fragments and what replaces two of them.
fn parity(wire: &NativeWire) -> Value {
    let fragments: [&[u8]; 3] = [b"contents", b" in thre", b"e parts"];
    let made = [0, 1].map(|index| {
        let mut contents = Vec::new();
        protect(index, fragments.into_iter(), 8, &mut contents);
        let parity = Parity { id: 5.into(), count: 3, index, last_bytes: 7, contents: &contents };
        let mut out = Vec::new();
        wire.encode_parity(&parity, &mut out);
        json!({ "index": index, "contents": hex(&contents), "fragment": hex(&out) })
    });
    json!({ "id": 5, "fragments": fragments.map(hex), "last_bytes": 7, "parity": made })
}

#[test]
fn the_examples_are_made() {
    let (mut wire, _) = ends(0);
    vectors::check(&json!({
        "exchange": exchange().0,
        "datagrams": conversation(),
        "high_datagrams": high(),
        "instructions": packed(&mut wire),
        "fragments": fragments(&wire),
        "parity": parity(&wire),
    }));
}

/// Opens datagrams in their order, and compares what they say with what the file says that they say.
fn read_datagrams(all: &Value, sent: u64) {
    let (mut client, mut server) = ends(sent);
    for entry in list(all) {
        let from_client = entry["from"] == "client";
        let (from, to) = match from_client {
            true => (&mut client, &mut server),
            false => (&mut server, &mut client),
        };
        let mut datagram = octets(&entry["datagram"]);
        let (header, payload) = to.open(&mut datagram).unwrap();
        assert_eq!(fields(&header), entry["fields"], "{entry}");
        assert_eq!(Value::from(header.seq.get()), entry["seq"], "{entry}");
        assert_eq!(Value::from(to.phases().1), entry["phase"], "{entry}");
        assert_eq!(hex(&datagram[payload]), entry["payload"], "{entry}");
        assert_eq!(hex(&datagram[CLEAR..datagram.len() - TAG]), entry["text"], "{entry}");
        // Reports of it are believed once as many were sealed.
        from.seal(&Envelope::default(), b"", &mut datagram).unwrap();
    }
}

#[test]
fn the_examples_are_read_as_they_say() {
    let kept: Map<String, Value> = kept();
    read_datagrams(&kept["datagrams"], 0);
    read_datagrams(&kept["high_datagrams"], HIGH);
    let (wire, _) = ends(0);
    for entry in list(&kept["instructions"]) {
        let message = wire.unpack(&octets(&entry["packed"])).unwrap();
        let read = instruction_fields(&message);
        for (name, value) in read.as_object().unwrap() {
            assert_eq!(value, &entry[name], "{name} of {entry}");
        }
    }
    for entry in list(&kept["fragments"]) {
        let octets = octets(&entry["fragment"]);
        let piece = wire.decode_piece(&octets).unwrap();
        let Piece::Fragment(read) = piece else { panic!("{entry}") };
        let is_only = read.last && read.number == 0;
        let id = entry["id"].as_u64().unwrap() & u64::from(u32::MAX);
        assert!(is_only || read.id.get() == id, "{entry}");
        assert_eq!(
            json!([read.number, read.last, hex(read.contents)]),
            json!([entry["number"], entry["last"], entry["contents"]])
        );
    }
    let parity = &kept["parity"];
    for entry in list(&parity["parity"]) {
        let octets = octets(&entry["fragment"]);
        let Ok(Piece::Parity(read)) = wire.decode_piece(&octets) else { panic!("{entry}") };
        assert_eq!(usize::from(read.count), list(&parity["fragments"]).len());
        assert_eq!(
            json!([read.id.get(), read.last_bytes]),
            json!([parity["id"], parity["last_bytes"]])
        );
        assert_eq!(
            json!([read.index, hex(read.contents)]),
            json!([entry["index"], entry["contents"]])
        );
    }
}
