//! A stream between two machines in virtual time, as ssh's is: octets arrive whole and in order, but may be late.
//! It owns no clock: the [`world`](crate::world) says when something is written, and delivers it when it is due.

use std::ops::Range;
use std::time::Duration;

use rove_ssp::Time;

use crate::address::NodeId;
use crate::link::Bursts;
use crate::rng::{Chance, Rng};

/// How a stream is.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamProfile {
    /// How long an octet travels when nothing holds it up.
    pub delay: Duration,
    /// How often something is lost below it, and is sent again after a timeout of TCP's.
    pub stall: Chance,
    /// Bits in a second, if they are limited.
    pub rate: Option<u64>,
    /// Spans in which nothing passes: it does some time after.
    pub outages: Vec<Range<Time>>,
    /// Whether octets leave in bursts: from the first end, and from the second.
    pub bursts: [Option<Bursts>; 2],
}

impl StreamProfile {
    /// One that takes this long and has no limits.
    pub fn delay(delay: Duration) -> StreamProfile {
        StreamProfile {
            delay,
            stall: Chance::NEVER,
            rate: None,
            outages: Vec::new(),
            bursts: [None, None],
        }
    }
}

/// A stream with an end at two nodes.
#[derive(Debug)]
pub(crate) struct ByteStream {
    pub ends: [NodeId; 2],
    pub is_open: bool,
    profile: StreamProfile,
    rng: Rng,
    directions: [Direction; 2],
}

/// The octets on their way from one end.
#[derive(Clone, Copy, Debug, Default)]
struct Direction {
    /// When the last octet arrives, and when the link is free again.
    last: Time,
    free: Time,
    /// Octets on their way, and the most that ever were.
    waiting: usize,
    most: usize,
}

/// TCP's least timeout (RFC 6298 §2.4 asks for 1 s, Linux takes 200 ms), which doubles.
const RTO: Duration = Duration::from_millis(200);
const DOUBLINGS_MAX: u64 = 3;

impl ByteStream {
    pub(crate) fn new(ends: [NodeId; 2], profile: StreamProfile, rng: Rng) -> ByteStream {
        ByteStream { ends, is_open: true, profile, rng, directions: [Direction::default(); 2] }
    }

    pub(crate) fn set_profile(&mut self, profile: StreamProfile) {
        self.profile = profile;
    }

    /// The node at the other end.
    pub(crate) fn other(&self, node: NodeId) -> NodeId {
        self.ends[usize::from(self.ends[0] == node)]
    }

    /// A node writes this number of octets. Returns when they arrive at the other.
    pub(crate) fn write(&mut self, now: Time, from: NodeId, octets: usize) -> Time {
        let StreamProfile { delay, stall, rate, outages, bursts } = &self.profile;
        let end = usize::from(self.ends[0] != from);
        let direction = &mut self.directions[end];
        direction.waiting += octets;
        direction.most = direction.most.max(direction.waiting);
        direction.free = direction.free.max(now);
        if let Some(rate) = rate {
            direction.free =
                direction.free + Duration::from_micros(octets as u64 * 8_000_000 / rate);
        }
        let departs = direction.free;
        let departs = bursts[end].as_ref().map_or(departs, |bursts| bursts.departure(departs));
        let mut at = departs + *delay;
        if self.rng.happens(*stall) {
            at = at + RTO * (1 << self.rng.below(DOUBLINGS_MAX));
        }
        for outage in outages {
            if outage.contains(&at) || outage.contains(&now) {
                // The timeout has doubled meanwhile.
                let silent = outage.end.since(outage.start);
                at = at.max(outage.end + self.rng.span_below(silent + RTO));
            }
        }
        direction.last = direction.last.max(at);
        direction.last
    }

    /// This number of octets has arrived at a node.
    pub(crate) fn arrived(&mut self, to: NodeId, octets: usize) {
        self.directions[usize::from(self.ends[0] == to)].waiting -= octets;
    }

    /// The most octets that were on their way in one direction.
    pub(crate) fn most(&self) -> usize {
        self.directions.iter().map(|direction| direction.most).max().unwrap_or(0)
    }
}
