//! Tests where the secrets of a session are (threats row 20): real processes, as root sees them.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // Helpers of tests are tests.

mod memory;
mod terminal;
mod visitor;

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use hkdf::Hkdf;
use hkdf::hmac::{Hmac, KeyInit, Mac};
use memory::Patterns;
use rove::testing::os::Clock;
use rove::testing::services::Request;
use rove::testing::services::spec::Endpoint;
use rove_session::{Peer, Server, server};
use rove_ssp::{
    Arrival, ConnId, Context, KeyPair, Machine, NativeWire, Outbox, PublicKeyOctets, Role,
    SessionSecrets, Timing,
};
use rove_streams::network::RouteMtu;
use rove_streams::{SecretMemory, Streams, client};
use rove_term::Size;
use rustix::process::{Pid, Signal};
use sha2::{Digest, Sha256, Sha512};
use terminal::{Directory, ROVE, Terminal};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use visitor::{Host, NONCE, PRIVATE, Visitor, wait_until};
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::Zeroizing;

/// What must be nowhere once a session with streams has begun: all that is needed of it is made by then.
const USED_UP: [&str; 6] = ["shared", "root", "quic", "client 0", "server 0", "seed"];

/// Phases of the wire that are looked for.
const PHASES: u32 = 5;

/// How long a receive key is kept at most after its phase (docs/wire.md §3), and some time to look.
const OLD_KEY_MAX: Duration = Duration::from_secs(20);

/// How many keys are typed while a process is interrupted, and how often it is for each.
const INTERRUPTED_KEYS: u32 = 80;
const INTERRUPTIONS: u32 = 100;

/// The secrets of a session (docs/wire.md §2 and §3), from what one end knows, and that for streams.
fn session(private: [u8; 32], peer: &[u8; 32], salt: [u8; 32]) -> (Patterns, [u8; 32]) {
    let shared = StaticSecret::from(private).diffie_hellman(&PublicKey::from(*peer));
    let (root, expand) = Hkdf::<Sha256>::extract(Some(&salt), shared.as_bytes());
    let mut patterns = Patterns::default();
    patterns.add("shared", shared.as_bytes());
    patterns.add("root", &root);
    for end in ["client", "server"] {
        let mut chain: [u8; 32] = expanded(&expand, format!("rove {end}").as_bytes());
        for phase in 0..PHASES {
            patterns.add(&format!("{end} {phase}"), &chain);
            let keys = Hkdf::<Sha256>::from_prk(&chain).unwrap();
            patterns.add(&format!("key of {end} {phase}"), &expanded::<16>(&keys, b"rove key"));
            chain = expanded(&keys, b"rove next");
        }
    }
    let quic: [u8; 32] = expanded(&expand, b"rove quic");
    patterns.add("quic", &quic);
    // The server's key (docs/streams.md §5), and what Ed25519 makes of it (RFC 8032 §5.1.5).
    let seed = Hmac::<Sha256>::new_from_slice(&quic).unwrap();
    let seed = seed.chain_update(b"rove streams server key").finalize().into_bytes();
    patterns.add("seed", &seed);
    let (scalar, prefix) = {
        let expanded: [u8; 64] = Sha512::digest(seed).into();
        (expanded[1..31].to_vec(), expanded[32..].to_vec())
    };
    patterns.add("scalar of the server's key", &scalar);
    patterns.add("prefix of the server's key", &prefix);
    for (name, pad) in [("inner", 0x36), ("outer", 0x5c)] {
        let mut block = [pad; 64];
        block.iter_mut().zip(quic).for_each(|(octet, key)| *octet ^= key);
        let mut state = INITIAL;
        sha2::block_api::compress256(&mut state, &[block]);
        let words: Vec<u8> = state.iter().flat_map(|word| word.to_ne_bytes()).collect();
        patterns.add(&format!("{name} hash of quic"), &words);
    }
    (patterns, quic)
}

/// SHA-256 begins with this (FIPS 180-4 §5.3.3).
const INITIAL: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

fn salt(nonce: [u8; 16], client: &[u8; 32], server: &[u8; 32], conn: ConnId) -> [u8; 32] {
    let conn = u32::from_str_radix(&conn.to_string(), 16).unwrap().to_be_bytes();
    let salt = Sha256::new().chain_update(b"rove 1").chain_update(nonce).chain_update(client);
    salt.chain_update(server).chain_update(conn).chain_update([1]).finalize().into()
}

fn expanded<const N: usize>(keys: &Hkdf<Sha256>, label: &[u8]) -> [u8; N] {
    let mut octets = [0; N];
    keys.expand(label, &mut octets).unwrap();
    octets
}

/// The octets of a key, from its text form: base64 without padding.
fn octets<const N: usize>(key: &str) -> [u8; N] {
    const DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bits = key.bytes().map(|digit| DIGITS.find(digit as char).unwrap()).fold(
        (Vec::new(), 0, 0),
        |(mut octets, mut bits, mut count), digit| {
            (bits, count) = ((bits << 6 | digit) & 0xffff, count + 6);
            if count >= 8 {
                count -= 8;
                octets.push((bits >> count) as u8);
            }
            (octets, bits, count)
        },
    );
    bits.0.truncate(N);
    bits.0.try_into().unwrap()
}

/// What TLS makes of connections, as it is told: the secrets, and the keys of packets that follow from them.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Patterns>>);

impl Told {
    fn teller(&self) -> impl Fn(&str, &[u8]) + Send + Sync + 'static {
        let told = Arc::clone(&self.0);
        move |label, secret| {
            let mut patterns = told.lock().unwrap();
            patterns.add(label, secret);
            let keys = Hkdf::<Sha256>::from_prk(secret).unwrap();
            for name in ["quic key", "quic hp"] {
                // RFC 8446 §7.1, RFC 9001 §5.1.
                let text = format!("tls13 {name}");
                let info = [&[0, 16, text.len() as u8], text.as_bytes(), &[0]].concat();
                patterns.add(&format!("{name} of {label}"), &expanded::<16>(&keys, &info));
            }
        }
    }

    fn take(&self) -> Patterns {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Runs what carries streams, on a thread of its own.
fn carry(work: impl Future<Output = std::io::Result<()>> + Send + 'static) {
    thread::Builder::new().spawn(move || runtime().block_on(work).unwrap()).unwrap();
}

/// Fails if a process whose session and streams have begun has a secret that is used up, or one anywhere but in
/// locked memory. That the others are found there shows that they would be found elsewhere.
fn assert_kept(pid: u32, patterns: &Patterns) {
    let found = patterns.find_in(pid);
    for name in ["EXPORTER_SECRET", "SERVER_TRAFFIC_SECRET_0"] {
        assert!(found.iter().any(|found| found.name == name), "{name} of {found:#?}");
    }
    let wrong = patterns
        .misplaced_in(pid, |found| !found.is_locked || USED_UP.contains(&found.name.as_str()));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A TCP port that echoes.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let serve = move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut octets = [0; 4];
        while stream.read_exact(&mut octets).is_ok() {
            stream.write_all(&octets).unwrap();
        }
    };
    thread::Builder::new().spawn(serve).unwrap();
    at
}

#[test]
fn root_finds_a_servers_secrets_in_locked_memory_alone() {
    let host = Host::start_native(&["-p", "0", "--", "sh", "-c", "echo begun; cat"], &[]);
    let mut visitor = Visitor::new(&host);
    visitor.wait_for("begun");
    let server = octets(&host.key);
    assert_eq!(PublicKeyOctets::from_bytes(server).to_string(), host.key);
    let client = PublicKey::from(&StaticSecret::from(PRIVATE)).to_bytes();
    let salt = salt(NONCE, &client, &server, host.conn.unwrap());
    let (mut patterns, quic) = session(PRIVATE, &server, salt);

    let told = Told::default();
    let (streams, link, mut carrier) = client::start(&quic, SecretMemory::ORDINARY);
    carrier.tell_secrets(told.teller());
    carry(carrier.run());
    link.heard(SocketAddr::from((Ipv4Addr::LOCALHOST, host.port)));
    let to = echo();
    let to = Endpoint { host: to.ip().to_string(), port: to.port() };
    let runtime = runtime();
    let mut channel = runtime.block_on(streams.open(&Request::Connect(to).encode())).unwrap();
    let mut say = |text: &[u8; 4]| {
        let mut said = [0; 4];
        runtime.block_on(async {
            channel.write_all(text).await.unwrap();
            channel.read_exact(&mut said).await.unwrap();
        });
        said
    };
    // An octet says that the port was reached.
    assert_eq!(say(b"here"), *b"\0her");
    let first = told.take();
    patterns.extend(first.clone());
    assert_kept(host.pid, &patterns);

    // Another connection takes the place of the first, whose keys go with it.
    link.moved();
    assert_eq!(say(b"gone"), *b"egon");
    wait_until("another connection", || !told.0.lock().unwrap().is_empty());
    wait_until("the first one's keys are gone", || first.find_in(host.pid).is_empty());
    patterns.extend(told.take());
    assert_kept(host.pid, &patterns);
    visitor.leave();
}

/// A server that this process plays for a client.
struct PlayedServer {
    socket: UdpSocket,
    private: [u8; 32],
    public: [u8; 32],
    conn: ConnId,
}

impl PlayedServer {
    fn new() -> PlayedServer {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let private = [3; 32];
        let public = PublicKey::from(&StaticSecret::from(private)).to_bytes();
        PlayedServer { socket, private, public, conn: ConnId::new(0x0102_0304) }
    }

    /// Makes a program that answers as the server here, and writes down what its client has told it. Returns how to
    /// run it.
    fn answering(&self, directory: &Directory) -> String {
        let port = self.socket.local_addr().unwrap().port();
        let (key, conn) = (PublicKeyOctets::from_bytes(self.public), self.conn);
        let path = directory.path();
        directory.script(
            "rove",
            &format!(
                "for word in \"$@\"; do case $word in --nonce=*) nonce=${{word#*=}};; \
                 --key=*) key=${{word#*=}};; esac; done\n\
                 echo \"$nonce $key\" >{path}/told\n\
                 echo \"ROVE 1 $nonce {port} {key} {conn} 127.0.0.1\""
            ),
        );
        format!("{path}/rove")
    }

    /// What that has written down: the client's nonce and its public key.
    fn told(directory: &Directory) -> ([u8; 16], [u8; 32]) {
        let told = fs::read_to_string(format!("{}/told", directory.path())).unwrap();
        let (nonce, key) = told.trim().split_once(' ').unwrap();
        (u128::from_str_radix(nonce, 16).unwrap().to_be_bytes(), octets(key))
    }

    /// Serves the session and its streams for as long as the test lasts: every connection is answered by its own octets.
    fn serve(self, nonce: [u8; 16], client: &[u8; 32], quic: &[u8; 32], told: &Told) {
        let pair = KeyPair::from_random(Zeroizing::new(self.private));
        let context = Context { nonce, conn: self.conn };
        let secrets = pair.agree_as_server(&PublicKeyOctets::from_bytes(*client), &context);
        let (streams, lane, mut carrier) =
            rove_streams::server::Dormant::new(quic, SecretMemory::ORDINARY).start();
        carrier.tell_secrets(told.teller());
        let port = self.socket.try_clone().unwrap();
        carry(async move { carrier.run(port, RouteMtu::UNKNOWN).await });
        carry(echo_all(streams));
        let drive = move || {
            self.drive(&secrets.unwrap(), |octets, from| {
                let stride = octets.len();
                lane.heard();
                lane.pass(rove_streams::server::Batch { octets, stride, from, to: None, ecn: 0 });
            });
        };
        thread::Builder::new().spawn(drive).unwrap();
    }

    fn drive(&self, secrets: &SessionSecrets, pass: impl Fn(Vec<u8>, SocketAddr)) {
        let clock = Clock::start();
        let config = server::Config {
            wire: Box::new(NativeWire::new(secrets, self.conn, Role::Server)),
            timing: Timing::ROVE,
            peer: Peer::Rove,
            size: Size::DEFAULT,
            claim_wait: server::CLAIM_WAIT,
            network_timeout: None,
            screen_rate: None,
            seed: 1,
        };
        let mut session = Server::new(clock.now(), config);
        session.handle_output(clock.now(), b"begun");
        let mut octets = [0; 9000];
        loop {
            // QUIC's endpoint has the port's other handle, and makes it non-blocking.
            match self.socket.recv_from(&mut octets) {
                Ok((length, from)) if rove::testing::udp::is_quic(&octets[..length]) => {
                    pass(octets[..length].to_vec(), from);
                }
                Ok((length, from)) => {
                    let arrival = Arrival { from: from.into(), congested: false };
                    let datagram = &mut octets[..length];
                    session.handle_datagram(clock.now(), arrival, datagram).unwrap();
                }
                Err(_) => thread::park_timeout(Duration::from_millis(1)),
            }
            let mut out = Outbox::default();
            while let Some(transmit) = session.poll_transmit(clock.now(), &mut out) {
                let _ = self.socket.send_to(&out.datagram, transmit.to.udp().unwrap());
            }
            while session.poll_event().is_some() {}
        }
    }
}

/// Says that each connection is made, and everything again that comes by it.
async fn echo_all(streams: Streams) -> std::io::Result<()> {
    while let Some((_request, mut channel)) = streams.accept().await {
        channel.write_all(&[0]).await?;
        let (mut reader, mut writer) = channel.split();
        tokio::spawn(async move { tokio::io::copy(&mut reader, &mut writer).await });
    }
    Ok(())
}

#[test]
fn root_finds_a_clients_secrets_in_locked_memory_alone() {
    let directory = Directory::new("memory");
    let seat = PlayedServer::new();
    let server = format!("--server={}", seat.answering(&directory));
    let near = format!("{}/near", directory.path());
    let forwarding = format!("{near}:127.0.0.1:9");
    let words = ["-vvv", "-L", &forwarding, "--local", &server, "127.0.0.1"];
    let mut terminal = Terminal::run(ROVE, &words, &[]);
    wait_until("the client has asked", || {
        fs::read_to_string(format!("{}/told", directory.path())).is_ok_and(|told| !told.is_empty())
    });
    let (nonce, client) = PlayedServer::told(&directory);
    let salt = salt(nonce, &client, &seat.public, seat.conn);
    let (mut patterns, quic) = session(seat.private, &client, salt);
    let told = Told::default();
    seat.serve(nonce, &client, &quic, &told);
    terminal.expect("begun");
    let mut stream = std::os::unix::net::UnixStream::connect(&near).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(b"here").unwrap();
    let mut said = [0; 4];
    stream.read_exact(&mut said).unwrap();
    assert_eq!(&said, b"here");
    patterns.extend(told.take());
    assert_first_is_interrupted(terminal.pid());
    interrupt(&[(terminal.pid(), Signal::WINCH)], &mut terminal);
    assert_kept(terminal.pid(), &patterns);
    terminal.type_keys("\x1e.");
    assert_eq!(terminal.finish(), 0, "{}", terminal.text());
    // Nor does it tell them.
    let text = terminal.text();
    assert!(text.contains("confined: "), "what -v tells is there: {text}");
    for told in patterns.texts() {
        assert!(!text.contains(&told), "{told} in {text}");
    }
}

/// A client that moves on as soon as it may takes the server along, whose earlier keys are gone then.
#[test]
fn root_finds_no_key_of_an_earlier_phase() {
    let host = Host::start_native(&["-p", "0", "--", "sh", "-c", "echo begun; cat"], &[]);
    let mut visitor = Visitor::restless(&host);
    visitor.wait_for("begun");
    let server = octets(&host.key);
    let client = PublicKey::from(&StaticSecret::from(PRIVATE)).to_bytes();
    let (patterns, _) =
        session(PRIVATE, &server, salt(NONCE, &client, &server, host.conn.unwrap()));
    let is_in = |phase: u32| {
        let key = patterns.only(|name| name == format!("key of server {phase}"));
        key.find_in(host.pid).iter().any(|found| found.is_locked)
    };
    let mut keys = 0;
    while !is_in(2) {
        keys += 1;
        visitor.keys(b"k");
        visitor.wait_for(&"k".repeat(keys));
        thread::park_timeout(Duration::from_millis(200));
    }
    let left = patterns.only(|name| name.ends_with(" 0") || name.ends_with(" 1"));
    let left = left.only(|name| name.contains("client") || name.contains("server"));
    let clock = Clock::start();
    loop {
        let found = left.find_in(host.pid);
        if found.is_empty() {
            break;
        }
        assert!(clock.now() < rove_ssp::Time::ZERO + OLD_KEY_MAX, "{found:#?}");
        thread::park_timeout(Duration::from_millis(500));
    }
    let loose = patterns.misplaced_in(host.pid, |found| !found.is_locked);
    assert!(loose.is_empty(), "{loose:#?}");
}

/// The key of the mosh wire, which is printed, passed on in an environment, and kept for the whole session.
#[test]
fn root_finds_a_printed_key_in_locked_memory_alone() {
    let host = Host::start(&["new", "-p", "0", "--", "sh", "-c", "echo begun; cat"], &[]);
    let directory = Directory::new("applet");
    let program = directory.link("mosh-client", ROVE);
    let words = ["-# --ssh=x host |", "127.0.0.1", &host.port.to_string()];
    let mut terminal = Terminal::run(&program, &words, &[("MOSH_KEY", &host.key)]);
    terminal.expect("begun");
    let directory = Directory::new("printed");
    let (mut own, own_key) = mosh_session(&directory);
    interrupt(&[(host.pid, Signal::CHILD), (terminal.pid(), Signal::WINCH)], &mut terminal);
    interrupt(&[(own.pid(), Signal::WINCH)], &mut own);
    let ends = [(host.pid, &host.key), (terminal.pid(), &host.key), (own.pid(), &own_key)];
    for (pid, key) in ends {
        let patterns = printed(key);
        let found = patterns.find_in(pid);
        assert!(found.iter().any(|found| found.name == "key"), "it is in use");
        let wrong = patterns.misplaced_in(pid, |found| !found.is_locked || found.name == "text");
        assert!(wrong.is_empty(), "{pid}: {wrong:#?}");
        assert_hides(pid, key);
    }
    for terminal in [&mut terminal, &mut own] {
        terminal.type_keys("\x1e.");
        assert_eq!(terminal.finish(), 0, "{}", terminal.text());
    }
}

/// Interrupts these processes at many moments of a session in which somebody types. The kernel puts the registers of what a
/// signal interrupts on the stack, and in them are the round keys of a cipher that has worked just before.
fn interrupt(ends: &[(u32, Signal)], terminal: &mut Terminal) {
    for _ in 0..INTERRUPTED_KEYS {
        terminal.type_keys("k");
        for _ in 0..INTERRUPTIONS {
            for (pid, signal) in ends {
                let pid = Pid::from_raw(*pid as i32).unwrap();
                rustix::process::kill_process(pid, *signal).unwrap();
            }
            thread::park_timeout(Duration::from_micros(50));
        }
    }
}

/// Fails if signals are kept from the first thread of this process, or may interrupt another.
fn assert_first_is_interrupted(pid: u32) {
    let mut others = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
        let task = task.unwrap();
        let status = fs::read_to_string(task.path().join("status")).unwrap();
        let kept = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
        let kept = u64::from_str_radix(kept.trim(), 16).unwrap();
        if task.file_name().into_string().unwrap() == pid.to_string() {
            assert_eq!(kept, 0, "{status}");
            continue;
        }
        others += 1;
        for signal in [Signal::HUP, Signal::INT, Signal::TERM, Signal::WINCH, Signal::CHILD] {
            assert!(kept & 1 << (signal.as_raw() - 1) != 0, "{signal:?} interrupts {status}");
        }
        for signal in [Signal::TTIN, Signal::SEGV] {
            assert!(kept & 1 << (signal.as_raw() - 1) == 0, "{signal:?} is kept from {status}");
        }
    }
    assert!(others > 0, "streams have a thread of their own");
}

/// The patterns of a key of the mosh wire.
fn printed(key: &str) -> Patterns {
    let mut patterns = Patterns::default();
    patterns.add("text", key.as_bytes());
    patterns.add("key", &octets::<16>(key));
    patterns
}

/// Fails if the system shows a key of this process to anybody, or would write it into a core file.
fn assert_hides(pid: u32, key: &str) {
    for (file, also) in [("environ", "PATH="), ("cmdline", "\0")] {
        let shown = fs::read(format!("/proc/{pid}/{file}"))
            .unwrap_or_else(|error| panic!("cannot look at {file}, which takes root: {error}"));
        let shown = String::from_utf8_lossy(&shown);
        assert!(shown.contains(also), "{file} is read: {shown}");
        assert!(!shown.contains(key), "{file}: {shown}");
    }
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().nth(4), Some("0"), "{core}");
}

/// A session on the mosh wire that tells all it does, and the key that its server has printed. What the server tells is
/// in a file.
fn mosh_session(directory: &Directory) -> (Terminal, String) {
    let path = directory.path();
    let script = format!("shift; {ROVE} server -v \"$@\" 2>{path}/told | tee {path}/answer");
    directory.script("rove", &script);
    let server = format!("--server={path}/rove");
    let words = ["-vvv", "--mosh-wire", "--local", &server, "127.0.0.1", "echo be''gun; read line"];
    let mut terminal = Terminal::run(ROVE, &words, &[]);
    terminal.expect("begun");
    let answer = fs::read_to_string(format!("{path}/answer")).unwrap();
    let key = answer.split(' ').nth(4).unwrap().to_owned();
    assert_eq!(key.len(), rove_ssp::Key::TEXT_LEN, "{answer}");
    (terminal, key)
}

/// Neither end tells the key, however much it is to tell.
#[test]
fn traces_hold_no_key() {
    let directory = Directory::new("traces");
    let (mut terminal, key) = mosh_session(&directory);
    terminal.type_keys("\r");
    assert_eq!(terminal.finish(), 0, "{}", terminal.text());
    let told = fs::read_to_string(format!("{}/told", directory.path())).unwrap();
    for (shown, also) in [(terminal.text(), "confined: "), (told, "detached, pid")] {
        assert!(shown.contains(also), "{shown}");
        for text in printed(&key).texts().iter().chain([&key]) {
            assert!(!shown.contains(text), "{text} in {shown}");
        }
    }
}
