//! Shared by the experiments over lossy paths: loss rates, durations, and the columns that count datagrams.

use std::time::Duration;

use serde_json::Value;

use super::probe::Measured;
use super::report::{hundredths, tenths};

/// Loss each way, in percent.
pub(super) const LOSSES: [u32; 6] = [0, 1, 5, 10, 29, 50];

/// How long estimates settle, and how long is measured.
pub(super) fn times() -> (Duration, Duration) {
    (SETTLE, SPAN)
}

/// The cost of a key: datagrams up, down and both ways, octets up and down.
pub(super) fn datagrams(all: &Measured) -> [Value; 5] {
    let per_key = |count: u64| count as f64 / all.keys_ms.len().max(1) as f64;
    [
        hundredths(per_key(all.up.offered)),
        hundredths(per_key(all.down.offered)),
        hundredths(per_key(all.up.offered + all.down.offered)),
        tenths(per_key(all.up.offered_bytes)),
        tenths(per_key(all.down.offered_bytes)),
    ]
}

/// How long a session is measured: about 400 keys.
const SPAN: Duration = Duration::from_secs(150);

/// How long estimates have to settle.
const SETTLE: Duration = Duration::from_secs(30);
