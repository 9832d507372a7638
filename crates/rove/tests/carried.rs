//! Sessions without a terminal, with a real server: how they begin, what they carry, how they end.

#![allow(clippy::unwrap_used, reason = "what is missing fails the test")]

use std::io::ErrorKind;
use std::time::Duration;

use rove::bootstrap::{Bind, Nonce, Ports, Purpose, Request, Server, Tariff};
use rove::carried::{Session, beside};
use rove::clock::Clock;
use rove::ssh::{Family, Found, Login, Secret, Via, Wires};
use rove::sys;
use rove::trace::{Trace, Verbosity};
use rove_streams::{Ended, Streams};
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

/// Generous: machines that run tests are slow.
const LIMIT: Duration = Duration::from_secs(60);

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { timeout(LIMIT, test).await.unwrap() });
}

async fn found(trace: &Trace, wires: Wires, purpose: Purpose) -> Found {
    let login = Login {
        via: Via::Local,
        options: Vec::new(),
        host: "127.0.0.1".into(),
        family: Family::Inet,
        wires,
        hosts: None,
        report: std::sync::Arc::default(),
        instead: None,
        request: Request {
            nonce: Nonce::new(*sys::random().unwrap()),
            key: None,
            server: Server::Rove(concat!(env!("CARGO_BIN_EXE_rove"), " server").into()),
            bind: Bind::Address("127.0.0.1".parse().unwrap()),
            ports: Some(Ports { low: 0, high: 0 }),
            colours: 8,
            locale: Vec::new(),
            purpose,
            agent: false,
            tariff: Tariff::Flat,
            command: Vec::new(),
        },
    };
    login.start(trace).await.unwrap()
}

/// The server knows no service by that name: it gives the channel up, which shows that it was reached.
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

#[test]
fn the_mosh_wire_has_no_streams() {
    run(async {
        let clock = Clock::start();
        let trace = Trace::new(clock, Verbosity::Quiet);
        let found = found(&trace, Wires::Mosh, Purpose::Shell).await;
        assert!(matches!(found.secret, Secret::Mosh(_)));
        assert!(beside(&found).unwrap().is_none());
        let failure = Session::start(clock, found, &trace).await.err().unwrap();
        assert!(failure.what.contains("mosh wire"), "{failure}");
    });
}
