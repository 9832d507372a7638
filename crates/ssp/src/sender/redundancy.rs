//! When to say again what was not acknowledged, and how often to say it in the first place: the eager
//! policy (loss-policy §5, 3 to 5). It knows states by their times only, and nothing of what they hold.

use std::collections::VecDeque;
use std::time::Duration;

use crate::recovery::rtt::Rtt;
use crate::time::Time;
use crate::timing::Eager;
use crate::wire::Report;

/// The clocks of an eager sender.
#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    policy: Eager,
    round: Option<Round>,
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
    /// The peer is back after a silence: what is pending goes at once.
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
}

/// The same state, said several times, until an answer is overdue.
#[derive(Clone, Copy, Debug)]
struct Round {
    began: Time,
    /// How often it was said.
    said: u32,
    last: Time,
    /// Rounds before this one that nothing answered.
    silent: u32,
    /// When the first of them began.
    first: Time,
}

/// Why an instruction is said again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Again {
    /// In case the first was lost.
    Copy,
    /// Because no answer came.
    Overdue,
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

impl Pacer {
    pub fn new(now: Time, policy: Eager) -> Pacer {
        Pacer {
            peer_ack_delay: policy.peer_ack_delay.unwrap_or(policy.ack_delay),
            calm_ack_delay: policy.ack_delay,
            datagrams: 0,
            congested: false,
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

    /// An authentic datagram came. Without a report both directions are taken to lose alike.
    pub fn hear(&mut self, now: Time, rtt: &Rtt, loss_in: f64, report: Option<&Report>) {
        self.back |= now.since(self.heard) > rtt.srtt() + BACK_AFTER && self.overdue(now);
        self.heard = now;
        self.loss_in = loss_in;
        self.reported |= report.is_some();
        self.loss_out = report.map_or(loss_in, |report| f64::from(report.loss) / 256.0);
        if rtt.samples() > 0 {
            let half = (rtt.srtt() / 2).min(self.policy.ack_delay_max);
            self.calm_ack_delay = half.max(self.policy.ack_delay);
        }
        self.peer_ack_delay = match (report, self.policy.peer_ack_delay) {
            (Some(report), _) => report.ack_delay,
            (None, Some(fixed)) => fixed,
            (None, None) => self.ack_delay(),
        };
    }

    /// Whether the peer says what comes.
    pub fn is_reported(&self) -> bool {
        self.reported
    }

    /// Whether the path has queues or losses of our making.
    pub fn judge(&mut self, congested: bool) {
        self.congested = congested;
    }

    /// A datagram of the last saying went out.
    pub fn carried(&mut self) {
        self.datagrams = self.datagrams.saturating_add(1);
    }

    /// A state was acknowledged this long after its first datagram.
    pub fn acknowledged(&mut self, latency: Duration) {
        if self.latencies.len() == LATENCIES {
            self.latencies.pop_front();
        }
        self.latencies.push_back(latency);
        let mut sorted: Vec<Duration> = self.latencies.iter().copied().collect();
        sorted.sort_unstable();
        self.slow_ack = sorted[(sorted.len() * 9 / 10).min(sorted.len() - 1)];
    }

    /// Some state was acknowledged: the peer answers.
    pub fn answered(&mut self) {
        if let Some(round) = &mut self.round {
            round.silent = 0;
            round.first = round.began;
        }
    }

    /// Nothing is pending any more.
    pub fn settled(&mut self) {
        self.round = None;
        self.back = false;
    }

    /// A new state goes out.
    pub fn sent_new(&mut self, now: Time) {
        self.datagrams = 0;
        if let Some(last) = self.last_new {
            self.gap = (self.gap * 7 + now.since(last).min(Duration::from_secs(1))) / 8;
        }
        self.last_new = Some(now);
        let (silent, first) = self.round.map_or((0, now), |round| (round.silent, round.first));
        self.round = Some(Round { began: now, said: 1, last: now, silent, first });
        self.back = false;
    }

    /// What was said last takes several datagrams, of which one goes out now: an answer is due after the
    /// last of them, and there are no copies.
    pub fn said_more(&mut self, now: Time) {
        if let Some(round) = &mut self.round {
            (round.said, round.began, round.last) = (u32::MAX, now, now);
        }
    }

    /// The share of our datagrams that is lost, if that is a reason for parity: it would add to what is too
    /// much on a congested path.
    pub fn parity_loss(&self) -> Option<f64> {
        let pays = self.loss_out > self.policy.parity_loss_min && !self.congested;
        pays.then_some(self.loss_out)
    }

    /// The last state goes out again; why.
    pub fn sent_again(&mut self, now: Time, rtt: &Rtt) -> Again {
        self.back = false;
        let Some(round) = self.round else {
            self.sent_new(now);
            return Again::Overdue;
        };
        if self.copy_at(&round, rtt).is_some_and(|at| at <= now) {
            let cost = Duration::from_secs(1) / COPIES_PER_SECOND;
            self.copies_paid = self.copies_paid.max(now) + cost;
            self.round = Some(Round { said: round.said + 1, last: now, ..round });
            self.datagrams = 0;
            return Again::Copy;
        }
        let silent = round.silent.saturating_add(1);
        self.datagrams = 0;
        self.round = Some(Round { began: now, said: 1, last: now, silent, ..round });
        Again::Overdue
    }

    /// When the last state is to be said again.
    pub fn again_at(&self, rtt: &Rtt) -> Time {
        let Some(round) = self.round else { return Time::ZERO };
        if self.back {
            return round.last + self.policy.frame_min;
        }
        let overdue = round.began + self.patience(&round, rtt);
        self.copy_at(&round, rtt).map_or(overdue, |copy| copy.min(overdue))
    }

    /// When the last new state went out.
    pub fn last_new(&self) -> Option<Time> {
        self.last_new
    }

    /// When the next new state may go out, as far as the peer's silence is concerned.
    pub fn frame_at(&self, rtt: &Rtt) -> Time {
        let Some(last) = self.last_new else { return Time::ZERO };
        let quiet = 3 * (rtt.srtt() + 4 * rtt.rttvar()) + Duration::from_millis(500);
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
    pub fn ack_delay(&self) -> Duration {
        match self.loss_in.max(self.loss_out) > ACK_LOSS {
            true => self.policy.ack_delay_lossy,
            false => self.calm_ack_delay,
        }
    }

    /// How long to wait for an answer: the probe timeout (loss-policy §5, 4).
    pub fn timeout(&self, rtt: &Rtt) -> Duration {
        let asked = rtt.srtt() + SLACK_MIN.max(4 * rtt.rttvar()) + self.peer_ack_delay;
        if self.latencies.len() < LATENCIES / 4 {
            return asked;
        }
        let seen = self.slow_ack.max(rtt.srtt()) + SLACK_MIN.max(2 * rtt.rttvar());
        asked.min(seen)
    }

    fn overdue(&self, now: Time) -> bool {
        self.round.is_some_and(|round| round.silent > 0 || now.since(round.began) > self.gap)
    }

    fn patience(&self, round: &Round, rtt: &Rtt) -> Duration {
        let timeout = self.timeout(rtt);
        if round.began.since(round.first) > PATIENCE {
            return PROBE_LATE;
        }
        if round.silent >= SILENT_ROUNDS {
            return rtt.srtt().clamp(PROBE_MIN, PROBE_MAX);
        }
        let mut wait = timeout;
        for _ in 0..round.silent {
            wait = wait * BACKOFF_QUARTERS / 4;
        }
        wait.min(timeout.max(PROBE_MAX))
    }

    /// When the next copy is due; `None` if all are made, or an answer is due before.
    fn copy_at(&self, round: &Round, rtt: &Rtt) -> Option<Time> {
        if round.said >= self.copies(round) || round.silent >= SILENT_ROUNDS {
            return None;
        }
        let offset = self.policy.copy_spacing * ((1 << round.said.min(16)) - 1);
        let streaming = self.gap < STREAM_GAP && self.loss_out < STREAM_LOSS;
        let offset = if streaming { offset.max(self.gap * 3 / 2) } else { offset };
        let at = round.began + offset;
        let burst = Duration::from_secs(1) * COPIES_BURST / COPIES_PER_SECOND;
        let at = at.max(self.copies_paid - burst);
        (at < round.began + self.patience(round, rtt)).then_some(at)
    }

    /// How often a state is said in a round.
    fn copies(&self, round: &Round) -> u32 {
        if self.congested || self.datagrams > self.policy.copy_datagrams_max {
            return 1;
        }
        let levels = self.policy.copies;
        let enough = levels.iter().find(|(loss, _)| self.loss_out < *loss);
        let first = enough.map_or(self.policy.copies_max, |(_, copies)| *copies);
        let copies = first.min(self.policy.copies_max);
        // No answer came: rather it is lost, which goes out once, than all copies of what it answers.
        match round.silent {
            0 => copies,
            _ => copies.div_ceil(self.policy.doubt),
        }
    }
}

/// A silence of a round trip and this is a gap in the path (loss-policy §5, 4).
const BACK_AFTER: Duration = Duration::from_millis(150);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::Timing;
    use crate::wire::Seq;

    fn ms(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    fn span(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// A path with this round trip, and no variation worth the name.
    fn path(rtt_ms: u64) -> Rtt {
        let mut rtt = Rtt::new(&Timing::ROVE);
        (0..200).for_each(|_| rtt.sample(span(rtt_ms)));
        rtt
    }

    fn report(percent: u32) -> Report {
        let loss = (percent * 256).div_ceil(100) as u8;
        Report { newest: Seq::new(1), loss, ack_delay: span(20), ..Report::default() }
    }

    /// One that has heard at 0 that this share of its datagrams is lost.
    fn pacer(rtt: &Rtt, percent: u32, policy: Eager) -> Pacer {
        let mut pacer = Pacer::new(ms(0), policy);
        pacer.hear(ms(0), rtt, f64::from(percent) / 100.0, Some(&report(percent)));
        pacer
    }

    /// When a state of so many datagrams, new at 0, is said again in the first so many milliseconds, and why.
    fn sayings(pacer: &mut Pacer, rtt: &Rtt, datagrams: u32, until_ms: u64) -> Vec<(u64, Again)> {
        pacer.sent_new(ms(0));
        let mut all = Vec::new();
        loop {
            (0..datagrams).for_each(|_| pacer.carried());
            let at = pacer.again_at(rtt);
            if at > ms(until_ms) {
                return all;
            }
            all.push((at.as_millis(), pacer.sent_again(at, rtt)));
        }
    }

    #[test]
    fn loss_decides_how_often_a_state_is_said() {
        use Again::Copy;
        let rtt = path(100);
        // Loss in percent, the policy, datagrams of the state; when it is said again within 129 ms.
        for (percent, policy, datagrams, said) in [
            (0, Eager::ROVE, 1, &[][..]),
            (5, Eager::ROVE, 1, &[5]),
            (20, Eager::ROVE, 1, &[5, 15]),
            (29, Eager::ROVE, 1, &[5, 15, 35]),
            (29, Eager::ROVE, 2, &[5, 15, 35]),
            (29, Eager::ROVE, 3, &[]),
            (10, Eager::METERED, 1, &[]),
            (29, Eager::METERED, 1, &[5]),
            (50, Eager::ROVE, 1, &[5, 15, 35, 75]),
        ] {
            let mut pacer = pacer(&rtt, percent, policy);
            let wanted: Vec<_> = said.iter().map(|&at| (at, Copy)).collect();
            assert_eq!(
                sayings(&mut pacer, &rtt, datagrams, 129),
                wanted,
                "{percent} % {datagrams}"
            );
        }
    }

    #[test]
    fn what_is_not_answered_is_said_again_in_fewer_copies() {
        use Again::{Copy, Overdue};
        let rtt = path(100);
        let mut pacer = pacer(&rtt, 29, Eager::ROVE);
        // 100 ms, 10 ms for variation and 20 ms for the peer; then a quarter more, up to 250 ms.
        let wanted = [
            (5, Copy),
            (15, Copy),
            (35, Copy),
            (130, Overdue),
            (135, Copy),
            (292, Overdue),
            (297, Copy),
            (495, Overdue),
            (595, Overdue),
        ];
        assert_eq!(sayings(&mut pacer, &rtt, 1, 600), wanted);
        // An answer to any of it, and patience is what it was.
        pacer.answered();
        pacer.sent_new(ms(600));
        assert_eq!(pacer.again_at(&rtt), ms(605));
        pacer.settled();
        assert_eq!(pacer.again_at(&rtt), Time::ZERO);
    }

    #[test]
    fn a_peer_that_answers_is_asked_as_often_after_a_minute() {
        let rtt = path(100);
        let mut pacer = pacer(&rtt, 0, Eager::ROVE);
        pacer.sent_new(ms(0));
        let patience = pacer.again_at(&rtt).since(ms(0));
        // There is always something pending.
        for at in (100..120_000).step_by(100) {
            pacer.sent_new(ms(at));
            pacer.answered();
            assert_eq!(pacer.again_at(&rtt), ms(at) + patience);
        }
    }

    #[test]
    fn copies_do_not_add_to_congestion_nor_exceed_their_rate() {
        let rtt = path(100);
        let mut pacer = pacer(&rtt, 50, Eager::ROVE);
        pacer.judge(true);
        assert_eq!(sayings(&mut pacer, &rtt, 1, 129), []);
        pacer.judge(false);
        // New states each 20 ms: 10 copies at once, and 30 a second.
        let mut copies = 0;
        for at in 0..2_000 {
            if at % 20 == 0 {
                pacer.sent_new(ms(at));
            }
            while pacer.again_at(&rtt) <= ms(at) {
                copies += u32::from(pacer.sent_again(ms(at), &rtt) == Again::Copy);
            }
        }
        assert!((65..=71).contains(&copies), "{copies}");
    }

    #[test]
    fn acknowledgments_wait_as_long_as_the_path_allows() {
        let stock = Eager { ack_delay_max: span(100), ..Eager::ROVE };
        // Round trip, loss in percent, the policy; how long an acknowledgment waits.
        for (rtt_ms, percent, policy, delay_ms) in [
            (20, 0, Eager::ROVE, 100),
            (100, 0, Eager::ROVE, 100),
            (300, 0, Eager::ROVE, 150),
            (900, 0, Eager::ROVE, 250),
            (900, 0, stock, 100),
            (300, 5, Eager::ROVE, 20),
        ] {
            let pacer = pacer(&path(rtt_ms), percent, policy);
            assert_eq!(pacer.ack_delay(), span(delay_ms), "{rtt_ms} {percent}");
        }
    }

    #[test]
    fn latencies_shorten_the_timeout() {
        let rtt = path(100);
        let mut pacer = pacer(&rtt, 0, Eager::ROVE);
        pacer.hear(ms(0), &rtt, 0.0, Some(&Report { ack_delay: span(60), ..report(0) }));
        assert_eq!(pacer.timeout(&rtt), span(170));
        (0..8).for_each(|_| pacer.acknowledged(span(102)));
        assert_eq!(pacer.timeout(&rtt), span(112));
        // One in ten that is slow counts.
        (0..4).for_each(|_| pacer.acknowledged(span(140)));
        assert_eq!(pacer.timeout(&rtt), span(150));
        (0..4).for_each(|_| pacer.acknowledged(span(900)));
        assert_eq!(pacer.timeout(&rtt), span(170), "never longer than what the peer allows itself");
    }

    #[test]
    fn a_path_that_is_back_is_used_at_once() {
        let rtt = path(100);
        let mut pacer = pacer(&rtt, 0, Eager::ROVE);
        pacer.sent_new(ms(1_000));
        let probe = pacer.again_at(&rtt);
        assert_eq!(pacer.sent_again(probe, &rtt), Again::Overdue);
        pacer.hear(ms(4_000), &rtt, 0.0, Some(&report(0)));
        assert!(pacer.again_at(&rtt) <= ms(4_000));
    }
}
