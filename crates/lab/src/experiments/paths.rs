//! The further tables of `rove-lab loss`: paths besides the one of 100 ms, the cost of a typed letter, and our
//! policy with stock mosh at the other end.

use std::time::Duration;

use serde_json::{Value, json};

use super::Scale;
use super::loss_matrix::{LOSSES, datagrams, times};
use super::probe::{Measured, Plan, sessions};
use super::report::{Table, hundredths, tenths};
use super::sender::Sender;
use super::spread::Spread;
use crate::host::Load;
use crate::link::{Jitter, Profile};
use crate::rng::Chance;
use crate::world::Fault;

/// Short, long and bad paths.
///
/// # Errors
/// What must not happen.
pub(crate) fn others(scale: Scale) -> Result<Table, Fault> {
    let columns = "path | policy | keys | median | mean | ±95 % | p99 | both/key | B/key";
    let mut table = Table::new("Other paths, load `mixed`", 2, columns);
    for (name, path) in paths() {
        for sender in [Sender::stock(), Sender::rove(), Sender::native(), Sender::metered()] {
            let plan = Plan::alike(&sender, Load::Mixed, path.clone());
            let runs = sessions(&plan, scale.runs(RUNS), times())?;
            let (all, keys) = (Measured::sum(&runs), Spread::of_keys(&runs));
            let mut row = vec![json!(name), json!(sender.name)];
            row.extend(keys.cells());
            row.extend([tenths(keys.quantile(0.99)), both(&all), tenths(octets(&all))]);
            table.rows.push(row);
        }
    }
    Ok(table)
}

/// The cost of a letter where nothing is lost.
///
/// # Errors
/// If a session breaks an invariant.
pub(crate) fn letters(scale: Scale) -> Result<Table, Fault> {
    let columns = "RTT ms | policy | keys | median | mean | ±95 % | both/key | B/key";
    let caption = "A typed and echoed letter where nothing is lost; datagrams take up to 2 ms more each way, as \
                   they do between real machines (without, stock's timeout has no slack and it repeats itself)";
    let mut table = Table::new(caption, 2, columns);
    for rtt_ms in LETTER_RTTS_MS {
        for sender in [Sender::stock(), Sender::rove(), Sender::native()] {
            let mut path = round_trip(rtt_ms);
            path.jitter = Jitter::Uniform(Duration::from_millis(2));
            let plan = Plan::alike(&sender, Load::Typing, path);
            let runs = sessions(&plan, scale.runs(RUNS), times())?;
            let all = Measured::sum(&runs);
            let mut row = vec![json!(rtt_ms), json!(sender.name)];
            row.extend(Spread::of_keys(&runs).cells());
            row.extend([both(&all), tenths(octets(&all))]);
            table.rows.push(row);
        }
    }
    Ok(table)
}

/// The parts of our policy that a stock peer meets.
///
/// # Errors
/// If a session breaks an invariant.
pub(crate) fn peers(scale: Scale) -> Result<Table, Fault> {
    let columns = "loss % | ends | keys | median | mean | ±95 % | p99 | up/key | down/key | \
        both/key | B up/key | B down/key";
    let caption = "With a stock peer at one end, RTT 100 ms, load `mixed`: ours sends what stock is served by";
    let mut table = Table::new(caption, 2, columns);
    for percent in LOSSES {
        for sender in [Sender::stock(), Sender::for_stock_client(), Sender::for_stock_server()] {
            let path = round_trip(100).loss(Chance::percent(percent));
            let plan = Plan::alike(&sender, Load::Mixed, path);
            let runs = sessions(&plan, scale.runs(RUNS), times())?;
            let keys = Spread::of_keys(&runs);
            let mut row = vec![json!(percent), json!(sender.name)];
            row.extend(keys.cells());
            row.push(tenths(keys.quantile(0.99)));
            row.extend(datagrams(&Measured::sum(&runs)));
            table.rows.push(row);
        }
    }
    Ok(table)
}

fn paths() -> Vec<(&'static str, Profile)> {
    let lossy = |rtt_ms, percent| round_trip(rtt_ms).loss(Chance::percent(percent));
    let mut shaky = lossy(100, 5);
    shaky.jitter = Jitter::Uniform(Duration::from_millis(40));
    vec![
        ("RTT 2 ms", round_trip(2)),
        ("RTT 20 ms", round_trip(20)),
        ("RTT 270 ms", round_trip(270)),
        ("RTT 500 ms, 5 %", lossy(500, 5)),
        ("RTT 100 ms, 5 %, 0 to 40 ms more", shaky),
        ("RTT 1000 ms, 75 %", lossy(1000, 75)),
        ("RTT 2000 ms, 75 %", lossy(2000, 75)),
    ]
}

fn round_trip(rtt_ms: u64) -> Profile {
    Profile::delay(Duration::from_millis(rtt_ms) / 2)
}

fn both(all: &Measured) -> Value {
    hundredths((all.up.offered + all.down.offered) as f64 / all.keys_ms.len().max(1) as f64)
}

fn octets(all: &Measured) -> f64 {
    (all.up.offered_bytes + all.down.offered_bytes) as f64 / all.keys_ms.len().max(1) as f64
}

/// Sessions of a cell, each with a seed of its own.
const RUNS: u64 = 10;

const LETTER_RTTS_MS: [u64; 5] = [20, 100, 200, 300, 400];
