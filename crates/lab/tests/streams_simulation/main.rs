//! Forwardings and copies in virtual time: the streams of both ends as the program runs them, with quinn, beside the
//! session's own machines, over the lab's links. tokio's clock is paused, so it moves when every task waits, and
//! the same seed is the same run: datagrams of the same lengths at the same times.
//!
//! Nearly all seeds are always the same; a few follow from the commit. `SEED=17 cargo test -p rove-lab --test
//! streams_simulation` runs just that one, twice, and `SEEDS=2001-9000` those.

#![allow(clippy::unwrap_used, reason = "what is missing fails the test")]

mod beside;
mod copies;
mod counts;
mod forwarding;
mod network;
mod obscured;
mod paths;
mod session;
mod terminal;
mod unnoticed;

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/seeds.rs"]
mod seeds;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::say;
use counts::Counts;
use rove_lab::testing::clock::Clock;
use rove_lab::testing::rng::Rng;

/// Seeds up to this run each time.
const FIXED: u64 = 950;

/// The same of sessions with a terminal.
const BESIDE: u64 = 50;

/// This many more follow from the commit.
const OF_COMMIT: usize = 50;

/// One in this many runs a second time, and must be the same.
const RERUN_EVERY: u64 = 50;

/// Two, because small machines have as many cores.
const THREADS: usize = 2;

#[test]
fn forwardings_come_through_hostile_networks() {
    simulate("forwardings", FIXED, Counts::of_forwardings, |seed| {
        let mut counts = Counts::default();
        virtual_time(forwarding::run(Rng::new(seed), &mut counts));
        counts
    });
}

#[test]
fn keys_beside_forwardings_come_through_hostile_networks() {
    simulate("keys", BESIDE, Counts::of_keys, |seed| {
        let mut counts = Counts::default();
        virtual_time(beside::run(Rng::new(seed), &mut counts));
        counts
    });
}

#[test]
fn copies_come_through_hostile_networks() {
    simulate("copies", FIXED, Counts::of_copies, |seed| {
        let mut counts = Counts::default();
        virtual_time(copies::run(Rng::new(seed), &mut counts));
        counts
    });
}

/// Names of rare things, and how often they happened.
type Rare = fn(&Counts) -> Vec<(&'static str, u64)>;

/// Runs all seeds of a kind, or the one that is asked for.
fn simulate(kind: &str, fixed: u64, rare: Rare, run: fn(u64) -> Counts) {
    let chosen = seeds::chosen();
    if let Some(&[seed]) = chosen.as_deref() {
        let counts = attempt(kind, seed, run).unwrap_or_else(|fault| panic!("{fault}"));
        say(&format!("SEED={seed}, {kind}: {counts}"));
        assert_eq!(
            attempt(kind, seed, run),
            Ok(counts),
            "SEED={seed}: another run of this seed differs"
        );
        return;
    }
    let seeds = chosen.clone().unwrap_or_else(|| seeds::of_the_gate(kind, 1..=fixed, OF_COMMIT));
    let clock = Clock::start();
    let next = AtomicUsize::new(0);
    let results = Mutex::new((Counts::default(), Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(&seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result =
                        attempt(kind, seed, run).and_then(|counts| rerun(kind, seed, counts, run));
                    let mut results = results.lock().unwrap();
                    match result {
                        Ok(counts) => results.0.add(&counts),
                        Err(fault) => {
                            say(&format!("simulated: failed: {fault}"));
                            results.1.push(fault);
                        }
                    }
                }
            });
        }
    });
    let (counts, faults) = results.into_inner().unwrap();
    let seconds = clock.elapsed().as_secs_f64();
    let (count, came_through) = (seeds.len(), seeds.len() - faults.len());
    say(&format!(
        "simulated: {kind}: {came_through} seeds in {seconds:.0} s of real time, {counts}"
    ));
    for line in rare(&counts).chunks(COUNTERS_A_LINE) {
        let line: Vec<String> =
            line.iter().map(|(name, count)| format!("{name} {count}")).collect();
        say(&format!("simulated: {kind}: {}", line.join(", ")));
    }
    assert!(faults.is_empty(), "{} of {count} seeds failed; first: {}", faults.len(), faults[0]);
    if chosen.is_none() {
        for (name, times) in rare(&counts) {
            assert!(times > 0, "in {count} seeds there was none of: {name}");
        }
    }
}

/// A line of them is as long as a line of a terminal.
const COUNTERS_A_LINE: usize = 5;

/// A panic is a fault of its seed.
fn attempt(kind: &str, seed: u64, run: fn(u64) -> Counts) -> Result<Counts, String> {
    std::panic::catch_unwind(|| run(seed)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()));
        let text = text.unwrap_or_default();
        let again = "cargo test -p rove-lab --test streams_simulation";
        format!("SEED={seed} {again} {kind}: {}", text.replace('\n', "; "))
    })
}

fn rerun(kind: &str, seed: u64, first: Counts, run: fn(u64) -> Counts) -> Result<Counts, String> {
    if seed.is_multiple_of(RERUN_EVERY) && attempt(kind, seed, run)? != first {
        return Err(format!("SEED={seed}: another run of this seed differs"));
    }
    Ok(first)
}

/// Runs this in a clock that moves when everything waits.
fn virtual_time(work: impl Future<Output = ()>) {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().start_paused(true).build().unwrap();
    runtime.block_on(work);
}
