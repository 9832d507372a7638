//! A client's socket on a system that cannot do all that QUIC makes use of: one datagram at a time, without the marks of
//! congestion, and cut in pieces where a link on the way takes no larger ones.

use std::fmt;
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};
use tokio::io::ReadBuf;

/// The socket.
#[derive(Debug)]
pub(crate) struct PlainSocket(tokio::net::UdpSocket);

impl PlainSocket {
    /// Takes a socket that does not block.
    pub(crate) fn new(socket: UdpSocket) -> io::Result<PlainSocket> {
        Ok(PlainSocket(tokio::net::UdpSocket::from_std(socket)?))
    }
}

impl AsyncUdpSocket for PlainSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Poller { socket: self, waiting: None })
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        match self.0.try_send_to(transmit.contents, transmit.destination) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Err(error),
            // What cannot be sent is lost, as on the way.
            _ => Ok(()),
        }
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(&mut buffers[0]);
        let addr = ready!(self.0.poll_recv_from(cx, &mut buffer))?;
        let len = buffer.filled().len();
        meta[0] = RecvMeta { addr, len, stride: len, ecn: None, dst_ip: None };
        Poll::Ready(Ok(1))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    fn may_fragment(&self) -> bool {
        true
    }
}

/// Waits for room to write, for one connection.
struct Poller {
    socket: Arc<PlainSocket>,
    waiting: Option<Pin<Box<dyn Future<Output = io::Result<()>> + Send + Sync>>>,
}

impl fmt::Debug for Poller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Poller").field(&self.socket).finish()
    }
}

impl UdpPoller for Poller {
    fn poll_writable(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Poller { socket, waiting } = self.get_mut();
        let room = waiting.get_or_insert_with(|| {
            let socket = Arc::clone(socket);
            Box::pin(async move { socket.0.writable().await })
        });
        let room = ready!(room.as_mut().poll(cx));
        *waiting = None;
        Poll::Ready(room)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use super::*;
    use crate::clock;

    /// What one sends, the other hears, with its length and where it came from.
    #[tokio::test]
    async fn datagrams_go_there() {
        let open = || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_nonblocking(true).unwrap();
            Arc::new(PlainSocket::new(socket).unwrap())
        };
        let (one, other) = (open(), open());
        let mut poller = Arc::clone(&one).create_io_poller();
        poll_fn(|cx| poller.as_mut().poll_writable(cx)).await.unwrap();
        let destination = other.local_addr().unwrap();
        let contents = b"a datagram".as_slice();
        let transmit =
            Transmit { destination, ecn: None, contents, segment_size: None, src_ip: None };
        one.try_send(&transmit).unwrap();
        let mut room = [0; 100];
        let mut meta = [RecvMeta::default()];
        let heard = poll_fn(|cx| other.poll_recv(cx, &mut [IoSliceMut::new(&mut room)], &mut meta));
        let heard = clock::within(Duration::from_secs(60), heard).await.unwrap();
        assert_eq!(heard.unwrap(), 1);
        assert_eq!(&room[..meta[0].len], contents);
        assert_eq!(meta[0].addr, one.local_addr().unwrap());
    }
}
