//! Sharing a queue with somebody who fills it: CUBIC's rules (quinn's), until the queue is gone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn_proto::congestion::{Controller as _, Cubic, CubicConfig};

use super::ease::{Ease, Found};
use super::meter::{Round, share};
use super::{Governor, Mode, TRUCE_DEPTH};

impl Governor {
    pub(super) fn end_compete_round(&mut self, now: Instant, round: &Round) {
        let standing = self.standing(round);
        self.stubborn.note(round);
        if let Mode::Compete { present, .. } = &mut self.mode {
            *present = round.rtt_mean();
        }
        self.probe.is_on = self.stubborn.is_sure && self.since_truce.is_multiple_of(PROBE_EACH);
        self.since_truce += 1;
        if standing <= self.queue() || self.is_active(now) {
            self.cruise();
        } else if self.since_truce >= self.truce_rounds && self.ease.is_none() {
            self.since_truce = 0;
            self.truce_rounds = (self.truce_rounds * 2).min(TRUCE_ROUNDS_MAX);
            self.ease = Some(Ease::new(now, TRUCE_DEPTH));
        }
    }

    /// Goes on by CUBIC's rules: from where it lost before, if that is not long ago; else as one that begins, with
    /// what it had when the other came.
    pub(super) fn compete(&mut self, now: Instant) {
        self.crowded = 0;
        self.since_truce = 0;
        self.truce_rounds = TRUCE_ROUNDS;
        let contested = self
            .contested
            .filter(|(_, at)| now.saturating_duration_since(*at) < CONTESTED_AGE)
            .map_or(0, |(window, _)| window);
        let before = if contested > 0 { contested } else { self.uncrowded };
        let mut config = CubicConfig::default();
        config.initial_window(self.window.max(before));
        let mut cubic = Cubic::new(Arc::new(config), now, self.mtu as u16);
        if contested > self.window {
            cubic.on_congestion_event(now, now, false, self.mtu);
        }
        // What was lost as the other came tells nothing of a path that is shared.
        self.trust = 1.0;
        self.probe.backoff = 1;
        self.mode = Mode::Compete { cubic: Box::new(cubic), longest: self.rtt, present: self.rtt };
    }

    /// Octets in flight, where the path holds `model` by our own share.
    pub(super) fn competing_window(&self, cubic: &Cubic, present: Duration, model: f64) -> f64 {
        let most = model * COMPETE_MODELS_MAX;
        let least = match self.stubborn.is_sure {
            true => {
                let held = present.max(self.least().mul_f64(STUBBORN_MODELS)).as_secs_f64();
                let probed = if self.probe.is_on { self.probe.gain() } else { 1.0 };
                (self.rate() * held * probed * self.stubborn.allowance()).min(most)
            }
            false => model,
        };
        (cubic.window() as f64).clamp(least, most)
    }

    /// Something was lost while competing.
    pub(super) fn lose_competing(&mut self, now: Instant, sent: Instant, lost_bytes: u64) {
        let least = self.least();
        if let Mode::Compete { cubic, longest, .. } = &mut self.mode {
            *longest = self.rtt.max(*longest);
            // A loss while the queue is far from full is chance.
            if (self.rtt.saturating_sub(least)).as_secs_f64()
                >= FULL_SHARE * longest.saturating_sub(least).as_secs_f64()
            {
                self.contested = Some((cubic.window(), now));
                cubic.on_congestion_event(now, sent, false, lost_bytes);
            }
        }
    }
}

/// Whether the other has shown that loss does not slow it.
#[derive(Clone, Debug, Default)]
pub(super) struct Stubborn {
    /// Octets lost and delivered since that was looked at: a few packets say nothing.
    lost: u64,
    acked: u64,
    /// Looks that say so, less those that do not.
    looks: u32,
    /// It has, and has not shown the contrary.
    pub is_sure: bool,
    /// The share lost when that was looked at last.
    loss: f64,
}

impl Stubborn {
    /// A round of competing is over.
    fn note(&mut self, round: &Round) {
        self.lost += round.lost;
        self.acked += round.acked;
        if self.lost + self.acked < LOOK_BYTES {
            return;
        }
        self.looks = match share(self.lost, self.acked) > STUBBORN_LOSS {
            true => (self.looks + 1).min(STUBBORN * 4),
            false => self.looks.saturating_sub(1),
        };
        self.loss = share(self.lost, self.acked);
        (self.lost, self.acked) = (0, 0);
        self.is_sure = self.looks >= STUBBORN || self.is_sure && self.looks > 0;
    }

    /// How many times as much has to be sent so that our share of what is lost is made up for.
    fn allowance(&self) -> f64 {
        1.0 / (1.0 - self.loss.min(LOSS_MAX))
    }

    /// A truce is over. What is not lost while we send less was lost for our own sake.
    pub(super) fn heed(&mut self, found: &Found) {
        if found.octets() >= LOOK_BYTES && found.loss() < STUBBORN_LOSS {
            *self = Stubborn::default();
        }
    }
}

/// After so many rounds it is tried whether the queue is still somebody else's.
pub(super) const TRUCE_ROUNDS: u32 = 20;
const TRUCE_ROUNDS_MAX: u32 = 40;
/// For so long a window is remembered at which competing lost packets.
const CONTESTED_AGE: Duration = Duration::from_secs(30);
/// Competing goes to so many times of what the path holds by our own share.
const COMPETE_MODELS_MAX: f64 = 16.0;
/// Who lets so much be lost for so many rounds is not slowed by loss, and is met as BBR would: with twice what
/// the path holds, and no less than what keeps our share of a longer queue.
const STUBBORN_LOSS: f64 = 0.015;
/// Then one of so many rounds looks for more: of those whose best rate counts there is always one.
const PROBE_EACH: u32 = 4;
/// More is not made up for.
const LOSS_MAX: f64 = 0.35;
/// Octets by which a share that is lost can be told, 64 packets: who has little of the path has a few in a round,
/// of which none is lost in most.
const LOOK_BYTES: u64 = 90_000;
const STUBBORN: u32 = 4;
const STUBBORN_MODELS: f64 = 2.0;
/// From this part of the longest queue on a loss is one of a full queue.
const FULL_SHARE: f64 = 0.6;
