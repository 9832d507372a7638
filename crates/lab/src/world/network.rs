//! Where datagrams of a world fly: the addresses of its nodes, the links between them, and how nodes move.

use std::net::SocketAddr;
use std::ops::Range;

use rove_ssp::{Arrival, Reject, Remote, Time, Transmit};

use super::{Cause, Event, Fault, Life, Network, Node, Notice, World};
use crate::address::{Family, NodeId};
use crate::attacker::Tally;
use crate::internet::{Datagram, Sent};
use crate::link::{Link, Profile};
use crate::rng::Chance;

impl<N: Node> World<N> {
    /// The address that the next node to join will have.
    pub fn next_address(&self) -> SocketAddr {
        NodeId(self.hosts.len()).address(0, Family::V4)
    }

    /// The addresses that the next node to join will have before it roams, and those after it has roamed once.
    pub fn next_addresses(&self) -> Vec<SocketAddr> {
        let node = NodeId(self.hosts.len());
        let both = |socket| Family::ALL.map(|family| node.address(socket, family));
        [both(0), both(1)].concat()
    }

    /// Lets datagrams pass from one node to the other. Without a link nothing does.
    pub fn connect(&mut self, from: NodeId, to: NodeId, profile: Profile) {
        self.internet.connect(from, to, profile);
    }

    /// Replaces a link's profile; datagrams on their way are not affected.
    ///
    /// # Panics
    /// If the nodes are not connected.
    pub fn set_profile(&mut self, from: NodeId, to: NodeId, profile: Profile) {
        self.internet.set_profile(from, to, profile);
    }

    /// An attacker on the path attends to this share of all datagrams from now on
    /// ([`Attacker`](crate::attacker::Attacker)).
    pub fn set_attacker(&mut self, share: Chance) {
        self.internet.set_attacker(share);
    }

    /// Octets that an attacker has spent, and octets that it has received.
    pub fn tally(&self) -> Tally {
        self.internet.tally()
    }

    /// Gives the node another address at this time, unnoticed; from then on the old ones reach no node.
    pub fn roam_at(&mut self, at: Time, node: NodeId) {
        self.move_at(at, node, Notice::None);
    }

    /// The same, and the node's driver may notice it.
    pub fn move_at(&mut self, at: Time, node: NodeId, notice: Notice) {
        self.schedule(at, Event::Roam { node, notice });
    }

    /// In this span the node neither sends nor hears by this family of addresses.
    pub fn sever_at(&mut self, span: Range<Time>, node: NodeId, family: Family) {
        self.schedule(span.start, Event::Sever { node, family: Some(family) });
        self.schedule(span.end, Event::Sever { node, family: None });
    }

    /// The address that a node sends from.
    pub fn address(&self, id: NodeId) -> SocketAddr {
        self.internet.address(id)
    }

    /// The link from one node to the other, if there is one.
    pub fn link(&self, from: NodeId, to: NodeId) -> Option<&Link> {
        self.internet.link(from, to)
    }

    pub(super) fn arrive(&mut self, mut datagram: Datagram) -> Result<(), Fault> {
        let Some(id) = self.internet.receiver(datagram.to) else { return Ok(()) };
        let now = self.now;
        if !self.hosts[id.0].is_awake(now) {
            return Ok(());
        }
        // Nothing is read while a datagram is held, so that nothing delays it.
        if let Some(wake) = self.hosts[id.0].holds_until(now) {
            self.schedule(wake, Event::Datagram(datagram));
            return Ok(());
        }
        self.trace.add(&now.as_micros().to_le_bytes());
        self.trace.add(&datagram.octets);
        if let Some((at, replay)) = self.internet.replay(now, &datagram) {
            self.schedule(at, Event::Datagram(replay));
        }
        self.totals.received += 1;
        let Datagram { from, congested, octets, is_replay, .. } = &mut datagram;
        let arrival = Arrival { from: (*from).into(), congested: *congested };
        let host = &mut self.hosts[id.0];
        let local = host.wake(now);
        match host.node.machine().handle_datagram(local, arrival, octets) {
            Ok(()) => host.node.heard(local, *from),
            Err(reject) => {
                self.totals.refused += 1;
                let is_again = matches!(reject, Reject::Replayed { .. });
                self.totals.replays_refused += u64::from(is_again && *is_replay);
                self.totals.copies_refused += u64::from(is_again && !*is_replay);
            }
        }
        self.turn(id, Cause::Event)
    }

    pub(super) fn send(&mut self, from: NodeId, transmit: Transmit, octets: &[u8]) {
        let now = self.now;
        self.totals.sent += 1;
        self.trace.add(&now.as_micros().to_le_bytes());
        self.trace.add(octets);
        if transmit.new_port {
            // A fresh socket on the same machine: the old ones go on receiving.
            self.internet.open_socket(from);
        }
        let to = match transmit.to {
            Remote::Udp(to) => to,
            Remote::Stream(stream) => return self.write(from, stream, octets),
        };
        let host = &mut self.hosts[from.0];
        let local = host.clock.local(now);
        for to in host.node.targets(local, to) {
            self.send_to(from, to, octets);
        }
    }

    /// Lets a datagram leave for one address, from the newest socket.
    fn send_to(&mut self, from: NodeId, to: SocketAddr, octets: &[u8]) {
        let mut deliveries = Vec::new();
        if let Some(receiver) = self.internet.receiver(to) {
            let is_cut = self.internet.is_cut_one_way(self.now, from, receiver);
            self.totals.one_way_cuts += u64::from(is_cut);
        }
        let sent = self.internet.send(self.now, from, to, octets, &mut deliveries);
        if sent == Sent::TooBig {
            self.hosts[from.0].node.datagram_too_big();
        }
        for (at, datagram) in deliveries {
            self.schedule(at, Event::Datagram(datagram));
        }
    }

    pub(super) fn roam(&mut self, id: NodeId, notice: Notice) -> Result<(), Fault> {
        self.trace.add(b"R");
        self.internet.roam(id);
        let host = &mut self.hosts[id.0];
        host.moves += u64::from(host.life != Life::Dead);
        if notice == Notice::None || !host.is_awake(self.now) {
            return Ok(());
        }
        let local = host.wake(self.now);
        host.held = None;
        host.node.network_changed(local, Network::Changed);
        self.turn(id, Cause::Event)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::world::tests::pair;

    #[test]
    fn datagrams_arrive_after_the_delay() {
        let (mut world, _, b) = pair(1, Profile::delay(Duration::from_millis(25)));
        world.run_until(Time::from_millis(50)).unwrap();
        let times: Vec<u64> = world.node(b).got.iter().map(|(at, _)| at.as_micros()).collect();
        assert_eq!(times, [25_000, 35_000, 45_000]);
    }

    #[test]
    fn roaming_loses_the_old_address_and_a_port_hop_keeps_it() {
        let (mut world, a, b) = pair(1, Profile::default());
        world.node_mut(a).hop = Some(Time::from_millis(50));
        world.run_until(Time::from_millis(100)).unwrap();
        assert_eq!(world.node(b).got.last().unwrap().1, NodeId(0).address(1, Family::V4));
        assert_eq!(world.node(a).got.len(), 10, "b sends to the first address all the time");
        world.roam_at(Time::from_millis(100), a);
        world.run_until(Time::from_millis(200)).unwrap();
        assert_eq!(world.node(b).got.last().unwrap().1, NodeId(0).address(2, Family::V4));
        assert_eq!(world.node(a).got.len(), 10);
    }
}
