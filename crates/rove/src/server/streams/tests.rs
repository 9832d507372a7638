//! Tests what a client's first datagram starts.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use rove_streams::client;

use super::super::services::tests::config;
use super::*;
use crate::net::udp::{DATAGRAM_BYTES_MAX, Source, is_quic};

/// A generous limit for events that happen soon or never.
const LIMIT: Duration = Duration::from_secs(60);

/// How long each end waits for the other at a time.
const TURN: Duration = Duration::from_millis(5);

/// Passes datagrams on in both directions, but of those that begin a connection only the first.
fn pass_the_first_alone(near: UdpSocket, far: std::net::SocketAddr, is_over: &AtomicBool) {
    let out = UdpSocket::bind("127.0.0.1:0").unwrap();
    out.connect(far).unwrap();
    for socket in [&near, &out] {
        socket.set_read_timeout(Some(TURN)).unwrap();
    }
    let (mut client, mut begun) = (None, false);
    let mut octets = [0; DATAGRAM_BYTES_MAX];
    while !is_over.load(Ordering::Relaxed) {
        if let Ok((len, from)) = near.recv_from(&mut octets) {
            let begins = matches!(octets, [0xc0..=0xcf, 0, 0, 0, 1, 16, ..]);
            if !(begins && begun) {
                client = client.or(Some(from));
                out.send(&octets[..len]).unwrap();
            }
            begun |= begins;
        }
        if let (Ok(len), Some(client)) = (out.recv(&mut octets), client) {
            near.send_to(&octets[..len], client).unwrap();
        }
    }
}

#[test]
fn the_first_datagram_is_not_lost() {
    let secret = [7; 32];
    let socket = Socket::bind("127.0.0.1:0".parse().unwrap(), Source::AsReached).unwrap();
    let far = socket.local_addr().unwrap();
    let near = UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = near.local_addr().unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    let relay = thread::Builder::new().spawn(move || pass_the_first_alone(near, far, &over));

    let (streams, link, carrier) = client::start(&secret, locked::MEMORY);
    let (tell, reached) = mpsc::channel();
    let path = link.clone();
    spawn("client", async move || {
        let carried = tokio::spawn(carrier.run());
        path.heard(at);
        // A request that no server knows: its channel is given up as soon as the server hears of it.
        let mut channel = streams.open(&[0]).await.unwrap();
        let end = tokio::io::AsyncReadExt::read_u8(&mut channel).await;
        tell.send(end.unwrap_err().kind()).unwrap();
        let _ = carried.await;
    })
    .unwrap();

    let mut beside = StreamService::new(Some(&secret), config(None));
    let mut datagram = [0; DATAGRAM_BYTES_MAX];
    let mut end = None;
    for _ in 0..LIMIT.as_millis() / TURN.as_millis() {
        end = reached.recv_timeout(TURN).ok();
        if end.is_some() {
            break;
        }
        while let Some((len, arrival)) = socket.try_recv(&mut datagram).unwrap() {
            let octets = &datagram[..len];
            if is_quic(octets) && beside.is_asked_for(octets) {
                beside.begin(&socket, Some((arrival.from, octets))).unwrap();
            }
        }
    }
    assert_eq!(end, Some(io::ErrorKind::ConnectionReset));
    is_over.store(true, Ordering::Relaxed);
    link.close();
    relay.unwrap().join().unwrap();
}
