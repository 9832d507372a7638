//! Slows down briefly, to measure the round trip without a queue of our own, and the loss without
//! congestion.

use std::time::{Duration, Instant};

use super::delivery::{Round, share};

/// A brief slowdown. It lasts a round; one more round later all of its packets are accounted for.
#[derive(Clone, Debug)]
pub(super) struct ProbeRtt {
    /// The window is this share of what the path holds.
    depth: f64,
    from: Instant,
    until: Option<Instant>,
    found: ProbeResult,
}

/// The result of a slowdown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeResult {
    /// The shortest round trip of a packet sent during the slowdown.
    pub rtt_min: Option<Duration>,
    acked: u64,
    lost: u64,
}

/// Tells congestion loss from inherent loss.
#[derive(Clone, Debug, Default)]
pub(super) struct BaselineLoss {
    /// Octets lost and delivered during slowdowns; halved with each new one.
    lost: f64,
    acked: f64,
    is_known: bool,
    /// Rounds until the next slowdown is worthwhile, and how long to wait after that.
    wait: u32,
    backoff: u32,
}

impl ProbeRtt {
    pub(super) fn new(now: Instant, depth: f64) -> ProbeRtt {
        ProbeRtt { depth, from: now, until: None, found: ProbeResult::default() }
    }

    /// The share that the window is held to; `None` once the slowdown is over.
    pub(super) fn depth(&self) -> Option<f64> {
        self.until.is_none().then_some(self.depth)
    }

    pub(super) fn acknowledge(&mut self, now: Instant, sent: Instant, bytes: u64) {
        if self.holds(sent) {
            let rtt = now.saturating_duration_since(sent);
            self.found.acked += bytes;
            self.found.rtt_min = Some(self.found.rtt_min.map_or(rtt, |least| least.min(rtt)));
        }
    }

    pub(super) fn lose(&mut self, sent: Instant, bytes: u64) {
        if self.holds(sent) {
            self.found.lost += bytes;
        }
    }

    /// Called at the end of a round. Returns the result, if it was the last.
    pub(super) fn end_round(&mut self, now: Instant, round: &Round) -> Option<ProbeResult> {
        match self.until {
            // The round in which it began tells nothing of it.
            None if round.began >= self.from => self.until = Some(now),
            Some(until) if round.began >= until => return Some(self.found),
            _ => {}
        }
        None
    }

    fn holds(&self, sent: Instant) -> bool {
        sent > self.from && self.until.is_none_or(|until| sent <= until)
    }
}

impl ProbeResult {
    /// Octets that were lost or delivered.
    pub(super) fn octets(&self) -> u64 {
        self.acked + self.lost
    }

    /// The share of them that was lost.
    pub(super) fn loss(&self) -> f64 {
        share(self.lost, self.acked)
    }
}

impl BaselineLoss {
    pub(super) fn learn(&mut self, found: &ProbeResult) {
        let before = self.chance();
        self.lost = self.lost / 2.0 + found.lost as f64;
        self.acked = self.acked / 2.0 + found.acked as f64;
        // Two equal measurements show a stable path, so the next slowdown can wait for longer.
        let is_same = (self.chance() - before).abs() < SAME;
        self.backoff =
            if is_same && self.is_known { (self.backoff * 2).min(WAIT_MAX) } else { WAIT_MIN };
        self.is_known = true;
        self.wait = self.backoff;
    }

    /// Whether this round lost so much that a slowdown should find the cause.
    pub(super) fn wants_to_know(&mut self, round: &Round) -> bool {
        if round.loss() < NEGLIGIBLE {
            return false;
        }
        self.wait = self.wait.saturating_sub(1);
        self.wait == 0
    }

    /// Whether loss is clearly above the inherent loss. False until that is measured.
    pub(super) fn tells_of_congestion(&self, round: &Round) -> bool {
        let (loss, chance) = (round.loss(), self.chance());
        let packets = ((round.acked + round.lost) / PACKET).max(1) as f64;
        // Three standard deviations of chance loss among the packets of this round.
        let noise = 3.0 * (chance.max(NEGLIGIBLE) / packets).sqrt();
        self.is_known && loss > chance * 1.25 + 0.01 + noise
    }

    /// The factor by which to send more to make up for the inherent loss.
    pub(super) fn allowance(&self) -> f64 {
        1.0 / (1.0 - self.chance().min(CHANCE_MAX))
    }

    fn chance(&self) -> f64 {
        share(self.lost as u64, self.acked as u64)
    }
}

/// Less loss is not worth a slowdown.
const NEGLIGIBLE: f64 = 0.003;
/// Two measurements that differ by less are equal.
const SAME: f64 = 0.01;
/// Rounds between two slowdowns.
const WAIT_MIN: u32 = 12;
const WAIT_MAX: u32 = 96;
/// Paths with more inherent loss are not filled.
const CHANCE_MAX: f64 = 0.35;
/// Octets of a packet, about.
const PACKET: u64 = 1_400;

#[cfg(test)]
mod tests {
    use super::*;

    fn found(lost: u64, acked: u64) -> ProbeResult {
        ProbeResult { rtt_min: None, acked, lost }
    }

    #[test]
    fn equal_measurements_make_the_next_wait_longer() {
        let mut baseline = BaselineLoss::default();
        let mut waits = Vec::new();
        for (lost, acked) in [(0, 9_000), (0, 9_000), (0, 9_000), (0, 9_000), (0, 9_000), (900, 9)]
        {
            baseline.learn(&found(lost, acked));
            waits.push(baseline.wait);
        }
        assert_eq!(waits, [12, 24, 48, 96, 96, 12]);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "quinn's instants begin at some now")]
    fn a_slowdown_counts_the_packets_that_it_sent() {
        let began = Instant::now();
        let at = |millis| began + Duration::from_millis(millis);
        let mut probe = ProbeRtt::new(at(10), 0.5);
        for sent in [10, 20, 40, 50] {
            probe.lose(at(sent), 300);
            probe.acknowledge(at(sent + 30), at(sent), 1_000);
            if sent == 40 {
                assert_eq!(probe.depth(), Some(0.5));
                let round = Round::new(at(15));
                assert!(probe.end_round(at(45), &round).is_none());
            }
        }
        let round = Round::new(at(46));
        let found = probe.end_round(at(90), &round).unwrap();
        assert_eq!((found.lost, found.acked), (600, 2_000), "of 10 and 50 it did not send them");
        assert_eq!(found.rtt_min, Some(Duration::from_millis(30)));
    }
}
