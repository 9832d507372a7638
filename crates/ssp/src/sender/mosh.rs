//! When and what stock mosh sends (`mosh-protocol.md` §4.2). The end of a session goes so under every
//! policy: an end that leaves gains nothing from hurrying. It must not know that there are other policies.

use core::time::Duration;

use crate::instruction::Instruction;
use crate::sender::core::{Core, DIFF_BYTES_MAX, Number};
use crate::state::State;
use crate::stats::Stats;
use crate::time::Time;

/// Stock's rules, with what differs between a session and its end.
pub(crate) struct MoshRules {
    /// When an instruction goes out even if there is nothing new to say.
    pub ack_at: Option<Time>,
    /// The shortest time between two sends.
    pub interval: Duration,
    /// How long a sent state is assumed received without an acknowledgment.
    pub timeout: Duration,
    /// How a new state is numbered, and one that is sent again.
    pub new: Number,
    pub again: Number,
}

impl MoshRules {
    /// When [`poll`](MoshRules::poll) has something to do.
    pub(super) fn wake<L: State>(&self, core: &Core<L>) -> Option<Time> {
        self.data_at(core).into_iter().chain(self.ack_at).min()
    }

    pub(super) fn poll<L: State>(
        &self,
        now: Time,
        core: &mut Core<L>,
        stats: &mut Stats,
    ) -> Option<Instruction> {
        let ack_due = self.ack_at.is_some_and(|at| at <= now);
        if !ack_due && self.data_at(core).is_none_or(|at| at > now) {
            return None;
        }

        let (base, diff) = core.choose(now, self.timeout);
        stats.from_assumed += u64::from(base > 0 && !diff.is_empty());
        if diff.len() > DIFF_BYTES_MAX {
            core.keep_back(stats);
            return ack_due.then(|| core.send_nothing(now, self.new, stats));
        }
        if diff.is_empty() {
            core.adopt(base);
        }
        if diff.is_empty()
            && core.history.last().current
            && self.data_at(core).is_none_or(|at| at > now)
        {
            if !ack_due {
                return None;
            }
            stats.acks_sent += 1;
            return Some(core.send(now, base, diff, self.new));
        }
        if core.history.last().current {
            stats.resends += 1;
            // Stock counts what it sends again as a sign of life, too.
            core.heartbeat = now + core.timing.ack_interval;
            return Some(core.send(now, base, diff, self.again));
        }
        stats.states_sent += 1;
        Some(core.send(now, base, diff, self.new))
    }

    /// When the object itself is a reason to send (§4.2, rule 2), asked as of any later moment: the
    /// assumed state falls back to the first when the oldest unacknowledged one has expired, and no
    /// condition holds again once it has ceased.
    fn data_at<L: State>(&self, core: &Core<L>) -> Option<Time> {
        // Only an acknowledgment or a change can make it shorter.
        if core.too_long {
            return None;
        }
        let frame = core.history.last().last_sent + self.interval;
        if !core.history.last().current {
            return Some(frame.max(core.gathered_at()));
        }
        let retry = if !core.history.first().current {
            let oldest =
                core.history.oldest().expect("the first is not the last, which is the same");
            frame.max(core.gathered_at()).max(oldest.last_sent + self.timeout)
        } else if core.history.is_pending() {
            // The object has changed back. Stock leaves a peer that holds the state between with it
            // until the next keepalive.
            frame.max(core.history.last().last_sent + self.timeout)
        } else {
            return None;
        };
        // A peer that is gone for long is not flooded: keepalives carry the data from then on.
        (retry.since(core.heard) < core.timing.active_retry).then_some(retry)
    }
}
