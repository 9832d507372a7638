//! Takes rare branches more often, at named points and by a seed, so that a simulation comes across them. Only with the
//! feature `buggify`, which no release has: without it no point is ever taken, and the compiler drops the branches.

#[cfg(feature = "buggify")]
use crate::rng::Rng;

/// A point at which a machine may do what it seldom does. The peer must bear each.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Point {
    /// A state of the peer is refused, as if too many were held.
    StateRefused,
    /// A state that came after a newer one is dropped, although a diff may start from it.
    BaseDropped,
    /// The newest state sent is repeated before its timeout.
    SpuriousTimeout,
    /// A change does not wait for others.
    CollectionCut,
    /// A datagram that searches for the path's length is damaged.
    ProbeLost,
    /// Keys move on as soon as they may.
    KeyPhaseEarly,
    /// The screen's budget is spent.
    FrameRefused,
}

impl Point {
    /// All of them.
    pub const ALL: [Point; 7] = [
        Point::StateRefused,
        Point::BaseDropped,
        Point::SpuriousTimeout,
        Point::CollectionCut,
        Point::ProbeLost,
        Point::KeyPhaseEarly,
        Point::FrameRefused,
    ];
}

/// Whether a point is taken, each time it is reached.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buggify {
    #[cfg(feature = "buggify")]
    rng: Option<Rng>,
}

impl Buggify {
    /// From now on points are taken by this seed.
    pub(crate) fn seed(&mut self, seed: u64) {
        #[cfg(feature = "buggify")]
        {
            self.rng = Some(Rng::new(seed));
        }
        let _ = seed;
    }

    /// Whether to do what is seldom done.
    pub(crate) fn takes(&mut self, point: Point) -> bool {
        #[cfg(feature = "buggify")]
        {
            self.rng.as_mut().is_some_and(|rng| rng.below(one_in(point)) == 0)
        }
        #[cfg(not(feature = "buggify"))]
        {
            let _ = point;
            false
        }
    }
}

/// Often enough for each point in a session of minutes, and too seldom to be what a session is about.
#[cfg(feature = "buggify")]
fn one_in(point: Point) -> u32 {
    match point {
        // A session sends few probes.
        Point::ProbeLost => 3,
        _ => 64,
    }
}
