//! Reliable streams beside a mobile shell (`docs/streams.md`): channels of octets between the two
//! ends of a session that outlive the connections that carry them.
//!
//! A program opens [`Channel`]s with [`Streams`]. A QUIC connection on the session's own UDP port
//! carries them; whenever the path has changed, the client replaces it. This crate knows nothing of
//! ssh, of terminals, or of the purpose of a channel.
#![forbid(unsafe_code)]
#![warn(unreachable_pub)]

mod algorithms;
mod batched;
pub mod buggify;
pub mod carried;
mod channel;
pub mod client;
pub mod clock;
pub mod congestion;
mod connection;
pub mod datagrams;
pub mod frame;
mod keys;
mod mux;
pub mod network;
mod payload;
mod plain;
mod port;
mod proof;
mod secrets;
pub mod server;
mod shared;
#[doc(hidden)]
pub mod testing;

use std::fmt;
use std::future::poll_fn;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use channel::{Channel, Reader, Writer};
pub use frame::REQUEST_BYTES_MAX;
use mux::Role;
pub use mux::{CHANNELS_MAX, Ended, Violation};
pub use secrets::SecretMemory;
use shared::{HEARD_LATELY, Shared, Wire};

/// One session's streams, at either end. Cheap to clone.
#[derive(Clone)]
pub struct Streams {
    shared: Arc<Shared>,
}

impl Streams {
    /// Opens a channel; `request`, at most [`REQUEST_BYTES_MAX`] octets, tells the peer its purpose.
    ///
    /// It does not wait for the peer: written octets go out when they can. It waits while [`CHANNELS_MAX`]
    /// channels of this end are open.
    pub async fn open(&self, request: &[u8]) -> Result<Channel, Ended> {
        let id = poll_fn(|cx| self.shared.mux().poll_open(cx, request)).await?;
        self.shared.stirred();
        Ok(Channel::new(Arc::clone(&self.shared), id))
    }

    /// Waits for the peer's next channel and its request. `None` once the session is over.
    pub async fn accept(&self) -> Option<(Vec<u8>, Channel)> {
        let (request, id) = poll_fn(|cx| self.shared.mux().poll_accept(cx)).await?;
        Some((request, Channel::new(Arc::clone(&self.shared), id)))
    }

    /// Whether the peer has been heard lately. Callers that would rather fail than wait ask this.
    pub fn is_heard(&self) -> bool {
        self.is_heard_within(HEARD_LATELY)
    }

    /// Whether the peer has been heard in this span.
    pub fn is_heard_within(&self, span: Duration) -> bool {
        let is_near = self.shared.wire.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        is_near || self.shared.heard().is_some_and(|heard| heard.elapsed() < span)
    }

    /// Takes rare branches by this seed from now on, in builds with the feature `buggify`; in others it does nothing.
    pub fn buggify(&self, seed: u64) {
        self.shared.mux().buggify(seed);
    }

    /// How often each of [`buggify::Point::ALL`] was taken.
    pub fn buggified(&self) -> [u64; buggify::Point::ALL.len()] {
        self.shared.mux().buggified()
    }

    /// Waits until it is certain whether the peer is there: true when it is heard from now on, false when it
    /// has not been heard for `away_after`. A peer not heard lately need not be away.
    pub async fn is_there(&self, away_after: Duration) -> bool {
        let asked = clock::now();
        loop {
            match self.shared.heard() {
                Some(heard) if heard > asked => return true,
                Some(heard) if heard.elapsed() < away_after => {}
                Some(_) => return false,
                // Ends that are joined in memory hear no datagrams, and are always there.
                None => return self.is_heard(),
            }
            clock::sleep(HEARD_LOOK).await;
        }
    }

    /// How long the peer has been silent although it should have answered; `None` while nothing is wrong.
    pub fn silence(&self) -> Option<Duration> {
        let silence = self.shared.heard()?.elapsed();
        let owes = self.shared.mux().is_busy();
        (silence >= if owes { ANSWERED_LATELY } else { HEARD_LATELY }).then_some(silence)
    }

    /// Whether channels have not been carried for this long although the peer was heard all the while: the
    /// network passes the session's datagrams, but not QUIC.
    pub fn is_cut_off(&self, after: Duration) -> bool {
        self.shared.is_cut_off(after)
    }

    /// Waits until [`Streams::is_cut_off`] holds.
    pub async fn cut_off(&self, after: Duration) {
        loop {
            // Made before the question, so that no loss is missed.
            let lost = self.shared.lost.notified();
            let is_carried = self.shared.carried().lost.is_none();
            if is_carried {
                lost.await;
            } else if self.is_cut_off(after) {
                return;
            } else {
                clock::sleep(after).await;
            }
        }
    }

    /// Whether QUIC has ever made a round trip to the peer.
    pub fn has_met(&self) -> bool {
        self.shared.carried().has_met
    }

    /// Whether channels go over the session's stream, because UDP does not answer.
    pub fn is_over_stream(&self) -> bool {
        self.shared.is_over_stream.load(Ordering::Relaxed)
    }

    /// Whether a connection has ever carried channels.
    pub fn was_carried(&self) -> bool {
        self.shared.carried().proven > 0
    }

    /// How many connections have carried channels, one after the other.
    pub fn connections(&self) -> u64 {
        self.shared.carried().proven
    }

    /// How long nothing new can go wrong with the peer or the path to it.
    pub fn calm(&self) -> Duration {
        let lasts = self.shared.heard().map(|heard| heard + ANSWERED_LATELY);
        let is_carried = self.shared.carried().lost.is_none();
        lasts.filter(|_| is_carried).map_or(Duration::ZERO, |at| at - clock::now())
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

    /// Octets that programs have written to all channels and the peer has not acknowledged.
    pub fn on_the_way(&self) -> u64 {
        self.shared.mux().held()
    }

    /// Ends the session's streams at this end. Octets not delivered are lost.
    pub fn close(&self) {
        self.shared.end(Ended::Closed);
    }
}

impl fmt::Debug for Streams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streams").field("mux", &self.shared.mux()).finish_non_exhaustive()
    }
}

/// Both ends in one process, joined in memory, with the same behaviour: for tests of code that uses
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

/// The same for a peer that owes an answer: by then it would have repeated the answer several times.
const ANSWERED_LATELY: Duration = Duration::from_secs(10);

/// Interval of checks on a peer that was heard lately.
const HEARD_LOOK: Duration = Duration::from_millis(200);

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
