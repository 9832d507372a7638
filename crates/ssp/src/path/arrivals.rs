//! Measures the path by the datagrams that arrive: which numbers are missing, and how long
//! datagrams waited in queues. It must not know what they carry.

use core::time::Duration;

use crate::recovery::queue_delay::QueueDelay;
use crate::stats::DirectionStats;
use crate::time::{Stamp, Time};
use crate::wire::{Report, Seq};

/// Measures the peer's datagrams, so that both ends know what their own direction does to them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrivals {
    /// The newest number, and which of the [`SEEN`] numbers before it came: bit 0 is itself.
    newest: Option<Seq>,
    seen: u128,
    /// How many numbers there have been, at most [`SEEN`].
    known: u32,
    /// The last travel times, each with an offset that is the same for all.
    delays: QueueDelay,
    /// Added to travel times, so that the first is in the middle of the range of stamps.
    offset: Option<Stamp>,
}

/// Numbers that are remembered: the width of the vector on the wire and the newest itself.
const SEEN: u32 = 128;
/// Loss is counted over this many numbers (loss-policy §5, 3) ...
const LOSS_WINDOW: u32 = 97;
/// ... less the newest, which may only be late.
const LOSS_RECENT: u32 = 3;
/// Where this many came and none is missing, they count as more: too little doubt for copies. A session of
/// few keys would else send each twice for its first minutes.
const CLEAN: u32 = 8;
const CLEAN_COUNTS: u32 = 50;

impl Arrivals {
    /// Takes note of an authentic datagram.
    pub(crate) fn take(&mut self, now: Time, seq: Seq, sent: Option<Stamp>) {
        if let Some(back) = self.newest.and_then(|newest| newest.get().checked_sub(seq.get())) {
            if back < u64::from(SEEN) {
                self.seen |= 1 << back;
            }
            // A datagram that was overtaken took longer than its successors, which says nothing of a
            // queue.
            return;
        }
        let step = self.newest.map_or(1, |newest| seq.get() - newest.get());
        self.newest = Some(seq);
        self.seen = if step < u64::from(SEEN) { self.seen << step } else { 0 } | 1;
        // A number that was skipped is known, too: it is missing until it comes.
        self.known = u64::from(self.known).saturating_add(step).min(u64::from(SEEN)) as u32;
        if let Some(sent) = sent {
            self.time(now, sent);
        }
    }

    /// Forgets how long datagrams travelled: they come another way now.
    pub(crate) fn forget_delays(&mut self) {
        self.delays.clear();
        self.offset = None;
    }

    /// Forgets what was lost: what comes next comes another way.
    pub(crate) fn forget_losses(&mut self) {
        self.known = 0;
    }

    /// The share of the peer's datagrams that is lost, in parts of one, with the doubt of few samples.
    pub(crate) fn loss(&self) -> f64 {
        let (missing, mut counted) = self.missing(LOSS_WINDOW);
        if missing == 0 && counted >= CLEAN {
            counted = counted.max(CLEAN_COUNTS);
        }
        (f64::from(missing) + 0.3) / (f64::from(counted) + 10.0)
    }

    /// Of the numbers before the newest few: how many of at most `window` are missing, and of how many.
    pub(crate) fn missing(&self, window: u32) -> (u32, u32) {
        // The newest few may be under way behind the one that came.
        let counted = self.known.saturating_sub(LOSS_RECENT).min(window);
        if counted == 0 {
            return (0, 0);
        }
        let mask = (u128::MAX >> (SEEN - counted)) << LOSS_RECENT;
        (counted - (self.seen & mask).count_ones(), counted)
    }

    /// How long datagrams wait in queues at present.
    pub(crate) fn queue(&self) -> Duration {
        self.delays.queue()
    }

    /// What becomes of the peer's datagrams, without any doubt added.
    pub(crate) fn direction(&self) -> DirectionStats {
        let (missing, counted) = self.missing(LOSS_WINDOW);
        let loss = f64::from(missing) / f64::from(counted.max(1));
        DirectionStats { loss, queue: self.queue() }
    }

    /// All of it, as the peer is told. `None` before anything came.
    pub(crate) fn report(&self, ack_delay: Duration) -> Option<Report> {
        let newest = self.newest?;
        Some(Report {
            newest,
            received: self.seen >> 1,
            loss: (self.loss() * 256.0) as u8,
            queue: self.queue(),
            ack_delay,
        })
    }

    fn time(&mut self, now: Time, sent: Stamp) {
        // Clocks differ by anything: half the range of stamps is where the first one is put.
        let arrived = Stamp::at(now);
        let offset = *self
            .offset
            .get_or_insert_with(|| Stamp::at(Time::ZERO + arrived.since(sent)).earlier(HALF));
        let travelled = Stamp::at(Time::ZERO + arrived.since(sent)).since(offset);
        self.delays.sample(now, travelled);
    }
}

/// Half the range of stamps.
const HALF: Duration = Duration::from_millis(1 << 15);

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(came: impl IntoIterator<Item = u64>) -> Arrivals {
        let mut arrivals = Arrivals::default();
        came.into_iter().for_each(|seq| arrivals.take(Time::ZERO, Seq::new(seq), None));
        arrivals
    }

    #[test]
    fn counts_what_is_missing() {
        // Numbers that came; missing and counted.
        for (came, missing) in [
            (vec![], (0, 0)),
            (vec![0, 1, 2], (0, 0)),
            ((0..10).collect(), (0, 7)),
            (vec![0, 2, 4, 6, 7, 8], (3, 6)),
            (vec![0, 2, 4, 6, 7, 8, 3, 1], (1, 6)),
            ((0..1000).collect(), (0, 97)),
            ((0..1000).filter(|n| n % 2 == 0).collect(), (49, 97)),
            (vec![0, 1_000_000], (97, 97)),
        ] {
            assert_eq!(arrivals(came.clone()).missing(97), missing, "{came:?}");
        }
    }

    #[test]
    fn few_that_came_leave_little_doubt() {
        // Numbers that came; loss in thousandths.
        for (came, loss) in [
            ((0..0).collect::<Vec<_>>(), 30),
            ((0..10).collect(), 17),
            ((0..11).collect(), 5),
            ((0..53).collect(), 5),
            ((0..1000).collect(), 2),
            ((0..12).filter(|n| *n != 5).collect(), 68),
        ] {
            assert_eq!((arrivals(came.clone()).loss() * 1000.0) as u32, loss, "{came:?}");
        }
    }

    #[test]
    fn reports_what_came() {
        let report = arrivals([0, 1, 3, 2, 6]).report(Duration::ZERO).unwrap();
        assert_eq!((report.newest, report.received), (Seq::new(6), 0b11_1100));
        assert_eq!(arrivals([]).report(Duration::ZERO), None);
    }

    #[test]
    fn queues_show_in_travel_times() {
        // Ours and the peer's clock differ by anything.
        for skew_ms in [0, 20_000, 40_000, 65_000] {
            let mut arrivals = Arrivals::default();
            let mut seq = 0;
            let mut take = |arrivals: &mut Arrivals, sent_ms: u64, travel_ms: u64| {
                let stamp = Stamp::at(Time::from_millis(sent_ms + skew_ms));
                arrivals.take(Time::from_millis(sent_ms + travel_ms), Seq::new(seq), Some(stamp));
                seq += 1;
            };
            (0..10).for_each(|turn| take(&mut arrivals, turn * 100, 50));
            assert_eq!(arrivals.queue(), Duration::ZERO, "{skew_ms}");
            (10..14).for_each(|turn| take(&mut arrivals, turn * 100, 250));
            assert_eq!(arrivals.queue(), Duration::ZERO, "a single quick one says there is none");
            take(&mut arrivals, 1400, 250);
            assert_eq!(arrivals.queue(), Duration::from_millis(200), "{skew_ms}");
            take(&mut arrivals, 1500, 40);
            assert_eq!(arrivals.queue(), Duration::ZERO, "{skew_ms}");
            // After a minute the longer way is the way.
            (20..1_000).for_each(|turn| take(&mut arrivals, turn * 100, 250));
            assert_eq!(arrivals.queue(), Duration::ZERO, "{skew_ms}");
        }
    }
}
