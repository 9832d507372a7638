//! Receives one direction of a channel: puts blocks that arrive in any order back into a stream,
//! and holds no more than the window it granted.

use std::collections::{BTreeMap, VecDeque};
use std::task::Waker;
use std::time::Duration;

use super::types::{INITIAL_WINDOW, Pulse, Violation};

/// The largest piece of memory, in octets.
const PIECE_BYTES: usize = 64 << 10;

/// Runs of octets that lie apart. Each stream of a connection makes at most one, and a sender works
/// at one stream of a channel at a time, while those before it are on their way.
const RUNS_MAX: usize = 256;

/// The largest window of one channel: 400 Mbit/s at 600 ms, or at 150 ms while losses are repaired.
pub(super) const WINDOW_MAX: u64 = 32 << 20;

/// One direction of a channel, at its receiver.
#[derive(Debug)]
pub(super) struct Receiving {
    /// Octets in order, from `read` on.
    ready: Run,
    read: u64,
    /// Octets beyond a gap, by their place.
    later: BTreeMap<u64, Run>,
    /// The end of the furthest octet received.
    highest: u64,
    pub window: u64,
    /// When the current round trip began, and `highest` at that time.
    trip_began: Duration,
    trip_from: u64,
    /// The `received` and `limit` last sent to the peer.
    told_received: u64,
    pub told_limit: u64,
    /// The length of the whole direction, once the peer has sent it.
    end: Option<u64>,
    /// The peer gave this direction up, or does not know the channel.
    pub broken: bool,
    /// The program reads no more.
    pub stopped: bool,
    /// The peer knows that nothing is missing. Nothing more comes.
    pub done: bool,
    /// The program's task that waits to read.
    pub reader: Option<Waker>,
}

/// How urgently to tell the peer how far we are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Announced {
    Nothing,
    Sometime,
    Now,
}

impl Receiving {
    pub(super) fn new() -> Receiving {
        Receiving {
            ready: Run::default(),
            read: 0,
            later: BTreeMap::new(),
            highest: 0,
            window: INITIAL_WINDOW,
            trip_began: Duration::ZERO,
            trip_from: 0,
            told_received: 0,
            told_limit: INITIAL_WINDOW,
            end: None,
            broken: false,
            stopped: false,
            done: false,
            reader: None,
        }
    }

    fn received(&self) -> u64 {
        self.read + self.ready.len as u64
    }

    /// Whether every octet has arrived.
    pub(super) fn is_complete(&self) -> bool {
        self.broken || self.end == Some(self.received())
    }

    /// Whether the program has read everything.
    pub(super) fn is_drained(&self) -> bool {
        self.end == Some(self.read)
    }

    /// Octets that the program can read at once.
    pub(super) fn ready(&self) -> usize {
        self.ready.len
    }

    /// Called before octets are received: starts the next round trip if the last one is over.
    pub(super) fn begin_trip(&mut self, pulse: Pulse) {
        if pulse.at.saturating_sub(self.trip_began) >= pulse.round_trip {
            self.trip_began = pulse.at;
            self.trip_from = self.highest;
        }
    }

    /// Takes octets from a connection.
    pub(super) fn receive(&mut self, offset: u64, mut octets: &[u8]) -> Result<(), Violation> {
        let end = offset.saturating_add(octets.len() as u64);
        // These checks come first: octets of a direction that was given up must keep
        // the limits as well.
        if end > self.told_limit {
            return Err(Violation::BeyondWindow);
        }
        if self.end.is_some_and(|last| end > last) {
            return Err(Violation::BeyondEnd);
        }
        if self.broken {
            return Ok(());
        }
        if self.stopped {
            // It is only counted, so that the end is known.
            octets = &[];
        }
        self.highest = self.highest.max(end);
        let received = self.received();
        // Octets come again if the WINDOW that acknowledged them died with its connection.
        let known = usize::try_from(received.saturating_sub(offset)).unwrap_or(usize::MAX);
        let Some(fresh) = octets.get(known..).filter(|fresh| !fresh.is_empty()) else {
            return Ok(());
        };
        let offset = offset.max(received);
        if offset > received {
            return self.keep_for_later(offset, fresh);
        }
        self.ready.push(fresh);
        while let Some(first) = self.later.first_entry() {
            let received = self.read + self.ready.len as u64;
            match first.key().cmp(&received) {
                std::cmp::Ordering::Greater => break,
                // A sender sends each octet once on a connection, and `rewind` forgets
                // `later` between two.
                std::cmp::Ordering::Less => return Err(Violation::Overlap),
                std::cmp::Ordering::Equal => self.ready.append(first.remove()),
            }
        }
        self.wake();
        Ok(())
    }

    fn keep_for_later(&mut self, offset: u64, octets: &[u8]) -> Result<(), Violation> {
        let end = offset + octets.len() as u64;
        let next = self.later.range(offset..).next().map(|(start, _)| *start);
        if next.is_some_and(|start| start < end) {
            return Err(Violation::Overlap);
        }
        if let Some((start, run)) = self.later.range_mut(..offset).next_back() {
            match (start + run.len as u64).cmp(&offset) {
                std::cmp::Ordering::Greater => return Err(Violation::Overlap),
                // The chunks of a block come in order, and each extends its run. Else each chunk
                // would count as a run.
                std::cmp::Ordering::Equal => {
                    run.push(octets);
                    return Ok(());
                }
                std::cmp::Ordering::Less => {}
            }
        }
        if self.later.len() == RUNS_MAX {
            return Err(Violation::Gaps);
        }
        let mut run = Run::default();
        run.push(octets);
        self.later.insert(offset, run);
        Ok(())
    }

    /// The peer's direction ends at `end`.
    pub(super) fn finish(&mut self, end: u64) -> Result<(), Violation> {
        if self.end.is_some_and(|known| known != end) || end < self.highest {
            return Err(Violation::BeyondEnd);
        }
        self.end = Some(end);
        self.wake();
        Ok(())
    }

    /// No more octets will come, and no end.
    pub(super) fn break_off(&mut self) {
        self.broken = true;
        // The gap before these octets never fills. `ready` stays, as the program may read it.
        self.later.clear();
        self.wake();
    }

    /// The program reads no more.
    pub(super) fn stop(&mut self) {
        self.stopped = true;
        // The length stays, because `received` counts from it.
        self.ready = Run { len: self.ready.len, ..Run::default() };
        self.later.clear();
    }

    /// Copies octets out, in order, and returns how many.
    pub(super) fn read(&mut self, out: &mut [u8]) -> usize {
        let count = self.ready.take(out);
        self.read += count as u64;
        count
    }

    /// Forgets octets beyond a gap: the peer sends them again on a new connection.
    pub(super) fn rewind(&mut self) {
        self.later.clear();
        self.highest = self.received();
        // `Pulse::at` begins at zero on each connection.
        (self.trip_began, self.trip_from) = (Duration::ZERO, self.highest);
    }

    /// Returns, and notes as told, the octets received and the limit granted.
    pub(super) fn tell(&mut self) -> (u64, u64) {
        self.told_received = self.received();
        self.told_limit = self.told_limit.max(self.read + self.window);
        (self.told_received, self.told_limit)
    }

    /// Whether more octets have arrived than the peer was told.
    pub(super) fn is_told_less(&self) -> bool {
        self.told_received < self.received()
    }

    /// The last word to the peer, which may hold nothing before that, and all that follows.
    pub(super) fn tell_again(&self) -> (u64, u64) {
        (self.told_received, self.told_limit)
    }

    /// Whether the limit would grow by more than one octet.
    pub(super) fn opens(&self) -> bool {
        self.read + self.window > self.told_limit + 1
    }

    /// As [`tell`](Self::tell), with a limit that has grown by one octet alone. It is there when [`opens`](Self::opens) holds.
    pub(super) fn tell_little(&mut self) -> (u64, u64) {
        self.told_received = self.received();
        self.told_limit += 1;
        (self.told_received, self.told_limit)
    }

    pub(super) fn telling(&self) -> Announced {
        if self.stopped || self.is_complete() {
            return Announced::Nothing;
        }
        let quarter = self.window / 4;
        let news = self.received() - self.told_received;
        let more = (self.read + self.window).saturating_sub(self.told_limit);
        if more >= quarter || news >= quarter.min(ACK_BYTES) {
            Announced::Now
        } else if news > 0 {
            Announced::Sometime
        } else {
            Announced::Nothing
        }
    }

    /// Whether our window may soon limit the sender: a quarter of it arrived within a round trip, and the
    /// program keeps up. The rest is room for octets in flight, for as many again while a loss is repaired,
    /// and for a sender that doubles. The distance of the sender from the limit does not show this: a prompt
    /// reader moves the limit before the sender learns of it.
    pub(super) fn wants_window(&self) -> bool {
        self.window < WINDOW_MAX
            && self.highest.saturating_sub(self.trip_from) >= self.window / 4
            && (self.ready.len as u64) < self.window / 2
    }

    pub(super) fn wake(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

/// Octets after which a sender that waits for room gets an acknowledgment, at the latest.
const ACK_BYTES: u64 = 512 << 10;

/// Octets in order, in pieces of memory at least about half full, so that a peer that cuts its data finely
/// makes us hold no more than it sent.
#[derive(Debug, Default)]
struct Run {
    pieces: VecDeque<Vec<u8>>,
    /// Octets already taken from the first piece.
    skip: usize,
    len: usize,
}

impl Run {
    fn push(&mut self, mut octets: &[u8]) {
        while !octets.is_empty() {
            let room = self.pieces.back().map_or(0, |last| PIECE_BYTES - last.len());
            if room == 0 {
                // Hundreds of channels that carry a few octets each must not cost 64 KiB apiece.
                let capacity = if self.len < PIECE_BYTES { octets.len() } else { PIECE_BYTES };
                self.pieces.push_back(Vec::with_capacity(capacity.min(PIECE_BYTES)));
                continue;
            }
            let (fits, rest) = octets.split_at(room.min(octets.len()));
            self.pieces.back_mut().expect("it has room").extend_from_slice(fits);
            self.len += fits.len();
            octets = rest;
        }
    }

    fn append(&mut self, other: Run) {
        // Small ones are copied together, so that no piece of memory holds but a few octets.
        if other.len < PIECE_BYTES {
            other.pieces.iter().for_each(|piece| self.push(piece));
        } else {
            self.len += other.len;
            self.pieces.extend(other.pieces);
        }
    }

    fn take(&mut self, out: &mut [u8]) -> usize {
        let mut count = 0;
        while let Some(first) = self.pieces.front().filter(|_| count < out.len()) {
            let unread = &first[self.skip..];
            let len = unread.len().min(out.len() - count);
            out[count..count + len].copy_from_slice(&unread[..len]);
            count += len;
            self.skip += len;
            if self.skip == first.len() {
                self.pieces.pop_front();
                self.skip = 0;
            }
        }
        self.len -= count;
        count
    }
}
