//! The examples of `docs/wire.md`: each is made as the file has it, and read back.
//! `ROVE_WRITE_VECTORS=1 cargo test -p rove-ssp --test native_vectors` writes the file anew.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // Helpers of tests are tests.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use rove_ssp::{
    Announce, Announcement, ConnId, Context, Control, Envelope, Flags, Fragment, Instruction,
    KeyPair, NativeWire, Parity, Piece, Report, Role, Seq, SessionSecrets, Stamp, Stamps, StateNum,
    Time, Wire, protect,
};
use serde_json::{Value, json};
use zeroize::Zeroizing;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

const CONN: ConnId = ConnId::new(0x1a2b_3c4d);

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
        "nonce": hex(&context.nonce), "connection": CONN.to_string(), "quic": hex(&*ours.streams()),
    });
    assert_eq!(ours.streams(), theirs.streams());
    (value, ours, theirs)
}

fn envelopes() -> [(&'static str, Envelope); 5] {
    let stamps = Stamps { sent: Stamp::from_wire(1000), reply: None };
    let report = Report {
        newest: Seq::new(0),
        received: u128::MAX,
        loss: 0,
        queue: Duration::ZERO,
        ack_delay: Duration::ZERO,
    };
    let measured = Report {
        loss: 26,
        queue: Duration::from_millis(14),
        ack_delay: Duration::from_millis(60),
        ..report
    };
    let missing = Report { newest: Seq::new(3), received: !0b101, ..measured };
    let control = Control {
        challenge: Some(0x0102_0304_0506_0708),
        response: Some(0x1112_1314_1516_1718),
        announce: Some(Announce { version_max: 0, features: 0 }),
        padding: 5,
    };
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
        // Of the numbers before 3, which came, 2 and 0 have not.
        ("missing", Envelope { report: Some(missing), ..stamps.into() }),
    ]
}

fn instructions() -> [(&'static str, Instruction); 6] {
    let state = |number: u64| StateNum::from(number);
    let key = Instruction {
        old: state(300),
        new: state(301),
        ack: state(7),
        throwaway: state(299),
        diff: b"a diff".to_vec(),
        ..Instruction::default()
    };
    [
        ("key", key.clone()),
        ("chaff", Instruction { chaff: vec![9; 3], ..key.clone() }),
        ("asks", Instruction { announcement: Announcement::ASKS, ..key.clone() }),
        ("knows", Instruction { announcement: Announcement::KNOWS, ..key.clone() }),
        ("deflated", Instruction { diff: b"one text ".repeat(20), ..key.clone() }),
        (
            "idle",
            Instruction {
                old: state(301),
                new: state(301),
                throwaway: state(301),
                diff: Vec::new(),
                ..key
            },
        ),
    ]
}

/// A conversation in which both ends move on by a phase.
fn datagrams(ours: &SessionSecrets, theirs: &SessionSecrets) -> Vec<Value> {
    let mut client = NativeWire::new(ours, CONN, Role::Client);
    let mut server = NativeWire::new(theirs, CONN, Role::Server);
    let mut values = Vec::new();
    let timeout = Duration::from_millis(300);
    for (seconds, name, envelope) in [0, 1, 125]
        .into_iter()
        .flat_map(|seconds| envelopes().map(|(name, envelope)| (seconds, name, envelope)))
    {
        for end in ["client", "server"] {
            let (from, to) = match end {
                "client" => (&mut client, &mut server),
                _ => (&mut server, &mut client),
            };
            let mut datagram = Vec::new();
            let now = Time::from_millis(seconds * 1000);
            from.advance(now, timeout);
            to.advance(now, timeout);
            // The very first datagram has nothing to report.
            let envelope = match values.is_empty() {
                true => Envelope { report: None, ..envelope },
                false => envelope,
            };
            let payload = format!("{name} of the {end}");
            let seq = from.seal(&envelope, payload.as_bytes(), &mut datagram).unwrap();
            values.push(json!({
                "from": end, "seq": seq.get(), "phase": from.phases().0, "says": name,
                "payload": payload, "datagram": hex(&datagram),
            }));
            let (header, range) = to.open(&mut datagram).unwrap();
            assert_eq!(
                (header.seq, header.stamps, header.flags),
                (seq, envelope.stamps, envelope.flags)
            );
            assert_eq!((header.report, header.control), (envelope.report, envelope.control));
            assert_eq!(&datagram[range], payload.as_bytes());
        }
    }
    assert_eq!((client.phases(), server.phases()), ((1, 1), (1, 1)));
    values
}

fn packed(wire: &mut NativeWire) -> (Vec<Value>, Vec<Value>) {
    let mut whole = Vec::new();
    let mut cut = Vec::new();
    for (name, message) in instructions() {
        let mut out = Vec::new();
        wire.pack(&message, &mut out);
        assert_eq!(wire.unpack(&out).as_ref(), Ok(&message));
        whole.push(json!({
            "name": name, "old": message.old.get(), "new": message.new.get(),
            "ack": message.ack.get(), "throwaway": message.throwaway.get(),
            "diff": hex(&message.diff), "chaff": hex(&message.chaff), "packed": hex(&out),
            "announcement": message.announcement.to_number(),
        }));
    }
    for (id, number, last) in [(5_u64, 0, true), (5, 0, false), (5, 1, true)] {
        let mut out = Vec::new();
        let fragment = Fragment { id: id.into(), number, last, contents: b"contents" };
        wire.encode_fragment(&fragment, &mut out);
        let read = wire.decode_piece(&out).unwrap();
        let Piece::Fragment(read) = read else { panic!("{read:?}") };
        assert_eq!((read.number, read.last, read.contents), (number, last, fragment.contents));
        cut.push(json!({
            "id": id, "number": number, "last": last, "contents": hex(fragment.contents),
            "fragment": hex(&out),
        }));
    }
    (whole, cut)
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
        assert_eq!(wire.decode_piece(&out), Ok(Piece::Parity(parity)));
        json!({ "index": index, "contents": hex(&contents), "fragment": hex(&out) })
    });
    json!({ "id": 5, "fragments": fragments.map(hex), "parity": made })
}

#[test]
fn the_examples_hold() {
    let (exchange, ours, theirs) = exchange();
    let mut wire = NativeWire::new(&ours, CONN, Role::Client);
    let (instructions, fragments) = packed(&mut wire);
    let made = json!({
        "exchange": exchange,
        "datagrams": datagrams(&ours, &theirs),
        "instructions": instructions,
        "fragments": fragments,
        "parity": parity(&wire),
    });
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/native-vectors.json");
    if std::env::var_os("ROVE_WRITE_VECTORS").is_some() {
        std::fs::write(&file, format!("{made:#}\n")).unwrap();
    }
    let kept: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    for part in ["exchange", "datagrams", "instructions", "fragments", "parity"] {
        assert_eq!(made[part], kept[part], "{part}");
    }
}
