//! A session's stream: frames over two files, ssh's at a client and a socket to the relay at a server.

use std::fmt;
use std::io;
use std::task::{Context, Poll, ready};

use rove_ssp::StreamId;
use rove_streams::carried::StreamPort;

use crate::net::frames::{FrameKind, FrameQueue, FrameReader};
use crate::os::pipe::{self, PipeReader, PipeWriter};

/// QUIC's datagrams written in one turn. More wait for the next, which comes at once.
const QUIC_A_TURN: usize = 64;

/// Frames dropped in one turn at the end: a peer that sends without end keeps nobody from clock and signals.
const DROPPED_A_TURN: usize = 64;

/// One end of a stream.
pub(crate) struct Stdio {
    id: StreamId,
    input: PipeReader,
    /// `None`: nothing can be written any more. What came before may still be read: a peer's last words.
    output: Option<PipeWriter>,
    reader: FrameReader,
    queue: FrameQueue,
    /// Where QUIC's datagrams for it wait.
    quic: Option<StreamPort>,
    /// It carries nothing any more.
    ended: bool,
}

/// What came by a stream.
#[derive(Debug)]
pub(crate) enum Carried<'a> {
    /// A datagram.
    Datagram(FrameKind, &'a mut [u8]),
    /// It has ended, or what comes is no frame.
    End,
}

impl Stdio {
    /// Frames from `input` and to `output`; `first` came from there already. Needs a tokio runtime with I/O.
    pub(crate) fn new(
        id: StreamId,
        input: pipe::File,
        output: pipe::File,
        first: &[u8],
    ) -> io::Result<Stdio> {
        Ok(Stdio {
            id,
            input: PipeReader::new(input)?,
            output: Some(PipeWriter::new(output)?),
            reader: FrameReader::new(first),
            queue: FrameQueue::default(),
            quic: None,
            ended: false,
        })
    }

    /// The stream, as the session knows it.
    pub(crate) fn id(&self) -> StreamId {
        self.id
    }

    /// Writes QUIC's datagrams too, when nothing else waits.
    pub(crate) fn carry(&mut self, quic: StreamPort) {
        self.quic = Some(quic);
    }

    /// Ready while there may be something to take. Writes what waits.
    pub(crate) fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.poll_written(cx).is_ready() {
            let mut left = QUIC_A_TURN;
            loop {
                if left == 0 {
                    cx.waker().wake_by_ref();
                    break;
                }
                left -= 1;
                let Some(Poll::Ready(datagram)) = self.quic.as_ref().map(|it| it.poll_take(cx))
                else {
                    break;
                };
                self.send(FrameKind::Quic, &datagram);
                if self.poll_written(cx).is_pending() {
                    break;
                }
            }
        }
        if self.ended || self.reader.has_frame() {
            return Poll::Ready(Ok(()));
        }
        self.input.poll_readable(cx)
    }

    /// Ends the stream: writes what waits, closes what it writes to, and is ready when the peer has ended the stream too.
    /// What still comes is dropped. To be polled from the first call on until it is ready.
    pub(crate) fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.quic = None;
        if self.poll_written(cx).is_ready() {
            self.output = None;
        }
        for _ in 0..DROPPED_A_TURN {
            match self.try_recv() {
                Some(Carried::Datagram(..)) => continue,
                Some(Carried::End) => self.ended = true,
                None => {}
            }
            if self.ended {
                return if self.output.is_none() { Poll::Ready(()) } else { Poll::Pending };
            }
            if ready!(self.input.poll_readable(cx)).is_err() {
                self.ended = true;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Ready when nothing waits to be written. Once there is room for more it is asked again.
    fn poll_written(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while let Some(output) = self.output.as_ref().filter(|_| !self.queue.is_empty()) {
            match output.poll_writable(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(_)) => self.output = None,
                Poll::Ready(Ok(_)) => self.flush(),
            }
        }
        Poll::Ready(())
    }

    /// Takes what came next; `None` when nothing waits. After the end there is no more.
    pub(crate) fn try_recv(&mut self) -> Option<Carried<'_>> {
        while !self.ended && !self.reader.has_frame() {
            let room = self.reader.room();
            match self.input.try_read(room) {
                Ok(count @ 1..) => self.reader.filled(count),
                Err(error) if is_for_later(&error) => return None,
                Ok(0) | Err(_) => self.ended = true,
            }
        }
        if self.ended {
            return Some(Carried::End);
        }
        Some(match self.reader.take_frame() {
            Ok(Some((kind, datagram))) => Carried::Datagram(kind, datagram),
            // The reader had one a moment ago, so that it is none.
            Ok(None) | Err(_) => Carried::End,
        })
    }

    /// Sends a datagram, which is lost if there is no room for it.
    pub(crate) fn send(&mut self, kind: FrameKind, datagram: &[u8]) -> bool {
        let has_room = self.output.is_some() && self.queue.push(kind, datagram);
        self.flush();
        has_room
    }

    /// Writes as much as the stream takes now.
    fn flush(&mut self) {
        while let Some(output) = &mut self.output {
            let octets = self.queue.octets();
            if octets.is_empty() {
                return;
            }
            match output.try_write(octets) {
                Ok(count) => self.queue.wrote(count),
                Err(error) if is_for_later(&error) => return,
                Err(_) => self.output = None,
            }
        }
    }
}

impl fmt::Debug for Stdio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stdio").field("id", &self.id).finish_non_exhaustive()
    }
}

fn is_for_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::io::Write;
    use std::time::Duration;

    use rove_streams::clock;

    use super::*;

    /// The two files of each end of a stream.
    type Files = (io::PipeReader, io::PipeWriter);

    fn pair() -> (Files, Files) {
        let ((near, to_near), (far, to_far)) = (io::pipe().unwrap(), io::pipe().unwrap());
        ((near, to_far), (far, to_near))
    }

    fn end(number: u32, (input, output): Files) -> Stdio {
        Stdio::new(StreamId::new(number), input.into(), output.into(), b"").unwrap()
    }

    /// A datagram that came, or `None` at the end.
    async fn take(stream: &mut Stdio) -> Option<Vec<u8>> {
        loop {
            poll_fn(|cx| stream.poll_readable(cx)).await.unwrap();
            match stream.try_recv() {
                Some(Carried::Datagram(FrameKind::Session, octets)) => {
                    return Some(octets.to_vec());
                }
                Some(Carried::End) => return None,
                _ => {}
            }
        }
    }

    #[tokio::test]
    async fn datagrams_cross_in_order_and_the_end_shows() {
        let (near, far) = pair();
        let (mut near, mut far) = (end(1, near), end(2, far));
        for number in 0..50_u8 {
            assert!(near.send(FrameKind::Session, &[number; 900]));
        }
        // What the socket did not take at once goes when the sender is asked whether something has come.
        for number in 0..50_u8 {
            let sends = poll_fn(|cx| near.poll_readable(cx));
            tokio::select! {
                biased;
                _ = sends => panic!("nothing was sent to this end"),
                datagram = take(&mut far) => assert_eq!(datagram.unwrap(), [number; 900]),
            }
        }
        drop(near);
        assert_eq!(take(&mut far).await, None);
    }

    /// A client says that it leaves, and is gone before the server has answered something else.
    #[cfg(unix)]
    #[tokio::test]
    async fn last_words_are_heard_though_nobody_can_be_told() {
        let (near, far) = pair();
        let (mut near, mut far) = (end(1, near), end(2, far));
        assert!(near.send(FrameKind::Session, b"goodbye"));
        poll_fn(|cx| near.poll_written(cx)).await;
        drop(near);
        far.send(FrameKind::Session, b"an answer");
        assert_eq!(take(&mut far).await.as_deref(), Some(&b"goodbye"[..]));
        assert!(!far.send(FrameKind::Session, b"another"), "nobody reads it");
        assert_eq!(take(&mut far).await, None);
    }

    /// What waits is written before the end, and what the other end says meanwhile is not waited for.
    #[tokio::test]
    async fn the_last_words_of_a_stream_that_is_ended_arrive() {
        let (near, (input, output)) = pair();
        let mut near = end(1, near);
        // The other end ends each way by itself.
        let ((unread, to_nobody), (from_nobody, unwritten)) =
            (io::pipe().unwrap(), io::pipe().unwrap());
        let (mut far, mut relay) = (end(2, (input, to_nobody)), end(3, (from_nobody, output)));
        let count = (0..200).filter(|_| near.send(FrameKind::Session, &[7; 1400])).count();
        relay.send(FrameKind::Session, b"too late");
        let mut came = 0;
        {
            let ends = poll_fn(|cx| near.poll_end(cx));
            tokio::pin!(ends);
            loop {
                tokio::select! {
                    () = &mut ends => panic!("the other end has not ended"),
                    datagram = take(&mut far) => match datagram {
                        Some(octets) => assert_eq!(octets, [7; 1400]),
                        None => break,
                    },
                }
                came += 1;
            }
            assert_eq!(came, count);
            drop(relay);
            ends.await;
        }
        assert!(!near.send(FrameKind::Session, b"more"));
        drop((unread, unwritten));
    }

    #[tokio::test]
    async fn a_peer_that_sends_without_end_holds_up_no_end() {
        let (near, (input, mut output)) = pair();
        let mut near = end(1, near);
        let flood = move || while output.write_all(&[0; 4096]).is_ok() {};
        let floods = std::thread::Builder::new().spawn(flood).unwrap();
        let ends = poll_fn(|cx| near.poll_end(cx));
        assert!(clock::within(Duration::from_millis(50), ends).await.is_err());
        drop((near, input));
        floods.join().unwrap();
    }

    /// A peer that says no more still hears what waits.
    #[tokio::test]
    async fn what_waits_is_written_though_the_peer_has_ended() {
        let (near, (input, output)) = pair();
        let mut near = end(1, near);
        let count = (0..200).filter(|_| near.send(FrameKind::Session, &[7; 1400])).count();
        drop(output);
        let ((unread, to_nobody), mut came) = (io::pipe().unwrap(), 0);
        let mut far = end(2, (input, to_nobody));
        let ends = poll_fn(|cx| near.poll_end(cx));
        let takes = async {
            while take(&mut far).await.is_some() {
                came += 1;
            }
        };
        tokio::join!(ends, takes);
        assert_eq!(came, count);
        drop(unread);
    }

    #[tokio::test]
    async fn noise_ends_a_stream() {
        let (mut near, far) = pair();
        let mut far = end(2, far);
        near.1.write_all(b"\0\0\x01xbash: warning\n").unwrap();
        assert_eq!(take(&mut far).await.as_deref(), Some(&b"x"[..]));
        assert_eq!(take(&mut far).await, None);
    }

    #[tokio::test]
    async fn a_peer_that_reads_nothing_costs_a_bounded_queue() {
        let (near, _far) = pair();
        let mut near = end(1, near);
        let sent = (0..10_000).take_while(|_| near.send(FrameKind::Session, &[1; 1400])).count();
        assert!(sent < 2_000, "{sent}");
    }
}
