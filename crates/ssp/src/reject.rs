//! Why a datagram is dropped.

use core::fmt;

/// Why a datagram was dropped. None of these ends a session: the sender of the datagram, or someone on
/// the path, is wrong, and the next datagram may be right.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Reject {
    /// Shorter than a sealed empty payload.
    Truncated {
        /// Octets received.
        have: usize,
        /// Octets the shortest valid datagram has.
        need: usize,
    },
    /// Longer than any peer sends (`mosh-protocol.md` §2.1).
    Oversized {
        /// Octets received.
        have: usize,
        /// Octets the longest valid datagram has.
        max: usize,
    },
    /// Marked as sent by our own side: reflected.
    Reflected,
    /// The tag does not match: forged, corrupted, or another session's.
    Forged,
    /// An authentic payload too short for a fragment's header.
    ShortFragment {
        /// Octets in the payload.
        have: usize,
    },
    /// A fragment that repeats another's number with other contents, or another's last number.
    UnequalFragment {
        /// Its number.
        number: u16,
    },
    /// A fragment numbered past the last of its instruction.
    StrayFragment {
        /// Its number.
        number: u16,
    },
    /// The fragments of one instruction hold more than any instruction can take.
    FragmentOverflow {
        /// Octets they would have held with this one.
        have: usize,
    },
    /// Not a zlib stream, or one cut short.
    Inflate,
    /// An instruction longer than [`MESSAGE_BYTES_MAX`](crate::MESSAGE_BYTES_MAX) once inflated.
    InflateOverflow,
    /// Not an instruction's protobuf.
    Protobuf,
    /// Another protocol version, or none (read as 0).
    Version {
        /// What the peer speaks.
        version: u32,
    },
    /// A peer that lets us forget the very state its diff starts from.
    Throwaway {
        /// Below this states may be forgotten.
        throwaway: u64,
        /// The state the diff starts from.
        old: u64,
    },
    /// Not of the native wire, or of another session on the same port.
    Foreign,
    /// A number opened before, or too old to tell.
    Replayed {
        /// The number.
        seq: u64,
    },
    /// An authentic datagram or instruction of the native wire that is cut short, or says what cannot be.
    Malformed,
    /// The session is over.
    Ended,
}

impl fmt::Display for Reject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Reject::Truncated { have, need } => {
                write!(f, "datagram of {have} octets, shorter than {need}")
            }
            Reject::Oversized { have, max } => {
                write!(f, "datagram of {have} octets, longer than {max}")
            }
            Reject::Reflected => write!(f, "datagram of our own direction"),
            Reject::Forged => write!(f, "datagram that does not authenticate"),
            Reject::ShortFragment { have } => write!(f, "payload of {have} octets, no fragment"),
            Reject::UnequalFragment { number } => {
                write!(f, "fragment {number} repeated with other contents")
            }
            Reject::StrayFragment { number } => write!(f, "fragment {number} past the last"),
            Reject::FragmentOverflow { have } => write!(f, "fragments of {have} octets together"),
            Reject::Inflate => write!(f, "bad zlib stream"),
            Reject::InflateOverflow => write!(f, "instruction too long once inflated"),
            Reject::Protobuf => write!(f, "bad instruction"),
            Reject::Version { version } => write!(f, "protocol version {version}"),
            Reject::Throwaway { throwaway, old } => {
                write!(f, "diff from state {old}, but states below {throwaway} are gone")
            }
            Reject::Foreign => write!(f, "datagram of another session"),
            Reject::Replayed { seq } => write!(f, "datagram {seq} again"),
            Reject::Malformed => write!(f, "malformed datagram"),
            Reject::Ended => write!(f, "the session is over"),
        }
    }
}

impl core::error::Error for Reject {}
