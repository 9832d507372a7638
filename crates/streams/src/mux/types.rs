//! Types and constants that all parts of the multiplexer share.

use std::fmt;
use std::time::Duration;

use crate::frame::BadFrame;

/// Octets that a sender may send on a channel before its receiver has granted a window.
pub(crate) const INITIAL_WINDOW: u64 = 128 << 10;

/// A breach of the protocol, which ends the session's streams.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Violation {
    /// It sends a frame that cannot be decoded.
    Frame(BadFrame),
    /// It names an impossible channel.
    Number,
    /// It acknowledges octets that we did not send.
    AckedAhead,
    /// It sends more than it was given room for.
    BeyondWindow,
    /// It sends beyond the end it announced, or changes that end.
    BeyondEnd,
    /// It sends the same octets twice on one connection.
    Overlap,
    /// It leaves more gaps than an honest sender can.
    Gaps,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Frame(bad) => bad.fmt(f),
            Violation::Number => f.write_str("a channel that cannot be"),
            Violation::AckedAhead => f.write_str("octets acknowledged that were never sent"),
            Violation::BeyondWindow => f.write_str("octets beyond the window"),
            Violation::BeyondEnd => f.write_str("octets beyond the end"),
            Violation::Overlap => f.write_str("octets sent twice"),
            Violation::Gaps => f.write_str("too many gaps"),
        }
    }
}

/// When octets arrived, counted on the connection that brought them, and its round trip.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pulse {
    /// Since the connection began.
    pub at: Duration,
    /// The connection's estimate of it.
    pub round_trip: Duration,
}
