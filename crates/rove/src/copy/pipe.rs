//! Connects a channel with the workers that read and write files: octets pass in pieces through
//! short queues, so that network and disk work at the same time and neither runs ahead.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rove_streams::clock;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use crate::copy::buggify::{Buggify, Point};
use crate::copy::message::{DATA_BYTES_MAX, HEADER_BYTES, Malformed, Message, Parser};

/// Octets read from the channel at a time.
const PIECE_BYTES: usize = 256 * 1024;

/// The most pieces that wait in either direction: 2 MiB in, and as much out.
const PIECES_MAX: usize = 8;

/// Interval of checks whether the other end is heard, while nothing arrives.
const SILENCE: Duration = Duration::from_secs(1);

/// Octets of small messages to gather before they are sent.
const GATHERED_BYTES: usize = 64 * 1024;

/// Why there are no more messages.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The channel has ended.
    Ended,
    /// There may be more, but the other end has not been heard for a while.
    Silent,
    /// The other end breaks the protocol.
    Malformed,
}

impl From<Malformed> for Broken {
    fn from(_: Malformed) -> Broken {
        Broken::Malformed
    }
}

/// The ends of a channel for the threads of a copy, and a future that moves the octets.
///
/// The future ends once both directions have: ours because all [`Outbox`]es are gone and their octets are
/// written and shut down, the other because the peer has ended it or the [`Inbox`] is gone. `limit` is in
/// octets a second; 0 is none. `is_heard` says whether the other end has been heard lately.
pub(crate) fn join(
    reader: impl AsyncRead + Unpin,
    writer: impl AsyncWrite + Unpin,
    limit: u64,
    is_heard: impl Fn() -> bool,
    buggify: Buggify,
) -> (Inbox, Outbox, impl Future<Output = ()>) {
    let (to_inbox, pieces) = mpsc::channel(PIECES_MAX);
    let (out, from_outbox) = mpsc::channel(PIECES_MAX);
    let parser = Parser::default();
    let inbox = Inbox { pieces, bytes: Vec::new(), at: 0, parser, is_silent: false };
    let queued = Arc::new(AtomicU64::new(0));
    let outbox =
        Outbox { out, queued: Arc::clone(&queued), gathered: Vec::new(), buggify: buggify.clone() };
    let moving = async move {
        tokio::join!(
            bring(reader, to_inbox, is_heard, buggify),
            carry(from_outbox, writer, limit, &queued)
        );
    };
    (inbox, outbox, moving)
}

async fn bring(
    mut reader: impl AsyncRead + Unpin,
    to_inbox: mpsc::Sender<Vec<u8>>,
    is_heard: impl Fn() -> bool,
    buggify: Buggify,
) {
    let mut was_heard = true;
    loop {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        let most = buggify.cut(Point::PieceCut, PIECE_BYTES) as u64;
        let mut reader = (&mut reader).take(most);
        let read = tokio::select! {
            biased;
            () = to_inbox.closed() => return,
            read = reader.read_buf(&mut piece) => read,
            () = clock::sleep(SILENCE) => {
                // An empty piece says so, once.
                if std::mem::replace(&mut was_heard, is_heard()) && !was_heard {
                    let _ = to_inbox.send(Vec::new()).await;
                }
                continue;
            }
        };
        was_heard = true;
        match read {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        if to_inbox.send(piece).await.is_err() {
            return;
        }
        if buggify.takes(Point::Silence) {
            let _ = to_inbox.send(Vec::new()).await;
        }
    }
}

async fn carry(
    mut from_outbox: mpsc::Receiver<Vec<u8>>,
    mut writer: impl AsyncWrite + Unpin,
    limit: u64,
    queued: &AtomicU64,
) {
    let mut due = clock::now();
    while let Some(mut piece) = from_outbox.recv().await {
        // What finishing threads say comes in small pieces.
        while piece.len() < GATHERED_BYTES
            && let Ok(more) = from_outbox.try_recv()
        {
            piece.extend_from_slice(&more);
        }
        let micros = (piece.len() as u64).saturating_mul(1_000_000);
        if let Some(micros) = micros.checked_div(limit) {
            due = due.max(clock::now());
            clock::sleep_until(due).await;
            due += Duration::from_micros(micros);
        }
        // An error here means that nobody reads any more, which the inbox finds out.
        if writer.write_all(&piece).await.is_err() || writer.flush().await.is_err() {
            return;
        }
        queued.fetch_sub(piece.len() as u64, Ordering::Relaxed);
    }
    let _ = writer.shutdown().await;
}

/// Messages from the other end, for one thread.
#[derive(Debug)]
pub(crate) struct Inbox {
    pieces: mpsc::Receiver<Vec<u8>>,
    bytes: Vec<u8>,
    at: usize,
    parser: Parser,
    /// The other end was silent after the octets read, and the thread has not been told.
    is_silent: bool,
}

impl Inbox {
    /// Waits for the next message.
    pub(crate) async fn hear(&mut self) -> Result<Message<'_>, Broken> {
        Ok(self.hear_octets().await?.0)
    }

    /// Waits for the next message, and returns it with its octets.
    pub(crate) async fn hear_octets(&mut self) -> Result<(Message<'_>, &[u8]), Broken> {
        let length = loop {
            if let Some(length) = self.parser.extent(&self.bytes[self.at..])? {
                break length;
            }
            if std::mem::take(&mut self.is_silent) {
                return Err(Broken::Silent);
            }
            let piece = self.pieces.recv().await.ok_or(Broken::Ended)?;
            self.take(piece);
        };
        let octets = &self.bytes[self.at..self.at + length];
        self.at += length;
        Ok((self.parser.read(octets)?, octets))
    }

    /// Whether the next message has arrived.
    pub(crate) fn is_ready(&mut self) -> bool {
        loop {
            match self.parser.extent(&self.bytes[self.at..]) {
                Ok(None) => {}
                Ok(Some(_)) | Err(Malformed) => return true,
            }
            match self.pieces.try_recv() {
                Ok(piece) => self.take(piece),
                Err(_) => return false,
            }
        }
    }

    /// Adds octets behind the unread ones, which are the beginning of a message.
    fn take(&mut self, piece: Vec<u8>) {
        self.is_silent = piece.is_empty();
        if self.at == self.bytes.len() {
            self.bytes = piece;
        } else {
            self.bytes.drain(..self.at);
            self.bytes.extend_from_slice(&piece);
        }
        self.at = 0;
    }
}

/// Messages to the other end. Each thread has its own outbox; whole messages do not mix.
#[derive(Debug)]
pub(crate) struct Outbox {
    out: mpsc::Sender<Vec<u8>>,
    queued: Arc<AtomicU64>,
    gathered: Vec<u8>,
    buggify: Buggify,
}

impl Clone for Outbox {
    fn clone(&self) -> Outbox {
        let (out, queued) = (self.out.clone(), Arc::clone(&self.queued));
        Outbox { out, queued, gathered: Vec::new(), buggify: self.buggify.clone() }
    }
}

impl Outbox {
    /// Adds a message, to be sent at the next [`Outbox::flush`] or once enough have gathered.
    pub(crate) async fn send(&mut self, message: &Message<'_>) -> io::Result<()> {
        message.encode(&mut self.gathered);
        match self.gathered.len() >= GATHERED_BYTES || self.buggify.takes(Point::FlushEarly) {
            true => self.flush().await,
            false => Ok(()),
        }
    }

    /// Adds a data message with its header, behind the gathered ones.
    pub(crate) async fn send_data(&mut self, framed: Vec<u8>) -> io::Result<()> {
        assert!(framed.len() <= HEADER_BYTES + DATA_BYTES_MAX, "data is cut to its limit");
        if framed.len() + self.gathered.len() < GATHERED_BYTES {
            self.gathered.extend_from_slice(&framed);
            return Ok(());
        }
        self.flush().await?;
        self.pass(framed).await
    }

    /// Adds the octets of a message, or of the next piece of a data message, as they came.
    pub(crate) async fn pass_on(&mut self, octets: &[u8]) -> io::Result<()> {
        self.gathered.extend_from_slice(octets);
        match self.gathered.len() >= GATHERED_BYTES {
            true => self.flush().await,
            false => Ok(()),
        }
    }

    /// Sends the gathered messages; waits while the network is behind.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let gathered = std::mem::take(&mut self.gathered);
        self.pass(gathered).await
    }

    async fn pass(&self, piece: Vec<u8>) -> io::Result<()> {
        self.queued.fetch_add(piece.len() as u64, Ordering::Relaxed);
        self.out.send(piece).await.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// The counter of octets that wait for the network, in all outboxes.
    pub(crate) fn queued(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.queued)
    }

    /// Whether the copy waits for the network.
    pub(crate) fn is_behind(&self) -> bool {
        self.out.capacity() <= PIECES_MAX / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::workers::wait;

    /// The reader reports the other end's silence, also when it was found while polling for more.
    #[test]
    fn silence_is_told_once() {
        let (to_inbox, pieces) = mpsc::channel(PIECES_MAX);
        let parser = Parser::default();
        let mut inbox = Inbox { pieces, bytes: Vec::new(), at: 0, parser, is_silent: false };
        let mut whole = Vec::new();
        Message::Listed.encode(&mut whole);
        for looks_first in [true, false] {
            let (half, rest) = whole.split_at(2);
            to_inbox.try_send(half.to_vec()).unwrap();
            to_inbox.try_send(Vec::new()).unwrap();
            if looks_first {
                assert!(!inbox.is_ready());
            }
            assert!(matches!(wait(inbox.hear()), Err(Broken::Silent)), "{looks_first}");
            to_inbox.try_send(rest.to_vec()).unwrap();
            assert!(inbox.is_ready());
            assert!(matches!(wait(inbox.hear()), Ok(Message::Listed)), "{looks_first}");
        }
        // What comes after a silence ends it.
        to_inbox.try_send(Vec::new()).unwrap();
        to_inbox.try_send(whole.clone()).unwrap();
        assert!(inbox.is_ready());
        assert!(matches!(wait(inbox.hear()), Ok(Message::Listed)));
        drop(to_inbox);
        assert!(matches!(wait(inbox.hear()), Err(Broken::Ended)));
    }
}
