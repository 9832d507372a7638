//! Instructions and fragments as the native wire writes them (`docs/wire.md` §6, §7). It must not know
//! what diffs mean.

use alloc::vec::Vec;

use prost::encoding::{decode_varint, encode_varint};

use crate::instruction::extensions::Announcement;
use crate::instruction::fragment::{Fragment, FragmentId, NUMBER_MAX, Parity, Piece};
use crate::instruction::parity::PARITY_MAX;
use crate::instruction::{Instruction, MESSAGE_BYTES_MAX};
use crate::reject::Reject;
use crate::state::StateNum;
use crate::wire::deflate::{self, Deflater, Frame};

/// Bits of an instruction's first octet. The others change what follows, so that one that is not known
/// makes the whole unreadable.
const DEFLATED: u8 = 1 << 0;
const CHAFF: u8 = 1 << 1;
/// Base, target and throwaway are one state, and there is no diff: an acknowledgment.
const IDLE: u8 = 1 << 2;
/// An announcement precedes the numbers.
const ANNOUNCES: u8 = 1 << 3;
const KNOWN: u8 = DEFLATED | CHAFF | IDLE | ANNOUNCES;

/// Bodies shorter than this are not tried: deflating never pays for its own frame there.
const DEFLATE_BYTES_MIN: usize = 24;

/// Replaces `out` with an instruction as it travels.
pub(crate) fn pack(message: &Instruction, deflater: &mut Deflater, out: &mut Vec<u8>) {
    let Instruction { old, new, ack, throwaway, diff, chaff, announcement } = message;
    let mut bits = 0;
    let mut body = Vec::new();
    if let Some(number) = announcement.to_number() {
        bits |= ANNOUNCES;
        encode_varint(number, &mut body);
    }
    encode_varint(new.get(), &mut body);
    encode_varint(ack.get(), &mut body);
    // Most acknowledgments look so, and are two octets shorter for it.
    if old == new && throwaway == new && diff.is_empty() {
        bits |= IDLE;
    } else {
        encode_varint(new.get().wrapping_sub(old.get()), &mut body);
        encode_varint(old.get().wrapping_sub(throwaway.get()), &mut body);
        body.extend_from_slice(diff);
    }
    if body.len() >= DEFLATE_BYTES_MIN {
        deflater.pack(Frame::Raw, &body, out);
        // Short or random octets grow when they are deflated.
        if out.len() < body.len() {
            bits |= DEFLATED;
            core::mem::swap(&mut body, out);
        }
    }
    out.clear();
    if !chaff.is_empty() {
        bits |= CHAFF;
    }
    out.push(bits);
    if !chaff.is_empty() {
        encode_varint(chaff.len() as u64, out);
        out.extend_from_slice(chaff);
    }
    out.extend_from_slice(&body);
}

/// Reads what [`pack`] wrote.
pub(crate) fn unpack(bytes: &[u8]) -> Result<Instruction, Reject> {
    let (&bits, mut bytes) = bytes.split_first().ok_or(Reject::Malformed)?;
    // An unknown bit may change what the rest means.
    if bits & !KNOWN != 0 {
        return Err(Reject::Malformed);
    }
    let mut chaff = Vec::new();
    if bits & CHAFF != 0 {
        let len = usize::try_from(number(&mut bytes)?).map_err(|_| Reject::Malformed)?;
        let (padding, rest) = bytes.split_at_checked(len).ok_or(Reject::Malformed)?;
        chaff.extend_from_slice(padding);
        bytes = rest;
    }
    let inflated;
    let mut body = match bits & DEFLATED {
        0 => bytes,
        _ => {
            inflated = deflate::unpack(Frame::Raw, bytes)?;
            &inflated[..]
        }
    };
    // The limit is the same however a message travels.
    if body.len() > MESSAGE_BYTES_MAX {
        return Err(Reject::InflateOverflow);
    }
    let announcement = match bits & ANNOUNCES {
        0 => Announcement::NONE,
        _ => Announcement::from_number(number(&mut body)?),
    };
    let new = number(&mut body)?;
    let ack = StateNum::from(number(&mut body)?);
    let (old, throwaway, diff) = match bits & IDLE {
        0 => {
            let old = new.wrapping_sub(number(&mut body)?);
            (old, old.wrapping_sub(number(&mut body)?), body.to_vec())
        }
        _ => (new, new, Vec::new()),
    };
    let [old, new, throwaway] = [old, new, throwaway].map(StateNum::from);
    Ok(Instruction { old, new, ack, throwaway, diff, chaff, announcement })
}

fn number(bytes: &mut &[u8]) -> Result<u64, Reject> {
    decode_varint(bytes).map_err(|_| Reject::Malformed)
}

/// Octets of a fragment's header at most.
pub(crate) const FRAGMENT: usize = 1 + 4 + 2;

const LAST: u8 = 1 << 6;
/// What replaces a fragment. The low bits are then one less than the number of fragments, and the two octets
/// after the id hold the octets of the last one, and above them which parity fragment this is.
const PARITY: u8 = 1 << 7;
const COUNT: u8 = 0x1f;
const LAST_BYTES: u16 = (1 << 11) - 1;
const INDEX_SHIFT: u32 = 11;
/// The only fragment of its instruction, which needs no name.
const WHOLE: u8 = 1 << 5;

/// Appends a fragment.
pub(crate) fn encode_fragment(fragment: &Fragment<'_>, out: &mut Vec<u8>) {
    let Fragment { id, number, last, contents } = fragment;
    if *last && *number == 0 {
        out.push(WHOLE | LAST);
    } else {
        out.push(if *last { LAST } else { 0 });
        out.extend_from_slice(&(id.get() as u32).to_be_bytes());
        out.extend_from_slice(&number.to_be_bytes());
    }
    out.extend_from_slice(contents);
}

/// Appends what replaces a fragment.
pub(crate) fn encode_parity(parity: &Parity<'_>, out: &mut Vec<u8>) {
    let Parity { id, count, index, last_bytes, contents } = parity;
    assert!((2..=u16::from(COUNT) + 1).contains(count), "five bits, one less than the count");
    assert!(usize::from(*index) < PARITY_MAX, "an index has five bits");
    assert!((1..=LAST_BYTES).contains(last_bytes), "a datagram's contents have 11 bits of octets");
    out.push(PARITY | (count - 1) as u8);
    out.extend_from_slice(&(id.get() as u32).to_be_bytes());
    let word = u16::from(*index) << INDEX_SHIFT | last_bytes;
    out.extend_from_slice(&word.to_be_bytes());
    out.extend_from_slice(contents);
}

/// Reads a payload. A fragment that is whole has the id 2^32, which no other has.
pub(crate) fn decode_piece(payload: &[u8]) -> Result<Piece<'_>, Reject> {
    let short = Reject::ShortFragment { have: payload.len() };
    let (&head, rest) = payload.split_first().ok_or(short)?;
    if head == WHOLE | LAST {
        // No id travels with what is whole. This one is no fragment's: those have 32 bits.
        let id = FragmentId::from(1 << 32);
        return Ok(Piece::Fragment(Fragment { id, number: 0, last: true, contents: rest }));
    }
    let (id, rest) = rest.split_first_chunk().ok_or(short)?;
    let id = FragmentId::from(u64::from(u32::from_be_bytes(*id)));
    let (word, contents) = rest.split_first_chunk().ok_or(short)?;
    let word = u16::from_be_bytes(*word);
    match head {
        0 | LAST if word > NUMBER_MAX => Err(Reject::StrayFragment { number: word }),
        0 | LAST => {
            let last = head == LAST;
            Ok(Piece::Fragment(Fragment { id, number: word, last, contents }))
        }
        PARITY.. if head & !(PARITY | COUNT) == 0 => {
            let (count, index) = (u16::from(head & COUNT) + 1, (word >> INDEX_SHIFT) as u8);
            let last_bytes = word & LAST_BYTES;
            if count < 2 || last_bytes == 0 || usize::from(last_bytes) > contents.len() {
                return Err(Reject::Malformed);
            }
            Ok(Piece::Parity(Parity { id, count, index, last_bytes, contents }))
        }
        _ => Err(Reject::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn check(message: &Instruction) -> usize {
        let mut packed = vec![1];
        pack(message, &mut Deflater::default(), &mut packed);
        assert_eq!(unpack(&packed).as_ref(), Ok(message));
        packed.len()
    }

    #[test]
    fn unpacks_what_it_packed() {
        let mut rng = Rng::new(77);
        for turn in 0..5000 {
            let mut number = || match turn % 9 {
                0 => StateNum::SHUTDOWN,
                _ => StateNum::from(rng.bits() >> (turn % 64)),
            };
            let [old, new, ack, throwaway] = [number(), number(), number(), number()];
            let mut message = Instruction { old, new, ack, throwaway, ..Instruction::default() };
            if turn % 3 == 0 {
                (message.old, message.throwaway) = (new, new);
            }
            let len = rng.below(200) as usize;
            match turn % 4 {
                0 => rng.fill(len, &mut message.diff),
                1 => message.diff = b"abcdefgh".repeat(len),
                _ => {}
            }
            rng.fill(turn % 17, &mut message.chaff);
            message.announcement =
                [Announcement::NONE, Announcement::ASKS, Announcement::KNOWS][turn % 3];
            check(&message);
        }
    }

    #[test]
    fn small_things_stay_small() {
        let states = |old: u64, new: u64, throwaway: u64| Instruction {
            old: old.into(),
            new: new.into(),
            ack: 90.into(),
            throwaway: throwaway.into(),
            ..Instruction::default()
        };
        assert_eq!(check(&states(100, 100, 100)), 3, "an acknowledgment");
        let key = Instruction { diff: b"key".to_vec(), ..states(100, 101, 100) };
        assert_eq!(check(&key), 5 + 3, "a key");
        let text = Instruction { diff: b"text ".repeat(100), ..states(100, 101, 100) };
        assert!(check(&text) < 40, "deflated where that is shorter");
    }

    #[test]
    fn what_is_no_instruction_is_refused() {
        let bomb = {
            let mut out = Vec::new();
            Deflater::default().pack(Frame::Raw, &vec![0; MESSAGE_BYTES_MAX + 1], &mut out);
            [&[DEFLATED][..], &out].concat()
        };
        let long = vec![0; MESSAGE_BYTES_MAX + 2];
        for (bytes, reject) in [
            (&b""[..], Reject::Malformed),
            (b"\x10\x01\x01\x01\x01", Reject::Malformed),
            (b"\x80\x01\x01\x01\x01", Reject::Malformed),
            (b"\x00\x01\x01\x01", Reject::Malformed),
            (b"\x04\x01", Reject::Malformed),
            (b"\x02\x05abcd", Reject::Malformed),
            (b"\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01abcd", Reject::Malformed),
            (b"\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", Reject::Malformed),
            (b"\x01nonsense", Reject::Inflate),
            (&bomb, Reject::InflateOverflow),
            (&long, Reject::InflateOverflow),
        ] {
            let unpacked = unpack(bytes);
            assert_eq!(unpacked, Err(reject), "{:x?}", &bytes[..bytes.len().min(20)]);
        }
    }

    #[test]
    fn fragments_are_read_back() {
        for (id, number, last, len) in
            [(7, 0, true, 1), (7, 0, false, 7), (7, 1, true, 7), (7, NUMBER_MAX, false, 7)]
        {
            let fragment =
                Fragment { id: FragmentId::from(id), number, last, contents: b"contents" };
            let mut payload = Vec::new();
            encode_fragment(&fragment, &mut payload);
            assert_eq!(payload.len(), len + 8);
            let read = decode_piece(&payload).unwrap();
            let id = if len == 1 { 1 << 32 } else { id };
            assert_eq!(read, Piece::Fragment(Fragment { id: id.into(), ..fragment }));
        }
        for (count, index, last_bytes) in [(2, 0, 1), (32, 31, 8), (9, 16, 5)] {
            let id = FragmentId::from(0x0102_0304);
            let parity = Parity { id, count, index, last_bytes, contents: b"contents" };
            let mut payload = Vec::new();
            encode_parity(&parity, &mut payload);
            assert_eq!(payload.len(), FRAGMENT + 8);
            assert_eq!(decode_piece(&payload), Ok(Piece::Parity(parity)));
        }
        for (payload, reject) in [
            (&b""[..], Reject::ShortFragment { have: 0 }),
            (b"\x00abcd5", Reject::ShortFragment { have: 6 }),
            (b"\x00abcd\x80\x00", Reject::StrayFragment { number: 1 << 15 }),
            (b"\xc0abcd12", Reject::Malformed),
            // One fragment; none of whose octets are any; more than there are.
            (b"\x80abcd\x00\x01x", Reject::Malformed),
            (b"\x81abcd\x08\x00x", Reject::Malformed),
            (b"\x81abcd\x00\x02x", Reject::Malformed),
            (b"\x81abcd\x00", Reject::ShortFragment { have: 6 }),
            (b"\x01abcd12", Reject::Malformed),
            (b"\x20abcd12", Reject::Malformed),
        ] {
            assert_eq!(decode_piece(payload), Err(reject));
        }
    }
}
