//! Decides when to send what: new states, retransmissions, acknowledgments, the end
//! (`mosh-protocol.md` §4.2, §4.4; loss-policy §5). [`StateHistory`] holds what was sent. It must
//! not know how an instruction travels.

pub(crate) mod adaptive;
pub(crate) mod history;
mod mosh;
mod prepare;
pub(crate) mod redundancy;
pub(crate) mod transfer;

use alloc::vec::Vec;
use core::time::Duration;

use crate::instruction::{Instruction, MESSAGE_BYTES_MAX};
use crate::recovery::rtt::{RttEstimator, ceil_ms};
use crate::rng::Rng;
use crate::sender::adaptive::{AdaptivePolicy, Fragmented};
use crate::sender::history::StateHistory;
use crate::state::{State, StateNum};
use crate::stats::Stats;
use crate::time::Time;
use crate::timing::{Acks, SendPolicy, Timing};
use crate::wire::{Flags, Report, Role, Seq};

/// The object we own and the clocks of sending it.
pub(crate) struct Sender<L> {
    role: Role,
    timing: Timing,
    collect: Duration,
    history: StateHistory<L>,
    /// When the object was touched, until it has been compared with what was sent.
    touched: Option<Time>,
    /// When the object began to differ from the last sent state.
    gathering: Option<Time>,
    /// When an instruction goes out even if there is nothing new to say, unless the session is at rest.
    next_ack: Time,
    /// When anything new was said or heard last.
    used: Time,
    /// The peer asks whether we are there.
    asked: bool,
    /// When a new state of the peer came last, or the session began.
    heard: Time,
    /// The last sent state was refused by the path: nothing but the first is assumed received.
    refused: bool,
    /// The diff is longer than an instruction may be, until something changes.
    too_long: bool,
    /// The peer is on its way to the object in parts: each starts from what it is known to hold.
    in_parts: bool,
    /// Our shutdown: since when, and how often announced.
    closing: Option<Closing>,
    peer_closing: bool,
    /// The share of our datagrams that is lost; without reports the share of the peer's.
    loss: f64,
    /// The clocks of the adaptive policy; `None` is stock's.
    adaptive: Option<AdaptivePolicy>,
    rng: Rng,
}

/// Whether it is time for a state of its own, though there is nothing new to say.
#[derive(Clone, Copy, PartialEq)]
enum Heartbeat {
    Due,
    Later,
}

#[derive(Clone, Copy)]
struct Closing {
    since: Time,
    tries: u32,
}

impl<L: State> Sender<L> {
    pub fn new(now: Time, role: Role, timing: Timing, initial: L, seed: u64) -> Sender<L> {
        let adaptive = match &timing.send_policy {
            SendPolicy::Mosh => None,
            SendPolicy::Adaptive(policy) => Some(AdaptivePolicy::new(now, policy.clone())),
        };
        Sender {
            role,
            collect: timing.collect(role),
            history: StateHistory::new(now, &timing, initial),
            timing,
            touched: None,
            gathering: None,
            // Both ends speak at once: the client to be found, the server once it has an address.
            next_ack: now,
            used: now,
            asked: false,
            heard: now,
            refused: false,
            too_long: false,
            in_parts: false,
            closing: None,
            peer_closing: false,
            loss: 0.0,
            adaptive,
            rng: Rng::new(seed),
        }
    }

    /// Changes the object; what that means for sending is found out at the next `poll`.
    pub fn update(&mut self, now: Time, change: impl FnOnce(&mut L)) {
        if self.closing.is_none() {
            self.history.change(change);
            self.touched.get_or_insert(now);
            self.too_long = false;
        }
    }

    /// The peer's newest state has come: it is there.
    pub fn on_state(&mut self, now: Time) {
        self.heard = now;
    }

    /// An authentic datagram came; `loss` is the share of the peer's that did not.
    pub fn on_datagram(
        &mut self,
        now: Time,
        rtt: &RttEstimator,
        loss: f64,
        report: Option<&Report>,
    ) {
        self.loss = report.map_or(loss, |report| f64::from(report.loss) / 256.0);
        if let Some(adaptive) = &mut self.adaptive {
            adaptive.on_report(now, rtt, loss, report);
        }
    }

    /// A datagram with (a part of) this state went out: of the last, or of one before it that is repaired,
    /// which therefore has a diff.
    pub fn on_datagram_sent(
        &mut self,
        now: Time,
        seq: Seq,
        num: StateNum,
        bytes: usize,
        rtt: &RttEstimator,
    ) {
        let Some(adaptive) = &mut self.adaptive else { return };
        let last = self.history.last();
        let is_last = num == last.num;
        if is_last && !last.ack_eliciting {
            return;
        }
        adaptive.on_sent(now, seq, num, bytes, rtt);
        if is_last {
            adaptive.redundancy.carried();
        }
    }

    /// The share of our datagrams that is lost, if parity is of use.
    pub fn parity_loss(&self) -> Option<f64> {
        self.adaptive.as_ref().and_then(|adaptive| adaptive.redundancy.parity_loss())
    }

    /// This state takes several datagrams, of which one goes out now: its answer is due after that. If it
    /// is not the last, those after it keep their own clocks.
    pub fn said_more(&mut self, now: Time, num: StateNum) {
        let Some(adaptive) = &mut self.adaptive else { return };
        self.history.repeat(now, num);
        if num == self.history.last().num {
            adaptive.redundancy.said_more(now);
            self.next_ack = now + self.timing.ack_interval;
        }
    }

    /// Whether there is a window, and the peer's reports are asked for.
    pub fn paces(&self) -> bool {
        self.adaptive.is_some()
    }

    /// When another datagram of an instruction may go out after one at `last`: when there is room for it.
    pub fn room_at(&self, last: Time, rtt: &RttEstimator) -> Time {
        self.adaptive.as_ref().map_or(last, |adaptive| adaptive.room_at(last, rtt))
    }

    /// The path is another now.
    pub fn moved(&mut self, now: Time) {
        if let Some(adaptive) = &mut self.adaptive {
            adaptive.window.reset(now);
        }
    }

    /// The peer says that it is there. A server that is at rest says so too, at once, and at no other time.
    pub fn on_empty_state(&mut self, now: Time) {
        if self.acknowledges_with_states()
            && let Some(adaptive) = &mut self.adaptive
        {
            adaptive.schedule_empty_ack(now);
        }
        self.asked = self.role == Role::Server && self.beat_at().is_none();
    }

    /// The peer's newest state came with a diff: an acknowledgment is owed.
    pub fn schedule_ack(&mut self, now: Time, rtt: &RttEstimator, datagrams: Fragmented) {
        self.used = now;
        match &mut self.adaptive {
            Some(adaptive) => adaptive.schedule_ack(now, rtt, datagrams),
            None => self.next_ack = self.next_ack.min(now + self.timing.ack_delay),
        }
    }

    /// A piece of an instruction came, and others are missing: the peer is to learn soon which.
    pub fn schedule_report(&mut self, now: Time, rtt: &RttEstimator) {
        if let Some(adaptive) = &mut self.adaptive {
            adaptive.schedule_report(now, rtt);
        }
    }

    /// What goes out now does not acknowledge what came last.
    pub fn schedule_at_once(&mut self, now: Time) {
        if let Some(adaptive) = &mut self.adaptive {
            adaptive.schedule_at_once(now);
        }
    }

    /// The acknowledgment that is due, while nothing else may be said.
    pub fn poll_scheduled(&mut self, now: Time, stats: &mut Stats) -> Option<Prepared> {
        self.scheduled_at().filter(|at| *at <= now)?;
        stats.acks_sent += 1;
        self.on_sent(now);
        Some(self.only_acknowledge())
    }

    /// When one is due.
    pub fn scheduled_at(&self) -> Option<Time> {
        self.adaptive.as_ref().and_then(AdaptivePolicy::scheduled).filter(|_| self.is_adaptive())
    }

    /// The peer sent its newest state again. If it missed our answer, we answer at once;
    /// so is one that comes long after the answer, where flags do not travel.
    pub fn repeated(&mut self, now: Time, rtt: &RttEstimator, flags: Flags) {
        if let Some(adaptive) = &mut self.adaptive {
            adaptive.repeated(now, rtt, flags);
        }
    }

    /// How long an acknowledgment may wait.
    pub fn ack_delay(&self) -> Duration {
        self.adaptive
            .as_ref()
            .map_or(self.timing.ack_delay, |adaptive| adaptive.redundancy.ack_delay())
    }

    /// The peer holds this state. Ignored unless it is one of those sent.
    pub fn acknowledge(&mut self, now: Time, rtt: &RttEstimator, num: StateNum) {
        let Sender { history, adaptive, .. } = self;
        let news = history.acknowledge(num, |sent| {
            if let Some(adaptive) = adaptive.as_mut().filter(|_| sent.ack_eliciting) {
                adaptive.redundancy.acknowledged(now.since(sent.first_sent));
            }
        });
        if !news {
            return;
        }
        self.too_long = false;
        let Some(adaptive) = &mut self.adaptive else { return };
        adaptive.redundancy.answered();
        adaptive.window.acknowledged(now, rtt, num);
        if !self.history.is_pending() {
            adaptive.redundancy.settled();
        }
        // What is not known any more may be no more than a part, though something else is awaited.
        self.in_parts &= !self.history.awaits();
    }

    /// The object is final: announce it as the last.
    pub fn close(&mut self, now: Time) {
        self.closing.get_or_insert(Closing { since: now, tries: 0 });
    }

    /// The peer's object is final: acknowledge that soon. Whether this is news.
    pub fn peer_closes(&mut self, now: Time) -> bool {
        let news = !core::mem::replace(&mut self.peer_closing, true);
        if news && self.only_leaves() {
            self.next_ack = now;
        }
        news
    }

    /// The path refused what was sent last: say it again at once, in other words if need be.
    pub fn refuse(&mut self) {
        self.refused = true;
        self.next_ack = Time::ZERO;
    }

    /// The instruction to send now, if one is due; its `ack` is filled in by the caller.
    ///
    /// What takes more than `part` octets is told in parts where states can be parted.
    pub fn poll(
        &mut self,
        now: Time,
        rtt: &RttEstimator,
        part: usize,
        stats: &mut Stats,
    ) -> Option<Prepared> {
        self.compare();
        if self.tries_are_used_up() {
            return None;
        }
        if self.is_adaptive() {
            return self.poll_adaptive(now, rtt, part, stats);
        }
        if self.only_leaves() {
            return self.poll_final_ack(now, stats);
        }
        let message = self.poll_mosh(now, rtt, stats)?;
        self.on_sent(now);
        Some(message.into())
    }

    /// Whether the adaptive policy decides. The end of a session is the same for all.
    fn is_adaptive(&self) -> bool {
        self.adaptive.is_some() && self.closing.is_none() && !self.peer_closing
    }

    /// Whether what this end has to say is of no use any more: the program that read what was typed is gone.
    /// Stock says it all the same.
    pub fn only_leaves(&self) -> bool {
        self.peer_closing
            && self.closing.is_none()
            && self.adaptive.is_some()
            && self.role == Role::Client
    }

    /// When [`poll`](Sender::poll) has something to do again.
    pub fn wake(&self, rtt: &RttEstimator) -> Option<Time> {
        if self.touched.is_some() {
            return self.touched;
        }
        if self.tries_are_used_up() {
            return None;
        }
        let ack = self.ack_at(rtt);
        self.data_at(rtt).into_iter().chain(self.scheduled_at()).chain(ack).min()
    }

    /// When our shutdown stops waiting for an answer.
    pub fn close_deadline(&self, rtt: &RttEstimator) -> Option<Time> {
        let closing = self.closing?;
        let probe_timeout = closing.since + self.timing.close_time_max;
        Some(match self.tries_are_used_up() {
            true => probe_timeout.min(self.history.last().last_sent + rtt.rto()),
            false => probe_timeout,
        })
    }

    pub fn current(&self) -> &L {
        self.history.current()
    }

    pub fn last_num(&self) -> StateNum {
        self.history.last().num
    }

    /// Whether the last sent state is the object as it is.
    pub fn is_told(&self) -> bool {
        self.touched.is_none() && self.history.last().current
    }

    pub fn acked(&self) -> StateNum {
        self.history.first().num
    }

    pub fn acked_sent_at(&self) -> Time {
        self.history.first().last_sent
    }

    /// How many states are held.
    pub fn held(&self) -> usize {
        self.history.held()
    }

    pub fn is_closing(&self) -> bool {
        self.closing.is_some()
    }

    /// Half the round trip, within bounds (§4.1).
    pub fn send_interval(&self, rtt: &RttEstimator) -> Duration {
        ceil_ms(rtt.srtt() / 2).clamp(self.timing.send_interval_min, self.timing.send_interval_max)
    }

    /// Finds out what a touched object means, once for all touches since the last time.
    fn compare(&mut self) {
        let Some(touched) = self.touched.take() else { return };
        if self.history.compare() {
            self.gathering = None;
        } else {
            self.gathering.get_or_insert(touched);
        }
    }

    /// Nothing follows from this state for the peer.
    fn adopt(&mut self, base: usize) {
        if self.history.adopt(base) {
            self.gathering = None;
        }
    }

    fn acknowledges_with_states(&self) -> bool {
        let SendPolicy::Adaptive(policy) = &self.timing.send_policy else { return false };
        self.role == Role::Client && policy.client_acks == Acks::EmptyState
    }

    fn tries_are_used_up(&self) -> bool {
        self.closing.is_some_and(|closing| closing.tries >= self.timing.close_tries_max)
    }

    fn ack_at(&self, rtt: &RttEstimator) -> Option<Time> {
        // §4.4 has both wait a send interval, at most: who says goodbye may hurry.
        if self.only_leaves() {
            return Some(self.next_ack);
        }
        if self.peer_closing {
            return Some(self.history.last().last_sent + self.timing.send_interval_min);
        }
        if self.closing.is_some() {
            return Some(self.history.last().last_sent + self.send_interval(rtt));
        }
        self.beat_at()
    }

    /// When it is time for a state of its own. `None`: when the peer asks.
    fn beat_at(&self) -> Option<Time> {
        if self.asked {
            return Some(Time::ZERO);
        }
        let Timing { ack_interval, rest_after, rest_interval, .. } = self.timing;
        let may_rest =
            self.adaptive.as_ref().is_some_and(|adaptive| adaptive.redundancy.is_reported());
        if !may_rest || self.next_ack < self.used + rest_after {
            return Some(self.next_ack);
        }
        match self.role {
            Role::Server => None,
            // Until it is answered it is said as often as ever.
            Role::Client if self.history.first().num != self.history.last().num => {
                Some(self.next_ack)
            }
            Role::Client => Some(self.next_ack + rest_interval.saturating_sub(ack_interval)),
        }
    }

    /// When the object itself is a reason to send (§4.2, rule 2), asked as of any later moment: the
    /// assumed state falls back to the first when the oldest unacknowledged one has expired, and no
    /// condition holds again once it has ceased.
    fn data_at(&self, rtt: &RttEstimator) -> Option<Time> {
        if self.too_long || self.only_leaves() {
            return None;
        }
        if let Some(adaptive) = self.adaptive.as_ref().filter(|_| self.is_adaptive()) {
            return self.adaptive_data_at(adaptive, rtt);
        }
        let frame = self.history.last().last_sent + self.send_interval(rtt);
        let gathered = self.gathering.map_or(Time::ZERO, |since| since + self.collect);
        if !self.history.last().current {
            return Some(frame.max(gathered));
        }
        let probe_timeout = self.probe_timeout(rtt);
        let retry = if !self.history.first().current {
            let oldest =
                self.history.oldest().expect("the first is not the last, which is the same");
            frame.max(gathered).max(oldest.last_sent + probe_timeout)
        } else if self.history.is_pending() {
            // The object has changed back. Stock leaves a peer that holds the state between with it
            // until the next keepalive.
            self.history.last().last_sent + probe_timeout
        } else {
            return None;
        };
        (retry.since(self.heard) < self.timing.active_retry).then_some(retry)
    }

    /// How long a sent state is assumed received without an acknowledgment.
    fn probe_timeout(&self, rtt: &RttEstimator) -> Duration {
        if let Some(adaptive) = &self.adaptive {
            return adaptive.redundancy.pto(rtt);
        }
        rtt.rto() + self.timing.ack_delay
    }

    fn send(&mut self, now: Time, base: usize, diff: Vec<u8>, number: Number) -> Instruction {
        let old = self.history.num(base);
        let throwaway = self.history.first().num;
        let last = self.history.last().num;
        let new = match (&mut self.closing, number) {
            (Some(closing), _) => {
                closing.tries += 1;
                StateNum::SHUTDOWN
            }
            (None, Number::New) => last.next(),
            (None, Number::Last) => last,
        };
        if new == last {
            self.history.repeat(now, last);
        } else {
            self.history.record(now, new, !diff.is_empty());
        }
        if new != last || self.adaptive.is_none() {
            self.next_ack = now + self.timing.ack_interval;
        }
        self.gathering = None;
        self.refused = false;
        self.asked = false;
        if !diff.is_empty() {
            self.used = now;
        }
        let mut chaff = Vec::new();
        let chaff_bytes = self.rng.below(self.timing.chaff_bytes_max as u32 + 1);
        self.rng.fill(chaff_bytes as usize, &mut chaff);
        Instruction { old, new, throwaway, diff, chaff, ..Instruction::default() }
    }
}

/// An instruction to send, and what kind of datagrams carry it.
pub(crate) struct Prepared {
    /// Its `ack` is filled in by the endpoint.
    pub message: Instruction,
    pub flags: Flags,
    /// It is a part before which another, or what was said before, was awaited: there is a window by now, and
    /// it is heeded from the first datagram on.
    pub follows: bool,
}

impl From<Instruction> for Prepared {
    fn from(message: Instruction) -> Prepared {
        Prepared { message, flags: Flags::default(), follows: false }
    }
}

/// Which number an instruction gives the state it makes.
enum Number {
    /// The next: the state is new to the peer, or its news is the acknowledgment.
    New,
    /// The last one's: it is sent again.
    Last,
}

/// The longest diff that is sent: what an instruction holds beside it, and the longest chaff, fit too.
const DIFF_BYTES_MAX: usize =
    MESSAGE_BYTES_MAX - Instruction::ENVELOPE_BYTES_MAX - u8::MAX as usize;

#[cfg(test)]
mod tests;
