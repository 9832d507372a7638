//! Runs two thousand sessions over hostile networks in virtual time: 165 s each of 5 keys and 20 frames a second, a
//! hundred hours in all, by stock's policy and by ours, on both wires. No machine may spin, go backwards or exceed
//! a limit on the way. At the end both screens are equal, and every key was delivered once and in order.
//!
//! A seed is a run: `SEED=17 cargo test -p rove-lab --test simulation` runs just that one.

mod common;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use common::say;
use rove_lab::testing::clock::Clock;
use rove_lab::testing::counters::Counters;
use rove_lab::testing::scenario::{BUSY, Scenario};
use rove_lab::testing::trial::Outcome;

/// Sessions in one run of the test; `SEEDS=n` runs as many.
const SEEDS: u64 = 2_000;

/// One in this many runs a second time and must be the same to the bit.
const RERUN_EVERY: u64 = 100;

/// Two, because small machines have as many cores.
const THREADS: usize = 2;

#[test]
fn sessions_come_through_hostile_networks() {
    if let Some(seed) = number("SEED") {
        say(&format!("SEED={seed}: {}", Scenario::hostile(seed)));
        let outcome = run(seed).unwrap_or_else(|fault| panic!("{fault}"));
        say(&format!("{outcome:?}"));
        assert_eq!(run(seed), Ok(outcome), "SEED={seed}: another run of this seed differs");
        return;
    }
    let seeds = number("SEEDS").unwrap_or(SEEDS);
    let clock = Clock::start();
    let next = AtomicU64::new(1);
    let results = Mutex::new((Totals::default(), Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed > seeds {
                        break;
                    }
                    let result = run(seed).and_then(|outcome| rerun(seed, outcome));
                    let mut results = results.lock().unwrap();
                    match result {
                        Ok(outcome) => results.0.add(&outcome),
                        Err(fault) => {
                            say(&fault);
                            results.1.push(fault);
                        }
                    }
                }
            });
        }
    });
    let (totals, faults) = results.into_inner().unwrap();
    say(&format!("simulation: {totals} in {:.0} s of real time", clock.elapsed().as_secs_f64()));
    say(&totals.counters.to_string());
    assert!(faults.is_empty(), "{} of {seeds} seeds failed; first: {}", faults.len(), faults[0]);
    assert!(
        totals.keys >= seeds * BUSY.as_secs() * 4,
        "too few keys for 5 a second: {}",
        totals.keys
    );
}

/// A panic of a machine is a fault of its seed like any other.
fn run(seed: u64) -> Result<Outcome, String> {
    let ran = std::panic::catch_unwind(|| Scenario::hostile(seed).run());
    match ran {
        Ok(Ok(outcome)) => Ok(outcome),
        Ok(Err(fault)) => Err(format!("SEED={seed}: {fault}")),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()));
            Err(format!("SEED={seed}: panic: {}", text.unwrap_or_default()))
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
fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")))
}

#[derive(Default)]
struct Totals {
    seeds: u64,
    simulated: Duration,
    keys: u64,
    frames: u64,
    datagrams: u64,
    refused: u64,
    paints: u64,
    counters: Counters,
}

impl Totals {
    fn add(&mut self, outcome: &Outcome) {
        self.seeds += 1;
        self.simulated += outcome.simulated;
        self.keys += outcome.keys;
        self.frames += outcome.frames;
        self.datagrams += outcome.datagrams;
        self.refused += outcome.refused;
        self.paints += outcome.paints;
        self.counters.add(&outcome.counters);
    }
}

impl std::fmt::Display for Totals {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hours = self.simulated.as_secs_f64() / 3_600.0;
        write!(
            out,
            "{} seeds, {hours:.1} simulated hours, {} keys, {} frames, {} paints, {} datagrams \
             ({} refused)",
            self.seeds, self.keys, self.frames, self.paints, self.datagrams, self.refused
        )
    }
}
