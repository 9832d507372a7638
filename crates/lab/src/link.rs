//! One direction of an emulated path as a pure function: a datagram and the time go in, the copies that arrive and
//! their times come out.
//!
//! It owns no clock and no socket: [`world`](crate::world) runs it in virtual time, [`relay`](crate::relay) in real
//! time. A datagram meets the parts of a path in their real order: an outage, the MTU, the bottleneck's queue, loss
//! and damage, and the delay.

mod profile;

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use rove_ssp::Time;

pub(crate) use self::profile::{Bursts, Oversize, Rate, Traced};
pub use self::profile::{Jitter, Loss, Order, Profile};

use crate::opportunities::Cursor;
use crate::rng::Rng;

/// A datagram at the far end.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Delivery {
    /// When it arrives: never before it was sent.
    pub at: Time,
    /// Its octets, damaged or not.
    pub datagram: Vec<u8>,
    /// Whether it carries the congestion mark.
    pub congested: bool,
}

/// Counts of datagrams by outcome. `offered + duplicated` = `delivered` + all that were dropped.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counters {
    /// Datagrams sent into the link.
    pub offered: u64,
    /// Octets in them.
    pub offered_bytes: u64,
    /// Copies that arrive.
    pub delivered: u64,
    /// Octets that arrive.
    pub delivered_bytes: u64,
    /// Lost by chance.
    pub lost: u64,
    /// Dropped because the queue was full.
    pub overflowed: u64,
    /// Sent into an outage, or due within one.
    pub cut: u64,
    /// Longer than the MTU.
    pub oversized: u64,
    /// Second copies made.
    pub duplicated: u64,
    /// Held back so that others overtake.
    pub reordered: u64,
    /// Held back until the end of a span in which all wait.
    pub held: u64,
    /// Held back until the next burst.
    pub burst: u64,
    /// Damaged.
    pub corrupted: u64,
    /// How long those waited that left the queue for the bottleneck, together.
    pub queued: Duration,
}

impl Counters {
    /// Counts what another link did as well.
    pub fn add(&mut self, other: &Counters) {
        self.offered += other.offered;
        self.offered_bytes += other.offered_bytes;
        self.delivered += other.delivered;
        self.delivered_bytes += other.delivered_bytes;
        self.lost += other.lost;
        self.overflowed += other.overflowed;
        self.cut += other.cut;
        self.oversized += other.oversized;
        self.duplicated += other.duplicated;
        self.reordered += other.reordered;
        self.held += other.held;
        self.burst += other.burst;
        self.corrupted += other.corrupted;
        self.queued += other.queued;
    }

    /// The difference to `before`, an earlier state of the same link's counters.
    pub fn since(&self, before: &Counters) -> Counters {
        Counters {
            offered: self.offered - before.offered,
            offered_bytes: self.offered_bytes - before.offered_bytes,
            delivered: self.delivered - before.delivered,
            delivered_bytes: self.delivered_bytes - before.delivered_bytes,
            lost: self.lost - before.lost,
            overflowed: self.overflowed - before.overflowed,
            cut: self.cut - before.cut,
            oversized: self.oversized - before.oversized,
            duplicated: self.duplicated - before.duplicated,
            reordered: self.reordered - before.reordered,
            held: self.held - before.held,
            burst: self.burst - before.burst,
            corrupted: self.corrupted - before.corrupted,
            queued: self.queued - before.queued,
        }
    }
}

/// One direction of a path, with its queue and its random generator.
#[derive(Clone, Debug)]
pub struct Link {
    profile: Profile,
    rng: Rng,
    in_burst: bool,
    /// When each datagram that waits for the bottleneck has left it, and its octets. Held by
    /// `queue_bytes_max`.
    queue: VecDeque<(Time, usize)>,
    queue_bytes: usize,
    /// How much of the recorded bottleneck has been used.
    cursor: Cursor,
    /// The tokens in the policer's bucket, in millionths of a bit, and the time of that count.
    bucket: Option<(u64, Time)>,
    last_arrival: Time,
    counters: Counters,
}

impl Link {
    /// A link of this profile; all its chances come from `rng`.
    pub fn new(profile: Profile, rng: Rng) -> Link {
        Link {
            profile,
            rng,
            in_burst: false,
            queue: VecDeque::new(),
            queue_bytes: 0,
            cursor: Cursor::default(),
            bucket: None,
            last_arrival: Time::ZERO,
            counters: Counters::default(),
        }
    }

    /// Sends one datagram; appends the deliveries of it (none, one, or two) to `out`.
    pub fn pass(&mut self, now: Time, datagram: &[u8], out: &mut Vec<Delivery>) {
        self.counters.offered += 1;
        self.counters.offered_bytes += datagram.len() as u64;
        if self.profile.is_cut(now) {
            self.counters.cut += 1;
            return;
        }
        if datagram.len() > self.profile.mtu {
            self.counters.oversized += 1;
            return;
        }
        if !self.conforms(now, datagram.len()) {
            self.counters.overflowed += 1;
            return;
        }
        let Some(departs) = self.enqueue(now, datagram.len()) else {
            self.counters.overflowed += 1;
            return;
        };
        if self.loses() {
            self.counters.lost += 1;
            return;
        }
        let first = self.arrival(departs);
        self.deliver(first, datagram, out);
        if self.rng.happens(self.profile.duplicate) {
            self.counters.duplicated += 1;
            let again = first + self.rng.span_below(self.profile.straggle);
            self.deliver(again, datagram, out);
        }
    }

    /// Replaces the profile; datagrams on their way are not affected.
    pub fn set_profile(&mut self, profile: Profile) {
        if self.profile.trace != profile.trace {
            self.cursor = Cursor::default();
        }
        self.profile = profile;
    }

    /// Lets nothing pass in this span, in addition to the outages of the profile. Outages that are over by
    /// the start of this one are forgotten.
    pub fn cut(&mut self, span: Range<Time>) {
        self.profile.outages.retain(|outage| outage.end > span.start);
        self.profile.outages.push(span);
    }

    /// Its profile.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Counts so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Whether the policer's bucket has tokens for this many octets; takes them if so.
    fn conforms(&mut self, now: Time, length: usize) -> bool {
        let Some(policer) = self.profile.policer else { return true };
        let most = policer.queue_bytes_max as u64 * BYTE;
        let (level, since) = self.bucket.unwrap_or((most, now));
        let gained = policer.bits_per_second.saturating_mul(now.since(since).as_micros() as u64);
        let level = level.saturating_add(gained).min(most);
        let cost = (length + self.profile.header_bytes) as u64 * BYTE;
        let conforms = level >= cost;
        self.bucket = Some((if conforms { level - cost } else { level }, now));
        conforms
    }

    /// When the bottleneck has sent this datagram, or `None` if the queue is full.
    fn enqueue(&mut self, now: Time, length: usize) -> Option<Time> {
        let most = match (&self.profile.trace, self.profile.rate) {
            (Some(trace), _) => trace.queue_bytes_max,
            (None, Some(rate)) => rate.queue_bytes_max,
            (None, None) => return Some(now),
        };
        while let Some(&(departs, bytes)) =
            self.queue.front().filter(|(departs, _)| *departs <= now)
        {
            debug_assert!(departs <= now);
            self.queue_bytes -= bytes;
            self.queue.pop_front();
        }
        let bytes = length + self.profile.header_bytes;
        if self.queue_bytes + bytes > most {
            return None;
        }
        let starts = self.queue.back().map_or(now, |(departs, _)| *departs);
        self.counters.queued += starts.since(now);
        let departs = match (&self.profile.trace, self.profile.rate) {
            (Some(trace), _) => {
                let since = starts.since(trace.begins);
                trace.begins + trace.opportunities.departure(&mut self.cursor, since, bytes)
            }
            (None, rate) => {
                let bits = rate.map_or(u64::MAX, |rate| rate.bits_per_second.max(1));
                starts + Duration::from_micros((bytes as u64 * 8).saturating_mul(1_000_000) / bits)
            }
        };
        self.queue.push_back((departs, bytes));
        self.queue_bytes += bytes;
        Some(departs)
    }

    fn loses(&mut self) -> bool {
        match self.profile.loss {
            Loss::Independent(chance) => self.rng.happens(chance),
            Loss::Bursts { enter, leave, good, bad } => {
                let change = if self.in_burst { leave } else { enter };
                self.in_burst ^= self.rng.happens(change);
                self.rng.happens(if self.in_burst { bad } else { good })
            }
        }
    }

    fn arrival(&mut self, departs: Time) -> Time {
        let delay = self.profile.delay;
        let hold = self.profile.holds.iter().find(|hold| hold.contains(&departs));
        let ready = hold.map_or(departs, |hold| hold.end);
        let bursts = self.profile.bursts.as_ref();
        let leaves = bursts.map_or(ready, |bursts| bursts.departure(ready));
        self.counters.held += u64::from(hold.is_some());
        self.counters.burst += u64::from(leaves != ready);
        let mut at = leaves
            + match self.profile.jitter {
                Jitter::None => delay,
                Jitter::Uniform(most) => delay + self.rng.span_below(most),
                Jitter::Normal(sigma) => {
                    let micros = delay.as_micros() as i64 + self.rng.normal_us(sigma);
                    Duration::from_micros(micros.max(0) as u64)
                }
            };
        if self.profile.order == Order::Kept {
            at = at.max(self.last_arrival);
            self.last_arrival = at;
        }
        if self.rng.happens(self.profile.reorder) {
            self.counters.reordered += 1;
            at = at + self.rng.span_below(self.profile.straggle);
        }
        at
    }

    fn deliver(&mut self, at: Time, datagram: &[u8], out: &mut Vec<Delivery>) {
        if self.profile.is_cut(at) {
            self.counters.cut += 1;
            return;
        }
        let mut datagram = datagram.to_vec();
        if self.rng.happens(self.profile.corrupt) {
            self.counters.corrupted += 1;
            damage(&mut self.rng, &mut datagram);
        }
        let congested = self.rng.happens(self.profile.mark);
        self.counters.delivered += 1;
        self.counters.delivered_bytes += datagram.len() as u64;
        out.push(Delivery { at, datagram, congested });
    }
}

/// Damages a datagram so that it differs from the original: one to four flipped bits, a cut end, or a longer one.
fn damage(rng: &mut Rng, datagram: &mut Vec<u8>) {
    match rng.below(8) {
        0 if !datagram.is_empty() => datagram.truncate(rng.below(datagram.len() as u64) as usize),
        1 => datagram.push(rng.next_u64() as u8),
        _ if !datagram.is_empty() => {
            // Distinct bits, so that two flips never undo each other.
            let bits = datagram.len() as u64 * 8;
            let first = rng.below(bits);
            for step in 0..rng.within(1, 4).min(bits) {
                let bit = (first + step * (bits / 4).max(1)) % bits;
                datagram[(bit / 8) as usize] ^= 1 << (bit % 8);
            }
        }
        _ => datagram.push(rng.next_u64() as u8),
    }
}

/// An octet in millionths of a bit: a rate of one bit a second gains one such unit in a microsecond.
const BYTE: u64 = 8_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Chance;

    const MS: Duration = Duration::from_millis(1);

    fn send(link: &mut Link, count: u64, every: Duration) -> Vec<Delivery> {
        let mut out = Vec::new();
        for n in 0..count {
            link.pass(Time::ZERO + every * n as u32, &n.to_be_bytes(), &mut out);
        }
        out
    }

    fn numbers(deliveries: &[Delivery]) -> Vec<u64> {
        let mut sorted: Vec<&Delivery> = deliveries.iter().collect();
        sorted.sort_by_key(|delivery| delivery.at);
        sorted
            .iter()
            .map(|delivery| u64::from_be_bytes(delivery.datagram[..8].try_into().unwrap()))
            .collect()
    }

    #[test]
    fn a_clean_link_only_delays() {
        let mut link = Link::new(Profile::delay(40 * MS), Rng::new(1));
        let out = send(&mut link, 3, MS);
        let arrivals: Vec<u64> = out.iter().map(|delivery| delivery.at.as_micros()).collect();
        assert_eq!(arrivals, [40_000, 41_000, 42_000]);
        assert_eq!(numbers(&out), [0, 1, 2]);
    }

    #[test]
    fn bursts_are_when_the_radio_wakes() {
        let at = Time::from_millis;
        let bursts = Bursts { span: at(1_000)..at(6_500), every: 2_000 * MS };
        let profile = Profile { bursts: Some(bursts), ..Profile::delay(40 * MS) };
        let mut link = Link::new(profile, Rng::new(1));
        for (sent, arrives) in [
            (999, 1_039),
            (1_000, 1_040),
            (1_001, 3_040),
            (2_999, 3_040),
            (3_001, 5_040),
            (5_001, 6_540),
            (6_500, 6_540),
            (7_000, 7_040),
        ] {
            let mut out = Vec::new();
            link.pass(at(sent), b"x", &mut out);
            assert_eq!(out[0].at, at(arrives), "sent at {sent}");
        }
        assert_eq!((link.counters().held, link.counters().burst), (0, 4));
    }

    #[test]
    fn loss_is_what_was_asked() {
        let bursts = Loss::Bursts {
            enter: Chance::percent(1),
            leave: Chance::percent(9),
            good: Chance::NEVER,
            bad: Chance::SURE,
        };
        for (loss, percent) in [(Loss::Independent(Chance::percent(29)), 29), (bursts, 10)] {
            let mut link = Link::new(Profile { loss, ..Profile::default() }, Rng::new(2));
            let arrived = send(&mut link, 100_000, MS).len() as u64;
            assert_eq!(link.counters().lost + arrived, 100_000);
            assert!(link.counters().lost.abs_diff(percent * 1_000) < 1_000, "{loss:?}");
        }
    }

    #[test]
    fn bursts_are_longer_than_independent_losses() {
        let longest = |loss| {
            let mut link = Link::new(Profile { loss, ..Profile::default() }, Rng::new(3));
            let got = numbers(&send(&mut link, 20_000, MS));
            got.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap()
        };
        let chance = Chance::percent;
        let bursts =
            Loss::Bursts { enter: chance(1), leave: chance(9), good: chance(0), bad: chance(100) };
        assert!(longest(bursts) > 2 * longest(Loss::Independent(chance(10))));
    }

    #[test]
    fn jitter_keeps_order_unless_freed() {
        for jitter in [Jitter::Uniform(20 * MS), Jitter::Normal(10 * MS)] {
            for (order, sorted) in [(Order::Kept, true), (Order::Free, false)] {
                let profile = Profile { jitter, order, ..Profile::delay(50 * MS) };
                let out = send(&mut Link::new(profile, Rng::new(4)), 1_000, MS);
                assert_eq!(numbers(&out).is_sorted(), sorted, "{jitter:?} {order:?}");
            }
        }
    }

    #[test]
    fn stragglers_are_overtaken_and_nothing_else() {
        let profile = Profile::delay(10 * MS).reorder(Chance::percent(10), 100 * MS);
        let mut link = Link::new(profile, Rng::new(5));
        let out = send(&mut link, 1_000, MS);
        let late = out
            .iter()
            .enumerate()
            .filter(|(n, delivery)| delivery.at != Time::ZERO + MS * *n as u32 + 10 * MS)
            .count() as u64;
        assert!(link.counters().reordered.abs_diff(100) < 40);
        assert!(link.counters().reordered >= late && late > 50);
        assert!(!numbers(&out).is_sorted());
    }

    #[test]
    fn a_bottleneck_spaces_datagrams_and_drops_the_tail() {
        // 36 octets each with headers: 10 ms at 28 800 bit/s; the queue holds three.
        let profile = Profile::default().rate(28_800, 3 * 36);
        let mut link = Link::new(profile, Rng::new(6));
        let out = send(&mut link, 5, Duration::ZERO);
        let arrivals: Vec<u64> = out.iter().map(|delivery| delivery.at.as_micros()).collect();
        assert_eq!(arrivals, [10_000, 20_000, 30_000]);
        assert_eq!(link.counters().overflowed, 2);
        let mut later = Vec::new();
        link.pass(Time::from_millis(10), &[0; 8], &mut later);
        assert_eq!(later[0].at, Time::from_millis(40));
    }

    #[test]
    fn a_policer_drops_and_never_delays() {
        // 36 octets each with headers; the bucket holds three and gains one each 10 ms.
        let profile = Profile::default().policer(28_800, 3 * 36);
        let mut link = Link::new(profile, Rng::new(6));
        assert_eq!(numbers(&send(&mut link, 5, Duration::ZERO)), [0, 1, 2]);
        let mut later = Vec::new();
        for (at_ms, passes) in
            [(9, 0), (10, 1), (11, 0), (1_000, 1), (1_000, 1), (1_000, 1), (1_000, 0)]
        {
            later.clear();
            link.pass(Time::from_millis(at_ms), &[0; 8], &mut later);
            assert_eq!(later.len(), passes, "at {at_ms} ms");
            assert!(later.iter().all(|delivery| delivery.at == Time::from_millis(at_ms)));
        }
    }

    #[test]
    fn outages_take_what_is_sent_and_what_is_due() {
        let mut link = Link::new(Profile::delay(10 * MS), Rng::new(7));
        link.cut(Time::from_millis(100)..Time::from_millis(200));
        let out = send(&mut link, 300, MS);
        let missing: Vec<u64> = (0..300).filter(|n| !numbers(&out).contains(n)).collect();
        assert_eq!(missing, (90..200).collect::<Vec<u64>>());
    }

    #[test]
    fn copies_and_damage() {
        let half = Chance::percent(50);
        let profile =
            Profile { duplicate: half, straggle: 5 * MS, corrupt: half, ..Profile::default() };
        let mut link = Link::new(profile, Rng::new(8));
        let mut out = Vec::new();
        for _ in 0..1_000 {
            link.pass(Time::ZERO, b"datagram", &mut out);
        }
        let counters = *link.counters();
        let changed = out.iter().filter(|delivery| delivery.datagram != b"datagram").count();
        assert_eq!(counters.corrupted, changed as u64);
        assert_eq!(counters.delivered, 1_000 + counters.duplicated);
        assert_eq!(counters.delivered, out.len() as u64);
    }

    #[test]
    fn what_does_not_fit_vanishes() {
        let mut link = Link::new(Profile { mtu: 7, ..Profile::default() }, Rng::new(9));
        assert!(send(&mut link, 2, MS).is_empty());
        assert_eq!(link.counters().oversized, 2);
    }

    #[test]
    fn a_seed_is_a_run() {
        let profile = Profile {
            jitter: Jitter::Normal(30 * MS),
            duplicate: Chance::percent(5),
            corrupt: Chance::percent(5),
            straggle: 50 * MS,
            ..Profile::delay(100 * MS).loss(Chance::percent(30))
        };
        let run = |seed| send(&mut Link::new(profile.clone(), Rng::new(seed)), 500, MS);
        assert_eq!(run(10), run(10));
        assert_ne!(run(10), run(11));
    }
}
