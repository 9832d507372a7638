//! Tests sessions without a terminal with a real server: their start, their channels, their end.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "a test waits in real time")]
#![allow(clippy::unwrap_used, reason = "what is missing fails the test")]

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rove::testing::bootstrap::Nonce;
use rove::testing::bootstrap::{Bind, CostProfile, Goal, Ports, Purpose, Request, Server};
use rove::testing::client::{Session, beside};
use rove::testing::os;
use rove::testing::os::Clock;
use rove::testing::ssh::{Candidates, Family, Login, Reached, Secret, Via, Wires};
use rove::testing::udp::{DATAGRAM_BYTES_MAX, is_quic};
use rove::testing::{Trace, Verbosity};
use rove_streams::{Ended, Streams};
use rustix::process::{Signal, getpid, kill_process};
use tokio::io::AsyncReadExt;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{sleep, timeout};

/// Generous: machines that run tests are slow.
const LIMIT: Duration = Duration::from_secs(60);

/// Interval of checks for events that happen soon.
const TURN: Duration = Duration::from_millis(10);

/// One test at a time: a signal is for all of a process.
static ALONE: Mutex<()> = Mutex::new(());

fn run(test: impl Future<Output = ()>) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { timeout(LIMIT, test).await.unwrap() });
}

async fn found(trace: &Trace, wires: Wires, purpose: Purpose) -> Reached {
    login(wires, purpose).start(trace).await.unwrap()
}

fn login(wires: Wires, purpose: Purpose) -> Login {
    Login {
        via: Via::Local,
        options: Vec::new(),
        host: "127.0.0.1".into(),
        family: Family::Inet,
        wires,
        hosts: None,
        report: std::sync::Arc::default(),
        is_ssh_alone: false,
        instead: None,
        meant: None,
        request: Request {
            nonce: Nonce::new(*os::random().unwrap()),
            key: None,
            server: Server::Rove(concat!(env!("CARGO_BIN_EXE_rove"), " server").into()),
            bind: Bind::Address("127.0.0.1".parse().unwrap()),
            ports: Some(Ports { low: 0, high: 0 }),
            colours: 8,
            locale: Vec::new(),
            purpose,
            agent: false,
            tariff: CostProfile::Flat,
            carry: false,
            keep: None,
            goal: Goal::Any,
            host: String::new(),
            command: Vec::new(),
        },
    }
}

/// The server knows no service by that name and gives the channel up, which shows that it was reached.
async fn is_reached(streams: &Streams) -> bool {
    let mut channel = streams.open(&[255]).await.unwrap();
    channel.read_u8().await.unwrap_err().kind() == ErrorKind::ConnectionReset
}

#[test]
fn a_session_of_streams_alone() {
    run(async {
        let clock = Clock::start();
        let trace = Trace::new(clock, Verbosity::Quiet);
        let found = found(&trace, Wires::Native, Purpose::Streams).await;
        let session = Session::start(clock, found, &trace).await.unwrap();
        for _ in 0..3 {
            assert!(is_reached(&session.streams).await);
        }
        assert!(session.streams.is_heard());
        let streams = session.streams.clone();
        session.close().await;
        assert_eq!(streams.open(b"").await.unwrap_err(), Ended::Closed);
    });
}

/// The server's datagrams that a relay passes on.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Answers {
    Nothing,
    /// The session's own only once the streams have been answered.
    StreamsFirst,
}

/// Relays until the tests are over, but drops the client's next `lost` session datagrams. Returns its
/// address.
fn relay(far: SocketAddr, answers: Answers, lost: Arc<AtomicU32>) -> SocketAddr {
    let [near, session, streams] = [(); 3].map(|()| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(TURN)).unwrap();
        socket
    });
    let at = near.local_addr().unwrap();
    let pass = move || {
        let mut octets = [0; DATAGRAM_BYTES_MAX];
        let mut clients = [None; 2];
        let mut begun = false;
        loop {
            if let Ok((len, from)) = near.recv_from(&mut octets) {
                let datagram = &octets[..len];
                let is_streams = is_quic(datagram);
                clients[usize::from(is_streams)] = Some(from);
                let less = |lost: u32| lost.checked_sub(1);
                if !is_streams && lost.fetch_update(Relaxed, Relaxed, less).is_ok() {
                    continue;
                }
                let out = if is_streams { &streams } else { &session };
                // Once the server is gone this is refused.
                let _ = out.send_to(datagram, far);
            }
            for (out, client) in [(&session, clients[0]), (&streams, clients[1])] {
                let Some(client) = client.filter(|_| answers == Answers::StreamsFirst) else {
                    continue;
                };
                let Ok((len, _)) = out.recv_from(&mut octets) else { continue };
                begun |= is_quic(&octets[..len]);
                if begun {
                    near.send_to(&octets[..len], client).unwrap();
                }
            }
        }
    };
    thread::Builder::new().spawn(pass).unwrap();
    at
}

/// A server of streams alone behind a relay, and where it is itself.
async fn found_behind(
    answers: Answers,
    lost: Arc<AtomicU32>,
    trace: &Trace,
) -> (Reached, SocketAddr) {
    let mut found = found(trace, Wires::Native, Purpose::Streams).await;
    let server = found.candidates.addresses[0];
    found.candidates = Candidates { addresses: vec![relay(server, answers, lost)], named: 1 };
    (found, server)
}

/// Waits until the server is gone: its port refuses then.
async fn is_gone(server: SocketAddr) {
    let asking = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    asking.connect(server).await.unwrap();
    let mut answer = [0; 1];
    while !matches!(timeout(TURN, asking.recv(&mut answer)).await, Ok(Err(_))) {
        let _ = asking.send(b"?").await;
    }
}

#[test]
fn streams_begin_beside_the_first_datagrams() {
    run(async {
        let clock = Clock::start();
        let trace = Trace::new(clock, Verbosity::Quiet);
        let (found, _) = found_behind(Answers::StreamsFirst, Arc::default(), &trace).await;
        let session = Session::start(clock, found, &trace).await.unwrap();
        assert!(is_reached(&session.streams).await);
        session.close().await;
    });
}

/// Relays the session's datagrams, with the server's from another address, and drops QUIC's. Returns its
/// address, and how many QUIC datagrams reached it and the other address since the server was first heard.
fn forged(far: SocketAddr) -> (SocketAddr, Arc<[AtomicU32; 2]>) {
    let [near, session, other] = [(); 3].map(|()| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(TURN)).unwrap();
        socket
    });
    let at = near.local_addr().unwrap();
    let counts: Arc<[AtomicU32; 2]> = Arc::default();
    let counted = Arc::clone(&counts);
    let pass = move || {
        let mut octets = [0; DATAGRAM_BYTES_MAX];
        let (mut client, mut is_heard) = (None, false);
        loop {
            for (index, socket) in [&near, &other].into_iter().enumerate() {
                let Ok((len, from)) = socket.recv_from(&mut octets) else { continue };
                if is_quic(&octets[..len]) {
                    counts[index].fetch_add(u32::from(is_heard), Relaxed);
                } else {
                    client = Some(from);
                    let _ = session.send_to(&octets[..len], far);
                }
            }
            if let Ok((len, _)) = session.recv_from(&mut octets) {
                is_heard = true;
                other.send_to(&octets[..len], client.unwrap()).unwrap();
            }
        }
    };
    thread::Builder::new().spawn(pass).unwrap();
    (at, counted)
}

/// An attacker on the path can forge the source of the server's datagrams. Neither the streams nor the
/// session go to such an address.
#[test]
fn streams_go_to_addresses_of_the_server_alone() {
    run(async {
        let clock = Clock::start();
        let trace = Trace::new(clock, Verbosity::Quiet);
        let mut found = found(&trace, Wires::Native, Purpose::Streams).await;
        let (at, counts) = forged(found.candidates.addresses[0]);
        found.candidates = Candidates { addresses: vec![at], named: 1 };
        let session = Session::start(clock, found, &trace).await.unwrap();
        let _channel = session.streams.open(&[255]).await.unwrap();
        let count = |index: usize| counts[index].load(Relaxed);
        while count(0) < 10 && count(1) == 0 {
            sleep(TURN).await;
        }
        assert_eq!(count(1), 0, "datagrams of QUIC to an address that is not the server's");
        session.close().await;
    });
}

#[test]
fn one_that_is_interrupted_before_it_hears_the_server_ends_it() {
    run(async {
        let clock = Clock::start();
        let trace = Trace::new(clock, Verbosity::Quiet);
        // Without somebody who waits for it the signal would end the tests.
        let _caught = signal(SignalKind::terminate()).unwrap();
        let (found, server) = found_behind(Answers::Nothing, Arc::default(), &trace).await;
        let begun = Session::start(clock, found, &trace);
        tokio::pin!(begun);
        let failure = loop {
            tokio::select! {
                begun = &mut begun => break begun.err().unwrap(),
                // It may not have waited for the one before yet.
                () = sleep(TURN) => kill_process(getpid(), Signal::TERM).unwrap(),
            }
        };
        assert!(failure.what.contains("interrupted"), "{failure}");
        is_gone(server).await;
    });
}

#[test]
fn one_of_the_goodbyes_of_who_leaves_is_enough() {
    run(async {
        let clock = Clock::start();
        let trace = Trace::new(clock, Verbosity::Quiet);
        let lost = Arc::new(AtomicU32::new(0));
        let (found, server) = found_behind(Answers::StreamsFirst, Arc::clone(&lost), &trace).await;
        let session = Session::start(clock, found, &trace).await.unwrap();
        assert!(is_reached(&session.streams).await);
        lost.store(4, Relaxed);
        session.leave().await;
        is_gone(server).await;
    });
}

#[test]
fn the_mosh_wire_has_no_streams() {
    run(async {
        let clock = Clock::start();
        let trace = Trace::new(clock, Verbosity::Quiet);
        let found = found(&trace, Wires::Mosh, Purpose::Shell).await;
        assert!(matches!(found.secret, Secret::Mosh(_)));
        assert!(beside(&found, || (), &trace).unwrap().is_none());
        let failure = Session::start(clock, found, &trace).await.err().unwrap();
        assert!(failure.what.contains("mosh wire"), "{failure}");
    });
}

/// A server that a signal ends says goodbye, and nobody waits for it any longer.
#[test]
fn the_end_of_the_server_is_the_end() {
    run(async {
        let clock = Clock::start();
        let trace = Trace::new(clock, Verbosity::Quiet);
        let login = login(Wires::Native, Purpose::Streams);
        let nonce = login.request.nonce.to_string();
        let found = login.start(&trace).await.unwrap();
        let session = Session::start(clock, found, &trace).await.unwrap();
        assert!(is_reached(&session.streams).await);
        let processes = std::fs::read_dir("/proc").unwrap();
        let ids = processes.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
        for id in ids.filter_map(rustix::process::Pid::from_raw) {
            let words = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            if String::from_utf8_lossy(&words).contains(&nonce) {
                let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
            }
        }
        assert_eq!(session.streams.over().await, Ended::Closed);
    });
}
