//! Tests that every datagram of forty simulated sessions, over both wires and with all policies, is as recorded.
//!
//! A change that must not alter the wire must not alter this file. A change that should alter the wire is recorded
//! with `RECORD=1 cargo test -p rove-lab --test golden`, and its message says what changed and why.

mod common;

use std::fmt::Write as _;
use std::time::Duration;

use common::{check_golden, say};
use rove_lab::testing::scenario::Scenario;

/// `simulation.rs` leaves these to this test.
const SEEDS: u64 = 40;

#[test]
fn datagrams_are_as_recorded() {
    let mut halves = [const { (String::new(), Duration::ZERO) }; 2];
    std::thread::scope(|scope| {
        for (half, (lines, simulated)) in halves.iter_mut().enumerate() {
            scope.spawn(move || {
                let first = half as u64 * SEEDS / 2 + 1;
                for seed in first..first + SEEDS / 2 {
                    let outcome = Scenario::hostile(seed).run().unwrap();
                    let (datagrams, hash) = (outcome.datagrams, outcome.hash);
                    *simulated += outcome.simulated;
                    writeln!(lines, "{seed} {datagrams} {hash:016x}").unwrap();
                }
            });
        }
    });
    let [(first, half), (second, rest)] = halves;
    let hours = (half + rest).as_secs_f64() / 3_600.0;
    say(&format!("simulated: {hours:.1} hours of {SEEDS} sessions whose datagrams are recorded"));
    // The simulation's hundred hours count on these.
    assert!(hours >= 4.0, "{hours} hours");
    let found = format!("seed datagrams hash\n{first}{second}");
    check_golden("simulation", &found);
}
