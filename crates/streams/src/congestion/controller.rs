//! The controller of one connection: rounds, modes, and the window that follows from them.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use quinn_proto::congestion::Cubic;

use super::activity::Activity;
use super::delivery::{DeliveryRate, Round};
use super::jitter::Jitter;
use super::limits::{LIMITS, Limits};
use super::persistent::PersistentQueue;
use super::probe_rtt::{BaselineLoss, ProbeRtt};
use super::resume::{PathCache, SavedPath};

/// A controller of one connection.
#[derive(Clone)]
pub(super) struct BulkController {
    pub(super) activity: Activity,
    pub(super) memory: PathCache,
    pub(super) carrier: Carrier,
    /// The saved path, until the first round trip shows whether it is the same.
    pub(super) known: Option<SavedPath>,
    /// The count of [`Activity`] last seen, and when it last changed.
    pub(super) stirs: u64,
    pub(super) stirred: Option<Instant>,
    pub(super) mtu: u64,
    pub(super) delivery: DeliveryRate,
    pub(super) mode: Mode,
    /// The best rate of each of the last rounds that the application did not limit, oldest first.
    pub(super) rates: VecDeque<f64>,
    /// The shortest round trip, and when it was measured.
    pub(super) rtt_min: Option<(Duration, Instant)>,
    pub(super) rtt: Duration,
    pub(super) jitter: Jitter,
    /// From -1 to 1: how much of the slack is used.
    pub(super) slack_used: f64,
    pub(super) probe: Probe,
    pub(super) probe_rtt: Option<ProbeRtt>,
    /// The shortest round trip of the last slowdown.
    pub(super) probed_rtt: Option<Duration>,
    pub(super) losses: BaselineLoss,
    /// Rounds in a row in which another flow held the queue, and the window before the first of them.
    pub(super) competing_rounds: u32,
    pub(super) window_before: u64,
    /// Rounds since the last backoff, and how many to leave between two.
    pub(super) since_backoff: u32,
    pub(super) backoff_rounds: u32,
    /// The window at the last loss while competing.
    pub(super) last_loss: Option<(u64, Instant)>,
    /// The network has marked packets.
    pub(super) was_marked: bool,
    /// Rounds in a row without a queue although there was more to send.
    pub(super) clear: u32,
    /// Rounds in a row with too long a queue, and the rate when that began.
    pub(super) stuck: (u32, f64),
    pub(super) persistent: PersistentQueue,
    pub(super) window: u64,
}

/// What carries a connection's packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Carrier {
    #[default]
    Datagrams,
    /// It loses nothing, keeps the order, and has congestion control of its own.
    Stream,
}

impl Carrier {
    fn first_mode(self) -> Mode {
        match self {
            Carrier::Datagrams => Mode::Startup { best: 0.0, flat: 0, late: None },
            Carrier::Stream => Mode::Follow { best: 0.0, flat: 0 },
        }
    }
}

#[derive(Clone)]
pub(super) enum Mode {
    /// The window grows 2.5-fold each round, until the rate does not follow or a queue grows.
    Startup { best: f64, flat: u32, late: Option<Late> },
    /// The window keeps ahead of a stream, whose own congestion control finds the rate. Rounds in which the rate was
    /// not better than the best, clearly.
    Follow { best: f64, flat: u32 },
    /// The window follows rate and round trip.
    Cruise,
    /// Fills the queue with another flow. The longest round trip, and the last round's mean.
    Compete { cubic: Box<Cubic>, longest: Duration, present: Duration },
}

/// Round trips are longer than with no queue: since when, for how many samples, octets before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Late {
    pub(super) since: Instant,
    pub(super) samples: u32,
    pub(super) delivered: u64,
}

/// Probes for more capacity from time to time: a quarter more for a round. Each failure doubles the wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    pub(super) is_on: bool,
    /// Rounds until the outcome is known, and the rate before.
    pub(super) pending: Option<(u32, f64)>,
    pub(super) wait: u32,
    pub(super) backoff: u32,
}

impl Probe {
    /// Larger while probes succeed.
    pub(super) fn gain(&self) -> f64 {
        if self.backoff == 1 { PROBE_GAIN } else { PROBE_GAIN_CAREFUL }
    }
}

impl BulkController {
    pub(super) fn new(
        activity: Activity,
        memory: PathCache,
        carrier: Carrier,
        now: Instant,
        mtu: u64,
    ) -> BulkController {
        BulkController {
            stirs: activity.count(),
            activity,

            known: memory.recall(now),
            memory,
            carrier,
            stirred: None,
            mtu,
            delivery: DeliveryRate::new(now),
            mode: carrier.first_mode(),
            rates: VecDeque::new(),
            rtt_min: None,
            rtt: Duration::ZERO,
            jitter: Jitter::default(),
            slack_used: 1.0,
            probe: Probe { is_on: false, pending: None, wait: 0, backoff: 1 },
            probe_rtt: None,
            probed_rtt: None,
            losses: BaselineLoss::default(),
            competing_rounds: 0,
            window_before: 0,
            since_backoff: 0,
            backoff_rounds: BACKOFF_ROUNDS,
            last_loss: None,
            was_marked: false,
            clear: 0,
            stuck: (0, 0.0),
            persistent: PersistentQueue::default(),
            window: LIMITS.initial_bytes,
        }
    }

    /// A batch of acknowledgments is complete, with this round trip.
    pub(super) fn advance(&mut self, now: Instant, rtt: Duration, round: Option<Round>) {
        self.rtt = rtt;
        if self.rtt_min.is_none_or(|(least, _)| rtt <= least) {
            self.rtt_min = Some((rtt, now));
        }
        let least = self.least();
        self.look_for_activity(now);
        if let Mode::Startup { late, .. } = &mut self.mode {
            // Only the first round trip decides, because later ones may include our own queue.
            if let Some(start) = self.known.take().and_then(|known| known.start(rtt)) {
                self.window = self.window.max(start);
            }
            let is_late = rtt.saturating_sub(least) > startup_queue(least);
            let delivered = self.delivery.delivered();
            *late = is_late.then(|| match *late {
                Some(late) => Late { samples: late.samples + 1, ..late },
                None => Late { since: now, samples: 1, delivered },
            });
            let full = late.filter(|late| late.samples >= LATE_SAMPLES);
            if let Some(full) = full {
                // A round later the queue would be full. What has arrived since there is one is what the path carries.
                // Acknowledgments that were held back come all at once: no more can have than was on its way.
                let span = now.saturating_duration_since(full.since).as_secs_f64();
                let most = self.window as f64 / least.as_secs_f64().max(1e-3);
                self.note_rate(((delivered - full.delivered) as f64 / span.max(1e-3)).min(most));
                self.note_rate(self.delivery.round().rate);
                self.cruise();
            }
        }
        if let Some(round) = round {
            self.end_round(now, &round);
        }
        self.set_window();
    }

    pub(super) fn end_round(&mut self, now: Instant, round: &Round) {
        // A rate that the application limited may be below the path's, so it counts
        // only as a new maximum.
        if !round.is_limited || round.rate > self.rate() {
            self.note_rate(round.rate);
        }
        self.jitter.note(round);
        self.end_probe_rtt(now, round);
        match &mut self.mode {
            Mode::Startup { best, flat, .. } => {
                if round.rate >= *best * STARTUP_GROWTH {
                    *best = round.rate;
                    *flat = 0;
                } else if !round.is_limited {
                    *flat += 1;
                    if *flat >= STARTUP_FLAT {
                        self.cruise();
                    }
                }
            }
            Mode::Follow { .. } => self.end_follow_round(now, round),
            Mode::Cruise => self.end_cruise_round(now, round),
            Mode::Compete { .. } => self.end_compete_round(now, round),
        }
        // In startup the rate is still that of the window, and inside a stream it is not what datagrams would find.
        let is_of_path = !matches!(self.mode, Mode::Startup { .. } | Mode::Follow { .. });
        if !round.is_limited && is_of_path {
            self.memory.note(SavedPath { rate: self.rate(), least: self.least(), at: now });
        }
    }

    pub(super) fn end_cruise_round(&mut self, now: Instant, round: &Round) {
        let standing = self.standing(round);
        let queue = self.queue();
        if round.is_marked {
            // RFC 8511: a mark comes from a short queue, so the answer is milder than to a loss.
            self.note_only(round.rate * MARK_SHARE);
            self.slack_used = 0.0;
        } else if self.losses.tells_of_congestion(round) {
            self.slack_used = (self.slack_used - 0.5).max(-1.0);
        } else {
            self.slack_used = (self.slack_used + 0.25).min(1.0);
        }
        if standing > queue * 3 && !round.is_limited {
            // The path has become slower, or somebody has come.
            self.note_only(round.rate);
        }
        let crowd = self.slack() + COMPETING_QUEUE_MIN;
        let is_crowded = standing > crowd && !round.is_limited;
        if is_crowded && self.competing_rounds == 0 {
            self.window_before = self.window;
        }
        self.competing_rounds = if is_crowded { self.competing_rounds + 1 } else { 0 };
        // CUBIC fills the queue in which a key waits, so not while the user types.
        if self.competing_rounds >= COMPETING_ROUNDS && !self.is_active(now) {
            self.compete(now);
            return;
        }
        self.look_for_delay(now, round, standing);
        let is_calm = self.slack_used >= 1.0 && self.probe_rtt.is_none() && self.stirred.is_none();
        let is_clear = is_calm && !round.is_limited && standing <= queue / 2;
        self.clear = if is_clear { self.clear + 1 } else { 0 };
        self.probe(round);
        self.begin_probe_rtt(now, round);
    }

    /// Takes a delay for the path's own if it stays while we send less, and jitters unlike a queue.
    pub(super) fn look_for_delay(&mut self, now: Instant, round: &Round, standing: Duration) {
        if round.is_limited || standing <= self.queue() || !self.jitter.is_there() {
            self.stuck = (0, 0.0);
            return;
        }
        let (rounds, before) = self.stuck;
        if rounds == 0 {
            self.stuck = (1, self.rate());
        } else if rounds >= STUCK_ROUNDS && self.rate() < before * STUCK_SHARE {
            self.rtt_min = round.rtt_min.map(|rtt| (rtt, now));
            self.stuck = (0, 0.0);
        } else {
            self.stuck.0 += 1;
        }
    }

    /// Applies the result of a slowdown, if one has ended.
    pub(super) fn end_probe_rtt(&mut self, now: Instant, round: &Round) {
        let Some(probe_rtt) = &mut self.probe_rtt else { return };
        let Some(found) = probe_rtt.end_round(now, round) else { return };
        self.probe_rtt = None;
        let before = std::mem::replace(&mut self.probed_rtt, found.rtt_min);
        // Beside somebody else no moment is without a queue. His is another length each time, and the path's delay is
        // not; but who heeds no loss may keep one as it is.
        let may_be_longer = match self.mode {
            Mode::Startup { .. } | Mode::Follow { .. } | Mode::Cruise => true,
            Mode::Compete { .. } => !self.persistent.is_sure && is_same(before, found.rtt_min),
        };
        match self.mode {
            Mode::Startup { .. } | Mode::Follow { .. } => {}
            Mode::Cruise => self.losses.learn(&found),
            Mode::Compete { .. } => self.persistent.heed(&found),
        }
        let Some(least) = found.rtt_min else { return };
        if let Some((known, at)) = self.rtt_min
            && (least <= known
                || may_be_longer && now.saturating_duration_since(at) >= LIMITS.rtt_age)
        {
            self.rtt_min = Some((least, now));
        }
    }

    pub(super) fn begin_probe_rtt(&mut self, now: Instant, round: &Round) {
        // A round that the application limited does not fill the window, so a smaller
        // one shows little.
        if self.probe_rtt.is_some() || round.is_limited {
            return;
        }
        let aged =
            |(_, at): (Duration, Instant)| now.saturating_duration_since(at) >= LIMITS.rtt_age;
        if self.rtt_min.is_some_and(aged) {
            self.probe_rtt = Some(ProbeRtt::new(now, BACKOFF_DEPTH));
        } else if self.losses.wants_to_know(round) {
            self.probe_rtt = Some(ProbeRtt::new(now, PROBE_RTT_DEPTH));
        }
    }

    pub(super) fn probe(&mut self, round: &Round) {
        let rate = self.rate();
        let may_have_more = self.may_have_more(round);
        let probe = &mut self.probe;
        probe.is_on = false;
        if let Some((rounds, before)) = probe.pending {
            probe.pending = (rounds > 1).then_some((rounds - 1, before));
            if rounds <= 1 {
                let grew = rate >= before * PROBE_SUCCESS;
                probe.backoff = if grew { 1 } else { (probe.backoff * 2).min(PROBE_WAIT_MAX) };
                probe.wait = probe.backoff - 1;
            }
        }
        let is_calm = self.slack_used >= 1.0 && self.probe_rtt.is_none() && self.stirred.is_none();
        if round.is_limited || !is_calm || !may_have_more {
            return;
        }
        let probe = &mut self.probe;
        if probe.pending.is_some() {
            return;
        }
        if probe.wait > 0 {
            probe.wait -= 1;
            return;
        }
        probe.is_on = true;
        // The probe's packets are acknowledged in the round after it, so its outcome takes two.
        probe.pending = Some((2, rate));
    }

    pub(super) fn cruise(&mut self) {
        self.mode = Mode::Cruise;
        self.clear = 0;
        self.stuck = (0, 0.0);
        self.probe.is_on = false;
        self.persistent = PersistentQueue::default();
        self.competing_rounds = 0;
    }

    /// The path is gone, or was: saved knowledge holds only if the first round trip confirms it.
    pub(super) fn restart(&mut self, now: Instant) {
        self.known = self.memory.recall(now);
        self.mode = self.carrier.first_mode();
        self.rates.clear();
        self.probe_rtt = None;
        self.losses = BaselineLoss::default();
        self.window = LIMITS.initial_bytes;
    }

    pub(super) fn look_for_activity(&mut self, now: Instant) {
        let stirs = self.activity.count();
        if stirs != self.stirs {
            self.stirs = stirs;
            self.stirred = Some(now);
        }
        if !self.is_active(now) {
            self.stirred = None;
        }
    }

    pub(super) fn note_rate(&mut self, rate: f64) {
        if rate > 0.0 {
            self.rates.push_back(rate);
        }
        while self.rates.len() > RATE_ROUNDS {
            self.rates.pop_front();
        }
    }

    /// Keeps this rate and forgets earlier ones.
    pub(super) fn note_only(&mut self, rate: f64) {
        if rate > 0.0 {
            self.rates.clear();
            self.rates.push_back(rate);
        }
    }

    pub(super) fn set_window(&mut self) {
        let model = self.model();
        let window = match &self.mode {
            Mode::Startup { .. } => self.window as f64,
            Mode::Follow { .. } => self.following_window(),
            Mode::Cruise => model,
            Mode::Compete { cubic, present, .. } => self.competing_window(cubic, *present, model),
        };
        let probed_rtt =
            self.probe_rtt.as_ref().and_then(ProbeRtt::depth).map_or(window, |depth| {
                window.min(depth * self.rate() * self.least().as_secs_f64())
            });
        self.window = (probed_rtt as u64).clamp(self.floor(), WINDOW_MAX);
    }

    /// The least window. Between near hosts a longer round trip mostly comes from a busy scheduler, which no
    /// smaller window shortens; without this floor, window and rate would shrink to nothing there.
    pub(super) fn floor(&self) -> u64 {
        let is_near = self.rtt_min.is_some_and(|(least, _)| least < LIMITS.near);
        if is_near && self.stirred.is_none() {
            LIMITS.near_bytes
        } else {
            LIMITS.packets_min * self.mtu
        }
    }

    /// What the path holds, plus the slack, and an allowance for inherent loss.
    pub(super) fn model(&self) -> f64 {
        let quiet = if self.stirred.is_some() {
            self.slack_used.min(ACTIVE_TRUST)
        } else {
            self.slack_used
        };
        let slack = self.slack().as_secs_f64() * quiet;
        let probed = if self.probe.is_on { self.probe.gain() } else { 1.0 };
        let more =
            probed.max(1.0 + CLEAR_STEP * f64::from(self.clear.saturating_sub(1).min(CLEAR_STEPS)));
        self.rate() * (self.least().as_secs_f64() + slack) * more * self.losses.allowance()
    }

    /// The fastest delivery lately, in octets a second.
    pub(super) fn rate(&self) -> f64 {
        self.rates.iter().copied().fold(0.0, f64::max)
    }

    pub(super) fn least(&self) -> Duration {
        self.rtt_min.map_or(self.rtt, |(least, _)| least)
    }

    /// The queue to keep at this rate.
    pub(super) fn queue(&self) -> Duration {
        let queue = LIMITS.queue.mul_f64((Limits::RATE / self.rate().max(1.0)).sqrt().min(8.0));
        queue.clamp(LIMITS.queue_min, LIMITS.queue_max)
    }

    /// The queue, plus the path's own jitter: a window without that would starve.
    pub(super) fn slack(&self) -> Duration {
        (self.queue() + self.jitter.delay(self.least())).min(LIMITS.slack_max)
    }

    /// Whether the round trip suggests that the path carries more.
    pub(super) fn may_have_more(&self, round: &Round) -> bool {
        match self.jitter.is_there() {
            true => round.rtt_mean() <= self.least() + self.slack(),
            false => self.standing(round) <= self.queue() / 2,
        }
    }

    /// The part of the round trip that was there all round long.
    pub(super) fn standing(&self, round: &Round) -> Duration {
        round.rtt_min.map_or(Duration::ZERO, |rtt| rtt.saturating_sub(self.least()))
    }

    pub(super) fn is_active(&self, now: Instant) -> bool {
        self.stirred.is_some_and(|at| now.saturating_duration_since(at) < LIMITS.active)
    }
}

/// Whether two slowdowns measured the same round trip, which is then the path's own.
fn is_same(one: Option<Duration>, other: Option<Duration>) -> bool {
    one.zip(other).is_some_and(|(one, other)| one.abs_diff(other) <= one / SAME_RTT)
}

/// The length of queue that ends startup.
fn startup_queue(least: Duration) -> Duration {
    (least / 16).clamp(Duration::from_millis(4), Duration::from_millis(16))
}

/// Rounds whose best rate counts: enough to bridge one that was disturbed.
const RATE_ROUNDS: usize = 5;
/// Startup ends after this many rounds in which the rate grew by less (as BBR's does).
pub(super) const STARTUP_FLAT: u32 = 2;
pub(super) const STARTUP_GROWTH: f64 = 1.25;
/// How many more octets may be in flight for each acknowledged one. The window grows 2.5-fold each round,
/// the least at which the rate doubles at any phase of the round. A full path shows a round later: at
/// threefold growth a queue of 1 BDP has overflowed by then.
pub(super) const STARTUP_NUM: u64 = 3;
pub(super) const STARTUP_DEN: u64 = 2;
/// This many longer round trips in a row show a queue (HyStart++, RFC 9406, takes the shortest of 8).
const LATE_SAMPLES: u32 = 4;
/// Packets that quinn builds before it calls `on_sent` (its `MAX_TRANSMIT_SEGMENTS`).
pub(super) const BATCH_PACKETS: u64 = 10;
const PROBE_GAIN: f64 = 1.25;
const PROBE_GAIN_CAREFUL: f64 = 1.1;
/// An empty queue shows that the window was too small, for any reason (a host with late acknowledgments
/// makes round trips longer than the path): the window grows faster the longer this lasts.
const CLEAR_STEP: f64 = 0.1;
const CLEAR_STEPS: u32 = 5;
const PROBE_SUCCESS: f64 = 1.03;
const PROBE_WAIT_MAX: u32 = 16;
/// The reduced window's share of the old one after a mark (RFC 8511 section 3).
const MARK_SHARE: f64 = 0.85;
/// The share of the slack to use while the user types.
const ACTIVE_TRUST: f64 = 0.25;
/// A queue longer than ours by this belongs to another flow.
const COMPETING_QUEUE_MIN: Duration = Duration::from_millis(4);
/// Rounds a queue stays before it counts as another flow's: our own is gone in two or three.
const COMPETING_ROUNDS: u32 = 6;
/// After this many rounds in which the rate falls to this share, a delay counts as the path's.
const STUCK_ROUNDS: u32 = 12;
const STUCK_SHARE: f64 = 0.97;
/// The window's share of what the path holds in a backoff, and in a slowdown to measure loss.
pub(super) const BACKOFF_DEPTH: f64 = 0.5;
const PROBE_RTT_DEPTH: f64 = 0.85;
/// Round trips that differ by less than this fraction are equal.
const SAME_RTT: u32 = 32;
/// The factor by which the pacer's window is larger.
pub(super) const PACER_NUM: u64 = 3;
pub(super) const PACER_DEN: u64 = 2;
/// Octets in flight: beyond 4 GiB quinn does not pace.
const WINDOW_MAX: u64 = 1 << 30;
/// Rounds between checks whether the queue still belongs to another flow.
pub(super) const BACKOFF_ROUNDS: u32 = 20;
