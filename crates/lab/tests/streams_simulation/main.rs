//! Forwardings and copies in virtual time: the streams of both ends as the program runs them, with quinn, beside the
//! session's own machines, over the lab's links. tokio's clock is paused, so it moves when every task waits, and
//! the same seed is the same run: datagrams of the same lengths at the same times.
//!
//! `SEED=17 cargo test -p rove-lab --test streams_simulation` runs just that one, twice.

#![allow(clippy::unwrap_used, reason = "what is missing fails the test")]

mod copies;
mod counts;
mod forwarding;
mod network;
mod obscured;
mod paths;
mod session;
mod unnoticed;

#[path = "../common/mod.rs"]
mod common;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use common::say;
use counts::Counts;
use rove_lab::testing::clock::Clock;
use rove_lab::testing::rng::Rng;

/// Seeds of one run of each test; `SEEDS=n` runs as many.
const SEEDS: u64 = 1_000;

/// One in this many runs a second time, and must be the same.
const RERUN_EVERY: u64 = 50;

/// Two, because small machines have as many cores.
const THREADS: usize = 2;

#[test]
fn forwardings_come_through_hostile_networks() {
    simulate("forwardings", Counts::of_forwardings, |seed| {
        let mut counts = Counts::default();
        virtual_time(forwarding::run(Rng::new(seed), &mut counts));
        counts
    });
}

#[test]
fn copies_come_through_hostile_networks() {
    simulate("copies", Counts::of_copies, |seed| {
        let mut counts = Counts::default();
        virtual_time(copies::run(Rng::new(seed), &mut counts));
        counts
    });
}

/// Names of rare things, and how often they happened.
type Rare = fn(&Counts) -> Vec<(&'static str, u64)>;

/// Runs all seeds of a kind, or the one that is asked for.
fn simulate(kind: &str, rare: Rare, run: fn(u64) -> Counts) {
    if let Some(seed) = number("SEED") {
        let counts = attempt(kind, seed, run).unwrap_or_else(|fault| panic!("{fault}"));
        say(&format!("SEED={seed}, {kind}: {counts}"));
        assert_eq!(
            attempt(kind, seed, run),
            Ok(counts),
            "SEED={seed}: another run of this seed differs"
        );
        return;
    }
    let seeds = number("SEEDS").unwrap_or(SEEDS);
    let clock = Clock::start();
    let next = AtomicU64::new(1);
    let results = Mutex::new((Counts::default(), Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed > seeds {
                        break;
                    }
                    let result =
                        attempt(kind, seed, run).and_then(|counts| rerun(kind, seed, counts, run));
                    let mut results = results.lock().unwrap();
                    match result {
                        Ok(counts) => results.0.add(&counts),
                        Err(fault) => {
                            say(&fault);
                            results.1.push(fault);
                        }
                    }
                }
            });
        }
    });
    let (counts, faults) = results.into_inner().unwrap();
    let seconds = clock.elapsed().as_secs_f64();
    say(&format!("{kind}: {seeds} seeds in {seconds:.0} s of real time, {counts}"));
    rare(&counts).iter().for_each(|(name, count)| say(&format!("{kind}: {name}: {count}")));
    assert!(faults.is_empty(), "{} of {seeds} seeds failed; first: {}", faults.len(), faults[0]);
    if seeds >= SEEDS {
        for (name, count) in rare(&counts) {
            assert!(count > 0, "in {seeds} seeds there was none of: {name}");
        }
    }
}

/// A panic is a fault of its seed.
fn attempt(kind: &str, seed: u64, run: fn(u64) -> Counts) -> Result<Counts, String> {
    std::panic::catch_unwind(|| run(seed)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()));
        let text = text.unwrap_or_default();
        let again = "cargo test -p rove-lab --test streams_simulation";
        format!("SEED={seed}: {text}\nrun it again: SEED={seed} {again} {kind}")
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

#[allow(clippy::disallowed_methods, reason = "the environment chooses the seeds")]
fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")))
}
