//! In which phase an end sends and receives, and when it moves on (`docs/wire.md` §3). It must not know
//! what a datagram says beside its number and its phase.

use core::time::Duration;

use zeroize::Zeroize as _;

use super::header::REPORT_SPAN;
use super::layout::{CLEAR, PHASE};
use super::ratchet::{Chain, PhaseKey, TAG};
use crate::reject::Reject;
use crate::time::Time;
use crate::wire::{Exhausted, Seq};

/// How long a phase lasts before this end moves on. 120 s (WireGuard's rekey interval).
const PHASE_AGE_MAX: Duration = Duration::from_secs(120);
/// Datagrams sealed in a phase before this end moves on. 2^24 (RFC 9001 §6.6 allows 2^23 full packets;
/// ours are at most an eighth of those).
pub(super) const PHASE_DATAGRAMS_MAX: u64 = 1 << 24;
/// Datagrams sealed in a phase before the session ends, the peer not being heard all the while: 2^32
/// datagrams of 2 kB are 2^39 blocks, and an observer gains less than 2^-50 (SP 800-38D §8.3 allows as
/// many invocations).
pub(super) const PHASE_DATAGRAMS_END: u64 = 1 << 32;
/// How many of its timeouts a receive key outlives the phase after it.
const OLD_KEY_PTO: u32 = 3;
/// Where no timeout is known, and at least: reordering by a mobile network is that long.
const OLD_KEY_MIN: Duration = Duration::from_secs(1);
/// Neither is a wild estimate a reason to keep keys.
const OLD_KEY_MAX: Duration = Duration::from_secs(10);

/// Under what key an end seals.
pub(super) struct Sending {
    pub chain: Chain,
    pub key: PhaseKey,
    pub phase: u64,
    /// When the phase began; `None` until the first datagram.
    since: Option<Time>,
    /// How long a phase lasts.
    pub age_max: Duration,
    /// The first number of this phase, and whether the peer has reported one of them: then it holds the
    /// key after this one.
    pub first: u64,
    pub reported: bool,
    /// Datagrams sealed in this phase.
    pub sealed: u64,
    /// The next sequence number; `None` once all are used.
    pub next: Option<Seq>,
}

/// With what keys an end opens.
pub(super) struct Receiving {
    pub chain: Chain,
    pub key: PhaseKey,
    pub phase: u64,
    /// The key after `key`, made when it is first needed.
    pub following: PhaseKey,
    /// The key before `key`, and when it is to be forgotten.
    pub old: Option<(PhaseKey, Time)>,
    /// The lowest number opened with `key`.
    lowest: u64,
    /// Whether anything was opened with `key`.
    heard: bool,
    /// How long a key outlives its phase.
    old_life: Duration,
}

impl Sending {
    pub(super) fn new(mut chain: Chain) -> Sending {
        let key = chain.take();
        Sending {
            chain,
            key,
            phase: 0,
            since: None,
            age_max: PHASE_AGE_MAX,
            first: 0,
            reported: false,
            sealed: 0,
            next: Some(Seq::ZERO),
        }
    }

    /// The next number, in the phase that begins with it if none was sealed in it before.
    pub(super) fn take_seq(&mut self, now: Time) -> Result<Seq, Exhausted> {
        let seq = self.next.ok_or(Exhausted)?;
        if self.sealed >= PHASE_DATAGRAMS_END {
            // For good: another number under this key would weaken it for all of them.
            self.next = None;
            return Err(Exhausted);
        }
        self.since.get_or_insert(now);
        self.sealed += 1;
        self.next = if seq == Seq::MAX { None } else { Some(Seq::new(seq.get() + 1)) };
        Ok(seq)
    }

    /// One past the last number sent.
    pub(super) fn end(&self) -> u64 {
        self.next.map_or(Seq::MAX.get() + 1, Seq::get)
    }

    /// The peer has reported this number. In a long phase a report's bits may also stand for a number before
    /// the phase. Such a report says nothing about the phase.
    pub(super) fn on_report(&mut self, newest: Seq) {
        // A report's number has 24 bits.
        let is_certain = self.end().saturating_sub(self.first) < REPORT_SPAN;
        self.reported |= is_certain && newest.get() >= self.first;
    }

    /// Starts the next phase. The key of this one is wiped.
    pub(super) fn move_on(&mut self) {
        and_wipe_stack(|| self.key = self.chain.take());
        self.phase += 1;
        self.since = None;
        self.first = self.next.map_or(u64::MAX, Seq::get);
        self.reported = false;
        self.sealed = 0;
    }

    /// Whether this phase has lasted long enough.
    pub(super) fn is_worn(&self, now: Time) -> bool {
        self.sealed >= PHASE_DATAGRAMS_MAX
            || self.since.is_some_and(|since| now.since(since) >= self.age_max)
    }
}

impl Receiving {
    pub(super) fn new(mut chain: Chain) -> Receiving {
        let key = chain.take();
        let following = chain.take();
        Receiving {
            chain,
            key,
            phase: 0,
            following,
            old: None,
            lowest: u64::MAX,
            heard: false,
            old_life: OLD_KEY_MAX,
        }
    }

    /// Forgets the key before this phase's once it is too old, at this retransmission timeout.
    pub(super) fn advance(&mut self, now: Time, timeout: Duration) {
        self.old_life = (timeout * OLD_KEY_PTO).clamp(OLD_KEY_MIN, OLD_KEY_MAX);
        if self.old.as_ref().is_some_and(|(_, until)| *until <= now) {
            self.old = None;
        }
    }

    /// When it is forgotten.
    pub(super) fn wake(&self) -> Option<Time> {
        self.old.as_ref().map(|(_, until)| *until)
    }

    /// Opens with the key that the phase bit and the number ask for.
    pub(super) fn open(
        &mut self,
        now: Time,
        seq: Seq,
        clear: &[u8; CLEAR],
        text: &mut [u8],
        tag: &[u8; TAG],
    ) -> Result<(), Reject> {
        let odd = u64::from(clear[0] & PHASE);
        if self.phase & 1 == odd {
            self.key.open(seq, clear, text, tag).map_err(|_| Reject::Forged)?;
            self.lowest = self.lowest.min(seq.get());
            self.heard = true;
            return Ok(());
        }
        // Sent before anything of this phase: a straggler of the one before. Numbers only rise.
        if self.heard && seq.get() < self.lowest {
            let (old, _) = self.old.as_ref().ok_or(Reject::Forged)?;
            return old.open(seq, clear, text, tag).map_err(|_| Reject::Forged);
        }
        // The peer may have moved on. Nothing changes before the tag proves it: the phase bit alone
        // could be forged.
        self.following.open(seq, clear, text, tag).map_err(|_| Reject::Forged)?;
        and_wipe_stack(|| {
            let following = self.chain.take();
            let key = core::mem::replace(&mut self.following, following);
            let old = core::mem::replace(&mut self.key, key);
            // Datagrams of the phase before may still be under way.
            self.old = Some((old, now + self.old_life));
        });
        self.phase += 1;
        self.lowest = seq.get();
        self.heard = true;
        Ok(())
    }
}

/// Octets of the stack that making a key may use.
const STACK_BYTES: usize = 16 << 10;

/// Makes a key, and overwrites what that left on the stack. Keys are moved there, and what others leave unwritten of a
/// value that they store keeps what stood in its place.
fn and_wipe_stack(make: impl FnOnce()) {
    // Each in a frame of its own, in the same place: what was made in the caller's would stay.
    out_of_line(make);
    out_of_line(|| [0_u8; STACK_BYTES].zeroize());
}

#[inline(never)]
fn out_of_line(run: impl FnOnce()) {
    run();
}
