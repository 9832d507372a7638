//! Tests channels over QUIC on loopback, through a relay that can drop everything, as a path does that comes
//! and goes.
#![allow(clippy::disallowed_methods, reason = "a test waits in real time")]
#![allow(clippy::unwrap_used, reason = "what is missing fails the test")]

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rove_streams::network::RouteMtu;
use rove_streams::{Channel, Ended, SecretMemory, Streams, client, server};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

const SECRET: [u8; 32] = [7; 32];

/// Generous: machines that run tests are slow.
const LIMIT: Duration = Duration::from_secs(120);

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { timeout(LIMIT, test).await.unwrap() });
}

/// A path that relays datagrams between one client and the server, or drops them all.
#[derive(Default)]
struct Path {
    is_down: AtomicBool,
    /// The relay drops the server's datagrams from the client's first packet under the connection's keys on.
    ends_with_handshake: AtomicBool,
    is_mute: AtomicBool,
    /// Ports that clients have used.
    begun: AtomicU64,
    /// The first datagram of each connection attempt.
    tries: Mutex<Vec<Vec<u8>>>,
}

impl Path {
    /// Notes a connection's first packet: one of QUIC's first kind, to an id that no server gave.
    fn note(&self, datagram: &[u8]) {
        if self.ends_with_handshake.load(Ordering::Relaxed) && datagram[0] & 0x80 == 0 {
            self.is_mute.store(true, Ordering::Relaxed);
        }
        let &[0xc0..=0xcf, 0, 0, 0, 1, 16, ref rest @ ..] = datagram else { return };
        let mut tries = self.tries.lock().unwrap();
        if !tries.iter().any(|before| before[6..22] == rest[..16]) {
            tries.push(datagram.to_vec());
        }
    }

    fn tries(&self) -> Vec<Vec<u8>> {
        self.tries.lock().unwrap().clone()
    }
}

/// Both ends of a session's streams, and the path between them.
struct World {
    client: Streams,
    server: Streams,
    link: client::PathHints,
    lane: server::QuicInbox,
    /// The relay's address, which the client takes for the server's.
    near: SocketAddr,
    /// The server's own address.
    far: SocketAddr,
    path: Arc<Path>,
    /// The tasks of both ends and the relay.
    tasks: JoinSet<()>,
}

impl World {
    async fn new(client_secret: [u8; 32]) -> World {
        let mut tasks = JoinSet::new();
        let port = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        port.set_nonblocking(true).unwrap();
        let far = port.local_addr().unwrap();
        let (server, lane, carrier) = server::Dormant::new(&SECRET, SecretMemory::ORDINARY).start();
        let shared = port.try_clone().unwrap();
        tasks.spawn(async { carrier.run(shared, RouteMtu::UNKNOWN).await.unwrap() });
        tasks.spawn(read(UdpSocket::from_std(port).unwrap(), lane.clone()));

        let path = Arc::new(Path::default());
        let relay = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let near = relay.local_addr().unwrap();
        tasks.spawn(relay_all(relay, far, Arc::clone(&path)));

        let (client, link, carrier) = client::start(&client_secret, SecretMemory::ORDINARY);
        tasks.spawn(async { carrier.run().await.unwrap() });
        link.heard(near);
        World { client, server, link, lane, near, far, path, tasks }
    }

    /// Opens a channel whose other end echoes.
    async fn echo(&mut self) -> Channel {
        let near = self.client.open(b"echo").await.unwrap();
        let (request, far) = self.server.accept().await.unwrap();
        assert_eq!(request, b"echo");
        let (mut reader, mut writer) = far.split();
        self.tasks.spawn(async move {
            copy(&mut reader, &mut writer).await.unwrap();
            writer.shutdown().await.unwrap();
        });
        near
    }

    /// Whether the server answers a stranger that sends these datagrams to its port.
    async fn answers(&self, datagrams: &[Vec<u8>]) -> bool {
        let stranger = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        // Others' ports were used before, and what comes late for them is not an answer.
        stranger.connect(self.far).await.unwrap();
        for datagram in datagrams {
            stranger.send(datagram).await.unwrap();
        }
        timeout(Duration::from_millis(300), stranger.recv(&mut [0; 2048])).await.is_ok()
    }

    /// Passes the session's own datagrams until `then` is ready.
    async fn heard_until(&self, then: impl Future<Output = ()>) {
        let heard = async {
            loop {
                self.link.heard(self.near);
                sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::select! {
            () = then => {}
            () = heard => {}
        }
    }

    fn set_down(&self, is_down: bool) {
        self.path.is_down.store(is_down, Ordering::Relaxed);
    }
}

/// Reads the session's port as its driver does.
async fn read(port: UdpSocket, lane: server::QuicInbox) {
    let mut octets = [0; 2048];
    loop {
        let (len, from) = port.recv_from(&mut octets).await.unwrap();
        if octets[0] & 0x40 != 0 {
            let octets = octets[..len].to_vec();
            lane.pass(server::Batch { octets, stride: len, from, to: None, ecn: 0 });
        }
    }
}

/// Relays each of the client's ports through one of ours towards the server, as a NAT does.
async fn relay_all(relay: UdpSocket, far: SocketAddr, path: Arc<Path>) {
    let relay = Arc::new(relay);
    let mut ports: Vec<(SocketAddr, Arc<UdpSocket>)> = Vec::new();
    let mut tasks = JoinSet::new();
    let mut octets = [0; 2048];
    loop {
        let (len, from) = relay.recv_from(&mut octets).await.unwrap();
        let known = ports.iter().find(|(client, _)| *client == from).map(|(_, port)| port.clone());
        let port = match known {
            Some(port) => port,
            None => {
                let port = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
                path.begun.fetch_add(1, Ordering::Relaxed);
                ports.push((from, port.clone()));
                let (back, relay, path) = (port.clone(), relay.clone(), path.clone());
                tasks.spawn(async move {
                    let mut octets = [0; 2048];
                    loop {
                        let len = back.recv(&mut octets).await.unwrap();
                        if !(path.is_down.load(Ordering::Relaxed)
                            || path.is_mute.load(Ordering::Relaxed))
                        {
                            relay.send_to(&octets[..len], from).await.unwrap();
                        }
                    }
                });
                port
            }
        };
        path.note(&octets[..len]);
        if !path.is_down.load(Ordering::Relaxed) {
            port.send_to(&octets[..len], far).await.unwrap();
        }
    }
}

/// The octets of a stream from a place on, so that received octets show their place.
fn octets(from: u64, len: usize) -> Vec<u8> {
    (from..from + len as u64).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

/// Sends octets and reads the echo while `during` runs, and until `least` octets are back.
async fn there_and_back(near: Channel, least: u64, during: impl Future<Output = ()>) {
    let (mut reader, mut writer) = near.split();
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    let writing = tokio::spawn(async move {
        let mut sent = 0;
        while sent < least || !over.load(Ordering::Relaxed) {
            let len = if sent < least { (least - sent).min(100_000) } else { 100_000 };
            writer.write_all(&octets(sent, len as usize)).await.unwrap();
            sent += len;
        }
        writer.shutdown().await.unwrap();
        writer.arrived().await.unwrap();
        sent
    });
    let reading = tokio::spawn(async move {
        let (mut came, mut back) = (0, vec![0; 100_000]);
        loop {
            let len = reader.read(&mut back).await.unwrap();
            assert!(back[..len] == octets(came, len), "octets from {came} on");
            came += len as u64;
            if len == 0 {
                break came;
            }
        }
    });
    during.await;
    is_over.store(true, Ordering::Relaxed);
    assert_eq!(reading.await.unwrap(), writing.await.unwrap());
}

/// The client detects a path that passes the session's datagrams but no QUIC, at any time.
#[test]
fn a_way_that_is_cut_is_known() {
    run(async {
        let soon = Duration::from_millis(300);
        // The server drops whatever this client sends.
        let never = World::new([8; 32]).await;
        never.heard_until(never.client.cut_off(soon)).await;
        assert!(never.client.is_cut_off(soon) && !never.client.was_carried());

        let mut world = World::new(SECRET).await;
        let mut channel = world.echo().await;
        channel.write_all(b"x").await.unwrap();
        channel.read_u8().await.unwrap();
        assert!(world.client.was_carried() && !world.client.is_cut_off(Duration::ZERO));
        world.set_down(true);
        channel.write_all(b"y").await.unwrap();
        world.heard_until(world.client.cut_off(soon)).await;
        world.set_down(false);
        channel.read_u8().await.unwrap();
        assert!(!world.client.is_cut_off(Duration::ZERO));

        let over = world.client.clone();
        world.client.close();
        assert_eq!(over.over().await, Ended::Closed);
    });
}

#[test]
fn streams_come_back_as_they_were() {
    run(async {
        let mut world = World::new(SECRET).await;
        let near = world.echo().await;
        there_and_back(near, 20_000_000, async {}).await;
        assert!(world.client.is_heard() && world.server.is_heard());
        // What comes of the server's own accord.
        let mut far = world.server.open(b"news").await.unwrap();
        let (request, mut near) = world.client.accept().await.unwrap();
        assert_eq!(request, b"news");
        far.write_all(b"x").await.unwrap();
        assert_eq!(near.read_u8().await.unwrap(), b'x');
    });
}

/// A channel's request and first octets wait only for the handshake, which authenticates the server.
#[test]
fn first_words_go_with_the_proof() {
    run(async {
        let world = World::new(SECRET).await;
        world.path.ends_with_handshake.store(true, Ordering::Relaxed);
        let mut near = world.client.open(b"news").await.unwrap();
        near.write_all(b"x").await.unwrap();
        let (request, mut far) = world.server.accept().await.unwrap();
        assert_eq!((request.as_slice(), far.read_u8().await.unwrap()), (b"news".as_slice(), b'x'));
    });
}

#[test]
fn many_channels_at_once() {
    run(async {
        let mut world = World::new(SECRET).await;
        let mut all = JoinSet::new();
        for number in 0..100 {
            let near = world.echo().await;
            all.spawn(there_and_back(near, 1000 * number + 1, async {}));
        }
        while let Some(done) = all.join_next().await {
            done.unwrap();
        }
    });
}

/// The path is down in the middle of a transfer, for longer than a connection waits. The sender resends the
/// lost octets on another connection.
#[test]
fn a_blackout_costs_nothing_but_time() {
    run(async {
        let mut world = World::new(SECRET).await;
        let near = world.echo().await;
        let path = Arc::clone(&world.path);
        let link = world.link.clone();
        let relay = world.near;
        there_and_back(near, 0, async move {
            for pause in [3000, 20, 1500] {
                sleep(Duration::from_millis(100)).await;
                path.is_down.store(true, Ordering::Relaxed);
                sleep(Duration::from_millis(pause)).await;
                path.is_down.store(false, Ordering::Relaxed);
                link.heard(relay);
            }
        })
        .await;
        assert!(world.path.begun.load(Ordering::Relaxed) > 1, "another connection was made");
    });
}

/// A transfer from the server alone resumes as well, although the client has nothing to send.
#[test]
fn a_blackout_of_what_is_only_received() {
    run(async {
        let world = World::new(SECRET).await;
        let mut near = world.client.open(b"").await.unwrap();
        let (_, mut far) = world.server.accept().await.unwrap();
        let sent = octets(0, 30_000_000);
        let expected = sent.clone();
        tokio::spawn(async move {
            far.write_all(&sent).await.unwrap();
            far.shutdown().await.unwrap();
            // It is held until all was taken.
            let _ = far.read_u8().await;
        });
        near.read_exact(&mut vec![0; 1000]).await.unwrap();
        world.set_down(true);
        let began = Instant::now();
        let mut back = Vec::new();
        let path = Arc::clone(&world.path);
        let (link, relay) = (world.link.clone(), world.near);
        let up = tokio::spawn(async move {
            sleep(Duration::from_secs(4)).await;
            path.is_down.store(false, Ordering::Relaxed);
            link.heard(relay);
        });
        near.read_to_end(&mut back).await.unwrap();
        up.await.unwrap();
        assert!(back == expected[1000..], "{} octets", back.len());
        assert!(began.elapsed() >= Duration::from_secs(4));
        assert!(world.path.begun.load(Ordering::Relaxed) > 1, "another connection was made");
    });
}

#[test]
fn a_change_of_network_makes_another_connection_at_once() {
    run(async {
        let mut world = World::new(SECRET).await;
        let near = world.echo().await;
        let link = world.link.clone();
        there_and_back(near, 0, async move {
            for _ in 0..5 {
                sleep(Duration::from_millis(100)).await;
                link.moved();
            }
        })
        .await;
        assert!(world.path.begun.load(Ordering::Relaxed) > 1, "another connection was made");
    });
}

/// The server does not answer a client without the session's secret.
#[test]
fn a_stranger_is_not_answered() {
    run(async {
        let world = World::new([8; 32]).await;
        let mut near = world.client.open(b"").await.unwrap();
        assert!(timeout(Duration::from_secs(2), near.read_u8()).await.is_err());
        assert!(timeout(Duration::from_millis(10), world.server.accept()).await.is_err());
        assert!(world.path.begun.load(Ordering::Relaxed) >= 1);
        // Nor is noise that looks like QUIC.
        let mut noise = Vec::new();
        for first in [0x40u8, 0xc0, 0xd0, 0xe0, 0xf0, 0x7f] {
            for version in [0u32, 1, 2, 0xff00_001d] {
                let mut datagram = vec![first];
                datagram.extend_from_slice(&version.to_be_bytes());
                datagram.extend_from_slice(&[8; 1300]);
                noise.push(datagram);
            }
        }
        assert!(!world.answers(&noise).await);
    });
}

/// The server does not answer a replay of the client's first packets, neither while that connection is in
/// use nor later.
#[test]
fn what_is_said_again_is_not_answered() {
    run(async {
        let mut world = World::new(SECRET).await;
        let mut near = world.echo().await;
        near.write_all(b"x").await.unwrap();
        near.read_u8().await.unwrap();
        let seen = world.path.tries();
        assert!(!seen.is_empty());
        assert!(!world.answers(&seen).await);
        world.link.moved();
        while world.path.tries().len() == seen.len() {
            sleep(Duration::from_millis(10)).await;
        }
        near.write_all(b"x").await.unwrap();
        near.read_u8().await.unwrap();
        // Until the first is forgotten, and nothing else could be why.
        for _ in 0..5 {
            sleep(Duration::from_millis(400)).await;
            assert!(!world.answers(&seen).await);
        }
    });
}

/// A session whose channels are idle wakes its ends a few times a minute.
#[test]
fn what_rests_wakes_nobody() {
    let slept = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&slept);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .on_thread_park(move || {
            count.fetch_add(1, Ordering::Relaxed);
        })
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut world = World::new(SECRET).await;
        let mut near = world.echo().await;
        near.write_all(b"x").await.unwrap();
        near.read_u8().await.unwrap();
        for with_a_channel in [true, false] {
            // Questions are asked more and more seldom; two may lie within the five seconds.
            sleep(Duration::from_secs(5)).await;
            let before = slept.load(Ordering::Relaxed);
            sleep(Duration::from_secs(5)).await;
            let wakes = slept.load(Ordering::Relaxed) - before;
            // Each end, and the path between them; a question has an answer, and both have timers. Looking each
            // 50 ms, as ends that do not rest do, wakes them 100 times and more.
            assert!(wakes < 80, "{wakes} in 5 s, with a channel: {with_a_channel}");
            if with_a_channel {
                // What is asked of them shows each that the other is there.
                assert!(world.client.is_heard() && world.server.is_heard());
                near.shutdown().await.unwrap();
                assert_eq!(near.read(&mut [0]).await.unwrap(), 0);
                near = world.client.open(b"").await.unwrap();
                drop(world.server.accept().await.unwrap());
            }
        }
    });
}

/// A peer counts as away after as long a silence as the caller chooses.
#[test]
fn whether_a_peer_is_there() {
    run(async {
        let long = Duration::from_secs(3600);
        let mut world = World::new(SECRET).await;
        let mut near = world.echo().await;
        near.write_all(b"x").await.unwrap();
        near.read_u8().await.unwrap();
        assert!(world.server.is_there(long).await, "it says something from time to time");
        world.set_down(true);
        // Once what was on its way has come.
        while world.server.is_there(Duration::from_millis(500)).await {}
        let unsure = timeout(Duration::from_secs(1), world.server.is_there(long)).await;
        assert!(unsure.is_err(), "it may come back");
    });
}

#[test]
fn the_end_of_the_session_ends_what_carries_it() {
    run(async {
        let mut world = World::new(SECRET).await;
        let mut near = world.echo().await;
        near.write_all(b"x").await.unwrap();
        near.read_u8().await.unwrap();
        world.link.close();
        world.lane.close();
        assert!(near.read_u8().await.is_err());
        assert!(world.server.accept().await.is_none());
    });
}
