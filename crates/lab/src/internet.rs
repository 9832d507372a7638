//! The network between machines in virtual time: their sockets, a link for each direction, and an attacker on the
//! way. It owns no clock: the [`world`](crate::world) says when a datagram leaves and delivers it when it is due.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use rove_ssp::Time;

use crate::address::{Family, NodeId};
use crate::attacker::{Attacker, Forged, Tally, VICTIM};
use crate::link::{Delivery, Link, Oversize, Profile};
use crate::rng::{Chance, Rng};

/// A datagram on its way.
#[derive(Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Datagram {
    /// Its source address, which an attacker may have changed.
    pub from: SocketAddr,
    /// Its destination.
    pub to: SocketAddr,
    /// Its payload.
    pub octets: Vec<u8>,
    /// A router has marked it (congestion experienced).
    pub congested: bool,
    /// An attacker sends it again after it has arrived.
    pub is_replay: bool,
}

/// What the sending machine's system says of a datagram.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Sent {
    /// It has left, or was lost silently.
    Left,
    /// It is longer than the link takes (EMSGSIZE).
    TooBig,
}

/// Routes, links and an attacker.
#[derive(Debug)]
pub(crate) struct Internet {
    rng: Rng,
    interfaces: BTreeMap<NodeId, Interface>,
    /// Every address that reaches a node. Datagrams to addresses that a node has left are dropped.
    routes: BTreeMap<SocketAddr, NodeId>,
    links: BTreeMap<(NodeId, NodeId), Link>,
    attacker: Option<Attacker>,
}

/// A node's part in the network.
#[derive(Debug, Default)]
struct Interface {
    /// Sockets opened so far. The node sends from the newest.
    sockets: u16,
    /// A family by which the node neither sends nor hears.
    severed: Option<Family>,
}

impl Internet {
    /// A network without nodes.
    pub(crate) fn new(rng: Rng) -> Internet {
        Internet {
            rng,
            interfaces: BTreeMap::new(),
            routes: BTreeMap::new(),
            links: BTreeMap::new(),
            attacker: None,
        }
    }

    /// Lets datagrams pass from one node to the other. Without a link nothing does.
    pub(crate) fn connect(&mut self, from: NodeId, to: NodeId, profile: Profile) {
        let rng = self.rng.fork();
        self.links.insert((from, to), Link::new(profile, rng));
    }

    /// Replaces a link's profile; datagrams on their way are not affected.
    ///
    /// # Panics
    /// If the nodes are not connected.
    pub(crate) fn set_profile(&mut self, from: NodeId, to: NodeId, profile: Profile) {
        self.links.get_mut(&(from, to)).expect("the nodes are connected").set_profile(profile);
    }

    /// The link from one node to the other, if there is one.
    pub(crate) fn link(&self, from: NodeId, to: NodeId) -> Option<&Link> {
        self.links.get(&(from, to))
    }

    /// The most datagrams that a node can send in a second without loss in all its links: at their rates, and into their
    /// queues. `None` if one takes any number.
    pub(crate) fn capacity(&self, from: NodeId) -> Option<u32> {
        let own = (from, NodeId(0))..=(from, NodeId(usize::MAX));
        self.links.range(own).map(|(_, link)| link.profile().datagrams_per_second_max()).sum()
    }

    /// Whether an outage cuts the link from one node to the other at this time, and not the one back.
    pub(crate) fn is_cut_one_way(&self, now: Time, from: NodeId, to: NodeId) -> bool {
        let is_cut = |ends| self.links.get(&ends).is_some_and(|link| link.profile().is_cut(now));
        is_cut((from, to)) && !is_cut((to, from))
    }

    /// An attacker on the path attends to this share of all datagrams from now on.
    pub(crate) fn set_attacker(&mut self, share: Chance) {
        self.attacker.get_or_insert(Attacker::new(share)).attend_to(share);
    }

    /// Octets that the attacker has spent, and octets that it has received.
    pub(crate) fn tally(&self) -> Tally {
        self.attacker.map_or(Tally::default(), |attacker| attacker.tally())
    }

    /// A new socket for both families, from which the node sends from now on. The old ones go on receiving.
    pub(crate) fn open_socket(&mut self, id: NodeId) {
        let interface = self.interfaces.entry(id).or_default();
        for family in Family::ALL {
            self.routes.insert(id.address(interface.sockets, family), id);
        }
        interface.sockets += 1;
    }

    /// The node has another address; the old ones reach no node.
    pub(crate) fn roam(&mut self, id: NodeId) {
        self.routes.retain(|_, node| *node != id);
        self.open_socket(id);
    }

    /// The node neither sends nor hears by this family from now on.
    pub(crate) fn sever(&mut self, id: NodeId, family: Option<Family>) {
        self.interfaces.entry(id).or_default().severed = family;
    }

    /// The IPv4 address that a node sends from.
    ///
    /// # Panics
    /// If the node has no socket.
    pub(crate) fn address(&self, id: NodeId) -> SocketAddr {
        self.source(id, Family::V4)
    }

    /// The node that a datagram to this address reaches.
    pub(crate) fn receiver(&self, to: SocketAddr) -> Option<NodeId> {
        let id = *self.routes.get(&to)?;
        (self.interfaces[&id].severed != Some(Family::of(to))).then_some(id)
    }

    /// A datagram arrives. The attacker may replay it: at this time, as this datagram.
    pub(crate) fn replay(&mut self, now: Time, datagram: &Datagram) -> Option<(Time, Datagram)> {
        let attacker = self.attacker.as_mut()?;
        let forged = attacker.replay(&mut self.rng, datagram.from)?;
        let (at, again) = forge(now, forged, datagram.to, &datagram.octets);
        Some((at, Datagram { is_replay: true, ..again }))
    }

    /// A datagram leaves for one address, from the newest socket. Appends what arrives of it, and when; an attacker's
    /// copies stand first.
    pub(crate) fn send(
        &mut self,
        now: Time,
        from: NodeId,
        to: SocketAddr,
        octets: &[u8],
        arrivals: &mut Vec<(Time, Datagram)>,
    ) -> Sent {
        let family = Family::of(to);
        if self.interfaces[&from].severed == Some(family) {
            return Sent::Left;
        }
        let source = self.source(from, family);
        if let Some(attacker) = &mut self.attacker {
            let (forged, towards) = match to {
                VICTIM => (attacker.reflect(&mut self.rng, octets.len()), source),
                _ => (attacker.overtake(&mut self.rng, octets.len()), to),
            };
            arrivals.extend(forged.map(|forged| forge(now, forged, towards, octets)));
        }
        let Some(&receiver) = self.routes.get(&to) else { return Sent::Left };
        let Some(link) = self.links.get_mut(&(from, receiver)) else { return Sent::Left };
        let Profile { mtu, oversize, .. } = link.profile();
        let is_refused = octets.len() > *mtu && *oversize == Oversize::Told;
        let mut deliveries = Vec::new();
        link.pass(now, octets, &mut deliveries);
        arrivals.extend(deliveries.into_iter().map(|Delivery { at, datagram, congested }| {
            (at, Datagram { from: source, to, octets: datagram, congested, is_replay: false })
        }));
        if is_refused { Sent::TooBig } else { Sent::Left }
    }

    fn source(&self, id: NodeId, family: Family) -> SocketAddr {
        id.address(self.interfaces[&id].sockets - 1, family)
    }
}

/// An attacker's datagram, and when it arrives.
fn forge(now: Time, forged: Forged, to: SocketAddr, octets: &[u8]) -> (Time, Datagram) {
    let Forged { after, from } = forged;
    let octets = octets.to_vec();
    (now + after, Datagram { from, to, octets, congested: false, is_replay: false })
}
