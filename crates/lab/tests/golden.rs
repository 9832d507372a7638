//! Tests that every datagram of forty simulated sessions, over both wires and with all policies, is as recorded.
//!
//! A change that must not alter the wire must not alter this file. A change that should alter the wire is recorded
//! with `RECORD=1 cargo test -p rove-lab --test golden`, and its message says what changed and why.

mod common;

use std::fmt::Write as _;

use common::check_golden;
use rove_lab::testing::scenario::Scenario;

/// `simulation.rs` leaves these to this test.
const SEEDS: u64 = 40;

#[test]
fn datagrams_are_as_recorded() {
    let mut lines = [String::new(), String::new()];
    std::thread::scope(|scope| {
        for (half, lines) in lines.iter_mut().enumerate() {
            scope.spawn(move || {
                let first = half as u64 * SEEDS / 2 + 1;
                for seed in first..first + SEEDS / 2 {
                    let outcome = Scenario::hostile(seed).run().unwrap();
                    let (datagrams, hash) = (outcome.datagrams, outcome.hash);
                    writeln!(lines, "{seed} {datagrams} {hash:016x}").unwrap();
                }
            });
        }
    });
    let found = format!("seed datagrams hash\n{}", lines.concat());
    check_golden("simulation", &found);
}
