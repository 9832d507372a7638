//! The user stream: every octet typed and every size the window had, in order (`mosh-protocol.md`
//! §3.3 and §7). The client appends; the server reads on from where it was.
//!
//! States of one stream share their octets, so a copy costs little. This file does not know what a
//! key means.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use rove_ssp::{BadDiff, State};
use rove_term::{Size, TerminalProperties};
use zeroize::Zeroizing;

use crate::messages::{UserEvent, read_user, write_user};

/// Octets kept unacknowledged before [`Client::wants_keys`](crate::Client::wants_keys) asks the driver
/// to stop reading the terminal: a pasted file waits in the user's own terminal then. A quarter of
/// what one instruction may hold (4 MiB).
pub const OCTETS_MAX: u64 = 1 << 20;

/// Resizes kept unacknowledged; beyond it the newest waits in the client. With keys between all of
/// them they make a thirtieth of the events that one instruction may hold.
pub const RESIZES_MAX: usize = 64;

/// Octets in one shared piece. A key typed after a state was sent copies at most this much.
const PIECE_OCTETS_MAX: usize = 4096;

/// What a shared piece takes beside its octets: counts, vector and two allocations' headers.
const PIECE_BYTES: usize = 72;

/// The user stream, or what is left of it once an acknowledged prefix was dropped.
///
/// Two states are equal if they end at the same place and agree on all that both still hold: how
/// octets were grouped, and how much of the past was dropped, means nothing. That is an equivalence
/// among the states of one stream, which is all that is ever compared.
#[derive(Clone, Default)]
pub struct Input {
    pieces: VecDeque<Piece>,
    /// The last piece takes what is typed next.
    is_open: bool,
    /// Octets at the front of the first piece that were dropped.
    skip: usize,
    /// Octets and resizes dropped.
    start: u64,
    /// Octets and resizes ever appended.
    end: u64,
    /// Resizes and surroundings in `pieces`.
    resizes: usize,
    /// Events of a peer that meant nothing (a size of zero), skipped.
    ignored: u64,
}

/// A run of the user stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Event<'a> {
    /// Octets as the user's terminal sent them, never none.
    Keys(&'a [u8]),
    /// The window has this size.
    Resize(Size),
    /// The terminal looks like this.
    TerminalProperties(&'a TerminalProperties),
    /// The client only leaves: the session is to go on.
    Leaving,
    /// The largest number of missed lines that the client wants.
    LinesWanted(u64),
}

#[derive(Clone)]
enum Piece {
    /// Overwritten when the last state that shares them is gone.
    Keys(Arc<Zeroizing<Vec<u8>>>),
    Resize(Size),
    TerminalProperties(Arc<TerminalProperties>),
    Leaving,
    LinesWanted(u64),
}

impl Input {
    /// Appends octets. There is no limit here: the driver heeds `wants_keys`.
    pub fn push_keys(&mut self, mut octets: &[u8]) {
        if octets.is_empty() {
            return;
        }
        self.end += octets.len() as u64;
        if let Some(Piece::Keys(last)) = self.pieces.back_mut().filter(|_| self.is_open) {
            let room = PIECE_OCTETS_MAX.saturating_sub(last.len()).min(octets.len());
            let (fits, rest) = octets.split_at(room);
            if !fits.is_empty() {
                append(last, fits);
            }
            octets = rest;
        }
        let pieces = octets.chunks(PIECE_OCTETS_MAX).map(|piece| Zeroizing::new(piece.to_vec()));
        self.pieces.extend(pieces.map(|piece| Piece::Keys(Arc::new(piece))));
        self.is_open = true;
    }

    /// Appends octets in pieces of their own, which are gone once these are acknowledged: no key typed before or after
    /// keeps them.
    pub fn push_secret(&mut self, octets: &[u8]) {
        self.is_open = false;
        self.push_keys(octets);
        self.is_open = false;
    }

    /// Appends a size.
    pub fn push_resize(&mut self, size: Size) {
        self.push(Piece::Resize(size));
    }

    /// Appends what the user's terminal looks like. Counted like a resize. Only for a peer that knows it.
    pub fn push_properties(&mut self, around: TerminalProperties) {
        self.push(Piece::TerminalProperties(Arc::new(around)));
    }

    /// Appends that the client only leaves. Only for a peer that knows it.
    pub fn push_leaving(&mut self) {
        self.push(Piece::Leaving);
    }

    /// Appends how many missed lines are wanted. Counted like a resize. Only for a peer that knows it.
    pub fn push_lines_wanted(&mut self, wanted: u64) {
        self.push(Piece::LinesWanted(wanted));
    }

    fn push(&mut self, piece: Piece) {
        self.end += 1;
        self.resizes += 1;
        self.pieces.push_back(piece);
    }

    /// Where the stream ends, counted in octets and resizes since it began. Counts of two hosts differ
    /// once a faulty event was skipped.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Octets and resizes still held.
    pub fn held(&self) -> u64 {
        self.end - self.start
    }

    /// Typed octets still held.
    pub fn octets_held(&self) -> u64 {
        self.held() - self.resizes as u64
    }

    /// Resizes still held, and surroundings with them.
    pub fn resizes(&self) -> usize {
        self.resizes
    }

    /// Events of the peer that were skipped because they meant nothing.
    pub fn ignored(&self) -> u64 {
        self.ignored
    }

    /// What came after `position` (an earlier [`end`](Self::end)) and is still held, in order.
    pub fn since(&self, position: u64) -> Since<'_> {
        let mut since = Since { input: self, piece: 0, skip: self.skip };
        since.advance(position.saturating_sub(self.start));
        since
    }

    /// Drops all from `position` on, which lies behind the start.
    fn cut(&mut self, position: u64) {
        assert!(position > self.start, "something is left, or the last piece may be none");
        let mut surplus = self.end.saturating_sub(position);
        self.end -= surplus;
        while surplus > 0 {
            let last = self.pieces.back_mut().expect("what is held lies in the pieces");
            let held = last.len() as u64;
            if let Piece::Keys(octets) = last
                && surplus < held
            {
                let rest = (held - surplus) as usize;
                *octets = Arc::new(Zeroizing::new(octets[..rest].to_vec()));
                return;
            }
            surplus = surplus.saturating_sub(held);
            self.resizes -= usize::from(!matches!(last, Piece::Keys(_)));
            self.pieces.pop_back();
        }
    }

    /// Drops all before `position`.
    fn drop_until(&mut self, position: u64) {
        let mut surplus = position.min(self.end).saturating_sub(self.start);
        self.start += surplus;
        while surplus > 0 {
            let front = self.pieces.front().expect("held() octets and resizes lie in the pieces");
            let held = front.len() - self.skip;
            if surplus < held as u64 {
                self.skip += surplus as usize;
                return;
            }
            surplus -= held as u64;
            self.skip = 0;
            self.resizes -= usize::from(!matches!(front, Piece::Keys(_)));
            self.pieces.pop_front();
        }
    }
}

impl State for Input {
    fn diff_from(&self, base: &Self, out: &mut Vec<u8>) {
        assert!(base.end >= self.start, "the base of a diff was never dropped from its successors");
        let mut keys = Zeroizing::new(Vec::new());
        for event in self.since(base.end) {
            let event = match event {
                // Pieces are ours alone: on the wire neighbouring keys are one keystroke.
                Event::Keys(octets) => {
                    keys.extend_from_slice(octets);
                    continue;
                }
                Event::Resize(size) => UserEvent::Resize(size.into()),
                Event::TerminalProperties(around) => UserEvent::TerminalProperties(*around),
                Event::Leaving => UserEvent::Leaving,
                Event::LinesWanted(wanted) => UserEvent::LinesWanted(wanted),
            };
            flush(&mut keys, out);
            write_user(event, out);
        }
        flush(&mut keys, out);
    }

    fn apply(&mut self, diff: &[u8]) -> Result<(), BadDiff> {
        for event in read_user(diff)? {
            match event {
                UserEvent::Keys(octets) => self.push_keys(octets),
                UserEvent::Resize(dimensions) => match dimensions.to_size() {
                    Some(size) => self.push_resize(size),
                    None => self.ignored += 1,
                },
                UserEvent::TerminalProperties(around) => self.push_properties(around),
                UserEvent::Leaving => self.push_leaving(),
                UserEvent::LinesWanted(wanted) => self.push_lines_wanted(wanted),
            }
        }
        Ok(())
    }

    /// Any prefix is a version: a program reads what is typed octet by octet. A size counts as one.
    fn towards(&self, base: &Self, octets: usize) -> Option<Self> {
        let end = base.end.saturating_add(octets as u64);
        if end >= self.end {
            return None;
        }
        let mut part = self.clone();
        part.cut(end);
        Some(part)
    }

    fn subtract(&mut self, known: &Self) {
        self.drop_until(known.end);
    }

    /// A shared piece counts with what was dropped from it and with the room it may have grown.
    fn weight(&self) -> usize {
        let octets = (self.held() as usize).saturating_add(self.skip).saturating_mul(2);
        let pieces = self.pieces.capacity() * size_of::<Piece>() + self.pieces.len() * PIECE_BYTES;
        octets.saturating_add(pieces)
    }
}

/// Appends octets to a piece without leaving a copy behind where the piece has to move.
fn append(piece: &mut Arc<Zeroizing<Vec<u8>>>, octets: &[u8]) {
    if let Some(own) = Arc::get_mut(piece)
        && own.capacity() - own.len() >= octets.len()
    {
        return own.extend_from_slice(octets);
    }
    let length = piece.len() + octets.len();
    let room = length.next_power_of_two().clamp(length, PIECE_OCTETS_MAX.max(length));
    let mut grown = Zeroizing::new(Vec::with_capacity(room));
    grown.extend_from_slice(piece);
    grown.extend_from_slice(octets);
    *piece = Arc::new(grown);
}

fn flush(keys: &mut Zeroizing<Vec<u8>>, out: &mut Vec<u8>) {
    if !keys.is_empty() {
        write_user(UserEvent::Keys(keys), out);
        keys.clear();
    }
}

impl PartialEq for Input {
    fn eq(&self, other: &Self) -> bool {
        if self.end != other.end {
            return false;
        }
        let start = self.start.max(other.start);
        let (mut a, mut b) = (self.since(start), other.since(start));
        loop {
            match (a.peek(), b.peek()) {
                (None, None) => return true,
                (Some(Event::Keys(x)), Some(Event::Keys(y))) => {
                    let both = x.len().min(y.len());
                    // Sharing makes the usual comparison one of addresses.
                    if x.as_ptr() != y.as_ptr() && x[..both] != y[..both] {
                        return false;
                    }
                    a.advance(both as u64);
                    b.advance(both as u64);
                }
                (Some(x), Some(y)) if x == y => {
                    a.advance(1);
                    b.advance(1);
                }
                _ => return false,
            }
        }
    }
}

/// Without the octets, among which are passwords.
impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input")
            .field("start", &self.start)
            .field("end", &self.end)
            .field("resizes", &self.resizes)
            .finish_non_exhaustive()
    }
}

/// The events after some position of an [`Input`], oldest first.
#[derive(Clone, Debug)]
pub struct Since<'a> {
    input: &'a Input,
    piece: usize,
    /// Octets of that piece already passed.
    skip: usize,
}

impl<'a> Since<'a> {
    fn peek(&self) -> Option<Event<'a>> {
        Some(match self.input.pieces.get(self.piece)? {
            Piece::Keys(octets) => Event::Keys(&octets[self.skip..]),
            Piece::Resize(size) => Event::Resize(*size),
            Piece::TerminalProperties(around) => Event::TerminalProperties(around),
            Piece::Leaving => Event::Leaving,
            Piece::LinesWanted(wanted) => Event::LinesWanted(*wanted),
        })
    }

    fn advance(&mut self, mut count: u64) {
        while let Some(piece) = self.input.pieces.get(self.piece)
            && count > 0
        {
            let held = piece.len() - self.skip;
            if count < held as u64 {
                self.skip += count as usize;
                return;
            }
            count -= held as u64;
            self.piece += 1;
            self.skip = 0;
        }
    }
}

impl<'a> Iterator for Since<'a> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        let event = self.peek()?;
        self.piece += 1;
        self.skip = 0;
        Some(event)
    }
}

impl Piece {
    /// What it adds to a position, never 0.
    fn len(&self) -> usize {
        match self {
            Self::Keys(octets) => octets.len(),
            Self::Resize(_)
            | Self::TerminalProperties(_)
            | Self::Leaving
            | Self::LinesWanted(_) => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use rove_ssp::state::laws;

    use super::*;

    fn size(rows: u16, cols: u16) -> Size {
        Size::clamped(rows, cols)
    }

    /// `typed` with `#` as a change of size.
    fn typed(input: &Input, typed: &str) -> Input {
        let mut input = input.clone();
        for (index, keys) in typed.split('#').enumerate() {
            if index > 0 {
                input.push_resize(size(24, index as u16));
            }
            input.push_keys(keys.as_bytes());
        }
        input
    }

    #[test]
    fn the_laws_hold() {
        let long = "x".repeat(3 * PIECE_OCTETS_MAX);
        let paste = format!("{long}#{long}##{long}");
        for (first, then) in [
            ("", &paste[..]),
            ("ab#c", &paste),
            ("", ""),
            ("", "a"),
            ("", "#"),
            ("abc", ""),
            ("abc", "def"),
            ("abc#", "#d#"),
            ("#", "##"),
            (&long, "a"),
            ("a", &long),
            (&long, &long),
            ("ab", &format!("{long}#{long}")),
        ] {
            let a = typed(&Input::default(), first);
            laws(&a, &typed(&a, then));
        }
    }

    #[test]
    fn properties_are_events_like_resizes() {
        let around =
            |cell| TerminalProperties { cell: Some(cell), ..TerminalProperties::default() };
        let start = typed(&Input::default(), "ab#");
        let mut told = start.clone();
        told.push_properties(around((9, 18)));
        let mut other = start.clone();
        other.push_properties(around((8, 16)));
        assert_ne!(told, other);
        assert_eq!((told.held(), told.resizes()), (4, 2));
        laws(&start, &told);
        let mut then = typed(&told, "cd#");
        then.push_properties(around((8, 16)));
        laws(&told, &then);
        then.subtract(&told);
        assert_eq!((then.held(), then.resizes()), (4, 2));
    }

    #[test]
    fn a_secret_goes_with_its_acknowledgment() {
        let (mut before, mut input) = (Input::default(), Input::default());
        before.push_keys(b"ls\r");
        input.push_keys(b"ls\r");
        input.push_secret(b"secret\r");
        let known = input.clone();
        input.push_keys(b"x");
        laws(&before, &input);
        let Some(Piece::Keys(secret)) = input.pieces.get(1).cloned() else { panic!("no piece") };
        assert_eq!(***secret, *b"secret\r");
        drop(before);
        input.subtract(&known);
        drop(known);
        assert_eq!((input.held(), Arc::strong_count(&secret)), (1, 1), "nobody holds it");
    }

    #[test]
    fn grouping_means_nothing() {
        let mut whole = Input::default();
        whole.push_keys(&b"0123456789".repeat(1000));
        let mut single = Input::default();
        for octet in b"0123456789".repeat(1000) {
            single.push_keys(&[octet]);
        }
        assert_eq!(whole, single);
        let (mut a, mut b) = (Vec::new(), Vec::new());
        whole.diff_from(&Input::default(), &mut a);
        single.diff_from(&Input::default(), &mut b);
        assert_eq!(a, b);
        single.push_resize(size(24, 80));
        assert_ne!(whole, single);
        whole.push_resize(size(24, 81));
        assert_ne!(whole, single);
    }

    #[test]
    fn a_dropped_prefix_is_gone_and_the_rest_stays() {
        let long = "x".repeat(PIECE_OCTETS_MAX + 100);
        let mut input = typed(&Input::default(), &format!("ab#{long}#yz"));
        let full = input.clone();
        for cut in ["", "a", "ab", "ab#", "ab#x", &format!("ab#{long}"), &format!("ab#{long}#y")] {
            let known = typed(&Input::default(), cut);
            input.subtract(&known);
            assert_eq!(input.held(), full.end() - known.end(), "{cut}");
            assert_eq!(input, full, "{cut}");
            let rest = full.since(known.end()).collect::<Vec<_>>();
            assert_eq!(input.since(known.end()).collect::<Vec<_>>(), rest, "{cut}");
            // Asked for more than there still is, it gives what there is.
            assert_eq!(input.since(0).collect::<Vec<_>>(), rest, "{cut}");
        }
        assert_eq!(input.resizes(), 0);
        input.subtract(&full);
        assert_eq!((input.held(), input.since(0).count()), (0, 0));
    }

    #[test]
    fn copies_are_cheap_and_apart() {
        let mut input = typed(&Input::default(), &"x".repeat(1 << 20));
        let copies = vec![input.clone(); 32];
        input.push_keys(b"y");
        assert!(copies.iter().all(|copy| *copy != input));
        let shared = input.pieces.iter().zip(&copies[0].pieces).filter(|pair| match pair {
            (Piece::Keys(a), Piece::Keys(b)) => Arc::ptr_eq(a, b),
            _ => false,
        });
        assert_eq!(shared.count(), (1 << 20) / PIECE_OCTETS_MAX);
    }

    #[test]
    fn a_size_of_zero_is_skipped() {
        let mut diff = Vec::new();
        for (width, height) in [(0, 0), (-1, 24), (80, 0), (80, 24)] {
            let dimensions = crate::messages::Dimensions { width, height };
            write_user(UserEvent::Resize(dimensions), &mut diff);
        }
        let mut input = Input::default();
        assert_eq!(input.apply(&diff), Ok(()));
        assert_eq!(input.since(0).collect::<Vec<_>>(), [Event::Resize(size(24, 80))]);
        assert_eq!(input.ignored(), 3);
    }
}
