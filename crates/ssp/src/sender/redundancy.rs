//! Decides when to retransmit a state and how many redundant copies to send at once (loss-policy
//! §5, 3 to 5). It sees when states were sent, and nothing of what they hold.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use crate::recovery::rtt::RttEstimator;
use crate::time::Time;
use crate::timing::{AdaptiveTiming, StreamTiming};

/// The clocks of an adaptive sender.
#[derive(Clone, Debug)]
pub(crate) struct Redundancy {
    policy: AdaptiveTiming,
    round: Option<ProbeRound>,
    /// How long the last states took from their first datagram to their acknowledgment, at most
    /// [`LATENCIES`].
    latencies: VecDeque<Duration>,
    /// The 90th percentile of those.
    slow_ack: Duration,
    /// When the last new state went out, and the mean time between the last of them.
    last_new: Option<Time>,
    gap: Duration,
    /// When the bucket of copies is full.
    copies_paid: Time,
    /// When anything came from the peer.
    heard: Time,
    /// The peer is back after a silence: pending states go at once.
    back: bool,
    /// The share of datagrams lost, in parts of one: of ours, and of the peer's.
    loss_out: f64,
    loss_in: f64,
    /// The peer says what becomes of our datagrams.
    reported: bool,
    /// How long the peer's acknowledgments wait.
    peer_ack_delay: Duration,
    /// How long ours wait while nothing is lost.
    calm_ack_delay: Duration,
    /// Datagrams that the last saying took.
    datagrams: u32,
    /// Sending more than is needed makes things worse.
    congested: bool,
    /// The constants of a stream, while one is in use.
    stream: Option<StreamTiming>,
}

/// What the peer says of all our datagrams together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Feedback {
    /// The share of them that it misses.
    pub loss: f64,
    /// How long its acknowledgments wait.
    pub ack_delay: Duration,
}

/// The same state, said several times, until an answer is overdue.
#[derive(Clone, Copy, Debug)]
struct ProbeRound {
    began: Time,
    /// How often it was said.
    transmissions: u32,
    last: Time,
    /// Rounds before this one that nothing answered.
    unanswered: u32,
    /// When the first of them began.
    first: Time,
}

/// Why an instruction is said again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Resend {
    /// In case the first was lost.
    Redundant,
    /// Because no answer came.
    Timeout,
}

/// Latencies of acknowledgments that are remembered (loss-policy §5, 4).
const LATENCIES: usize = 32;
/// The least allowance for variation (loss-policy §5, 4).
const SLACK_MIN: Duration = Duration::from_millis(10);
/// Each round waits this much longer than the one before, in quarters.
const BACKOFF_QUARTERS: u32 = 5;
/// How long rounds may become while data was pending for less than [`PATIENCE`]; probes then come at least
/// this often, so that a path that is back is used within this and a round trip.
const PROBE_MAX: Duration = Duration::from_millis(250);
const PROBE_MIN: Duration = Duration::from_millis(100);
/// Rounds without an answer after which only probes go out.
const SILENT_ROUNDS: u32 = 3;
/// Data pending for longer than this is probed for each [`PROBE_LATE`].
const PATIENCE: Duration = Duration::from_secs(60);
const PROBE_LATE: Duration = Duration::from_secs(1);
/// A stream of frames has less than this between two (loss-policy §5, 3).
const STREAM_GAP: Duration = Duration::from_millis(100);
/// A stream needs no copies below this loss: the next frame is one.
const STREAM_LOSS: f64 = 0.15;
/// Copies in a second, and at once (loss-policy §5, 3).
const COPIES_PER_SECOND: u32 = 30;
const COPIES_BURST: u32 = 10;
/// Loss above which acknowledgments hurry (loss-policy §5, 5).
const ACK_LOSS: f64 = 0.02;

impl Redundancy {
    pub(crate) fn new(now: Time, policy: AdaptiveTiming) -> Redundancy {
        Redundancy {
            peer_ack_delay: policy.peer_ack_delay.unwrap_or(policy.ack_delay),
            calm_ack_delay: policy.ack_delay,
            datagrams: 0,
            congested: false,
            stream: None,
            policy,
            round: None,
            latencies: VecDeque::new(),
            slow_ack: Duration::ZERO,
            last_new: None,
            gap: Duration::from_secs(1),
            copies_paid: Time::ZERO,
            heard: now,
            back: false,
            loss_out: 0.0,
            loss_in: 0.0,
            reported: false,
        }
    }

    /// An authentic datagram came. Without feedback both directions are taken to lose alike.
    pub(crate) fn on_datagram(
        &mut self,
        now: Time,
        rtt: &RttEstimator,
        loss_in: f64,
        feedback: Option<Feedback>,
    ) {
        // After a gap the timers have backed off. The first datagram that comes shows that the path
        // works again.
        let was_silent = now.since(self.heard) > rtt.srtt() + BACK_AFTER;
        self.back |= was_silent && self.overdue(now) && self.stream.is_none();
        self.heard = now;
        self.loss_in = loss_in;
        self.reported |= feedback.is_some();
        // Without feedback the peer's loss is the best guess: both directions share most links.
        self.loss_out = feedback.map_or(loss_in, |feedback| feedback.loss);
        if rtt.samples() > 0 {
            // On a long path an answer takes long anyway, so waiting for data to ride on costs
            // little.
            let half = (rtt.srtt() / 2).min(self.policy.ack_delay_max);
            self.calm_ack_delay = half.max(self.policy.ack_delay);
        }
        self.peer_ack_delay = match (feedback, self.policy.peer_ack_delay) {
            (Some(feedback), _) => feedback.ack_delay,
            (None, Some(fixed)) => fixed,
            (None, None) => self.ack_delay(),
        };
    }

    /// Datagrams go by a stream from now on, or by UDP.
    pub(crate) fn switch(&mut self, stream: Option<StreamTiming>) {
        self.stream = stream;
        self.latencies.clear();
        self.back = false;
    }

    /// Whether the peer says what comes.
    pub(crate) fn is_reported(&self) -> bool {
        self.reported
    }

    /// Whether the path has queues or losses of our making.
    pub(crate) fn judge(&mut self, congested: bool) {
        self.congested = congested;
    }

    /// A datagram of the last saying went out.
    pub(crate) fn carried(&mut self) {
        self.datagrams = self.datagrams.saturating_add(1);
    }

    /// A state was acknowledged this long after its first datagram.
    pub(crate) fn acknowledged(&mut self, latency: Duration) {
        if self.latencies.len() == LATENCIES {
            self.latencies.pop_front();
        }
        self.latencies.push_back(latency);
        let mut sorted: Vec<Duration> = self.latencies.iter().copied().collect();
        // The 90th percentile and not the mean: a mean would make one timeout in two needless.
        sorted.sort_unstable();
        self.slow_ack = sorted[(sorted.len() * 9 / 10).min(sorted.len() - 1)];
    }

    /// Some state was acknowledged: the peer answers.
    pub(crate) fn answered(&mut self) {
        if let Some(round) = &mut self.round {
            round.unanswered = 0;
            // The path works: patience begins anew.
            round.first = round.began;
        }
    }

    /// Nothing is pending any more.
    pub(crate) fn settled(&mut self) {
        self.round = None;
        self.back = false;
    }

    /// A new state goes out.
    pub(crate) fn sent_new(&mut self, now: Time) {
        self.datagrams = 0;
        if let Some(last) = self.last_new {
            // A pause of minutes must not hide the stream that follows it.
            self.gap = (self.gap * 7 + now.since(last).min(Duration::from_secs(1))) / 8;
        }
        self.last_new = Some(now);
        let (unanswered, first) =
            self.round.map_or((0, now), |round| (round.unanswered, round.first));
        self.round =
            Some(ProbeRound { began: now, transmissions: 1, last: now, unanswered, first });
        self.back = false;
    }

    /// The last state takes several datagrams, of which one goes out now: an answer is due after the
    /// last of them, and there are no copies.
    pub(crate) fn said_more(&mut self, now: Time) {
        if let Some(round) = &mut self.round {
            // No copies: losses are repaired fragment by fragment.
            (round.transmissions, round.began, round.last) = (u32::MAX, now, now);
        }
    }

    /// The share of our datagrams that is lost, if that is a reason for parity: it would add to what is too
    /// much on a congested path.
    pub(crate) fn parity_loss(&self) -> Option<f64> {
        let pays = self.loss_out > self.policy.parity_loss_min && !self.congested;
        let pays = pays && self.stream.is_none();
        pays.then_some(self.loss_out)
    }

    /// The last state goes out again; why.
    pub(crate) fn sent_again(&mut self, now: Time, rtt: &RttEstimator) -> Resend {
        self.back = false;
        let Some(round) = self.round else {
            self.sent_new(now);
            return Resend::Timeout;
        };
        // A copy costs a token, a timeout none: what nobody answers must be sent again at any
        // price.
        if self.copy_at(&round, rtt).is_some_and(|at| at <= now) {
            let cost = Duration::from_secs(1) / COPIES_PER_SECOND;
            self.copies_paid = self.copies_paid.max(now) + cost;
            self.round =
                Some(ProbeRound { transmissions: round.transmissions + 1, last: now, ..round });
            self.datagrams = 0;
            return Resend::Redundant;
        }
        let unanswered = round.unanswered.saturating_add(1);
        self.datagrams = 0;
        self.round =
            Some(ProbeRound { began: now, transmissions: 1, last: now, unanswered, ..round });
        Resend::Timeout
    }

    /// When the last state is to be said again.
    pub(crate) fn again_at(&self, rtt: &RttEstimator) -> Time {
        let Some(round) = self.round else { return Time::ZERO };
        if self.back {
            return round.last + self.policy.frame_min;
        }
        let overdue = round.began + self.probe_timeout(&round, rtt);
        self.copy_at(&round, rtt).map_or(overdue, |copy| copy.min(overdue))
    }

    /// When the last new state went out.
    pub(crate) fn last_new(&self) -> Option<Time> {
        self.last_new
    }

    /// When the next new state may go out, as far as the peer's silence is concerned.
    pub(crate) fn frame_at(&self, rtt: &RttEstimator) -> Time {
        let Some(last) = self.last_new else { return Time::ZERO };
        let quiet = 3 * (rtt.srtt() + 4 * rtt.rttvar()) + Duration::from_millis(500);
        // New states into a silence tell nobody anything; one of them goes now and then, as a
        // probe.
        let silence = last.since(self.heard);
        let pause = match silence > quiet {
            true => (silence / 8).min(PROBE_MAX),
            // Nobody says what a stream does to its path: it goes no faster than stock's.
            false if !self.reported && self.gap < STREAM_GAP => (rtt.srtt() / 2).min(PROBE_MAX),
            false => Duration::ZERO,
        };
        last + pause.max(self.policy.frame_min)
    }

    /// How long an acknowledgment of ours may wait.
    pub(crate) fn ack_delay(&self) -> Duration {
        if let Some(stream) = &self.stream {
            return stream.ack_delay;
        }
        match self.loss_in.max(self.loss_out) > ACK_LOSS {
            true => self.policy.ack_delay_lossy,
            false => self.calm_ack_delay,
        }
    }

    /// How long to wait for an answer: the probe timeout (loss-policy §5, 4).
    pub(crate) fn pto(&self, rtt: &RttEstimator) -> Duration {
        let asked = rtt.srtt() + SLACK_MIN.max(4 * rtt.rttvar()) + self.peer_ack_delay;
        if let Some(stream) = &self.stream {
            return asked.clamp(stream.rto_min, stream.rto_max);
        }
        if self.latencies.len() < LATENCIES / 4 {
            return asked;
        }
        let seen = self.slow_ack.max(rtt.srtt()) + SLACK_MIN.max(2 * rtt.rttvar());
        asked.min(seen)
    }

    fn overdue(&self, now: Time) -> bool {
        self.round.is_some_and(|round| round.unanswered > 0 || now.since(round.began) > self.gap)
    }

    fn probe_timeout(&self, round: &ProbeRound, rtt: &RttEstimator) -> Duration {
        let pto = self.pto(rtt);
        if let Some(stream) = &self.stream {
            // What is not answered waits in the stream, and so would whatever is said again.
            return (pto * (1 << round.unanswered.min(4))).min(stream.rto_max);
        }
        if round.began.since(round.first) > PATIENCE {
            return PROBE_LATE;
        }
        // Nobody may be there. Probes at this pace find a path that is back within a round trip or
        // so.
        if round.unanswered >= SILENT_ROUNDS {
            return rtt.srtt().clamp(PROBE_MIN, PROBE_MAX);
        }
        let mut wait = pto;
        for _ in 0..round.unanswered {
            wait = wait * BACKOFF_QUARTERS / 4;
        }
        wait.min(pto.max(PROBE_MAX))
    }

    /// When the next copy is due; `None` if all are made, or an answer is due before.
    fn copy_at(&self, round: &ProbeRound, rtt: &RttEstimator) -> Option<Time> {
        let is_one = self.stream.is_some() || round.transmissions >= self.copies(round);
        if is_one || round.unanswered >= SILENT_ROUNDS {
            return None;
        }
        let offset = self.policy.copy_spacing * ((1 << round.transmissions.min(16)) - 1);
        // The next frame of a stream tells what this one told, so it is the cheaper copy.
        let streaming = self.gap < STREAM_GAP && self.loss_out < STREAM_LOSS;
        let offset = if streaming { offset.max(self.gap * 3 / 2) } else { offset };
        let at = round.began + offset;
        let burst = Duration::from_secs(1) * COPIES_BURST / COPIES_PER_SECOND;
        let at = at.max(self.copies_paid - burst);
        (at < round.began + self.probe_timeout(round, rtt)).then_some(at)
    }

    /// How often a state is said in a round.
    fn copies(&self, round: &ProbeRound) -> u32 {
        // More octets into a full queue lose more than they save.
        if self.congested || self.datagrams > self.policy.copy_datagrams_max {
            return 1;
        }
        let levels = self.policy.copies;
        let enough = levels.iter().find(|(loss, _)| self.loss_out < *loss);
        let first = enough.map_or(self.policy.copies_max, |(_, copies)| *copies);
        let copies = first.min(self.policy.copies_max);
        // No answer came: rather it is lost, which goes out once, than all copies of what it answers.
        match round.unanswered {
            0 => copies,
            _ => copies.div_ceil(self.policy.retry_divisor),
        }
    }
}

/// A silence of a round trip and this is a gap in the path (loss-policy §5, 4).
const BACK_AFTER: Duration = Duration::from_millis(150);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::Timing;

    fn ms(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    fn span(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// A path with this round trip, and no variation worth the name.
    fn path(rtt_ms: u64) -> RttEstimator {
        let mut rtt = RttEstimator::new(&Timing::ROVE);
        (0..200).for_each(|_| rtt.sample(span(rtt_ms)));
        rtt
    }

    fn feedback(percent: u32) -> Option<Feedback> {
        let loss = f64::from((percent * 256).div_ceil(100)) / 256.0;
        Some(Feedback { loss, ack_delay: span(20) })
    }

    /// One that has heard at 0 that this share of its datagrams is lost.
    fn redundancy(rtt: &RttEstimator, percent: u32, policy: AdaptiveTiming) -> Redundancy {
        let mut redundancy = Redundancy::new(ms(0), policy);
        redundancy.on_datagram(ms(0), rtt, f64::from(percent) / 100.0, feedback(percent));
        redundancy
    }

    /// When a state that takes `datagrams`, new at 0, is sent again up to `until_ms`, and why.
    fn sayings(
        redundancy: &mut Redundancy,
        rtt: &RttEstimator,
        datagrams: u32,
        until_ms: u64,
    ) -> Vec<(u64, Resend)> {
        redundancy.sent_new(ms(0));
        let mut all = Vec::new();
        loop {
            (0..datagrams).for_each(|_| redundancy.carried());
            let at = redundancy.again_at(rtt);
            if at > ms(until_ms) {
                return all;
            }
            all.push((at.as_millis(), redundancy.sent_again(at, rtt)));
        }
    }

    #[test]
    fn loss_decides_how_often_a_state_is_said() {
        use Resend::Redundant;
        let rtt = path(100);
        // Loss in percent, the policy, datagrams of the state; when it is said again within 129 ms.
        for (percent, policy, datagrams, transmissions) in [
            (0, AdaptiveTiming::ROVE, 1, &[][..]),
            (5, AdaptiveTiming::ROVE, 1, &[5]),
            (20, AdaptiveTiming::ROVE, 1, &[5, 15]),
            (29, AdaptiveTiming::ROVE, 1, &[5, 15, 35]),
            (29, AdaptiveTiming::ROVE, 2, &[5, 15, 35]),
            (29, AdaptiveTiming::ROVE, 3, &[]),
            (10, AdaptiveTiming::METERED, 1, &[]),
            (29, AdaptiveTiming::METERED, 1, &[5]),
            (50, AdaptiveTiming::ROVE, 1, &[5, 15, 35, 75]),
        ] {
            let mut redundancy = redundancy(&rtt, percent, policy);
            let wanted: Vec<_> = transmissions.iter().map(|&at| (at, Redundant)).collect();
            assert_eq!(
                sayings(&mut redundancy, &rtt, datagrams, 129),
                wanted,
                "{percent} % {datagrams}"
            );
        }
    }

    #[test]
    fn what_is_not_answered_is_said_again_in_fewer_copies() {
        use Resend::{Redundant, Timeout};
        let rtt = path(100);
        let mut redundancy = redundancy(&rtt, 29, AdaptiveTiming::ROVE);
        // 100 ms, 10 ms for variation and 20 ms for the peer; then a quarter more, up to 250 ms.
        let wanted = [
            (5, Redundant),
            (15, Redundant),
            (35, Redundant),
            (130, Timeout),
            (135, Redundant),
            (292, Timeout),
            (297, Redundant),
            (495, Timeout),
            (595, Timeout),
        ];
        assert_eq!(sayings(&mut redundancy, &rtt, 1, 600), wanted);
        // An answer to any of it, and patience is what it was.
        redundancy.answered();
        redundancy.sent_new(ms(600));
        assert_eq!(redundancy.again_at(&rtt), ms(605));
        redundancy.settled();
        assert_eq!(redundancy.again_at(&rtt), Time::ZERO);
    }

    #[test]
    fn a_peer_that_answers_is_asked_as_often_after_a_minute() {
        let rtt = path(100);
        let mut redundancy = redundancy(&rtt, 0, AdaptiveTiming::ROVE);
        redundancy.sent_new(ms(0));
        let probe_timeout = redundancy.again_at(&rtt).since(ms(0));
        // There is always something pending.
        for at in (100..120_000).step_by(100) {
            redundancy.sent_new(ms(at));
            redundancy.answered();
            assert_eq!(redundancy.again_at(&rtt), ms(at) + probe_timeout);
        }
    }

    #[test]
    fn copies_do_not_add_to_congestion_nor_exceed_their_rate() {
        let rtt = path(100);
        let mut redundancy = redundancy(&rtt, 50, AdaptiveTiming::ROVE);
        redundancy.judge(true);
        assert_eq!(sayings(&mut redundancy, &rtt, 1, 129), []);
        redundancy.judge(false);
        // New states each 20 ms: 10 copies at once, and 30 a second.
        let mut copies = 0;
        for at in 0..2_000 {
            if at % 20 == 0 {
                redundancy.sent_new(ms(at));
            }
            while redundancy.again_at(&rtt) <= ms(at) {
                copies += u32::from(redundancy.sent_again(ms(at), &rtt) == Resend::Redundant);
            }
        }
        assert!((65..=71).contains(&copies), "{copies}");
    }

    #[test]
    fn acknowledgments_wait_as_long_as_the_path_allows() {
        let stock = AdaptiveTiming { ack_delay_max: span(100), ..AdaptiveTiming::ROVE };
        // Round trip, loss in percent, the policy; how long an acknowledgment waits.
        for (rtt_ms, percent, policy, delay_ms) in [
            (20, 0, AdaptiveTiming::ROVE, 100),
            (100, 0, AdaptiveTiming::ROVE, 100),
            (300, 0, AdaptiveTiming::ROVE, 150),
            (900, 0, AdaptiveTiming::ROVE, 250),
            (900, 0, stock, 100),
            (300, 5, AdaptiveTiming::ROVE, 20),
        ] {
            let redundancy = redundancy(&path(rtt_ms), percent, policy);
            assert_eq!(redundancy.ack_delay(), span(delay_ms), "{rtt_ms} {percent}");
        }
    }

    #[test]
    fn latencies_shorten_the_timeout() {
        let rtt = path(100);
        let mut redundancy = redundancy(&rtt, 0, AdaptiveTiming::ROVE);
        let slow = Feedback { loss: 0.0, ack_delay: span(60) };
        redundancy.on_datagram(ms(0), &rtt, 0.0, Some(slow));
        assert_eq!(redundancy.pto(&rtt), span(170));
        (0..8).for_each(|_| redundancy.acknowledged(span(102)));
        assert_eq!(redundancy.pto(&rtt), span(112));
        // One in ten that is slow counts.
        (0..4).for_each(|_| redundancy.acknowledged(span(140)));
        assert_eq!(redundancy.pto(&rtt), span(150));
        (0..4).for_each(|_| redundancy.acknowledged(span(900)));
        assert_eq!(
            redundancy.pto(&rtt),
            span(170),
            "never longer than what the peer allows itself"
        );
    }

    #[test]
    fn a_path_that_is_back_is_used_at_once() {
        let rtt = path(100);
        let mut redundancy = redundancy(&rtt, 0, AdaptiveTiming::ROVE);
        redundancy.sent_new(ms(1_000));
        let probe = redundancy.again_at(&rtt);
        assert_eq!(redundancy.sent_again(probe, &rtt), Resend::Timeout);
        redundancy.on_datagram(ms(4_000), &rtt, 0.0, feedback(0));
        assert!(redundancy.again_at(&rtt) <= ms(4_000));
    }
}
