//! Limits the size of a connection's datagrams. QUIC probes how large packets a path carries (RFC
//! 9000 §14.3) up to a bound; this file sets the bound to what fits this machine's own end of the
//! path. Within a machine, and in networks with large frames, fewer and larger datagrams cost a
//! fraction of the time.

use std::net::SocketAddr;

use quinn::MtuDiscoveryConfig;

use crate::network::Network;

/// The largest payload of a datagram: quinn hands over ten at a time, and ten fit into the one packet of
/// 65,507 octets that the kernel segments by itself.
pub(crate) const PAYLOAD_MAX: u16 = 6_550;

/// The search stops within this many octets of the largest: 0.3 % of an Ethernet frame, for two more probes
/// than by quinn's default.
const STEP: u16 = 4;

/// The largest packet if the system does not know the route: an Ethernet frame.
const MTU_USUAL: u32 = 1_500;

/// The datagram sizes to probe towards a peer.
pub(crate) fn sizes(peer: SocketAddr, network: &dyn Network) -> MtuDiscoveryConfig {
    let mut sizes = MtuDiscoveryConfig::default();
    sizes.upper_bound(payload_max(peer, network)).minimum_change(STEP);
    sizes
}

/// Octets of payload that datagrams to a peer may have.
fn payload_max(peer: SocketAddr, network: &dyn Network) -> u16 {
    // An IPv4-mapped address (RFC 4291 §2.5.5.2) goes out as IPv4, with the shorter header.
    let headers = if peer.ip().to_canonical().is_ipv4() { 20 + 8 } else { 40 + 8 };
    let mtu = network.packet_max(peer).unwrap_or(MTU_USUAL).max(MTU_USUAL);
    u16::try_from(mtu - headers).map_or(PAYLOAD_MAX, |most| most.min(PAYLOAD_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::carried::StreamPorts;
    use crate::network::{RouteMtu, System};

    #[test]
    fn what_stays_within_a_machine_comes_in_large_pieces() {
        let large = RouteMtu::new(|_| Ok(65_536));
        let frame = RouteMtu::new(|_| Ok(9_000));
        let narrow = RouteMtu::new(|_| Ok(1_280));
        for (peer, route_mtu, expected) in [
            ("127.0.0.1:9", large, PAYLOAD_MAX),
            ("[::ffff:127.0.0.1]:9", large, PAYLOAD_MAX),
            ("127.0.0.1:9", frame, PAYLOAD_MAX),
            // Probing finds out how much less it is.
            ("127.0.0.1:9", narrow, 1_472),
            ("127.0.0.1:9", RouteMtu::UNKNOWN, 1_472),
            ("[::ffff:127.0.0.1]:9", RouteMtu::UNKNOWN, 1_472),
            ("[::1]:9", RouteMtu::UNKNOWN, 1_452),
        ] {
            let payload = payload_max(
                peer.parse().unwrap(),
                &System { route_mtu, streams: StreamPorts::default() },
            );
            assert_eq!(payload, expected, "{peer}, {route_mtu:?}");
        }
    }
}
