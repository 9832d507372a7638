//! Runs 915 sessions over hostile networks in virtual time: 165 s each of 5 keys and 20 frames a second and then
//! minutes in which nobody is there, by stock's policy and by ours, on both wires, with every mode of local echo. With
//! those of `golden.rs` and those that hide keys they are over a hundred hours. No machine may spin, go backwards, exceed a limit or paint otherwise than meant on the way. At the end both screens are equal, and
//! every key was delivered once and in order. Of all [`Rare`](rove_lab::testing::counters::Rare) things each must have
//! happened.
//!
//! Nearly all seeds are always the same; a few follow from the commit. A seed is a run:
//! `SEED=17 cargo test -p rove-lab --test simulation` runs just that one, and `SEEDS=2001-9000` those.

mod common;

use std::ops::RangeInclusive;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::say;
use rove_lab::testing::clock::Clock;
use rove_lab::testing::counters::Counters;
use rove_lab::testing::crowd;
use rove_lab::testing::rng::Rng;
use rove_lab::testing::scenario::{BUSY, Scenario};
use rove_lab::testing::trial::{Obscured, Outcome};
use rove_session::client::Obscure;

/// Seeds up to this run each time. A session takes a second of processor time and is six minutes long.
const FIXED: u64 = 905;

/// Simulated hours of these and of those of the commit, and how many of them are busy. The gate has a hundred: four more
/// are those of [`GOLDEN`], and three those that hide keys.
const HOURS: u64 = 93;
const HOURS_BUSY: u64 = 46;
const HOURS_HIDING: u64 = 1;
const HOURS_IN_SLOTS: u64 = 2;

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
    let seeds = chosen.clone().unwrap_or_else(seeds_of_the_gate);
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
        all.slept += outcome.slept;
        all.in_bursts += outcome.in_bursts;
        all.keys += outcome.keys;
        all.most = all.most.max(outcome.most);
    }
    say(&format!(
        "simulated: {} crowds: {} came, {} left, {} were killed, {} times nobody was there, {} slept \
         at the end, {} links were in bursts, {} keys",
        seeds.len(),
        all.joined,
        all.detached,
        all.killed,
        all.alone,
        all.slept,
        all.in_bursts,
        all.keys
    ));
    if seeds.len() > 1 {
        for count in [all.joined, all.detached, all.killed, all.alone, all.slept, all.in_bursts] {
            assert!(count >= CROWDS / 4, "too little happens: {all:?}");
        }
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

/// The seeds that run each time, and those of this commit, which are printed.
fn seeds_of_the_gate() -> Vec<u64> {
    let commit = commit();
    let digits = commit.get(..16).and_then(|digits| u64::from_str_radix(digits, 16).ok());
    // Outside a repository they are the same each time as well.
    let mut rng = Rng::new(digits.unwrap_or(0));
    let own: Vec<u64> = (0..OF_COMMIT).map(|_| FIXED + 1 + (rng.next_u64() >> 32)).collect();
    let list: Vec<String> = own.iter().map(u64::to_string).collect();
    let first = GOLDEN + 1;
    say(&format!(
        "simulation: seeds {first} to {FIXED}, and of commit {commit}: {}",
        list.join(" ")
    ));
    (first..=FIXED).chain(own).collect()
}

/// The seeds that the environment names, if it names any.
fn chosen() -> Option<Vec<u64>> {
    let [one, several] = ["SEED", "SEEDS"].map(variable);
    seeds_named(one.as_deref(), several.as_deref()).unwrap_or_else(|fault| panic!("{fault}"))
}

/// The seeds that these values of `SEED` and `SEEDS` name. Without either all run, with what must happen in them.
fn seeds_named(one: Option<&str>, several: Option<&str>) -> Result<Option<Vec<u64>>, String> {
    match (one, several) {
        (None, None) => Ok(None),
        (Some(text), None) => {
            let seed = text.parse().map_err(|_| format!("SEED={text} is no number"));
            seed.map(|seed| Some(vec![seed]))
        }
        (None, Some(text)) => {
            let wanted = format!("SEEDS={text} is no span of seeds, as 20 or 2001-9000");
            span(text).map(Some).ok_or(wanted)
        }
        (Some(_), Some(_)) => Err("name SEED or SEEDS, not both".to_owned()),
    }
}

#[test]
fn seeds_that_make_no_sense_are_refused() {
    assert_eq!(seeds_named(None, None), Ok(None));
    assert_eq!(seeds_named(Some("17"), None), Ok(Some(vec![17])));
    assert_eq!(seeds_named(None, Some("3")), Ok(Some(vec![1, 2, 3])));
    assert_eq!(seeds_named(None, Some("7-9")), Ok(Some(vec![7, 8, 9])));
    for (one, several) in [(Some("1-3"), None), (Some(""), None), (Some("1"), Some("1-3"))] {
        assert!(seeds_named(one, several).is_err(), "{one:?} {several:?}");
    }
    for several in ["", "1-", "-3", "9-7", "0", "1,2", "1..3", "all"] {
        assert!(seeds_named(None, Some(several)).is_err(), "{several:?}");
    }
}

/// `20` is the seeds 1 to 20, and `2001-9000` those from the first to the last.
fn span(text: &str) -> Option<Vec<u64>> {
    let (first, last) = text.split_once('-').unwrap_or(("1", text));
    let seeds: Vec<u64> = (first.parse().ok()?..=last.parse().ok()?).collect();
    (!seeds.is_empty()).then_some(seeds)
}

/// The commit that is tested; empty outside a repository.
#[allow(clippy::disallowed_methods, reason = "the commit chooses the seeds")]
fn commit() -> String {
    let told = Command::new("git").args(["rev-parse", "HEAD"]).output();
    let told = told.ok().and_then(|told| String::from_utf8(told.stdout).ok());
    told.unwrap_or_default().trim().to_owned()
}

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

#[allow(clippy::disallowed_methods, reason = "the environment chooses the seeds")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
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
    idle_turns_most: u32,
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
        self.idle_turns_most = self.idle_turns_most.max(outcome.idle_turns_most);
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
             ({} refused), at most {} idle turns in a second",
            self.seeds,
            self.keys,
            self.frames,
            self.paints,
            self.datagrams,
            self.refused,
            self.idle_turns_most
        )
    }
}
