//! The examples of `docs/wire.md` (§11) that hold diffs: diffs by themselves, and a short session of
//! whole datagrams. Each is made as the file has it, and what the file has is read into the fields that
//! it names. `rove-ssp`'s test of this name says how the file is written anew.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // Helpers of tests are tests.

#[path = "../../ssp/tests/common/vectors.rs"]
mod vectors;

use rove_session::messages::{
    DepthFields, Dimensions, HostEvent, RowsFields, UserEvent, read_host, read_user, write_host,
    write_user,
};
use rove_session::session_info::SessionFields;
use rove_session::{LineMode, LineReport};
use rove_ssp::{
    Announcement, Assembler, ConnId, Deflater, Envelope, Flags, Instruction, NativeWire, Report,
    Role, SessionSecrets, Stamp, Stamps, StateNum, Wire, fragments,
};
use rove_term::properties::{Rgb, SavesErased, Scheme, TerminalProperties};
use serde_json::{Value, json};
use vectors::{hex, kept, list, octets};

const CONN: u32 = 0x1a2b_3c4d;
const SECRETS: [[u8; 32]; 2] = [[0x44; 32], [0x55; 32]];
/// Octets of a fragment's contents: few, so that there are several.
const ROOM: usize = 100;

fn ends() -> [NativeWire; 2] {
    let secrets = SessionSecrets::from_bytes(SECRETS[0], SECRETS[1], [0; 32]);
    [Role::Client, Role::Server].map(|role| NativeWire::new(&secrets, ConnId::new(CONN), role))
}

fn size(width: i32, height: i32) -> Dimensions {
    Dimensions { width, height }
}

fn around() -> TerminalProperties {
    let mut palette = [None; 16];
    (palette[0], palette[15]) = (Some(Rgb(0, 0, 0)), Some(Rgb(255, 255, 255)));
    TerminalProperties {
        foreground: Some(Rgb(0xaa, 0xbb, 0xcc)),
        background: Some(Rgb(1, 2, 3)),
        cursor: Some(Rgb(0xff, 0, 0x80)),
        palette,
        scheme: Some(Scheme::Dark),
        cell: Some((9, 18)),
        saves_erased: SavesErased::Never,
    }
}

fn user_diffs() -> Vec<(&'static str, Vec<UserEvent<'static>>)> {
    vec![
        ("a key", vec![UserEvent::Keys(b"x")]),
        (
            "keys around a size",
            vec![
                UserEvent::Keys(b"ls\r"),
                UserEvent::Resize(size(100, 30)),
                UserEvent::Keys(b"\x1b[A\xe6\xbc\xa2"),
            ],
        ),
        ("a size that means nothing", vec![UserEvent::Resize(size(-1, 0))]),
        ("extension 18", vec![UserEvent::TerminalProperties(around())]),
        (
            "extension 18, nothing known",
            vec![UserEvent::TerminalProperties(TerminalProperties::default())],
        ),
        (
            "extension 18, what is erased is saved",
            vec![UserEvent::TerminalProperties(TerminalProperties {
                saves_erased: SavesErased::FromHome,
                ..TerminalProperties::default()
            })],
        ),
        ("extension 22", vec![UserEvent::Keys(b"x"), UserEvent::Leaving]),
        ("extension 23", vec![UserEvent::LinesWanted(10_000)]),
    ]
}

fn host_diffs() -> Vec<(&'static str, Vec<HostEvent<'static>>)> {
    vec![
        ("a screen", vec![HostEvent::Bytes(b"\x1b[H$ ls\x1b[K")]),
        (
            "all in order",
            vec![
                HostEvent::EchoAck((1 << 33) + 1),
                HostEvent::Resize(size(132, 43)),
                HostEvent::Bytes(b"\x1b[r\x1b[0m\x1b[H\x1b[2J"),
                HostEvent::Line(LineMode::Cooked.into()),
                HostEvent::ExitStatus(3),
            ],
        ),
        ("extension 16, ICANON without ECHO", vec![HostEvent::Line(LineMode::Hidden.into())]),
        (
            "extension 16, the third hidden line, which may be kept",
            vec![HostEvent::Line(LineReport {
                mode: LineMode::Hidden,
                hidden: Some(3),
                may_be_kept: true,
            })],
        ),
        ("extension 16, neither", vec![HostEvent::Line(LineMode::Raw.into())]),
        ("extension 17, below zero", vec![HostEvent::ExitStatus(-1)]),
        (
            "extensions 19 and 20",
            vec![
                HostEvent::Depth(DepthFields { depth: 300, told: 298, erased: 2, falls: 1 }),
                HostEvent::Rows(RowsFields {
                    first: Some(290),
                    kept: 6,
                    text: b"one\r\n\x1b[31mtwo\x1b[m\r\n",
                    count: 2,
                    cols: 80,
                    open: false,
                }),
            ],
        ),
        (
            "extension 20, a row that stood on the screen",
            vec![HostEvent::Rows(RowsFields { kept: 1, ..RowsFields::default() })],
        ),
        (
            "extension 21",
            vec![HostEvent::Session(SessionFields {
                name: b"work",
                flags: 1,
                others: 2,
                ended: 0,
                who: b"203.0.113.9",
            })],
        ),
    ]
}

fn user_fields(event: &UserEvent<'_>) -> Value {
    match event {
        UserEvent::Keys(octets) => json!({ "keys": hex(octets) }),
        UserEvent::Resize(size) => json!({ "width": size.width, "height": size.height }),
        UserEvent::Leaving => json!({ "leaving": 1 }),
        UserEvent::LinesWanted(wanted) => json!({ "lines_wanted": wanted }),
        UserEvent::TerminalProperties(around) => {
            let color = |color: Option<Rgb>| color.map(|Rgb(r, g, b)| hex(&[r, g, b]));
            json!({
                "foreground": color(around.foreground), "background": color(around.background),
                "cursor": color(around.cursor), "palette": around.palette.map(color),
                "scheme": around.scheme.map(|scheme| match scheme {
                    Scheme::Dark => "dark",
                    Scheme::Light => "light",
                }),
                "cell": around.cell,
                "saves_erased": match around.saves_erased {
                    SavesErased::Never => None,
                    SavesErased::All => Some("all"),
                    SavesErased::FromHome => Some("from home"),
                },
            })
        }
    }
}

fn host_fields(event: &HostEvent<'_>) -> Value {
    match event {
        HostEvent::Bytes(octets) => json!({ "bytes": hex(octets) }),
        HostEvent::Resize(size) => json!({ "width": size.width, "height": size.height }),
        HostEvent::EchoAck(number) => json!({ "echo_ack": number }),
        HostEvent::Line(line) => {
            let (icanon, echo) = match line.mode {
                LineMode::Cooked => (true, true),
                LineMode::Hidden => (true, false),
                LineMode::Raw => (false, false),
            };
            let (hidden, kept) = (line.hidden, line.may_be_kept);
            json!({ "icanon": icanon, "echo": echo, "hidden": hidden, "may_be_kept": kept })
        }
        HostEvent::ExitStatus(status) => json!({ "exit_status": status }),
        HostEvent::Session(SessionFields { name, flags, others, ended, who }) => json!({
            "name": hex(name), "flags": flags, "others": others, "ended": ended, "who": hex(who),
        }),
        HostEvent::Depth(DepthFields { depth, told, erased, falls }) => json!({
            "depth": depth, "told": told, "erased": erased, "falls": falls,
        }),
        HostEvent::Rows(RowsFields { first, cols, count, kept, text, open }) => json!({
            "first": first, "cols": cols, "count": count, "kept": kept, "text": hex(text),
            "open": open,
        }),
    }
}

fn user_diff(events: &[UserEvent<'_>]) -> Vec<u8> {
    let mut diff = Vec::new();
    events.iter().for_each(|&event| write_user(event, &mut diff));
    diff
}

fn host_diff(events: &[HostEvent<'_>]) -> Vec<u8> {
    let mut diff = Vec::new();
    events.iter().for_each(|&event| write_host(event, &mut diff));
    diff
}

/// What the diff of a datagram says, by the end that it comes from.
fn events(from: &str, diff: &[u8]) -> Vec<Value> {
    match from {
        "client" => read_user(diff).unwrap().iter().map(user_fields).collect(),
        _ => read_host(diff).unwrap().iter().map(host_fields).collect(),
    }
}

/// A key and a size, the screen that answers them, its acknowledgment, and the end.
fn messages() -> Vec<(&'static str, &'static str, Instruction)> {
    let states = |old: u64, new: StateNum, ack: u64, diff| Instruction {
        old: old.into(),
        new,
        ack: ack.into(),
        diff,
        ..Instruction::default()
    };
    let typed = user_diff(&[UserEvent::Resize(size(100, 30)), UserEvent::Keys(b"exit\r")]);
    let lines: String = (0..30).map(|n| format!("{:x}\r\n", n * n * 0x9e37_79b9_u64)).collect();
    let shown = host_diff(&[
        HostEvent::EchoAck(1),
        HostEvent::Resize(size(100, 30)),
        HostEvent::Bytes(lines.as_bytes()),
    ]);
    let last = host_diff(&[HostEvent::Bytes(b"logout\r\n"), HostEvent::ExitStatus(0)]);
    let both = Announcement::ASKS.and(Announcement::KNOWS);
    vec![
        (
            "client",
            "first state",
            Instruction { announcement: Announcement::ASKS, ..states(0, 1.into(), 0, typed) },
        ),
        (
            "server",
            "a long screen",
            Instruction { announcement: both, ..states(0, 1.into(), 1, shown) },
        ),
        (
            "client",
            "acknowledgment",
            Instruction {
                throwaway: 1.into(),
                announcement: Announcement::KNOWS,
                ..states(1, 1.into(), 1, Vec::new())
            },
        ),
        (
            "server",
            "the last state",
            Instruction { throwaway: 1.into(), ..states(1, StateNum::SHUTDOWN, 1, last) },
        ),
    ]
}

fn instruction_fields(message: &Instruction) -> Value {
    json!({
        "old": message.old.get(), "new": message.new.get(), "ack": message.ack.get(),
        "throwaway": message.throwaway.get(), "announcement": message.announcement.to_number(),
    })
}

fn session() -> Value {
    let [mut client, mut server] = ends();
    let (mut entries, mut ids, mut heard) = (Vec::new(), [0_u64; 2], [None; 2]);
    for (from, name, message) in messages() {
        let end = usize::from(from == "server");
        let wire = if end == 0 { &mut client } else { &mut server };
        let mut packed = Vec::new();
        wire.pack(&message, &mut Deflater::default(), &mut packed);
        ids[end] += 1;
        let mut sealed = Vec::new();
        for fragment in fragments(ids[end].into(), &packed, ROOM) {
            let (mut payload, mut datagram) = (Vec::new(), Vec::new());
            wire.encode_fragment(&fragment, &mut payload);
            let newest = |newest| Report { newest, received: u128::MAX, ..Report::default() };
            let envelope = Envelope {
                stamps: Stamps { sent: Stamp::from_wire(100), reply: None },
                report: heard[end].map(newest),
                flags: Flags { again: false, ack_only: message.old == message.new },
                ..Envelope::default()
            };
            heard[1 - end] = Some(wire.seal(&envelope, &payload, &mut datagram).unwrap());
            sealed.push(hex(&datagram));
        }
        let events = events(from, &message.diff);
        let instruction = instruction_fields(&message);
        entries.push(json!({
            "from": from, "name": name, "instruction": instruction, "events": events,
            "datagrams": sealed,
        }));
    }
    json!({
        "client": hex(&SECRETS[0]), "server": hex(&SECRETS[1]),
        "connection": ConnId::new(CONN).to_string(), "messages": entries,
    })
}

#[test]
fn the_examples_are_made() {
    let users = user_diffs().into_iter().map(|(name, all)| {
        let events: Vec<Value> = all.iter().map(user_fields).collect();
        json!({ "name": name, "events": events, "diff": hex(&user_diff(&all)) })
    });
    let hosts = host_diffs().into_iter().map(|(name, all)| {
        let events: Vec<Value> = all.iter().map(host_fields).collect();
        json!({ "name": name, "events": events, "diff": hex(&host_diff(&all)) })
    });
    vectors::check(&json!({
        "user_diffs": users.collect::<Value>(),
        "host_diffs": hosts.collect::<Value>(),
        "session": session(),
    }));
}

#[test]
fn the_examples_are_read_as_they_say() {
    let kept = kept();
    for (part, from) in [("user_diffs", "client"), ("host_diffs", "server")] {
        for entry in list(&kept[part]) {
            let read = events(from, &octets(&entry["diff"]));
            assert_eq!(Value::from(read), entry["events"], "{entry}");
        }
    }
    let [mut client, mut server] = ends();
    let mut assemblers = [Assembler::new(64), Assembler::new(64)];
    for entry in list(&kept["session"]["messages"]) {
        let from = entry["from"].as_str().unwrap();
        let (end, by, to) = match from {
            "client" => (0, &mut client, &mut server),
            _ => (1, &mut server, &mut client),
        };
        let mut whole = None;
        for datagram in list(&entry["datagrams"]) {
            assert_eq!(whole, None, "it is whole before its last fragment: {entry}");
            let mut datagram = octets(datagram);
            let (_, payload) = to.open(&mut datagram).unwrap();
            let piece = to.decode_piece(&datagram[payload]).unwrap();
            whole = assemblers[end].take(piece).unwrap();
            // Reports of it are believed once as many were sealed.
            by.seal(&Envelope::default(), b"", &mut datagram).unwrap();
        }
        let message = to.unpack(&whole.unwrap()).unwrap();
        assert_eq!(instruction_fields(&message), entry["instruction"], "{entry}");
        assert_eq!(Value::from(events(from, &message.diff)), entry["events"], "{entry}");
    }
}
