//! Rare branches of an endpoint and of its owner that a simulation takes by choice.

use super::Endpoint;
use crate::buggify::Point;
use crate::state::State;

impl<L: State, R: State> Endpoint<L, R> {
    /// Takes rare branches by this seed from now on, in builds with the feature `buggify`; in others it does nothing.
    pub fn buggify(&mut self, seed: u64) {
        self.buggify.seed(seed);
    }

    /// Whether to do at this point what is seldom done: never, unless [`buggify`](Self::buggify) was called.
    pub fn takes(&mut self, point: Point) -> bool {
        let taken = self.buggify.takes(point);
        self.stats.buggified[point as usize] += u64::from(taken);
        taken
    }
}
