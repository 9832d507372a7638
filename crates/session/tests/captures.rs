//! Recorded sessions of stock mosh 1.4.0 programs, played to our ends (`mosh-protocol.md` §12).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{client_address, client_config, server_address, server_config, size, trimmed};
use rove_session::{Client, Peer, Server, client, server};
use rove_ssp::{Arrival, Key, Machine, MoshWire, Outbox, Role, Time};
use rove_term::Size;
use serde_json::Value;

fn captures() -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../ssp/tests/vectors/mosh-vectors.json");
    let text = std::fs::read_to_string(path).expect("the vectors are part of the repository");
    let vectors: Value = serde_json::from_str(&text).expect("the vectors are JSON");
    vectors["captures"].as_array().expect("captures").clone()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_else(|| panic!("{name} is text"))
}

fn octets(hex: &str) -> Vec<u8> {
    let pair = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    hex.as_bytes().chunks(2).map(pair).collect()
}

fn window(capture: &Value) -> Size {
    let side = |name: &str| capture[name].as_u64().unwrap() as u16;
    size(side("height"), side("width"))
}

fn wire(capture: &Value, role: Role) -> Box<MoshWire> {
    Box::new(MoshWire::new(Key::from_base64(text(capture, "key")).unwrap(), role))
}

/// Plays what the stock program sent, each datagram at its time and then again.
fn play<M: Machine>(machine: &mut M, capture: &Value, mut each: impl FnMut(&mut M)) {
    let from = match capture["packets"][0]["from"].as_str() {
        Some("stock") => client_address(),
        _ => server_address(),
    };
    let mut out = Outbox::default();
    for packet in capture["packets"].as_array().unwrap() {
        if packet["from"] != "stock" {
            continue;
        }
        let now = Time::from_millis(1000 + packet["t_ms"].as_u64().unwrap());
        let arrival = Arrival { from: from.into(), congested: false };
        let mut datagram = octets(text(packet, "packet"));
        machine.handle_datagram(now, arrival, &mut datagram.clone()).unwrap();
        while machine.poll_transmit(now, &mut out).is_some() {}
        each(machine);
        let _ = machine.handle_datagram(now, arrival, &mut datagram);
    }
}

#[test]
fn stock_servers_screens_are_ours() {
    let mut played = 0;
    for capture in captures().iter().filter(|capture| capture["final_screen"].is_array()) {
        let mut config = client_config(Peer::Stock);
        config.wire = wire(capture, Role::Client);
        config.size = window(capture);
        let mut client = Client::new(Time::from_millis(1000), config);
        play(&mut client, capture, |_| {});
        let rows = capture["final_screen"].as_array().unwrap().iter();
        let mut expected: Vec<String> =
            rows.map(|row| row.as_str().unwrap().trim_end().to_owned()).collect();
        while expected.last().is_some_and(String::is_empty) {
            expected.pop();
        }
        assert_eq!(trimmed(client.view().screen()), expected, "{}", capture["name"]);
        assert_eq!(client.view().ignored(), 0, "{}", capture["name"]);
        let left = text(capture, "name").contains("exits by itself");
        let exited = std::iter::from_fn(|| client.poll_event())
            .any(|event| matches!(event, client::Event::Exited(exit) if exit.clean));
        assert_eq!(exited, left, "{}", capture["name"]);
        played += 1;
    }
    assert_eq!(played, 3);
}

#[test]
fn stock_clients_keys_are_delivered() {
    let mut played = 0;
    for capture in captures().iter().filter(|capture| !capture["final_screen"].is_array()) {
        let mut config = server_config(Peer::Stock);
        config.wire = wire(capture, Role::Server);
        let mut server = Server::new(Time::from_millis(1000), config);
        let mut events = Vec::new();
        play(&mut server, capture, |server| {
            events.extend(std::iter::from_fn(|| server.poll_event()));
        });
        let (mut typed, mut chunk) = (Vec::new(), Vec::new());
        while server.pending_input() > 0 {
            server.poll_input(&mut chunk);
            typed.append(&mut chunk);
        }
        let mut expected = octets(text(capture, "keys"));
        if let Some(arrow) = expected.windows(3).position(|keys| keys == b"\x1bOA") {
            expected[arrow + 1] = b'[';
        }
        assert!(typed == expected, "{}", capture["name"]);
        let mut sizes = vec![window(capture)];
        sizes.retain(|&size| size != Size::DEFAULT);
        if text(capture, "name").contains("resize") {
            sizes.push(size(15, 80));
        }
        let resized = events.iter().filter_map(|event| match event {
            server::Event::Resize(size) => Some(*size),
            _ => None,
        });
        assert_eq!(resized.collect::<Vec<_>>(), sizes, "{}", capture["name"]);
        let left =
            events.iter().any(|event| matches!(event, server::Event::Exited(exit) if exit.clean));
        assert_eq!(left, text(capture, "name").contains("quits"), "{}", capture["name"]);
        played += 1;
    }
    assert_eq!(played, 2);
}
