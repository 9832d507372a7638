//! Simulated machines, and their addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The family of an address.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Both.
    pub(crate) const ALL: [Family; 2] = [Family::V4, Family::V6];

    /// That of an address.
    pub fn of(address: SocketAddr) -> Family {
        if address.is_ipv4() { Family::V4 } else { Family::V6 }
    }
}

/// A machine's place in the world, in the order of joining.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct NodeId(pub(crate) usize);

impl NodeId {
    /// Each node has a network of its own in each family; each socket and each place it roams to an address there.
    pub(crate) fn address(self, socket: u16, family: Family) -> SocketAddr {
        let [high, low] = socket.to_be_bytes();
        let ip: IpAddr = match family {
            Family::V4 => Ipv4Addr::new(10, self.0 as u8, high, low).into(),
            Family::V6 => Ipv6Addr::new(0xfd00, 0, 0, self.0 as u16, 0, 0, 0, socket).into(),
        };
        (ip, 60_001 + (socket & 0xff)).into()
    }
}
