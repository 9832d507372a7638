//! How datagrams are read and written: with the marks of congestion, several at a time, and from a chosen address,
//! where the system can; else one by one and without marks, as with older Windows and wine.

use std::io::{self, ErrorKind, IoSliceMut};
use std::net::UdpSocket;

use quinn::udp::{RecvMeta, Transmit, UdpSocketState};

/// What the system can do with a socket's datagrams.
#[derive(Debug)]
pub struct Datagrams {
    /// `None` where it lacks some of it.
    state: Option<UdpSocketState>,
}

impl Datagrams {
    /// Prepares a socket, which does not block from here on.
    pub fn new(socket: &UdpSocket) -> io::Result<Datagrams> {
        socket.set_nonblocking(true)?;
        Ok(Datagrams { state: UdpSocketState::new(socket.into()).ok() })
    }

    /// Whether the system can do all of it.
    pub(crate) fn is_whole(&self) -> bool {
        self.state.is_some()
    }

    /// Asks for a buffer of this size; the system gives what the administrator allows.
    pub(crate) fn set_recv_buffer_size(&self, socket: &UdpSocket, bytes: usize) {
        if let Some(state) = &self.state {
            let _ = state.set_recv_buffer_size(socket.into(), bytes);
        }
    }

    /// Sends, and says how it went.
    pub fn try_send(&self, socket: &UdpSocket, transmit: &Transmit<'_>) -> io::Result<()> {
        if let Some(state) = &self.state {
            return state.try_send(socket.into(), transmit);
        }
        let each = transmit.segment_size.unwrap_or(transmit.contents.len()).max(1);
        for datagram in transmit.contents.chunks(each) {
            socket.send_to(datagram, transmit.destination)?;
        }
        Ok(())
    }

    /// Sends; what cannot be sent is lost, unless there is only no room now.
    pub(crate) fn send(&self, socket: &UdpSocket, transmit: &Transmit<'_>) -> io::Result<()> {
        if let Some(state) = &self.state {
            return state.send(socket.into(), transmit);
        }
        match self.try_send(socket, transmit) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Ok(()),
            sent => sent,
        }
    }

    /// Reads into the first of the buffers, and tells how many were filled.
    pub fn recv(
        &self,
        socket: &UdpSocket,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> io::Result<usize> {
        if let Some(state) = &self.state {
            return state.recv(socket.into(), buffers, meta);
        }
        let (len, addr) = socket.recv_from(&mut buffers[0])?;
        meta[0] = RecvMeta { addr, len, stride: len, ecn: None, dst_ip: None };
        Ok(1)
    }

    pub(crate) fn max_gso_segments(&self) -> usize {
        self.state.as_ref().map_or(1, UdpSocketState::max_gso_segments)
    }

    pub(crate) fn gro_segments(&self) -> usize {
        self.state.as_ref().map_or(1, UdpSocketState::gro_segments)
    }

    pub(crate) fn may_fragment(&self) -> bool {
        self.state.as_ref().is_none_or(UdpSocketState::may_fragment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A system that cannot do it all sends each datagram of a batch by itself.
    #[test]
    fn one_by_one() {
        let open = || UdpSocket::bind("127.0.0.1:0").unwrap();
        let (one, other) = (open(), open());
        let datagrams = Datagrams { state: None };
        let destination = other.local_addr().unwrap();
        let transmit = Transmit {
            destination,
            ecn: None,
            contents: b"onetwothr",
            segment_size: Some(3),
            src_ip: None,
        };
        datagrams.send(&one, &transmit).unwrap();
        for expected in [b"one", b"two", b"thr"] {
            let (mut room, mut meta) = ([0; 100], [RecvMeta::default()]);
            let read = datagrams.recv(&other, &mut [IoSliceMut::new(&mut room)], &mut meta);
            assert_eq!(read.unwrap(), 1);
            assert_eq!((&room[..meta[0].len], meta[0].stride), (&expected[..], 3));
            assert_eq!(meta[0].addr, one.local_addr().unwrap());
        }
        assert_eq!(datagrams.max_gso_segments(), 1);
        assert!(datagrams.may_fragment());
    }
}
