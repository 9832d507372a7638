//! When a datagram that we sent is lost (RFC 9002 §6.1). It must not know what follows from that.

use core::time::Duration;

use crate::recovery::rtt::RttEstimator;
use crate::wire::{Report, Seq};

/// A datagram is lost once this many newer ones have arrived (RFC 9002 §6.1.1, kPacketThreshold).
pub(crate) const REORDER_THRESHOLD: u64 = 3;
/// The least allowance for variation before a datagram that others overtook is lost (loss-policy §5, 4).
const SLACK_MIN: Duration = Duration::from_millis(10);

/// Whether a report says that this one came. Of one that is too old to be told of it says nothing.
pub(crate) fn reports(report: &Report, seq: Seq) -> bool {
    match report.newest.get().checked_sub(seq.get()) {
        None => false,
        Some(0) => true,
        Some(back) => back <= Report::SPAN && report.received >> (back - 1) & 1 == 1,
    }
}

/// When somebody takes a datagram for lost that the peer has not reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LossRule {
    /// At least this many newer ones have arrived, and no more than that: reports say nothing of older ones.
    pub overtaken: u64,
    pub overtaken_max: u64,
    /// It is late, and any newer one has arrived.
    pub late: Late,
}

/// Whether time alone makes a loss.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Late {
    Never,
    Lost,
}

impl LossRule {
    /// A rule that only counts.
    pub const fn count(overtaken: u64) -> LossRule {
        LossRule { overtaken, overtaken_max: u64::MAX, late: Late::Never }
    }

    /// Whether a datagram of this age is lost after this many newer ones have arrived.
    pub fn is_lost(&self, overtaken: u64, age: Duration, rtt: &RttEstimator) -> bool {
        // Nothing newer arrived: perhaps nothing arrives any more, and that is for a timeout to find.
        if overtaken == 0 {
            return false;
        }
        let late = || age >= rtt.srtt() + SLACK_MIN.max(4 * rtt.rttvar());
        (self.overtaken..=self.overtaken_max).contains(&overtaken)
            || self.late == Late::Lost && late()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_say_what_came() {
        let report =
            Report { newest: Seq::new(200), received: 0b101 | 1 << 120, ..Report::default() };
        for (seq, came) in
            [(201, false), (200, true), (199, true), (198, false), (197, true), (79, false)]
        {
            assert_eq!(reports(&report, Seq::new(seq)), came, "{seq}");
        }
    }
}
