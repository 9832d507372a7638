//! Points at which the ends of a copy take rare branches more often, by a seed, in simulations: see
//! `rove_streams::buggify`.

use rove_streams::buggify::Choices;

/// A point at which an end may do what it seldom does. The other end must bear each.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Point {
    /// A piece that arrives is cut at an odd place.
    PieceCut,
    /// The other end is taken for silent.
    Silence,
    /// Messages do not wait for others.
    FlushEarly,
    /// A block of a file ends early.
    BlockCut,
    /// The hashes of a file's beginnings end early, as of one that has become shorter.
    MarksCut,
    /// A file is sent from its beginning, as one that has changed since its hashes were told.
    BeginningSent,
    /// A file is wanted from its beginning, although the hash of more of it is right.
    BeginningWanted,
    /// The lock of a part is found taken.
    LockBusy,
    /// A part is found to have changed while its lock was waited for.
    PartDisturbed,
}

impl Point {
    /// All of them.
    pub const ALL: [Point; 9] = [
        Point::PieceCut,
        Point::Silence,
        Point::FlushEarly,
        Point::BlockCut,
        Point::MarksCut,
        Point::BeginningSent,
        Point::BeginningWanted,
        Point::LockBusy,
        Point::PartDisturbed,
    ];

    /// Seldom enough for most files of a copy to be copied as ever.
    fn one_in(self) -> u64 {
        match self {
            Point::PieceCut | Point::BlockCut => 8,
            // Few files have a part.
            Point::MarksCut
            | Point::BeginningSent
            | Point::BeginningWanted
            | Point::PartDisturbed => 4,
            Point::Silence | Point::FlushEarly | Point::LockBusy => 32,
        }
    }
}

/// Whether points of a copy are taken, each time one is reached. Clones share the choices.
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
