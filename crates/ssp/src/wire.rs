//! The envelope: how a payload is sealed into a datagram and an instruction packed into fragments'
//! contents. Chosen once at bootstrap; nothing outside `wire/` asks which it is.

pub mod mosh;
mod ocb;
mod zip;

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use crate::instruction::Instruction;
use crate::machine::Reject;
use crate::time::Stamp;

/// An envelope. It owns the sequence numbers, so that none can be used twice.
pub trait Wire: Send {
    /// Octets a datagram is longer than its payload.
    fn overhead(&self) -> usize;

    /// Fragment assemblies a receiver keeps at a time (`mosh-protocol.md` §3.1).
    fn assemblies_max(&self) -> usize;

    /// Seals a payload under the next sequence number and replaces `out` with the datagram.
    ///
    /// An error is for good: the key has sealed all it may. `out` is then empty.
    fn seal(
        &mut self,
        envelope: &Envelope,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Seq, Exhausted>;

    /// Whether datagrams carry [`Envelope::report`] and [`Envelope::flags`]. Where they do not, both are
    /// dropped, and headers have neither.
    fn carries_reports(&self) -> bool {
        false
    }

    /// Authenticates and decrypts a datagram in place; the range is where its payload lies.
    ///
    /// On error nothing decrypted is left in `datagram`.
    fn open(&mut self, datagram: &mut [u8]) -> Result<(Header, Range<usize>), Reject>;

    /// Replaces `out` with an instruction as it travels, to be cut into fragments.
    fn pack(&mut self, message: &Instruction, out: &mut Vec<u8>);

    /// Reads what the other side packed.
    fn unpack(&mut self, bytes: &[u8]) -> Result<Instruction, Reject>;
}

/// Which end of a session this is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Role {
    /// Knows where the server is, and roams.
    Client,
    /// Learns where the client is from authentic datagrams.
    Server,
}

/// A datagram's number, counted from 0 in each direction.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Seq(u64);

impl Seq {
    /// The first.
    pub const ZERO: Seq = Seq(0);
    /// Numbers have 63 bits: the top one of the nonce is the direction.
    pub const MAX: Seq = Seq(u64::MAX >> 1);

    /// The number itself.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// A number of 63 bits; the top bit is cut off.
    pub const fn new(number: u64) -> Seq {
        Seq(number & Seq::MAX.0)
    }
}

/// The two stamps of a datagram (`mosh-protocol.md` §2.2).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Stamps {
    /// When it was sent.
    pub sent: Option<Stamp>,
    /// The peer's newest stamp, moved on by the time we held it.
    pub reply: Option<Stamp>,
}

/// What a datagram is to say beside its payload.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Envelope {
    /// Its stamps.
    pub stamps: Stamps,
    /// What became of the peer's datagrams.
    pub report: Option<Report>,
    /// What kind of datagram it is.
    pub flags: Flags,
}

impl From<Stamps> for Envelope {
    fn from(stamps: Stamps) -> Envelope {
        Envelope { stamps, ..Envelope::default() }
    }
}

/// What a datagram says beside its payload.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Header {
    /// Its number.
    pub seq: Seq,
    /// Its stamps.
    pub stamps: Stamps,
    /// What became of our datagrams at its sender.
    pub report: Option<Report>,
    /// What kind of datagram it is.
    pub flags: Flags,
}

/// What kind of datagram this is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Flags {
    /// What it carries was sent before and not acknowledged in time: it is to be acknowledged at once.
    pub again: bool,
    /// It carries an acknowledgment and nothing else.
    pub ack_only: bool,
}

/// What became of the other side's datagrams, as their receiver saw it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Report {
    /// The newest that came.
    pub newest: Seq,
    /// Bit i is set if the one numbered `newest - 1 - i` came too.
    pub received: u128,
    /// The share of them that was lost, in 256ths.
    pub loss: u8,
    /// How much longer they travel than the fastest of them did: time spent in queues.
    pub queue: Duration,
    /// How long an acknowledgment waits for something to ride on.
    pub ack_delay: Duration,
}

/// The key has sealed all it may: the sequence numbers or the cipher's block limit are used up
/// (`mosh-protocol.md` §2.1). The session ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Exhausted;

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the session key has encrypted all it may")
    }
}

impl std::error::Error for Exhausted {}
