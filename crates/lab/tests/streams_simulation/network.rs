//! A network in tokio's paused clock: a client that moves between networks, a server, and the lab's link between
//! them in each direction. The same seed passes the same datagrams at the same times.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::fmt;
use std::future::poll_fn;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rove::testing::udp::is_quic;
use rove_lab::testing::link::{Counters, Link, Profile};
use rove_lab::testing::rng::Rng;
use rove_ssp::Time;
use rove_streams::clock::{self, Instant};
use rove_streams::network::{AsyncUdpSocket, EcnCodepoint, Network, RecvMeta, Transmit, UdpPoller};
use tokio::sync::Notify;

/// Octets that wait at a socket; what comes beyond is dropped, as the kernel does.
const BUFFER_BYTES: usize = 4 << 20;

/// Datagrams that Linux sends in one call.
const SEGMENTS: usize = 10;

/// The server's host. Ports tell its processes apart.
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 2, 0, 1));

/// The whole network.
pub struct Net {
    began: Instant,
    state: Mutex<State>,
    /// A datagram was put on the way.
    sent: Notify,
}

struct State {
    up: Link,
    down: Link,
    /// Datagrams on the way, by when they arrive.
    due: BinaryHeap<Reverse<(Time, u64, Packet)>>,
    number: u64,
    /// Who reads at each port of the client's host and of the server's.
    client: BTreeMap<u16, Arc<Inbox>>,
    server: BTreeMap<u16, Arc<Inbox>>,
    next_port: u16,
    /// The number of the client's network, which is in its address.
    place: u16,
    rng: Rng,
    trace: u64,
    /// All that leaves, if somebody listens.
    departures: Option<Vec<Departure>>,
    /// Datagrams to an address that the client has left.
    stale: u64,
    /// Datagrams that an outage cut while the way back was open.
    one_way_cuts: u64,
}

#[derive(Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Packet {
    from: SocketAddr,
    to: SocketAddr,
    datagram: Vec<u8>,
    ecn: u8,
}

/// A datagram that leaves, as a listener sees it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Departure {
    pub at: Time,
    pub is_up: bool,
    pub octets: usize,
    pub is_quic: bool,
}

/// A datagram that has arrived.
#[derive(Debug)]
pub struct Arrived {
    pub from: SocketAddr,
    pub datagram: Vec<u8>,
    pub ecn: u8,
}

/// The counters of both links, and a hash of all lengths and times.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Passed {
    pub links: Counters,
    pub stale: u64,
    pub one_way_cuts: u64,
    pub trace: u64,
}

impl Net {
    /// A network that begins now. Its task must run as long as it is used.
    pub fn new(profile: [Profile; 2], rng: &mut Rng) -> Arc<Net> {
        let [up, down] = profile;
        let state = State {
            up: Link::new(up, rng.fork()),
            down: Link::new(down, rng.fork()),
            due: BinaryHeap::new(),
            number: 0,
            client: BTreeMap::new(),
            server: BTreeMap::new(),
            next_port: 40_000,
            place: 1,
            rng: rng.fork(),
            trace: 0,
            departures: None,
            stale: 0,
            one_way_cuts: 0,
        };
        Arc::new(Net { began: clock::now(), state: Mutex::new(state), sent: Notify::new() })
    }

    /// The time since the beginning.
    pub fn now(&self) -> Time {
        Time::ZERO + (clock::now() - self.began)
    }

    /// Waits until then.
    pub async fn until(&self, at: Time) {
        clock::sleep_until(self.began + at.since(Time::ZERO)).await;
    }

    /// Delivers what is due, for ever.
    pub async fn run(self: Arc<Net>) {
        loop {
            let sent = self.sent.notified();
            let next = self.deliver();
            tokio::select! {
                biased;
                () = sent => {}
                () = self.until(next.unwrap_or_default()), if next.is_some() => {}
            }
        }
    }

    /// Delivers what is due by now. Returns when the next is due.
    fn deliver(&self) -> Option<Time> {
        let now = self.now();
        let mut state = self.state();
        while let Some(Reverse((at, ..))) = state.due.peek() {
            if *at > now {
                return Some(*at);
            }
            let Some(Reverse((_, _, packet))) = state.due.pop() else { break };
            state.arrive(packet);
        }
        None
    }

    /// The client is in another network from now on. Datagrams on their way to the old one are lost.
    pub fn roam(&self) {
        self.state().place += 1;
    }

    /// Replaces both links' profiles.
    pub fn set_profile(&self, [up, down]: [Profile; 2]) {
        let mut state = self.state();
        state.up.set_profile(up);
        state.down.set_profile(down);
    }

    /// Notes all that leaves from now on.
    pub fn listen(&self) {
        self.state().departures = Some(Vec::new());
    }

    /// What has left since somebody listens.
    pub fn heard(&self) -> Vec<Departure> {
        self.state().departures.clone().unwrap_or_default()
    }

    /// The counters so far.
    pub fn passed(&self) -> Passed {
        let state = self.state();
        let mut links = *state.up.counters();
        links.add(state.down.counters());
        let State { stale, one_way_cuts, trace, .. } = *state;
        Passed { links, stale, one_way_cuts, trace }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, from: SocketAddr, to: SocketAddr, datagram: &[u8], ecn: u8) {
        let now = self.now();
        let mut state = self.state();
        let is_up = to.ip() == SERVER;
        let mut out = Vec::new();
        let State { up, down, one_way_cuts, .. } = &mut *state;
        let (link, back) = if is_up { (up, down) } else { (down, up) };
        *one_way_cuts += u64::from(link.profile().is_cut(now) && !back.profile().is_cut(now));
        link.pass(now, datagram, &mut out);
        state.note(now, is_up, datagram.len(), out.len());
        if let Some(departures) = &mut state.departures {
            let (octets, is_quic) = (datagram.len(), is_quic(datagram));
            departures.push(Departure { at: now, is_up, octets, is_quic });
        }
        for delivery in out {
            state.number += 1;
            let ecn = if delivery.congested && ecn != 0 { EcnCodepoint::Ce as u8 } else { ecn };
            let packet = Packet { from, to, datagram: delivery.datagram, ecn };
            let key = (delivery.at, state.number, packet);
            state.due.push(Reverse(key));
        }
        drop(state);
        self.sent.notify_waiters();
    }
}

impl fmt::Debug for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Net")
    }
}

impl State {
    fn arrive(&mut self, packet: Packet) {
        let Packet { from, to, datagram, ecn } = packet;
        let inbox = if to.ip() == SERVER {
            self.server.get(&to.port())
        } else if to.ip() == self.place() {
            self.client.get(&to.port())
        } else {
            self.stale += 1;
            None
        };
        if let Some(inbox) = inbox {
            inbox.push(Arrived { from, datagram, ecn });
        }
    }

    fn place(&self) -> IpAddr {
        let [high, low] = self.place.to_be_bytes();
        Ipv4Addr::new(10, 1, high, low).into()
    }

    /// Contents are not noted: the ciphers' keys differ from run to run.
    fn note(&mut self, now: Time, is_up: bool, length: usize, copies: usize) {
        let micros = now.since(Time::ZERO).as_micros() as u64;
        for part in [micros, u64::from(is_up), length as u64, copies as u64] {
            self.trace = (self.trace ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        }
    }
}

/// Datagrams that wait to be read.
#[derive(Debug, Default)]
pub struct Inbox(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    arrived: VecDeque<Arrived>,
    bytes: usize,
    reader: Option<Waker>,
}

impl Inbox {
    fn push(&self, arrived: Arrived) {
        let mut waiting = self.0.lock().unwrap();
        if waiting.bytes + arrived.datagram.len() > BUFFER_BYTES {
            return;
        }
        waiting.bytes += arrived.datagram.len();
        waiting.arrived.push_back(arrived);
        if let Some(reader) = waiting.reader.take() {
            reader.wake();
        }
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<Arrived> {
        let mut waiting = self.0.lock().unwrap();
        let Some(arrived) = waiting.arrived.pop_front() else {
            waiting.reader = Some(cx.waker().clone());
            return Poll::Pending;
        };
        waiting.bytes -= arrived.datagram.len();
        Poll::Ready(arrived)
    }

    /// Waits for the next datagram.
    pub async fn next(&self) -> Arrived {
        poll_fn(|cx| self.poll(cx)).await
    }
}

/// A process's way to the network. A process that was killed sends nothing more, and what comes for it is dropped.
#[derive(Clone, Debug)]
pub struct Host {
    net: Arc<Net>,
    is_killed: Arc<AtomicBool>,
}

impl Host {
    pub fn new(net: &Arc<Net>) -> Host {
        Host { net: Arc::clone(net), is_killed: Arc::default() }
    }

    /// As SIGKILL does.
    pub fn kill(&self) {
        self.is_killed.store(true, Ordering::Relaxed);
    }

    /// A new port of the client's; what comes there goes to `inbox`.
    pub fn client_port(&self, inbox: Arc<Inbox>) -> Port {
        let mut state = self.net.state();
        let number = state.next_port;
        state.next_port += 1;
        state.client.insert(number, Arc::clone(&inbox));
        Port { host: self.clone(), is_client: true, number, inbox }
    }

    /// A new port of the server's.
    pub fn server_port(&self, inbox: Arc<Inbox>) -> Port {
        let mut state = self.net.state();
        let number = state.next_port;
        state.next_port += 1;
        state.server.insert(number, Arc::clone(&inbox));
        Port { host: self.clone(), is_client: false, number, inbox }
    }
}

impl Network for Host {
    fn open(&self, _: SocketAddr) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        Ok(Arc::new(self.client_port(Arc::default())))
    }

    fn packet_max(&self, _: SocketAddr) -> io::Result<u32> {
        Ok(1_500)
    }

    fn seed(&self) -> Option<[u8; 32]> {
        let mut seed = [0; 32];
        let mut state = self.net.state();
        for part in seed.chunks_exact_mut(8) {
            part.copy_from_slice(&state.rng.next_u64().to_le_bytes());
        }
        Some(seed)
    }
}

/// An open port.
#[derive(Debug)]
pub struct Port {
    host: Host,
    is_client: bool,
    number: u16,
    inbox: Arc<Inbox>,
}

impl Port {
    /// Its address as others see it.
    pub fn address(&self) -> SocketAddr {
        let ip = if self.is_client { self.host.net.state().place() } else { SERVER };
        SocketAddr::new(ip, self.number)
    }

    pub fn send(&self, to: SocketAddr, datagram: &[u8], ecn: u8) {
        if !self.host.is_killed.load(Ordering::Relaxed) {
            self.host.net.send(self.address(), to, datagram, ecn);
        }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        let mut state = self.host.net.state();
        let ports = if self.is_client { &mut state.client } else { &mut state.server };
        ports.remove(&self.number);
    }
}

impl AsyncUdpSocket for Port {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Room)
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let stride = transmit.segment_size.unwrap_or(transmit.contents.len()).max(1);
        let ecn = transmit.ecn.map_or(0, |ecn| ecn as u8);
        for datagram in transmit.contents.chunks(stride) {
            self.send(transmit.destination, datagram, ecn);
        }
        Ok(())
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        // A killed process reads nothing, and the session's driver reads the server's port.
        if self.host.is_killed.load(Ordering::Relaxed) || !self.is_client {
            return Poll::Pending;
        }
        let mut count = 0;
        for (buf, meta) in bufs.iter_mut().zip(meta) {
            let Poll::Ready(arrived) = self.inbox.poll(cx) else { break };
            let Arrived { from, datagram, ecn } = arrived;
            let len = datagram.len().min(buf.len());
            buf[..len].copy_from_slice(&datagram[..len]);
            let ecn = EcnCodepoint::from_bits(ecn);
            *meta = RecvMeta { addr: from, len, stride: len, ecn, dst_ip: None };
            count += 1;
        }
        if count == 0 { Poll::Pending } else { Poll::Ready(Ok(count)) }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address())
    }

    fn max_transmit_segments(&self) -> usize {
        SEGMENTS
    }

    fn may_fragment(&self) -> bool {
        false
    }
}

/// There is always room: what does not fit is dropped in the link's queue.
#[derive(Debug)]
struct Room;

impl UdpPoller for Room {
    fn poll_writable(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// A second.
pub const SECOND: Duration = Duration::from_secs(1);
