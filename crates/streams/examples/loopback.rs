//! Measures a channel on loopback: `cargo run --release -p rove-streams --example loopback -- MEGABYTES`.
//! Both ends are in this process, with threads as in a session, so `time` reports their CPU time.
#![allow(clippy::disallowed_methods, reason = "a test waits in real time")]

use std::net::SocketAddr;
use std::thread;

use rove_streams::network::RouteMtu;
use rove_streams::{SecretMemory, client, server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

/// Loopback's.
const ROUTE_MTU: RouteMtu = RouteMtu::new(|_| Ok(65_536));

const SECRET: [u8; 32] = [7; 32];

fn main() {
    let megabytes: usize = std::env::args().nth(1).map_or(1000, |n| n.parse().expect("a number"));
    let port = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    let near = port.local_addr().expect("an address");
    let (served, lane, carrier) = server::Dormant::new(&SECRET, SecretMemory::ORDINARY).start();
    let shared = port.try_clone().expect("a handle");
    run(async move { carrier.run(shared, ROUTE_MTU).await.expect("carried") });
    run(read(port, lane));
    let (streams, link, carrier) = client::start(&SECRET, SecretMemory::ORDINARY);
    run(async move { carrier.with_route_mtu(ROUTE_MTU).run().await.expect("carried") });
    link.heard(near);
    run(async move {
        let (_, channel) = served.accept().await.expect("a channel");
        let (mut reader, mut writer) = channel.split();
        let mut buffer = vec![0; 256 << 10];
        let mut total = 0;
        while let Ok(count @ 1..) = reader.read(&mut buffer).await {
            total += count;
        }
        writer.write_u64(total as u64).await.expect("an answer");
        writer.shutdown().await.expect("an end");
        std::future::pending::<()>().await;
    });
    let began = run_here(async move {
        let mut channel = streams.open(b"").await.expect("a channel");
        let buffer = vec![7; 256 << 10];
        let began = Instant::now();
        for _ in 0..megabytes * 4 {
            channel.write_all(&buffer).await.expect("written");
        }
        channel.shutdown().await.expect("an end");
        assert_eq!(channel.read_u64().await.expect("an answer"), (megabytes as u64) << 20);
        began
    });
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{megabytes} MiB in {seconds:.2} s: {:.0} MB/s",
        (megabytes << 20) as f64 / seconds / 1e6
    );
}

fn run(work: impl Future<Output = ()> + Send + 'static) {
    thread::Builder::new().spawn(move || run_here(work)).expect("a thread");
}

fn run_here<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(work)
}

/// Reads the session's port as its driver does, many datagrams at a time.
async fn read(port: std::net::UdpSocket, lane: server::QuicInbox) {
    let state = quinn::udp::UdpSocketState::new((&port).into()).expect("a socket");
    port.set_nonblocking(true).expect("a socket");
    let port = tokio::net::UdpSocket::from_std(port).expect("a socket");
    let mut octets = vec![0; 65_536];
    loop {
        port.readable().await.expect("readable");
        let mut meta = [quinn::udp::RecvMeta::default()];
        let read = port.try_io(tokio::io::Interest::READABLE, || {
            state.recv((&port).into(), &mut [std::io::IoSliceMut::new(&mut octets)], &mut meta)
        });
        if read.is_ok() {
            let [meta] = meta;
            let from: SocketAddr = meta.addr;
            let octets = octets[..meta.len].to_vec();
            let ecn = meta.ecn.map_or(0, |mark| mark as u8);
            lane.pass(server::Batch { octets, stride: meta.stride, from, to: meta.dst_ip, ecn });
        }
    }
}
