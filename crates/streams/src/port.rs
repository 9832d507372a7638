//! The server's port, which its session's driver reads: QUIC's datagrams come by an inbox, and leave by a clone
//! of the socket.

use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use quinn::udp::{self, EcnCodepoint, RecvMeta};
use quinn::{AsyncUdpSocket, UdpPoller};
use tokio::sync::mpsc;

use crate::carried::{Blocked, RoomPoller, StreamPorts, is_stream};
use crate::datagrams::Datagrams;
use crate::keys::{InitialFilter, Keys};

/// Datagrams of one sender, read from the port in one piece.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Their octets, one datagram after the other.
    pub octets: Vec<u8>,
    /// The length of each but the last, which may be shorter.
    pub stride: usize,
    /// The sender's address, as the port's socket reports it.
    pub from: SocketAddr,
    /// The local address they came to, if known.
    pub to: Option<IpAddr>,
    /// Their ECN mark, the two bits of the IP header.
    pub ecn: u8,
}

/// The other end of a [`QuicInbox`](crate::server::QuicInbox).
pub(crate) struct Batches {
    pub receiver: mpsc::Receiver<Batch>,
    /// Octets waiting in the inbox.
    pub waiting: Arc<AtomicUsize>,
}

impl Batches {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Batch>> {
        let batch = self.receiver.poll_recv(cx);
        if let Poll::Ready(Some(batch)) = &batch {
            self.waiting.fetch_sub(batch.octets.len(), Ordering::Relaxed);
        }
        batch
    }
}

/// The session's port as quinn uses it: it writes directly and reads from the inbox.
pub(crate) struct SharedPort {
    port: Arc<dyn AsyncUdpSocket>,
    batches: Mutex<(Batches, InitialFilter)>,
}

impl SharedPort {
    pub(crate) fn new(port: Arc<dyn AsyncUdpSocket>, batches: Batches, keys: Keys) -> SharedPort {
        SharedPort { port, batches: Mutex::new((batches, InitialFilter::new(keys))) }
    }
}

impl fmt::Debug for SharedPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedPort").field("port", &self.port).finish_non_exhaustive()
    }
}

impl AsyncUdpSocket for SharedPort {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Arc::clone(&self.port).create_io_poller()
    }

    fn try_send(&self, transmit: &udp::Transmit<'_>) -> io::Result<()> {
        self.port.try_send(transmit)
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
        let (batches, door) = &mut *batches;
        let mut count = 0;
        for (buf, meta) in bufs.iter_mut().zip(meta) {
            let batch = match batches.poll(cx) {
                Poll::Ready(Some(batch)) => batch,
                // The session is over; whoever carries it sees that elsewhere.
                Poll::Ready(None) | Poll::Pending if count == 0 => return Poll::Pending,
                Poll::Ready(None) | Poll::Pending => break,
            };
            // `chunks` panics at 0.
            let stride = batch.stride.max(1);
            let mut len = 0;
            for datagram in batch.octets.chunks(stride) {
                let end = len + datagram.len();
                // A datagram beyond the buffer counts as lost, and QUIC repairs that.
                if door.admits(datagram) && end <= buf.len() {
                    buf[len..end].copy_from_slice(datagram);
                    len = end;
                }
            }
            *meta = RecvMeta {
                addr: batch.from,
                len,
                stride,
                ecn: EcnCodepoint::from_bits(batch.ecn),
                dst_ip: batch.to,
            };
            count += 1;
        }
        Poll::Ready(Ok(count))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.port.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.port.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.port.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.port.may_fragment()
    }
}

/// The session's port, for writing.
///
/// The runtime watches the port only while it is full: else each of the session's datagrams would wake it.
pub(crate) struct Port {
    socket: UdpSocket,
    datagrams: Datagrams,
    /// A clone of the socket, watched since a write found no room.
    full: Mutex<Option<Arc<tokio::net::UdpSocket>>>,
    /// The session's streams, each of which takes the datagrams for its address.
    streams: StreamPorts,
    blocked: Blocked,
}

impl Port {
    pub(crate) fn new(socket: UdpSocket, streams: StreamPorts) -> io::Result<Port> {
        // A full port must not block the thread that carries all streams.
        let datagrams = Datagrams::new(&socket)?;
        let (full, blocked) = (Mutex::new(None), Blocked::default());
        Ok(Port { socket, datagrams, full, streams, blocked })
    }

    fn full(&self) -> MutexGuard<'_, Option<Arc<tokio::net::UdpSocket>>> {
        self.full.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch(&self) -> io::Result<()> {
        let mut full = self.full();
        if full.is_none() {
            let handle = tokio::net::UdpSocket::from_std(self.socket.try_clone()?)?;
            *full = Some(Arc::new(handle));
        }
        Ok(())
    }
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port").field("socket", &self.socket).finish_non_exhaustive()
    }
}

impl AsyncUdpSocket for Port {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        let room = RoomPoller::new(self.streams.clone());
        Box::pin(Poller { port: self, waiting: None, room })
    }

    fn try_send(&self, transmit: &udp::Transmit<'_>) -> io::Result<()> {
        if is_stream(transmit.destination) {
            let sent = self.streams.try_send(transmit);
            self.blocked.note(transmit.destination, &sent);
            return sent;
        }
        let sent = self.datagrams.send(&self.socket, transmit);
        if matches!(&sent, Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
            self.watch()?;
        }
        sent
    }

    /// The session's driver reads the port.
    fn poll_recv(
        &self,
        _cx: &mut Context<'_>,
        _bufs: &mut [IoSliceMut<'_>],
        _meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        Poll::Pending
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.datagrams.max_gso_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.datagrams.gro_segments()
    }

    fn may_fragment(&self) -> bool {
        self.datagrams.may_fragment()
    }
}

/// Waits for room to write, for one connection.
struct Poller {
    port: Arc<Port>,
    waiting: Option<Pin<Box<dyn Future<Output = io::Result<()>> + Send + Sync>>>,
    room: RoomPoller,
}

impl fmt::Debug for Poller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Poller").field(&self.port).finish()
    }
}

impl UdpPoller for Poller {
    fn poll_writable(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Poller { port, waiting, room } = self.get_mut();
        ready!(room.poll_room(&port.blocked, cx));
        if waiting.is_none() {
            let Some(full) = port.full().clone() else { return Poll::Ready(Ok(())) };
            *waiting = Some(Box::pin(async move { full.writable().await }));
        }
        let Some(room) = waiting else { return Poll::Ready(Ok(())) };
        let room = ready!(room.as_mut().poll(cx));
        *waiting = None;
        // Others find out by themselves.
        *port.full() = None;
        Poll::Ready(room)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock;

    /// A port with room again wakes every waiting writer, and then is watched no more.
    #[tokio::test]
    async fn all_who_wait_for_room_are_told() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = Arc::new(Port::new(socket, StreamPorts::default()).unwrap());
        let mut pollers = [(); 3].map(|()| Arc::clone(&port).create_io_poller());
        port.watch().unwrap();
        // The runtime has not looked at the port yet.
        let mut cx = Context::from_waker(std::task::Waker::noop());
        assert!(
            pollers.iter_mut().all(|poller| poller.as_mut().poll_writable(&mut cx).is_pending())
        );
        for poller in &mut pollers {
            let room = std::future::poll_fn(|cx| poller.as_mut().poll_writable(cx));
            clock::within(Duration::from_secs(60), room).await.unwrap().unwrap();
        }
        assert!(port.full().is_none());
    }
}
