//! How fast bulk is sent: a congestion controller for quinn that fills long, fat, lossy pipes and keeps their
//! queues short, so that a keystroke beside it does not wait.
//!
//! The window is what the path delivers times its shortest round trip, and a little more (`slack`): the
//! little more finds capacity that has become free, and is the queue when there is none. Loss by itself says
//! nothing: it counts if it comes from sending faster, which is found out by sending slower for a moment
//! (`ease.rs`). When the queue stays although this connection backs off, somebody else fills it; then it is filled
//! together, by CUBIC's rules, until it empties. It yields while the shell is used ([`Activity`]).
//!
//! quinn's pacer sends 1.25 windows in a smoothed round trip and asks no controller for a rate: the window is
//! all that is decided here, and while there is room in it the pacer is told of half as much again.

mod compete;
mod ease;
mod known;
mod meter;
mod tremble;

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics, Cubic};

use compete::{Stubborn, TRUCE_ROUNDS};
use ease::{Ease, Losses};
use known::{Known, Memory};
use meter::{Meter, Round};
use tremble::Tremble;

/// Makes a controller for each connection: a value for
/// [`TransportConfig::congestion_controller_factory`](quinn_proto::TransportConfig::congestion_controller_factory).
///
/// A connection begins with half of what the one before it knew, if its first round trip looks like the same
/// path: make one of these for all connections of a session.
#[derive(Clone, Debug, Default)]
pub struct Pace {
    activity: Activity,
    memory: Memory,
}

/// Whether somebody types beside the bulk. Clones are one: the shell stirs it, the controllers look.
#[derive(Clone, Debug, Default)]
pub struct Activity(Arc<AtomicU64>);

/// What the controller goes by.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Octets in flight before anything is known: 64 packets, twice what Chromium's QUIC begins with. They are paced.
    initial_bytes: u64,
    /// Packets that may always be in flight.
    packets_min: u64,
    /// A shortest round trip below which both hosts are near, and octets that may always be in flight then.
    near: Duration,
    near_bytes: u64,
    /// The queue that is kept at [`Limits::RATE`] so that free capacity is found. It is longer for slower
    /// connections and shorter for faster ones, by the root, so that shares of one bottleneck become equal.
    queue: Duration,
    queue_min: Duration,
    queue_max: Duration,
    /// The queue beside which a keystroke is still answered at once; variation of the path's own included.
    slack_max: Duration,
    /// How long after a key the shell is in use.
    active: Duration,
    /// How long a shortest round trip is believed.
    rtt_age: Duration,
}

const LIMITS: Limits = Limits {
    initial_bytes: 92_000,
    packets_min: 4,
    near: Duration::from_millis(2),
    near_bytes: 512 << 10,
    queue: Duration::from_millis(4),
    queue_min: Duration::from_millis(2),
    queue_max: Duration::from_millis(14),
    slack_max: Duration::from_millis(18),
    active: Duration::from_secs(1),
    rtt_age: Duration::from_secs(10),
};

/// A controller of one connection.
#[derive(Clone)]
struct Governor {
    activity: Activity,
    memory: Memory,
    /// What was known before, until the first round trip tells whether it holds.
    known: Option<Known>,
    /// The count of [`Activity`] last seen, and when it last changed.
    stirs: u64,
    stirred: Option<Instant>,
    mtu: u64,
    meter: Meter,
    mode: Mode,
    /// The best rate of each of the last rounds that the application did not limit, oldest first.
    rates: VecDeque<f64>,
    /// The shortest round trip, and when it was seen.
    rtt_min: Option<(Duration, Instant)>,
    rtt: Duration,
    tremble: Tremble,
    /// From -1 to 1: how much of the slack is used.
    trust: f64,
    probe: Probe,
    ease: Option<Ease>,
    /// The shortest round trip found by sending slower the last time.
    eased: Option<Duration>,
    losses: Losses,
    /// Rounds in a row in which somebody else held the queue, and the window before the first of them.
    crowded: u32,
    uncrowded: u64,
    /// Rounds since the last truce, and how many are to be between two.
    since_truce: u32,
    truce_rounds: u32,
    /// The window at which competing lost packets last.
    contested: Option<(u64, Instant)>,
    /// The network has marked packets.
    was_marked: bool,
    /// Rounds in a row without a queue although there was more to send.
    clear: u32,
    /// Rounds in a row with one that is longer than it should be, and the rate when that began.
    stuck: (u32, f64),
    stubborn: Stubborn,
    window: u64,
}

#[derive(Clone)]
enum Mode {
    /// The window grows 2.5-fold each round, until the rate does not follow or a queue grows.
    Startup { best: f64, flat: u32, late: Option<Late> },
    /// The window follows rate and round trip.
    Cruise,
    /// The queue is filled together with somebody else. The longest round trip, and the mean one of the last round.
    Compete { cubic: Box<Cubic>, longest: Duration, present: Duration },
}

/// Round trips are longer than without a queue: since when, by how many samples, and what was delivered before.
#[derive(Clone, Copy, Debug)]
struct Late {
    since: Instant,
    samples: u32,
    delivered: u64,
}

/// Looks for more from time to time: a quarter more for a round. Each time in vain doubles the wait.
#[derive(Clone, Copy, Debug)]
struct Probe {
    is_on: bool,
    /// Rounds until the outcome is known, and the rate before.
    pending: Option<(u32, f64)>,
    wait: u32,
    backoff: u32,
}

impl Pace {
    /// Controllers that yield while there is activity.
    pub fn new(activity: Activity) -> Pace {
        Pace { activity, memory: Memory::default() }
    }
}

impl ControllerFactory for Pace {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(Governor::new(&self, now, current_mtu.into()))
    }
}

impl Probe {
    /// Bold while it succeeds.
    fn gain(&self) -> f64 {
        if self.backoff == 1 { PROBE_GAIN } else { PROBE_GAIN_CAREFUL }
    }
}

impl Activity {
    /// A key was typed, or answered.
    pub fn stir(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Governor {
    fn new(pace: &Pace, now: Instant, mtu: u64) -> Governor {
        Governor {
            stirs: pace.activity.count(),
            activity: pace.activity.clone(),
            memory: pace.memory.clone(),
            known: pace.memory.recall(now),
            stirred: None,
            mtu,
            meter: Meter::new(now),
            mode: Mode::Startup { best: 0.0, flat: 0, late: None },
            rates: VecDeque::new(),
            rtt_min: None,
            rtt: Duration::ZERO,
            tremble: Tremble::default(),
            trust: 1.0,
            probe: Probe { is_on: false, pending: None, wait: 0, backoff: 1 },
            ease: None,
            eased: None,
            losses: Losses::default(),
            crowded: 0,
            uncrowded: 0,
            since_truce: 0,
            truce_rounds: TRUCE_ROUNDS,
            contested: None,
            was_marked: false,
            clear: 0,
            stuck: (0, 0.0),
            stubborn: Stubborn::default(),
            window: LIMITS.initial_bytes,
        }
    }

    /// A batch of acknowledgments is complete, with this round trip.
    fn advance(&mut self, now: Instant, rtt: Duration, round: Option<Round>) {
        self.rtt = rtt;
        if self.rtt_min.is_none_or(|(least, _)| rtt <= least) {
            self.rtt_min = Some((rtt, now));
        }
        let least = self.least();
        self.look_for_activity(now);
        if let Mode::Startup { late, .. } = &mut self.mode {
            if let Some(start) = self.known.take().and_then(|known| known.start(rtt)) {
                self.window = self.window.max(start);
            }
            let is_late = rtt.saturating_sub(least) > startup_queue(least);
            let delivered = self.meter.delivered();
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
                self.note_rate(self.meter.round().rate);
                self.cruise();
            }
        }
        if let Some(round) = round {
            self.end_round(now, &round);
        }
        self.set_window();
    }

    fn end_round(&mut self, now: Instant, round: &Round) {
        if !round.is_limited || round.rate > self.rate() {
            self.note_rate(round.rate);
        }
        self.tremble.note(round);
        self.end_ease(now, round);
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
            Mode::Cruise => self.end_cruise_round(now, round),
            Mode::Compete { .. } => self.end_compete_round(now, round),
        }
        if !round.is_limited && !matches!(self.mode, Mode::Startup { .. }) {
            self.memory.note(Known { rate: self.rate(), least: self.least(), at: now });
        }
    }

    fn end_cruise_round(&mut self, now: Instant, round: &Round) {
        let standing = self.standing(round);
        let queue = self.queue();
        if round.is_marked {
            // RFC 8511: a mark comes from a short queue, so the answer is milder than to a loss.
            self.note_only(round.rate * MARK_SHARE);
            self.trust = 0.0;
        } else if self.losses.tells_of_congestion(round) {
            self.trust = (self.trust - 0.5).max(-1.0);
        } else {
            self.trust = (self.trust + 0.25).min(1.0);
        }
        if standing > queue * 3 && !round.is_limited {
            // The path has become slower, or somebody has come.
            self.note_only(round.rate);
        }
        let crowd = self.slack() + CROWD_MIN;
        let is_crowded = standing > crowd && !round.is_limited;
        if is_crowded && self.crowded == 0 {
            self.uncrowded = self.window;
        }
        self.crowded = if is_crowded { self.crowded + 1 } else { 0 };
        if self.crowded >= CROWDED_ROUNDS && !self.is_active(now) {
            self.compete(now);
            return;
        }
        self.look_for_delay(now, round, standing);
        let is_calm = self.trust >= 1.0 && self.ease.is_none() && self.stirred.is_none();
        let is_clear = is_calm && !round.is_limited && standing <= queue / 2;
        self.clear = if is_clear { self.clear + 1 } else { 0 };
        self.probe(round);
        self.begin_ease(now, round);
    }

    /// A delay that stays although less and less is sent, and that trembles as a queue does not, is the path's.
    fn look_for_delay(&mut self, now: Instant, round: &Round, standing: Duration) {
        if round.is_limited || standing <= self.queue() || !self.tremble.is_there() {
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

    /// Sees what sending slower has told, if it is over.
    fn end_ease(&mut self, now: Instant, round: &Round) {
        let Some(ease) = &mut self.ease else { return };
        let Some(found) = ease.end_round(now, round) else { return };
        self.ease = None;
        let before = std::mem::replace(&mut self.eased, found.rtt_min);
        // Beside somebody else no moment is without a queue. His is another length each time, and the path's delay is
        // not; but who heeds no loss may keep one as it is.
        let may_be_longer = match self.mode {
            Mode::Startup { .. } | Mode::Cruise => true,
            Mode::Compete { .. } => !self.stubborn.is_sure && is_same(before, found.rtt_min),
        };
        match self.mode {
            Mode::Startup { .. } => {}
            Mode::Cruise => self.losses.learn(&found),
            Mode::Compete { .. } => self.stubborn.heed(&found),
        }
        let Some(least) = found.rtt_min else { return };
        if let Some((known, at)) = self.rtt_min
            && (least <= known
                || may_be_longer && now.saturating_duration_since(at) >= LIMITS.rtt_age)
        {
            self.rtt_min = Some((least, now));
        }
    }

    fn begin_ease(&mut self, now: Instant, round: &Round) {
        if self.ease.is_some() || round.is_limited {
            return;
        }
        let aged =
            |(_, at): (Duration, Instant)| now.saturating_duration_since(at) >= LIMITS.rtt_age;
        if self.rtt_min.is_some_and(aged) {
            self.ease = Some(Ease::new(now, TRUCE_DEPTH));
        } else if self.losses.wants_to_know(round) {
            self.ease = Some(Ease::new(now, EASE_DEPTH));
        }
    }

    fn probe(&mut self, round: &Round) {
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
        let is_calm = self.trust >= 1.0 && self.ease.is_none() && self.stirred.is_none();
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
        probe.pending = Some((2, rate));
    }

    fn cruise(&mut self) {
        self.mode = Mode::Cruise;
        self.clear = 0;
        self.stuck = (0, 0.0);
        self.probe.is_on = false;
        self.stubborn = Stubborn::default();
        self.crowded = 0;
    }

    /// The path is gone, or was: what was known holds only if the first round trip says so.
    fn restart(&mut self, now: Instant) {
        self.known = self.memory.recall(now);
        self.mode = Mode::Startup { best: 0.0, flat: 0, late: None };
        self.rates.clear();
        self.ease = None;
        self.losses = Losses::default();
        self.window = LIMITS.initial_bytes;
    }

    fn look_for_activity(&mut self, now: Instant) {
        let stirs = self.activity.count();
        if stirs != self.stirs {
            self.stirs = stirs;
            self.stirred = Some(now);
        }
        if !self.is_active(now) {
            self.stirred = None;
        }
    }

    fn note_rate(&mut self, rate: f64) {
        if rate > 0.0 {
            self.rates.push_back(rate);
        }
        while self.rates.len() > RATE_ROUNDS {
            self.rates.pop_front();
        }
    }

    /// Believes this rate and no earlier one.
    fn note_only(&mut self, rate: f64) {
        if rate > 0.0 {
            self.rates.clear();
            self.rates.push_back(rate);
        }
    }

    fn set_window(&mut self) {
        let model = self.model();
        let window = match &self.mode {
            Mode::Startup { .. } => self.window as f64,
            Mode::Cruise => model,
            Mode::Compete { cubic, present, .. } => self.competing_window(cubic, *present, model),
        };
        let eased =
            self.ease.as_ref().and_then(Ease::depth).map_or(window, |depth| {
                window.min(depth * self.rate() * self.least().as_secs_f64())
            });
        self.window = (eased as u64).clamp(self.floor(), WINDOW_MAX);
    }

    /// What may always be in flight. Between near hosts a longer round trip is mostly a busy scheduler's, which
    /// no smaller window makes shorter; without this the window shrank to nothing there, and the rate with it.
    fn floor(&self) -> u64 {
        let is_near = self.rtt_min.is_some_and(|(least, _)| least < LIMITS.near);
        if is_near && self.stirred.is_none() {
            LIMITS.near_bytes
        } else {
            LIMITS.packets_min * self.mtu
        }
    }

    /// What the path holds, with the slack, and with what is lost on the way.
    fn model(&self) -> f64 {
        let quiet = if self.stirred.is_some() { self.trust.min(ACTIVE_TRUST) } else { self.trust };
        let slack = self.slack().as_secs_f64() * quiet;
        let probed = if self.probe.is_on { self.probe.gain() } else { 1.0 };
        let more =
            probed.max(1.0 + CLEAR_STEP * f64::from(self.clear.saturating_sub(1).min(CLEAR_STEPS)));
        self.rate() * (self.least().as_secs_f64() + slack) * more * self.losses.allowance()
    }

    /// The fastest delivery lately, in octets a second.
    fn rate(&self) -> f64 {
        self.rates.iter().copied().fold(0.0, f64::max)
    }

    fn least(&self) -> Duration {
        self.rtt_min.map_or(self.rtt, |(least, _)| least)
    }

    /// The queue to keep at this rate.
    fn queue(&self) -> Duration {
        let queue = LIMITS.queue.mul_f64((Limits::RATE / self.rate().max(1.0)).sqrt().min(8.0));
        queue.clamp(LIMITS.queue_min, LIMITS.queue_max)
    }

    /// The queue, and what the path itself varies by: a window without that would starve behind it.
    fn slack(&self) -> Duration {
        (self.queue() + self.tremble.delay(self.least())).min(LIMITS.slack_max)
    }

    /// Whether the round trip lets hope that the path carries more.
    fn may_have_more(&self, round: &Round) -> bool {
        match self.tremble.is_there() {
            true => round.rtt_mean() <= self.least() + self.slack(),
            false => self.standing(round) <= self.queue() / 2,
        }
    }

    /// The part of the round trip that was there all round long.
    fn standing(&self, round: &Round) -> Duration {
        round.rtt_min.map_or(Duration::ZERO, |rtt| rtt.saturating_sub(self.least()))
    }

    fn is_active(&self, now: Instant) -> bool {
        self.stirred.is_some_and(|at| now.saturating_duration_since(at) < LIMITS.active)
    }
}

impl Controller for Governor {
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        self.meter.send(now, bytes, self.window);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.meter.acknowledge(sent, bytes);
        if let Some(ease) = &mut self.ease {
            ease.acknowledge(now, sent, bytes);
        }
        match &mut self.mode {
            Mode::Startup { .. } if self.meter.is_full() => {
                self.window += bytes * STARTUP_NUM / STARTUP_DEN;
            }
            Mode::Compete { cubic, .. } => cubic.on_ack(now, sent, bytes, app_limited, rtt),
            Mode::Startup { .. } | Mode::Cruise => {}
        }
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        _app_limited: bool,
        _largest_packet_num_acked: Option<u64>,
    ) {
        if let Some((rtt, round)) = self.meter.finish(now, in_flight) {
            self.advance(now, rtt, round);
        }
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        if is_persistent_congestion {
            self.meter.lose(lost_bytes);
            self.restart(now);
            return;
        }
        if lost_bytes == 0 {
            self.meter.mark();
            self.was_marked = true;
            if matches!(self.mode, Mode::Startup { .. }) {
                self.note_rate(self.meter.round().rate);
                self.cruise();
            }
        }
        self.meter.lose(lost_bytes);
        if let Some(ease) = &mut self.ease {
            ease.lose(sent, lost_bytes);
        }
        self.lose_competing(now, sent, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = new_mtu.into();
        if let Mode::Compete { cubic, .. } = &mut self.mode {
            cubic.on_mtu_update(new_mtu);
        }
    }

    /// quinn asks for two reasons: how much may be in flight, and how fast to send it. Its pacer wakes every 2 ms as
    /// tokio's timers let it, later by up to as much again, and what it then is late by is lost to it. So while there is
    /// room for all that it sends before it says so, it is told of more. The bursts that this makes are not for a path
    /// that marks short queues, or that loses for want of one, or on which somebody types.
    fn window(&self) -> u64 {
        let has_room = self.meter.in_flight() + BATCH_PACKETS * self.mtu <= self.window;
        if has_room && self.trust >= 1.0 && !self.was_marked && self.stirred.is_none() {
            self.window * PACER_NUM / PACER_DEN
        } else {
            self.window
        }
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window;
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        LIMITS.initial_bytes
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl Limits {
    /// 200 Mbit/s, in octets a second.
    const RATE: f64 = 25e6;
}

/// Whether two round trips are the path's own, which stays.
fn is_same(one: Option<Duration>, other: Option<Duration>) -> bool {
    one.zip(other).is_some_and(|(one, other)| one.abs_diff(other) <= one / SAME_RTT)
}

/// The queue that ends startup.
fn startup_queue(least: Duration) -> Duration {
    (least / 16).clamp(Duration::from_millis(4), Duration::from_millis(16))
}

/// Rounds whose best rate counts: enough to bridge one that was disturbed.
const RATE_ROUNDS: usize = 5;
/// Startup ends after so many rounds in which the rate grew by less (as BBR's does).
const STARTUP_FLAT: u32 = 2;
const STARTUP_GROWTH: f64 = 1.25;
/// For each octet that is acknowledged so many more may be in flight: the window grows 2.5-fold each round, the least
/// at which what is sent doubles at any phase of the round. That the path is full is seen a round later: growing
/// threefold, a queue of 1 BDP had run over by then.
const STARTUP_NUM: u64 = 3;
const STARTUP_DEN: u64 = 2;
/// So many round trips in a row that are longer tell of a queue (HyStart++, RFC 9406, takes the shortest of 8).
const LATE_SAMPLES: u32 = 4;
/// What quinn makes before it says that it has sent (its `MAX_TRANSMIT_SEGMENTS`).
const BATCH_PACKETS: u64 = 10;
const PROBE_GAIN: f64 = 1.25;
const PROBE_GAIN_CAREFUL: f64 = 1.1;
/// Without a queue the window was too small, whatever made it so (a host that is late with its acknowledgments
/// makes round trips longer than the path): it grows faster the longer that lasts.
const CLEAR_STEP: f64 = 0.1;
const CLEAR_STEPS: u32 = 5;
const PROBE_SUCCESS: f64 = 1.03;
const PROBE_WAIT_MAX: u32 = 16;
/// Of the window in RFC 8511 section 3.
const MARK_SHARE: f64 = 0.85;
/// How much of the slack is used while somebody types.
const ACTIVE_TRUST: f64 = 0.25;
/// A queue that is longer than ours by this is not ours.
const CROWD_MIN: Duration = Duration::from_millis(4);
/// Rounds in which the queue stays before it is somebody else's: our own is gone in two or three.
const CROWDED_ROUNDS: u32 = 6;
/// So many rounds in which the rate falls to this share: then a delay is the path's.
const STUCK_ROUNDS: u32 = 12;
const STUCK_SHARE: f64 = 0.97;
/// Of what the path holds, while a truce lasts, and while it is found out what is lost without congestion.
const TRUCE_DEPTH: f64 = 0.5;
const EASE_DEPTH: f64 = 0.85;
/// Round trips that differ by less than this part are one.
const SAME_RTT: u32 = 32;
/// How much faster the pacer is to be.
const PACER_NUM: u64 = 3;
const PACER_DEN: u64 = 2;
/// Octets in flight: beyond 4 GiB quinn does not pace.
const WINDOW_MAX: u64 = 1 << 30;

#[cfg(test)]
mod tests;
