//! The frames in which the two ends tell each other the state of their channels (`docs/streams.md`
//! §4), and the header of a data stream. `mux` acts on them.

use std::fmt;

/// Octets of the longest request a channel is opened with.
pub const REQUEST_BYTES_MAX: usize = 64 << 10;

/// The largest number that can be encoded (RFC 9000 §16).
pub const NUMBER_MAX: u64 = (1 << 62) - 1;

/// One frame. Each may be repeated: it reports a state, or the end of one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Frame {
    /// A channel begins.
    Open {
        /// Its number.
        channel: u64,
        /// Its purpose, at most [`REQUEST_BYTES_MAX`] octets.
        request: Vec<u8>,
    },
    /// How far the sender of this frame is with receiving.
    Window {
        /// The channel.
        channel: u64,
        /// It has every octet before this one.
        received: u64,
        /// The other end may send octets before this one.
        limit: u64,
    },
    /// The sender's direction ends here.
    Fin {
        /// The channel.
        channel: u64,
        /// The length of the whole direction.
        end: u64,
    },
    /// The sender has given up its direction, which has no end.
    Abort {
        /// The channel.
        channel: u64,
    },
    /// The sender reads no more of the other's direction, which the other should abort.
    Stop {
        /// The channel.
        channel: u64,
    },
    /// The sender has all of the other's direction with its end, or has seen that it was aborted.
    Done {
        /// The channel.
        channel: u64,
    },
    /// The sender holds no state of this channel any more, or refuses it.
    Gone {
        /// The channel.
        channel: u64,
    },
    /// The sender has reported every channel it holds: on a new connection, data may follow.
    Ready,
}

/// Why octets are no frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BadFrame {
    /// An unknown kind.
    Kind(u8),
    /// A request longer than [`REQUEST_BYTES_MAX`].
    Oversized {
        /// Its length.
        have: u64,
    },
}

impl fmt::Display for BadFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadFrame::Kind(kind) => write!(f, "a frame of kind {kind}"),
            BadFrame::Oversized { have } => {
                write!(f, "a request of {have} octets, over {REQUEST_BYTES_MAX}")
            }
        }
    }
}

impl std::error::Error for BadFrame {}

impl Frame {
    /// Appends the frame.
    ///
    /// # Panics
    /// If a number is above [`NUMBER_MAX`] or a request too long: ours never are.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let (kind, channel) = match self {
            Frame::Open { channel, .. } => (OPEN, *channel),
            Frame::Window { channel, .. } => (WINDOW, *channel),
            Frame::Fin { channel, .. } => (FIN, *channel),
            Frame::Abort { channel } => (ABORT, *channel),
            Frame::Stop { channel } => (STOP, *channel),
            Frame::Done { channel } => (DONE, *channel),
            Frame::Gone { channel } => (GONE, *channel),
            Frame::Ready => return out.push(READY),
        };
        out.push(kind);
        put_number(channel, out);
        match self {
            Frame::Open { request, .. } => {
                assert!(request.len() <= REQUEST_BYTES_MAX, "a request has a limit");
                put_number(request.len() as u64, out);
                out.extend_from_slice(request);
            }
            Frame::Window { received, limit, .. } => {
                put_number(*received, out);
                put_number(*limit, out);
            }
            Frame::Fin { end, .. } => put_number(*end, out),
            _ => {}
        }
    }

    /// Takes the first frame off `octets`. Returns `None`, with nothing taken, if more octets are needed.
    pub fn decode(octets: &mut &[u8]) -> Result<Option<Frame>, BadFrame> {
        let mut rest = *octets;
        let frame = Frame::read(&mut rest)?;
        if frame.is_some() {
            *octets = rest;
        }
        Ok(frame)
    }

    fn read(rest: &mut &[u8]) -> Result<Option<Frame>, BadFrame> {
        let Some((&kind, after)) = rest.split_first() else { return Ok(None) };
        *rest = after;
        match kind {
            READY => return Ok(Some(Frame::Ready)),
            OPEN | WINDOW | FIN | ABORT | STOP | DONE | GONE => {}
            // A frame does not tell its length, so nothing after an unknown kind can be decoded.
            _ => return Err(BadFrame::Kind(kind)),
        }
        let Some(channel) = take_number(rest) else { return Ok(None) };
        let frame = match kind {
            OPEN => return Frame::read_open(channel, rest),
            WINDOW => take_number(rest)
                .zip(take_number(rest))
                .map(|(received, limit)| Frame::Window { channel, received, limit }),
            FIN => take_number(rest).map(|end| Frame::Fin { channel, end }),
            ABORT => Some(Frame::Abort { channel }),
            STOP => Some(Frame::Stop { channel }),
            DONE => Some(Frame::Done { channel }),
            _ => Some(Frame::Gone { channel }),
        };
        Ok(frame)
    }

    fn read_open(channel: u64, rest: &mut &[u8]) -> Result<Option<Frame>, BadFrame> {
        let Some(have) = take_number(rest) else { return Ok(None) };
        let len = usize::try_from(have).unwrap_or(usize::MAX);
        // Before the octets are there: the caller keeps incomplete frames, and a hostile length
        // would grow its buffer.
        if len > REQUEST_BYTES_MAX {
            return Err(BadFrame::Oversized { have });
        }
        let Some((request, after)) = rest.split_at_checked(len) else { return Ok(None) };
        *rest = after;
        Ok(Some(Frame::Open { channel, request: request.to_vec() }))
    }
}

const OPEN: u8 = 1;
const WINDOW: u8 = 2;
const FIN: u8 = 3;
const ABORT: u8 = 4;
const STOP: u8 = 5;
const DONE: u8 = 6;
const GONE: u8 = 7;
const READY: u8 = 8;

/// The header of a data stream: the channel of the octets that follow, and their place.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Head {
    /// The channel.
    pub channel: u64,
    /// The place of the first octet that follows.
    pub offset: u64,
}

impl Head {
    /// The longest header, in octets.
    pub const BYTES_MAX: usize = 16;

    /// Appends the header. Panics as [`Frame::encode`] does.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_number(self.channel, out);
        put_number(self.offset, out);
    }

    /// Takes a header off `octets`. Returns `None`, with nothing taken, if more octets are needed.
    pub fn decode(octets: &mut &[u8]) -> Option<Head> {
        let mut rest = *octets;
        let channel = take_number(&mut rest)?;
        let offset = take_number(&mut rest)?;
        *octets = rest;
        Some(Head { channel, offset })
    }
}

/// Appends a number in QUIC's encoding (RFC 9000 §16).
fn put_number(number: u64, out: &mut Vec<u8>) {
    assert!(number <= NUMBER_MAX, "a number fits 62 bits");
    match number {
        0..0x40 => out.push(number as u8),
        0x40..0x4000 => out.extend_from_slice(&(number as u16 | 0x4000).to_be_bytes()),
        0x4000..0x4000_0000 => out.extend_from_slice(&(number as u32 | 0x8000_0000).to_be_bytes()),
        _ => out.extend_from_slice(&(number | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

fn take_number(octets: &mut &[u8]) -> Option<u64> {
    // A longer encoding than a number needs is valid (RFC 9000 §16).
    let len = 1 << (octets.first()? >> 6);
    let (number, rest) = octets.split_at_checked(len)?;
    *octets = rest;
    let whole = number.iter().fold(0, |whole, &octet| whole << 8 | u64::from(octet));
    Some(whole & (u64::MAX >> (64 - 8 * len + 2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Frame> {
        let mut frames = vec![Frame::Ready];
        for number in [0, 0x3f, 0x40, 0x3fff, 0x4000, 0x3fff_ffff, 0x4000_0000, NUMBER_MAX] {
            let channel = number;
            frames.extend([
                Frame::Open { channel, request: vec![7; (number % 70) as usize] },
                Frame::Window { channel, received: number, limit: NUMBER_MAX - number },
                Frame::Fin { channel, end: number },
                Frame::Abort { channel },
                Frame::Stop { channel },
                Frame::Done { channel },
                Frame::Gone { channel },
            ]);
        }
        frames.push(Frame::Open { channel: 1, request: vec![1; REQUEST_BYTES_MAX] });
        frames
    }

    #[test]
    fn frames_come_back_as_they_were() {
        for frame in samples() {
            let mut octets = Vec::new();
            frame.encode(&mut octets);
            for cut in [0, octets.len() / 2, octets.len() - 1] {
                let mut part = &octets[..cut];
                assert_eq!(Frame::decode(&mut part), Ok(None), "{frame:?} cut at {cut}");
                assert_eq!(part.len(), cut, "nothing is taken");
            }
            octets.push(READY);
            let mut rest = octets.as_slice();
            assert_eq!(Frame::decode(&mut rest), Ok(Some(frame)));
            assert_eq!(rest, [READY]);
        }
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        for kind in [0, 9, 255] {
            assert_eq!(Frame::decode(&mut [kind].as_slice()), Err(BadFrame::Kind(kind)));
        }
        let mut octets = vec![OPEN, 1];
        put_number(REQUEST_BYTES_MAX as u64 + 1, &mut octets);
        let oversized = BadFrame::Oversized { have: REQUEST_BYTES_MAX as u64 + 1 };
        assert_eq!(Frame::decode(&mut octets.as_slice()), Err(oversized));
    }

    #[test]
    fn heads_come_back_as_they_were() {
        for number in [0, 0x3f, 0x40, 0x4000, NUMBER_MAX] {
            let head = Head { channel: number, offset: NUMBER_MAX - number };
            let mut octets = Vec::new();
            head.encode(&mut octets);
            assert!(octets.len() <= Head::BYTES_MAX);
            assert_eq!(Head::decode(&mut &octets[..octets.len() - 1]), None);
            octets.push(9);
            let mut rest = octets.as_slice();
            assert_eq!((Head::decode(&mut rest), rest), (Some(head), [9].as_slice()));
        }
    }
}
