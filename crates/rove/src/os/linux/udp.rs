//! UDP sockets: whether datagrams may be cut in pieces, and how large ones a route takes.

use std::io;
use std::net::UdpSocket;

use rustix::net::sockopt::{
    Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, ip_mtu, ipv6_mtu, set_ip_mtu_discover,
    set_ipv6_mtu_discover,
};

/// What becomes of a datagram that is larger than a link on its way takes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Large {
    /// The system and routers cut it in pieces.
    Cut,
    /// It is sent whole, and lost. What routers report is ignored.
    Whole,
}

/// Says what becomes of large datagrams. A socket of IPv6 carries those of IPv4 as well.
pub(crate) fn set_large(socket: &UdpSocket, large: Large) -> io::Result<()> {
    let (v4, v6) = match large {
        Large::Cut => (Ipv4PathMtuDiscovery::DONT, Ipv6PathMtuDiscovery::DONT),
        Large::Whole => (Ipv4PathMtuDiscovery::PROBE, Ipv6PathMtuDiscovery::PROBE),
    };
    let for_v6 = match socket.local_addr()?.is_ipv6() {
        true => set_ipv6_mtu_discover(socket, v6),
        false => Ok(()),
    };
    set_ip_mtu_discover(socket, v4)?;
    Ok(for_v6?)
}

/// The largest IP packet that the route of a connected socket takes, in octets.
pub(crate) fn route_mtu(socket: &UdpSocket) -> io::Result<u32> {
    Ok(if socket.peer_addr()?.is_ipv4() { ip_mtu(socket)? } else { ipv6_mtu(socket)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_takes_large_packets() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let socket = UdpSocket::bind(address).unwrap();
            socket.connect(socket.local_addr().unwrap()).unwrap();
            assert!(route_mtu(&socket).unwrap() >= 16_384, "{address}");
        }
        let unconnected = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(route_mtu(&unconnected).is_err());
    }
}
