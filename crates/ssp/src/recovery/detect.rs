//! What a peer's report says of one datagram (RFC 9002 §6.1). It must not know what follows from that.

use crate::wire::{Report, Seq};

/// So many newer ones that arrived say that one is lost.
pub(crate) const REORDER_THRESHOLD: u64 = 3;

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
