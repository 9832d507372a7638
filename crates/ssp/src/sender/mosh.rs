//! When and what stock mosh sends (`mosh-protocol.md` §4.2). The end of a session goes so under every policy.

use alloc::vec::Vec;

use super::{DIFF_BYTES_MAX, Number, Sender};
use crate::instruction::Instruction;
use crate::recovery::rtt::RttEstimator;
use crate::state::State;
use crate::stats::Stats;
use crate::time::Time;

impl<L: State> Sender<L> {
    pub(super) fn poll_mosh(
        &mut self,
        now: Time,
        rtt: &RttEstimator,
        stats: &mut Stats,
    ) -> Option<Instruction> {
        let ack_due = self.ack_at(rtt).is_some_and(|at| at <= now);
        if !ack_due && self.data_at(rtt).is_none_or(|at| at > now) {
            return None;
        }

        let (base, diff) = self.choose(now, rtt);
        stats.from_assumed += u64::from(base > 0 && !diff.is_empty());
        if diff.len() > DIFF_BYTES_MAX {
            stats.diffs_too_long += u64::from(!self.too_long);
            self.too_long = true;
            return ack_due.then(|| self.prepare_nothing(now, stats));
        }
        if diff.is_empty() {
            self.adopt(base);
        }
        if diff.is_empty()
            && self.history.last().current
            && self.data_at(rtt).is_none_or(|at| at > now)
        {
            if !ack_due {
                return None;
            }
            stats.acks_sent += 1;
            return Some(self.send(now, base, diff, Number::New));
        }
        if self.history.last().current {
            stats.resends += 1;
            return Some(self.send(now, base, diff, Number::Last));
        }
        stats.states_sent += 1;
        Some(self.send(now, base, diff, Number::New))
    }

    /// The place of the state to start from, and the diff from it.
    pub(super) fn choose(&mut self, now: Time, rtt: &RttEstimator) -> (usize, Vec<u8>) {
        let assumed = match self.refused {
            true => 0,
            false => self.history.assumed(now, self.probe_timeout(rtt)),
        };
        self.history.choose(assumed, self.loss, &mut self.rng)
    }

    /// An instruction that makes a new state equal to the known one, to say that we are there.
    pub(super) fn prepare_nothing(&mut self, now: Time, stats: &mut Stats) -> Instruction {
        stats.acks_sent += 1;
        let message = self.send(now, 0, Vec::new(), Number::New);
        self.history.record_nothing();
        message
    }
}
