//! Whether anybody listens on a server's UDP port, as far as its host says so: an ICMP "port unreachable" comes back for
//! a datagram to a port that nobody has open.
//!
//! It is asked by sockets of their own, which hear of it by an error of the next call. A session's sockets do not ask
//! for errors: anybody on the way can forge them, and each would cost a datagram. For the same reason the answer is a
//! hint and nothing more.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// One question to a port.
#[derive(Debug)]
pub(crate) struct RefusalProbe(UdpSocket);

impl RefusalProbe {
    /// Sends a datagram without content there, which a server ignores.
    pub(crate) fn send(to: SocketAddr) -> io::Result<RefusalProbe> {
        let any: IpAddr = match to {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((any, 0))?;
        socket.set_nonblocking(true)?;
        socket.connect(to)?;
        socket.send(&[])?;
        Ok(RefusalProbe(socket))
    }

    /// Whether the host has said by now that nobody listens.
    pub(crate) fn is_refused(&self) -> bool {
        let heard = self.0.recv(&mut [0]);
        heard.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_port_that_nobody_has_open_refuses() {
        for ip in ["127.0.0.1", "::1"] {
            // Not every machine has both.
            let Ok(server) = UdpSocket::bind((ip, 0)) else { continue };
            let to = server.local_addr().unwrap();
            let probe = RefusalProbe::send(to).unwrap();
            server.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            assert_eq!(server.recv(&mut [0; 9]).unwrap(), 0);
            assert!(!probe.is_refused());
            drop(server);
            // On the loopback it is said before the call returns.
            assert!(RefusalProbe::send(to).unwrap().is_refused(), "{to}");
        }
    }
}
