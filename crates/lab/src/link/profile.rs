//! The effects of one direction of an emulated path on datagrams, as values: delay, loss, bottleneck, outages. It does
//! nothing to a datagram.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use rove_ssp::Time;

use crate::opportunities::Opportunities;
use crate::rng::Chance;

/// The effects of a path on datagrams. The default has none and takes no time.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The time a datagram travels when nothing delays it.
    pub delay: Duration,
    /// The part of the delay that varies between datagrams.
    pub jitter: Jitter,
    /// Whether jitter lets one datagram overtake another. Reordering by chance is never held back.
    pub order: Order,
    /// Which datagrams are lost.
    pub loss: Loss,
    /// How often a datagram arrives a second time, up to `straggle` later.
    pub duplicate: Chance,
    /// How often a datagram is held back by up to `straggle`, so that later ones overtake it.
    pub reorder: Chance,
    /// The longest time a straggler or a second copy is late.
    pub straggle: Duration,
    /// How often octets of a datagram are changed, or its end cut off.
    pub corrupt: Chance,
    /// How often a datagram arrives marked "congestion experienced" (ECN CE, RFC 3168).
    pub mark: Chance,
    /// The bottleneck, if there is one.
    pub rate: Option<Rate>,
    /// A bottleneck that changes as a recorded one did, instead of `rate`.
    pub trace: Option<Traced>,
    /// Octets that the bottleneck carries besides each datagram: 28 of IPv4 and UDP headers (RFC 791, RFC 768), or
    /// none where whole packets pass.
    pub header_bytes: usize,
    /// A bucket that fills at this rate up to `queue_bytes_max`: what finds it empty is dropped, and nothing
    /// ever waits.
    pub policer: Option<Rate>,
    /// Outages: datagrams that are sent in one of these spans, or would arrive in it, are lost.
    pub outages: Vec<Range<Time>>,
    /// Spans in which datagrams wait, as at a radio that looks for its tower: all of them go on when the span ends.
    pub holds: Vec<Range<Time>>,
    /// Whether datagrams leave in bursts, as by a radio that sleeps in between.
    pub bursts: Option<Bursts>,
    /// The largest UDP payload that fits, in octets; longer ones vanish.
    pub mtu: usize,
    /// Whether the sender of a longer one hears of it.
    pub oversize: Oversize,
}

impl Default for Profile {
    fn default() -> Profile {
        Profile {
            delay: Duration::ZERO,
            jitter: Jitter::None,
            order: Order::Kept,
            loss: Loss::Independent(Chance::NEVER),
            duplicate: Chance::NEVER,
            reorder: Chance::NEVER,
            straggle: Duration::ZERO,
            corrupt: Chance::NEVER,
            mark: Chance::NEVER,
            rate: None,
            trace: None,
            header_bytes: HEADER_BYTES,
            policer: None,
            outages: Vec::new(),
            holds: Vec::new(),
            bursts: None,
            mtu: usize::MAX,
            oversize: Oversize::Told,
        }
    }
}

impl Profile {
    /// A path that takes this long and does nothing else.
    pub fn delay(delay: Duration) -> Profile {
        Profile { delay, ..Profile::default() }
    }

    /// The same path, losing each datagram with this chance.
    pub fn loss(self, chance: Chance) -> Profile {
        Profile { loss: Loss::Independent(chance), ..self }
    }

    /// The same path, holding this share of the datagrams back by up to `straggle`.
    pub fn reorder(self, chance: Chance, straggle: Duration) -> Profile {
        Profile { reorder: chance, straggle, ..self }
    }

    /// The same path, where what exceeds a bucket that fills at this rate is dropped.
    pub fn policer(self, bits_per_second: u64, bucket_bytes: usize) -> Profile {
        let policer = Rate { bits_per_second, queue_bytes_max: bucket_bytes };
        Profile { policer: Some(policer), ..self }
    }

    /// The same path behind a bottleneck.
    pub fn rate(self, bits_per_second: u64, queue_bytes_max: usize) -> Profile {
        Profile { rate: Some(Rate { bits_per_second, queue_bytes_max }), ..self }
    }

    /// The most datagrams that the path takes in a second, into its queue or bucket as well. `None` without a rate.
    pub fn datagrams_per_second_max(&self) -> Option<u32> {
        let least = self.header_bytes + PAYLOAD_BYTES_LEAST;
        let bounds = self.rate.iter().chain(&self.policer);
        let octets = bounds.map(|it| it.bits_per_second / 8 + it.queue_bytes_max as u64).min()?;
        Some((octets / least as u64) as u32)
    }

    /// Whether this is in an outage.
    pub fn is_cut(&self, at: Time) -> bool {
        self.outages.iter().any(|outage| outage.contains(&at))
    }
}

/// A span in which datagrams wait, and all leave at once each time that a radio wakes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Bursts {
    /// At its end they leave as well.
    pub span: Range<Time>,
    /// From one burst to the next.
    pub every: Duration,
}

impl Bursts {
    /// When something leaves that is ready now.
    pub fn departure(&self, now: Time) -> Time {
        if !self.span.contains(&now) {
            return now;
        }
        let waking = now.since(self.span.start).as_micros() as u64;
        let waking = waking.next_multiple_of(self.every.as_micros().max(1) as u64);
        (self.span.start + Duration::from_micros(waking)).min(self.span.end)
    }
}

/// Whether the sender of a datagram that is too long hears of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Oversize {
    /// Its system refuses it.
    Told,
    /// A firewall drops the ICMP answer.
    Silent,
}

/// Variation of the time a datagram travels.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Jitter {
    /// Nothing.
    None,
    /// Every extra delay below this one is as likely as any other.
    Uniform(Duration),
    /// A normal deviate of this deviation is added; the whole never falls below zero.
    Normal(Duration),
}

/// Whether datagrams keep their order under jitter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Order {
    /// None overtakes another, as in one queue.
    Kept,
    /// Each travels for itself, as over several paths.
    Free,
}

/// Which datagrams are lost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Loss {
    /// Each datagram with the same chance, independent of the others.
    Independent(Chance),
    /// Losses come in bursts: a good and a bad state with a chance of loss each (Gilbert 1960, Elliott 1963),
    /// and a chance of changing the state before each datagram.
    Bursts {
        /// From the good state to the bad one.
        enter: Chance,
        /// From the bad state to the good one.
        leave: Chance,
        /// Loss in the good state.
        good: Chance,
        /// Loss in the bad state.
        bad: Chance,
    },
}

/// A bottleneck: its rate, and a queue before it that drops what does not fit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rate {
    /// Bits in a second, headers included (28 octets of IPv4 and UDP for each datagram).
    pub bits_per_second: u64,
    /// Octets that may wait or be in transmission; a datagram that would exceed them is dropped.
    pub queue_bytes_max: usize,
}

/// A recorded bottleneck, and a queue before it that drops what does not fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Traced {
    /// When it let packets through.
    pub opportunities: Arc<Opportunities>,
    /// When the recording begins.
    pub begins: Time,
    /// Octets that may wait, headers included.
    pub queue_bytes_max: usize,
}

/// The least payload: sealed and numbered, it says that there is nothing new.
const PAYLOAD_BYTES_LEAST: usize = 24;

/// IPv4 and UDP headers, which the bottleneck carries as well (RFC 791, RFC 768).
const HEADER_BYTES: usize = 28;
