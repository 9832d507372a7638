//! Tests emulated links between real networks. They need root (or a user namespace) and a TUN device; without
//! these, each test says so and ends.

#![allow(clippy::unwrap_used, reason = "what is missing fails the test")]

mod common;

use std::fs::Permissions;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use common::{lab_command, not_checked, possible};
use rove_lab::testing::capture;
use rove_lab::testing::capture::summary::Summary;
use rove_lab::testing::link::{Order, Profile};
use rove_lab::testing::net::check::{Found, check};
use rove_lab::testing::net::scenario::{Happening, Middle, Scenario};
use rove_lab::testing::net::{End, FAR, NEAR, Net, OUTSIDE};
use rove_lab::testing::rng::Chance;
use rove_lab::testing::run::limited;
use rove_lab::testing::scratch::Scratch;

const LIMIT: Duration = Duration::from_secs(60);
const MS: Duration = Duration::from_millis(1);

fn plain(middle: Middle) -> Scenario {
    Scenario { middle, ..Scenario::alike(Profile::default(), 1) }
}

/// A socket in each network.
fn sockets(net: &Net) -> [UdpSocket; 2] {
    let near = net.within(End::Near, || UdpSocket::bind("0.0.0.0:7001")).unwrap();
    let far = net.within(End::Far, || UdpSocket::bind(SocketAddr::from((FAR, 7002)))).unwrap();
    for socket in [&near, &far] {
        socket.set_read_timeout(Some(LIMIT)).unwrap();
    }
    [near, far]
}

fn cross(from: &UdpSocket, to: SocketAddr, by: &UdpSocket) -> SocketAddrV4 {
    from.send_to(b"hello", to).unwrap();
    let mut buffer = [0; 16];
    let (length, source) = by.recv_from(&mut buffer).unwrap();
    assert_eq!(&buffer[..length], b"hello");
    let SocketAddr::V4(source) = source else { panic!("{source}") };
    source
}

/// The counters match the scenario, as far as chance allows, and the sockets, as far as the system keeps packets
/// that come faster than they are read.
#[test]
fn what_is_asked_is_what_happens() {
    let mut up = Profile::delay(20 * MS).loss(Chance::percent(29));
    up.duplicate = Chance::percent(5);
    up.straggle = 5 * MS;
    let mut down = Profile::delay(5 * MS).reorder(Chance::percent(10), 30 * MS);
    down.order = Order::Free;
    let span = Duration::from_millis(1_500);
    let Some(checked) = possible("what_is_asked_is_what_happens", check(&up, &down, 7, span))
    else {
        return;
    };
    for (found, passed) in checked.found.iter().zip(&checked.passed) {
        let link = &passed.link;
        assert!(found.sent > 50, "{found:?}");
        assert_eq!(found.sent as u64, link.offered);
        assert_eq!(link.offered + link.duplicated, link.delivered + link.lost);
        let came = (found.came + found.again) as u64;
        assert!(came <= link.delivered && came > link.delivered / 2, "{found:?} {link:?}");
        assert!(found.again as u64 <= link.duplicated, "{found:?} {link:?}");
        assert_eq!((passed.refused, passed.overrun), (0, 0));
    }
    let [upward, downward] = &checked.found;
    assert!(upward.delays.iter().all(|delay| *delay >= 20 * MS));
    assert!(downward.delays.iter().all(|delay| *delay >= 5 * MS));
    assert!(checked.passed[1].link.lost == 0 && downward.overtaken > 0, "{downward:?}");
    let link = checked.passed[0].link;
    let passed = Found {
        sent: link.offered as usize,
        came: (link.delivered - link.duplicated) as usize,
        again: link.duplicated as usize,
        ..Found::default()
    };
    for (what, asked, is, right) in passed.against(&up).into_iter().take(2) {
        assert!(right, "{what}: asked {asked}, found {is}");
    }
}

#[test]
fn a_translator_shows_one_address_and_forgets() {
    let Some(net) = possible(
        "a_translator_shows_one_address_and_forgets",
        Net::open(&plain(Middle::Nat), None),
    ) else {
        return;
    };
    let [near, far] = sockets(&net);
    let server = SocketAddr::from((FAR, 7002));
    let first = cross(&near, server, &far);
    assert_eq!(*first.ip(), OUTSIDE);
    assert_eq!(cross(&near, server, &far), first, "the same socket, the same port");
    assert_eq!(cross(&far, first.into(), &near), SocketAddrV4::new(FAR, 7002));
    net.happen(Happening::Rebind).unwrap();
    far.send_to(b"lost", first).unwrap();
    let second = cross(&near, server, &far);
    assert_ne!(second, first);
    assert_eq!(
        cross(&far, second.into(), &near),
        SocketAddrV4::new(FAR, 7002),
        "not what was lost"
    );
    assert_eq!(net.passed()[1].refused, 1);
}

#[test]
fn the_near_end_changes_its_address() {
    let Some(net) =
        possible("the_near_end_changes_its_address", Net::open(&plain(Middle::Plain), None))
    else {
        return;
    };
    let [near, far] = sockets(&net);
    let server = SocketAddr::from((FAR, 7002));
    assert_eq!(*cross(&near, server, &far).ip(), NEAR);
    net.happen(Happening::Roam).unwrap();
    let source = cross(&near, server, &far);
    assert_eq!(*source.ip(), net.near_address());
    assert_ne!(*source.ip(), NEAR);
    assert_eq!(cross(&far, source.into(), &near), SocketAddrV4::new(FAR, 7002));
    assert!(net.happen(Happening::Rebind).is_err(), "nobody to forget anything");
}

/// The whole command: programs, addresses, exit status, counters and capture.
#[test]
fn runs_programs_over_a_scenario() {
    if possible("runs_programs_over_a_scenario", Net::open(&plain(Middle::Plain), None)).is_none() {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let (scenario, json, tape) =
        (scratch.join("s.json"), scratch.join("out.json"), scratch.join("tape.pcap"));
    std::fs::write(&scenario, r#"{"name": "short", "delay_ms": 3}"#).unwrap();
    let far = "import os, socket\n\
               s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
               s.bind((os.environ['LINK_HERE'], 7000))\n\
               data, near = s.recvfrom(100)\n\
               s.sendto(data[::-1], near)\n\
               s.recvfrom(100)\n";
    let near = "import os, socket, sys\n\
                s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
                s.settimeout(20)\n\
                s.connect((os.environ['LINK_THERE'], 7000))\n\
                s.send(b'abc')\n\
                sys.exit(7 if s.recv(100) == b'cba' else 1)\n";
    let mut command = lab_command();
    command.args(["link", "--scenario"]).arg(&scenario);
    command.arg("--json").arg(&json).arg("--capture").arg(&tape);
    command.args(["--", "python3", "-c", near, "--", "python3", "-c", far]);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "{said}");
    assert!(said.contains("up: 1 packets (31 octets) in, 1 (31) out\nup: late by"), "{said}");
    let told: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert_eq!(
        (told["scenario"].as_str(), told["down"]["delivered"].as_u64()),
        (Some("short"), Some(1))
    );
    let tape = std::fs::read(&tape).unwrap();
    let packets = capture::read(&tape).unwrap();
    let text = Summary::of(&packets, Some(7000)).to_text(None);
    assert!(
        text.contains("2 packets, 62 octets") && text.contains("-> 10.99.2.1:7000: 1 with data"),
        "{text}"
    );
}

/// A user who is not root has links too, in a user namespace, or gets a message that says what is missing.
#[test]
fn nobody_has_links_too() {
    if !is_root() {
        return not_checked("nobody_has_links_too", "only root can change to another user");
    }
    if possible("nobody_has_links_too", Net::open(&plain(Middle::Plain), None)).is_none() {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let lab = scratch.join("lab");
    std::fs::copy(common::lab_program(), &lab).unwrap();
    for path in [scratch.path(), &lab] {
        std::fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }
    // A device that every user may open, in a namespace of its own: on most systems it is so.
    let script = format!(
        "cd {0} && mknod tun c 10 200 && chmod 666 tun && mount --bind tun /dev/net/tun || exit 77\n\
         exec setpriv --reuid=65534 --regid=65534 --clear-groups {1} link -- sh -c 'test $LINK_HERE = {NEAR} && id -u'",
        scratch.path().display(),
        lab.display()
    );
    let output = limited("unshare", 60).args(["--mount", "sh", "-c", &script]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => {
            assert_eq!(output.stdout, b"0\n", "root, but only there");
            assert!(said.contains("up: 0 packets"), "{said}");
        }
        Some(77 | 127) => {
            not_checked("nobody_has_links_too", format!("no device, or no setpriv: {said}"))
        }
        _ => {
            assert!(said.contains("needs root, or a user namespace"), "{said}");
            not_checked("nobody_has_links_too", said);
        }
    }
}

fn is_root() -> bool {
    limited("id", 20).arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}

#[test]
fn a_bad_scenario_is_named() {
    let scratch = Scratch::new().unwrap();
    let path = scratch.join("bad.json");
    std::fs::write(&path, r#"{"steps": [{"loss_pct": 130}]}"#).unwrap();
    let mut command = lab_command();
    command.args(["link", "--scenario"]).arg(&path).args(["--", "true"]);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(255));
    assert!(
        said.contains("bad.json: steps[0].up.loss_pct: 130 is not between 0 and 100"),
        "{said}"
    );
}
