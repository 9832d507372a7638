//! When to send what: new states, the same once more, acknowledgments, the end (`mosh-protocol.md` §4.2,
//! §4.4; loss-policy §5). What was sent is in the books ([`Books`]). It must not know how an instruction
//! travels.

use std::time::Duration;

use crate::hurry::{Datagrams, Hurry};
use crate::instruction::{Instruction, MESSAGE_BYTES_MAX};
use crate::pacer::Again;
use crate::rng::Rng;
use crate::rtt::{Rtt, ceil_ms};
use crate::sent::Books;
use crate::state::{State, StateNum};
use crate::stats::Stats;
use crate::time::Time;
use crate::timing::{Pacing, Timing};
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
    pub fn hear_beat(&mut self) {
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
    }

    /// The object is final: announce it as the last.
    pub fn close(&mut self, now: Time) {
        self.closing.get_or_insert(Closing { since: now, tries: 0 });
    }

    /// The peer's object is final: acknowledge that soon. Whether this is news.
    pub fn peer_closes(&mut self) -> bool {
        !std::mem::replace(&mut self.peer_closing, true)
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

    fn poll_eager(&mut self, now: Time, rtt: &Rtt, part: usize, stats: &mut Stats) -> Option<Said> {
        let beat = match self.beat_at() {
            Some(at) if at <= now => Beat::Due,
            _ => Beat::Later,
        };
        let owed = self.owed_at().is_some_and(|at| at <= now);
        let data = self.data_at(rtt).is_some_and(|at| at <= now);
        if !(beat == Beat::Due || owed || data) {
            return None;
        }
        let said = match data || beat == Beat::Due {
            true => self.say(now, rtt, part, stats, beat),
            false => None,
        };
        let said = match said {
            Some(said) => said,
            None if owed => {
                stats.acks_sent += 1;
                self.only_acknowledge()
            }
            None => return None,
        };
        self.spoke(now);
        Some(said)
    }

    /// The object as it is, if the peer may not know it, or a state of its own if it is time for one.
    fn say(
        &mut self,
        now: Time,
        rtt: &Rtt,
        part: usize,
        stats: &mut Stats,
        beat: Beat,
    ) -> Option<Said> {
        let (base, diff) = self.choose(now, rtt);
        if diff.len() > part
            && let Some((version, diff)) = self.books.part(part)
        {
            return self.say_part(now, rtt, version, diff, stats, beat);
        }
        self.in_parts = false;
        stats.from_assumed += u64::from(base > 0 && !diff.is_empty());
        if diff.len() > DIFF_BYTES_MAX {
            stats.diffs_too_long += u64::from(!self.too_long);
            self.too_long = true;
            return (beat == Beat::Due).then(|| self.say_nothing(now, stats).into());
        }
        if diff.is_empty() {
            self.adopt(base);
        }
        if self.books.last().same && beat == Beat::Later {
            if !self.books.is_pending() {
                return None;
            }
            return Some(self.say_again(now, rtt, base, diff, stats));
        }
        if diff.is_empty() {
            stats.acks_sent += 1;
        } else {
            stats.states_sent += 1;
            let eager = self.eager.as_mut().expect("only an eager sender says");
            eager.pacer.sent_new(now);
        }
        Some(self.send(now, base, diff, Number::New).into())
    }

    /// This version on the way to the object, unless something else must be acknowledged before: a part
    /// starts from what the peer is known to hold, and holds all that was said since.
    fn say_part(
        &mut self,
        now: Time,
        rtt: &Rtt,
        version: L,
        diff: Vec<u8>,
        stats: &mut Stats,
        beat: Beat,
    ) -> Option<Said> {
        let follows = std::mem::replace(&mut self.in_parts, true);
        let eager = self.eager.as_mut().expect("only an eager sender says");
        if self.books.awaits() {
            if beat == Beat::Later && eager.pacer.again_at(rtt) > now {
                return None;
            }
            self.next_ack = now + self.timing.ack_interval;
            let diff = self.books.last_again();
            return Some(self.say_again(now, rtt, 0, diff, stats));
        }
        stats.states_sent += 1;
        eager.pacer.sent_new(now);
        let message = self.send(now, 0, diff, Number::New);
        self.books.record_part(version);
        Some(Said { follows, ..message.into() })
    }

    /// What was said last once more, from the state at this place.
    fn say_again(
        &mut self,
        now: Time,
        rtt: &Rtt,
        base: usize,
        diff: Vec<u8>,
        stats: &mut Stats,
    ) -> Said {
        stats.resends += 1;
        let eager = self.eager.as_mut().expect("only an eager sender says");
        let again = eager.pacer.sent_again(now, rtt) == Again::Overdue;
        let flags = Flags { again, ack_only: false };
        Said { flags, ..self.send(now, base, diff, Number::Last).into() }
    }

    /// What the peer holds already: it takes the acknowledgment and nothing else (§4.3).
    fn only_acknowledge(&self) -> Said {
        let known = self.books.first().num;
        let message =
            Instruction { old: known, new: known, throwaway: known, ..Instruction::default() };
        Said { flags: Flags { again: false, ack_only: true }, ..message.into() }
    }

    /// Whether the eager policy decides. The end of a session is the same for all.
    fn hurries(&self) -> bool {
        self.eager.is_some() && self.closing.is_none() && !self.peer_closing
    }

    /// Whatever goes out carries the acknowledgment.
    fn spoke(&mut self, now: Time) {
        if let Some(eager) = &mut self.eager {
            eager.spoke(now);
        }
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

    fn tries_are_used_up(&self) -> bool {
        self.closing.is_some_and(|closing| closing.tries >= self.timing.close_tries_max)
    }

    fn ack_at(&self, rtt: &Rtt) -> Option<Time> {
        // §4.4 has both wait a send interval, at most: who says goodbye may hurry.
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
        if self.too_long {
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

    fn eager_data_at(&self, eager: &Hurry, rtt: &Rtt) -> Option<Time> {
        if self.books.last().same {
            return self.books.is_pending().then(|| eager.pacer.again_at(rtt));
        }
        if self.in_parts && self.books.awaits() {
            return Some(eager.pacer.again_at(rtt));
        }
        let gathered = self.gathering.map_or(Time::ZERO, |since| since + self.collect);
        Some(gathered.max(eager.new_at(rtt)))
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
    /// It is a part that follows another: there is a window by now, and it is heeded from the first
    /// datagram on.
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
mod tests {
    use super::*;
    use crate::state::toy::Toy;
    use crate::timing::{Ratio, Reference};

    fn ms(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    /// A path with this round trip, and no variation worth the name.
    fn path(rtt_ms: u64) -> Rtt {
        let mut rtt = Rtt::new(&Timing::MOSH);
        (0..200).for_each(|_| rtt.sample(Duration::from_millis(rtt_ms)));
        rtt
    }

    /// Octets in a part.
    const PART: usize = 50_000;

    struct Bench {
        sender: Sender<Toy>,
        rtt: Rtt,
        stats: Stats,
    }

    impl Bench {
        fn new(rtt_ms: u64, reference: Reference) -> Bench {
            let timing = Timing { reference, ..Timing::MOSH };
            let sender = Sender::new(ms(0), Role::Client, timing, Toy::default(), 5);
            Bench { sender, rtt: path(rtt_ms), stats: Stats::default() }
        }

        /// What is sent at this moment: old, new, octets of the diff.
        fn poll(&mut self, at_ms: u64) -> Option<(u64, u64, usize)> {
            let Said { message, .. } =
                self.sender.poll(ms(at_ms), &self.rtt, PART, &mut self.stats)?;
            assert_eq!(message.throwaway, self.sender.acked());
            Some((message.old.get(), message.new.get(), message.diff.len()))
        }

        fn acknowledge(&mut self, num: u64) {
            self.sender.acknowledge(ms(0), &self.rtt, num.into());
        }

        fn owe_ack(&mut self, at_ms: u64) {
            self.sender.owe_ack(ms(at_ms), &self.rtt, Datagrams::One);
        }

        fn push(&mut self, at_ms: u64, bytes: usize) {
            self.sender.update(ms(at_ms), |toy| toy.push(&"x".repeat(bytes)));
        }

        fn wake_ms(&self) -> Option<u64> {
            self.sender.wake(&self.rtt).map(Time::as_millis)
        }

        fn nums(&self) -> Vec<u64> {
            self.sender.books.nums()
        }
    }

    #[test]
    fn send_interval_is_half_the_round_trip_within_bounds() {
        let bench = Bench::new(0, Reference::Assumed);
        for (rtt_ms, interval_ms) in
            [(0, 20), (40, 20), (41, 21), (100, 50), (499, 250), (501, 250), (4000, 250)]
        {
            let interval = bench.sender.send_interval(&path(rtt_ms));
            assert_eq!(interval, Duration::from_millis(interval_ms), "round trip {rtt_ms} ms");
        }
    }

    #[test]
    fn the_walk_stops_at_the_first_expired_state() {
        // At a round trip of 100 ms a state is assumed received for 200 ms.
        let mut bench = Bench::new(100, Reference::Assumed);
        bench.push(0, 1);
        assert_eq!(bench.poll(0), Some((0, 1, 1)));
        bench.push(100, 1);
        assert_eq!(bench.poll(101), Some((1, 2, 1)));
        bench.push(198, 1);
        assert_eq!(bench.poll(199), Some((2, 3, 1)), "all are assumed");
        bench.push(260, 1);
        assert_eq!(bench.poll(261), Some((0, 4, 4)), "state 1 has expired, so none is");
        // Once state 2 is known, state 3 is assumed again; states 1 and 2 are not asked about.
        bench.acknowledge(2);
        bench.push(330, 1);
        assert_eq!(bench.poll(331), Some((4, 5, 1)));
        assert_eq!(bench.nums(), [2, 3, 4, 5]);
    }

    #[test]
    fn expired_data_is_sent_again_at_the_send_interval() {
        let mut bench = Bench::new(100, Reference::Assumed);
        bench.push(0, 1);
        bench.poll(0);
        let mut times = Vec::new();
        while let Some(at_ms) = bench.wake_ms().filter(|&at_ms| at_ms < 400) {
            assert_eq!(bench.poll(at_ms), Some((0, 1, 1)));
            times.push(at_ms);
        }
        // The time of a resent state is refreshed: it is assumed received again.
        assert_eq!(times, [200]);
        // An empty state that nobody had to acknowledge is not: what follows it is sent again and
        // again, as captured from stock.
        bench.acknowledge(1);
        assert_eq!(bench.poll(3200), Some((1, 2, 0)));
        bench.push(3500, 1);
        assert_eq!(bench.poll(3500), None);
        let mut times = Vec::new();
        while let Some(at_ms) = bench.wake_ms().filter(|&at_ms| at_ms < 3700) {
            assert_eq!(bench.poll(at_ms), Some((1, 3, 1)));
            times.push(at_ms);
        }
        assert_eq!(times, [3501, 3551, 3601, 3651]);
    }

    #[test]
    fn references_choose_the_base() {
        let half = Reference::Mixed { known: Ratio::new(1, 2) };
        for (reference, known_of_100) in
            [(Reference::Known, 100..=100), (Reference::Assumed, 0..=0), (half, 35..=65)]
        {
            let mut known = 0;
            let mut bench = Bench::new(100, reference);
            for turn in 0..100 {
                let at_ms = turn * 1000;
                bench.push(at_ms, 300);
                bench.poll(at_ms + 1);
                bench.push(at_ms + 2, 300);
                let (old, new, _) = bench.poll(at_ms + 60).unwrap();
                known += usize::from(old == bench.sender.acked().get());
                bench.acknowledge(new);
            }
            assert!(known_of_100.contains(&known), "{reference:?}: {known}");
        }
    }

    #[test]
    fn one_from_the_middle_goes() {
        let mut bench = Bench::new(100, Reference::Known);
        for turn in 0..34 {
            bench.push(turn * 100, 1);
            bench.poll(turn * 100 + 1);
        }
        // The 16th from the end of 33, three times.
        let expect: Vec<u64> = (0..=34).filter(|num| ![17, 18, 19].contains(num)).collect();
        assert_eq!(bench.nums(), expect);
        // Only states still held can be acknowledged.
        for (ack, first) in [(18, 0), (99, 0), (16, 16), (3, 16), (34, 34)] {
            bench.acknowledge(ack);
            assert_eq!(bench.sender.acked().get(), first, "after an ack of {ack}");
        }
        assert_eq!(bench.sender.current().unsubtracted(), "", "what is acknowledged is forgotten");
    }

    #[test]
    fn acknowledgments_are_owed_once() {
        let mut bench = Bench::new(100, Reference::Assumed);
        assert_eq!(bench.poll(0), Some((0, 1, 0)));
        assert_eq!(bench.wake_ms(), Some(3000));
        bench.owe_ack(500);
        bench.owe_ack(550);
        assert_eq!(bench.wake_ms(), Some(600), "the first is not put off by the second");
        assert_eq!(bench.poll(599), None);
        assert_eq!(bench.poll(600), Some((0, 2, 0)));
        assert_eq!(bench.wake_ms(), Some(3600));
        assert_eq!((bench.stats.acks_sent, bench.stats.resends), (2, 0));
    }

    #[test]
    fn unanswered_data_is_left_to_the_keepalives_after_10_s() {
        let mut bench = Bench::new(100, Reference::Assumed);
        bench.sender.hear(ms(2000));
        bench.push(11_000, 1);
        assert_eq!(bench.poll(11_001), Some((0, 1, 1)));
        let mut times = Vec::new();
        while let Some(at_ms) = bench.wake_ms().filter(|&at_ms| at_ms < 20_000) {
            assert_eq!(bench.poll(at_ms), Some((0, 1, 1)));
            times.push(at_ms);
        }
        assert_eq!(times, [11_201, 11_401, 11_601, 11_801, 14_801, 17_801]);
    }

    #[test]
    fn repairs_leave_the_clocks_of_later_states_alone() {
        let mut bench = rove(100);
        bench.push(100, 5000);
        assert_eq!(bench.poll(110).map(|said| said.1), Some(1));
        bench.push(200, 1);
        assert_eq!(bench.poll(250).map(|said| said.1), Some(2));
        let wake = bench.wake_ms();
        let repair = |bench: &mut Bench, num: u64, at: u64| {
            let Bench { sender, rtt, .. } = bench;
            sender.sent_datagram(ms(at), Seq::new(at), num.into(), 1000, rtt);
            sender.said_more(ms(at), num.into());
        };
        repair(&mut bench, 1, 260);
        assert_eq!(bench.wake_ms(), wake, "state 2 is awaited as before");
        assert_eq!(bench.sender.books.oldest().unwrap().at, ms(260));
        assert_eq!(bench.sender.books.last().at, ms(250));
        repair(&mut bench, 2, 261);
        assert!(bench.wake_ms() > wake);
        assert_eq!(bench.sender.books.last().at, ms(261));
    }

    fn rove(rtt_ms: u64) -> Bench {
        let sender = Sender::new(ms(0), Role::Client, Timing::ROVE, Toy::default(), 5);
        Bench { sender, rtt: path(rtt_ms), stats: Stats::default() }
    }

    #[test]
    fn what_is_long_is_told_in_parts() {
        let mut bench = rove(100);
        bench.push(100, 2 * PART + 10);
        assert_eq!(bench.poll(110), Some((0, 1, PART)));
        // The next part starts from this one, so it waits for the peer; what is typed meanwhile comes after.
        bench.push(120, 1);
        assert_eq!(bench.poll(130), None);
        let again_at = bench.wake_ms().unwrap();
        assert!((210..400).contains(&again_at), "{again_at}");
        assert_eq!(bench.poll(again_at), Some((0, 1, PART)), "as it was");
        bench.acknowledge(1);
        assert_eq!(bench.poll(500), Some((1, 2, PART)));
        // Another network: nothing is told that takes back what the peer may hold.
        bench.sender.refuse();
        assert_eq!(bench.poll(510), Some((1, 2, PART)));
        bench.acknowledge(2);
        assert_eq!(bench.poll(700), Some((2, 3, 11)));
        bench.acknowledge(3);
        assert_eq!(bench.sender.current().unsubtracted(), "");
    }

    #[test]
    fn parts_wait_for_what_was_said_before() {
        let mut bench = rove(100);
        bench.push(100, 1);
        assert_eq!(bench.poll(110), Some((0, 1, 1)));
        bench.push(130, PART + 1);
        assert_eq!(bench.poll(150), None);
        bench.acknowledge(1);
        assert_eq!(bench.poll(211), Some((1, 2, PART)), "no more than a part");
        bench.push(230, 3 * PART);
        bench.poll(250);
        bench.sender.close(ms(260));
        assert_eq!(bench.poll(350), Some((2, u64::MAX, 3 * PART + 1)), "the end is told whole");
    }

    #[test]
    fn closing_hurries_both_ends() {
        let mut bench = Bench::new(100, Reference::Assumed);
        bench.poll(0);
        assert!(bench.sender.peer_closes());
        assert!(!bench.sender.peer_closes(), "no news");
        assert_eq!(bench.wake_ms(), Some(20), "the shortest interval after the last send");

        let mut bench = Bench::new(100, Reference::Assumed);
        bench.push(0, 1);
        bench.poll(0);
        bench.sender.close(ms(10));
        let tries: Vec<_> = (1..=17).map(|turn| bench.poll(turn * 50)).collect();
        let last = u64::MAX;
        // While state 1 is assumed received the last state follows from it; then from state 0. The last
        // state itself is no base, however recent.
        assert_eq!(
            tries[..5],
            [(1, last, 0), (1, last, 0), (1, last, 0), (0, last, 1), (0, last, 1)].map(Some)
        );
        assert_eq!(tries[15..], [Some((0, last, 1)), None]);
        assert_eq!(bench.wake_ms(), None);
        // The last try was at 800 ms; its answer is awaited for one more timeout.
        assert_eq!(bench.sender.close_deadline(&bench.rtt), Some(ms(900)));
    }
}
