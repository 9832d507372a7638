//! Reliable streams beside a mobile shell (`docs/streams.md`): channels of octets between the two ends of a
//! session that outlive every connection they are carried by.
//!
//! A program opens [`Channel`]s with [`Streams`]; what carries them is a QUIC connection on the session's
//! own UDP port, thrown away and made anew whenever the path has changed. Nothing here knows of ssh, of
//! terminals, or of what channels are for.
#![forbid(unsafe_code)]

mod channel;
pub mod client;
mod connection;
pub mod frame;
mod gather;
mod keys;
mod mux;
pub mod pace;
mod payload;
mod secrets;
pub mod server;

use std::fmt;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

pub use channel::{Channel, Reader, Writer};
pub use frame::REQUEST_BYTES_MAX;
pub use mux::{CHANNELS_MAX, Ended, Violation};
use mux::{Mux, Pulse, Role};
use pace::{Activity, Pace};
pub use secrets::SecretMemory;

/// One session's streams, at either end. Cheap to clone.
#[derive(Clone)]
pub struct Streams {
    shared: Arc<Shared>,
}

impl Streams {
    /// Opens a channel; `request`, at most [`REQUEST_BYTES_MAX`] octets, says to the peer what it is for.
    ///
    /// It does not wait for the peer: what is written goes out when it can. It waits while
    /// [`CHANNELS_MAX`] channels of this end are open.
    pub async fn open(&self, request: &[u8]) -> Result<Channel, Ended> {
        let id = poll_fn(|cx| self.shared.mux().poll_open(cx, request)).await?;
        self.shared.stirred();
        Ok(Channel::new(Arc::clone(&self.shared), id))
    }

    /// The peer's next channel with its request. `None` once the session is over.
    pub async fn accept(&self) -> Option<(Vec<u8>, Channel)> {
        let (request, id) = poll_fn(|cx| self.shared.mux().poll_accept(cx)).await?;
        Some((request, Channel::new(Arc::clone(&self.shared), id)))
    }

    /// Whether the peer has been heard lately: what has to fail rather than wait asks this.
    pub fn is_heard(&self) -> bool {
        let is_near = self.shared.wire.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        is_near || self.shared.heard().is_some_and(|heard| heard.elapsed() < HEARD_LATELY)
    }

    /// Waits until it is sure whether the peer is there: whether it is heard from now on, or else has not been heard
    /// for this long. That it was not heard lately is less than being away.
    pub async fn is_there(&self, away_after: Duration) -> bool {
        let asked = Instant::now();
        loop {
            match self.shared.heard() {
                Some(heard) if heard > asked => return true,
                Some(heard) if heard.elapsed() < away_after => {}
                Some(_) => return false,
                None => return self.is_heard(),
            }
            tokio::time::sleep(HEARD_LOOK).await;
        }
    }

    /// For how long the peer has said nothing although it should have; `None` while there is nothing wrong with that.
    pub fn silence(&self) -> Option<Duration> {
        let silence = self.shared.heard()?.elapsed();
        let owes = self.shared.mux().is_busy();
        (silence >= if owes { ANSWERED_LATELY } else { HEARD_LATELY }).then_some(silence)
    }

    /// Whether channels have not been carried for this long although the peer was heard all the while: what lets the
    /// session's datagrams through lets no QUIC.
    pub fn is_cut_off(&self, after: Duration) -> bool {
        self.shared.is_cut_off(after)
    }

    /// Waits until that is so.
    pub async fn cut_off(&self, after: Duration) {
        loop {
            // Made before the question, so that no loss is missed.
            let lost = self.shared.lost.notified();
            let is_carried = self.shared.way().lost.is_none();
            if is_carried {
                lost.await;
            } else if self.is_cut_off(after) {
                return;
            } else {
                tokio::time::sleep(after).await;
            }
        }
    }

    /// Whether QUIC has ever come through, there and back.
    pub fn has_met(&self) -> bool {
        self.shared.way().has_met
    }

    /// Whether channels have ever been carried.
    pub fn was_carried(&self) -> bool {
        self.shared.way().proven > 0
    }

    /// For how long nothing can become wrong with the peer or with the way to it that is not so already.
    pub fn calm(&self) -> Duration {
        let lasts = self.shared.heard().map(|heard| heard + ANSWERED_LATELY);
        let is_carried = self.shared.way().lost.is_none();
        lasts.filter(|_| is_carried).map_or(Duration::ZERO, |at| at - Instant::now())
    }

    /// Waits until the session is over.
    pub async fn over(&self) -> Ended {
        loop {
            // Made before the question, so that no end is missed.
            let ended = self.shared.ended.notified();
            let is_ended = self.shared.mux().ended();
            match is_ended {
                Some(ended) => return ended,
                None => ended.await,
            }
        }
    }

    /// Octets that programs have written to all channels and that are not known to have arrived.
    pub fn on_the_way(&self) -> u64 {
        self.shared.mux().held()
    }

    /// Ends the session's streams at this end. What was not delivered is lost.
    pub fn close(&self) {
        self.shared.end(Ended::Closed);
    }
}

impl fmt::Debug for Streams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streams").field("mux", &self.shared.mux()).finish_non_exhaustive()
    }
}

/// Both ends in one process, joined by memory, with the same behaviour: for tests of what runs over
/// channels.
pub fn in_memory() -> (Streams, Streams) {
    let pump = Arc::new(Mutex::new(()));
    let [client, server] = [Role::Client, Role::Server].map(Shared::new);
    for (shared, peer) in [(&client, &server), (&server, &client)] {
        shared.mux().link_up();
        let wire = Wire { peer: Arc::downgrade(peer), pump: Arc::clone(&pump) };
        *shared.wire.lock().unwrap_or_else(PoisonError::into_inner) = Some(wire);
    }
    (Streams { shared: client }, Streams { shared: server })
}

/// A peer that was not heard for this long may be away: a session at rest says something every ten seconds, and, should
/// that or its answer be lost, again after three and six.
const HEARD_LATELY: Duration = Duration::from_secs(17);

/// The same for a peer that owes an answer, which it would have given again and again by then.
const ANSWERED_LATELY: Duration = Duration::from_secs(10);

/// How often a peer that was heard lately is looked at again.
const HEARD_LOOK: Duration = Duration::from_millis(200);

/// What programs and the connection of one end work at together.
struct Shared {
    mux: Mutex<Mux>,
    /// There may be something to tell, or to send.
    tell: Notify,
    data: Notify,
    /// A channel of the peer's has begun.
    begun: Notify,
    /// Something has happened that whoever makes connections should look at.
    news: Notify,
    /// Whoever makes connections has nothing to look at until something happens, and is told then.
    is_resting: AtomicBool,
    work: Notify,
    /// Keys and screens that move beside the streams, which yield to them.
    activity: Activity,
    /// How fast all connections send, each knowing what the one before knew.
    pace: Pace,
    /// When the peer was last heard, if it was.
    heard: Mutex<Option<Heard>>,
    /// What is known of the way for channels.
    way: Mutex<Way>,
    /// It was lost.
    lost: Notify,
    /// The session is over.
    ended: Notify,
    /// The way to the other end, where that is memory.
    wire: Mutex<Option<Wire>>,
}

/// When the peer was heard.
#[derive(Clone, Copy)]
struct Heard {
    last: Instant,
    /// Since when it was never away for long.
    since: Instant,
}

/// Connections that carry channels.
#[derive(Default)]
struct Way {
    /// The newest whose peer has proved itself, by its number here; 0 before the first.
    proven: u64,
    /// Since when there has been none that works.
    lost: Option<Instant>,
    /// There was a handshake that the peer completed, whatever it said then.
    has_met: bool,
}

/// The other end, in this process.
#[derive(Clone)]
struct Wire {
    peer: Weak<Shared>,
    /// Held by whoever moves octets.
    pump: Arc<Mutex<()>>,
}

/// Octets moved between two ends in memory at a time.
const PUMP_BYTES: usize = 64 << 10;

impl Shared {
    fn new(role: Role) -> Arc<Shared> {
        let activity = Activity::default();
        Arc::new(Shared {
            mux: Mutex::new(Mux::new(role)),
            tell: Notify::new(),
            data: Notify::new(),
            begun: Notify::new(),
            news: Notify::new(),
            is_resting: AtomicBool::new(false),
            work: Notify::new(),
            pace: Pace::new(activity.clone()),
            activity,
            heard: Mutex::new(None),
            way: Mutex::default(),
            lost: Notify::new(),
            ended: Notify::new(),
            wire: Mutex::new(None),
        })
    }

    fn mux(&self) -> MutexGuard<'_, Mux> {
        // A panic elsewhere leaves channels that may stall, and nothing worse.
        self.mux.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The channels, for the connection of that number: `None` once it is not the newest.
    fn mux_of(&self, link: u64) -> Option<MutexGuard<'_, Mux>> {
        let mux = self.mux();
        if mux.is_current(link) && mux.ended().is_none() {
            return Some(mux);
        }
        // What woke the one before was meant for the newest, which may be asleep.
        self.tell.notify_one();
        self.data.notify_one();
        None
    }

    fn end(&self, ended: Ended) {
        self.mux().end(ended);
        self.stirred();
        self.begun.notify_waiters();
        self.ended.notify_waiters();
        self.news.notify_one();
    }

    fn heard(&self) -> Option<Instant> {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.map(|heard| heard.last)
    }

    /// The peer is there.
    fn hear(&self) {
        let now = Instant::now();
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let since = heard.filter(|heard| now < heard.last + HEARD_LATELY);
        *heard = Some(Heard { last: now, since: since.map_or(now, |heard| heard.since) });
    }

    fn way(&self) -> MutexGuard<'_, Way> {
        self.way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This connection works, if its peer has proved itself, now or before.
    fn carry_on(&self, link: u64) {
        let mut way = self.way();
        if way.proven == link {
            way.lost = None;
        }
    }

    /// No connection works.
    fn lose_way(&self) {
        self.way().lost.get_or_insert_with(Instant::now);
        self.lost.notify_waiters();
    }

    /// Whether channels have not been carried for this long, and the peer was heard from the beginning of that to
    /// beyond it.
    fn is_cut_off(&self, after: Duration) -> bool {
        let Some(lost) = self.way().lost else { return false };
        let heard = *self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.is_some_and(|heard| heard.last >= lost.max(heard.since) + after)
    }

    /// Whether the peer owes an answer. From here on `work` tells of what is done or comes.
    fn rest(&self) -> bool {
        // Before the question: what comes after it is told.
        self.is_resting.store(true, Ordering::SeqCst);
        self.mux().is_busy()
    }

    /// There is more to look at soon: `work` need not tell.
    fn stay_up(&self) {
        self.is_resting.store(false, Ordering::SeqCst);
    }

    /// Whoever rests has something to look at.
    fn wake_up(&self) {
        if self.is_resting.load(Ordering::SeqCst) && self.is_resting.swap(false, Ordering::SeqCst) {
            self.work.notify_one();
        }
    }

    /// To be called when a program has done something.
    fn stirred(&self) {
        self.tell.notify_one();
        self.data.notify_one();
        self.wake_up();
        let wire = self.wire.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(wire) = wire else { return };
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

    /// Hands what there is to the other end. Whether there was anything.
    fn carry(&self, peer: &Shared) -> bool {
        let mut octets = Vec::new();
        self.mux().poll_frames(PUMP_BYTES, &mut octets);
        let mut moved = !octets.is_empty();
        let mut rest = octets.as_slice();
        let mut outcome = Ok(());
        while let Ok(Some(frame)) = frame::Frame::decode(&mut rest) {
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

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn a_connection_that_was_replaced_passes_on_what_woke_it() {
        let shared = Shared::new(Role::Client);
        let before = shared.mux().link_up();
        let newest = shared.mux().link_up();
        for notify in [&shared.tell, &shared.data] {
            let mut cx = Context::from_waker(Waker::noop());
            let mut sleeper = pin!(notify.notified());
            assert!(sleeper.as_mut().poll(&mut cx).is_pending());
            assert!(shared.mux_of(newest).is_some());
            assert!(sleeper.as_mut().poll(&mut cx).is_pending());
            assert!(shared.mux_of(before).is_none());
            assert!(sleeper.as_mut().poll(&mut cx).is_ready());
            // Leave nothing over for the next.
            let _ = pin!(shared.data.notified()).poll(&mut cx);
        }
    }
}
