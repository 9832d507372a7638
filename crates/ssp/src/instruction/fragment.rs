//! Cutting an instruction into datagram-sized fragments (`mosh-protocol.md` §3.1). It must not know what
//! is inside.

use alloc::vec::Vec;
use core::iter;

use crate::reject::Reject;

/// Octets of a fragment's header: the instruction's id, then one bit and 15 bits of number.
pub(crate) const HEADER: usize = 10;
/// The bit that marks an instruction's last fragment.
const LAST: u16 = 1 << 15;
/// The highest fragment number: 15 bits.
pub(crate) const NUMBER_MAX: u16 = LAST - 1;
/// Which instruction a fragment belongs to. Counted from 1, one up for each instruction.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct FragmentId(u64);

impl FragmentId {
    /// The id on the wire.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The id after this one. No session lives to see it wrap.
    pub const fn next(self) -> FragmentId {
        FragmentId(self.0.wrapping_add(1))
    }
}

impl From<u64> for FragmentId {
    fn from(id: u64) -> FragmentId {
        FragmentId(id)
    }
}

/// A datagram's payload: a piece of an instruction.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Fragment<'a> {
    /// Its instruction.
    pub id: FragmentId,
    /// Its place, at most 32767.
    pub number: u16,
    /// Whether it is its instruction's last.
    pub last: bool,
    /// The piece itself.
    pub contents: &'a [u8],
}

impl<'a> Fragment<'a> {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        assert!(self.number <= NUMBER_MAX, "a fragment number has 15 bits");
        out.extend_from_slice(&self.id.0.to_be_bytes());
        let word = if self.last { self.number | LAST } else { self.number };
        out.extend_from_slice(&word.to_be_bytes());
        out.extend_from_slice(self.contents);
    }

    /// Reads a payload. The only error is one too short for the header.
    pub fn decode(payload: &'a [u8]) -> Result<Fragment<'a>, Reject> {
        let short = Reject::ShortFragment { have: payload.len() };
        let (id, rest) = payload.split_first_chunk().ok_or(short)?;
        let (word, contents) = rest.split_first_chunk().ok_or(short)?;
        let word = u16::from_be_bytes(*word);
        Ok(Fragment {
            id: FragmentId(u64::from_be_bytes(*id)),
            number: word & NUMBER_MAX,
            last: word & LAST != 0,
            contents,
        })
    }
}

/// Cuts a packed instruction into fragments of at most `room` octets of contents; always at least one.
///
/// `room` must be at least 128, so that the longest instruction has few enough fragments.
pub fn fragments(id: FragmentId, packed: &[u8], room: usize) -> impl Iterator<Item = Fragment<'_>> {
    let mut next = Some(0);
    iter::from_fn(move || {
        let fragment = fragment(id, packed, room, next?);
        next = if fragment.last { None } else { Some(fragment.number + 1) };
        Some(fragment)
    })
}

/// The fragment of this number. Its number must be one of the instruction's.
pub(crate) fn fragment(id: FragmentId, packed: &[u8], room: usize, number: u16) -> Fragment<'_> {
    let (start, end) = (usize::from(number) * room, (usize::from(number) + 1) * room);
    let last = end >= packed.len();
    Fragment { id, number, last, contents: &packed[start..end.min(packed.len())] }
}

/// What takes the place of a lost fragment of an instruction that has few (`docs/wire.md` §7).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Parity<'a> {
    /// Its instruction.
    pub id: FragmentId,
    /// How many fragments that has, 2 to 32.
    pub count: u16,
    /// Which one of the parity fragments it is, at most 31.
    pub index: u8,
    /// Octets of the last fragment's contents, at least one. The others' are as long as `contents`.
    pub last_bytes: u16,
    /// The parity itself.
    pub contents: &'a [u8],
}

/// What a datagram's payload holds of an instruction.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Piece<'a> {
    /// A fragment.
    Fragment(Fragment<'a>),
    /// What replaces one.
    Parity(Parity<'a>),
}

impl Piece<'_> {
    /// Its instruction.
    pub fn id(&self) -> FragmentId {
        match self {
            Piece::Fragment(fragment) => fragment.id,
            Piece::Parity(parity) => parity.id,
        }
    }

    /// Whether it is all of its instruction.
    pub fn is_whole(&self) -> bool {
        matches!(self, Piece::Fragment(Fragment { number: 0, last: true, .. }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instruction::assembly::Assembler;

    #[test]
    fn cuts_and_joins() {
        let packed: Vec<u8> = (0..3000).map(|index| index as u8).collect();
        for (len, room, count) in [
            (0, 128, 1),
            (1, 128, 1),
            (128, 128, 1),
            (129, 128, 2),
            (3000, 1214, 3),
            (3000, 462, 7),
        ] {
            let mut assembler = Assembler::new(1);
            let mut done = None;
            let pieces: Vec<Fragment<'_>> = fragments(5.into(), &packed[..len], room).collect();
            assert_eq!(pieces.len(), count, "{len} in {room}");
            for piece in pieces {
                let mut payload = Vec::new();
                piece.encode(&mut payload);
                assert!(payload.len() <= HEADER + room);
                assert_eq!(Fragment::decode(&payload), Ok(piece));
                done = assembler.add(piece).unwrap();
            }
            assert_eq!(done.as_deref(), Some(&packed[..len]), "{len} in {room}");
        }
    }
}
