//! The three verbs that drive every protocol part, and what goes in and out with them. Nothing here
//! knows a socket: a driver moves the datagrams and reads the clock, once a turn.

use core::fmt;
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
    fn peer(&self) -> Option<Remote>;

    /// There is a stream to the peer from now on: a second way beside UDP, which the session uses as it needs it.
    /// A client is told; a server learns it by what comes by the stream.
    fn stream_opened(&mut self, now: Time, stream: StreamId) {
        let _ = (now, stream);
    }

    /// The stream has ended, at either end.
    fn stream_closed(&mut self, now: Time, stream: StreamId) {
        let _ = (now, stream);
    }

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
    /// UDP, to and from any address.
    pub(crate) const UDP: PathId = PathId(0);
    /// Streams: one at a time.
    pub(crate) const STREAM: PathId = PathId(1);
    /// How many there are.
    pub(crate) const COUNT: usize = 2;

    /// Its place among the paths.
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A stream of the driver's, by a number of its own choice. It gives no number twice.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct StreamId(u32);

impl StreamId {
    /// The stream of this number.
    pub const fn new(number: u32) -> StreamId {
        StreamId(number)
    }

    /// Its number.
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// Where a peer is.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Remote {
    /// At this address, by UDP.
    Udp(SocketAddr),
    /// At the other end of this stream. What comes by it is whole and in order, and nobody else can write to it: an
    /// address that needs no validation.
    Stream(StreamId),
}

impl Remote {
    /// The address, if it is one.
    pub const fn udp(self) -> Option<SocketAddr> {
        match self {
            Remote::Udp(address) => Some(address),
            Remote::Stream(_) => None,
        }
    }

    /// Whether it is a stream.
    pub const fn is_stream(self) -> bool {
        matches!(self, Remote::Stream(_))
    }

    /// The path that leads there.
    pub(crate) const fn path(self) -> PathId {
        match self {
            Remote::Udp(_) => PathId::UDP,
            Remote::Stream(_) => PathId::STREAM,
        }
    }
}

impl From<SocketAddr> for Remote {
    fn from(address: SocketAddr) -> Remote {
        Remote::Udp(address)
    }
}

impl PartialEq<SocketAddr> for Remote {
    fn eq(&self, other: &SocketAddr) -> bool {
        *self == Remote::Udp(*other)
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Remote::Udp(address) => address.fmt(f),
            Remote::Stream(_) => f.write_str("the stream"),
        }
    }
}

/// How a datagram came.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Arrival {
    /// Where it came from.
    pub from: Remote,
    /// Its ECN field said Congestion Experienced (RFC 3168 §5, both bits set).
    pub congested: bool,
}

/// Where a datagram goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Transmit {
    /// Its destination.
    pub to: Remote,
    /// Open a fresh socket, hence a new source port, and send this and what follows from it
    /// (`mosh-protocol.md` §2.4). Older sockets go on receiving.
    pub new_port: bool,
    /// When it leaves, if that is later than now. The driver holds it until then and asks for no other: one that leaves as
    /// soon as it is made shows how long that took.
    pub at: Option<Time>,
}
