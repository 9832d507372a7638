//! What a world asks of its nodes, what it tells them, and how they say that something is wrong.

use std::fmt;
use std::net::SocketAddr;

use rove_ssp::{Machine, Remote, StreamId, Time};

/// A machine together with its users: a person and a terminal, or a program on a pty.
pub trait Node {
    /// The protocol part. All datagrams go through its three verbs.
    fn machine(&mut self) -> &mut dyn Machine;

    /// Moves octets between the machine and its users, as a driver does in each turn after a datagram or a timeout
    /// and before it sends.
    ///
    /// # Errors
    /// A broken invariant that the node has found.
    fn turn(&mut self, now: Time) -> Result<(), Fault>;

    /// Runs the driver's last step before it sleeps, after all is sent: a client paints.
    ///
    /// # Errors
    /// A broken invariant that the node has found.
    fn settle(&mut self, now: Time) -> Result<(), Fault> {
        let _ = now;
        Ok(())
    }

    /// Sending failed because a datagram was longer than the link takes (EMSGSIZE).
    fn datagram_too_big(&mut self) {}

    /// The driver has noticed that the machine is in another network, or that it has slept.
    fn network_changed(&mut self, now: Time, network: Network) {
        let _ = (now, network);
    }

    /// Where a datagram for this peer goes: a client that knows several addresses of its server sends to some of
    /// them at once.
    fn targets(&mut self, now: Time, peer: SocketAddr) -> Vec<SocketAddr> {
        let _ = now;
        vec![peer]
    }

    /// An authentic datagram has come from this address.
    fn heard(&mut self, now: Time, from: SocketAddr) {
        let _ = (now, from);
    }

    /// Its driver has opened a stream to the peer.
    fn stream_opened(&mut self, now: Time, stream: StreamId) {
        let _ = (now, stream);
    }

    /// The stream has ended.
    fn stream_closed(&mut self, now: Time, stream: StreamId) {
        let _ = (now, stream);
    }

    /// A datagram of the machine leaves.
    ///
    /// # Errors
    /// A broken invariant that the node has found.
    fn sent(&mut self, now: Time, to: Remote, octets: usize) -> Result<(), Fault> {
        let _ = (now, to, octets);
        Ok(())
    }

    /// When its users want to act next; `None` if they wait for others.
    fn wake(&self) -> Option<Time>;
}

/// What a driver has noticed of its network.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Network {
    /// The machine is in another one.
    Changed,
    /// The machine has slept, and may be in another one.
    Slept,
}

/// Whether a driver notices that its machine changes the network.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Notice {
    /// The system tells it.
    Given,
    /// Something on the way changes the address.
    None,
}

/// A broken invariant.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fault {
    /// When.
    pub at: Time,
    /// What.
    pub what: String,
}

impl Fault {
    /// One at this time.
    pub fn new(at: Time, what: impl Into<String>) -> Fault {
        Fault { at, what: what.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.at.as_micros();
        write!(out, "at {}.{:06} s: {}", micros / 1_000_000, micros % 1_000_000, self.what)
    }
}

impl std::error::Error for Fault {}
