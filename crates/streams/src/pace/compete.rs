//! Sharing a queue with somebody who fills it: CUBIC's rules (quinn's), until the queue is gone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn_proto::congestion::{Controller as _, Cubic, CubicConfig};

use super::ease::Ease;
use super::meter::Round;
use super::{Governor, Mode, TRUCE_DEPTH};

impl Governor {
    pub(super) fn end_compete_round(&mut self, now: Instant, round: &Round) {
        let standing = self.standing(round);
        self.stubborn = match round.loss() > STUBBORN_LOSS {
            true => (self.stubborn + 1).min(STUBBORN * 4),
            false => self.stubborn.saturating_sub(1),
        };
        self.probe.is_on = self.stubborn >= STUBBORN && self.since_truce.is_multiple_of(8);
        self.since_truce += 1;
        if standing <= self.queue() || self.is_active(now) {
            self.cruise();
        } else if self.since_truce >= self.truce_rounds && self.ease.is_none() {
            self.since_truce = 0;
            self.truce_rounds = (self.truce_rounds * 2).min(TRUCE_ROUNDS_MAX);
            self.ease = Some(Ease::new(now, TRUCE_DEPTH));
        }
    }

    /// Goes on by CUBIC's rules: from where it lost before, if that is not long ago, else as one that begins.
    pub(super) fn compete(&mut self, now: Instant) {
        self.crowded = 0;
        self.since_truce = 0;
        self.truce_rounds = TRUCE_ROUNDS;
        let contested = self
            .contested
            .filter(|(_, at)| now.saturating_duration_since(*at) < CONTESTED_AGE)
            .map_or(0, |(window, _)| window);
        let mut config = CubicConfig::default();
        config.initial_window(self.window.max(contested));
        let mut cubic = Cubic::new(Arc::new(config), now, self.mtu as u16);
        if contested > self.window {
            cubic.on_congestion_event(now, now, false, self.mtu);
        }
        self.mode = Mode::Compete { cubic: Box::new(cubic), longest: self.rtt };
    }

    /// Octets in flight, where the path holds `model` by our own share.
    pub(super) fn competing_window(&self, cubic: &Cubic, model: f64) -> f64 {
        let least = if self.stubborn >= STUBBORN { model * STUBBORN_MODELS } else { model };
        (cubic.window() as f64).clamp(least, model * COMPETE_MODELS_MAX)
    }

    /// Something was lost while competing.
    pub(super) fn lose_competing(&mut self, now: Instant, sent: Instant, lost_bytes: u64) {
        let least = self.least();
        if let Mode::Compete { cubic, longest } = &mut self.mode {
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

/// After so many rounds it is tried whether the queue is still somebody else's.
pub(super) const TRUCE_ROUNDS: u32 = 20;
const TRUCE_ROUNDS_MAX: u32 = 40;
/// For so long a window is remembered at which competing lost packets.
const CONTESTED_AGE: Duration = Duration::from_secs(30);
/// Competing goes to so many times of what the path holds by our own share.
const COMPETE_MODELS_MAX: f64 = 16.0;
/// Who lets so much be lost for so many rounds is not slowed by loss, and is met as BBR would: with twice what
/// the path holds.
const STUBBORN_LOSS: f64 = 0.015;
const STUBBORN: u32 = 4;
const STUBBORN_MODELS: f64 = 2.0;
/// From this part of the longest queue on a loss is one of a full queue.
const FULL_SHARE: f64 = 0.6;
