//! Decides when to send what: new states, retransmissions, acknowledgments, the end
//! (`mosh-protocol.md` §4.2, §4.4; loss-policy §5). A policy decides when and how often, and
//! [`StateHistory`] from which state. It must not know how an instruction travels.

pub(crate) mod acks;
pub(crate) mod adaptive;
pub(crate) mod core;
pub(crate) mod history;
mod mosh;
pub(crate) mod redundancy;
pub(crate) mod slots;
pub(crate) mod transfer;

use ::core::time::Duration;
use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::path::Path;
use crate::recovery::rtt::RttEstimator;
use crate::sender::acks::Fragmented;
use crate::sender::adaptive::AdaptivePolicy;
use crate::sender::core::{Core, Number, Prepared, Rest};
use crate::sender::history::StateHistory;
use crate::sender::mosh::MoshRules;
use crate::sender::redundancy::Feedback;
use crate::sender::slots::Room;
use crate::state::{State, StateNum};
use crate::stats::Stats;
use crate::time::Time;
use crate::timing::{AdaptiveTiming, SendPolicy, StreamTiming, Timing};
use crate::wire::{Flags, Role};

/// Longer waits between final acknowledgments do not double any more: nobody lingers that long.
const FINAL_DOUBLINGS_MAX: u32 = 10;

/// The object we own, and when it is sent.
pub(crate) struct Sender<L> {
    core: Core<L>,
    policy: Policy,
    closing: Shutdown,
}

/// Who decides when to send while neither end has begun to shut down.
pub(crate) enum Policy {
    Mosh,
    Adaptive(Box<AdaptivePolicy>),
}

/// Which ends have begun to shut down. It is asked before any policy is: the end of a session is the same
/// for all.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shutdown {
    ours: Option<Announced>,
    /// The peer has announced its own.
    peers: bool,
    /// How often a client that only leaves has acknowledged that.
    answers: u32,
}

/// Our shutdown, and how often it was announced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Announced {
    /// Until when an answer is awaited. `None`: for as long as the owner of the session lets it.
    until: Option<Time>,
    tries: u32,
    /// Tries since the peer was heard.
    unanswered: u32,
}

impl Shutdown {
    fn has_begun(&self) -> bool {
        self.ours.is_some() || self.peers
    }
}

impl Policy {
    fn new(now: Time, role: Role, policy: &SendPolicy) -> Policy {
        match policy {
            SendPolicy::Mosh => Policy::Mosh,
            SendPolicy::Adaptive(timing) => {
                Policy::Adaptive(Box::new(AdaptivePolicy::new(now, role, timing)))
            }
        }
    }

    /// How long a sent state is assumed received without an acknowledgment.
    fn timeout<L: State>(&self, core: &Core<L>, rtt: &RttEstimator) -> Duration {
        match self {
            // The peer may hold its acknowledgment back for so long.
            Policy::Mosh => rtt.rto() + core.timing.ack_delay,
            Policy::Adaptive(adaptive) => adaptive.redundancy.pto(rtt),
        }
    }
}

impl<L: State> Sender<L> {
    pub(crate) fn new(now: Time, role: Role, timing: Timing, initial: L, seed: u64) -> Sender<L> {
        Sender {
            policy: Policy::new(now, role, &timing.send_policy),
            core: Core::new(now, role, timing, initial, seed),
            closing: Shutdown::default(),
        }
    }

    /// Changes the object; what that means for sending is found out at the next `poll`. Once our shutdown
    /// is announced the object is final.
    pub(crate) fn update(&mut self, now: Time, change: impl FnOnce(&mut L)) {
        if self.closing.ours.is_none() {
            self.core.update(now, change);
        }
    }

    /// Changes the object by what must not show by the lengths of datagrams.
    pub(crate) fn update_hidden(&mut self, now: Time, change: impl FnOnce(&mut L)) {
        if self.closing.ours.is_none() {
            self.core.update(now, change);
            self.core.hide_change();
        }
    }

    /// Whether an instruction may hold a part of the object that must not show by its length.
    pub(crate) fn hides(&self) -> bool {
        self.core.hides()
    }

    /// A run of slots begins or is over.
    pub(crate) fn set_run(&mut self, is_on: bool) {
        self.core.in_run = is_on;
    }

    /// What goes out in a slot.
    pub(crate) fn poll_slot(
        &mut self,
        now: Time,
        path: &Path,
        room: Room,
        stats: &mut Stats,
    ) -> Prepared {
        self.core.compare();
        match &mut self.policy {
            Policy::Adaptive(adaptive) => {
                adaptive.poll_slot(now, &mut self.core, path, room, stats)
            }
            Policy::Mosh => self.core.only_acknowledge(),
        }
    }

    /// That there is nothing to say but what came.
    pub(crate) fn only_acknowledge(&self) -> Prepared {
        self.core.only_acknowledge()
    }

    /// Whether either end has begun to shut down.
    pub(crate) fn has_begun_to_close(&self) -> bool {
        self.closing.has_begun()
    }

    /// Random octets, to make an instruction longer.
    pub(crate) fn chaff(&mut self, octets: usize, out: &mut Vec<u8>) {
        self.core.chaff(octets, out);
    }

    /// The peer's newest state has come: it is there.
    pub(crate) fn on_state(&mut self, now: Time) {
        self.core.heard = now;
    }

    /// An authentic datagram came; `loss` is the share of the peer's that did not.
    pub(crate) fn on_datagram(
        &mut self,
        now: Time,
        path: &Path,
        loss: f64,
        feedback: Option<Feedback>,
    ) {
        if let Some(ours) = &mut self.closing.ours {
            ours.unanswered = 0;
        }
        self.core.loss = feedback.map_or(loss, |feedback| feedback.loss);
        if let Policy::Adaptive(adaptive) = &mut self.policy {
            adaptive.on_datagram(now, path, loss, feedback);
        }
    }

    /// Datagrams go by a stream from now on, or by UDP.
    pub(crate) fn switch(&mut self, stream: Option<StreamTiming>) {
        if let Policy::Adaptive(adaptive) = &mut self.policy {
            adaptive.switch(stream);
        }
    }

    /// A datagram with (a part of) this state went out: of the last, or of one before it that is repaired,
    /// which therefore has a diff. Whether the peer is to acknowledge it: what nobody acknowledges is not
    /// followed, since it would stay in flight until it expires.
    pub(crate) fn on_datagram_sent(&mut self, num: StateNum) -> bool {
        let last = self.core.history.last();
        let is_last = num == last.num;
        if is_last && !last.ack_eliciting {
            return false;
        }
        if let Policy::Adaptive(adaptive) = &mut self.policy
            && is_last
        {
            adaptive.redundancy.carried();
        }
        true
    }

    /// How long a sent state is assumed received without an acknowledgment.
    pub(crate) fn timeout(&self, path: &Path) -> Duration {
        self.policy.timeout(&self.core, &path.rtt)
    }

    /// The share of our datagrams that is lost, if parity is of use.
    pub(crate) fn parity_loss(&self) -> Option<f64> {
        match &self.policy {
            Policy::Mosh => None,
            Policy::Adaptive(adaptive) => adaptive.redundancy.parity_loss(),
        }
    }

    /// This state takes several datagrams, of which one goes out now.
    pub(crate) fn said_more(&mut self, now: Time, num: StateNum) {
        if let Policy::Adaptive(adaptive) = &mut self.policy {
            adaptive.said_more(now, &mut self.core, num);
        }
    }

    /// Whether there is a window, and the peer's reports are asked for.
    pub(crate) fn paces(&self) -> bool {
        matches!(self.policy, Policy::Adaptive(_))
    }

    /// When another datagram of an instruction may go out after one at `last`: when there is room for it.
    pub(crate) fn room_at(&self, last: Time, path: &Path) -> Time {
        match &self.policy {
            Policy::Mosh => last,
            Policy::Adaptive(adaptive) => adaptive.room_at(last, path),
        }
    }

    /// The peer says that it is there. A server that is at rest says so too, at once, and at no other time.
    pub(crate) fn on_empty_state(&mut self, now: Time) {
        let rest = match &mut self.policy {
            Policy::Mosh => Rest::Never,
            Policy::Adaptive(adaptive) => {
                adaptive.on_empty_state(now);
                adaptive.rest()
            }
        };
        // A server that beats by its own clock need not answer each beat of the client's.
        let at_rest = self.core.heartbeat_at(rest).is_none();
        self.core.asked = self.core.role == Role::Server && at_rest;
    }

    /// The peer's newest state came with a diff: an acknowledgment is owed.
    pub(crate) fn schedule_ack(&mut self, now: Time, rtt: &RttEstimator, fragmented: Fragmented) {
        self.core.used = now;
        match &mut self.policy {
            Policy::Mosh => {
                let core = &mut self.core;
                core.heartbeat = core.heartbeat.min(now + core.timing.ack_delay);
            }
            Policy::Adaptive(adaptive) => adaptive.schedule_ack(now, rtt, fragmented),
        }
    }

    /// A piece of an instruction came, and others are missing: the peer is to learn soon which.
    pub(crate) fn schedule_report(&mut self, now: Time, rtt: &RttEstimator) {
        if let Policy::Adaptive(adaptive) = &mut self.policy {
            adaptive.schedule_report(now, rtt);
        }
    }

    /// What goes out now does not acknowledge what came last.
    pub(crate) fn schedule_at_once(&mut self, now: Time) {
        if let Policy::Adaptive(adaptive) = &mut self.policy {
            adaptive.acks.schedule_at_once(now);
        }
    }

    /// The peer sent its newest state again.
    pub(crate) fn repeated(&mut self, now: Time, rtt: &RttEstimator, flags: Flags) {
        if let Policy::Adaptive(adaptive) = &mut self.policy {
            adaptive.acks.on_repeat(now, rtt, flags);
        }
    }

    /// The acknowledgment that is due, while nothing else may be said.
    pub(crate) fn poll_scheduled(&mut self, now: Time, stats: &mut Stats) -> Option<Prepared> {
        match &mut self.policy {
            Policy::Adaptive(adaptive) if !self.closing.has_begun() => {
                adaptive.poll_scheduled(now, &self.core, stats)
            }
            _ => None,
        }
    }

    /// When one is due.
    pub(crate) fn scheduled_at(&self) -> Option<Time> {
        match &self.policy {
            Policy::Adaptive(adaptive) if !self.closing.has_begun() => adaptive.acks.at(),
            _ => None,
        }
    }

    /// How long an acknowledgment may wait.
    pub(crate) fn ack_delay(&self) -> Duration {
        match &self.policy {
            Policy::Mosh => self.core.timing.ack_delay,
            Policy::Adaptive(adaptive) => adaptive.redundancy.ack_delay(),
        }
    }

    /// The peer holds this state. Whether it is news: one of those sent, and not known to be held.
    pub(crate) fn acknowledge(&mut self, now: Time, num: StateNum) -> bool {
        match &mut self.policy {
            Policy::Mosh => self.core.acknowledge(num, |_, _| ()),
            Policy::Adaptive(adaptive) => adaptive.acknowledge(now, &mut self.core, num),
        }
    }

    /// The object is final: announce it as the last, for a limited time.
    pub(crate) fn close(&mut self, now: Time) {
        self.announce_end(Some(now + self.core.timing.close_time_max));
    }

    /// The object is final: announce it as the last, until that is answered.
    pub(crate) fn close_and_wait(&mut self) {
        self.announce_end(None);
    }

    fn announce_end(&mut self, until: Option<Time>) {
        self.closing.ours.get_or_insert(Announced { until, tries: 0, unanswered: 0 });
    }

    /// The peer's object is final: acknowledge that soon. Whether this is news.
    pub(crate) fn peer_closes(&mut self, now: Time) -> bool {
        if ::core::mem::replace(&mut self.closing.peers, true) {
            return false;
        }
        if self.only_leaves() {
            // The peer waits for this alone before it can go.
            self.core.heartbeat = now;
        }
        true
    }

    /// Fills in what the sender has counted.
    pub(crate) fn count(&self, stats: &mut Stats) {
        stats.states_forgotten = self.core.history.forgotten();
        stats.collected = self.core.collected;
    }

    /// The path refused what was sent last: say it again at once, in other words if need be.
    pub(crate) fn refuse(&mut self) {
        self.core.refused = true;
        // Even if the object has not changed: the peer has to learn where we are.
        self.core.heartbeat = Time::ZERO;
    }

    /// The instruction to send now, if one is due; its `ack` is filled in by the caller.
    ///
    /// What takes more than `part` octets is told in parts where states can be parted.
    pub(crate) fn poll(
        &mut self,
        now: Time,
        path: &Path,
        part: usize,
        stats: &mut Stats,
    ) -> Option<Prepared> {
        let Sender { core, policy, closing } = self;
        // Only now, however often the object was changed: comparing costs more than changing.
        core.compare();
        match policy {
            Policy::Adaptive(adaptive) if !closing.has_begun() => {
                adaptive.poll(now, core, path, part, stats)
            }
            _ => self.poll_mosh(now, &path.rtt, stats),
        }
    }

    /// When [`poll`](Sender::poll) has something to do again.
    pub(crate) fn wake(&self, path: &Path) -> Option<Time> {
        let Sender { core, policy, closing } = self;
        if core.touched.is_some() {
            return core.touched;
        }
        match policy {
            Policy::Adaptive(adaptive) if !closing.has_begun() => adaptive.wake(core, path),
            _ if self.tries_are_used_up() => None,
            _ if self.only_leaves() => Some(core.heartbeat),
            _ => self.mosh_rules(&path.rtt).wake(core),
        }
    }

    /// Whether what this end has to say is of no use any more: the program that read what was typed is gone.
    /// Stock says it all the same.
    pub(crate) fn only_leaves(&self) -> bool {
        matches!(self.closing, Shutdown { ours: None, peers: true, .. })
            && matches!(self.policy, Policy::Adaptive(_))
            && self.core.role == Role::Client
    }

    /// When our shutdown stops waiting for an answer. `None`: it has not begun, or there is no limit.
    pub(crate) fn close_deadline(&self, rtt: &RttEstimator) -> Option<Time> {
        let deadline = self.closing.ours?.until?;
        Some(match self.tries_are_used_up() {
            // Nothing more will be said, so only an answer that is under way is worth waiting for.
            true => deadline.min(self.core.history.last().last_sent + rtt.rto()),
            false => deadline,
        })
    }

    /// The object and the versions of it that the peer may hold.
    pub(crate) fn history(&self) -> &StateHistory<L> {
        &self.core.history
    }

    /// Whether the last sent state is the object as it is.
    pub(crate) fn is_told(&self) -> bool {
        self.core.touched.is_none() && self.core.history.last().current
    }

    pub(crate) fn acked(&self) -> StateNum {
        self.core.history.first().num
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.ours.is_some()
    }

    /// Whether we have begun to shut down and wait for a limited time.
    pub(crate) fn waits_briefly(&self) -> bool {
        self.closing.ours.is_some_and(|ours| ours.until.is_some())
    }

    /// Half the round trip, within bounds (§4.1).
    pub(crate) fn send_interval(&self, rtt: &RttEstimator) -> Duration {
        self.core.send_interval(rtt)
    }

    /// What stock's rules ask for, and either end's shutdown (§4.4).
    fn poll_mosh(&mut self, now: Time, rtt: &RttEstimator, stats: &mut Stats) -> Option<Prepared> {
        if self.tries_are_used_up() {
            return None;
        }
        if self.only_leaves() {
            return self.poll_final_ack(now, stats);
        }
        let message = self.mosh_rules(rtt).poll(now, &mut self.core, stats)?;
        // Counted when it is said, not when it is due: a server without an address says nothing and
        // keeps its tries.
        if let Some(ours) = &mut self.closing.ours {
            ours.tries = ours.tries.saturating_add(1);
            ours.unanswered = ours.unanswered.saturating_add(1);
        }
        Some(message.into())
    }

    /// That the peer's last state has come, and nothing else, each time after twice as long.
    fn poll_final_ack(&mut self, now: Time, stats: &mut Stats) -> Option<Prepared> {
        let Sender { core, closing, .. } = self;
        // Stock's policy has its own rules.
        let SendPolicy::Adaptive(AdaptiveTiming { copy_spacing: spacing, .. }) =
            core.timing.send_policy
        else {
            return None;
        };
        if core.heartbeat > now {
            return None;
        }
        stats.acks_sent += 1;
        core.heartbeat = now + spacing * (1 << closing.answers.min(FINAL_DOUBLINGS_MAX));
        closing.answers = closing.answers.saturating_add(1);
        Some(core.only_acknowledge())
    }

    /// How often a client acknowledges the server's shutdown after its owner was told that the session is over. Nobody
    /// acknowledges what it says then, and by a stream nothing is lost.
    pub(crate) fn late_acks(&self, path: &Path) -> u32 {
        if !self.only_leaves() || path.is_on_stream() {
            return 0;
        }
        let Timing { late_acks, late_acks_lossy, late_loss_min, .. } = self.core.timing;
        if self.core.loss >= late_loss_min { late_acks_lossy } else { late_acks }
    }

    /// Stock's rules, with the numbers and the intervals of a session or of its end.
    fn mosh_rules(&self, rtt: &RttEstimator) -> MoshRules {
        let Sender { core, policy, closing } = self;
        let last_sent = core.history.last().last_sent;
        let interval = self.interval(rtt);
        let ack_at = match closing {
            Shutdown { ours: None, peers: false, .. } => core.heartbeat_at(Rest::Never),
            // §4.4 has both wait a send interval, at most: the end that answers may hurry.
            Shutdown { peers: true, .. } => Some(last_sent + core.timing.send_interval_min),
            Shutdown { .. } => Some(last_sent + interval),
        };
        let (new, again) = match closing.ours {
            Some(_) => (Number::Shutdown, Number::Shutdown),
            None => (Number::New, Number::Last),
        };
        MoshRules { ack_at, interval, timeout: policy.timeout(core, rtt), new, again }
    }

    /// The shortest time between two sends. A peer that is gone is not flooded with our goodbye; once it is heard again
    /// it is told at once.
    fn interval(&self, rtt: &RttEstimator) -> Duration {
        let Timing { close_tries_fast, rest_interval, .. } = self.core.timing;
        let interval = self.core.send_interval(rtt);
        let slow = self
            .closing
            .ours
            .map_or(0, |ours| (ours.unanswered + 1).saturating_sub(close_tries_fast));
        match slow {
            0 => interval,
            // So many times twice as long is longer than any limit.
            _ => (interval * (1 << slow.min(16))).min(rest_interval),
        }
    }

    fn tries_are_used_up(&self) -> bool {
        let tries_max = self.core.timing.close_tries_max;
        self.closing.ours.is_some_and(|ours| ours.until.is_some() && ours.tries >= tries_max)
    }
}

#[cfg(test)]
mod tests;
