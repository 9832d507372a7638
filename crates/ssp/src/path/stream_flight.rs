//! Counts our octets in the stream, also while UDP is in use: a stream that stands still keeps what it was given. It must not
//! know why anything was sent.

use alloc::collections::VecDeque;

/// Octets that went into the stream and are not known to have left it.
#[derive(Default)]
pub(crate) struct StreamFlight {
    /// Each datagram's number on this way, and its octets.
    datagrams: VecDeque<(u64, usize)>,
    bytes: usize,
}

/// Datagrams that are remembered. The window holds fewer, unless the peer asks for short ones.
const DATAGRAMS_MAX: usize = 1024;

impl StreamFlight {
    pub(crate) fn on_sent(&mut self, nth: u64, bytes: usize) {
        if self.datagrams.len() == DATAGRAMS_MAX {
            self.remove_oldest();
        }
        self.datagrams.push_back((nth, bytes));
        self.bytes += bytes;
    }

    /// This datagram has arrived, and so have all before it.
    pub(crate) fn on_arrived(&mut self, nth: u64) {
        while self.datagrams.front().is_some_and(|(oldest, _)| *oldest <= nth) {
            self.remove_oldest();
        }
    }

    /// There is another stream, or none.
    pub(crate) fn clear(&mut self) {
        *self = StreamFlight::default();
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    fn remove_oldest(&mut self) {
        self.bytes -= self.datagrams.pop_front().map_or(0, |(_, bytes)| bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrives_has_all_before_it_with_it() {
        let mut flight = StreamFlight::default();
        for (nth, bytes) in [(3, 100), (4, 200), (9, 400)] {
            flight.on_sent(nth, bytes);
        }
        assert_eq!(flight.bytes(), 700);
        // Of a stream before this one.
        flight.on_arrived(2);
        assert_eq!(flight.bytes(), 700);
        // Its number is that of a datagram which nobody answers.
        flight.on_arrived(5);
        assert_eq!(flight.bytes(), 400);
        flight.clear();
        assert_eq!(flight.bytes(), 0);
        flight.on_arrived(9);
        assert_eq!(flight.bytes(), 0);
    }

    #[test]
    fn of_too_many_the_oldest_are_forgotten() {
        let mut flight = StreamFlight::default();
        (0..3_000).for_each(|nth| flight.on_sent(nth, 10));
        assert_eq!((flight.datagrams.len(), flight.bytes()), (DATAGRAMS_MAX, 10 * DATAGRAMS_MAX));
        flight.on_arrived(2_998);
        assert_eq!(flight.bytes(), 10);
    }
}
