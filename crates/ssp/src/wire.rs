//! The envelope: how a payload is sealed into a datagram and an instruction packed into fragments'
//! contents. Chosen once at bootstrap; nothing outside `wire/` asks which it is.

pub(crate) mod deflate;
pub mod mosh;
pub mod native;
mod ocb;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;
use core::time::Duration;

use zeroize::Zeroizing;

use crate::instruction::Instruction;
use crate::instruction::fragment::{self, Fragment, Parity, Piece};
use crate::reject::Reject;
use crate::time::{Stamp, Time};
use crate::wire::deflate::Deflater;

/// An envelope. It owns the sequence numbers, so that none can be used twice. What has a default is
/// how the mosh wire has it.
pub trait Wire: Send {
    /// Octets a datagram is longer than its payload, at most and without padding.
    fn overhead(&self) -> usize;

    /// Octets a fragment is longer than its contents, at most.
    fn fragment_overhead(&self) -> usize {
        fragment::HEADER
    }

    /// Fragment assemblies a receiver keeps at a time (`mosh-protocol.md` §3.1).
    fn assemblies_max(&self) -> usize;

    /// Tells the time and the current retransmission timeout. To be called before anything is sealed or
    /// opened, and at [`wake`](Wire::wake).
    fn advance(&mut self, now: Time, timeout: Duration) {
        let _ = (now, timeout);
    }

    /// When something is to be forgotten, and [`advance`](Wire::advance) does it.
    fn wake(&self) -> Option<Time> {
        None
    }

    /// Whether a datagram claims to be of this session, by what is not sealed of it: several sessions may share a
    /// port.
    fn claims(&self, datagram: &[u8]) -> bool {
        let _ = datagram;
        true
    }

    /// How many keys were sealed with before the present one.
    fn key_phase(&self) -> u64 {
        0
    }

    /// Moves on to the next key as soon as the peer can follow.
    fn end_key_phase(&mut self) {}

    /// Seals a payload under the next sequence number and replaces `out` with the datagram.
    ///
    /// An error is for good: the key has sealed all it may. `out` is then empty.
    fn seal(
        &mut self,
        envelope: &Envelope,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Seq, Exhausted>;

    /// Whether datagrams carry [`Envelope::report`], [`Envelope::flags`] and [`Envelope::control`]. Where
    /// they do not, these are dropped, and headers have none.
    fn carries_reports(&self) -> bool {
        false
    }

    /// Takes the secret that makes questions to addresses, which the peer does not know. `None` where
    /// questions do not travel, and after the first call.
    fn take_path_secret(&mut self) -> Option<Box<Zeroizing<[u8; 32]>>> {
        None
    }

    /// Octets of a datagram with this envelope and an empty payload, where envelopes can be padded.
    fn sealed_bytes(&self, envelope: &Envelope) -> usize {
        let _ = envelope;
        self.overhead()
    }

    /// Authenticates and decrypts a datagram in place; the range is where its payload lies.
    ///
    /// On error nothing decrypted is left in `datagram`.
    fn open(&mut self, datagram: &mut [u8]) -> Result<(Header, Range<usize>), Reject>;

    /// Appends a fragment as it travels, to be a payload.
    fn encode_fragment(&self, fragment: &Fragment<'_>, out: &mut Vec<u8>) {
        fragment.encode(out);
    }

    /// Appends what replaces a fragment, to be a payload. Only for wires that carry reports, and peers that
    /// have announced [`Announce::PARITY`].
    fn encode_parity(&self, parity: &Parity<'_>, out: &mut Vec<u8>) {
        let _ = (parity, out);
    }

    /// Reads a payload as a piece of an instruction.
    fn decode_piece<'a>(&self, payload: &'a [u8]) -> Result<Piece<'a>, Reject> {
        Fragment::decode(payload).map(Piece::Fragment)
    }

    /// Replaces `out` with an instruction as it travels, to be cut into fragments.
    fn pack(&self, message: &Instruction, deflater: &mut Deflater, out: &mut Vec<u8>);

    /// Reads what the other side packed.
    fn unpack(&self, bytes: &[u8]) -> Result<Instruction, Reject>;
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
    /// Its items about the path.
    pub control: Control,
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
    /// Its items about the path.
    pub control: Control,
}

impl Header {
    /// The header of a datagram that was sealed with this envelope.
    pub fn new(seq: Seq, envelope: Envelope) -> Header {
        let Envelope { stamps, report, flags, control } = envelope;
        Header { seq, stamps, report, flags, control }
    }
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

impl Report {
    /// How many numbers before the newest a report tells of on the wire (`docs/wire.md` §5).
    pub const SPAN: u64 = 120;
}

/// What two ends tell each other about the path between them (`docs/wire.md` §8, §10).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Control {
    /// Asks the owner of this address to prove that it is the peer.
    pub challenge: Option<u64>,
    /// The proof: a challenge that came, repeated.
    pub response: Option<u64>,
    /// What the sender could speak.
    pub announce: Option<Announce>,
    /// The datagram is one of a run of slots.
    pub slot: Option<Slot>,
    /// Octets that mean nothing.
    pub padding: usize,
}

/// A datagram of a run of slots, each of which is answered by one datagram.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Slot {
    /// The time between two slots, in ms: 20 to 200.
    pub slot_ms: u8,
    /// How long after it the answer leaves, in ms: 1 to 20.
    pub hold_ms: u8,
    /// Octets that the answer has at least. 0: this is the last of its run.
    pub answer_bytes: u16,
}

/// What an end could speak beside what every end does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Announce {
    /// The newest version of the envelope.
    pub version_max: u8,
    /// A bit for each extension.
    pub features: u32,
}

impl Announce {
    /// The extension: fragments may be replaced by parity.
    pub const PARITY: u32 = 1 << 0;
    /// The extension: slots are answered.
    pub const SLOTS: u32 = 1 << 2;
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

impl core::error::Error for Exhausted {}
