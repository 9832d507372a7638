//! The delay-based congestion window of the adaptive policy (loss-policy §5, 7): how many octets
//! may be in flight without building a queue. It must not know what they carry.

use core::time::Duration;

use crate::recovery::attribution::{Finding, LossAttribution};
use crate::recovery::queue_delay::QueueDelay;
use crate::recovery::rtt::RttEstimator;
use crate::recovery::sent_log::Outcome;
use crate::time::Time;

/// How many octets are in flight, and how many may be.
#[derive(Clone, Debug, Default)]
pub(crate) struct CongestionWindow {
    size: f64,
    /// No more than this, however large the window is: a stream keeps what waits in it.
    limit: Option<f64>,
    slow_start: bool,
    /// Octets in flight: of states without an outcome.
    pub bytes: usize,
    /// Octets that have left the path since the window was moved last, and those that arrived of them.
    left: usize,
    acked: usize,
    /// The first datagram that counts: those before it took another path. And the next one.
    since: u64,
    next: u64,
    /// The last round trips.
    delays: QueueDelay,
    samples: u64,
    /// How long datagrams wait in queues.
    queue: Duration,
    queued_too_long: bool,
    /// When more than little was sent last.
    much: Option<Time>,
    /// The size before loss first cut it, until it is known whose fault that loss is.
    uncut: Option<f64>,
    /// The pause that loss at our rate asks for between frames.
    pacing_gap: Duration,
    recovered: Time,
    cut: Time,
}

/// loss-policy §5, 7.
const INITIAL_WINDOW: f64 = 6000.0;
const MIN_WINDOW: f64 = 3900.0;
const MAX_WINDOW: f64 = 1e6;
const SEGMENT: f64 = 1300.0;
const QUEUE_MIN: Duration = Duration::from_millis(25);
/// A window that was cut grows as at the start again after this many round trips with less than this share
/// of the queue that is allowed.
const CALM: f64 = 0.25;
const CALM_ROUNDS: u32 = 8;
/// Octets in a second that fill no link: the slowest that is served takes 40 kbit/s. And how long a queue
/// may take that was filled before.
const LITTLE: usize = 3000;
const DRAINED: Duration = Duration::from_secs(10);
/// The longest wait for a full window. A frame waits so long for that of a stream.
const DRAIN_MAX: Duration = Duration::from_secs(5);
/// Datagrams that a frame which waits for room is taken to have.
pub(crate) const PARTS: u32 = 8;
/// The longest pause between frames that loss asks for, and the shortest it begins with.
const PACING_GAP_MAX: Duration = Duration::from_millis(250);
const PACING_GAP_MIN: Duration = Duration::from_millis(20);

impl CongestionWindow {
    pub(crate) fn new(now: Time) -> CongestionWindow {
        CongestionWindow {
            size: INITIAL_WINDOW,
            slow_start: true,
            delays: QueueDelay::new(now),
            recovered: now,
            ..CongestionWindow::default()
        }
    }

    /// A datagram that the peer is to acknowledge went out; `rate` is octets in a second, this one included.
    pub(crate) fn on_sent(&mut self, now: Time, nth: u64, bytes: usize, rate: usize) {
        self.next = nth + 1;
        self.bytes += bytes;
        if rate > LITTLE {
            self.much = Some(now);
        }
    }

    /// A datagram came: perhaps with a round trip measured.
    pub(crate) fn on_datagram(&mut self, now: Time, rtt: &RttEstimator) {
        if rtt.samples() > self.samples
            && let Some(latest) = rtt.latest()
        {
            self.samples = rtt.samples();
            self.delays.sample(now, latest);
            // A queue shows as a longer round trip than the shortest that the path has had for a while.
            self.queue = self.delays.queue();
        }
    }

    /// The peer says how long our datagrams wait in queues: it sees that of each of them, we only of those
    /// that measure a round trip.
    pub(crate) fn on_queue(&mut self, queue: Duration) {
        self.queue = queue;
    }

    /// What became of a datagram.
    pub(crate) fn on_outcome(&mut self, outcome: Outcome<'_>) {
        let (sent, acked) = match outcome {
            Outcome::Delivered(sent) => (sent, usize::from(sent.bytes)),
            Outcome::Lost(sent) | Outcome::Forgotten(sent) => (sent, 0),
            // It left the flight when it was declared lost.
            Outcome::Spurious(_) => return,
        };
        if sent.is_ack_eliciting() && sent.nth >= self.since {
            self.bytes -= usize::from(sent.bytes);
            self.left += usize::from(sent.bytes);
            self.acked += acked;
        }
    }

    /// How many octets may be on their way.
    pub(crate) fn size(&self) -> f64 {
        self.size
    }

    /// The path is another now.
    pub(crate) fn reset(&mut self, now: Time) {
        let CongestionWindow { next, limit, .. } = *self;
        *self = CongestionWindow { since: next, next, limit, ..CongestionWindow::new(now) };
    }

    /// Datagrams go by another way from now on, where the next one has this number.
    pub(crate) fn switch(&mut self, now: Time, next: u64, limit: Option<usize>) {
        let limit = limit.map(|bytes| bytes as f64);
        *self = CongestionWindow { since: next, next, limit, ..CongestionWindow::new(now) };
    }

    /// When a new state may go out after one at `last`: at once while there is room, else after a while,
    /// since acknowledgments may be lost. `share` of a pause is 1, or [`PARTS`] for one more datagram of what takes many:
    /// they share the pause of a frame.
    pub(crate) fn send_at(
        &self,
        last: Time,
        in_flight: usize,
        share: u32,
        rtt: &RttEstimator,
        timeout: Duration,
        attribution: &LossAttribution,
    ) -> Time {
        let gap = self.pacing_gap / share;
        if self.has_room(in_flight) {
            return last + gap;
        }
        // What is in a stream comes, however late, and so does its acknowledgment: more would only wait behind it.
        if self.limit.is_some() {
            return last + DRAIN_MAX;
        }
        let in_flight = in_flight as f64;
        // A frame may be much longer than the window. On a slow link the first sign of its queue comes when the
        // frame has left it; frames that follow before then are what the answer to a key waits for.
        // Octets that inherent loss takes stand in no queue.
        let queued = in_flight * (1.0 - attribution.inherent());
        let is_far_beyond = queued >= 2.0 * self.size;
        let waits = is_far_beyond || self.congested(attribution);
        let wait = match waits {
            // What is on its way beyond the window takes as many round trips to drain.
            true => timeout.max(rtt.srtt().mul_f64(in_flight / self.size)).min(DRAIN_MAX),
            false => (rtt.srtt() / 2).clamp(PACING_GAP_MIN, PACING_GAP_MAX),
        };
        last + gap.max(wait)
    }

    /// Whether more may be sent than is in flight.
    pub(crate) fn has_room(&self, in_flight: usize) -> bool {
        (in_flight as f64) < self.limit.map_or(self.size, |limit| limit.min(self.size))
    }

    /// Whether less is to be sent.
    pub(crate) fn congested(&self, attribution: &LossAttribution) -> bool {
        self.queued_too_long || attribution.is_ours()
    }

    /// Whether what is sent beyond need makes things worse. It does not where little was sent for a while:
    /// what waits there waits for others, or the path has become longer than it was.
    pub(crate) fn suppresses_redundancy(&self, now: Time, attribution: &LossAttribution) -> bool {
        self.congested(attribution) && self.much.is_some_and(|much| now.since(much) < DRAINED)
    }

    /// Moves the window after all outcomes of a report or an acknowledgment.
    pub(crate) fn adapt(&mut self, now: Time, rtt: &RttEstimator) {
        let flying = self.bytes + core::mem::take(&mut self.left);
        let acked = core::mem::take(&mut self.acked);
        // Our own queue makes round trips vary, too: that must not raise what it may be.
        let shortest = self.delays.base().unwrap_or(rtt.srtt());
        let limit = QUEUE_MIN.max((rtt.rttvar() * 3 / 2).min(shortest / 4));
        self.queued_too_long = self.queue > 2 * limit;
        if acked == 0 {
            return;
        }
        let excess = self.queue.as_secs_f64() / limit.as_secs_f64();
        if excess > 1.0 {
            // One cut a round trip: its effect cannot be seen before.
            if now.since(self.cut) >= rtt.srtt() {
                self.cut = now;
                self.slow_start = false;
                self.size *= 1.0 - 0.5 * (excess - 1.0).min(1.0);
            }
        // A window that is not used says nothing of what the path takes (RFC 9002 §7.8).
        } else if flying as f64 * 2.0 > self.size {
            // Cut long ago, and there is no queue: the path has more room than that.
            let calm = excess < CALM && now.since(self.cut) > CALM_ROUNDS * loss_pause(rtt);
            self.slow_start |= calm;
            let gained = acked as f64;
            self.size += match self.slow_start {
                true => gained,
                false => SEGMENT * gained / self.size * (1.0 - excess),
            };
        }
        self.size = self.size.clamp(MIN_WINDOW, MAX_WINDOW);
    }

    /// Loss that we cause makes the window smaller and frames rarer; loss that is not ours, nothing.
    pub(crate) fn heed(&mut self, now: Time, rtt: &RttEstimator, finding: Finding) {
        match finding {
            Finding::Excess if now.since(self.cut) >= loss_pause(rtt) => {
                self.cut = now;
                self.slow_start = false;
                self.uncut.get_or_insert(self.size);
                self.size = (self.size * 0.6).max(MIN_WINDOW);
                self.pacing_gap = (self.pacing_gap.max(PACING_GAP_MIN) * 8 / 5).min(PACING_GAP_MAX);
            }
            Finding::Inconclusive => {
                self.size = (2.0 * self.size).min(MAX_WINDOW);
                self.pacing_gap /= 2;
            }
            Finding::Inherent => {
                self.size = self.uncut.take().map_or(self.size, |size| size.max(self.size));
                self.pacing_gap = Duration::ZERO;
            }
            Finding::Normal if now.since(self.recovered) >= loss_pause(rtt) => {
                self.recovered = now;
                self.pacing_gap = self.pacing_gap * 97 / 100;
                if self.pacing_gap < PACING_GAP_MIN {
                    self.pacing_gap = Duration::ZERO;
                    self.uncut = None;
                }
            }
            Finding::Excess | Finding::Normal => {}
        }
    }
}

/// How long a change of pace is left to show its effect.
fn loss_pause(rtt: &RttEstimator) -> Duration {
    rtt.srtt().max(Duration::from_millis(100))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::PathId;
    use crate::recovery::detect::loss_delay;
    use crate::recovery::sent_log::{Load, SentDatagram, SentLog};
    use crate::state::StateNum;
    use crate::timing::Timing;
    use crate::wire::{Report, Seq};

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn path(rtt_ms: u64, samples: u32) -> RttEstimator {
        let mut rtt = RttEstimator::new(&Timing::ROVE);
        (0..samples).for_each(|_| rtt.sample(ms(rtt_ms)));
        rtt
    }

    /// A window and what tells whose loss is, as a path has them.
    struct Bench {
        window: CongestionWindow,
        attribution: LossAttribution,
        log: SentLog,
        rtt: RttEstimator,
    }

    impl Bench {
        fn new(rtt: RttEstimator) -> Bench {
            Bench {
                window: CongestionWindow::new(Time::ZERO),
                attribution: LossAttribution::default(),
                log: SentLog::default(),
                rtt,
            }
        }

        /// State `num` goes out in a datagram of the same number.
        fn send(&mut self, now: Time, num: u64, bytes: usize) {
            self.attribution.on_sent(now, num, bytes);
            self.window.on_sent(now, num, bytes, self.attribution.rate());
            let load = Load::State { num: StateNum::from(num), fragment: None };
            let (seq, path, bytes) = (Seq::new(num), PathId::default(), bytes as u16);
            let sent = SentDatagram { seq, path, nth: num, at: now, bytes, load };
            self.log.on_sent(sent, &mut |_| ());
        }

        fn report(&mut self, now: Time, newest: u64, received: u128, queue: Duration) {
            let Bench { log, window, attribution, rtt } = self;
            window.on_datagram(now, rtt);
            let report = Report { newest: Seq::new(newest), received, ..Report::default() };
            log.on_report(now, loss_delay(rtt), &report, &mut |outcome| {
                window.on_outcome(outcome);
                attribution.on_outcome(outcome);
            });
            window.on_queue(queue);
            window.adapt(now, rtt);
            let finding = attribution.judge(now, rtt);
            window.heed(now, rtt, finding);
        }

        fn acknowledge(&mut self, now: Time, num: u64) {
            let Bench { log, window, rtt, .. } = self;
            log.on_state_acked(num.into(), &mut |outcome| window.on_outcome(outcome));
            window.adapt(now, rtt);
        }

        fn send_at(&self, last: Time, timeout_ms: u64) -> Time {
            self.window.send_at(
                last,
                self.window.bytes,
                1,
                &self.rtt,
                ms(timeout_ms),
                &self.attribution,
            )
        }

        fn congested(&self) -> bool {
            self.window.congested(&self.attribution)
        }
    }

    #[test]
    fn a_full_window_closes_until_acknowledged() {
        let mut bench = Bench::new(path(100, 20));
        let last = Time::from_millis(500);
        for num in 1..=5 {
            assert_eq!(bench.send_at(last, 200), last, "{} octets", bench.window.bytes);
            bench.send(last, num, 1200);
        }
        assert_eq!(bench.send_at(last, 200), last + ms(50), "half a round trip");
        bench.acknowledge(Time::from_millis(600), 3);
        assert_eq!((bench.window.bytes, bench.send_at(last, 200)), (2400, last));
        let Bench { log, window, .. } = &mut bench;
        log.expire(Time::from_millis(501), &mut |outcome| window.on_outcome(outcome));
        assert_eq!(bench.window.bytes, 0);
    }

    #[test]
    fn loss_that_was_there_before_leaves_the_window_alone() {
        let mut bench = Bench::new(path(2_000, 20));
        let mut sent = 0;
        // A datagram of 100 octets each 50 ms, three of four are lost, and each report tells of eight.
        for turn in 1..1_000 {
            let now = Time::from_millis(turn * 400);
            for _ in 0..8 {
                sent += 1;
                bench.send(now, sent, 100);
            }
            bench.report(now, sent, u128::from_le_bytes([0x88; 16]), Duration::ZERO);
        }
        assert!(bench.window.size >= INITIAL_WINDOW, "{}", bench.window.size);
        assert!(!bench.congested());
        assert_eq!(bench.window.pacing_gap, Duration::ZERO);
    }

    /// A base that is older than the path: for half a minute or more its delay looks like a queue.
    #[test]
    fn a_path_that_grows_longer_keeps_its_copies() {
        let mut bench = Bench::new(path(2, 20));
        let mut copies = |bytes: usize, from: u64| {
            for num in (1..40).map(|turn| from * 40 + turn) {
                let now = Time::from_millis(num * 200);
                bench.rtt.sample(ms(if num < 20 { 2 } else { 150 }));
                bench.send(now, num, bytes);
                let queue = if num < 20 { Duration::ZERO } else { ms(74) };
                bench.report(now, num, u128::MAX, queue);
            }
            let now = Time::from_millis((from + 1) * 8000);
            let suppresses = bench.window.suppresses_redundancy(now, &bench.attribution);
            (bench.congested(), suppresses)
        };
        assert_eq!(copies(400, 0), (true, false), "2 kB a second");
        assert_eq!(copies(1000, 1), (true, true), "5 kB a second fill a slow link");
        assert_eq!(copies(400, 2), (true, true), "which may still be full");
        assert_eq!(copies(400, 3), (true, false));
    }

    #[test]
    fn a_full_window_drains_before_more_is_sent() {
        let mut bench = Bench::new(path(700, 40));
        let now = Time::from_millis(5_000);
        bench.report(now, 1, 0, ms(600));
        assert!(bench.congested());
        (2..14).for_each(|num| bench.send(now, num, 1_000));
        let open = bench.send_at(now, 800);
        assert!(open >= now + bench.rtt.srtt() * 2, "{:?}", open.since(now));
        assert!(open <= now + DRAIN_MAX);
    }

    #[test]
    fn queues_shrink_the_window_and_room_widens_it() {
        let mut bench = Bench::new(path(100, 40));
        let mut now = Time::ZERO;
        let mut turn = |bench: &mut Bench, rtt_ms: u64, num: u64| {
            now = now + ms(100);
            bench.send(now, num, 5000);
            bench.rtt.sample(ms(rtt_ms));
            bench.window.on_datagram(now, &bench.rtt);
            bench.acknowledge(now, num);
        };
        (1..10).for_each(|num| turn(&mut bench, 100, num));
        let wide = bench.window.size;
        assert!(wide > INITIAL_WINDOW && !bench.congested());
        (10..40).for_each(|num| turn(&mut bench, 700, num));
        assert!(bench.window.size < wide / 2.0, "{} of {wide}", bench.window.size);
    }
}
