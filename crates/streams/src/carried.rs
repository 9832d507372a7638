//! QUIC over a stream of octets that the session has beside UDP: its datagrams wait here for the driver, which writes
//! them as frames (`docs/wire.md` §11). To QUIC the stream is one more address.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};

/// The addresses by which QUIC knows streams: of the block that is routed nowhere (RFC 6666).
const BLOCK: [u16; 6] = [0x100, 0, 0, 0, 0, 0];
const PORT: u16 = 1;

/// Octets that wait to be written to a stream. Beyond it QUIC waits, and what is written first is what was sent first.
const WAITING_BYTES_MAX: usize = 64 << 10;

/// Octets that wait to be read by a connection, as at a server's port. What comes beyond it is lost.
const UNREAD_BYTES_MAX: usize = 4 << 20;

/// What a datagram that waits to be read takes beside its octets: a peer may send empty ones.
const UNREAD_OVERHEAD_BYTES: usize = 64;

/// The address by which QUIC knows the stream of this number.
pub fn address_of(stream: u32) -> SocketAddr {
    let [a, b, c, d, e, f] = BLOCK;
    let [high, low] = [(stream >> 16) as u16, stream as u16];
    SocketAddr::new(Ipv6Addr::new(a, b, c, d, e, f, high, low).into(), PORT)
}

/// Whether an address is a stream's.
pub fn is_stream(address: SocketAddr) -> bool {
    match address.ip() {
        IpAddr::V6(ip) => ip.segments().starts_with(&BLOCK),
        IpAddr::V4(_) => false,
    }
}

/// The streams of one end of a session. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct StreamPorts(Arc<Mutex<Ports>>);

#[derive(Debug, Default)]
struct Ports {
    open: BTreeMap<SocketAddr, Arc<Queue>>,
    /// A client's sockets, each of which gets all that comes: it tells its own connections by their ids.
    sockets: Vec<Weak<StreamSocket>>,
}

impl StreamPorts {
    /// Opens a stream. The driver of the stream takes the datagrams from the port and writes them.
    pub fn open(&self, stream: u32) -> StreamPort {
        let address = address_of(stream);
        let queue = Arc::new(Queue::default());
        self.lock().open.insert(address, Arc::clone(&queue));
        StreamPort { ports: self.clone(), address, queue }
    }

    /// A datagram has come by a stream, for a client's connections.
    pub fn deliver(&self, from: SocketAddr, datagram: &[u8]) {
        let mut ports = self.lock();
        ports.sockets.retain(|socket| {
            let Some(socket) = socket.upgrade() else { return false };
            if socket.peer == from {
                socket.take_in(datagram);
            }
            true
        });
    }

    /// A client's new socket for this stream.
    pub(crate) fn socket(&self, peer: SocketAddr) -> Arc<StreamSocket> {
        let ports = self.clone();
        let socket = Arc::new(StreamSocket {
            ports,
            peer,
            blocked: Blocked::default(),
            unread: Mutex::default(),
        });
        self.lock().sockets.push(Arc::downgrade(&socket));
        socket
    }

    /// Sends to a stream. A datagram for a stream that is gone is lost.
    pub(crate) fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        match self.queue(transmit.destination) {
            Some(queue) => queue.push(transmit),
            None => Ok(()),
        }
    }

    fn queue(&self, address: SocketAddr) -> Option<Arc<Queue>> {
        self.lock().open.get(&address).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Ports> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end of a stream that its driver has: datagrams for it are taken here. Dropping it closes the stream to QUIC.
#[derive(Debug)]
pub struct StreamPort {
    ports: StreamPorts,
    address: SocketAddr,
    queue: Arc<Queue>,
}

impl StreamPort {
    /// The next datagram to write.
    pub fn poll_take(&self, cx: &mut Context<'_>) -> Poll<Vec<u8>> {
        let mut waiting = self.queue.lock();
        let Some(datagram) = waiting.datagrams.pop_front() else {
            waiting.taker = Some(cx.waker().clone());
            return Poll::Pending;
        };
        waiting.bytes -= datagram.len();
        if waiting.bytes < WAITING_BYTES_MAX {
            waiting.writers.drain(..).for_each(Waker::wake);
        }
        Poll::Ready(datagram)
    }
}

impl Drop for StreamPort {
    fn drop(&mut self) {
        let mut ports = self.ports.lock();
        if ports.open.get(&self.address).is_some_and(|queue| Arc::ptr_eq(queue, &self.queue)) {
            ports.open.remove(&self.address);
        }
        drop(ports);
        // Who waits for room finds that there is no stream.
        let mut waiting = self.queue.lock();
        waiting.is_closed = true;
        waiting.writers.drain(..).for_each(Waker::wake);
    }
}

/// Datagrams on their way from QUIC to a stream.
#[derive(Default)]
struct Queue(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    datagrams: VecDeque<Vec<u8>>,
    bytes: usize,
    taker: Option<Waker>,
    writers: Vec<Waker>,
    is_closed: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let mut waiting = self.lock();
        if waiting.bytes >= WAITING_BYTES_MAX && !waiting.is_closed {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let length = transmit.segment_size.unwrap_or(transmit.contents.len()).max(1);
        for datagram in transmit.contents.chunks(length) {
            waiting.bytes += datagram.len();
            waiting.datagrams.push_back(datagram.to_vec());
        }
        if let Some(taker) = waiting.taker.take() {
            taker.wake();
        }
        Ok(())
    }

    fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut waiting = self.lock();
        if waiting.bytes < WAITING_BYTES_MAX || waiting.is_closed {
            return Poll::Ready(());
        }
        if !waiting.writers.iter().any(|writer| writer.will_wake(cx.waker())) {
            waiting.writers.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("bytes", &self.lock().bytes).finish_non_exhaustive()
    }
}

/// The stream that the last datagram found no room in. quinn asks for room, by the connection's poller, right after.
#[derive(Debug, Default)]
pub(crate) struct Blocked(Mutex<Option<SocketAddr>>);

impl Blocked {
    /// Notes what has become of a datagram for a stream.
    pub(crate) fn note(&self, to: SocketAddr, sent: &io::Result<()>) {
        if matches!(sent, Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(to);
        }
    }

    /// Who asks for room is the one whose datagram was refused.
    pub(crate) fn take(&self) -> Option<SocketAddr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Waits for room in a stream, for one connection.
#[derive(Debug)]
pub(crate) struct RoomPoller {
    ports: StreamPorts,
    waiting: Option<SocketAddr>,
}

impl RoomPoller {
    pub(crate) fn new(ports: StreamPorts) -> RoomPoller {
        RoomPoller { ports, waiting: None }
    }

    /// Whether there is room in the stream that had none; `blocked` tells which that is.
    pub(crate) fn poll_room(&mut self, blocked: &Blocked, cx: &mut Context<'_>) -> Poll<()> {
        self.waiting = blocked.take().or(self.waiting);
        let queue = self.waiting.and_then(|address| self.ports.queue(address));
        if let Some(queue) = queue
            && queue.poll_room(cx).is_pending()
        {
            return Poll::Pending;
        }
        self.waiting = None;
        Poll::Ready(())
    }
}

/// A client's socket for one stream.
pub(crate) struct StreamSocket {
    ports: StreamPorts,
    peer: SocketAddr,
    blocked: Blocked,
    unread: Mutex<Unread>,
}

#[derive(Default)]
struct Unread {
    datagrams: VecDeque<Vec<u8>>,
    bytes: usize,
    reader: Option<Waker>,
}

impl StreamSocket {
    fn take_in(&self, datagram: &[u8]) {
        let mut unread = self.unread.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = datagram.len() + UNREAD_OVERHEAD_BYTES;
        if unread.bytes + bytes > UNREAD_BYTES_MAX {
            return;
        }
        unread.bytes += bytes;
        unread.datagrams.push_back(datagram.to_vec());
        if let Some(reader) = unread.reader.take() {
            reader.wake();
        }
    }
}

impl fmt::Debug for StreamSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamSocket").field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl AsyncUdpSocket for StreamSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        let room = RoomPoller::new(self.ports.clone());
        Box::pin(StreamPoller { socket: self, room })
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let sent = self.ports.try_send(transmit);
        self.blocked.note(transmit.destination, &sent);
        sent
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut unread = self.unread.lock().unwrap_or_else(PoisonError::into_inner);
        let mut count = 0;
        for (buf, meta) in bufs.iter_mut().zip(meta) {
            let Some(datagram) = unread.datagrams.pop_front() else { break };
            unread.bytes -= datagram.len() + UNREAD_OVERHEAD_BYTES;
            // One that is longer than any is cut, and is no packet then.
            let len = datagram.len().min(buf.len());
            buf[..len].copy_from_slice(&datagram[..len]);
            *meta = RecvMeta { addr: self.peer, len, stride: len.max(1), ecn: None, dst_ip: None };
            count += 1;
        }
        if count == 0 {
            unread.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(Ok(count))
    }

    /// One that no stream has, and of their family.
    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok((Ipv6Addr::UNSPECIFIED, 0).into())
    }

    fn may_fragment(&self) -> bool {
        false
    }
}

#[derive(Debug)]
struct StreamPoller {
    socket: Arc<StreamSocket>,
    room: RoomPoller,
}

impl UdpPoller for StreamPoller {
    fn poll_writable(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let StreamPoller { socket, room } = self.get_mut();
        room.poll_room(&socket.blocked, cx).map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use super::*;
    use crate::clock;
    use crate::network::RouteMtu;
    use crate::server::{Batch, Dormant};
    use crate::{SecretMemory, client};

    #[test]
    fn addresses_tell_streams_apart() {
        assert_ne!(address_of(1), address_of(1 << 16));
        for (address, expected) in [
            (address_of(0), true),
            (address_of(u32::MAX), true),
            ("[2001:db8::1]:1".parse().unwrap(), false),
            ("192.0.2.1:1".parse().unwrap(), false),
        ] {
            assert_eq!(is_stream(address), expected, "{address}");
        }
    }

    #[test]
    fn who_finds_no_room_waits_until_there_is_some_or_no_stream() {
        let ports = StreamPorts::default();
        let port = ports.open(3);
        let socket = ports.socket(address_of(3));
        let mut poller = Arc::clone(&socket).create_io_poller();
        let contents = vec![7; 3000];
        let transmit = Transmit {
            destination: address_of(3),
            ecn: None,
            contents: &contents,
            segment_size: Some(1400),
            src_ip: None,
        };
        let mut cx = Context::from_waker(Waker::noop());
        let sent = (0..1000).take_while(|_| socket.try_send(&transmit).is_ok()).count();
        assert_eq!(sent, WAITING_BYTES_MAX.div_ceil(3000));
        assert!(poller.as_mut().poll_writable(&mut cx).is_pending());
        let lengths: Vec<usize> = std::iter::from_fn(|| match port.poll_take(&mut cx) {
            Poll::Ready(datagram) => Some(datagram.len()),
            Poll::Pending => None,
        })
        .collect();
        assert_eq!(lengths[..4], [1400, 1400, 200, 1400]);
        assert!(poller.as_mut().poll_writable(&mut cx).is_ready());
        while socket.try_send(&transmit).is_ok() {}
        assert!(poller.as_mut().poll_writable(&mut cx).is_pending());
        drop(port);
        assert!(poller.as_mut().poll_writable(&mut cx).is_ready());
        assert!(socket.try_send(&transmit).is_ok(), "it is lost, as in any network");
    }

    #[test]
    fn datagrams_that_nobody_reads_are_bounded_though_they_are_empty() {
        let ports = StreamPorts::default();
        let socket = ports.socket(address_of(3));
        let count = UNREAD_BYTES_MAX / UNREAD_OVERHEAD_BYTES;
        for _ in 0..2 * count {
            ports.deliver(address_of(3), b"");
        }
        assert_eq!(socket.unread.lock().unwrap().datagrams.len(), count);
    }

    /// A megabyte each way over a stream, while no datagram by UDP arrives.
    #[tokio::test]
    async fn channels_go_over_a_stream() {
        let secret = [7; 32];
        let (near, far) = (StreamPorts::default(), StreamPorts::default());
        let (server, inbox, acceptor) = Dormant::new(&secret, SecretMemory::ORDINARY).start();
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let acceptor = acceptor.with_streams(far.clone());
        tokio::spawn(acceptor.run(socket, RouteMtu::UNKNOWN));
        let (streams, hints, connector) = client::start(&secret, SecretMemory::ORDINARY);
        tokio::spawn(connector.with_system(RouteMtu::UNKNOWN, near.clone()).run());
        let (up, down) = (near.open(1), far.open(9));
        tokio::spawn(async move {
            loop {
                let octets = poll_fn(|cx| up.poll_take(cx)).await;
                let stride = octets.len();
                inbox.pass(Batch { octets, stride, from: address_of(9), to: None, ecn: 0 });
            }
        });
        tokio::spawn(async move {
            loop {
                let datagram = poll_fn(|cx| down.poll_take(cx)).await;
                near.deliver(address_of(1), &datagram);
            }
        });
        hints.heard(address_of(1));
        let work = async {
            use tokio::io::{AsyncReadExt, AsyncWriteExt};
            let octets = vec![5; 1 << 20];
            let mut channel = streams.open(b"there").await.unwrap();
            // Each end reads while the other writes: a window is smaller than all of it.
            let there = async {
                let (_, mut other) = server.accept().await.unwrap();
                let mut got = vec![0; octets.len()];
                other.read_exact(&mut got).await.unwrap();
                assert!(got == octets);
                other.write_all(&got).await.unwrap();
                other
            };
            let back = async {
                channel.write_all(&octets).await.unwrap();
                let mut got = vec![0; octets.len()];
                channel.read_exact(&mut got).await.unwrap();
                assert!(got == octets);
            };
            let (_other, ()) = tokio::join!(there, back);
        };
        clock::within(Duration::from_secs(60), work).await.unwrap();
    }
}
