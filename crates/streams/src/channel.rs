//! Channels as programs use them: two halves that read and write like any stream of octets.

use std::fmt;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::mux::{Broken, Which};
use crate::shared::Shared;

/// A reliable, ordered, 8-bit clean stream of octets in both directions that survives roaming and blackouts
/// of days. A lost path never makes it fail; only the peer or the end of the session does.
///
/// `poll_shutdown` ends our direction; the peer then reads an end of file. Neither it nor `poll_flush`
/// waits: written octets go out by themselves. Dropping gives up both directions, except one that has ended:
/// octets written before a shutdown still arrive while the session lasts.
///
/// Errors: `ConnectionReset` when the peer gave up the direction being read, or has forgotten the channel;
/// `BrokenPipe` when it reads no more; `ConnectionAborted` when the session is over.
#[derive(Debug)]
pub struct Channel {
    reader: Reader,
    writer: Writer,
}

impl Channel {
    pub(crate) fn new(shared: Arc<Shared>, id: u64) -> Channel {
        let reader = Reader { half: Half { shared: Arc::clone(&shared), id } };
        Channel { reader, writer: Writer { half: Half { shared, id } } }
    }

    /// Splits it into two halves. Dropping a half gives up its direction.
    pub fn split(self) -> (Reader, Writer) {
        (self.reader, self.writer)
    }
}

/// The reading half of a [`Channel`].
#[derive(Debug)]
pub struct Reader {
    half: Half,
}

/// The writing half of a [`Channel`].
#[derive(Debug)]
pub struct Writer {
    half: Half,
}

impl Writer {
    /// Waits until the other end of the session has everything written so far, and after a shutdown the end
    /// as well. Its program may not have read it yet.
    pub async fn arrived(&mut self) -> io::Result<()> {
        let Half { shared, id } = &self.half;
        poll_fn(|cx| shared.mux().poll_arrived(cx, *id)).await.map_err(error)
    }
}

struct Half {
    shared: Arc<Shared>,
    id: u64,
}

impl fmt::Debug for Half {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "channel {}", self.id)
    }
}

impl AsyncRead for Reader {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Half { shared, id } = &self.half;
        // The block ends before `stirred`, which may lock the channels again.
        let (read, tells) = {
            let mut mux = shared.mux();
            // No more of the buffer is made ready than there is for it: it may be large, and what there is little.
            let room = mux.ready(*id).max(1).min(buf.remaining());
            let read = mux.poll_read(cx, *id, buf.initialize_unfilled_to(room));
            (read, mux.has_frames(Which::Urgent))
        };
        // A read that moves the limit a little has nothing urgent to tell, and wakes no task.
        if tells {
            shared.stirred();
        }
        read.map(|read| read.map(|count| buf.advance(count)).map_err(error))
    }
}

impl AsyncWrite for Writer {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Half { shared, id } = &self.half;
        let written = shared.mux().poll_write(cx, *id, octets);
        if written.is_ready() {
            shared.stirred();
        }
        written.map_err(error)
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Half { shared, id } = &self.half;
        let finished = shared.mux().finish(*id);
        shared.stirred();
        Poll::Ready(finished.map_err(error))
    }
}

impl AsyncRead for Channel {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.reader).poll_read(cx, buf)
    }
}

impl AsyncWrite for Channel {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.writer).poll_write(cx, octets)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_shutdown(cx)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let Half { shared, id } = &self.half;
        shared.mux().drop_reader(*id);
        shared.stirred();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let Half { shared, id } = &self.half;
        shared.mux().drop_writer(*id);
        shared.stirred();
    }
}

fn error(broken: Broken) -> io::Error {
    match broken {
        Broken::Reset => {
            io::Error::new(ErrorKind::ConnectionReset, "the other end gave the channel up")
        }
        Broken::Refused => io::Error::new(ErrorKind::BrokenPipe, "the other end reads no more"),
        Broken::Finished => io::Error::new(ErrorKind::BrokenPipe, "the channel was shut down"),
        Broken::Ended(ended) => io::Error::new(ErrorKind::ConnectionAborted, ended),
    }
}
