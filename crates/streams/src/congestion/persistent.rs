//! Whether the other flow has shown that loss does not slow it.

use super::delivery::{Round, share};
use super::probe_rtt::ProbeResult;

/// Whether the other has shown that loss does not slow it.
#[derive(Clone, Debug, Default)]
pub(super) struct PersistentQueue {
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

impl PersistentQueue {
    /// A round of competing is over.
    pub(super) fn note(&mut self, round: &Round) {
        self.lost += round.lost;
        self.acked += round.acked;
        if self.lost + self.acked < LOOK_BYTES {
            return;
        }
        self.looks = match share(self.lost, self.acked) > PERSISTENT_LOSS {
            true => (self.looks + 1).min(PERSISTENT * 4),
            false => self.looks.saturating_sub(1),
        };
        self.loss = share(self.lost, self.acked);
        (self.lost, self.acked) = (0, 0);
        self.is_sure = self.looks >= PERSISTENT || self.is_sure && self.looks > 0;
    }

    /// How many times as much has to be sent so that our share of what is lost is made up for.
    pub(super) fn allowance(&self) -> f64 {
        1.0 / (1.0 - self.loss.min(LOSS_MAX))
    }

    /// A backoff is over. What is not lost while we send less was lost for our own sake.
    pub(super) fn heed(&mut self, found: &ProbeResult) {
        if found.octets() >= LOOK_BYTES && found.loss() < PERSISTENT_LOSS {
            *self = PersistentQueue::default();
        }
    }
}

/// Who lets so much be lost for so many rounds is not slowed by loss, and is met as BBR would: with twice what
/// the path holds, and no less than what keeps our share of a longer queue.
const PERSISTENT_LOSS: f64 = 0.015;
/// More is not made up for.
const LOSS_MAX: f64 = 0.35;
/// Octets by which a share that is lost can be told, 64 packets: who has little of the path has a few in a round,
/// of which none is lost in most.
const LOOK_BYTES: u64 = 90_000;
const PERSISTENT: u32 = 4;
