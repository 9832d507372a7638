//! Detects a competing flow that loss does not slow.

use super::delivery::{Round, share};
use super::probe_rtt::ProbeResult;

/// Detects a competing flow that loss does not slow.
#[derive(Clone, Debug, Default)]
pub(super) struct PersistentQueue {
    /// Octets lost and delivered since the last check: a few packets show nothing.
    lost: u64,
    acked: u64,
    /// Checks that found persistent loss, less those that did not.
    looks: u32,
    /// The other flow has ignored loss, and has not slowed since.
    pub is_sure: bool,
    /// The share lost at the last check.
    loss: f64,
}

impl PersistentQueue {
    /// Called at the end of a round of competing.
    pub(super) fn note(&mut self, round: &Round) {
        self.lost += round.lost;
        self.acked += round.acked;
        if self.lost + self.acked < LOOK_BYTES {
            return;
        }
        self.looks = match share(self.lost, self.acked) > PERSISTENT_LOSS {
            // The limit lets the verdict end at most 16 checks after the loss has ended.
            true => (self.looks + 1).min(PERSISTENT * 4),
            false => self.looks.saturating_sub(1),
        };
        self.loss = share(self.lost, self.acked);
        (self.lost, self.acked) = (0, 0);
        self.is_sure = self.looks >= PERSISTENT || self.is_sure && self.looks > 0;
    }

    /// The factor by which to send more to make up for our share of the loss.
    pub(super) fn allowance(&self) -> f64 {
        1.0 / (1.0 - self.loss.min(LOSS_MAX))
    }

    /// Called at the end of a backoff. If loss is gone while we send less, we caused it ourselves.
    pub(super) fn heed(&mut self, found: &ProbeResult) {
        if found.octets() >= LOOK_BYTES && found.loss() < PERSISTENT_LOSS {
            *self = PersistentQueue::default();
        }
    }
}

/// A flow that keeps up this loss for this many checks is not slowed by loss. We compete with it as BBR
/// would: with twice what the path holds, and no less than keeps our share of a longer queue.
const PERSISTENT_LOSS: f64 = 0.015;
/// The largest loss to make up for.
const LOSS_MAX: f64 = 0.35;
/// Octets needed to measure a share of loss, 64 packets: a flow with little of the path has a few packets in
/// a round, and in most rounds loses none.
const LOOK_BYTES: u64 = 90_000;
const PERSISTENT: u32 = 4;
