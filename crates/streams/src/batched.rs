//! Reads a socket in batches. Where neither the network card nor the kernel joins packets, each
//! packet would wake a chain of tasks and threads, at several times the cost of the packet itself.

use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use crate::clock::{self, Sleep};
use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};

use crate::payload::PAYLOAD_MAX;

/// How long to wait for more after a few packets of bulk. Timers are no finer, and the kernel's usual buffer
/// holds 1 Gbit/s in packets of 1,500 octets for twice as long.
const PAUSE: Duration = Duration::from_millis(1);

/// A read of this size is a few packets of bulk. Smaller reads are acknowledgments and frames, which senders
/// wait for; larger ones are a batch already.
const FEW_BYTES: std::ops::Range<usize> = 1_000..16_000;

/// A socket that takes a pause after it has read only a few packets of bulk.
pub(crate) struct BatchedSocket {
    socket: Arc<dyn AsyncUdpSocket>,
    pause: Mutex<Pin<Box<Sleep>>>,
}

impl BatchedSocket {
    /// Needs a tokio runtime with time.
    pub(crate) fn new(socket: Arc<dyn AsyncUdpSocket>) -> Arc<BatchedSocket> {
        Arc::new(BatchedSocket {
            socket,
            pause: Mutex::new(Box::pin(clock::sleep(Duration::ZERO))),
        })
    }
}

impl fmt::Debug for BatchedSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BatchedSocket").field(&self.socket).finish()
    }
}

impl AsyncUdpSocket for BatchedSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Arc::clone(&self.socket).create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.socket.try_send(transmit)
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut pause = self.pause.lock().unwrap_or_else(PoisonError::into_inner);
        ready!(pause.as_mut().poll(cx));
        let count = ready!(self.socket.poll_recv(cx, bufs, meta))?;
        if FEW_BYTES.contains(&meta.iter().take(count).map(|meta| meta.len).sum()) {
            pause.as_mut().reset(clock::now() + PAUSE);
        }
        Poll::Ready(Ok(count))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.socket.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        // A read brings no more than 64 KiB, whatever its datagrams are joined from: quinn makes room for so many of the
        // largest.
        self.socket.max_receive_segments().min((64 << 10) / usize::from(PAYLOAD_MAX) + 1)
    }

    fn may_fragment(&self) -> bool {
        self.socket.may_fragment()
    }
}
