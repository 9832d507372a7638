//! The congestion controller of bulk streams: fills long, fat, lossy pipes and keeps their queues
//! short, so that a keystroke beside them does not wait.
//!
//! The window is the delivery rate times the shortest round trip, plus a little (`slack`), which
//! finds freed capacity and is the queue when there is none. Loss alone is no congestion signal.
//! The controller slows down briefly (`probe_rtt.rs`); if loss falls with the rate, it is
//! congestion. If the queue stays although we back off, another flow fills it; then we fill it
//! together, by CUBIC's rules, until it empties. The controller yields while the shell is used
//! ([`Activity`]).
//!
//! A stream has congestion control of its own, and shows it as a queue that grows and goes. There the window follows
//! the stream, with the octets of one more round trip or 50 ms waiting, so that it never runs dry (`follow.rs`).
//!
//! quinn's pacer sends 1.25 windows in a smoothed round trip and asks no controller for a rate. So
//! the controller decides only the window; while the window has room, quinn gets half as much
//! again.

mod activity;
mod compete;
mod controller;
mod delivery;
mod follow;
mod jitter;
mod limits;
mod persistent;
mod probe_rtt;
mod quinn;
mod resume;

use std::sync::Arc;
use std::time::Instant;

use quinn_proto::congestion::{Controller, ControllerFactory};

pub use activity::Activity;
use controller::{BulkController, Carrier};
use resume::PathCache;

/// Makes a controller for each connection: a value for
/// [`TransportConfig::congestion_controller_factory`](quinn_proto::TransportConfig::congestion_controller_factory).
///
/// A connection begins with half of what the one before it knew, if its first round trip looks like the same
/// path: make one of these for all connections of a session.
#[derive(Clone, Debug, Default)]
pub struct BulkControllerConfig {
    activity: Activity,
    memory: PathCache,
    carrier: Carrier,
}

impl BulkControllerConfig {
    /// Controllers that yield while there is activity.
    pub fn new(activity: Activity) -> BulkControllerConfig {
        BulkControllerConfig { activity, memory: PathCache::default(), carrier: Carrier::Datagrams }
    }

    /// The same session's controllers for connections inside a stream, which loses nothing and has congestion control.
    /// What it shows of the path is not what datagrams would find.
    pub fn over_stream(&self) -> BulkControllerConfig {
        let memory = PathCache::default();
        BulkControllerConfig { carrier: Carrier::Stream, memory, ..self.clone() }
    }
}

impl ControllerFactory for BulkControllerConfig {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(BulkController::new(
            self.activity.clone(),
            self.memory.clone(),
            self.carrier,
            now,
            current_mtu.into(),
        ))
    }
}

#[cfg(test)]
mod tests;
