//! The three verbs that drive every protocol part, and what goes in and out with them. Nothing here
//! knows a socket: a driver moves the datagrams and reads the clock, once a turn.

use core::net::SocketAddr;

use crate::outbox::Outbox;
use crate::reject::Reject;
use crate::time::Time;

/// A protocol part, driven from outside: it is told the time, it never asks.
///
/// Contract: once [`poll_transmit`](Machine::poll_transmit) has said `None`,
/// [`poll_timeout`](Machine::poll_timeout) lies after that `now`. Calling any of the three too early or
/// too often is harmless.
pub trait Machine {
    /// Takes one received datagram, decrypting it in place.
    ///
    /// An error says why the datagram was dropped. It has been counted, and the machine goes on as if
    /// the datagram had not come; all decrypted octets of it have been wiped.
    fn handle_datagram(
        &mut self,
        now: Time,
        arrival: Arrival,
        datagram: &mut [u8],
    ) -> Result<(), Reject>;

    /// Writes the next datagram to send into `out.datagram`, which it clears first. `None`: nothing is to be
    /// sent now. Call until `None`, then sleep until [`poll_timeout`](Machine::poll_timeout).
    fn poll_transmit(&mut self, now: Time, out: &mut Outbox) -> Option<Transmit>;

    /// When to call [`poll_transmit`](Machine::poll_transmit) again if nothing happens before.
    /// `None`: not until something happens. Pure: asking twice changes nothing.
    fn poll_timeout(&self) -> Option<Time>;
}

/// A machine that talks with one peer: what a driver tells it of sockets and networks.
pub trait Session: Machine {
    /// Where datagrams go. `None`: a server that has not heard its client, or not for long.
    fn peer(&self) -> Option<SocketAddr>;

    /// This side has changed its network, or has slept. The peer may know us at an address that no longer
    /// works, so it sends at once: all that is unanswered, or else an empty state.
    fn network_changed(&mut self, now: Time);

    /// The system refused the last datagram as longer than the path takes (`EMSGSIZE`): what did not fit is
    /// sent again in smaller ones (`mosh-protocol.md` §2.3).
    fn datagram_too_big(&mut self);

    /// The system refused the last datagram for another reason, in its own words.
    fn send_failed(&mut self, now: Time, why: &str) {
        let _ = (now, why);
    }
}

/// Which of our paths to the peer this is. The peer never sees it.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct PathId(u8);

impl PathId {
    /// Its place among the paths.
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// How a datagram came.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Arrival {
    /// Its source address.
    pub from: SocketAddr,
    /// Its ECN field said Congestion Experienced (RFC 3168 §5, both bits set).
    pub congested: bool,
}

/// Where a datagram goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Transmit {
    /// Its destination.
    pub to: SocketAddr,
    /// Open a fresh socket, hence a new source port, and send this and what follows from it
    /// (`mosh-protocol.md` §2.4). Older sockets go on receiving.
    pub new_port: bool,
}
