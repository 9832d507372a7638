//! Tells congestion loss from inherent loss (loss-policy §5, 7). It must not know what is done
//! about either.
//!
//! Inherent loss does not depend on our rate; drops at a policer or in a short queue do. When more
//! is lost than while we sent little, a rate test begins: we send less, and the outcomes of those
//! datagrams decide (a sequential test, Wald 1947). If that is inconclusive, because we already
//! send little or because the samples are few, we send twice as much for a moment: a path that
//! carries no more would then lose half of it.

use core::time::Duration;

use libm::{log, sqrt};

use crate::recovery::detect::REORDER_THRESHOLD;
use crate::recovery::rtt::RttEstimator;
use crate::recovery::sent_log::{Load, Outcome};
use crate::time::Time;

/// The present loss, and the inherent loss of the path.
#[derive(Clone, Debug, Default)]
pub(crate) struct LossAttribution {
    /// Loss that has nothing to do with how much we send, and how many outcomes taught that.
    inherent: f64,
    taught: u32,
    /// Loss over the last outcomes, and how many they are.
    now: f64,
    known: u32,
    /// The newest datagram that arrived, by its number on the path; bit i is set if the one `i + 1` before it
    /// arrived, too.
    newest: u64,
    arrived: u128,
    /// The newest when outcomes were counted last.
    counted: u64,
    /// The newest that was sent.
    sent: u64,
    test: Option<RateTest>,
    /// Not before this is more sent in doubt.
    no_more_before: Time,
    /// The second that is, and octets sent in it and in the one before.
    second: (u64, usize, usize),
}

/// Less or more is sent, to see what that does to loss.
#[derive(Clone, Copy, Debug)]
struct RateTest {
    change: RateChange,
    /// The loss and rate before, in octets a second: the highest, if less is sent.
    loss: f64,
    rate: usize,
    /// From when on what is sent counts: datagrams from before the cut have left the path by then.
    counts_from: Time,
    /// When it ends also without a decision: what little is sent then says nothing.
    ends: Option<Time>,
    /// Octets sent since.
    bytes: usize,
    /// The newest datagram whose outcome counts, of those sent since; of how many, and how many are lost.
    counted: u64,
    outcomes: u32,
    lost: u32,
}

/// The change of rate in a test.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum RateChange {
    Lower,
    Raise,
}

/// What follows from the last report.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Finding {
    /// Nothing is lost but what always is.
    Normal,
    /// More is lost than can be chance: less is to be sent.
    Excess,
    /// It cannot be told: for a moment twice as much is to be sent.
    Inconclusive,
    /// Sending less was of no use, or sending more did no harm: the loss is not ours.
    Inherent,
}

/// Outcomes that the present loss is counted over, and how many are needed.
const OUTCOMES: u32 = 48;
const OUTCOMES_MIN: u32 = 16;
/// Outcomes that are remembered: as many as a report tells of.
const SPAN: u64 = 120;
/// Outcomes that the path's own loss is the mean of.
const LEARNT_MAX: u32 = 192;
/// Below this rate, in octets a second, loss is not of our making.
const QUIET: usize = 6000;
/// Loss that we cause falls at least to this share of what it was once less is sent, unless it is more by
/// the rate; what it is at least.
const OURS_SHARE: f64 = 0.5;
const OURS_MIN: f64 = 0.005;
/// Where the rate falls by less than this, loss that stays says nothing.
const FALL_MIN: f64 = 1.4;
/// How long cuts have to show, beside a round trip, and how long it takes at least that more is sent.
const SETTLE: Duration = Duration::from_secs(1);
const MORE_SETTLE: Duration = Duration::from_millis(100);
/// How long what more does has to show, beside two round trips: at the slowest pace that is 80 datagrams. No
/// excess is found meanwhile.
const MORE_LASTS: Duration = Duration::from_secs(10);
/// Odds of 7 to 1 decide a test, and after this number of outcomes any odds do.
const EVIDENCE: f64 = 2.0;
const TRIAL_OUTCOMES_MAX: u32 = 96;
/// A test that is undecided after this number of outcomes ends, and more is sent: if no more than this share is
/// lost, at least this times the rate of before, and not again within this time.
const OPEN_OUTCOMES: u32 = 32;
const MORE_LOSS_MAX: f64 = 0.6;
const RISE_MIN: f64 = 1.3;
const MORE_AGAIN: Duration = Duration::from_secs(20);
/// Loss by chance is this many standard deviations above its mean at most.
const DEVIATIONS: f64 = 3.0;
/// Asked with each report, chance has many chances.
const RARE: f64 = 4.0 / 3.0;
/// No path is known to lose less than this: two in 48 would be too much for one that lost none yet.
const RANDOM_MIN: f64 = 0.02;

impl LossAttribution {
    /// A datagram with news went out.
    pub(crate) fn on_sent(&mut self, now: Time, nth: u64, bytes: usize) {
        let second = now.as_millis() / 1000;
        if self.second.0 != second {
            // Two seconds are kept: a second that has just begun says little of the rate.
            let last = if self.second.0 + 1 == second { self.second.1 } else { 0 };
            self.second = (second, 0, last);
        }
        self.second.1 += bytes;
        self.sent = nth;
        let rate = self.rate();
        if let Some(test) = &mut self.test {
            // What left before the cut still meets the full queue. Only what is sent after it can
            // show less loss.
            if now < test.counts_from && test.change == RateChange::Lower {
                (test.counted, test.rate) = (nth, test.rate.max(rate));
            } else if now < test.counts_from {
                test.counted = nth;
            } else {
                test.bytes += bytes;
            }
        }
    }

    /// What became of a datagram. A lost probe was too long, which says nothing of the rest: it counts as if
    /// it had arrived.
    pub(crate) fn on_outcome(&mut self, outcome: Outcome<'_>) {
        match outcome {
            Outcome::Delivered(sent) | Outcome::Spurious(sent) => self.take(sent.nth),
            Outcome::Lost(sent) if sent.load == Load::Probe => self.take(sent.nth),
            Outcome::Lost(_) | Outcome::Forgotten(_) => {}
        }
    }

    /// The path is another now. What arrived by the last one is remembered: reports tell of it as before.
    pub(crate) fn reset(&mut self) {
        let LossAttribution { newest, arrived, .. } = *self;
        *self = LossAttribution { newest, arrived, ..LossAttribution::default() };
    }

    /// What follows from all outcomes of a report.
    pub(crate) fn judge(&mut self, now: Time, rtt: &RttEstimator) -> Finding {
        let news = self.count();
        let (newest, arrived) = (self.newest, self.arrived);
        if let Some(test) = &mut self.test {
            if now < test.counts_from && test.change == RateChange::Lower {
                // Reports tell of losses a round trip late, so the highest loss before the cut may
                // only be seen now.
                test.loss = test.loss.max(self.now);
            }
            test.count(newest, arrived);
            let test = *test;
            match test.judge(now, self.inherent) {
                Cause::Open if test.change == RateChange::Raise => return Finding::Normal,
                Cause::Open if test.may_be_inconclusive(now) && now >= self.no_more_before => {
                    self.no_more_before = now + MORE_AGAIN;
                    let counts_from = now + rtt.srtt().max(MORE_SETTLE);
                    let (loss, rate) = (test.loss_after(), test.rate_after(now));
                    let more = RateTest::new(RateChange::Raise, loss, rate, counts_from, self.sent);
                    let ends = counts_from + MORE_LASTS + 2 * rtt.srtt();
                    self.test = Some(RateTest { ends: Some(ends), ..more });
                    return Finding::Inconclusive;
                }
                Cause::Open => {}
                // The pace stays low; if loss stays, too, the next excess begins another test.
                Cause::Congestion => self.test = None,
                Cause::Inherent => {
                    self.test = None;
                    // So the same loss does not begin the same test again.
                    self.inherent = self.inherent.max(test.loss_after());
                    self.taught = self.taught.max(OUTCOMES);
                    return Finding::Inherent;
                }
            }
        // Little that we send fills no queue, so what is lost then is inherent. And no path has
        // more inherent loss than it loses now.
        } else if self.rate() < QUIET || self.now + self.chance(self.now) < self.inherent {
            self.learn(news);
        }
        // A slower pace cannot help where little is sent.
        if self.rate() > QUIET && self.now > self.limit() {
            let counts_from = now + SETTLE + rtt.srtt();
            let less =
                RateTest::new(RateChange::Lower, self.now, self.rate(), counts_from, self.sent);
            self.test.get_or_insert(less);
            return Finding::Excess;
        }
        Finding::Normal
    }

    /// Whether much more is lost than would be without us.
    pub(crate) fn is_ours(&self) -> bool {
        self.rate() > QUIET && self.now > 1.5 * self.inherent + 0.08
    }

    /// The share of datagrams that the path loses at any rate.
    pub(crate) fn inherent(&self) -> f64 {
        self.inherent
    }

    /// Octets a second, over the last one or two.
    pub(crate) fn rate(&self) -> usize {
        self.second.1.max(self.second.2)
    }

    /// The share of the last outcomes that is lost.
    #[cfg(test)]
    pub(crate) fn present(&self) -> f64 {
        self.now
    }

    /// Loss above this is more than the path's own.
    fn limit(&self) -> f64 {
        let chance = RARE * self.chance(self.inherent.max(RANDOM_MIN));
        (1.3 * self.inherent + 0.04).max(self.inherent + chance)
    }

    /// How far the present loss may be from this by chance.
    fn chance(&self, loss: f64) -> f64 {
        DEVIATIONS * sqrt(loss * (1.0 - loss) / f64::from(self.known.max(OUTCOMES_MIN)))
    }

    /// This one arrived.
    fn take(&mut self, nth: u64) {
        let bit = |back: u64| if back <= u64::from(u128::BITS) { 1 << (back - 1) } else { 0 };
        match nth.checked_sub(self.newest) {
            Some(0) => {}
            Some(step) => {
                let step_bits = u32::try_from(step).unwrap_or(u32::MAX);
                self.arrived = self.arrived.checked_shl(step_bits).unwrap_or(0) | bit(step);
                self.newest = nth;
            }
            None => self.arrived |= bit(self.newest - nth),
        }
    }

    /// Counts the present loss; how many outcomes are new. By the rule of loss each datagram has its outcome
    /// once [`REORDER_THRESHOLD`] newer ones have arrived.
    fn count(&mut self) -> u32 {
        let known = self.newest.saturating_sub(REORDER_THRESHOLD).min(u64::from(OUTCOMES)) as u32;
        if known == 0 {
            return 0;
        }
        let mask = (u128::MAX >> (u128::BITS - known)) << (REORDER_THRESHOLD - 1);
        let missing = known - (self.arrived & mask).count_ones();
        (self.now, self.known) = (f64::from(missing) / f64::from(known), known);
        let before = core::mem::replace(&mut self.counted, self.newest);
        (self.newest - before).min(u64::from(OUTCOMES)) as u32
    }

    /// The present loss is the path's own.
    fn learn(&mut self, news: u32) {
        if self.known < OUTCOMES_MIN {
            return;
        }
        self.taught = (self.taught + news).min(LEARNT_MAX);
        let weight = f64::from(news) / f64::from(self.taught.max(OUTCOMES));
        self.inherent += (self.now - self.inherent) * weight;
    }
}

/// What a trial has found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Cause {
    Open,
    /// The loss is ours, or nothing says that it is not.
    Congestion,
    /// It is the path's own.
    Inherent,
}

impl RateTest {
    fn new(
        change: RateChange,
        loss: f64,
        rate: usize,
        counts_from: Time,
        counted: u64,
    ) -> RateTest {
        let (bytes, outcomes, lost) = (0, 0, 0);
        RateTest { change, loss, rate, counts_from, ends: None, bytes, counted, outcomes, lost }
    }

    fn judge(&self, now: Time, inherent: f64) -> Cause {
        let (evidence, tells) = match self.change {
            RateChange::Lower => (self.evidence(now, inherent), self.fell(now) > FALL_MIN),
            RateChange::Raise => self.evidence_of_more(now),
        };
        let enough = self.outcomes >= TRIAL_OUTCOMES_MAX;
        if tells && (evidence >= EVIDENCE || enough && evidence > 0.0) {
            Cause::Inherent
        } else if enough || evidence <= -EVIDENCE || self.ends.is_some_and(|at| at <= now) {
            Cause::Congestion
        } else {
            Cause::Open
        }
    }

    /// Whether more of the same would say little.
    fn may_be_inconclusive(&self, now: Time) -> bool {
        now >= self.counts_from
            && self.outcomes >= OPEN_OUTCOMES
            && self.loss_after() <= MORE_LOSS_MAX
    }

    /// Octets a second since it counts.
    fn rate_after(&self, now: Time) -> usize {
        let seconds = now.since(self.counts_from).as_secs_f64().max(0.1);
        (self.bytes as f64 / seconds) as usize
    }

    /// The logarithm of how much more likely what happened is if the loss stays what it was than if no more
    /// gets through than before, or it doubles; and whether enough more was sent for that to say anything.
    fn evidence_of_more(&self, now: Time) -> (f64, bool) {
        let rise = self.rate_after(now) as f64 / (self.rate as f64).max(1.0);
        let stays = self.loss.clamp(OURS_MIN, 0.9);
        let rises = (1.0 - (1.0 - stays) / rise.max(1.0)).max(2.0 * stays).min(0.95);
        // A binomial likelihood of each of the two explanations (Wald 1947).
        let (lost, came) = (f64::from(self.lost), f64::from(self.outcomes - self.lost));
        let evidence = lost * log(stays / rises) + came * log((1.0 - stays) / (1.0 - rises));
        (evidence, rise >= RISE_MIN && self.outcomes >= OUTCOMES_MIN)
    }

    /// Takes the outcomes of what was sent since.
    fn count(&mut self, newest: u64, arrived: u128) {
        let known = newest.saturating_sub(REORDER_THRESHOLD);
        let first = (self.counted + 1).max(known.saturating_sub(SPAN - REORDER_THRESHOLD));
        for nth in first..=known {
            self.counted = nth;
            self.outcomes += 1;
            self.lost += u32::from(arrived >> (newest - nth - 1) & 1 == 0);
        }
    }

    /// How many times less is sent now.
    fn fell(&self, now: Time) -> f64 {
        let seconds = now.since(self.counts_from).as_secs_f64().max(0.1);
        self.rate as f64 * seconds / (self.bytes as f64).max(1.0)
    }

    /// How much more likely what happened is if the loss is not ours, and so stays what it was, than if it
    /// is, and falls: the logarithm. `inherent` is lost in any case.
    fn evidence(&self, now: Time, inherent: f64) -> f64 {
        // What a policer lets through stays the same.
        let fell = self.fell(now);
        let policed = if fell > FALL_MIN { 1.0 - (1.0 - self.loss) * fell } else { 0.0 };
        let stays = self.loss.min(0.99);
        let falls = policed.max(stays * OURS_SHARE).max(inherent).clamp(OURS_MIN, stays);
        let (lost, came) = (f64::from(self.lost), f64::from(self.outcomes - self.lost));
        lost * log(stays / falls) + came * log((1.0 - stays) / (1.0 - falls))
    }

    /// Loss since less is sent. Few outcomes exaggerate, so that the loss before counts with them.
    fn loss_after(&self) -> f64 {
        let few = f64::from(OUTCOMES_MIN);
        (f64::from(self.lost) + self.loss * few) / (f64::from(self.outcomes) + few)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use crate::timing::Timing;

    /// What a path does to a sender that sends less at each excess, and all it can when it is acquitted or
    /// calm: what it thinks of the path, and its mean rate in datagrams of 1200 octets a second. It begins
    /// with `rates.1` and goes down to `rates.0`. `lost` is asked for each datagram, at this rate.
    fn play(
        rates: (f64, f64),
        seconds: u64,
        lost: impl Fn(&mut Rng, f64) -> bool,
    ) -> (LossAttribution, f64) {
        let (mut attribution, mut rng) = (LossAttribution::default(), Rng::new(3));
        let mut rtt = RttEstimator::new(&Timing::ROVE);
        (0..50).for_each(|_| rtt.sample(Duration::from_millis(100)));
        let (mut rate, mut due, mut sum) = (rates.1, 0.0, 0.0);
        let (mut seq, mut map) = (0, 0_u128);
        for tenth in 0..seconds * 10 {
            let now = Time::from_millis(tenth * 100);
            due += rate / 10.0;
            while due >= 1.0 {
                due -= 1.0;
                let came = !lost(&mut rng, rate);
                map = map << 1 | u128::from(came);
                attribution.on_sent(now, seq, 1200);
                seq += 1;
            }
            // A report names the newest that came.
            let silent = map.trailing_zeros();
            if seq <= 1 + u64::from(silent) || silent >= 100 {
                continue;
            }
            attribution.newest = seq - 1 - u64::from(silent);
            attribution.arrived = map >> silent >> 1;
            rate = match attribution.judge(now, &rtt) {
                Finding::Excess => (rate * 0.6).max(rates.0),
                Finding::Inconclusive => rate * 2.0,
                Finding::Inherent => rates.1,
                Finding::Normal => (rate * 1.05).min(rates.1),
            };
            sum += rate / (seconds * 10) as f64;
        }
        (attribution, sum)
    }

    #[test]
    fn what_a_path_loses_anyway_is_not_our_fault() {
        for percent in [5, 10, 29, 50, 75] {
            let (attribution, rate) = play((4.0, 40.0), 120, |rng, _| rng.below(100) < percent);
            assert!(
                (attribution.inherent * 100.0 - f64::from(percent)).abs() < 12.0,
                "{}",
                attribution.inherent
            );
            assert!(rate > 20.0, "{rate} at {percent} %");
        }
    }

    #[test]
    fn what_falls_with_the_rate_is_ours() {
        // A policer of 12 datagrams a second drops what is above.
        let policed = |rng: &mut Rng, rate: f64| {
            let share = (1.0 - 12.0 / rate).max(0.0);
            f64::from(rng.below(1000)) < share * 1000.0
        };
        let (attribution, rate) = play((4.0, 40.0), 120, policed);
        assert!(attribution.inherent < 0.1 && rate < 20.0, "{} {rate}", attribution.inherent);
    }

    /// The flood that led to it was over before it could tell anything; the next is judged as ever.
    #[test]
    fn sending_more_ends_in_time() {
        let second = |second: u64| Time::from_millis(second * 1000);
        let more = RateTest::new(RateChange::Raise, 0.5, 20_000, second(2), 0);
        let test = Some(RateTest { ends: Some(second(5)), ..more });
        let (mut attribution, rtt) = (
            LossAttribution { test, ..LossAttribution::default() },
            RttEstimator::new(&Timing::ROVE),
        );
        let mut map = 0_u128;
        let mut hears_excess = |seq: u64| {
            let now = Time::from_millis(10_000 + seq * 10);
            attribution.on_sent(now, seq, 1200);
            // Every other one is lost.
            map = map << 1 | u128::from(seq.is_multiple_of(2));
            (attribution.newest, attribution.arrived) = (seq, map >> 1);
            let heard = seq.is_multiple_of(2).then(|| attribution.judge(now, &rtt));
            heard == Some(Finding::Excess)
        };
        assert!((1..u64::from(OUTCOMES)).any(&mut hears_excess));
    }

    /// The least that is sent is much, and the first trial has found nothing: so a sender is never stuck.
    #[test]
    fn in_doubt_more_is_sent() {
        for percent in [5, 20, 40] {
            let (_, rate) = play((30.0, 300.0), 20, |rng, _| rng.below(100) < percent);
            assert!(rate > 150.0, "{rate} at {percent} %");
        }
        let policed = |rng: &mut Rng, rate: f64| {
            let share = (1.0 - 28.0 / rate).max(0.0);
            f64::from(rng.below(1000)) < share * 1000.0
        };
        let (_, rate) = play((30.0, 300.0), 60, policed);
        assert!(rate < 60.0, "{rate}");
    }
}
