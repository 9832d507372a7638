//! The system under the streams: sockets, the routing table, chance. A simulation in virtual time puts
//! another in its place, and all that is above it runs unchanged.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

pub use quinn::udp::{EcnCodepoint, RecvMeta, Transmit};
pub use quinn::{AsyncUdpSocket, UdpPoller};
use quinn::{EndpointConfig, Runtime as _, TokioRuntime};

use crate::carried::{StreamPorts, is_stream};
use crate::datagrams::Datagrams;
use crate::plain::PlainSocket;

/// The kernel's receive buffer that we ask for, as at the server.
const BUFFER_BYTES: usize = 4 << 20;

/// What the connections of one end need of the system.
pub trait Network: fmt::Debug + Send + Sync {
    /// A client's new socket for datagrams to this server. Another port gets a new entry in every NAT on the way.
    fn open(&self, server: SocketAddr) -> io::Result<Arc<dyn AsyncUdpSocket>>;

    /// The largest IP packet that the route to a peer takes, in octets. Sends nothing.
    fn packet_max(&self, peer: SocketAddr) -> io::Result<u32>;

    /// The seed of a new endpoint's chances: numbers of packets that are left out, the order of transport
    /// parameters. `None` takes the system's. The secrets of TLS never come from it.
    fn seed(&self) -> Option<[u8; 32]>;
}

/// Asks the system for the largest IP packet, in octets, that the route of a connected UDP socket takes. Each system
/// has its own call for that.
#[derive(Clone, Copy, Debug)]
pub struct RouteMtu(fn(&UdpSocket) -> io::Result<u32>);

impl RouteMtu {
    /// No system is asked, and an Ethernet frame is assumed.
    pub const UNKNOWN: RouteMtu = RouteMtu(|_| Err(io::ErrorKind::Unsupported.into()));

    /// Asks by this call.
    pub const fn new(ask: fn(&UdpSocket) -> io::Result<u32>) -> RouteMtu {
        RouteMtu(ask)
    }
}

/// The machine's own network.
#[derive(Debug)]
pub(crate) struct System {
    pub(crate) route_mtu: RouteMtu,
    /// The session's streams beside UDP.
    pub(crate) streams: StreamPorts,
}

impl Network for System {
    fn open(&self, server: SocketAddr) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        if is_stream(server) {
            return Ok(self.streams.socket(server));
        }
        let any: SocketAddr = match server {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any)?;
        let datagrams = Datagrams::new(&socket)?;
        datagrams.set_recv_buffer_size(&socket, BUFFER_BYTES);
        match datagrams.is_whole() {
            true => TokioRuntime.wrap_udp_socket(socket),
            false => Ok(Arc::new(PlainSocket::new(socket)?)),
        }
    }

    fn packet_max(&self, peer: SocketAddr) -> io::Result<u32> {
        if is_stream(peer) {
            return Ok(u32::from(u16::MAX));
        }
        let ip = peer.ip().to_canonical();
        let any: IpAddr = match ip {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((any, 0))?;
        let peer = if ip == peer.ip() { peer } else { SocketAddr::new(ip, peer.port()) };
        socket.connect(peer)?;
        (self.route_mtu.0)(&socket)
    }

    fn seed(&self) -> Option<[u8; 32]> {
        None
    }
}

/// The settings of an endpoint in this network, for both roles.
pub(crate) fn endpoint_config(network: &dyn Network) -> EndpointConfig {
    let mut config = EndpointConfig::default();
    // The server's port tells QUIC by a bit that RFC 9287 lets an end clear.
    config.grease_quic_bit(false).rng_seed(network.seed());
    config
}
