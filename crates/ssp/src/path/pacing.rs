//! How much may be on its way (loss-policy §5, 7), and what changes that. It must not know when anything
//! is worth sending.

use core::time::Duration;

use super::Path;
use crate::state::StateNum;
use crate::time::Time;
use crate::wire::{Report, Seq};

/// A datagram is followed for at least so long.
const EXPIRY_MIN: Duration = Duration::from_secs(1);

impl Path {
    /// A datagram with news of this state went out; an answer is due within `timeout`.
    pub fn on_news_sent(
        &mut self,
        now: Time,
        seq: Seq,
        num: StateNum,
        bytes: usize,
        timeout: Duration,
    ) {
        // Twice the timeout: what has no answer by then was lost, or its answer was.
        let expiry = (2 * timeout).max(EXPIRY_MIN);
        self.congestion.expire(now - expiry);
        self.attribution.on_sent(now, seq, bytes);
        self.congestion.on_sent(now, seq, num, bytes, self.attribution.rate());
    }

    /// A datagram newer than all before came: perhaps with a report, perhaps with a round trip measured.
    pub fn on_newest(&mut self, now: Time, report: Option<&Report>) {
        self.congestion.on_report(now, &self.rtt, report);
        if let Some(report) = report {
            let finding = self.attribution.on_report(now, &self.rtt, report);
            self.congestion.heed(now, &self.rtt, finding);
        }
    }

    /// The peer holds this state.
    pub fn on_state_acked(&mut self, now: Time, num: StateNum) {
        self.congestion.acknowledged(now, &self.rtt, num);
    }

    /// When a new state may go out after one at `last`.
    pub fn send_at(&self, last: Time, timeout: Duration) -> Time {
        self.congestion.send_at(last, &self.rtt, timeout, &self.attribution)
    }

    /// When another datagram of an instruction may go out after one at `last`.
    pub fn send_part_at(&self, last: Time, timeout: Duration) -> Time {
        self.congestion.send_part_at(last, &self.rtt, timeout, &self.attribution)
    }

    /// Whether what is sent beyond need makes things worse.
    pub fn suppresses_redundancy(&self, now: Time) -> bool {
        self.congestion.suppresses_redundancy(now, &self.attribution)
    }
}
