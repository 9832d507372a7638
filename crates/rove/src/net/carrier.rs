//! What moves a session's datagrams: a client's routes to its server, or the port at which a server is known.

use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};

use rove_ssp::{Arrival, Remote, StreamId, Time, Transmit};
use rove_streams::carried::address_of;

use crate::net::routes::{Routes, Sent};
use crate::net::udp::{self, Socket, is_quic, is_too_big};
use crate::os::watched::Watched;

/// What moves datagrams.
#[derive(Debug)]
pub(crate) enum Carrier {
    /// To any of the server's addresses, from ports that change.
    Client(Routes),
    /// To and from the port that clients know, which QUIC may share.
    Listener(Watched<Socket>),
    /// Between two queues, for tests of the driver.
    #[cfg(test)]
    Memory(super::memory::Memory),
}

/// The result of receiving from a carrier.
#[derive(Debug)]
pub(crate) enum Received<'a> {
    /// A datagram that claims to be the session's.
    Datagram(Arrival, &'a mut [u8]),
    /// A datagram of QUIC's, before there is anybody to hand it on to.
    Quic(Remote, &'a mut [u8]),
    /// The stream has ended.
    StreamEnded(StreamId),
    /// Something that is no concern of the session: datagrams of QUIC's that were handed on, or news of
    /// something sent earlier, which is resent anyway.
    Nothing,
}

/// What an authentic datagram tells of the way it came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard {
    /// Where it came from.
    pub from: Remote,
    /// Where QUIC reaches the peer: at its source, or if anybody could have written that, at the address in use, or by
    /// the stream in use. `None` where the other way was used and is only tried.
    pub at: Option<SocketAddr>,
    /// The address that datagrams go to from now on, if that has just been decided.
    pub chosen: Option<SocketAddr>,
}

impl Carrier {
    /// The port at which a server is known. Needs a tokio runtime with I/O.
    pub(crate) fn listener(socket: Socket) -> io::Result<Carrier> {
        Ok(Carrier::Listener(Watched::new(socket)?))
    }

    /// Ready while there may be something to take.
    pub(crate) fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Carrier::Client(routes) => routes.poll_readable(cx),
            Carrier::Listener(socket) => socket.poll_readable(cx),
            #[cfg(test)]
            Carrier::Memory(memory) => memory.poll_readable(),
        }
    }

    /// Takes one datagram into `buffer`; `None` when none waits.
    pub(crate) fn try_recv<'a>(&mut self, buffer: &'a mut [u8]) -> Option<Received<'a>> {
        let taken = match self {
            Carrier::Client(routes) => routes.try_recv(buffer),
            Carrier::Listener(socket) => udp::try_recv(socket, buffer),
            #[cfg(test)]
            Carrier::Memory(memory) => memory.try_recv(buffer),
        };
        Some(match taken.transpose()? {
            Ok((0, _)) | Err(_) => Received::Nothing,
            Ok((len, arrival)) => {
                let octets = &mut buffer[..len];
                match self {
                    Carrier::Listener(_) if is_quic(octets) => Received::Quic(arrival.from, octets),
                    _ => Received::Datagram(arrival, octets),
                }
            }
        })
    }

    /// Sends a datagram. Where the session sent from a fresh port, [`rebind`](Self::rebind) comes first.
    pub(crate) fn send(&mut self, now: Time, transmit: &Transmit, datagram: &[u8]) -> Sent {
        // The port writes to the stream, if there is one.
        let Remote::Udp(to) = transmit.to else { return Sent::Gone };
        match self {
            Carrier::Client(routes) => routes.send(now, datagram),
            Carrier::Listener(socket) => match socket.get_ref().try_send(to, datagram) {
                Ok(()) => Sent::Gone,
                Err(error) if is_too_big(&error) => Sent::TooBig,
                Err(error) => Sent::Failed(error),
            },
            #[cfg(test)]
            Carrier::Memory(memory) => memory.send(transmit, datagram),
        }
    }

    /// The datagram taken last was authentic. `peer` is where the session sends to by now: at a server, a
    /// straggler from where the client was before changes nothing.
    pub(crate) fn on_authentic(&mut self, now: Time, from: Remote, peer: Option<Remote>) -> Heard {
        let address = match (from, peer) {
            (Remote::Udp(address), _) => address,
            (Remote::Stream(stream), Some(Remote::Stream(_))) => {
                return Heard { from, at: Some(address_of(stream.number())), chosen: None };
            }
            (Remote::Stream(_), _) => return Heard { from, at: None, chosen: None },
        };
        let is_in_use = !peer.is_some_and(Remote::is_stream);
        match self {
            Carrier::Client(routes) => {
                let at = is_in_use.then(|| routes.server_by(address));
                Heard { from, at, chosen: routes.heard(now, address) }
            }
            Carrier::Listener(socket) => {
                if peer == Some(from) {
                    socket.get_ref().answer_from_there();
                }
                Heard { from, at: Some(address), chosen: None }
            }
            #[cfg(test)]
            Carrier::Memory(_) => Heard { from, at: Some(address), chosen: None },
        }
    }

    /// Sends from a fresh port from now on. A server keeps the port that its client knows.
    pub(crate) fn rebind(&mut self, now: Time) -> io::Result<()> {
        match self {
            Carrier::Client(routes) => routes.rebind(now),
            Carrier::Listener(_) => Ok(()),
            #[cfg(test)]
            Carrier::Memory(memory) => memory.rebind(),
        }
    }

    /// Begins anew after a change of the network: from a fresh port, by every way there is.
    pub(crate) fn network_changed(&mut self, now: Time) -> io::Result<()> {
        match self {
            Carrier::Client(routes) => routes.network_changed(now),
            Carrier::Listener(_) => Ok(()),
            #[cfg(test)]
            Carrier::Memory(memory) => memory.rebind(),
        }
    }

    /// Whether what was in use is gone, as far as the system's routes tell.
    pub(crate) fn has_moved(&self) -> bool {
        match self {
            Carrier::Client(routes) => routes.has_moved(),
            Carrier::Listener(_) => false,
            #[cfg(test)]
            Carrier::Memory(_) => true,
        }
    }

    /// The port that QUIC may share. `None` at a client, whose streams have sockets of their own.
    pub(crate) fn port(&self) -> Option<&Socket> {
        match self {
            Carrier::Listener(socket) => Some(socket.get_ref()),
            _ => None,
        }
    }
}
