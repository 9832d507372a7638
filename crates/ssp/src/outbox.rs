//! What sending needs and no session keeps between datagrams. A driver lends one outbox to any number of
//! machines, so that a thousand sessions hold one compressor.

use alloc::vec::Vec;

use crate::wire::deflate::Deflater;

/// Where [`poll_transmit`](crate::Machine::poll_transmit) writes.
///
/// Between two calls it holds no plaintext.
#[derive(Debug, Default)]
pub struct Outbox {
    /// The datagram to send, sealed.
    pub datagram: Vec<u8>,
    /// A fragment being encoded.
    pub(crate) payload: Vec<u8>,
    pub(crate) deflater: Deflater,
}
