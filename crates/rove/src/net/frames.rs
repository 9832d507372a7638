//! Frames of a carried session (`docs/wire.md` §11): how datagrams stand in a stream of octets. It knows no file.

use std::collections::VecDeque;
use std::ops::Range;

/// The longest datagram of the session's own, as UDP has it, and of QUIC's.
pub(crate) const SESSION_BYTES_MAX: usize = 2048;
pub(crate) const QUIC_BYTES_MAX: usize = 6560;

/// Octets before the content: the kind, and the length in two.
const HEAD_BYTES: usize = 3;

/// Octets read at a time. A whole frame fits.
const READ_BYTES: usize = 16 << 10;

/// Octets that wait to be written, besides the one being written: the session's window is smaller. What finds no
/// room is lost, as in any queue.
const WAITING_BYTES_MAX: usize = 128 << 10;

/// What a frame is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FrameKind {
    /// A datagram of the session's own.
    Session,
    /// A datagram of QUIC's.
    Quic,
}

impl FrameKind {
    fn octet(self) -> u8 {
        match self {
            FrameKind::Session => 0,
            FrameKind::Quic => 1,
        }
    }

    fn of(octet: u8) -> Option<(FrameKind, usize)> {
        match octet {
            0 => Some((FrameKind::Session, SESSION_BYTES_MAX)),
            1 => Some((FrameKind::Quic, QUIC_BYTES_MAX)),
            _ => None,
        }
    }
}

/// The octets are no frames: something else writes to the stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NoFrame;

/// Reads frames from octets that come in pieces of any size.
#[derive(Debug)]
pub struct FrameReader {
    buffer: Box<[u8]>,
    unread: Range<usize>,
}

impl FrameReader {
    /// One that has these octets already, which came with what preceded the frames.
    pub fn new(first: &[u8]) -> FrameReader {
        let mut buffer = vec![0; READ_BYTES.max(first.len())].into_boxed_slice();
        buffer[..first.len()].copy_from_slice(first);
        FrameReader { buffer, unread: 0..first.len() }
    }

    /// Where to put the next octets: never empty, once [`take_frame`](Self::take_frame) has said that there is no whole frame.
    pub fn room(&mut self) -> &mut [u8] {
        self.buffer.copy_within(self.unread.clone(), 0);
        self.unread = 0..self.unread.len();
        &mut self.buffer[self.unread.end..]
    }

    /// Takes this number of octets that were put there.
    pub fn filled(&mut self, count: usize) {
        self.unread.end = (self.unread.end + count).min(self.buffer.len());
    }

    /// The next frame's kind and content; `None` if it is not whole yet.
    ///
    /// # Errors
    /// What is there is no frame. Nothing that follows is one.
    pub fn take_frame(&mut self) -> Result<Option<(FrameKind, &mut [u8])>, NoFrame> {
        let octets = &self.buffer[self.unread.clone()];
        let Some(&first) = octets.first() else { return Ok(None) };
        let (kind, bytes_max) = FrameKind::of(first).ok_or(NoFrame)?;
        let [_, high, low, ..] = *octets else { return Ok(None) };
        let len = usize::from(u16::from_be_bytes([high, low]));
        if len > bytes_max {
            return Err(NoFrame);
        }
        if octets.len() < HEAD_BYTES + len {
            return Ok(None);
        }
        let start = self.unread.start + HEAD_BYTES;
        self.unread.start = start + len;
        Ok(Some((kind, &mut self.buffer[start..start + len])))
    }

    /// Whether a whole frame is there, or something that is none.
    pub fn has_frame(&self) -> bool {
        let octets = &self.buffer[self.unread.clone()];
        match *octets {
            [] => false,
            [kind, high, low, ..] => {
                let len = usize::from(u16::from_be_bytes([high, low]));
                FrameKind::of(kind).is_none_or(|(_, max)| len > max)
                    || octets.len() >= HEAD_BYTES + len
            }
            [kind, ..] => FrameKind::of(kind).is_none(),
        }
    }
}

/// Frames that wait to be written, the session's before QUIC's.
#[derive(Debug, Default)]
pub struct FrameQueue {
    /// The frame being written, and how much of it is.
    current: Vec<u8>,
    written: usize,
    session: VecDeque<Vec<u8>>,
    quic: VecDeque<Vec<u8>>,
    bytes: usize,
}

impl FrameQueue {
    /// Adds a datagram. Whether there was room.
    pub fn push(&mut self, kind: FrameKind, datagram: &[u8]) -> bool {
        let fits = FrameKind::of(kind.octet()).is_some_and(|(_, max)| datagram.len() <= max);
        let len = u16::try_from(datagram.len()).ok().filter(|_| fits);
        let (Some(len), true) = (len, self.bytes + datagram.len() <= WAITING_BYTES_MAX) else {
            return false;
        };
        let frame = [&[kind.octet()], &len.to_be_bytes()[..], datagram].concat();
        self.bytes += frame.len();
        match kind {
            FrameKind::Session => self.session.push_back(frame),
            FrameKind::Quic => self.quic.push_back(frame),
        }
        true
    }

    /// The octets to write next.
    pub fn octets(&mut self) -> &[u8] {
        if self.written == self.current.len() {
            self.current =
                self.session.pop_front().or_else(|| self.quic.pop_front()).unwrap_or_default();
            self.written = 0;
        }
        &self.current[self.written..]
    }

    /// This number of them was written.
    pub fn wrote(&mut self, count: usize) {
        self.written = (self.written + count).min(self.current.len());
        if self.written == self.current.len() {
            self.bytes -= self.current.len();
            self.current = Vec::new();
            self.written = 0;
        }
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.current.is_empty() && self.session.is_empty() && self.quic.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes frames and reads them in pieces of this many octets.
    fn carry(frames: &[(FrameKind, Vec<u8>)], piece: usize) -> Vec<(FrameKind, Vec<u8>)> {
        let (mut queue, mut reader, mut read) =
            (FrameQueue::default(), FrameReader::new(b""), vec![]);
        for (kind, octets) in frames {
            assert!(queue.push(*kind, octets));
        }
        while !queue.is_empty() {
            let octets = queue.octets();
            let count = octets.len().min(piece);
            reader.room()[..count].copy_from_slice(&octets[..count]);
            reader.filled(count);
            queue.wrote(count);
            while let Some((kind, octets)) = reader.take_frame().unwrap() {
                read.push((kind, octets.to_vec()));
            }
        }
        read
    }

    #[test]
    fn frames_come_whole_and_those_of_the_session_first() {
        use FrameKind::{Quic, Session};
        let frame = |kind, len: usize| (kind, vec![len as u8; len]);
        let all = [
            frame(Session, 40),
            frame(Session, 0),
            frame(Session, SESSION_BYTES_MAX),
            frame(Quic, QUIC_BYTES_MAX),
            frame(Quic, 1),
        ];
        for piece in [1, 2, 3, 100, 1 << 20] {
            assert_eq!(carry(&all, piece), all, "{piece}");
        }
        let mixed = [frame(Quic, 7), frame(Session, 8)];
        assert_eq!(carry(&mixed, 5), [frame(Session, 8), frame(Quic, 7)]);
    }

    #[test]
    fn noise_is_no_frame() {
        for (octets, expected) in [
            (&b""[..], Ok(false)),
            (b"\0", Ok(false)),
            (b"\0\0\x01", Ok(false)),
            (b"\0\0\0", Ok(true)),
            (b"\0\x08\x01", Err(NoFrame)),
            (b"\x01\x19\xa1", Err(NoFrame)),
            (b"\x01\x19\xa0", Ok(false)),
            (b"Last login:", Err(NoFrame)),
            (b"\x02", Err(NoFrame)),
        ] {
            let mut reader = FrameReader::new(octets);
            let is_there = reader.has_frame();
            assert_eq!(reader.take_frame().map(|frame| frame.is_some()), expected, "{octets:?}");
            assert_eq!(is_there, expected != Ok(false), "{octets:?}");
        }
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut queue = FrameQueue::default();
        let count = (0..).take_while(|_| queue.push(FrameKind::Session, &[7; 2000])).count();
        assert!((60..=66).contains(&count), "{count}");
        assert!(!queue.push(FrameKind::Session, &[7; SESSION_BYTES_MAX + 1]));
        let len = queue.octets().len();
        queue.wrote(len);
        assert!(queue.push(FrameKind::Session, &[7; 1000]), "there is room again");
    }
}
