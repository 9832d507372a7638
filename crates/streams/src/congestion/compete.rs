//! Shares a queue with a flow that fills it: CUBIC's rules (quinn's), until the queue is gone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn_proto::congestion::{Controller as _, Cubic, CubicConfig};

use super::controller::{BACKOFF_DEPTH, BACKOFF_ROUNDS, BulkController, Mode};
use super::delivery::Round;
use super::probe_rtt::ProbeRtt;

impl BulkController {
    pub(super) fn end_compete_round(&mut self, now: Instant, round: &Round) {
        let standing = self.standing(round);
        self.persistent.note(round);
        if let Mode::Compete { present, .. } = &mut self.mode {
            *present = round.rtt_mean();
        }
        self.probe.is_on = self.persistent.is_sure && self.since_backoff.is_multiple_of(PROBE_EACH);
        self.since_backoff += 1;
        // While the user types, CUBIC's rules end too: they would fill the queue in
        // which a key waits.
        if standing <= self.queue() || self.is_active(now) {
            self.cruise();
        } else if self.since_backoff >= self.backoff_rounds && self.probe_rtt.is_none() {
            self.since_backoff = 0;
            self.backoff_rounds = (self.backoff_rounds * 2).min(BACKOFF_ROUNDS_MAX);
            self.probe_rtt = Some(ProbeRtt::new(now, BACKOFF_DEPTH));
        }
    }

    /// Continues by CUBIC's rules: from the window of our last loss, if that is recent; else as a new CUBIC
    /// flow with the window we had when the other flow came.
    pub(super) fn compete(&mut self, now: Instant) {
        self.competing_rounds = 0;
        self.since_backoff = 0;
        self.backoff_rounds = BACKOFF_ROUNDS;
        let last_loss = self
            .last_loss
            .filter(|(_, at)| now.saturating_duration_since(*at) < LAST_LOSS_AGE)
            .map_or(0, |(window, _)| window);
        let before = if last_loss > 0 { last_loss } else { self.window_before };
        let mut config = CubicConfig::default();
        config.initial_window(self.window.max(before));
        let mut cubic = Cubic::new(Arc::new(config), now, self.mtu as u16);
        if last_loss > self.window {
            // The event makes the window of that loss CUBIC's W_max (RFC 9438 §4.6).
            cubic.on_congestion_event(now, now, false, self.mtu);
        }
        // What was lost as the other came tells nothing of a path that is shared.
        self.slack_used = 1.0;
        self.probe.backoff = 1;
        self.mode = Mode::Compete { cubic: Box::new(cubic), longest: self.rtt, present: self.rtt };
    }

    /// The window while competing, where the path holds `model` by our own share.
    pub(super) fn competing_window(&self, cubic: &Cubic, present: Duration, model: f64) -> f64 {
        let most = model * COMPETE_MODELS_MAX;
        let least = match self.persistent.is_sure {
            true => {
                let held = present.max(self.least().mul_f64(PERSISTENT_MODELS)).as_secs_f64();
                let probed = if self.probe.is_on { self.probe.gain() } else { 1.0 };
                (self.rate() * held * probed * self.persistent.allowance()).min(most)
            }
            false => model,
        };
        (cubic.window() as f64).clamp(least, most)
    }

    /// Packets were lost while competing.
    pub(super) fn lose_competing(&mut self, now: Instant, sent: Instant, lost_bytes: u64) {
        let least = self.least();
        if let Mode::Compete { cubic, longest, .. } = &mut self.mode {
            *longest = self.rtt.max(*longest);
            // A loss while the queue is far from full is chance.
            if (self.rtt.saturating_sub(least)).as_secs_f64()
                >= FULL_SHARE * longest.saturating_sub(least).as_secs_f64()
            {
                self.last_loss = Some((cubic.window(), now));
                cubic.on_congestion_event(now, sent, false, lost_bytes);
            }
        }
    }
}

const BACKOFF_ROUNDS_MAX: u32 = 40;
/// How long the window of our last loss while competing stays valid.
const LAST_LOSS_AGE: Duration = Duration::from_secs(30);
/// The largest window while competing, in multiples of what the path holds by our own share.
const COMPETE_MODELS_MAX: f64 = 16.0;
/// While competing, one round in this many probes, so the rates that count always include a probe.
const PROBE_EACH: u32 = 4;
const PERSISTENT_MODELS: f64 = 2.0;
/// From this part of the longest queue on, a loss counts as one of a full queue.
const FULL_SHARE: f64 = 0.6;
