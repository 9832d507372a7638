//! Tracks which sent states contain all input typed before them. A long paste is sent in partial
//! states; keys typed after it are in none of those, which is what the predictor is told.

use alloc::collections::VecDeque;

use rove_ssp::{Endpoint, StateNum};

use crate::input::Input;
use crate::predict::Observation;
use crate::view::View;

/// Which sent states are parts.
#[derive(Clone, Debug, Default)]
pub(crate) struct PartialStates {
    /// The last state sent.
    last: StateNum,
    /// Runs of parts, oldest first: the last state before one that is whole, and the last of the run.
    runs: VecDeque<(StateNum, StateNum)>,
}

/// Runs that are told apart: each is a paste of more than 64 datagrams. Beyond it two count as one, and what
/// was typed between them as late.
const RUNS_MAX: usize = 16;

impl PartialStates {
    /// The last state sent is this one, and holds all that was typed. Asked twice of one, only the first
    /// answer counts.
    pub(crate) fn sent_whole(&mut self, num: StateNum) {
        self.last = num;
    }

    /// The last state sent is this one, and holds a part of what was typed.
    pub(crate) fn sent_part(&mut self, num: StateNum) {
        let before = core::mem::replace(&mut self.last, num);
        if before == num {
            return;
        }
        let full = self.runs.len() >= RUNS_MAX;
        match self.runs.back_mut() {
            Some(run) if run.1 == before || full => run.1 = num,
            _ => self.runs.push_back((before, num)),
        }
    }

    /// Nothing before this state is asked about again.
    pub(crate) fn forget(&mut self, num: StateNum) {
        while self.runs.front().is_some_and(|run| run.1 < num) {
            self.runs.pop_front();
        }
    }

    /// The newest state up to this one that is whole.
    pub(crate) fn whole(&self, num: StateNum) -> StateNum {
        let within = |run: &&(StateNum, StateNum)| run.0 < num && num <= run.1;
        self.runs.iter().find(within).map_or(num, |run| run.0)
    }
}

/// What the predictor sees of the session.
pub(crate) fn observe<'a>(
    endpoint: &'a Endpoint<Input, View>,
    parts: &PartialStates,
) -> Observation<'a> {
    let view = endpoint.remote();
    Observation {
        screen: view.screen(),
        echo_ack: parts.whole(view.echo_ack()),
        sent: parts.whole(endpoint.sent_num()),
        interval: endpoint.send_interval(),
        line: view.line(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wholes(parts: &PartialStates, nums: std::ops::RangeInclusive<u64>) -> Vec<u64> {
        nums.map(|num| parts.whole(num.into()).get()).collect()
    }

    #[test]
    fn parts_stand_for_what_was_whole_before() {
        let mut parts = PartialStates::default();
        for num in 1..=9_u64 {
            match num {
                3 | 4 | 8 => parts.sent_part(num.into()),
                _ => parts.sent_whole(num.into()),
            }
            // Asked again when more was typed, or less awaits: what it was when it went out counts.
            parts.sent_part(num.into());
            parts.sent_whole(num.into());
        }
        assert_eq!(wholes(&parts, 1..=10), [1, 2, 2, 2, 5, 6, 7, 7, 9, 10]);
        parts.forget(5.into());
        assert_eq!(wholes(&parts, 5..=9), [5, 6, 7, 7, 9]);
    }

    #[test]
    fn many_runs_become_one() {
        let mut parts = PartialStates::default();
        for num in (2..=80_u64).step_by(2) {
            parts.sent_part(num.into());
            parts.sent_whole((num + 1).into());
        }
        assert_eq!(parts.runs.len(), RUNS_MAX);
        assert_eq!(wholes(&parts, 30..=33), [29, 31, 31, 31], "nothing counts too early");
        assert_eq!(wholes(&parts, 80..=81), [31, 81]);
    }
}
