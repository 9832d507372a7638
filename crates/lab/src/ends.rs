//! The two ends of a simulated session as the nodes of one [`World`](crate::world::World): a person at a client, and a
//! program under a server. Each simulation has a person and a program of its own.

use std::net::SocketAddr;

use rove_ssp::{Machine, Remote, StreamId, Time};

use crate::world::{Fault, Network, Node};

/// A node of a world with two ends.
#[derive(Debug)]
pub enum End<P, H> {
    /// The near end.
    Person(Box<P>),
    /// The far end.
    Host(Box<H>),
}

impl<P, H> End<P, H> {
    /// The person, where there is one.
    pub(crate) fn person(&self) -> &P {
        match self {
            End::Person(person) => person,
            End::Host(_) => unreachable!("this node is the host"),
        }
    }

    /// The person, to act on.
    pub(crate) fn person_mut(&mut self) -> &mut P {
        match self {
            End::Person(person) => person,
            End::Host(_) => unreachable!("this node is the host"),
        }
    }

    /// The host, where there is one.
    pub(crate) fn host(&self) -> &H {
        match self {
            End::Host(host) => host,
            End::Person(_) => unreachable!("this node is the person"),
        }
    }

    /// The host, to act on.
    pub(crate) fn host_mut(&mut self) -> &mut H {
        match self {
            End::Host(host) => host,
            End::Person(_) => unreachable!("this node is the person"),
        }
    }
}

impl<P: Node, H: Node> End<P, H> {
    fn node(&mut self) -> &mut dyn Node {
        match self {
            End::Person(person) => &mut **person,
            End::Host(host) => &mut **host,
        }
    }
}

impl<P: Node, H: Node> Node for End<P, H> {
    fn machine(&mut self) -> &mut dyn Machine {
        self.node().machine()
    }

    fn turn(&mut self, now: Time) -> Result<(), Fault> {
        self.node().turn(now)
    }

    fn settle(&mut self, now: Time) -> Result<(), Fault> {
        self.node().settle(now)
    }

    fn wake(&self) -> Option<Time> {
        match self {
            End::Person(person) => person.wake(),
            End::Host(host) => host.wake(),
        }
    }

    fn datagram_too_big(&mut self) {
        self.node().datagram_too_big();
    }

    fn network_changed(&mut self, now: Time, network: Network) {
        self.node().network_changed(now, network);
    }

    fn targets(&mut self, now: Time, peer: SocketAddr) -> Vec<SocketAddr> {
        self.node().targets(now, peer)
    }

    fn heard(&mut self, now: Time, from: SocketAddr) {
        self.node().heard(now, from);
    }

    fn sent(&mut self, now: Time, to: Remote, octets: usize) -> Result<(), Fault> {
        self.node().sent(now, to, octets)
    }

    fn stream_opened(&mut self, now: Time, stream: StreamId) {
        self.node().stream_opened(now, stream);
    }

    fn stream_closed(&mut self, now: Time, stream: StreamId) {
        self.node().stream_closed(now, stream);
    }
}
