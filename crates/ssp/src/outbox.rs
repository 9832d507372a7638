//! What sending needs and no session keeps between datagrams. A driver lends one outbox to any number of
//! machines, so that a thousand sessions hold one compressor.

use alloc::vec::Vec;
use core::time::Duration;

use crate::time::Time;
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
    /// When the compressor was last used, as far as [`rest`](Self::rest) knows.
    used: Time,
}

/// The compressor is kept so long after its last use. A person's pauses between keys are shorter, so typing does not
/// make one for each key; and heartbeats of the native wire are too short to be compressed, so the first of them finds
/// it unused.
const KEPT: Duration = Duration::from_secs(2);

impl Outbox {
    /// Frees the compressor if it has not been used for two seconds; returns whether memory was freed. A driver that
    /// sleeps long calls this when it has sent everything.
    pub fn rest(&mut self, now: Time) -> bool {
        if self.deflater.take_used() {
            self.used = now;
        }
        now.since(self.used) >= KEPT && self.deflater.release()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::deflate::Frame;

    #[test]
    fn a_compressor_at_rest_is_freed() {
        let mut outbox = Outbox::default();
        let message = b"one, two, one, two, one, two";
        let at = |millis| Time::ZERO + Duration::from_millis(millis);
        let mut packed = Vec::new();
        outbox.deflater.pack(Frame::Raw, message, &mut packed);
        for (millis, freed) in [(10_000, false), (11_999, false), (12_000, true), (15_000, false)] {
            assert_eq!(outbox.rest(at(millis)), freed, "{millis} ms");
        }
        let mut again = Vec::new();
        outbox.deflater.pack(Frame::Raw, message, &mut again);
        assert_eq!(again, packed);
        assert!(!outbox.rest(at(20_000)));
    }
}
