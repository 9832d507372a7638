//! Putting instructions together from their fragments, and from parity in place of lost ones
//! (`mosh-protocol.md` §3.1, `docs/wire.md` §7). It must not know what is inside.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use crate::instruction::MESSAGE_BYTES_MAX;
use crate::instruction::fragment::{Fragment, FragmentId, NUMBER_MAX, Parity, Piece};
use crate::instruction::parity::{self, COVERED_MAX, PARITY_MAX};
use crate::reject::Reject;

/// Octets the fragments of one instruction hold at most: the longest instruction as stored zlib blocks
/// (5 octets each 65535) takes less.
pub const ASSEMBLY_BYTES_MAX: usize = MESSAGE_BYTES_MAX + 4096;

/// Instructions put together that are remembered, so that what else comes of them starts nothing.
const DONE_MAX: usize = 64;

/// Puts fragments together, a few instructions at a time: the mosh wire one, so that any fragment of
/// another id throws away the work in progress, as stock does.
#[derive(Clone, Debug)]
pub struct Assembler {
    /// Oldest first. At most `assemblies_max`; the oldest goes.
    assemblies: VecDeque<Assembly>,
    assemblies_max: usize,
    /// The instructions put together last, where several are kept; at most [`DONE_MAX`].
    done: VecDeque<FragmentId>,
    /// How many lacked fragments that parity stood in for.
    repaired: u64,
}

#[derive(Clone, Debug)]
struct Assembly {
    id: FragmentId,
    pieces: BTreeMap<u16, Box<[u8]>>,
    /// The last fragment's number, once seen.
    last: Option<u16>,
    /// What there is in place of fragments, and how it was cut, once seen.
    parity: BTreeMap<u8, Box<[u8]>>,
    shape: Option<Shape>,
    bytes: usize,
}

/// How an instruction with parity was cut.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Shape {
    count: u16,
    /// Octets of each fragment but the last, and of that.
    each: usize,
    last: usize,
}

impl Shape {
    /// Whether it was cut into fragments like this one.
    fn has(self, number: u16, len: usize, last: bool) -> bool {
        let is_last = number.saturating_add(1) == self.count;
        number < self.count && last == is_last && len == if is_last { self.last } else { self.each }
    }
}

impl Assembler {
    /// An assembler for at most this many instructions at a time, at least one.
    pub fn new(assemblies_max: usize) -> Assembler {
        Assembler {
            assemblies: VecDeque::new(),
            assemblies_max: assemblies_max.max(1),
            done: VecDeque::new(),
            repaired: 0,
        }
    }

    /// Takes a fragment, in any order; an exact repeat is harmless. Returns the packed instruction that
    /// it completes.
    ///
    /// An error drops this fragment alone.
    pub fn add(&mut self, fragment: Fragment<'_>) -> Result<Option<Vec<u8>>, Reject> {
        self.take(Piece::Fragment(fragment))
    }

    /// The same of a fragment, or of what replaces one.
    pub fn take(&mut self, piece: Piece<'_>) -> Result<Option<Vec<u8>>, Reject> {
        let id = piece.id();
        if let Piece::Fragment(fragment) = &piece
            && self.assemblies_max > 1
            && piece.is_whole()
            && !self.assemblies.iter().any(|assembly| assembly.id == id)
        {
            // Whole at once: where several are kept, it takes no place from what is not.
            return Ok(Some(fragment.contents.to_vec()));
        }
        // Copies and parity arrive after the last piece. They must not begin another assembly that
        // nothing completes.
        if self.is_done(id) {
            return Ok(None);
        }
        let index = self.assembly(id);
        let assembly = &mut self.assemblies[index];
        match piece {
            Piece::Fragment(fragment) => assembly.add(fragment)?,
            Piece::Parity(parity) => assembly.add_parity(parity)?,
        }
        if !assembly.is_complete() {
            self.shed(index);
            return Ok(None);
        }
        let assembly = self.assemblies.remove(index).expect("the assembly just added to");
        if self.assemblies_max > 1 {
            if self.done.len() == DONE_MAX {
                self.done.pop_front();
            }
            self.done.push_back(id);
        }
        self.repaired += u64::from(!assembly.has_all());
        Ok(Some(assembly.into_packed()))
    }

    /// How many instructions were put together with parity in place of fragments.
    pub fn repaired(&self) -> u64 {
        self.repaired
    }

    /// Whether this instruction was put together, as far as that is remembered.
    pub fn is_done(&self, id: FragmentId) -> bool {
        self.done.contains(&id)
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
            // The oldest: its missing pieces are the least likely to come.
            self.assemblies.pop_front();
        }
        self.assemblies.push_back(Assembly::new(id));
        self.assemblies.len() - 1
    }
}

impl Assembly {
    fn new(id: FragmentId) -> Assembly {
        let (pieces, parity) = (BTreeMap::new(), BTreeMap::new());
        Assembly { id, pieces, last: None, parity, shape: None, bytes: 0 }
    }

    /// What it takes of the memory.
    fn weight(&self) -> usize {
        self.bytes + (self.pieces.len() + self.parity.len()) * PIECE_BYTES
    }

    fn add(&mut self, fragment: Fragment<'_>) -> Result<(), Reject> {
        let Fragment { number, last, contents, .. } = fragment;
        // Equal repeats are copies. Unequal ones come from a peer at fault: the first is kept.
        if let Some(held) = self.pieces.get(&number) {
            let equal = **held == *contents && last == (self.last == Some(number));
            return if equal { Ok(()) } else { Err(Reject::UnequalFragment { number }) };
        }
        if self.last.is_some_and(|last| number > last) {
            return Err(Reject::StrayFragment { number });
        }
        // Pieces of two lengths cannot be recovered together.
        let unequal = self.shape.is_some_and(|shape| !shape.has(number, contents.len(), last));
        if unequal || last && (self.last.is_some() || self.highest() > Some(number)) {
            return Err(Reject::UnequalFragment { number });
        }
        // Checked before it is stored, so that no fragment can exceed the limit.
        self.bytes = self.room_for(contents.len())?;
        if last {
            self.last = Some(number);
        }
        self.pieces.insert(number, contents.into());
        Ok(())
    }

    fn add_parity(&mut self, parity: Parity<'_>) -> Result<(), Reject> {
        let Parity { count, index, last_bytes, contents, .. } = parity;
        let shape = Shape { count, each: contents.len(), last: last_bytes.into() };
        let is_one = (2..=COVERED_MAX).contains(&count.into())
            && usize::from(index) < PARITY_MAX
            && (1..=shape.each).contains(&shape.last);
        if !is_one {
            return Err(Reject::Malformed);
        }
        let unequal = Reject::UnequalFragment { number: count + u16::from(index) };
        // Parity may come first or last: it is held against the fragments, or they against it.
        let agrees = match self.shape {
            Some(held) => held == shape,
            None => self
                .pieces
                .iter()
                .all(|(number, piece)| shape.has(*number, piece.len(), self.last == Some(*number))),
        };
        if !agrees {
            return Err(unequal);
        }
        if let Some(held) = self.parity.get(&index) {
            return if **held == *contents { Ok(()) } else { Err(unequal) };
        }
        self.bytes = self.room_for(contents.len())?;
        self.shape = Some(shape);
        self.parity.insert(index, contents.into());
        Ok(())
    }

    /// Octets held with `more` added.
    fn room_for(&self, more: usize) -> Result<usize, Reject> {
        let have = self.bytes + more;
        if have > ASSEMBLY_BYTES_MAX { Err(Reject::FragmentOverflow { have }) } else { Ok(have) }
    }

    fn highest(&self) -> Option<u16> {
        self.pieces.last_key_value().map(|(number, _)| *number)
    }

    fn is_complete(&self) -> bool {
        let held = self.pieces.len() + self.parity.len();
        self.has_all() || self.shape.is_some_and(|shape| held >= usize::from(shape.count))
    }

    fn has_all(&self) -> bool {
        self.last.is_some_and(|last| self.pieces.len() == usize::from(last) + 1)
    }

    fn into_packed(self) -> Vec<u8> {
        let mut packed = Vec::with_capacity(self.bytes);
        let recovered = self.recovered();
        let mut recovered = recovered.iter();
        for number in 0..=self.shape.map(|shape| shape.count - 1).or(self.last).unwrap_or(0) {
            match (self.pieces.get(&number), self.shape) {
                (Some(piece), _) => packed.extend_from_slice(piece),
                (None, Some(shape)) => {
                    let len = if number + 1 == shape.count { shape.last } else { shape.each };
                    let (_, octets) = recovered.next().expect("what is missing was recovered");
                    packed.extend_from_slice(&octets[..len]);
                }
                (None, None) => {}
            }
        }
        packed
    }

    /// The missing fragments, in their order.
    fn recovered(&self) -> Vec<(usize, Vec<u8>)> {
        let Some(shape) = self.shape else { return Vec::new() };
        let held: Vec<Option<&[u8]>> =
            (0..shape.count).map(|number| self.pieces.get(&number).map(|piece| &**piece)).collect();
        let parity: Vec<(u8, &[u8])> =
            self.parity.iter().map(|(index, octets)| (*index, &**octets)).collect();
        parity::recover(&held, &parity).expect("complete means that there is enough")
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
    fn remembers_as_many_as_told() {
        let mut assembler = Assembler::new(2);
        let last = DONE_MAX as u64 + 1;
        for id in 0..=last {
            assert_eq!(assembler.add(piece(id, 0, false, b"a")), Ok(None));
            assert_eq!(assembler.add(piece(id, 1, true, b"b")), Ok(Some(b"ab".to_vec())));
        }
        let known: Vec<u64> = (0..=last).filter(|&id| assembler.is_done(id.into())).collect();
        assert_eq!(known, (2..=last).collect::<Vec<u64>>());
        // A copy of the last starts nothing.
        assert_eq!(assembler.add(piece(last, 0, false, b"a")), Ok(None));
        assert_eq!(assembler.held_bytes(), 0);
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
    fn parity_replaces_any_fragments() {
        let contents: [&[u8]; 3] = [b"abcd", b"efgh", b"ij"];
        let made = [0, 1].map(|index| {
            let mut out = Vec::new();
            parity::protect(index, contents.into_iter(), 4, &mut out);
            out
        });
        let parity = |index: u8| Parity {
            id: 7.into(),
            count: 3,
            index,
            last_bytes: 2,
            contents: &made[usize::from(index)],
        };
        let pieces: Vec<Piece<'_>> = (0..3)
            .map(|number| piece(7, number, number == 2, contents[usize::from(number)]))
            .map(Piece::Fragment)
            .chain([0, 1].map(|index| Piece::Parity(parity(index))))
            .collect();
        // Any three, in any order; each that comes after them starts nothing.
        for first in 0..5 {
            for second in (0..5).filter(|&second| second != first) {
                for third in (0..5).filter(|&third| third != first && third != second) {
                    let mut assembler = Assembler::new(64);
                    assert_eq!(assembler.take(pieces[first]), Ok(None));
                    assert_eq!(assembler.take(pieces[first]), Ok(None));
                    assert_eq!(assembler.take(pieces[second]), Ok(None));
                    let whole = assembler.take(pieces[third]);
                    assert_eq!(whole, Ok(Some(b"abcdefghij".to_vec())), "{first} {second} {third}");
                    for late in &pieces {
                        assert_eq!(assembler.take(*late), Ok(None));
                    }
                    assert!(assembler.is_done(7.into()) && assembler.held_bytes() == 0);
                }
            }
        }
        for no_parity in [
            Parity { count: 1, ..parity(0) },
            Parity { count: 33, ..parity(0) },
            Parity { index: 32, ..parity(0) },
            Parity { last_bytes: 0, ..parity(0) },
            Parity { last_bytes: 5, ..parity(0) },
        ] {
            let refused = Assembler::new(64).take(Piece::Parity(no_parity));
            assert_eq!(refused, Err(Reject::Malformed), "{no_parity:?}");
        }
        // What does not agree with what is held is dropped alone.
        for fault in [
            Piece::Parity(Parity { count: 4, ..parity(1) }),
            Piece::Parity(Parity { last_bytes: 3, ..parity(1) }),
            Piece::Parity(Parity { contents: b"abc", ..parity(1) }),
            Piece::Parity(Parity { contents: b"abcd", ..parity(0) }),
            Piece::Fragment(piece(7, 1, true, b"efgh")),
            Piece::Fragment(piece(7, 1, false, b"efg")),
            Piece::Fragment(piece(7, 2, true, b"ijk")),
            Piece::Fragment(piece(7, 3, false, b"ijkl")),
        ] {
            let mut assembler = Assembler::new(64);
            assert_eq!(assembler.take(pieces[0]), Ok(None));
            assert_eq!(assembler.take(pieces[3]), Ok(None));
            let refused = assembler.take(fault);
            assert!(matches!(refused, Err(Reject::UnequalFragment { .. })), "{fault:?}");
            assert_eq!(assembler.held_bytes(), 8);
        }
    }
}
