use super::*;
use crate::path::mtud::MtuChange;
use crate::wire::mosh::MoshWire;
use crate::wire::mosh::key::Key;
use crate::wire::native::{ConnId, NativeWire, SessionSecrets};

const TIMING: Timing = Timing::MOSH;
const KEY: [u8; 16] = [3; 16];

fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn path(role: Role, peer: Option<SocketAddr>) -> Path {
    let wire = Box::new(MoshWire::new(Key::from_bytes(KEY), role));
    Path::new(Time::ZERO, role, wire, &TIMING, peer)
}

fn wire(role: Role) -> MoshWire {
    MoshWire::new(Key::from_bytes(KEY), role)
}

fn sealed(wire: &mut MoshWire, sent: Option<u16>, reply: Option<u16>) -> Vec<u8> {
    let stamp = |word: Option<u16>| word.and_then(Stamp::from_wire);
    let mut out = Vec::new();
    wire.seal(&Stamps { sent: stamp(sent), reply: stamp(reply) }.into(), b"", &mut out).unwrap();
    out
}

fn from(port: u16) -> Arrival {
    Arrival { from: address(port).into(), congested: false }
}

fn receive(path: &mut Path, at_ms: u64, arrival: Arrival, mut datagram: Vec<u8>) -> Opened {
    let now = Time::from_millis(at_ms);
    let mut stats = Stats::default();
    path.receive(now, arrival, &mut datagram, &TIMING, &mut stats).unwrap()
}

fn send(path: &mut Path, at_ms: u64, acked_ms: u64) -> (Transmit, Stamps) {
    let mut out = Vec::new();
    let acked = Time::from_millis(acked_ms);
    let now = Time::from_millis(at_ms);
    let sending = Sending { acked_sent_at: acked, ..Sending::default() };
    let Sealed { transmit, .. } =
        path.send(now, address(1).into(), sending, &TIMING, &mut out).unwrap();
    let role = if path.role == Role::Client { Role::Server } else { Role::Client };
    (transmit, wire(role).open(&mut out).unwrap().0.stamps)
}

#[test]
fn stamps_are_answered_once_and_aged() {
    // Stamp received at 1000 ms, congestion, sent at ms; the reply.
    for (stamp, congested, at_ms, reply) in [
        (Some(700), false, 1000, Some(700)),
        (Some(700), false, 1250, Some(950)),
        (Some(700), true, 1250, Some(450)),
        (Some(65_000), false, 1999, Some(463)),
        (Some(700), false, 2000, None),
        (None, false, 1000, None),
    ] {
        let mut path = path(Role::Server, None);
        let datagram = sealed(&mut wire(Role::Client), stamp, None);
        receive(&mut path, 1000, Arrival { congested, ..from(9) }, datagram);
        let (_, stamps) = send(&mut path, at_ms, 0);
        assert_eq!(stamps.reply, reply.and_then(Stamp::from_wire), "{stamp:?} at {at_ms}");
        assert_eq!(stamps.sent, Some(Stamp::at(Time::from_millis(at_ms))));
        assert_eq!(send(&mut path, at_ms, 0).1.reply, None, "answered once");
    }
}

#[test]
fn only_newer_datagrams_count() {
    let mut path = path(Role::Server, None);
    let mut client = wire(Role::Client);
    let early = sealed(&mut client, Some(1), Some(900));
    let newer = sealed(&mut client, Some(2), Some(950));
    let replayed = newer.clone();

    let opened = receive(&mut path, 1000, from(7), newer);
    assert_eq!((opened.roamed, opened.freshness), (None, Freshness::Newest), "a first address");
    assert_eq!(path.rtt.srtt(), Duration::from_millis(50));
    for late in [early, replayed] {
        let opened = receive(&mut path, 5000, from(8), late);
        assert_eq!((opened.roamed, opened.freshness), (None, Freshness::Late));
        assert_eq!(path.peer(), Some(address(7).into()));
        assert_eq!(path.last_heard(), Some(Time::from_millis(1000)));
        assert_eq!(path.rtt.samples(), 1);
    }
    let next = sealed(&mut client, Some(3), None);
    assert_eq!(receive(&mut path, 6000, from(8), next).roamed, Some(address(8).into()));
    assert_eq!(path.peer(), Some(address(8).into()));
}

fn native(role: Role) -> NativeWire {
    let secrets = SessionSecrets::from_bytes([1; 32], [2; 32], [3; 32]);
    NativeWire::new(&secrets, ConnId::new(7), role)
}

fn asking(wire: &mut NativeWire, question: u64) -> Vec<u8> {
    let control = Control { challenge: Some(question), ..Control::default() };
    let mut out = Vec::new();
    wire.seal(&Envelope { control, ..Envelope::default() }, b"", &mut out).unwrap();
    out
}

#[test]
fn the_newest_question_is_answered() {
    for (order, answer) in [([0, 1, 2], 2), ([0, 2, 1], 2), ([2, 1, 0], 2)] {
        let wire = Box::new(native(Role::Client));
        let mut client = Path::new(Time::ZERO, Role::Client, wire, &TIMING, Some(address(1)));
        let mut server = native(Role::Server);
        let sent = [0, 1, 2].map(|question| asking(&mut server, question));
        for index in order {
            receive(&mut client, 10, from(1), sent[index].clone());
        }
        assert_eq!(client.owed, Some((answer, address(1).into())), "{order:?}");
    }
}

#[test]
fn answers_keep_to_what_an_unproven_address_may_get() {
    let wire = Box::new(native(Role::Server));
    let mut server = Path::new(Time::ZERO, Role::Server, wire, &TIMING, None);
    let mut peer = native(Role::Client);
    let (mut came, mut went) = (0, 0);
    for turn in 0..50 {
        let datagram = asking(&mut peer, turn);
        came += datagram.len();
        receive(&mut server, turn, from(9), datagram);
        while server.control_due(Time::from_millis(turn)).is_some() {
            let mut out = Vec::new();
            let now = Time::from_millis(turn);
            server.send(now, address(9).into(), Sending::default(), &TIMING, &mut out).unwrap();
            went += out.len();
            assert!(went <= 3 * came, "{went} octets for {came}");
            // As if another question came at once.
            server.owed = Some((turn, address(9).into()));
        }
    }
    assert!(went > 0);
}

/// What travels longer because it goes another way waits in no queue.
#[test]
fn another_path_has_another_delay() {
    let hear = |path: &mut Path, wire: &mut MoshWire, port, start_ms: u64, travel_ms: u64| {
        for sent in (0..10).map(|turn| start_ms + turn * 100) {
            let datagram = sealed(wire, Some(sent as u16), None);
            receive(path, sent + travel_ms, from(port), datagram);
        }
    };
    let (mut server, mut peer) = (path(Role::Server, None), wire(Role::Client));
    hear(&mut server, &mut peer, 7, 1000, 20);
    hear(&mut server, &mut peer, 8, 3000, 220);
    assert_eq!(server.arrivals.queue(), Duration::ZERO);
    hear(&mut server, &mut peer, 8, 5000, 520);
    assert_eq!(server.arrivals.queue(), Duration::from_millis(300), "the same path is slower");
    let (mut client, mut peer) = (path(Role::Client, Some(address(1))), wire(Role::Server));
    hear(&mut client, &mut peer, 1, 1000, 20);
    client.moved(Time::from_millis(2500));
    hear(&mut client, &mut peer, 1, 3000, 220);
    assert_eq!(client.arrivals.queue(), Duration::ZERO);
}

#[test]
fn clients_stay_with_their_server() {
    let mut path = path(Role::Client, Some(address(1)));
    let datagram = sealed(&mut wire(Role::Server), Some(1), None);
    assert_eq!(receive(&mut path, 10, from(66), datagram).roamed, None);
    assert_eq!(path.peer(), Some(address(1).into()));
    assert_eq!(path.target(Time::from_millis(90_000), &TIMING), Some(address(1).into()));
}

#[test]
fn servers_forget_silent_clients() {
    let mut path = path(Role::Server, None);
    assert_eq!(path.target(Time::from_millis(0), &TIMING), None);
    let mut wire = wire(Role::Client);
    let datagram = sealed(&mut wire, None, None);
    receive(&mut path, 1000, from(7), datagram);
    assert_eq!(path.target(Time::from_millis(40_999), &TIMING), Some(address(7).into()));
    assert_eq!(path.target(Time::from_millis(41_000), &TIMING), None);
    assert_eq!(path.peer(), None);
    // Back from elsewhere, it has roamed all the same.
    let datagram = sealed(&mut wire, None, None);
    assert_eq!(receive(&mut path, 50_000, from(8), datagram).roamed, Some(address(8).into()));
}

#[test]
fn clients_hop_when_unanswered() {
    // When the newest acknowledged state was sent; whether sends at 10 000, 10 001, 15 000 and
    // 20 002 ms take a new socket.
    for (acked_ms, hops) in [(0, [false, true, false, true]), (9_000, [false, false, false, true])]
    {
        let mut path = path(Role::Client, Some(address(1)));
        let sends = [10_000, 10_001, 15_000, 20_002];
        let taken = sends.map(|at_ms| send(&mut path, at_ms, acked_ms).0.new_port);
        assert_eq!(taken, hops, "acked {acked_ms}");
    }
    let mut server = path(Role::Server, Some(address(1)));
    assert!(!send(&mut server, 90_000, 0).0.new_port);
}

#[test]
fn clients_that_are_heard_keep_their_port() {
    // When the server reports a datagram of the client's that it had not reported; whether sends at
    // 10 005, 15 000 and 20 010 ms, with no state acknowledged, take a new socket: the first that has
    // no answer counts.
    for (reported_ms, hops) in [(None, [true, false, true]), (Some(4_000), [false, false, true])] {
        let wire = Box::new(native(Role::Client));
        let mut path = Path::new(Time::ZERO, Role::Client, wire, &TIMING, Some(address(1)));
        let send = |path: &mut Path, at_ms: u64| {
            let (now, sending) = (Time::from_millis(at_ms), Sending::default());
            let sent = path.send(now, address(1).into(), sending, &TIMING, &mut Vec::new());
            sent.unwrap().transmit.new_port
        };
        assert_eq!([1, 2].map(|at_ms| send(&mut path, at_ms)), [false; 2]);
        if let Some(at_ms) = reported_ms {
            let mut envelope = Envelope { report: Some(Default::default()), ..Default::default() };
            envelope.report.as_mut().unwrap().newest = Seq::new(1);
            let mut datagram = Vec::new();
            native(Role::Server).seal(&envelope, b"", &mut datagram).unwrap();
            receive(&mut path, at_ms, from(1), datagram);
        }
        let taken = [10_005, 15_000, 20_010].map(|at_ms| send(&mut path, at_ms));
        assert_eq!(taken, hops, "{reported_ms:?}");
    }
}

#[test]
fn nothing_long_is_tried_in_a_silence() {
    let wire = Box::new(native(Role::Client));
    let mut path = Path::new(Time::ZERO, Role::Client, wire, &TIMING, Some(address(1)));
    let mut peer = native(Role::Server);
    let mut hear = |path: &mut Path, at_ms: u64| {
        let mut datagram = Vec::new();
        peer.seal(&Envelope::default(), b"", &mut datagram).unwrap();
        receive(path, at_ms, from(1), datagram);
    };
    path.mtud.want(Time::ZERO);
    assert_eq!(path.probe(), None, "nobody was heard");
    hear(&mut path, 10);
    assert!(path.probe().is_some());
    (0..3).for_each(|_| path.unanswered(Time::from_millis(500), 1000));
    assert!(path.payload_max(address(1).into()) < 548);
    assert_eq!(path.probe(), None);
    hear(&mut path, 900);
    assert!(path.probe().is_some());
}

#[test]
fn rooms() {
    let v6 = |text: &str| Remote::Udp(text.parse().unwrap());
    let mut path = path(Role::Client, None);
    assert_eq!(path.payload_max(address(1).into()), 1214);
    assert_eq!(path.payload_max(v6("[::ffff:127.0.0.1]:1")), 1214);
    assert_eq!(path.payload_max(v6("[::1]:1")), 1178);
    assert_eq!(path.mtud.too_big(), MtuChange::Reduced);
    assert_eq!(path.mtud.too_big(), MtuChange::Unchanged);
    assert_eq!((path.payload_max(address(1).into()), path.payload_max(v6("[::1]:1"))), (462, 462));
}
