//! The two ways to the peer, UDP and a stream (`docs/wire.md` §11): when the stream takes the place of UDP, and when
//! UDP is tried beside it. It must not know how anything is sealed.

use alloc::collections::VecDeque;
use core::time::Duration;

use crate::machine::{PathId, StreamId};
use crate::path::stream_flight::StreamFlight;
use crate::recovery::detect::reports;
use crate::time::Time;
use crate::timing::{StreamTiming, Timing};
use crate::wire::{Report, Seq};

/// The stream beside UDP, and the tries of UDP beside the stream.
pub(crate) struct Ways {
    timing: StreamTiming,
    /// Bounds of the retransmission timeout where no stream is in use.
    rto: (Duration, Duration),
    /// The stream that is open.
    stream: Option<StreamId>,
    /// Our datagrams in the stream.
    flight: StreamFlight,
    /// When the way in use came into use.
    since: Time,
    /// By each way, the lowest number that is newer than all received. One past the last fits a `u64`.
    expected: [u64; PathId::COUNT],
    tries: Tries,
}

/// The datagrams by which a client tries UDP while a stream is in use.
#[derive(Default)]
struct Tries {
    began: Time,
    /// When the last one went out; `None` before the first.
    last: Option<Time>,
    /// How long to wait after it.
    wait: Duration,
    count: u32,
    /// When anything went out last that is to be answered.
    used: Option<Time>,
    /// The numbers of the last ones.
    numbers: VecDeque<Seq>,
}

/// Tries whose report is recognized.
const NUMBERS_MAX: usize = 8;

/// Tries after which others come from another port of ours: something on the way may hold on to the old one.
const TRIES_BY_PORT: u32 = 10;

impl Ways {
    pub(crate) fn new(now: Time, timing: &Timing) -> Ways {
        Ways {
            timing: timing.stream.clone(),
            rto: (timing.rto_min, timing.rto_max),
            stream: None,
            flight: StreamFlight::default(),
            since: now,
            expected: [0; PathId::COUNT],
            tries: Tries::default(),
        }
    }

    /// The constants of a stream.
    pub(crate) fn timing(&self) -> &StreamTiming {
        &self.timing
    }

    /// Bounds of the retransmission timeout by this way.
    pub(crate) fn rto(&self, path: PathId) -> (Duration, Duration) {
        match path {
            PathId::STREAM => (self.timing.rto_min, self.timing.rto_max),
            _ => self.rto,
        }
    }

    /// The stream that is open.
    pub(crate) fn stream(&self) -> Option<StreamId> {
        self.stream
    }

    /// A stream is open, in place of any other.
    pub(crate) fn open(&mut self, stream: StreamId) {
        if self.stream.replace(stream) != Some(stream) {
            self.flight.clear();
        }
    }

    /// A stream has ended. Whether it was the one that counts.
    pub(crate) fn close(&mut self, stream: StreamId) -> bool {
        let counted = self.stream.take_if(|open| *open == stream).is_some();
        if counted {
            self.flight.clear();
        }
        counted
    }

    /// A datagram that is to be acknowledged went into the stream.
    pub(crate) fn sent_in_stream(&mut self, nth: u64, bytes: usize) {
        self.flight.on_sent(nth, bytes);
    }

    /// A datagram has arrived by the stream.
    pub(crate) fn arrived_in_stream(&mut self, nth: u64) {
        self.flight.on_arrived(nth);
    }

    /// Octets that are on their way in the stream.
    pub(crate) fn in_stream(&self) -> usize {
        self.flight.bytes()
    }

    /// Another way is in use from now on.
    pub(crate) fn switch(&mut self, now: Time) {
        self.since = now;
        self.restart(now);
    }

    /// UDP is tried anew, as if it had never been tried.
    pub(crate) fn restart(&mut self, now: Time) {
        self.tries = Tries { began: now, wait: self.timing.try_each, ..Tries::default() };
    }

    /// A datagram came by this way. Whether it is newer than all before that came so: only what took the same way
    /// can have overtaken it.
    pub(crate) fn is_newest(&mut self, path: PathId, seq: Seq) -> bool {
        let expected = &mut self.expected[path.index()];
        let is_newest = seq.get() >= *expected;
        *expected = (*expected).max(seq.get() + 1);
        is_newest
    }

    /// When the stream takes the place of UDP, on which an answer is awaited since then.
    pub(crate) fn falls_back_at(&self, awaits: Option<Time>, rto: Duration) -> Option<Time> {
        self.stream?;
        Some(awaits? + self.timing.udp_silence_min.max(3 * rto))
    }

    /// Whether the server has had time to follow us from the stream to UDP.
    pub(crate) fn has_settled(&self, now: Time) -> bool {
        now.since(self.since) >= self.timing.udp_follow
    }

    /// Something went out that is to be answered.
    pub(crate) fn note_use(&mut self, now: Time) {
        self.tries.used = Some(now);
    }

    /// When UDP is to be tried next.
    pub(crate) fn try_at(&self) -> Time {
        let Tries { began, last, wait, used, .. } = self.tries;
        let Some(last) = last else { return began };
        match used {
            Some(used) if used > last => last + wait.min(self.timing.try_each_used),
            _ => last + wait,
        }
    }

    /// A datagram went out by UDP: a try, if UDP is not in use.
    pub(crate) fn sent_beside(&mut self, now: Time, seq: Seq, is_in_use: bool) {
        if !is_in_use {
            self.tried(now, seq);
        }
    }

    /// UDP was tried by this datagram.
    fn tried(&mut self, now: Time, seq: Seq) {
        let StreamTiming { try_each, try_first, try_each_max, .. } = self.timing;
        let tries = &mut self.tries;
        tries.last = Some(now);
        tries.count = tries.count.saturating_add(1);
        tries.wait = match now.since(tries.began) < try_first {
            true => try_each,
            false => (tries.wait * 2).min(try_each_max),
        };
        if tries.numbers.len() == NUMBERS_MAX {
            tries.numbers.pop_front();
        }
        tries.numbers.push_back(seq);
    }

    /// Whether the next try comes from another port.
    pub(crate) fn wants_port(&self) -> bool {
        self.tries.count >= TRIES_BY_PORT
    }

    /// Whether the peer reports that a try has reached it.
    pub(crate) fn has_arrived(&self, report: &Report) -> bool {
        self.tries.numbers.iter().any(|number| reports(report, *number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    fn ways() -> Ways {
        let mut ways = Ways::new(ms(0), &Timing::ROVE);
        ways.switch(ms(0));
        ways
    }

    /// When UDP is tried up to this time; `used_ms` is how often something is said.
    fn tries(until_ms: u64, used_ms: Option<u64>) -> Vec<u64> {
        let (mut ways, mut at) = (ways(), Vec::new());
        let mut used = used_ms;
        loop {
            let due = ways.try_at();
            match used.filter(|used| ms(*used) < due.min(ms(until_ms))) {
                Some(now) => {
                    ways.note_use(ms(now));
                    used = used_ms.map(|each| now + each);
                }
                None if due <= ms(until_ms) => {
                    at.push(due.as_millis());
                    ways.tried(due, Seq::new(at.len() as u64));
                }
                None => break,
            }
        }
        at
    }

    #[test]
    fn udp_is_tried_each_second_and_then_ever_more_seldom() {
        let first: Vec<u64> = (0..=10).map(|second| second * 1000).collect();
        let rest = [12_000, 16_000, 24_000, 40_000, 72_000, 132_000, 192_000];
        assert_eq!(tries(200_000, None), [&first[..], &rest].concat());
        // Somebody types.
        let all = tries(60_000, Some(500));
        assert_eq!(all[..11], first);
        assert!(all.windows(2).all(|two| two[1] - two[0] <= 4_000), "{all:?}");
        assert_eq!(all.last(), Some(&60_000));
    }

    #[test]
    fn the_stream_takes_over_where_an_answer_is_late() {
        let mut ways = ways();
        let rto = Duration::from_millis(100);
        assert_eq!(ways.falls_back_at(Some(ms(5)), rto), None, "there is none");
        ways.open(StreamId::new(7));
        assert_eq!(ways.falls_back_at(None, rto), None);
        assert_eq!(ways.falls_back_at(Some(ms(5)), rto), Some(ms(1_005)));
        assert_eq!(ways.falls_back_at(Some(ms(5)), 5 * rto), Some(ms(1_505)));
        assert!(!ways.close(StreamId::new(6)) && ways.close(StreamId::new(7)));
        assert_eq!(ways.stream(), None);
    }

    #[test]
    fn a_try_that_arrived_is_known_by_its_number() {
        let mut ways = ways();
        (10..30).for_each(|number| ways.tried(ms(number), Seq::new(number)));
        let report =
            |newest, received| Report { newest: Seq::new(newest), received, ..Report::default() };
        for (newest, received, arrived) in
            [(29, 0, true), (30, 1, true), (30, 0, false), (40, 1 << 10, true), (21, 0, false)]
        {
            assert_eq!(ways.has_arrived(&report(newest, received)), arrived, "{newest} {received}");
        }
        ways.restart(ms(50));
        assert!(!ways.has_arrived(&report(29, 0)), "that was before");
    }

    #[test]
    fn only_what_took_the_same_way_overtakes() {
        let mut ways = ways();
        let (udp, stream) = (PathId::UDP, PathId::STREAM);
        for (path, seq, newest) in [
            (stream, 0, true),
            (udp, 5, true),
            (stream, 1, true),
            (stream, 4, true),
            (stream, 3, false),
            (udp, 2, false),
            (udp, 6, true),
        ] {
            assert_eq!(ways.is_newest(path, Seq::new(seq)), newest, "{path:?} {seq}");
        }
    }
}
