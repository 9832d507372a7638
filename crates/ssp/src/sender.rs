//! When to send what: new states, the same once more, acknowledgments, the end (`mosh-protocol.md` §4.2,
//! §4.4; loss-policy §5). What was sent is in the books ([`Books`]). It must not know how an instruction
//! travels.

pub(crate) mod adaptive;
pub(crate) mod history;
mod prepare;
pub(crate) mod redundancy;
pub(crate) mod transfer;

use std::time::Duration;

use crate::instruction::{Instruction, MESSAGE_BYTES_MAX};
use crate::recovery::rtt::{Rtt, ceil_ms};
use crate::rng::Rng;
use crate::sender::adaptive::{Datagrams, Hurry};
use crate::sender::history::Books;
use crate::state::{State, StateNum};
use crate::stats::Stats;
use crate::time::Time;
use crate::timing::{Acks, Pacing, Timing};
use crate::wire::{Flags, Report, Role, Seq};

/// The object we own and the clocks of sending it.
pub(crate) struct Sender<L> {
    role: Role,
    timing: Timing,
    collect: Duration,
    books: Books<L>,
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
    /// The clocks of the eager policy; `None` is stock's.
    eager: Option<Hurry>,
    rng: Rng,
}

/// Whether it is time for a state of its own, though there is nothing new to say.
#[derive(Clone, Copy, PartialEq)]
enum Beat {
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
        let eager = match &timing.pacing {
            Pacing::Stock => None,
            Pacing::Eager(policy) => Some(Hurry::new(now, policy.clone())),
        };
        Sender {
            role,
            collect: timing.collect(role),
            books: Books::new(now, &timing, initial),
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
            eager,
            rng: Rng::new(seed),
        }
    }

    /// Changes the object; what that means for sending is found out at the next `poll`.
    pub fn update(&mut self, now: Time, change: impl FnOnce(&mut L)) {
        if self.closing.is_none() {
            self.books.change(change);
            self.touched.get_or_insert(now);
            self.too_long = false;
        }
    }

    /// The peer's newest state has come: it is there.
    pub fn hear(&mut self, now: Time) {
        self.heard = now;
    }

    /// An authentic datagram came; `loss` is the share of the peer's that did not.
    pub fn hear_datagram(&mut self, now: Time, rtt: &Rtt, loss: f64, report: Option<&Report>) {
        self.loss = report.map_or(loss, |report| f64::from(report.loss) / 256.0);
        if let Some(eager) = &mut self.eager {
            eager.hear(now, rtt, loss, report);
        }
    }

    /// A datagram with (a part of) this state went out: of the last, or of one before it that is repaired,
    /// which therefore has a diff.
    pub fn sent_datagram(&mut self, now: Time, seq: Seq, num: StateNum, bytes: usize, rtt: &Rtt) {
        let Some(eager) = &mut self.eager else { return };
        let last = self.books.last();
        let is_last = num == last.num;
        if is_last && !last.asks {
            return;
        }
        eager.sent(now, seq, num, bytes, rtt);
        if is_last {
            eager.pacer.carried();
        }
    }

    /// The share of our datagrams that is lost, if parity is of use.
    pub fn parity_loss(&self) -> Option<f64> {
        self.eager.as_ref().and_then(|eager| eager.pacer.parity_loss())
    }

    /// This state takes several datagrams, of which one goes out now: its answer is due after that. If it
    /// is not the last, those after it keep their own clocks.
    pub fn said_more(&mut self, now: Time, num: StateNum) {
        let Some(eager) = &mut self.eager else { return };
        self.books.repeat(now, num);
        if num == self.books.last().num {
            eager.pacer.said_more(now);
            self.next_ack = now + self.timing.ack_interval;
        }
    }

    /// Whether there is a window, and the peer's reports are asked for.
    pub fn paces(&self) -> bool {
        self.eager.is_some()
    }

    /// When another datagram of an instruction may go out after one at `last`: when there is room for it.
    pub fn room_at(&self, last: Time, rtt: &Rtt) -> Time {
        self.eager.as_ref().map_or(last, |eager| eager.room_at(last, rtt))
    }

    /// The path is another now.
    pub fn moved(&mut self, now: Time) {
        if let Some(eager) = &mut self.eager {
            eager.window.reset(now);
        }
    }

    /// The peer says that it is there. A server that is at rest says so too, at once, and at no other time.
    pub fn hear_beat(&mut self, now: Time) {
        if self.acknowledges_with_states()
            && let Some(eager) = &mut self.eager
        {
            eager.owe_beat(now);
        }
        self.asked = self.role == Role::Server && self.beat_at().is_none();
    }

    /// The peer's newest state came with a diff: an acknowledgment is owed.
    pub fn owe_ack(&mut self, now: Time, rtt: &Rtt, datagrams: Datagrams) {
        self.used = now;
        match &mut self.eager {
            Some(eager) => eager.owe_ack(now, rtt, datagrams),
            None => self.next_ack = self.next_ack.min(now + self.timing.ack_delay),
        }
    }

    /// A piece of an instruction came, and others are missing: the peer is to learn soon which.
    pub fn owe_report(&mut self, now: Time, rtt: &Rtt) {
        if let Some(eager) = &mut self.eager {
            eager.owe_report(now, rtt);
        }
    }

    /// What goes out now does not acknowledge what came last.
    pub fn owe_at_once(&mut self, now: Time) {
        if let Some(eager) = &mut self.eager {
            eager.owe_at_once(now);
        }
    }

    /// The acknowledgment that is due, while nothing else may be said.
    pub fn poll_owed(&mut self, now: Time, stats: &mut Stats) -> Option<Said> {
        self.owed_at().filter(|at| *at <= now)?;
        stats.acks_sent += 1;
        self.spoke(now);
        Some(self.only_acknowledge())
    }

    /// When one is due.
    pub fn owed_at(&self) -> Option<Time> {
        self.eager.as_ref().and_then(Hurry::owed).filter(|_| self.hurries())
    }

    /// The peer's newest state came once more. Said again because no answer came, it is answered at once;
    /// so is one that comes long after the answer, where flags do not travel.
    pub fn repeated(&mut self, now: Time, rtt: &Rtt, flags: Flags) {
        if let Some(eager) = &mut self.eager {
            eager.repeated(now, rtt, flags);
        }
    }

    /// How long an acknowledgment may wait.
    pub fn ack_delay(&self) -> Duration {
        self.eager.as_ref().map_or(self.timing.ack_delay, |eager| eager.pacer.ack_delay())
    }

    /// The peer holds this state. Ignored unless it is one of those sent.
    pub fn acknowledge(&mut self, now: Time, rtt: &Rtt, num: StateNum) {
        let Sender { books, eager, .. } = self;
        let news = books.acknowledge(num, |sent| {
            if let Some(eager) = eager.as_mut().filter(|_| sent.asks) {
                eager.pacer.acknowledged(now.since(sent.born));
            }
        });
        if !news {
            return;
        }
        self.too_long = false;
        let Some(eager) = &mut self.eager else { return };
        eager.pacer.answered();
        eager.window.acknowledged(now, rtt, num);
        if !self.books.is_pending() {
            eager.pacer.settled();
        }
        // What is not known any more may be no more than a part, though something else is awaited.
        self.in_parts &= !self.books.awaits();
    }

    /// The object is final: announce it as the last.
    pub fn close(&mut self, now: Time) {
        self.closing.get_or_insert(Closing { since: now, tries: 0 });
    }

    /// The peer's object is final: acknowledge that soon. Whether this is news.
    pub fn peer_closes(&mut self, now: Time) -> bool {
        let news = !std::mem::replace(&mut self.peer_closing, true);
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
    pub fn poll(&mut self, now: Time, rtt: &Rtt, part: usize, stats: &mut Stats) -> Option<Said> {
        self.compare();
        if self.tries_are_used_up() {
            return None;
        }
        if self.hurries() {
            return self.poll_eager(now, rtt, part, stats);
        }
        if self.only_leaves() {
            return self.poll_goodbye(now, stats);
        }
        let message = self.poll_stock(now, rtt, stats)?;
        self.spoke(now);
        Some(message.into())
    }

    fn poll_stock(&mut self, now: Time, rtt: &Rtt, stats: &mut Stats) -> Option<Instruction> {
        let ack_due = self.ack_at(rtt).is_some_and(|at| at <= now);
        if !ack_due && self.data_at(rtt).is_none_or(|at| at > now) {
            return None;
        }

        let (base, diff) = self.choose(now, rtt);
        stats.from_assumed += u64::from(base > 0 && !diff.is_empty());
        if diff.len() > DIFF_BYTES_MAX {
            stats.diffs_too_long += u64::from(!self.too_long);
            self.too_long = true;
            return ack_due.then(|| self.say_nothing(now, stats));
        }
        if diff.is_empty() {
            self.adopt(base);
        }
        if diff.is_empty() && self.books.last().same && self.data_at(rtt).is_none_or(|at| at > now)
        {
            if !ack_due {
                return None;
            }
            stats.acks_sent += 1;
            return Some(self.send(now, base, diff, Number::New));
        }
        if self.books.last().same {
            stats.resends += 1;
            return Some(self.send(now, base, diff, Number::Last));
        }
        stats.states_sent += 1;
        Some(self.send(now, base, diff, Number::New))
    }

    /// Whether the eager policy decides. The end of a session is the same for all.
    fn hurries(&self) -> bool {
        self.eager.is_some() && self.closing.is_none() && !self.peer_closing
    }

    /// Whether what this end has to say is of no use any more: the program that read what was typed is gone.
    /// Stock says it all the same.
    pub fn only_leaves(&self) -> bool {
        self.peer_closing
            && self.closing.is_none()
            && self.eager.is_some()
            && self.role == Role::Client
    }

    /// When [`poll`](Sender::poll) has something to do again.
    pub fn wake(&self, rtt: &Rtt) -> Option<Time> {
        if self.touched.is_some() {
            return self.touched;
        }
        if self.tries_are_used_up() {
            return None;
        }
        let ack = self.ack_at(rtt);
        self.data_at(rtt).into_iter().chain(self.owed_at()).chain(ack).min()
    }

    /// When our shutdown stops waiting for an answer.
    pub fn close_deadline(&self, rtt: &Rtt) -> Option<Time> {
        let closing = self.closing?;
        let patience = closing.since + self.timing.close_time_max;
        Some(match self.tries_are_used_up() {
            true => patience.min(self.books.last().at + rtt.rto()),
            false => patience,
        })
    }

    pub fn current(&self) -> &L {
        self.books.current()
    }

    pub fn last_num(&self) -> StateNum {
        self.books.last().num
    }

    /// Whether the last sent state is the object as it is.
    pub fn is_told(&self) -> bool {
        self.touched.is_none() && self.books.last().same
    }

    pub fn acked(&self) -> StateNum {
        self.books.first().num
    }

    pub fn acked_sent_at(&self) -> Time {
        self.books.first().at
    }

    /// How many states are held.
    pub fn held(&self) -> usize {
        self.books.held()
    }

    pub fn is_closing(&self) -> bool {
        self.closing.is_some()
    }

    /// Half the round trip, within bounds (§4.1).
    pub fn send_interval(&self, rtt: &Rtt) -> Duration {
        ceil_ms(rtt.srtt() / 2).clamp(self.timing.send_interval_min, self.timing.send_interval_max)
    }

    /// Finds out what a touched object means, once for all touches since the last time.
    fn compare(&mut self) {
        let Some(touched) = self.touched.take() else { return };
        if self.books.compare() {
            self.gathering = None;
        } else {
            self.gathering.get_or_insert(touched);
        }
    }

    /// Nothing follows from this state for the peer.
    fn adopt(&mut self, base: usize) {
        if self.books.adopt(base) {
            self.gathering = None;
        }
    }

    fn acknowledges_with_states(&self) -> bool {
        let Pacing::Eager(policy) = &self.timing.pacing else { return false };
        self.role == Role::Client && policy.client_acks == Acks::EmptyState
    }

    fn tries_are_used_up(&self) -> bool {
        self.closing.is_some_and(|closing| closing.tries >= self.timing.close_tries_max)
    }

    fn ack_at(&self, rtt: &Rtt) -> Option<Time> {
        // §4.4 has both wait a send interval, at most: who says goodbye may hurry.
        if self.only_leaves() {
            return Some(self.next_ack);
        }
        if self.peer_closing {
            return Some(self.books.last().at + self.timing.send_interval_min);
        }
        if self.closing.is_some() {
            return Some(self.books.last().at + self.send_interval(rtt));
        }
        self.beat_at()
    }

    /// When it is time for a state of its own. `None`: when the peer asks.
    fn beat_at(&self) -> Option<Time> {
        if self.asked {
            return Some(Time::ZERO);
        }
        let Timing { ack_interval, rest_after, rest_interval, .. } = self.timing;
        let may_rest = self.eager.as_ref().is_some_and(|eager| eager.pacer.is_reported());
        if !may_rest || self.next_ack < self.used + rest_after {
            return Some(self.next_ack);
        }
        match self.role {
            Role::Server => None,
            // Until it is answered it is said as often as ever.
            Role::Client if self.books.first().num != self.books.last().num => Some(self.next_ack),
            Role::Client => Some(self.next_ack + rest_interval.saturating_sub(ack_interval)),
        }
    }

    /// When the object itself is a reason to send (§4.2, rule 2), asked as of any later moment: the
    /// assumed state falls back to the first when the oldest unacknowledged one has expired, and no
    /// condition holds again once it has ceased.
    fn data_at(&self, rtt: &Rtt) -> Option<Time> {
        if self.too_long || self.only_leaves() {
            return None;
        }
        if let Some(eager) = self.eager.as_ref().filter(|_| self.hurries()) {
            return self.eager_data_at(eager, rtt);
        }
        let frame = self.books.last().at + self.send_interval(rtt);
        let gathered = self.gathering.map_or(Time::ZERO, |since| since + self.collect);
        if !self.books.last().same {
            return Some(frame.max(gathered));
        }
        let patience = self.patience(rtt);
        let retry = if !self.books.first().same {
            let oldest = self.books.oldest().expect("the first is not the last, which is the same");
            frame.max(gathered).max(oldest.at + patience)
        } else if self.books.is_pending() {
            // The object has changed back. Stock leaves a peer that holds the state between with it
            // until the next keepalive.
            self.books.last().at + patience
        } else {
            return None;
        };
        (retry.since(self.heard) < self.timing.active_retry).then_some(retry)
    }

    /// How long a sent state is assumed received without an acknowledgment.
    fn patience(&self, rtt: &Rtt) -> Duration {
        if let Some(eager) = &self.eager {
            return eager.pacer.timeout(rtt);
        }
        rtt.rto() + self.timing.ack_delay
    }

    /// The place of the state to start from, and the diff from it.
    fn choose(&mut self, now: Time, rtt: &Rtt) -> (usize, Vec<u8>) {
        let assumed = match self.refused {
            true => 0,
            false => self.books.assumed(now, self.patience(rtt)),
        };
        self.books.choose(assumed, self.loss, &mut self.rng)
    }

    /// An instruction that makes a new state equal to the known one, to say that we are there.
    fn say_nothing(&mut self, now: Time, stats: &mut Stats) -> Instruction {
        stats.acks_sent += 1;
        let message = self.send(now, 0, Vec::new(), Number::New);
        self.books.record_nothing();
        message
    }

    fn send(&mut self, now: Time, base: usize, diff: Vec<u8>, number: Number) -> Instruction {
        let old = self.books.num(base);
        let throwaway = self.books.first().num;
        let last = self.books.last().num;
        let new = match (&mut self.closing, number) {
            (Some(closing), _) => {
                closing.tries += 1;
                StateNum::SHUTDOWN
            }
            (None, Number::New) => last.next(),
            (None, Number::Last) => last,
        };
        if new == last {
            self.books.repeat(now, last);
        } else {
            self.books.record(now, new, !diff.is_empty());
        }
        if new != last || self.eager.is_none() {
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
pub(crate) struct Said {
    /// Its `ack` is filled in by the endpoint.
    pub message: Instruction,
    pub flags: Flags,
    /// It is a part before which another, or what was said before, was awaited: there is a window by now, and
    /// it is heeded from the first datagram on.
    pub follows: bool,
}

impl From<Instruction> for Said {
    fn from(message: Instruction) -> Said {
        Said { message, flags: Flags::default(), follows: false }
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
