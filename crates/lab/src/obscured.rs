//! Checks at a simulated client what a listener must not learn: while a run of slots is on, each slot has one datagram, or
//! two where much is lost, of a few lengths, and keys of a hidden line that ended by itself are never sent.
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
    /// Departures in slots. `None`: there are none.
    slots: Option<Departures>,
    was_in_run: bool,
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
            slots: slot.map(|slot| Departures::new(slot, lateness)),
            was_in_run: false,
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
        let slots = self.slots.as_ref();
        self.has_slept = slots.is_some_and(|slots| idle > slots.slot + slots.lateness + MS);
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
        let apart = client.slots_apart().filter(|_| self.was_in_run);
        let Some((slots, apart)) = self.slots.as_mut().zip(apart) else { return Ok(()) };
        // Beside a stream UDP is tried at times that no key decides.
        if !to.is_stream() && client.peer().is_some_and(Remote::is_stream) {
            return Ok(());
        }
        if self.has_slept {
            slots.forget();
        }
        self.seen.slots += u64::from(slots.take(now, apart, octets)? == Departure::Slot);
        Ok(())
    }
}

/// Departures of a client while runs of slots are on.
#[derive(Clone, Debug)]
struct Departures {
    /// The time between two slots, and how late the machine's timers are at most.
    slot: Duration,
    lateness: Duration,
    /// The first departure in a run, to which all others are compared.
    reference: Option<Time>,
    /// The earliest and the latest departure within the slot, in µs from the reference.
    spread: (i64, i64),
    /// The time to the next, as it was at the last but one and at the last: where the grid becomes wider amid a slot, the
    /// next whole slot is still the next.
    apart: [Duration; 2],
    last: Option<Last>,
}

/// The last slot's datagram.
#[derive(Clone, Copy, Debug)]
struct Last {
    at: Time,
    octets: usize,
    /// Octets of the last rest behind it, or else its own.
    newest: usize,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Departure {
    /// The datagram of a slot.
    Slot,
    /// The rest of what was too long for it.
    Rest,
}

impl Departures {
    fn new(slot: Duration, lateness: Duration) -> Departures {
        Departures { slot, lateness, reference: None, spread: (0, 0), apart: [slot; 2], last: None }
    }

    /// The machine was not there when slots were due.
    fn forget(&mut self) {
        self.last = None;
    }

    /// Judges a datagram in a run whose slots are so far apart.
    fn take(&mut self, now: Time, apart: Duration, octets: usize) -> Result<Departure, String> {
        if !SLOT_BYTES.contains(&octets) && octets < LONG_BYTES {
            return Err(format!("{octets} octets in a run of slots"));
        }
        let late = micros(self.lateness);
        let bound = late + late / DRIFT_DIVISOR + ROUNDING_US;
        let [earlier, before] = self.apart;
        let least = apart.min(before).min(earlier);
        if let Some(last) = &mut self.last {
            let gap = micros(now.since(last.at));
            if gap < micros(least) - bound {
                // A rest follows a beginning that is as long as the path takes (512 octets where that is 548), and behind the last of it is at most what
                // replaces a lost one, which is as long.
                let is_rest = last.octets >= LONG_BYTES;
                if !is_rest || last.newest < LONG_BYTES && octets < LONG_BYTES {
                    return Err(format!(
                        "two datagrams in a slot, {gap} us apart: {} and {octets} octets",
                        last.newest
                    ));
                }
                last.newest = octets;
                return Ok(Departure::Rest);
            }
        }
        self.apart = [before, apart];
        self.last = Some(Last { at: now, octets, newest: octets });
        // Where there are two in a slot, an alarm that is late by half of one hides the grid: there distances are judged alone.
        if least < self.slot {
            return Ok(Departure::Slot);
        }
        let place_us = micros(self.slot);
        let reference = *self.reference.get_or_insert(now);
        let since = micros(now.since(reference));
        let place = (since + place_us / 2).rem_euclid(place_us) - place_us / 2;
        self.spread = (self.spread.0.min(place), self.spread.1.max(place));
        match self.spread.1 - self.spread.0 > bound {
            true => Err(format!("a datagram leaves {place} us beside the grid of slots")),
            false => Ok(Departure::Slot),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Datagrams by when they leave, in ms, and their lengths; and how many are of slots, or what is wrong.
    type Case = (&'static [(u64, usize)], Result<u64, &'static str>);

    #[test]
    fn one_datagram_leaves_in_a_slot() {
        let slot = Duration::from_millis(55);
        let cases: [Case; 11] = [
            (&[(0, 128), (55, 128), (110, 256)], Ok(3)),
            (&[(0, 128), (3, 128)], Err("two datagrams")),
            (&[(0, 256), (3, 256)], Err("two datagrams")),
            (&[(0, 256), (3, 1200)], Err("two datagrams")),
            (&[(0, 512), (1, 128), (55, 128)], Ok(2)),
            (&[(0, 1200), (1, 1200), (2, 256), (55, 128)], Ok(2)),
            (&[(0, 1200), (1, 256), (2, 1200)], Ok(1)),
            (&[(0, 1200), (1, 256), (2, 128)], Err("two datagrams")),
            (&[(0, 128), (165, 128)], Ok(2)),
            (&[(0, 128), (60, 128)], Err("beside the grid")),
            (&[(0, 127)], Err("127 octets")),
        ];
        for (datagrams, wanted) in cases {
            let mut departures = Departures::new(slot, Duration::ZERO);
            let mut count = || {
                let mut slots = 0;
                for (at, octets) in datagrams {
                    let taken = departures.take(Time::from_millis(*at), slot, *octets)?;
                    slots += u64::from(taken == Departure::Slot);
                }
                Ok::<u64, String>(slots)
            };
            match (count(), wanted) {
                (Ok(slots), Ok(wanted)) => assert_eq!(slots, wanted, "{datagrams:?}"),
                (Err(fault), Err(wanted)) => {
                    assert!(fault.contains(wanted), "{datagrams:?} {fault}")
                }
                (found, _) => panic!("{datagrams:?}: {found:?}"),
            }
        }
    }

    /// Where much is lost two leave in a slot, and no more.
    #[test]
    fn two_datagrams_leave_in_a_slot_where_much_is_lost() {
        let (slot, half) = (Duration::from_millis(100), Duration::from_millis(50));
        let mut departures = Departures::new(slot, Duration::ZERO);
        let mut take = |at, apart| departures.take(Time::from_millis(at), apart, 128);
        for at in [0, 50, 100, 150] {
            assert_eq!(take(at, half), Ok(Departure::Slot));
        }
        // The last was sent when two were due, and the next one a slot later.
        assert_eq!(take(200, slot), Ok(Departure::Slot));
        assert_eq!(take(300, slot), Ok(Departure::Slot));
        assert!(take(350, slot).is_err());
    }
}
