//! Sends one direction of a channel: keeps octets until the other end has acknowledged them, and
//! sends them again on a new connection.

use std::collections::VecDeque;
use std::task::Waker;

use bytes::{Buf, Bytes, BytesMut};

use super::types::{INITIAL_WINDOW, Violation};

/// Octets gathered into one piece of the queue.
const PIECE_BYTES: usize = 64 << 10;

/// Octets that may wait for the peer to take more.
const AHEAD_BYTES: u64 = 128 << 10;

/// How a sent direction ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum End {
    /// More may be written.
    Open,
    /// All has been written.
    Finished,
    /// We gave it up.
    Aborted,
    /// We gave it up because the other end reads no more.
    Refused,
    /// The other end does not know the channel any more.
    Lost,
}

/// One direction of a channel, at its sender.
#[derive(Debug)]
pub(super) struct Sending {
    /// Unacknowledged octets, from `start`; the newest are in `tail`.
    pieces: VecDeque<Bytes>,
    tail: BytesMut,
    start: u64,
    /// The first octet not yet given to this connection.
    next: u64,
    /// Which piece holds `next`, and where in it.
    cursor: (usize, usize),
    end: u64,
    /// The peer takes octets before this one.
    limit: u64,
    pub state: End,
    /// The peer has all of it, or knows that there is no more. Nothing is left to send.
    pub done: bool,
    /// The program's task that waits to write.
    pub writer: Option<Waker>,
}

impl Sending {
    pub(super) fn new() -> Sending {
        Sending {
            pieces: VecDeque::new(),
            tail: BytesMut::new(),
            start: 0,
            next: 0,
            cursor: (0, 0),
            end: 0,
            limit: INITIAL_WINDOW,
            state: End::Open,
            done: false,
            writer: None,
        }
    }

    /// Unacknowledged octets.
    pub(super) fn held(&self) -> u64 {
        self.end - self.start
    }

    /// How many octets more the program may write: a little beyond the peer's limit, so that there are
    /// octets to send as soon as it grants more.
    pub(super) fn room(&self) -> u64 {
        self.limit.saturating_add(AHEAD_BYTES).saturating_sub(self.end)
    }

    /// The length of the whole direction.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Whether there are octets to send within the peer's limit.
    pub(super) fn is_eager(&self) -> bool {
        self.next < self.end.min(self.limit)
    }

    /// Whether this connection was given octets that are not acknowledged.
    pub(super) fn is_on_its_way(&self) -> bool {
        self.next > self.start
    }

    /// Whether this connection may get more octets.
    pub(super) fn goes_on(&self) -> bool {
        self.state == End::Open || self.state == End::Finished && self.next < self.end
    }

    /// Whether the peer has acknowledged everything written.
    pub(super) fn is_clear(&self) -> bool {
        self.start == self.end
    }

    pub(super) fn write(&mut self, octets: &[u8]) {
        self.end += octets.len() as u64;
        self.tail.extend_from_slice(octets);
        if self.tail.len() >= PIECE_BYTES {
            self.cut();
        }
    }

    fn cut(&mut self) {
        if !self.tail.is_empty() {
            self.pieces.push_back(self.tail.split().freeze());
        }
        // A channel that has written less than a piece gets no buffer of 64 KiB.
        if self.tail.capacity() == 0 && self.end >= PIECE_BYTES as u64 {
            self.tail.reserve(PIECE_BYTES);
        }
    }

    /// Takes the next octets to send, at most `most`, and their place.
    pub(super) fn take(&mut self, most: usize) -> Option<(u64, Bytes)> {
        if !self.is_eager() {
            return None;
        }
        if self.cursor.0 == self.pieces.len() {
            self.cut();
        }
        let (index, within) = self.cursor;
        let piece = self.pieces.get(index).expect("what is not sent lies in the pieces");
        let credit = usize::try_from(self.limit - self.next).unwrap_or(usize::MAX);
        let len = (piece.len() - within).min(most).min(credit);
        // A slice shares memory with the piece: octets are held for resending without a copy.
        let octets = piece.slice(within..within + len);
        self.cursor =
            if within + len == piece.len() { (index + 1, 0) } else { (index, within + len) };
        let offset = self.next;
        self.next += len as u64;
        Some((offset, octets))
    }

    /// The peer has everything before `received`, and allows octets before `limit`. Returns how many octets
    /// need not be kept any more.
    pub(super) fn acknowledge(&mut self, received: u64, limit: u64) -> Result<u64, Violation> {
        // Not `next`: octets of an earlier connection may have arrived that this one
        // was not given yet.
        if received > self.end {
            return Err(Violation::AckedAhead);
        }
        // A smaller limit has no effect, as in RFC 9000 §4.1: octets up to the larger
        // one may be on their way.
        self.limit = self.limit.max(limit);
        let freed = received.saturating_sub(self.start);
        let mut surplus = freed;
        while surplus > 0 {
            // A hostile peer may acknowledge octets that were never sent. The newest of
            // those lie in `tail`.
            if self.pieces.is_empty() {
                self.cut();
            }
            let first = self.pieces.front_mut().expect("what is not acknowledged is held");
            let len = first.len() as u64;
            let (index, within) = self.cursor;
            if surplus < len {
                first.advance(surplus as usize);
                if index == 0 {
                    self.cursor.1 = within.saturating_sub(surplus as usize);
                }
                break;
            }
            surplus -= len;
            self.pieces.pop_front();
            self.cursor = if index == 0 { (0, 0) } else { (index - 1, within) };
        }
        self.start += freed;
        // Sent on an earlier connection, and now known to have arrived.
        self.next = self.next.max(self.start);
        Ok(freed)
    }

    /// Sends everything unacknowledged again: a new connection has been given nothing.
    pub(super) fn rewind(&mut self) {
        self.next = self.start;
        self.cursor = (0, 0);
    }

    /// Ends the direction early. Returns how many octets need not be kept any more.
    pub(super) fn give_up(&mut self, state: End) -> u64 {
        let freed = self.held();
        self.pieces.clear();
        self.tail = BytesMut::new();
        self.cursor = (0, 0);
        // Nothing is held or on its way now, so the peer owes no acknowledgment.
        (self.start, self.next) = (self.end, self.end);
        self.state = state;
        self.wake();
        freed
    }

    pub(super) fn wake(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.wake();
        }
    }
}
