//! The state that the programs and the connection of one end share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use crate::clock::{self, Instant};
use tokio::sync::Notify;

use crate::congestion::{Activity, BulkControllerConfig};
use crate::frame::Frame;
use crate::mux::{Ended, Mux, Pulse, Role};

/// A peer that was not heard for this long may be away: an idle session sends every ten seconds, and again
/// after three and six if that or its answer is lost.
pub(crate) const HEARD_LATELY: Duration = Duration::from_secs(17);

/// The state of one end.
pub(crate) struct Shared {
    pub mux: Mutex<Mux>,
    /// There may be frames or octets to send.
    pub tell: Notify,
    pub data: Notify,
    /// The peer has opened a channel.
    pub begun: Notify,
    /// Something has happened that the connector or acceptor should check.
    pub news: Notify,
    /// The connector rests until something happens, and must then be woken.
    pub is_resting: AtomicBool,
    pub work: Notify,
    /// Keys typed and screens sent beside the streams, which yield to them.
    pub activity: Activity,
    /// Congestion control of all connections; each starts with the knowledge of the one before.
    pub pace: BulkControllerConfig,
    /// When the peer was last heard, if it was.
    pub heard: Mutex<Option<Heard>>,
    /// Which connections carry channels.
    pub carried: Mutex<CarriedSince>,
    /// The newest connection goes over a stream, although UDP was expected.
    pub is_over_stream: AtomicBool,
    /// The working connection was lost.
    pub lost: Notify,
    /// The session is over.
    pub ended: Notify,
    /// The link to the other end, if that is in memory.
    pub wire: Mutex<Option<Wire>>,
}

/// When the peer was heard.
#[derive(Clone, Copy)]
pub(crate) struct Heard {
    pub last: Instant,
    /// Since when the peer was never away for long.
    pub since: Instant,
}

/// Connections that carry channels.
#[derive(Default)]
pub(crate) struct CarriedSince {
    /// The number here of the newest connection with an authenticated peer; 0 before the first.
    pub proven: u64,
    /// Since when no connection has worked.
    pub lost: Option<Instant>,
    /// The peer has completed a handshake, even if it did not authenticate itself after.
    pub has_met: bool,
}

/// The other end, in this process.
#[derive(Clone)]
pub(crate) struct Wire {
    pub peer: Weak<Shared>,
    /// Locked by the task that moves octets.
    pub pump: Arc<Mutex<()>>,
}

/// Octets moved between two ends in memory at a time.
const PUMP_BYTES: usize = 64 << 10;

impl Shared {
    pub(crate) fn new(role: Role) -> Arc<Shared> {
        let activity = Activity::default();
        Arc::new(Shared {
            mux: Mutex::new(Mux::new(role)),
            tell: Notify::new(),
            data: Notify::new(),
            begun: Notify::new(),
            news: Notify::new(),
            is_resting: AtomicBool::new(false),
            work: Notify::new(),
            pace: BulkControllerConfig::new(activity.clone()),
            activity,
            heard: Mutex::new(None),
            carried: Mutex::default(),
            is_over_stream: AtomicBool::new(false),
            lost: Notify::new(),
            ended: Notify::new(),
            wire: Mutex::new(None),
        })
    }

    pub(crate) fn mux(&self) -> MutexGuard<'_, Mux> {
        // A panic elsewhere leaves channels that may stall, and nothing worse.
        self.mux.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The channels, for the connection `link`: `None` once it is not the newest.
    pub(crate) fn mux_of(&self, link: u64) -> Option<MutexGuard<'_, Mux>> {
        let mux = self.mux();
        if mux.is_current(link) && mux.ended().is_none() {
            return Some(mux);
        }
        // What woke the one before was meant for the newest, which may be asleep.
        self.tell.notify_one();
        self.data.notify_one();
        None
    }

    pub(crate) fn end(&self, ended: Ended) {
        self.mux().end(ended);
        self.stirred();
        // Blocks that wait for their OPEN see the end only when they wake.
        self.begun.notify_waiters();
        self.ended.notify_waiters();
        self.news.notify_one();
    }

    pub(crate) fn heard(&self) -> Option<Instant> {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.map(|heard| heard.last)
    }

    /// Notes that the peer was heard.
    pub(crate) fn hear(&self) {
        let now = clock::now();
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let since = heard.filter(|heard| now < heard.last + HEARD_LATELY);
        *heard = Some(Heard { last: now, since: since.map_or(now, |heard| heard.since) });
    }

    pub(crate) fn carried(&self) -> MutexGuard<'_, CarriedSince> {
        self.carried.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that this connection works, if its peer is authenticated, now or before.
    pub(crate) fn carry_on(&self, link: u64) {
        let mut carried = self.carried();
        if carried.proven == link {
            carried.lost = None;
        }
    }

    /// Notes that no connection works.
    pub(crate) fn lose_carrier(&self) {
        // The first loss counts: `is_cut_off` measures from it, and the connector calls
        // this again and again.
        self.carried().lost.get_or_insert_with(clock::now);
        self.lost.notify_waiters();
    }

    /// Whether no connection has carried channels for this long, and the peer was heard from the beginning
    /// of that time to beyond its end.
    pub(crate) fn is_cut_off(&self, after: Duration) -> bool {
        let Some(lost) = self.carried().lost else { return false };
        let heard = *self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.is_some_and(|heard| heard.last >= lost.max(heard.since) + after)
    }

    /// Whether the peer owes an answer. From here on anything done or received notifies `work`.
    pub(crate) fn rest(&self) -> bool {
        // Before the question: what comes after it is told.
        self.is_resting.store(true, Ordering::SeqCst);
        self.mux().is_busy()
    }

    /// There is more to check soon, so `work` need not be notified.
    pub(crate) fn stay_up(&self) {
        self.is_resting.store(false, Ordering::SeqCst);
    }

    /// Wakes the connector if it rests.
    pub(crate) fn wake_up(&self) {
        // The load comes first because each write of a program calls this, and a swap writes even
        // if nobody rests.
        if self.is_resting.load(Ordering::SeqCst) && self.is_resting.swap(false, Ordering::SeqCst) {
            self.work.notify_one();
        }
    }

    /// Call this when a program has done something.
    pub(crate) fn stirred(&self) {
        self.tell.notify_one();
        self.data.notify_one();
        self.wake_up();
        let wire = self.wire.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(wire) = wire else { return };
        // Two tasks that carry at the same time would deliver frames out of order.
        let _pump = wire.pump.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(peer) = wire.peer.upgrade() else {
            // As if the peer's process had gone, and with it the session.
            self.mux().end(Ended::Closed);
            return;
        };
        if let Some(ended) = self.mux().ended() {
            peer.mux().end(ended);
            peer.ended.notify_waiters();
        }
        while self.carry(&peer) | peer.carry(self) {}
    }

    /// Carries waiting frames and octets to the other end. Returns whether there were any.
    pub(crate) fn carry(&self, peer: &Shared) -> bool {
        let mut octets = Vec::new();
        self.mux().poll_frames(PUMP_BYTES, &mut octets);
        let mut moved = !octets.is_empty();
        let mut rest = octets.as_slice();
        let mut outcome = Ok(());
        while let Ok(Some(frame)) = Frame::decode(&mut rest) {
            outcome = outcome.and_then(|()| peer.mux().handle_frame(frame));
        }
        let data = self.mux().poll_data(PUMP_BYTES);
        if let Some((id, offset, octets)) = data {
            moved = true;
            outcome = outcome
                .and_then(|()| peer.mux().handle_data(id, offset, &octets, Pulse::default()));
        }
        if let Err(violation) = outcome {
            self.mux().end(Ended::Violation(violation));
            peer.mux().end(Ended::Violation(violation));
            return false;
        }
        moved
    }
}
