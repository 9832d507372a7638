//! A network address translator between the two ends, as in a home router: the far end sees the translator's
//! address, and for each port of the near end a port of the translator's choice. Pure: it rewrites IPv4 packets in
//! place.
//!
//! IPv6 packets, fragments and protocols without ports pass unchanged.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// The translator.
#[derive(Clone, Debug)]
pub(crate) struct Nat {
    external: Ipv4Addr,
    out: BTreeMap<Inside, u16>,
    back: BTreeMap<(u8, u16), Inside>,
    port: u16,
}

/// A socket of the near end: protocol, address, port (for ICMP echo its identifier).
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Inside {
    protocol: u8,
    address: Ipv4Addr,
    port: u16,
}

/// Whether a packet goes on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Passage {
    /// It does.
    Free,
    /// No mapping has that port.
    Barred,
}

impl Nat {
    /// One that is seen at this address.
    pub(crate) fn new(external: Ipv4Addr) -> Nat {
        Nat { external, out: BTreeMap::new(), back: BTreeMap::new(), port: FIRST_PORT }
    }

    /// Forgets all mappings; later ones get other ports.
    pub(crate) fn rebind(&mut self) {
        self.out.clear();
        self.back.clear();
    }

    /// A packet from the near end.
    pub(crate) fn outward(&mut self, packet: &mut [u8]) {
        let Some(view) = View::of(packet, Side::Source) else { return };
        let port = match self.out.get(&view.end) {
            Some(port) => *port,
            None => self.admit(view.end),
        };
        view.rewrite(packet, self.external, port);
    }

    /// A packet from the far end.
    pub(crate) fn inward(&self, packet: &mut [u8]) -> Passage {
        let Some(view) = View::of(packet, Side::Destination) else { return Passage::Free };
        if view.end.address != self.external {
            return Passage::Barred;
        }
        match self.back.get(&(view.end.protocol, view.end.port)) {
            Some(inside) => {
                view.rewrite(packet, inside.address, inside.port);
                Passage::Free
            }
            None => Passage::Barred,
        }
    }

    fn admit(&mut self, inside: Inside) -> u16 {
        if self.out.len() >= MAPPINGS_MAX {
            self.rebind();
        }
        // Never the near end's own port, so that no program can rely on it.
        loop {
            self.port = if self.port >= LAST_PORT { FIRST_PORT } else { self.port + 1 };
            let key = (inside.protocol, self.port);
            if self.port != inside.port && !self.back.contains_key(&key) {
                self.out.insert(inside, self.port);
                self.back.insert(key, inside);
                return self.port;
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Side {
    Source,
    Destination,
}

/// Where the parts of a packet are that are changed.
struct View {
    end: Inside,
    address_at: usize,
    port_at: usize,
    /// The transport's checksum, and whether it covers the addresses.
    sum_at: Option<(usize, Covers)>,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Covers {
    Addresses,
    PortsOnly,
}

impl View {
    fn of(packet: &[u8], side: Side) -> Option<View> {
        let first = *packet.first()?;
        let header = usize::from(first & 0xf) * 4;
        let transport = packet.get(header..)?;
        // Version 4, a whole header, and no fragment: neither an offset nor more to come.
        if first >> 4 != 4 || header < 20 || packet[6] & 0x3f != 0 || packet[7] != 0 {
            return None;
        }
        let protocol = packet[9];
        let (source, destination) = match side {
            Side::Source => (true, 0),
            Side::Destination => (false, 2),
        };
        let (port_at, sum_at) = match protocol {
            UDP if transport.len() >= 8 => {
                let summed = transport[6] != 0 || transport[7] != 0;
                (destination, summed.then_some((6, Covers::Addresses)))
            }
            TCP if transport.len() >= 20 => (destination, Some((16, Covers::Addresses))),
            ICMP if transport.len() >= 8 && matches!(transport[0], 0 | 8) => {
                (4, Some((2, Covers::PortsOnly)))
            }
            _ => return None,
        };
        let address_at = if source { 12 } else { 16 };
        let octets: [u8; 4] = packet[address_at..address_at + 4].try_into().ok()?;
        let port = u16::from_be_bytes([transport[port_at], transport[port_at + 1]]);
        Some(View {
            end: Inside { protocol, address: octets.into(), port },
            address_at,
            port_at: header + port_at,
            sum_at: sum_at.map(|(at, covers)| (header + at, covers)),
        })
    }

    fn rewrite(&self, packet: &mut [u8], address: Ipv4Addr, port: u16) {
        let halves = |address: Ipv4Addr| {
            let [a, b, c, d] = address.octets();
            [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]
        };
        let addresses = || halves(self.end.address).into_iter().zip(halves(address));
        for (old, new) in addresses() {
            amend(packet, 10, old, new);
        }
        if let Some((at, covers)) = self.sum_at {
            for (old, new) in addresses().filter(|_| covers == Covers::Addresses) {
                amend(packet, at, old, new);
            }
            amend(packet, at, self.end.port, port);
        }
        packet[self.address_at..self.address_at + 4].copy_from_slice(&address.octets());
        packet[self.port_at..self.port_at + 2].copy_from_slice(&port.to_be_bytes());
    }
}

/// Changes an Internet checksum for one word that changes (RFC 1624 §3, equation 3).
pub(crate) fn amend(packet: &mut [u8], at: usize, old: u16, new: u16) {
    let sum = u16::from_be_bytes([packet[at], packet[at + 1]]);
    let mut folded = u32::from(!sum) + u32::from(!old) + u32::from(new);
    folded = (folded & 0xffff) + (folded >> 16);
    folded = (folded & 0xffff) + (folded >> 16);
    packet[at..at + 2].copy_from_slice(&(!(folded as u16)).to_be_bytes());
}

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Ports it gives out.
const FIRST_PORT: u16 = 20_000;
const LAST_PORT: u16 = 60_000;

/// Sockets known at one time; one more, and all are forgotten, as by a router that starts again.
const MAPPINGS_MAX: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    const NEAR: Ipv4Addr = Ipv4Addr::new(10, 99, 1, 1);
    const FAR: Ipv4Addr = Ipv4Addr::new(10, 99, 2, 1);
    const OUTSIDE: Ipv4Addr = Ipv4Addr::new(10, 99, 3, 1);

    fn sum(parts: &[&[u8]]) -> u16 {
        let words = parts.iter().flat_map(|part| part.chunks(2));
        let mut sum: u32 =
            words.map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0))).sum();
        while sum >> 16 != 0 {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    /// The checksum of an intact packet, its own checksum field included: zero.
    fn sums(packet: &[u8]) -> (u16, u16) {
        let (header, transport) = packet.split_at(20);
        let pseudo = match header[9] {
            ICMP => vec![],
            protocol => {
                let length = transport.len() as u16;
                [&header[12..20], &[0, protocol], &length.to_be_bytes()].concat()
            }
        };
        (sum(&[header]), sum(&[&pseudo, transport]))
    }

    fn packet(protocol: u8, from: (Ipv4Addr, u16), to: (Ipv4Addr, u16)) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 48, 1, 2, 0x40, 0, 64, protocol, 0, 0];
        packet.extend(from.0.octets());
        packet.extend(to.0.octets());
        let mut transport = vec![7; 28];
        let sum_at = match protocol {
            UDP => 6,
            TCP => 16,
            _ => 2,
        };
        if protocol == ICMP {
            transport[0] = 8;
            transport[4..6].copy_from_slice(&from.1.to_be_bytes());
        } else {
            transport[..2].copy_from_slice(&from.1.to_be_bytes());
            transport[2..4].copy_from_slice(&to.1.to_be_bytes());
        }
        transport[sum_at..sum_at + 2].fill(0);
        packet.extend(transport);
        let header = sum(&[&packet[..20]]);
        packet[10..12].copy_from_slice(&header.to_be_bytes());
        let whole = sums(&packet).1;
        packet[20 + sum_at..22 + sum_at].copy_from_slice(&whole.to_be_bytes());
        assert_eq!(sums(&packet), (0, 0), "the packet of the test");
        packet
    }

    #[test]
    fn there_and_back_with_right_sums() {
        for protocol in [UDP, TCP] {
            let mut nat = Nat::new(OUTSIDE);
            let mut out = packet(protocol, (NEAR, 40_000), (FAR, 60_001));
            nat.outward(&mut out);
            assert_eq!((&out[12..16], sums(&out)), (&OUTSIDE.octets()[..], (0, 0)));
            let port = u16::from_be_bytes([out[20], out[21]]);
            assert_ne!(port, 40_000);
            let answer = packet(protocol, (FAR, 60_001), (OUTSIDE, port));
            let mut back = answer.clone();
            assert_eq!(nat.inward(&mut back), Passage::Free);
            assert_eq!(
                (&back[16..20], &back[22..24], sums(&back)),
                (&NEAR.octets()[..], &40_000u16.to_be_bytes()[..], (0, 0))
            );
            nat.rebind();
            assert_eq!(nat.inward(&mut answer.clone()), Passage::Barred);
            let mut again = packet(protocol, (NEAR, 40_000), (FAR, 60_001));
            nat.outward(&mut again);
            assert_ne!(again[20..22], out[20..22], "another port");
        }
        let mut nat = Nat::new(OUTSIDE);
        let mut ping = packet(ICMP, (NEAR, 77), (FAR, 0));
        nat.outward(&mut ping);
        assert_eq!((&ping[12..16], sums(&ping)), (&OUTSIDE.octets()[..], (0, 0)));
    }

    #[test]
    fn what_is_no_such_packet_passes() {
        let mut nat = Nat::new(OUTSIDE);
        let mut fragment = packet(UDP, (NEAR, 1), (FAR, 2));
        fragment[6] = 0x20;
        let whole = packet(UDP, (NEAR, 1), (FAR, 2));
        for octets in [vec![], vec![0x45], vec![0x60; 60], fragment, whole[..24].to_vec()] {
            let mut same = octets.clone();
            nat.outward(&mut same);
            assert_eq!(same, octets);
            assert_eq!(nat.inward(&mut same), Passage::Free);
        }
    }
}
