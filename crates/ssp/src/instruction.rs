//! The transport message: which state a diff starts from, which it makes, and what was received
//! (`mosh-protocol.md` §3.2). It must not know what diffs mean.

use prost::Message;

use crate::machine::Reject;
use crate::state::StateNum;

/// The longest message, in octets, before compression (`mosh-protocol.md` §3.1: 4 MiB). Longer ones are
/// neither sent nor inflated.
pub const MESSAGE_BYTES_MAX: usize = 4 << 20;

/// The protocol version of stock mosh 1.4.0; a peer with another is refused.
const VERSION: u32 = 2;

/// One transport message.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Instruction {
    /// The state the diff starts from.
    pub old: StateNum,
    /// The state the diff makes.
    pub new: StateNum,
    /// The newest state its sender received.
    pub ack: StateNum,
    /// Its receiver may forget the states below this.
    pub throwaway: StateNum,
    /// Turns one state into the other. Empty where both are equal.
    pub diff: Vec<u8>,
    /// Random octets that blur the length. Ignored.
    pub chaff: Vec<u8>,
}

impl Instruction {
    /// Octets an encoded instruction has at most beside its diff and chaff: seven tags, five numbers and
    /// two lengths.
    pub const ENVELOPE_BYTES_MAX: usize = 64;

    /// Appends the protobuf, all fields in order, as stock writes it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let fields = Fields {
            protocol_version: Some(VERSION),
            old_num: Some(self.old.get()),
            new_num: Some(self.new.get()),
            ack_num: Some(self.ack.get()),
            throwaway_num: Some(self.throwaway.get()),
            diff: Some(self.diff.clone()),
            chaff: Some(self.chaff.clone()),
        };
        fields.encode(out).expect("a Vec grows as needed");
    }

    /// Reads the protobuf. Absent fields are 0 or empty; unknown ones are skipped.
    pub fn decode(bytes: &[u8]) -> Result<Instruction, Reject> {
        let fields = Fields::decode(bytes).map_err(|_| Reject::Protobuf)?;
        let version = fields.protocol_version.unwrap_or_default();
        if version != VERSION {
            return Err(Reject::Version { version });
        }
        Ok(Instruction {
            old: fields.old_num.unwrap_or_default().into(),
            new: fields.new_num.unwrap_or_default().into(),
            ack: fields.ack_num.unwrap_or_default().into(),
            throwaway: fields.throwaway_num.unwrap_or_default().into(),
            diff: fields.diff.unwrap_or_default(),
            chaff: fields.chaff.unwrap_or_default(),
        })
    }
}

/// The message as protobuf has it (proto2: presence is explicit, so zeros are written).
#[derive(Clone, PartialEq, Message)]
struct Fields {
    #[prost(uint32, optional, tag = "1")]
    protocol_version: Option<u32>,
    #[prost(uint64, optional, tag = "2")]
    old_num: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    new_num: Option<u64>,
    #[prost(uint64, optional, tag = "4")]
    ack_num: Option<u64>,
    #[prost(uint64, optional, tag = "5")]
    throwaway_num: Option<u64>,
    #[prost(bytes = "vec", optional, tag = "6")]
    diff: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "7")]
    chaff: Option<Vec<u8>>,
}
