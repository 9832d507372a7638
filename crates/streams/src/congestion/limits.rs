//! The controller's constants.

use std::time::Duration;

/// The controller's constants.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Initial window: 64 packets, twice what Chromium's QUIC begins with. The pacer spreads them.
    pub(super) initial_bytes: u64,
    /// Packets that may always be in flight.
    pub(super) packets_min: u64,
    /// Hosts with a shortest round trip below this are near; octets that may then always be in flight.
    pub(super) near: Duration,
    pub(super) near_bytes: u64,
    /// The queue to keep at [`Limits::RATE`] to find free capacity: longer for slower connections and
    /// shorter for faster ones, by the square root, so that shares of one bottleneck become equal.
    pub(super) queue: Duration,
    pub(super) queue_min: Duration,
    pub(super) queue_max: Duration,
    /// The longest queue, with the path's own jitter, beside which a keystroke is still answered at once.
    pub(super) slack_max: Duration,
    /// How long after a key the shell is in use.
    pub(super) active: Duration,
    /// How long a shortest round trip stays valid.
    pub(super) rtt_age: Duration,
}

pub(super) const LIMITS: Limits = Limits {
    initial_bytes: 92_000,
    packets_min: 4,
    near: Duration::from_millis(2),
    near_bytes: 512 << 10,
    queue: Duration::from_millis(4),
    queue_min: Duration::from_millis(2),
    queue_max: Duration::from_millis(14),
    slack_max: Duration::from_millis(18),
    active: Duration::from_secs(1),
    rtt_age: Duration::from_secs(10),
};

impl Limits {
    /// 200 Mbit/s, in octets a second.
    pub(super) const RATE: f64 = 25e6;
}
