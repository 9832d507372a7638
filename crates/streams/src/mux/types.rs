//! Types and constants that all parts of the multiplexer share.

use std::fmt;
use std::time::Duration;

use crate::frame::BadFrame;

/// Octets that may be sent on a channel before its receiver has said anything of it.
pub(crate) const INITIAL_WINDOW: u64 = 128 << 10;

/// What an honest peer never does. The session's streams end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Violation {
    /// What it says cannot be read.
    Frame(BadFrame),
    /// It speaks of a channel that cannot be.
    Number,
    /// It acknowledges what was not sent.
    AckedAhead,
    /// It sends more than it was given room for.
    BeyondWindow,
    /// It sends more than it said there was, or changes its word about that.
    BeyondEnd,
    /// It sends the same octets twice on one connection.
    Overlap,
    /// It leaves more gaps than there can be.
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

/// When octets came, counted on the connection that brought them, and its round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pulse {
    pub at: Duration,
    pub round_trip: Duration,
}
