//! The envelope of stock mosh 1.4.0, protocol version 2: AES-128-OCB datagrams with two stamps, zlib,
//! protobuf (`mosh-protocol.md` §2.1, §3). It must not know what the instructions are about.

pub mod key;

use alloc::vec::Vec;
use core::ops::Range;

use crate::instruction::Instruction;
use crate::reject::Reject;
use crate::time::Stamp;
use crate::wire::deflate::{self, Deflater, Frame};
use crate::wire::mosh::key::Key;
use crate::wire::ocb::{BLOCK, NONCE, Ocb, TAG};
use crate::wire::{Envelope, Exhausted, Header, Role, Seq, Stamps, Wire};

/// Octets of the nonce that travel: direction and sequence number.
const NONCE_TAIL: usize = 8;
/// Octets of the two stamps.
const STAMPS: usize = 4;
/// Octets a sealed datagram is longer than its payload.
const OVERHEAD: usize = NONCE_TAIL + STAMPS + TAG;
/// The longest datagram a stock peer takes (§2.1).
const DATAGRAM_BYTES_MAX: usize = 2048;
/// The nonce's top bit: set from server to client.
const DIRECTION: u64 = 1 << 63;
/// Cipher blocks one key may encrypt in our direction (§2.1; RFC 7253 §5 allows 2^48 in all).
const BLOCKS_MAX: u64 = 1 << 47;

/// The mosh wire's sealing state for one end of one session.
pub struct MoshWire {
    ocb: Ocb,
    role: Role,
    /// The next sequence number; `None` once all are used.
    next: Option<Seq>,
    /// Cipher blocks encrypted.
    blocks: u64,
}

/// How much of a key this end has used up.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Used {
    /// The next sequence number: all below may have been used.
    pub next: Seq,
    /// Cipher blocks encrypted.
    pub blocks: u64,
}

impl MoshWire {
    /// A fresh session's envelope. A key must start at most one session, once at each end.
    pub fn new(key: Key, role: Role) -> MoshWire {
        MoshWire::resume(key, role, Used::default())
    }

    /// The envelope of a session that goes on in another process. Understating what was used breaks the
    /// cipher.
    pub fn resume(key: Key, role: Role, used: Used) -> MoshWire {
        MoshWire { ocb: Ocb::new(&key), role, next: Some(used.next), blocks: used.blocks }
    }

    fn take_seq(&mut self, text_bytes: usize) -> Result<Seq, Exhausted> {
        let seq = self.next.ok_or(Exhausted)?;
        self.blocks = self.blocks.saturating_add(text_bytes.div_ceil(BLOCK) as u64);
        // Beyond this OCB's birthday bound is too near (RFC 7253 §5.1), so the session ends.
        if self.blocks > BLOCKS_MAX {
            self.next = None;
            return Err(Exhausted);
        }
        self.next = if seq == Seq::MAX { None } else { Some(Seq::new(seq.get() + 1)) };
        Ok(seq)
    }
}

/// The direction in a datagram's first octet.
const DIRECTION_MARK: u8 = 0x80;

impl Wire for MoshWire {
    fn overhead(&self) -> usize {
        OVERHEAD
    }

    fn assemblies_max(&self) -> usize {
        1
    }

    /// Numbers never come so far that a datagram begins as one of the native wire.
    fn claims(&self, datagram: &[u8]) -> bool {
        datagram.first().is_some_and(|first| first & !DIRECTION_MARK == 0)
    }

    fn seal(
        &mut self,
        envelope: &Envelope,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Seq, Exhausted> {
        let stamps = envelope.stamps;
        out.clear();
        let seq = self.take_seq(STAMPS + payload.len())?;
        // Both directions share a key, so the direction is in the nonce.
        let tail = (seq.get() | direction(self.role)).to_be_bytes();
        out.reserve(OVERHEAD + payload.len());
        out.extend_from_slice(&tail);
        out.extend_from_slice(&Stamp::to_wire(stamps.sent).to_be_bytes());
        out.extend_from_slice(&Stamp::to_wire(stamps.reply).to_be_bytes());
        out.extend_from_slice(payload);
        let tag = self.ocb.seal(&nonce(tail), &mut out[NONCE_TAIL..]);
        out.extend_from_slice(&tag);
        Ok(seq)
    }

    fn open(&mut self, datagram: &mut [u8]) -> Result<(Header, Range<usize>), Reject> {
        let have = datagram.len();
        // Refused before the cipher runs: whoever has no key must not cost us much.
        if have > DATAGRAM_BYTES_MAX {
            return Err(Reject::Oversized { have, max: DATAGRAM_BYTES_MAX });
        }
        let truncated = Reject::Truncated { have, need: OVERHEAD };
        let (tail, sealed) = datagram.split_first_chunk_mut::<NONCE_TAIL>().ok_or(truncated)?;
        let (text, tag) = sealed.split_last_chunk_mut::<TAG>().ok_or(truncated)?;
        if text.len() < STAMPS {
            return Err(truncated);
        }
        let word = u64::from_be_bytes(*tail);
        if word & DIRECTION == direction(self.role) {
            return Err(Reject::Reflected);
        }
        self.ocb.open(&nonce(*tail), text, tag).map_err(|_| Reject::Forged)?;
        let (stamps, _) = text.split_first_chunk::<STAMPS>().ok_or(truncated)?;
        let [sent_high, sent_low, reply_high, reply_low] = *stamps;
        let stamps = Stamps {
            sent: Stamp::from_wire(u16::from_be_bytes([sent_high, sent_low])),
            reply: Stamp::from_wire(u16::from_be_bytes([reply_high, reply_low])),
        };
        let header = Header::new(Seq::new(word), stamps.into());
        Ok((header, NONCE_TAIL + STAMPS..have - TAG))
    }

    fn pack(&self, message: &Instruction, deflater: &mut Deflater, out: &mut Vec<u8>) {
        let mut octets = Vec::new();
        message.encode(&mut octets);
        deflater.pack(Frame::Zlib, &octets, out);
    }

    fn unpack(&self, bytes: &[u8]) -> Result<Instruction, Reject> {
        Instruction::decode(&deflate::unpack(Frame::Zlib, bytes)?)
    }
}

fn direction(role: Role) -> u64 {
    match role {
        Role::Client => 0,
        Role::Server => DIRECTION,
    }
}

fn nonce(tail: [u8; NONCE_TAIL]) -> [u8; NONCE] {
    let mut nonce = [0; NONCE];
    nonce[NONCE - NONCE_TAIL..].copy_from_slice(&tail);
    nonce
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(next: u64, blocks: u64) -> MoshWire {
        let used = Used { next: Seq::new(next), blocks };
        MoshWire::resume(Key::from_bytes([7; 16]), Role::Client, used)
    }

    fn seal(wire: &mut MoshWire) -> Result<Seq, Exhausted> {
        let mut out = vec![1];
        let sealed = wire.seal(&Envelope::default(), b"x", &mut out);
        assert_eq!(out.is_empty(), sealed.is_err());
        sealed
    }

    #[test]
    fn sequence_numbers_end_before_they_repeat() {
        let mut wire = wire(Seq::MAX.get(), 0);
        assert_eq!(seal(&mut wire), Ok(Seq::MAX));
        for _ in 0..3 {
            assert_eq!(seal(&mut wire), Err(Exhausted));
        }
    }

    #[test]
    fn the_block_limit_ends_the_session() {
        let mut wire = wire(5, BLOCKS_MAX - 1);
        assert_eq!(seal(&mut wire), Ok(Seq::new(5)));
        for _ in 0..3 {
            assert_eq!(seal(&mut wire), Err(Exhausted));
        }
    }

    #[test]
    fn shapes_are_refused_before_the_cipher_runs() {
        let mut sealed = Vec::new();
        wire(0, 0).seal(&Envelope::default(), &[5; 2020], &mut sealed).unwrap();
        let mut server = MoshWire::new(Key::from_bytes([7; 16]), Role::Server);
        for (len, reject) in [
            (0, Some(Reject::Truncated { have: 0, need: 28 })),
            (7, Some(Reject::Truncated { have: 7, need: 28 })),
            (27, Some(Reject::Truncated { have: 27, need: 28 })),
            (28, Some(Reject::Forged)),
            (2047, Some(Reject::Forged)),
            (2048, None),
            (2049, Some(Reject::Oversized { have: 2049, max: 2048 })),
        ] {
            let mut datagram = sealed.clone();
            datagram.resize(len, 0);
            assert_eq!(server.open(&mut datagram).err(), reject, "{len} octets");
        }
        assert_eq!(wire(0, 0).open(&mut sealed), Err(Reject::Reflected));
    }
}
