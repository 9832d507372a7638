//! One direction of a channel at its receiver: puts blocks that arrive in any order back into a
//! stream. It holds no more than the window it granted.

use std::collections::{BTreeMap, VecDeque};
use std::task::Waker;
use std::time::Duration;

use super::types::{INITIAL_WINDOW, Pulse, Violation};

/// Octets in one piece of memory, at most.
const PIECE_BYTES: usize = 64 << 10;

/// Runs of octets that lie apart. Each stream of a connection makes at most one, and a sender works
/// at one stream of a channel at a time, while those before it are on their way.
const RUNS_MAX: usize = 256;

/// The largest window of one channel: 400 Mbit/s at 600 ms, or at 150 ms while losses are repaired.
pub(super) const WINDOW_MAX: u64 = 32 << 20;

/// See the module.
#[derive(Debug)]
pub(super) struct Receiving {
    /// In order, from `read` on.
    ready: Run,
    read: u64,
    /// What lies beyond a gap, by its place.
    later: BTreeMap<u64, Run>,
    /// The end of all that has come.
    highest: u64,
    pub window: u64,
    /// When the round trip that is being looked at began, and the end of all that had come then.
    trip_began: Duration,
    trip_from: u64,
    /// What the peer was told.
    told_received: u64,
    pub told_limit: u64,
    /// How many octets there are in all, once it is known.
    end: Option<u64>,
    /// The peer gave it up, or knows nothing of it.
    pub broken: bool,
    /// The program wants no more of it.
    pub stopped: bool,
    /// The peer was told that nothing is missing. Nothing more comes.
    pub done: bool,
    /// Whoever waits to read.
    pub reader: Option<Waker>,
}

/// How urgently the peer should be told how far we are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Announced {
    Nothing,
    Sometime,
    Now,
}

impl Receiving {
    pub fn new() -> Receiving {
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

    /// Whether all has come that will.
    pub fn is_complete(&self) -> bool {
        self.broken || self.end == Some(self.received())
    }

    /// Whether the program has had everything.
    pub fn is_drained(&self) -> bool {
        self.end == Some(self.read)
    }

    /// Octets that wait to be read.
    pub fn ready(&self) -> usize {
        self.ready.len
    }

    /// Octets are about to come at this time: a round trip that is over gives way to the next.
    pub fn begin_trip(&mut self, pulse: Pulse) {
        if pulse.at.saturating_sub(self.trip_began) >= pulse.round_trip {
            self.trip_began = pulse.at;
            self.trip_from = self.highest;
        }
    }

    /// Takes octets from a connection.
    pub fn receive(&mut self, offset: u64, mut octets: &[u8]) -> Result<(), Violation> {
        let end = offset.saturating_add(octets.len() as u64);
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

    /// The peer's direction ends here.
    pub fn finish(&mut self, end: u64) -> Result<(), Violation> {
        if self.end.is_some_and(|known| known != end) || end < self.highest {
            return Err(Violation::BeyondEnd);
        }
        self.end = Some(end);
        self.wake();
        Ok(())
    }

    /// There will be no more, and no end.
    pub fn break_off(&mut self) {
        self.broken = true;
        self.later.clear();
        self.wake();
    }

    /// The program wants no more.
    pub fn stop(&mut self) {
        self.stopped = true;
        self.ready = Run { len: self.ready.len, ..Run::default() };
        self.later.clear();
    }

    /// Copies octets out, in order. Returns how many.
    pub fn read(&mut self, out: &mut [u8]) -> usize {
        let count = self.ready.take(out);
        self.read += count as u64;
        count
    }

    /// What lies beyond a gap comes again on a new connection.
    pub fn rewind(&mut self) {
        self.later.clear();
        self.highest = self.received();
        (self.trip_began, self.trip_from) = (Duration::ZERO, self.highest);
    }

    /// Takes note of what the peer is told now: what has come, and what may.
    pub fn tell(&mut self) -> (u64, u64) {
        self.told_received = self.received();
        self.told_limit = self.told_limit.max(self.read + self.window);
        (self.told_received, self.told_limit)
    }

    pub fn telling(&self) -> Announced {
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

    /// Whether our window may come to hold the sender back: a quarter of it has come within a round trip, so
    /// that there is room for what is on its way, for as much again while a loss is repaired, and for a sender
    /// that doubles; and the program takes what comes. How near the sender is to the limit says nothing: a
    /// prompt reader moves it on before the sender hears of it.
    pub fn wants_window(&self) -> bool {
        self.window < WINDOW_MAX
            && self.highest.saturating_sub(self.trip_from) >= self.window / 4
            && (self.ready.len as u64) < self.window / 2
    }

    pub fn wake(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

/// A sender that waits for room is told of arrivals at least this often.
const ACK_BYTES: u64 = 512 << 10;

/// Octets in order, in pieces of memory that they fill at least by half, or nearly so: what a peer makes
/// us hold is what it sent, however finely it cut it.
#[derive(Debug, Default)]
struct Run {
    pieces: VecDeque<Vec<u8>>,
    /// Octets of the first piece that were taken.
    skip: usize,
    len: usize,
}

impl Run {
    fn push(&mut self, mut octets: &[u8]) {
        while !octets.is_empty() {
            let room = self.pieces.back().map_or(0, |last| PIECE_BYTES - last.len());
            if room == 0 {
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
