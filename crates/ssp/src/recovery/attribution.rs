//! Whose fault loss is: the path's own, or ours for sending too much (loss-policy §5, 7). It must not know
//! what is done about it.
//!
//! What a path loses of its own does not depend on how much is sent; what a policer or a short queue drops
//! does. So loss that is higher than it was while little was sent begins a trial: less is sent, and the
//! fates of what is sent then say which of the two it is (a sequential test, Wald 1947). Where that says
//! little, since the least that is sent is not much less, or since halves of few are hard to tell, more is
//! sent for a moment: what lets through no more would then lose half of all.

use std::time::Duration;

use libm::log;

use crate::recovery::detect::{OVERTAKEN, arrived};
use crate::recovery::rtt::Rtt;
use crate::time::Time;
use crate::wire::{Report, Seq};

/// What is lost at present, and what is lost whatever we do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Blame {
    /// Loss that has nothing to do with how much we send, and how many outcomes taught that.
    random: f64,
    taught: u32,
    /// Loss over the last outcomes, and how many they are.
    now: f64,
    known: u32,
    /// The newest datagram whose fate is counted.
    counted: Seq,
    /// The newest that was sent.
    sent: Seq,
    trial: Option<Trial>,
    /// Not before this is more sent in doubt.
    no_more_before: Time,
    /// The second that is, and octets sent in it and in the one before.
    second: (u64, usize, usize),
}

/// Less or more is sent, to see what that does to loss.
#[derive(Clone, Copy, Debug)]
struct Trial {
    course: Course,
    /// The loss and rate before, in octets a second: the highest, if less is sent.
    loss: f64,
    rate: usize,
    /// From when on what is sent counts: what was cut has left the path by then.
    counts_from: Time,
    /// When it is over whatever is known by then: what little is sent then says nothing.
    ends: Option<Time>,
    /// Octets sent since.
    bytes: usize,
    /// The newest datagram whose fate is known, of those sent since; of how many, and how many are lost.
    counted: Seq,
    outcomes: u32,
    lost: u32,
}

/// What is changed in a trial.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Course {
    Less,
    More,
}

/// What follows from the last report.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Verdict {
    /// Nothing is lost but what always is.
    Calm,
    /// More is lost than can be chance: less is to be sent.
    Excess,
    /// It cannot be told: for a moment twice as much is to be sent.
    Doubt,
    /// Sending less was of no use, or sending more did no harm: the loss is not ours.
    Acquitted,
}

/// Outcomes that the present loss is counted over, and how many are needed.
const OUTCOMES: u32 = 48;
const OUTCOMES_MIN: u32 = 16;
/// Outcomes that the path's own loss is the mean of.
const TAUGHT_MAX: u32 = 192;
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
/// Odds of 7 to 1 decide a trial, and whatever they are by then, so many outcomes.
const EVIDENCE: f64 = 2.0;
const TRIAL_OUTCOMES_MAX: u32 = 96;
/// After so many, one that leaves the question open ends, and more is sent: where no more than this is lost,
/// at least so many times as much as before, and not again for so long if it was our fault.
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

impl Blame {
    /// A datagram with news went out.
    pub fn sent(&mut self, now: Time, seq: Seq, bytes: usize) {
        let second = now.as_millis() / 1000;
        if self.second.0 != second {
            let last = if self.second.0 + 1 == second { self.second.1 } else { 0 };
            self.second = (second, 0, last);
        }
        self.second.1 += bytes;
        self.sent = seq;
        let rate = self.rate();
        if let Some(trial) = &mut self.trial {
            if now < trial.counts_from && trial.course == Course::Less {
                (trial.counted, trial.rate) = (seq, trial.rate.max(rate));
            } else if now < trial.counts_from {
                trial.counted = seq;
            } else {
                trial.bytes += bytes;
            }
        }
    }

    /// The peer says what came.
    pub fn hear(&mut self, now: Time, rtt: &Rtt, report: &Report) -> Verdict {
        let news = self.count(report);
        if let Some(trial) = &mut self.trial {
            if now < trial.counts_from && trial.course == Course::Less {
                trial.loss = trial.loss.max(self.now);
            }
            trial.count(report);
            let trial = *trial;
            match trial.judge(now, self.random) {
                Judgment::Open if trial.course == Course::More => return Verdict::Calm,
                Judgment::Open if trial.may_end_in_doubt(now) && now >= self.no_more_before => {
                    self.no_more_before = now + MORE_AGAIN;
                    let counts_from = now + rtt.srtt().max(MORE_SETTLE);
                    let (loss, rate) = (trial.loss_after(), trial.rate_after(now));
                    let more = Trial::new(Course::More, loss, rate, counts_from, self.sent);
                    let ends = counts_from + MORE_LASTS + 2 * rtt.srtt();
                    self.trial = Some(Trial { ends: Some(ends), ..more });
                    return Verdict::Doubt;
                }
                Judgment::Open => {}
                Judgment::Ours => self.trial = None,
                Judgment::Paths => {
                    self.trial = None;
                    self.random = self.random.max(trial.loss_after());
                    self.taught = self.taught.max(OUTCOMES);
                    return Verdict::Acquitted;
                }
            }
        } else if self.rate() < QUIET || self.now + self.chance(self.now) < self.random {
            self.learn(news);
        }
        if self.rate() > QUIET && self.now > self.limit() {
            let counts_from = now + SETTLE + rtt.srtt();
            let less = Trial::new(Course::Less, self.now, self.rate(), counts_from, self.sent);
            self.trial.get_or_insert(less);
            return Verdict::Excess;
        }
        Verdict::Calm
    }

    /// Whether much more is lost than would be without us.
    pub fn is_ours(&self) -> bool {
        self.rate() > QUIET && self.now > 1.5 * self.random + 0.08
    }

    /// Octets a second, over the last one or two.
    pub fn rate(&self) -> usize {
        self.second.1.max(self.second.2)
    }

    /// Loss above this is more than the path's own.
    fn limit(&self) -> f64 {
        let chance = RARE * self.chance(self.random.max(RANDOM_MIN));
        (1.3 * self.random + 0.04).max(self.random + chance)
    }

    /// How far the present loss may be from this by chance.
    fn chance(&self, loss: f64) -> f64 {
        DEVIATIONS * (loss * (1.0 - loss) / f64::from(self.known.max(OUTCOMES_MIN))).sqrt()
    }

    /// Counts the present loss; how many outcomes are new.
    fn count(&mut self, report: &Report) -> u32 {
        let known = report.newest.get().saturating_sub(OVERTAKEN).min(u64::from(OUTCOMES)) as u32;
        if known == 0 {
            return 0;
        }
        let mask = (u128::MAX >> (u128::BITS - known)) << (OVERTAKEN - 1);
        let missing = known - (report.received & mask).count_ones();
        (self.now, self.known) = (f64::from(missing) / f64::from(known), known);
        let before = self.counted;
        self.counted = before.max(report.newest);
        report.newest.get().saturating_sub(before.get()).min(u64::from(OUTCOMES)) as u32
    }

    /// The present loss is the path's own.
    fn learn(&mut self, news: u32) {
        if self.known < OUTCOMES_MIN {
            return;
        }
        self.taught = (self.taught + news).min(TAUGHT_MAX);
        let weight = f64::from(news) / f64::from(self.taught.max(OUTCOMES));
        self.random += (self.now - self.random) * weight;
    }
}

/// What a trial has found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Judgment {
    Open,
    /// The loss is ours, or nothing says that it is not.
    Ours,
    /// It is the path's own.
    Paths,
}

impl Trial {
    fn new(course: Course, loss: f64, rate: usize, counts_from: Time, counted: Seq) -> Trial {
        let (bytes, outcomes, lost) = (0, 0, 0);
        Trial { course, loss, rate, counts_from, ends: None, bytes, counted, outcomes, lost }
    }

    fn judge(&self, now: Time, random: f64) -> Judgment {
        let (evidence, tells) = match self.course {
            Course::Less => (self.evidence(now, random), self.fell(now) > FALL_MIN),
            Course::More => self.evidence_of_more(now),
        };
        let enough = self.outcomes >= TRIAL_OUTCOMES_MAX;
        if tells && (evidence >= EVIDENCE || enough && evidence > 0.0) {
            Judgment::Paths
        } else if enough || evidence <= -EVIDENCE || self.ends.is_some_and(|at| at <= now) {
            Judgment::Ours
        } else {
            Judgment::Open
        }
    }

    /// Whether more of the same would say little.
    fn may_end_in_doubt(&self, now: Time) -> bool {
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
        let (lost, came) = (f64::from(self.lost), f64::from(self.outcomes - self.lost));
        let evidence = lost * log(stays / rises) + came * log((1.0 - stays) / (1.0 - rises));
        (evidence, rise >= RISE_MIN && self.outcomes >= OUTCOMES_MIN)
    }

    /// Takes the fates of what was sent since.
    fn count(&mut self, report: &Report) {
        let known = report.newest.get().saturating_sub(OVERTAKEN);
        let first = (self.counted.get() + 1).max(known.saturating_sub(Report::TOLD - OVERTAKEN));
        for seq in (first..=known).map(Seq::new) {
            self.counted = seq;
            self.outcomes += 1;
            self.lost += u32::from(!arrived(report, seq));
        }
    }

    /// How many times less is sent now.
    fn fell(&self, now: Time) -> f64 {
        let seconds = now.since(self.counts_from).as_secs_f64().max(0.1);
        self.rate as f64 * seconds / (self.bytes as f64).max(1.0)
    }

    /// How much more likely what happened is if the loss is not ours, and so stays what it was, than if it
    /// is, and falls: the logarithm. `random` is lost in any case.
    fn evidence(&self, now: Time, random: f64) -> f64 {
        // What a policer lets through stays the same.
        let fell = self.fell(now);
        let policed = if fell > FALL_MIN { 1.0 - (1.0 - self.loss) * fell } else { 0.0 };
        let stays = self.loss.min(0.99);
        let falls = policed.max(stays * OURS_SHARE).max(random).clamp(OURS_MIN, stays);
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
    fn play(rates: (f64, f64), seconds: u64, lost: impl Fn(&mut Rng, f64) -> bool) -> (Blame, f64) {
        let (mut blame, mut rng) = (Blame::default(), Rng::new(3));
        let mut rtt = Rtt::new(&Timing::ROVE);
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
                blame.sent(now, Seq::new(seq), 1200);
                seq += 1;
            }
            // A report names the newest that came.
            let silent = map.trailing_zeros();
            if seq <= 1 + u64::from(silent) || silent >= 100 {
                continue;
            }
            let newest = Seq::new(seq - 1 - u64::from(silent));
            let received = map >> silent >> 1;
            rate = match blame.hear(now, &rtt, &Report { newest, received, ..Report::default() }) {
                Verdict::Excess => (rate * 0.6).max(rates.0),
                Verdict::Doubt => rate * 2.0,
                Verdict::Acquitted => rates.1,
                Verdict::Calm => (rate * 1.05).min(rates.1),
            };
            sum += rate / (seconds * 10) as f64;
        }
        (blame, sum)
    }

    #[test]
    fn what_a_path_loses_anyway_is_not_our_fault() {
        for percent in [5, 10, 29, 50, 75] {
            let (blame, rate) = play((4.0, 40.0), 120, |rng, _| rng.below(100) < percent);
            assert!((blame.random * 100.0 - f64::from(percent)).abs() < 12.0, "{}", blame.random);
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
        let (blame, rate) = play((4.0, 40.0), 120, policed);
        assert!(blame.random < 0.1 && rate < 20.0, "{} {rate}", blame.random);
    }

    /// The flood that led to it was over before it could tell anything; the next is judged as ever.
    #[test]
    fn sending_more_ends_in_time() {
        let second = |second: u64| Time::from_millis(second * 1000);
        let more = Trial::new(Course::More, 0.5, 20_000, second(2), Seq::new(0));
        let trial = Some(Trial { ends: Some(second(5)), ..more });
        let (mut blame, rtt) = (Blame { trial, ..Blame::default() }, Rtt::new(&Timing::ROVE));
        let mut map = 0_u128;
        let mut hears_excess = |seq: u64| {
            let now = Time::from_millis(10_000 + seq * 10);
            blame.sent(now, Seq::new(seq), 1200);
            // Every other one is lost.
            map = map << 1 | u128::from(seq.is_multiple_of(2));
            let report = Report { newest: Seq::new(seq), received: map >> 1, ..Report::default() };
            let heard = seq.is_multiple_of(2).then(|| blame.hear(now, &rtt, &report));
            heard == Some(Verdict::Excess)
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
