//! What every policy shares: the object and its history, since when it differs from what was sent, and
//! when a sign of life is due (`mosh-protocol.md` §4.2). It must not know which policy asks.

use alloc::vec::Vec;
use core::time::Duration;

use crate::instruction::{Instruction, MESSAGE_BYTES_MAX};
use crate::recovery::rtt::{RttEstimator, ceil_ms};
use crate::rng::Rng;
use crate::sender::history::StateHistory;
use crate::state::{State, StateNum};
use crate::stats::Stats;
use crate::time::Time;
use crate::timing::Timing;
use crate::wire::{Flags, Role};

/// The object we own, and the clocks that belong to no policy.
pub(crate) struct Core<L> {
    pub role: Role,
    pub timing: Timing,
    pub history: StateHistory<L>,
    /// When the object was touched, until it has been compared with what was sent.
    pub touched: Option<Time>,
    /// When the object began to differ from the last sent state.
    gathering: Option<Time>,
    /// When an instruction goes out even if there is nothing new to say, unless the session is at rest.
    pub heartbeat: Time,
    /// When anything new was said or heard last.
    pub used: Time,
    /// The peer asks whether we are there.
    pub asked: bool,
    /// When a new state of the peer came last, or the session began.
    pub heard: Time,
    /// The last sent state was refused by the path: nothing but the first is assumed received.
    pub refused: bool,
    /// The diff is longer than an instruction may be, until something changes.
    pub too_long: bool,
    /// The share of our datagrams that is lost; without reports the share of the peer's.
    pub loss: f64,
    /// Changes that waited with others.
    pub collected: u64,
    /// What must not show by its length and is not known to have arrived.
    secret: Secret,
    /// A run of slots is on: no datagram may tell anything by its length.
    pub in_run: bool,
    collect: Duration,
    rng: Rng,
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
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Number {
    /// The next: the state is new to the peer, or its news is the acknowledgment.
    New,
    /// The last one's: it is sent again.
    Last,
    /// The one that says that no state follows.
    Shutdown,
}

/// A part of the object that must not show by the lengths of datagrams.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Secret {
    /// There is none, or the peer has it.
    None,
    /// No state holds it yet.
    Unsent,
    /// This state is the first that holds it.
    Sent(StateNum),
}

/// The longest diff that is sent: what an instruction holds beside it, and the longest chaff, fit too.
pub(crate) const DIFF_BYTES_MAX: usize =
    MESSAGE_BYTES_MAX - Instruction::ENVELOPE_BYTES_MAX - u8::MAX as usize;

impl<L: State> Core<L> {
    pub(crate) fn new(now: Time, role: Role, timing: Timing, initial: L, seed: u64) -> Core<L> {
        Core {
            role,
            collect: timing.collect(role),
            history: StateHistory::new(now, &timing, initial),
            timing,
            touched: None,
            gathering: None,
            // Both ends speak at once: the client to be found, the server once it has an address.
            heartbeat: now,
            used: now,
            asked: false,
            heard: now,
            refused: false,
            too_long: false,
            loss: 0.0,
            collected: 0,
            secret: Secret::None,
            in_run: false,
            rng: Rng::new(seed),
        }
    }

    /// Changes the object. Many changes come in one turn, so they are compared with what was sent only
    /// once, by [`compare`](Core::compare).
    pub(crate) fn update(&mut self, now: Time, change: impl FnOnce(&mut L)) {
        self.history.change(change);
        self.collected += u64::from(self.touched.is_some() || self.gathering.is_some());
        self.touched.get_or_insert(now);
        // The change may have made the diff shorter.
        self.too_long = false;
    }

    /// What the object was just changed by must not show by the lengths of datagrams.
    pub(crate) fn hide_change(&mut self) {
        self.secret = Secret::Unsent;
    }

    /// Whether a diff may hold a part of the object that must not show by its length.
    pub(crate) fn hides(&self) -> bool {
        self.in_run || self.secret != Secret::None
    }

    /// Random octets, to make an instruction longer.
    pub(crate) fn chaff(&mut self, octets: usize, out: &mut Vec<u8>) {
        out.clear();
        self.rng.fill(octets, out);
    }

    /// Finds out what a touched object means, once for all touches since the last time.
    pub(crate) fn compare(&mut self) {
        let Some(touched) = self.touched.take() else { return };
        if self.history.compare() {
            self.gathering = None;
        } else {
            self.gathering.get_or_insert(touched);
        }
    }

    /// Nothing follows from this state for the peer.
    pub(crate) fn adopt(&mut self, base: usize) {
        if self.history.adopt(base) {
            self.gathering = None;
        }
    }

    /// The peer holds this state; the states sent up to it are handed to `left`. Whether it is news.
    pub(crate) fn acknowledge(&mut self, num: StateNum, mut left: impl FnMut(Time, bool)) -> bool {
        let news = self.history.acknowledge(num, |sent| left(sent.first_sent, sent.ack_eliciting));
        if news {
            self.too_long = false;
            self.secret = match self.secret {
                Secret::Sent(held) if num >= held => Secret::None,
                secret => secret,
            };
        }
        news
    }

    /// When enough changes were gathered: a program writes a screen in many pieces.
    pub(crate) fn gathered_at(&self) -> Time {
        self.gathering.map_or(Time::ZERO, |since| since + self.collect)
    }

    /// The place of the state to start from, and the diff from it.
    pub(crate) fn choose(&mut self, now: Time, timeout: Duration) -> (usize, Vec<u8>) {
        let assumed = match self.refused {
            // What the path refused has arrived nowhere, so nothing may build on it.
            true => 0,
            false => self.history.assumed(now, timeout),
        };
        self.history.choose(assumed, self.loss, &mut self.rng)
    }

    /// Counts a diff that is too long to travel, once for each change of the object.
    pub(crate) fn keep_back(&mut self, stats: &mut Stats) {
        stats.diffs_too_long += u64::from(!self.too_long);
        self.too_long = true;
    }

    /// When it is time for a state of its own. `None`: when the peer asks.
    pub(crate) fn heartbeat_at(&self, rest: Rest) -> Option<Time> {
        // A peer at rest hears us only when it asks, so the answer must not wait.
        if self.asked {
            return Some(Time::ZERO);
        }
        let Timing { ack_interval, rest_after, rest_interval, .. } = self.timing;
        if rest == Rest::Never || self.heartbeat < self.used + rest_after {
            return Some(self.heartbeat);
        }
        match self.role {
            Role::Server => None,
            // Until it is answered it is said as often as ever.
            Role::Client if self.history.first().num != self.history.last().num => {
                Some(self.heartbeat)
            }
            Role::Client => Some(self.heartbeat + rest_interval.saturating_sub(ack_interval)),
        }
    }

    /// Half the round trip, within bounds (§4.1).
    pub(crate) fn send_interval(&self, rtt: &RttEstimator) -> Duration {
        ceil_ms(rtt.srtt() / 2).clamp(self.timing.send_interval_min, self.timing.send_interval_max)
    }

    /// The instruction with this diff from the state at `base`; it is taken to be sent.
    pub(crate) fn send(
        &mut self,
        now: Time,
        base: usize,
        diff: Vec<u8>,
        number: Number,
    ) -> Instruction {
        let old = self.history.num(base);
        let throwaway = self.history.first().num;
        let last = self.history.last().num;
        let new = match number {
            Number::New => last.next(),
            Number::Last => last,
            Number::Shutdown => StateNum::SHUTDOWN,
        };
        if new == last {
            self.history.repeat(now, last);
        } else {
            self.history.record(now, new, !diff.is_empty());
            self.heartbeat = now + self.timing.ack_interval;
        }
        self.gathering = None;
        self.refused = false;
        self.asked = false;
        if !diff.is_empty() {
            self.used = now;
            if self.secret == Secret::Unsent {
                self.secret = Secret::Sent(new);
            }
        }
        // Chaff hides the length of what is typed. Its length comes from the seeded generator, so
        // that a seed stays a run.
        let mut chaff = Vec::new();
        // Where all datagrams are of one length chaff could only make one of them longer.
        if !self.hides() {
            let chaff_bytes = self.rng.below(self.timing.chaff_bytes_max as u32 + 1);
            self.rng.fill(chaff_bytes as usize, &mut chaff);
        }
        Instruction { old, new, throwaway, diff, chaff, ..Instruction::default() }
    }

    /// The same for a version on the way to the object, from the known state.
    pub(crate) fn send_part(&mut self, now: Time, diff: Vec<u8>, version: L) -> Instruction {
        let secret = self.secret;
        let message = self.send(now, 0, diff, Number::New);
        self.history.record_part(version);
        // The part may end ahead of it.
        self.secret = secret;
        message
    }

    /// An instruction that makes a new state equal to the known one, to say that we are there.
    pub(crate) fn send_nothing(
        &mut self,
        now: Time,
        number: Number,
        stats: &mut Stats,
    ) -> Instruction {
        stats.acks_sent += 1;
        let message = self.send(now, 0, Vec::new(), number);
        self.history.record_nothing();
        message
    }

    /// What the peer holds already: it takes the acknowledgment and nothing else (§4.3).
    pub(crate) fn only_acknowledge(&self) -> Prepared {
        let known = self.history.first().num;
        let message =
            Instruction { old: known, new: known, throwaway: known, ..Instruction::default() };
        Prepared { flags: Flags { again: false, ack_only: true }, ..message.into() }
    }
}

/// Whether signs of life may become rare. They may where the peer reports what comes: elsewhere silence is
/// all that tells of a path that is gone.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Rest {
    Never,
    Allowed,
}
