//! How long datagrams wait in queues: the least of their last delays less the path's own (loss-policy §5, 7).
//! It must not know how a delay is measured.

use alloc::collections::VecDeque;
use core::time::Duration;

use crate::time::Time;

/// Delays of datagrams: round trips, or travel times that all have the same offset.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueueDelay {
    /// The last delays, at most [`RECENT`].
    recent: VecDeque<Duration>,
    /// The shortest delay of the present span and of the one before it, which began then.
    shortest: [Option<Duration>; 2],
    span_began: Time,
}

/// A queue shows in the shortest of this many delays.
const RECENT: usize = 5;
/// The path's own delay is the shortest of one or two such spans: 30 to 60 s.
const BASE_SPAN: Duration = Duration::from_secs(30);

impl QueueDelay {
    pub(crate) fn new(now: Time) -> QueueDelay {
        QueueDelay { span_began: now, ..QueueDelay::default() }
    }

    pub(crate) fn sample(&mut self, now: Time, delay: Duration) {
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(delay);
        if now.since(self.span_began) >= BASE_SPAN {
            // Two spans are kept, so that a shortest delay is forgotten only when a whole span was longer.
            self.span_began = now;
            self.shortest = [None, self.shortest[0]];
        }
        let shortest = self.shortest[0].get_or_insert(delay);
        *shortest = (*shortest).min(delay);
    }

    /// Forgets all delays: datagrams take another path.
    pub(crate) fn clear(&mut self) {
        self.recent.clear();
        self.shortest = [None; 2];
    }

    /// The path's own delay. `None` before the first sample.
    pub(crate) fn base(&self) -> Option<Duration> {
        self.shortest.iter().flatten().min().copied()
    }

    /// How long datagrams wait in queues at present.
    pub(crate) fn queue(&self) -> Duration {
        let least = self.recent.iter().min().copied();
        least.zip(self.base()).map_or(Duration::ZERO, |(least, base)| least.saturating_sub(base))
    }
}
