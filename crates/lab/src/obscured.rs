//! Checks at a simulated client what a listener must not learn: while a run of slots is on, each slot has one datagram, all
//! of one length, and keys of a hidden line that ended by itself are never sent.
//!
//! It sees when datagrams leave and how long they are, and how many octets the client keeps. It must not know the grid.

use std::time::Duration;

use rove_session::Client;
use rove_ssp::{Remote, Session as _, Time};

/// What became of slots and hidden lines at one client.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Obscured {
    /// Runs that began.
    pub runs: u64,
    /// Datagrams that left in slots.
    pub slots: u64,
    /// Hidden lines that were sent with what ended them.
    pub lines_sent: u64,
    /// Hidden lines that ended by themselves while keys were held.
    pub lines_lost: u64,
}

/// A client as a listener sees it, and what it holds.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    /// The time between two slots, and how late the machine's timers are at most. `None`: there are none.
    slots: Option<(Duration, Duration)>,
    was_in_run: bool,
    /// The first departure in a run, to which all others are compared.
    reference: Option<Time>,
    /// The earliest and the latest departure within the slot, in µs from the reference.
    spread: (i64, i64),
    /// The last departure in a run, and its octets.
    last: Option<(Time, usize)>,
    last_turn: Time,
    /// It had no turn for longer than a slot, in which it sent nothing although a run was on.
    has_slept: bool,
    held: usize,
    typed: u64,
    seen: Obscured,
}

impl Watch {
    /// Of a client with slots so far apart, if it has any, on a machine whose timers are at most so late.
    pub(crate) fn new(slot: Option<Duration>, lateness: Duration) -> Watch {
        Watch {
            slots: slot.map(|slot| (slot, lateness)),
            was_in_run: false,
            reference: None,
            spread: (0, 0),
            last: None,
            last_turn: Time::ZERO,
            has_slept: false,
            held: 0,
            typed: 0,
            seen: Obscured::default(),
        }
    }

    pub(crate) fn seen(&self) -> Obscured {
        self.seen
    }

    /// Datagrams were taken in. Returns how many octets were kept and are forgotten now.
    pub(crate) fn after_datagrams(&mut self, client: &Client) -> usize {
        let before = std::mem::replace(&mut self.held, client.keys_held());
        let is_lost = self.held < before && client.typed() == self.typed;
        self.typed = client.typed();
        self.seen.lines_lost += u64::from(is_lost);
        if is_lost { before - self.held } else { 0 }
    }

    /// The user has acted.
    pub(crate) fn after_keys(&mut self, now: Time, client: &Client) {
        let before = std::mem::replace(&mut self.held, client.keys_held());
        let sent = client.typed() - std::mem::replace(&mut self.typed, client.typed());
        self.seen.lines_sent += u64::from(before > 0 && sent > before as u64);
        let is_in_run = client.is_in_run(now);
        self.seen.runs += u64::from(is_in_run && !self.was_in_run);
        self.was_in_run = is_in_run;
        let idle = now.since(std::mem::replace(&mut self.last_turn, now));
        self.has_slept = self.slots.is_some_and(|(slot, lateness)| idle > slot + lateness + MS);
    }

    /// A datagram left.
    ///
    /// # Errors
    /// If it shows that somebody types, or does not.
    pub(crate) fn sent(
        &mut self,
        now: Time,
        client: &Client,
        to: Remote,
        octets: usize,
    ) -> Result<(), String> {
        let Some((slot, lateness)) =
            self.slots.filter(|_| self.was_in_run && client.is_in_run(now))
        else {
            return Ok(());
        };
        // Beside a stream UDP is tried at times that no key decides.
        if !to.is_stream() && client.peer().is_some_and(Remote::is_stream) {
            return Ok(());
        }
        self.seen.slots += 1;
        if !SLOT_BYTES.contains(&octets) && octets < LONG_BYTES {
            return Err(format!("{octets} octets in a run of slots"));
        }
        if self.has_slept {
            self.last = None;
            return Ok(());
        }
        let slot_us = micros(slot);
        let late = micros(lateness);
        let bound = late + late / DRIFT_DIVISOR + ROUNDING_US;
        let last = self.last.replace((now, octets));
        let is_soon = |at| micros(now.since(at)) < slot_us - bound;
        match last.filter(|(at, _)| is_soon(*at)) {
            Some((at, before)) if before == SLOT_BYTES[0] => {
                let gap = micros(now.since(at));
                return Err(format!("two datagrams in a slot, {gap} us apart"));
            }
            // The rest of what is longer than a datagram follows its beginning.
            Some((at, before)) => {
                self.last = Some((at, before));
                return Ok(());
            }
            None => {}
        }
        let reference = *self.reference.get_or_insert(now);
        let since = micros(now.since(reference));
        let place = (since + slot_us / 2).rem_euclid(slot_us) - slot_us / 2;
        self.spread = (self.spread.0.min(place), self.spread.1.max(place));
        if self.spread.1 - self.spread.0 > bound {
            return Err(format!("a datagram leaves {place} us beside the grid of slots"));
        }
        Ok(())
    }
}

fn micros(span: Duration) -> i64 {
    span.as_micros() as i64
}

/// The lengths of a slot's datagrams (`docs/wire.md` §9): the first if it has nothing but keys, others if the terminal has
/// said what it is. A longer one has the length of the path.
const SLOT_BYTES: [usize; 3] = [128, 256, 512];
const LONG_BYTES: usize = 512;

/// A clock that runs fast or slow shows times that are rounded, and shows that an alarm was late by a thousandth more.
const ROUNDING_US: i64 = 4;
const DRIFT_DIVISOR: i64 = 1_000;

const MS: Duration = Duration::from_millis(1);
