//! Runs 915 sessions over hostile networks in virtual time: 165 s each of 5 keys and 20 frames a second and then
//! minutes in which nobody is there, by stock's policy and by ours, on both wires, with every mode of local echo. With
//! those of `golden.rs` and those that hide keys they are over a hundred hours. No machine may spin, go backwards, exceed a limit or paint otherwise than meant on the way. At the end both screens are equal, and
//! every key was delivered once and in order. Of all [`Rare`](rove_lab::testing::counters::Rare) things each must have
//! happened.
//!
//! Nearly all seeds are always the same; a few follow from the commit. A seed is a run:
//! `SEED=17 cargo test -p rove-lab --test simulation` runs just that one, and `SEEDS=2001-9000` those.

mod common;
#[path = "common/seeds.rs"]
mod seeds;

use std::ops::RangeInclusive;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::say;
use rove_lab::testing::clock::Clock;
use rove_lab::testing::counters::Counters;
use rove_lab::testing::crowd;
use rove_lab::testing::scenario::{BUSY, Scenario};
use rove_lab::testing::trial::{Obscured, Outcome};
use rove_session::client::Obscure;
use seeds::{chosen, variable};

/// Seeds up to this run each time. A session takes a second of processor time and is six minutes long.
const FIXED: u64 = 905;

/// Simulated hours of these and of those of the commit, and how many of them are busy. The gate has a hundred: four more
/// are those of [`GOLDEN`], and three those that hide keys.
const HOURS: u64 = 93;
const HOURS_BUSY: u64 = 46;
const HOURS_HIDING: u64 = 1;
const HOURS_IN_SLOTS: u64 = 2;

/// Minutes of these in which the echo of keys is judged.
const MINUTES_JUDGED: u64 = 150;

/// The seeds 1 to this run in `golden.rs`, where each must come through as well.
const GOLDEN: u64 = 40;

/// This many more follow from the commit: few, since one that finds an old defect fails a commit that has nothing to do
/// with it.
const OF_COMMIT: usize = 50;

/// One in this many runs a second time and must be the same to the bit.
const RERUN_EVERY: u64 = 100;

/// Two, because small machines have as many cores.
const THREADS: usize = 2;

#[test]
fn sessions_come_through_hostile_networks() {
    if let Some(&[seed]) = chosen().as_deref().filter(|_| variable("SEED").is_some()) {
        say(&format!("SEED={seed}: {}", Scenario::hostile(seed)));
        let outcome = run(seed).unwrap_or_else(|fault| panic!("{fault}"));
        say(&format!("{outcome:?}"));
        assert_eq!(run(seed), Ok(outcome), "SEED={seed}: another run of this seed differs");
        return;
    }
    let chosen = chosen();
    let seeds = chosen
        .clone()
        .unwrap_or_else(|| seeds::of_the_gate("sessions", GOLDEN + 1..=FIXED, OF_COMMIT));
    let clock = Clock::start();
    let next = AtomicUsize::new(0);
    let results = Mutex::new((Totals::default(), Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(&seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = run(seed).and_then(|outcome| rerun(seed, outcome));
                    let mut results = results.lock().unwrap();
                    match result {
                        Ok(outcome) => results.0.add(&outcome),
                        Err(fault) => {
                            say(&format!("simulated: failed: {fault}"));
                            results.1.push(fault);
                        }
                    }
                }
            });
        }
    });
    let (totals, faults) = results.into_inner().unwrap();
    say(&format!("{totals}; it took {:.0} s", clock.elapsed().as_secs_f64()));
    let count = seeds.len() as u64;
    assert!(faults.is_empty(), "{} of {count} seeds failed; first: {}", faults.len(), faults[0]);
    assert!(
        totals.keys >= count * BUSY.as_secs() * 4,
        "too few keys for 5 a second: {}",
        totals.keys
    );
    if chosen.is_none() {
        assert_eq!(totals.counters.missing(), [], "rare things that never happened");
        assert!(totals.minutes_judged >= MINUTES_JUDGED, "few minutes are calm");
        let busy = totals.simulated - totals.away;
        assert!(totals.simulated >= hours(HOURS), "less than {HOURS} hours");
        assert!(busy >= hours(HOURS_BUSY), "less than {HOURS_BUSY} hours with something to do");
    }
}

/// Sessions whose clients come, leave and are killed, each on a link of its own. All who are there at the end see one
/// screen, and what each has typed was read in order, once.
#[test]
fn clients_come_leave_and_die() {
    let seeds = match variable("SEED") {
        Some(_) => chosen().unwrap_or_default(),
        None => (1..=CROWDS).collect(),
    };
    let mut all = crowd::Outcome::default();
    for seed in seeds.iter().copied() {
        let replay = format!("SEED={seed} cargo test -p rove-lab --test simulation clients");
        let outcome = crowd::run(seed).unwrap_or_else(|fault| panic!("{replay}: {fault}"));
        if seed == seeds[0] {
            assert_eq!(crowd::run(seed), Ok(outcome), "{replay}: another run differs");
        }
        all.joined += outcome.joined;
        all.detached += outcome.detached;
        all.killed += outcome.killed;
        all.alone += outcome.alone;
        all.replaced += outcome.replaced;
        all.taken_over += outcome.taken_over;
        all.slept += outcome.slept;
        all.in_bursts += outcome.in_bursts;
        all.to_stream += outcome.to_stream;
        all.streams_cut += outcome.streams_cut;
        all.keys += outcome.keys;
        all.most = all.most.max(outcome.most);
    }
    say(&format!(
        "simulated: {} crowds: {} came, {} left, {} were killed, {} times nobody was there, {} were \
         replaced, {} gave way to one that took over, {} slept at the end, {} links were in bursts, {} times a \
         stream came into use, {} streams ended, {} keys",
        seeds.len(),
        all.joined,
        all.detached,
        all.killed,
        all.alone,
        all.replaced,
        all.taken_over,
        all.slept,
        all.in_bursts,
        all.to_stream,
        all.streams_cut,
        all.keys
    ));
    if seeds.len() > 1 {
        let people = [all.joined, all.detached, all.killed, all.alone, all.slept];
        let let_go = [all.replaced, all.taken_over];
        let ways = [all.in_bursts, all.to_stream, all.streams_cut];
        assert!(
            people.iter().chain(&let_go).chain(&ways).all(|count| *count >= CROWDS / 4),
            "too little: {all:?}"
        );
        assert!(all.most >= 4 && all.keys >= CROWDS * 50, "{all:?}");
    }
}

/// Hidden lines in such sessions, between two roves on the native wire. One is sent with what ends it; where its question
/// ends by itself, nothing that was typed there reaches the shell.
///
/// `SEED=17 cargo test -p rove-lab --test simulation hidden` runs that one alone, `SEEDS=1-300` those.
#[test]
fn hidden_lines_come_through_hostile_networks() {
    let seen = hide(Obscure::Secrets, HIDING, hours(HOURS_HIDING));
    if chosen().is_none() {
        assert!(seen.lines_sent >= 10 && seen.lines_lost >= 10, "too little happens: {seen:?}");
    }
}

/// The same in which all that is typed goes in slots. What leaves the client is on one grid, and of a few lengths.
///
/// `SEED=17 cargo test -p rove-lab --test simulation slots` runs that one alone, `SEEDS=1-300` those.
#[test]
fn slots_come_through_hostile_networks() {
    let seen = hide(Obscure::Always, IN_SLOTS, hours(HOURS_IN_SLOTS));
    if chosen().is_none() {
        assert!(seen.runs >= 24 && seen.slots >= 24_000, "too little happens: {seen:?}");
    }
}

/// In this one something arrives while a datagram of a slot is held.
#[test]
fn nothing_that_arrives_delays_a_slot() {
    Scenario::obscured(123, Obscure::Always).run().unwrap();
}

/// In these a program writes more than a stream takes while a run of slots is on.
#[test]
fn answers_to_slots_do_not_fill_a_stream() {
    for seed in [109, 277] {
        Scenario::obscured(seed, Obscure::Always).run().unwrap();
    }
}

/// In this one UDP comes and goes while the client sleeps and its stream stands still.
#[test]
fn a_stream_that_stands_still_takes_no_more_while_udp_comes_and_goes() {
    Scenario::obscured(795_839_867_195, Obscure::Secrets).run().unwrap();
}

/// In this one a program clears the screen in the middle of a character.
#[test]
fn a_cleared_screen_has_the_character_that_was_cut_off() {
    Scenario::obscured(795_839_863_208, Obscure::Always).run().unwrap();
}

fn hours(count: u64) -> Duration {
    Duration::from_secs(count * 3_600)
}

/// Runs these seeds, or those that the environment names. Without such a choice they last at least so long.
fn hide(obscure: Obscure, seeds: RangeInclusive<u64>, least: Duration) -> Obscured {
    let seeds = chosen().unwrap_or_else(|| seeds.collect());
    let name = if obscure == Obscure::Always { "slots" } else { "hidden" };
    let mut seen = Obscured::default();
    let mut simulated = Duration::ZERO;
    let mut faults = Vec::new();
    for seed in &seeds {
        let outcome = match Scenario::obscured(*seed, obscure).run() {
            Ok(outcome) => outcome,
            Err(fault) => {
                let replay = format!("SEED={seed} cargo test -p rove-lab --test simulation {name}");
                say(&format!("simulated: failed: {replay}: {fault}"));
                faults.push(format!("{replay}: {fault}"));
                continue;
            }
        };
        simulated += outcome.simulated;
        let Obscured { runs, slots, lines_sent, lines_lost } = outcome.obscured;
        seen.runs += runs;
        seen.slots += slots;
        seen.lines_sent += lines_sent;
        seen.lines_lost += lines_lost;
    }
    say(&format!(
        "simulated: {:.1} hours of {} sessions that hide keys: {seen:?}",
        simulated.as_secs_f64() / 3_600.0,
        seeds.len()
    ));
    assert!(faults.is_empty(), "{} of {} failed: {}", faults.len(), seeds.len(), faults[0]);
    assert!(chosen().is_some() || simulated >= least, "less than {least:?}");
    seen
}

/// Seeds of sessions that keep hidden lines.
const HIDING: RangeInclusive<u64> = 1..=12;

/// Seeds of those that send in slots.
const IN_SLOTS: RangeInclusive<u64> = 1..=24;

/// Sessions of that kind.
const CROWDS: u64 = 12;

/// A panic of a machine is a fault of its seed like any other.
fn run(seed: u64) -> Result<Outcome, String> {
    let ran = std::panic::catch_unwind(|| Scenario::hostile(seed).run());
    let replay = format!("SEED={seed} cargo test -p rove-lab --test simulation");
    match ran {
        Ok(Ok(outcome)) => Ok(outcome),
        Ok(Err(fault)) => Err(format!("{replay}: {fault}")),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()));
            Err(format!("{replay}: panic: {}", text.unwrap_or_default()))
        }
    }
}

fn rerun(seed: u64, first: Outcome) -> Result<Outcome, String> {
    if seed.is_multiple_of(RERUN_EVERY) && run(seed)? != first {
        return Err(format!("SEED={seed}: another run of this seed differs"));
    }
    Ok(first)
}

#[derive(Default)]
struct Totals {
    seeds: u64,
    simulated: Duration,
    away: Duration,
    keys: u64,
    frames: u64,
    datagrams: u64,
    refused: u64,
    paints: u64,
    minutes_judged: u64,
    idle_turns_most: u32,
    alarms_most: u32,
    datagrams_most: u32,
    counters: Counters,
}

impl Totals {
    fn add(&mut self, outcome: &Outcome) {
        self.seeds += 1;
        self.simulated += outcome.simulated;
        self.away += outcome.away;
        self.keys += outcome.keys;
        self.frames += outcome.frames;
        self.datagrams += outcome.datagrams;
        self.refused += outcome.refused;
        self.paints += outcome.paints;
        self.minutes_judged += outcome.minutes_judged;
        self.idle_turns_most = self.idle_turns_most.max(outcome.idle_turns_most);
        self.alarms_most = self.alarms_most.max(outcome.alarms_most);
        self.datagrams_most = self.datagrams_most.max(outcome.datagrams_most);
        self.counters.add(&outcome.counters);
    }
}

/// Lines that begin with `simulated: `, which the gate prints again at its end.
impl std::fmt::Display for Totals {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for line in self.counters.to_string().lines() {
            writeln!(out, "simulated: {line}")?;
        }
        let [hours, away] = [self.simulated, self.away].map(|span| span.as_secs_f64() / 3_600.0);
        write!(
            out,
            "simulated: {hours:.1} hours, in {away:.1} of them nobody is there, {} seeds, {} keys, {} frames, {} paints, {} datagrams \
             ({} refused), keys were echoed in each of {} calm minutes, an end had at most {} turns of its own in a \
             second, {} of them idle, and sent at most {} datagrams",
            self.seeds,
            self.keys,
            self.frames,
            self.paints,
            self.datagrams,
            self.refused,
            self.minutes_judged,
            self.alarms_most,
            self.idle_turns_most,
            self.datagrams_most
        )
    }
}
