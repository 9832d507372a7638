//! Decodes a captured packet: its addresses and the length of its payload.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{LINKTYPE_RAW, Packet};

/// A packet of TCP or UDP.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Segment {
    /// Source address.
    pub from: SocketAddr,
    /// Destination address.
    pub to: SocketAddr,
    /// Which of the two.
    pub transport: Transport,
    /// Octets behind its header.
    pub payload: usize,
    /// Octets with all headers from IP on.
    pub whole: usize,
}

/// The transport protocol.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Transport {
    /// With acknowledgments of its own.
    Tcp,
    /// Without.
    Udp,
}

/// The segment in a packet; `None` for everything else, and for fragments without a header.
pub fn segment(packet: &Packet<'_>) -> Option<Segment> {
    let ip = network(packet)?;
    match ip.first()? >> 4 {
        4 => version_4(ip),
        6 => version_6(ip),
        _ => None,
    }
}

/// The packet from its IP header on.
fn network<'a>(packet: &Packet<'a>) -> Option<&'a [u8]> {
    let octets = packet.octets;
    match packet.link {
        LINKTYPE_RAW | LINKTYPE_IPV4 | LINKTYPE_IPV6 | 12 | 14 => Some(octets),
        LINKTYPE_NULL | LINKTYPE_LOOP => octets.get(4..),
        LINKTYPE_ETHERNET => {
            let mut at = 12;
            // Tags of virtual networks; more than a few are no network.
            for _ in 0..4 {
                match u16::from_be_bytes(octets.get(at..at + 2)?.try_into().ok()?) {
                    0x8100 | 0x88a8 => at += 4,
                    0x0800 | 0x86dd => return octets.get(at + 2..),
                    _ => return None,
                }
            }
            None
        }
        LINKTYPE_COOKED => octets.get(16..),
        LINKTYPE_COOKED_2 => octets.get(20..),
        _ => None,
    }
}

fn version_4(ip: &[u8]) -> Option<Segment> {
    let header = usize::from(ip[0] & 0xf) * 4;
    let whole = usize::from(u16::from_be_bytes(ip.get(2..4)?.try_into().ok()?));
    let offset = u16::from_be_bytes(ip.get(6..8)?.try_into().ok()?) & 0x1fff;
    let address = |at: usize| {
        let octets: [u8; 4] = ip.get(at..at + 4)?.try_into().ok()?;
        Some(IpAddr::V4(Ipv4Addr::from(octets)))
    };
    if header < 20 || offset != 0 {
        return None;
    }
    // A sender's network card may cut long packets after they are captured: those say zero.
    let whole = if whole == 0 { ip.len() } else { whole };
    transport(ip.get(header..)?, *ip.get(9)?, (address(12)?, address(16)?), whole, header)
}

fn version_6(ip: &[u8]) -> Option<Segment> {
    let payload = usize::from(u16::from_be_bytes(ip.get(4..6)?.try_into().ok()?));
    let address = |at: usize| {
        let octets: [u8; 16] = ip.get(at..at + 16)?.try_into().ok()?;
        Some(IpAddr::V6(Ipv6Addr::from(octets)))
    };
    let (from, to) = (address(8)?, address(24)?);
    transport(ip.get(40..)?, *ip.get(6)?, (from, to), payload + 40, 40)
}

fn transport(
    octets: &[u8],
    protocol: u8,
    (from, to): (IpAddr, IpAddr),
    whole: usize,
    header: usize,
) -> Option<Segment> {
    let port = |at: usize| Some(u16::from_be_bytes(octets.get(at..at + 2)?.try_into().ok()?));
    let (transport, own) = match protocol {
        6 => (Transport::Tcp, usize::from(octets.get(12)? >> 4) * 4),
        17 => (Transport::Udp, 8),
        _ => return None,
    };
    Some(Segment {
        from: SocketAddr::new(from, port(0)?),
        to: SocketAddr::new(to, port(2)?),
        transport,
        payload: whole.checked_sub(header + own)?,
        whole,
    })
}

/// tcpdump.org/linktypes.html.
const LINKTYPE_NULL: u16 = 0;
const LINKTYPE_ETHERNET: u16 = 1;
const LINKTYPE_LOOP: u16 = 108;
const LINKTYPE_COOKED: u16 = 113;
const LINKTYPE_IPV4: u16 = 228;
const LINKTYPE_IPV6: u16 = 229;
const LINKTYPE_COOKED_2: u16 = 276;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn tcp() -> Vec<u8> {
        let mut ip = vec![0x45, 0, 0, 56, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        ip.extend([0x9c, 0x40, 0, 22, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0, 0, 0, 0, 0, 0, 0]);
        ip.extend([1; 16]);
        ip
    }

    fn look(link: u16, octets: &[u8]) -> Option<Segment> {
        segment(&Packet { at: Duration::ZERO, link, octets, length: octets.len() as u32 })
    }

    #[test]
    fn segments_behind_any_header() {
        let want = look(LINKTYPE_RAW, &tcp()).unwrap();
        assert_eq!((want.payload, want.whole, want.transport), (16, 56, Transport::Tcp));
        assert_eq!(want.to, SocketAddr::from(([10, 0, 0, 2], 22)));
        for (link, head) in [
            (LINKTYPE_ETHERNET, [&[0; 12][..], &[8, 0]].concat()),
            (LINKTYPE_ETHERNET, [&[0; 12][..], &[0x81, 0, 0, 5, 8, 0]].concat()),
            (LINKTYPE_NULL, vec![2, 0, 0, 0]),
            (LINKTYPE_COOKED, vec![0; 16]),
            (LINKTYPE_COOKED_2, vec![0; 20]),
        ] {
            assert_eq!(look(link, &[head, tcp()].concat()), Some(want), "{link}");
        }
    }

    #[test]
    fn what_is_cut_or_else_is_nothing() {
        let whole = tcp();
        for length in 0..33 {
            assert_eq!(look(LINKTYPE_RAW, &whole[..length]), None, "{length}");
        }
        let mut fragment = whole.clone();
        fragment[7] = 1;
        let mut short = whole.clone();
        short[3] = 30;
        let mut icmp = whole;
        icmp[9] = 1;
        for octets in [fragment, short, icmp] {
            assert_eq!(look(LINKTYPE_RAW, &octets), None);
        }
    }
}
