//! The transport message: which state a diff starts from, which it makes, and what was received
//! (`mosh-protocol.md` §3.2). It must not know what diffs mean.

pub(crate) mod assembly;
pub(crate) mod extensions;
pub(crate) mod fragment;
pub(crate) mod parity;

use alloc::vec::Vec;

use prost::DecodeError;
use prost::encoding::{
    DecodeContext, WireType, bytes, decode_key, encode_key, encode_varint, skip_field, uint32,
    uint64,
};

use crate::instruction::extensions::Announcement;
use crate::reject::Reject;
use crate::state::StateNum;

/// The longest message, in octets, before compression (`mosh-protocol.md` §3.1: 4 MiB). Longer ones are
/// neither sent nor inflated.
pub const MESSAGE_BYTES_MAX: usize = 4 << 20;

/// The protocol version of stock mosh 1.4.0; a peer with another is refused.
const VERSION: u32 = 2;

/// The field of the announcement, the first that stock does not know.
const ANNOUNCEMENT: u32 = 8;

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
    /// What its sender says about itself; stock never writes it, and skips it.
    pub announcement: Announcement,
}

impl Instruction {
    /// Octets an encoded instruction has at most beside its diff and chaff: eight tags, six numbers and
    /// two lengths.
    pub const ENVELOPE_BYTES_MAX: usize = 80;

    /// Appends the protobuf, all fields in order, as stock writes it; an announcement comes last.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let numbers = [u64::from(VERSION), self.old.get(), self.new.get(), self.ack.get()];
        for (tag, number) in (1..).zip(numbers.into_iter().chain([self.throwaway.get()])) {
            encode_key(tag, WireType::Varint, out);
            encode_varint(number, out);
        }
        for (tag, bytes) in [(6, &self.diff), (7, &self.chaff)] {
            encode_key(tag, WireType::LengthDelimited, out);
            encode_varint(bytes.len() as u64, out);
            out.extend_from_slice(bytes);
        }
        if let Some(number) = self.announcement.to_number() {
            encode_key(ANNOUNCEMENT, WireType::Varint, out);
            encode_varint(number, out);
        }
    }

    /// Reads the protobuf (proto2). Absent fields are 0 or empty; unknown ones are skipped.
    pub fn decode(mut bytes: &[u8]) -> Result<Instruction, Reject> {
        let (mut version, mut message) = (0, Instruction::default());
        while !bytes.is_empty() {
            message.decode_field(&mut version, &mut bytes).map_err(|_| Reject::Protobuf)?;
        }
        // Another version may mean other things by the same fields.
        if version != VERSION {
            return Err(Reject::Version { version });
        }
        Ok(message)
    }

    fn decode_field(&mut self, version: &mut u32, rest: &mut &[u8]) -> Result<(), DecodeError> {
        let (field, wire_type) = decode_key(rest)?;
        let context = DecodeContext::default();
        match field {
            1 => uint32::merge(wire_type, version, rest, context)?,
            2 => self.old = decode_number(wire_type, rest)?.into(),
            3 => self.new = decode_number(wire_type, rest)?.into(),
            4 => self.ack = decode_number(wire_type, rest)?.into(),
            5 => self.throwaway = decode_number(wire_type, rest)?.into(),
            6 => bytes::merge(wire_type, &mut self.diff, rest, context)?,
            7 => bytes::merge(wire_type, &mut self.chaff, rest, context)?,
            ANNOUNCEMENT if wire_type == WireType::Varint => {
                self.announcement = Announcement::from_number(decode_number(wire_type, rest)?);
            }
            // Fields of later versions are skipped, as stock does. An announcement that is no number is
            // somebody else's field.
            _ => skip_field(wire_type, field, rest, context)?,
        }
        Ok(())
    }
}

fn decode_number(wire_type: WireType, rest: &mut &[u8]) -> Result<u64, DecodeError> {
    let mut number = 0;
    uint64::merge(wire_type, &mut number, rest, DecodeContext::default())?;
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn number(rng: &mut Rng) -> StateNum {
        let bits = rng.bits();
        StateNum::from(bits >> (bits % 64))
    }

    #[test]
    fn decodes_what_it_encoded() {
        let mut rng = Rng::new(32);
        for turn in 0..2000 {
            let mut message = Instruction {
                old: number(&mut rng),
                new: number(&mut rng),
                ack: number(&mut rng),
                throwaway: number(&mut rng),
                announcement: [Announcement::NONE, Announcement::ASKS][turn % 2],
                ..Instruction::default()
            };
            let diff_bytes = rng.below(300) as usize;
            rng.fill(diff_bytes, &mut message.diff);
            rng.fill(turn % 17, &mut message.chaff);
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            let content = message.diff.len() + message.chaff.len();
            assert!(bytes.len() <= content + Instruction::ENVELOPE_BYTES_MAX);
            assert_eq!(Instruction::decode(&bytes), Ok(message));
        }
    }

    #[test]
    fn announcements() {
        let asks = b"\x40\xd1\xcc\xdd\xb7\x72";
        for (parts, announcement) in [
            (&[&b"\x08\x02"[..]][..], Announcement::NONE),
            (&[b"\x08\x02\x40\x03"], Announcement::NONE),
            (&[b"\x08\x02", asks], Announcement::ASKS),
            (&[asks, b"\x08\x02"], Announcement::ASKS),
            (&[b"\x08\x02\x42\x01x", asks], Announcement::ASKS),
            (&[b"\x08\x02\x42\x06", asks], Announcement::NONE),
        ] {
            let decoded = Instruction::decode(&parts.concat()).map(|message| message.announcement);
            assert_eq!(decoded, Ok(announcement), "{parts:x?}");
        }
    }

    #[test]
    fn foreign_shapes() {
        // Absent fields, fields twice, unknown fields of every wire type; then what is no protobuf.
        let version = Reject::Version { version: 0 };
        let table: [(&[u8], Result<u64, Reject>); 10] = [
            (b"\x08\x02", Ok(0)),
            (b"\x18\x05\x08\x02", Ok(5)),
            (b"\x08\x02\x18\x05\x18\x06", Ok(6)),
            (b"\x08\x02\x48\x01\x49........\x52\x01x\x5d....\x18\x07", Ok(7)),
            (b"\x08\x02\x5b\x60\x01\x5c\x18\x08", Ok(8)),
            (b"", Err(version)),
            (b"\x08\x00", Err(version)),
            (b"\x08\x02\x18", Err(Reject::Protobuf)),
            (b"\x08\x02\x32\x7f", Err(Reject::Protobuf)),
            (b"\x08\x02\x32\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", Err(Reject::Protobuf)),
        ];
        for (bytes, expect) in table {
            let decoded = Instruction::decode(bytes).map(|message| message.new.get());
            assert_eq!(decoded, expect, "{bytes:x?}");
        }
    }
}
