//! When a datagram that we sent is lost (RFC 9002 §6.1). It must not know what follows from that.

use core::time::Duration;

use crate::recovery::rtt::RttEstimator;
use crate::wire::{Report, Seq};

/// A datagram is lost once this many newer ones have arrived (RFC 9002 §6.1.1, kPacketThreshold).
pub(crate) const REORDER_THRESHOLD: u64 = 3;
/// What a peer's acknowledgments may be late by without any queue: ours are within 10 ms.
const DELAY_MIN: Duration = Duration::from_millis(10);

/// How old a datagram that others have overtaken may become. The 9/8 of a round trip of RFC 9002 §6.1.2 lie within
/// what a short queue of our own adds and takes away: over 256 kbit/s with 4 kB of queue they sent a fifth more,
/// all of it dropped. Four deviations, as in its probe timeout (§6.2.1), do not.
pub(crate) fn loss_delay(rtt: &RttEstimator) -> Duration {
    rtt.srtt() + (4 * rtt.rttvar()).max(DELAY_MIN)
}

/// Whether a datagram of this age that the peer has not reported is lost. `overtaken_by` counts from it to the
/// newest on its path that the peer has reported.
pub(crate) fn is_lost(overtaken_by: u64, age: Duration, loss_delay: Duration) -> bool {
    // Time alone declares no loss: if nothing newer arrived, perhaps nothing arrives at all, and a probe
    // timeout finds that out.
    overtaken_by >= REORDER_THRESHOLD || overtaken_by > 0 && age >= loss_delay
}

/// Whether a report says that this one came. Of one that is too old to be told of it says nothing.
pub(crate) fn reports(report: &Report, seq: Seq) -> bool {
    match report.newest.get().checked_sub(seq.get()) {
        None => false,
        Some(0) => true,
        Some(back) => back <= Report::SPAN && report.received >> (back - 1) & 1 == 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::Timing;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn what_is_overtaken_is_lost_in_time() {
        // How many newer ones arrived, age in ms; with a round trip of 80 ms.
        for (overtaken_by, age, lost) in [
            (0, 10_000, false),
            (1, 89, false),
            (1, 90, true),
            (2, 89, false),
            (3, 0, true),
            (1000, 0, true),
        ] {
            assert_eq!(is_lost(overtaken_by, ms(age), ms(90)), lost, "{overtaken_by} {age}");
        }
    }

    #[test]
    fn what_varies_is_waited_for_longer() {
        for (samples, delay) in
            [(&[][..], 3_000), (&[80], 240), (&[80; 40], 90), (&[80, 160], 290), (&[160, 80], 470)]
        {
            let mut rtt = RttEstimator::new(&Timing::ROVE);
            samples.iter().for_each(|&sample| rtt.sample(ms(sample)));
            assert_eq!(loss_delay(&rtt).as_millis(), delay, "{samples:?}");
        }
    }

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
