//! Cutting an instruction into datagram-sized fragments and putting it together again
//! (`mosh-protocol.md` §3.1). It must not know what is inside.

use std::collections::{BTreeMap, VecDeque};
use std::iter;

use crate::instruction::MESSAGE_BYTES_MAX;
use crate::machine::Reject;

/// Octets of a fragment's header: the instruction's id, then one bit and 15 bits of number.
pub(crate) const HEADER: usize = 10;
/// The bit that marks an instruction's last fragment.
const LAST: u16 = 1 << 15;
/// The highest fragment number: 15 bits.
pub(crate) const NUMBER_MAX: u16 = LAST - 1;
/// Octets the fragments of one instruction hold at most: the longest instruction as stored zlib blocks
/// (5 octets each 65535) takes less.
pub const ASSEMBLY_BYTES_MAX: usize = MESSAGE_BYTES_MAX + 4096;

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

/// Puts fragments together, a few instructions at a time: the mosh wire one, so that any fragment of
/// another id throws away the work in progress, as stock does.
#[derive(Clone, Debug)]
pub struct Assembler {
    /// Oldest first. At most `assemblies_max`; the oldest goes.
    assemblies: VecDeque<Assembly>,
    assemblies_max: usize,
}

#[derive(Clone, Debug)]
struct Assembly {
    id: FragmentId,
    pieces: BTreeMap<u16, Box<[u8]>>,
    /// The last fragment's number, once seen.
    last: Option<u16>,
    bytes: usize,
}

impl Assembler {
    /// An assembler for at most this many instructions at a time, at least one.
    pub fn new(assemblies_max: usize) -> Assembler {
        Assembler { assemblies: VecDeque::new(), assemblies_max: assemblies_max.max(1) }
    }

    /// Takes a fragment, in any order; an exact repeat is harmless. Returns the packed instruction that
    /// it completes.
    ///
    /// An error drops this fragment alone.
    pub fn add(&mut self, fragment: Fragment<'_>) -> Result<Option<Vec<u8>>, Reject> {
        // Whole at once: where several are kept, it takes no place from what is not.
        let known = self.assemblies.iter().any(|assembly| assembly.id == fragment.id);
        if self.assemblies_max > 1 && !known && fragment.number == 0 && fragment.last {
            return Ok(Some(fragment.contents.to_vec()));
        }
        let index = self.assembly(fragment.id);
        let assembly = &mut self.assemblies[index];
        assembly.add(fragment)?;
        if !assembly.is_complete() {
            self.shed(index);
            return Ok(None);
        }
        let assembly = self.assemblies.remove(index).expect("the assembly just added to");
        Ok(Some(assembly.into_packed()))
    }

    /// Gives up the oldest while all together are too heavy, but never the one at `kept`.
    fn shed(&mut self, mut kept: usize) {
        while self.assemblies.len() > 1
            && self.assemblies.iter().map(Assembly::weight).sum::<usize>() > TOGETHER_BYTES_MAX
        {
            let oldest = usize::from(kept == 0);
            self.assemblies.remove(oldest);
            kept = kept.saturating_sub(1);
        }
    }

    /// Octets held: at most [`ASSEMBLY_BYTES_MAX`] for each instruction in progress.
    pub fn held_bytes(&self) -> usize {
        self.assemblies.iter().map(|assembly| assembly.bytes).sum()
    }

    fn assembly(&mut self, id: FragmentId) -> usize {
        if let Some(index) = self.assemblies.iter().position(|assembly| assembly.id == id) {
            return index;
        }
        if self.assemblies.len() == self.assemblies_max {
            self.assemblies.pop_front();
        }
        self.assemblies.push_back(Assembly { id, pieces: BTreeMap::new(), last: None, bytes: 0 });
        self.assemblies.len() - 1
    }
}

impl Assembly {
    /// What it takes of the memory.
    fn weight(&self) -> usize {
        self.bytes + self.pieces.len() * PIECE_BYTES
    }

    fn add(&mut self, fragment: Fragment<'_>) -> Result<(), Reject> {
        let number = fragment.number;
        if let Some(held) = self.pieces.get(&number) {
            let equal =
                **held == *fragment.contents && fragment.last == (self.last == Some(number));
            return if equal { Ok(()) } else { Err(Reject::UnequalFragment { number }) };
        }
        if self.last.is_some_and(|last| number > last) {
            return Err(Reject::StrayFragment { number });
        }
        if fragment.last && (self.last.is_some() || self.highest() > Some(number)) {
            return Err(Reject::UnequalFragment { number });
        }
        let have = self.bytes + fragment.contents.len();
        if have > ASSEMBLY_BYTES_MAX {
            return Err(Reject::FragmentOverflow { have });
        }
        if fragment.last {
            self.last = Some(number);
        }
        self.bytes = have;
        self.pieces.insert(number, fragment.contents.into());
        Ok(())
    }

    fn highest(&self) -> Option<u16> {
        self.pieces.last_key_value().map(|(number, _)| *number)
    }

    fn is_complete(&self) -> bool {
        self.last.is_some_and(|last| self.pieces.len() == usize::from(last) + 1)
    }

    fn into_packed(self) -> Vec<u8> {
        let mut packed = Vec::with_capacity(self.bytes);
        for piece in self.pieces.into_values() {
            packed.extend_from_slice(&piece);
        }
        packed
    }
}

/// What a piece takes beside its contents.
const PIECE_BYTES: usize = 64;

/// What several assemblies may take together: the longest instruction in the most pieces alone has less.
const TOGETHER_BYTES_MAX: usize = ASSEMBLY_BYTES_MAX + (NUMBER_MAX as usize + 1) * PIECE_BYTES;

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(id: u64, number: u16, last: bool, contents: &[u8]) -> Fragment<'_> {
        Fragment { id: id.into(), number, last, contents }
    }

    #[test]
    fn assembles_in_any_order() {
        let pieces = [piece(1, 0, false, b"ab"), piece(1, 1, false, b""), piece(1, 2, true, b"c")];
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut assembler = Assembler::new(1);
            let [first, second, third] = order.map(|index| pieces[index]);
            for early in [first, first, second, first, second] {
                assert_eq!(assembler.add(early), Ok(None), "{order:?}");
            }
            assert_eq!(assembler.add(third), Ok(Some(b"abc".to_vec())), "{order:?}");
            assert_eq!(assembler.held_bytes(), 0);
        }
    }

    #[test]
    fn faults_are_dropped_alone() {
        // What is held, what comes, what is said of it.
        let unequal = |number| Reject::UnequalFragment { number };
        let table = [
            (piece(1, 0, false, b"a"), piece(1, 0, false, b"b"), unequal(0)),
            (piece(1, 0, false, b"a"), piece(1, 0, true, b"a"), unequal(0)),
            (piece(1, 1, true, b"b"), piece(1, 1, false, b"b"), unequal(1)),
            (piece(1, 1, true, b"b"), piece(1, 0, true, b"a"), unequal(0)),
            (piece(1, 2, false, b"b"), piece(1, 1, true, b"a"), unequal(1)),
            (
                piece(1, 1, true, b"b"),
                piece(1, 2, false, b"c"),
                Reject::StrayFragment { number: 2 },
            ),
            (piece(1, 1, true, b"b"), piece(1, 2, true, b"c"), Reject::StrayFragment { number: 2 }),
        ];
        for (held, fault, reject) in table {
            let mut assembler = Assembler::new(1);
            assert_eq!(assembler.add(held), Ok(None));
            assert_eq!(assembler.add(fault), Err(reject), "{fault:?} after {held:?}");
            assert_eq!(assembler.held_bytes(), 1);
        }
    }

    #[test]
    fn keeps_as_many_as_told() {
        for (kept, survives) in [(1, false), (2, true)] {
            let mut assembler = Assembler::new(kept);
            assert_eq!(assembler.add(piece(1, 0, false, b"a")), Ok(None));
            assert_eq!(assembler.add(piece(9, 0, false, b"x")), Ok(None));
            let done = assembler.add(piece(1, 1, true, b"b"));
            assert_eq!(done, Ok(survives.then(|| b"ab".to_vec())), "{kept} kept");
        }
    }

    #[test]
    fn holds_no_more_than_an_instruction() {
        let mut assembler = Assembler::new(1);
        let contents = [7; 2000];
        for number in 0..=NUMBER_MAX {
            let _ = assembler.add(piece(1, number, false, &contents));
            assert!(assembler.held_bytes() <= ASSEMBLY_BYTES_MAX);
        }
        let have = ASSEMBLY_BYTES_MAX / 2000 * 2000 + 2000;
        let more = assembler.add(piece(1, NUMBER_MAX, false, &contents));
        assert_eq!(more, Err(Reject::FragmentOverflow { have }));
        // Another instruction gets through at once.
        assert_eq!(assembler.add(piece(2, 0, true, b"x")), Ok(Some(b"x".to_vec())));
    }

    #[test]
    fn several_share_one_limit() {
        for (contents, count) in [(&[7; 2000][..], 20_000_u64), (&[7; 2], 500_000)] {
            let mut assembler = Assembler::new(64);
            for turn in 0..count {
                // 70 instructions, none of which is ever whole.
                let (id, number) = (turn % 70, 1 + (turn / 70) as u16);
                assert_eq!(assembler.add(piece(id, number, false, contents)), Ok(None));
                let weight: usize = assembler.assemblies.iter().map(Assembly::weight).sum();
                assert!(weight <= TOGETHER_BYTES_MAX && assembler.assemblies.len() <= 64);
            }
            // What is whole at once gets through.
            assert_eq!(assembler.add(piece(99, 0, true, b"x")), Ok(Some(b"x".to_vec())));
        }
    }

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
