//! A carrier between two queues, for tests of the driver.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::task::Poll;

use rove_ssp::{Arrival, Transmit};
use rustix::io::Errno;

use crate::net::routes::Sent;

/// A network that a test controls.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Datagrams that the end has yet to receive.
    pub arriving: VecDeque<(SocketAddr, Vec<u8>)>,
    /// Datagrams sent without an error.
    pub sent: Vec<Vec<u8>>,
    /// Errors of the next attempts to send, in order.
    pub refuses: VecDeque<Errno>,
    /// The number of fresh ports opened.
    pub ports: u32,
}

impl Memory {
    pub(super) fn poll_readable(&self) -> Poll<io::Result<()>> {
        if self.arriving.is_empty() { Poll::Pending } else { Poll::Ready(Ok(())) }
    }

    pub(super) fn try_recv(&mut self, buffer: &mut [u8]) -> io::Result<Option<(usize, Arrival)>> {
        Ok(self.arriving.pop_front().map(|(from, datagram)| {
            buffer[..datagram.len()].copy_from_slice(&datagram);
            (datagram.len(), Arrival { from: from.into(), congested: false })
        }))
    }

    pub(super) fn send(&mut self, _: &Transmit, datagram: &[u8]) -> Sent {
        match self.refuses.pop_front() {
            Some(Errno::MSGSIZE) => Sent::TooBig,
            Some(error) => Sent::Failed(error.into()),
            None => {
                self.sent.push(datagram.to_vec());
                Sent::Gone
            }
        }
    }

    pub(super) fn rebind(&mut self) -> io::Result<()> {
        self.ports += 1;
        Ok(())
    }
}
