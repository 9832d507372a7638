//! Takes rare branches more often, at named points and by a seed, so that a simulation comes across them. Only with the
//! feature `buggify`, which no release has: without it no point is ever taken, and the compiler drops the branches.

#[cfg(feature = "buggify")]
use std::sync::{Arc, Mutex, PoisonError};

/// A point at which an end may do what it seldom does. The peer and the programs must bear each.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Point {
    /// Fewer octets are taken from a program than there is room for.
    WriteCut,
    /// A program gets fewer octets than there are.
    ReadCut,
    /// A channel's turn ends early, so that the octets of others go between.
    TurnCut,
    /// Frames leave one by one.
    FramesCut,
    /// An acknowledgment does not wait for others.
    AckEarly,
    /// A window opens by one octet.
    WindowSmall,
    /// A new connection is told less than has arrived, as if a frame had been lost with the one before.
    ResumptionEarlier,
}

impl Point {
    /// All of them.
    pub const ALL: [Point; 7] = [
        Point::WriteCut,
        Point::ReadCut,
        Point::TurnCut,
        Point::FramesCut,
        Point::AckEarly,
        Point::WindowSmall,
        Point::ResumptionEarlier,
    ];

    /// Often enough for each point in a session of minutes, and too seldom to be what a session is about.
    fn one_in(self) -> u64 {
        match self {
            // There are few connections.
            Point::ResumptionEarlier => 2,
            _ => 64,
        }
    }
}

/// Whether points of channels are taken, each time one is reached.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buggify(Choices<{ Point::ALL.len() }>);

impl Buggify {
    pub(crate) fn seeded(seed: u64) -> Buggify {
        Buggify(Choices::seeded(seed))
    }

    /// Whether to do what is seldom done.
    pub(crate) fn takes(&self, point: Point) -> bool {
        self.0.take(point as usize, point.one_in())
    }

    /// This length, or a shorter one, which is not 0.
    pub(crate) fn cut(&self, point: Point, length: usize) -> usize {
        self.0.cut(point as usize, point.one_in(), length)
    }

    pub(crate) fn taken(&self) -> [u64; Point::ALL.len()] {
        self.0.taken()
    }
}

/// Choices by a seed, at points of these numbers, and how often each was taken. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Choices<const POINTS: usize> {
    #[cfg(feature = "buggify")]
    state: Option<Arc<Mutex<State<POINTS>>>>,
}

#[cfg(feature = "buggify")]
#[derive(Debug)]
struct State<const POINTS: usize> {
    random: u64,
    taken: [u64; POINTS],
}

impl<const POINTS: usize> Choices<POINTS> {
    /// Takes points by this seed, in builds with the feature `buggify`; in others none.
    pub fn seeded(seed: u64) -> Choices<POINTS> {
        let _ = seed;
        Choices {
            #[cfg(feature = "buggify")]
            state: Some(Arc::new(Mutex::new(State { random: seed, taken: [0; POINTS] }))),
        }
    }

    /// Decides whether to take this point, with a chance of one in `one_in`.
    pub fn take(&self, point: usize, one_in: u64) -> bool {
        #[cfg(feature = "buggify")]
        if let Some(state) = &self.state {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            let is_taken = state.next().is_multiple_of(one_in);
            state.taken[point] += u64::from(is_taken);
            return is_taken;
        }
        let _ = (point, one_in);
        false
    }

    /// This length, or, if the point is taken and there is a shorter one but 0, such a one.
    pub fn cut(&self, point: usize, one_in: u64, length: usize) -> usize {
        #[cfg(feature = "buggify")]
        if length > 1
            && self.take(point, one_in)
            && let Some(state) = &self.state
        {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            return 1 + (state.next() % (length as u64 - 1)) as usize;
        }
        let _ = (point, one_in);
        length
    }

    /// How often each point was taken.
    pub fn taken(&self) -> [u64; POINTS] {
        #[cfg(feature = "buggify")]
        if let Some(state) = &self.state {
            return state.lock().unwrap_or_else(PoisonError::into_inner).taken;
        }
        [0; POINTS]
    }
}

#[cfg(feature = "buggify")]
impl<const POINTS: usize> State<POINTS> {
    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}
