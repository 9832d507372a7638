//! One end of a session: keeps an object of ours in step at the peer and holds the newest of the peer's
//! (`mosh-protocol.md` §4). It must not know what the objects are, nor what a socket is.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use crate::machine::{Arrival, Machine, Reject, Transmit};
use crate::rtt::Rtt;
use crate::state::{BadDiff, State, StateNum};
use crate::stats::Stats;
use crate::time::Time;
use crate::timing::Timing;
use crate::wire::{Role, Wire};

/// What an [`Endpoint`] starts from.
pub struct Config<L, R> {
    /// Which end this is.
    pub role: Role,
    /// The envelope, keyed.
    pub wire: Box<dyn Wire>,
    /// The protocol's constants.
    pub timing: Timing,
    /// Where the peer is. A client must know; a server may learn it.
    pub peer: Option<SocketAddr>,
    /// State 0 of the object we own.
    pub local: L,
    /// State 0 of the object the peer owns.
    pub remote: R,
    /// Seeds the chaff. Take it from the system's randomness, or from the simulation's seed.
    pub seed: u64,
}

/// What happened, in order.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Event {
    /// The peer's object has a new newest version, held by [`Endpoint::remote`]. Versions between may
    /// have been skipped.
    NewRemote {
        /// Its number.
        num: StateNum,
    },
    /// The peer now sends from here, and is answered there. Not reported for its first address.
    PeerRoamed(SocketAddr),
    /// The peer has begun to shut down: the remote object is final.
    PeerClosing,
    /// The session is over.
    Closed {
        /// One end's last state was acknowledged; otherwise the peer may not know.
        clean: bool,
    },
    /// The session is over because it cannot go on.
    Failed(Failure),
}

/// Why a session cannot go on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Failure {
    /// The peer sent a diff that cannot be read.
    BadDiff(BadDiff),
    /// The key has encrypted all it may.
    Exhausted,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::BadDiff(bad) => bad.fmt(f),
            Failure::Exhausted => crate::wire::Exhausted.fmt(f),
        }
    }
}

/// One end of a session.
pub struct Endpoint<L: State, R: State> {
    local: L,
    remote: R,
    rtt: Rtt,
    stats: Stats,
    peer: Option<SocketAddr>,
}

impl<L: State, R: State> Endpoint<L, R> {
    /// A session that starts now.
    pub fn new(_now: Time, config: Config<L, R>) -> Endpoint<L, R> {
        Endpoint {
            rtt: Rtt::new(&config.timing),
            local: config.local,
            remote: config.remote,
            stats: Stats::default(),
            peer: config.peer,
        }
    }

    /// Changes the local object. Ignored once the session is closing: the object must not change then.
    pub fn update(&mut self, _now: Time, change: impl FnOnce(&mut L)) {
        change(&mut self.local);
    }

    /// Starts to shut down: the local object as it is now is the last.
    pub fn close(&mut self, _now: Time) {}

    /// A datagram was refused as too big for the path: use small ones from now on (§2.3).
    pub fn datagram_too_big(&mut self) {}

    /// Sends to another address of the same peer from now on.
    pub fn redirect(&mut self, peer: SocketAddr) {
        self.peer = Some(peer);
    }

    /// What happened since the last call, one at a time.
    pub fn poll_event(&mut self) -> Option<Event> {
        None
    }

    /// The local object.
    pub fn local(&self) -> &L {
        &self.local
    }

    /// The newest version of the peer's object.
    pub fn remote(&self) -> &R {
        &self.remote
    }

    /// Its number.
    pub fn remote_num(&self) -> StateNum {
        StateNum::ZERO
    }

    /// The number of the last state sent.
    pub fn sent_num(&self) -> StateNum {
        StateNum::ZERO
    }

    /// The newest state the peer is known to hold.
    pub fn acked(&self) -> StateNum {
        StateNum::ZERO
    }

    /// When that state was (last) sent. The session's start for state 0.
    pub fn acked_sent_at(&self) -> Time {
        Time::ZERO
    }

    /// The round-trip estimate.
    pub fn rtt(&self) -> &Rtt {
        &self.rtt
    }

    /// The shortest time between two data sends on this path.
    pub fn send_interval(&self) -> Duration {
        Duration::ZERO
    }

    /// When the last authentic datagram came that was newer than any before.
    pub fn last_heard(&self) -> Option<Time> {
        None
    }

    /// When the peer's newest state came.
    pub fn last_new_state(&self) -> Option<Time> {
        None
    }

    /// Where datagrams go. `None`: a server that has not heard its client, or not for long.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// Whether either end has begun to shut down.
    pub fn closing(&self) -> bool {
        false
    }

    /// What was sent, received and dropped.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }
}

impl<L: State, R: State> Machine for Endpoint<L, R> {
    fn handle_datagram(&mut self, _: Time, _: Arrival, _: &mut [u8]) -> Result<(), Reject> {
        Ok(())
    }

    fn poll_transmit(&mut self, _: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        out.clear();
        None
    }

    fn poll_timeout(&self) -> Option<Time> {
        None
    }
}
