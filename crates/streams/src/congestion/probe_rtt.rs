//! Sends slower for a moment, to measure the round trip without a queue of our own, and the loss
//! without congestion.

use std::time::{Duration, Instant};

use super::delivery::{Round, share};

/// A moment of sending slower. It lasts a round; one more round later all of its packets are accounted for.
#[derive(Clone, Debug)]
pub(super) struct ProbeRtt {
    /// The window is this share of what the path holds.
    depth: f64,
    from: Instant,
    until: Option<Instant>,
    found: ProbeResult,
}

/// What was found.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeResult {
    /// The shortest round trip of a packet of this moment.
    pub rtt_min: Option<Duration>,
    acked: u64,
    lost: u64,
}

/// Which loss is there without congestion, and which is not.
#[derive(Clone, Debug, Default)]
pub(super) struct BaselineLoss {
    /// Octets lost and delivered while sending slower; halved with each new moment.
    lost: f64,
    acked: f64,
    is_known: bool,
    /// Rounds until it is worth to look again, and how long to wait after that.
    wait: u32,
    backoff: u32,
}

impl ProbeRtt {
    pub(super) fn new(now: Instant, depth: f64) -> ProbeRtt {
        ProbeRtt { depth, from: now, until: None, found: ProbeResult::default() }
    }

    /// What the window is held to; nothing once the moment is over.
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

    /// A round is over: what was found, if it was the last.
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
        let is_same = (self.chance() - before).abs() < SAME;
        self.backoff =
            if is_same && self.is_known { (self.backoff * 2).min(WAIT_MAX) } else { WAIT_MIN };
        self.is_known = true;
        self.wait = self.backoff;
    }

    /// Whether this round lost so much that it should be found out why.
    pub(super) fn wants_to_know(&mut self, round: &Round) -> bool {
        if round.loss() < NEGLIGIBLE {
            return false;
        }
        self.wait = self.wait.saturating_sub(1);
        self.wait == 0
    }

    /// Whether clearly more is lost than by chance. Before that is known nothing is.
    pub(super) fn tells_of_congestion(&self, round: &Round) -> bool {
        let (loss, chance) = (round.loss(), self.chance());
        let packets = ((round.acked + round.lost) / PACKET).max(1) as f64;
        let noise = 3.0 * (chance.max(NEGLIGIBLE) / packets).sqrt();
        self.is_known && loss > chance * 1.25 + 0.01 + noise
    }

    /// How many times as much has to be sent so that what is lost by chance is made up for.
    pub(super) fn allowance(&self) -> f64 {
        1.0 / (1.0 - self.chance().min(CHANCE_MAX))
    }

    fn chance(&self) -> f64 {
        share(self.lost as u64, self.acked as u64)
    }
}

/// Less is not worth to be looked into.
const NEGLIGIBLE: f64 = 0.003;
/// By how much two findings may differ that say the same.
const SAME: f64 = 0.01;
/// Rounds between two looks.
const WAIT_MIN: u32 = 12;
const WAIT_MAX: u32 = 96;
/// Paths that lose more by chance are not filled.
const CHANCE_MAX: f64 = 0.35;
/// Octets of a packet, about.
const PACKET: u64 = 1_400;
