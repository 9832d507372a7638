//! `rove-lab loss`: measures keys over paths that lose datagrams, for each send policy.

use std::time::Duration;

use serde_json::{Value, json};

use super::loss_matrix::{LOSSES, datagrams, times};
use super::probe::{Measured, Plan, sessions};
use super::report::{Report, Table, tenths};
use super::sender::Sender;
use super::spread::Spread;
use super::{Scale, paths};
use crate::host::Load;
use crate::link::Profile;
use crate::plot::{Axis, Curve, Figure, Panel};
use crate::rng::Chance;
use crate::world::Fault;

/// The parts of the lab that its numbers come from.
pub const DEPENDS: &[&str] = &[
    "crates/lab/src/experiments/loss.rs",
    "crates/lab/src/experiments/loss_matrix.rs",
    "crates/lab/src/experiments/paths.rs",
    "crates/lab/src/experiments/probe.rs",
    "crates/lab/src/experiments/sender.rs",
    "crates/lab/src/experiments/spread.rs",
    "crates/lab/src/experiments/text/loss.md",
    "crates/lab/src/host.rs",
];

/// The experiment.
///
/// # Errors
/// What must not happen.
pub fn report(scale: Scale) -> Result<Report, Fault> {
    let mut table =
        Table::new("Latency of keys in ms, datagrams and octets per key (UDP payload)", 2, COLUMNS);
    let senders = [Sender::stock(), Sender::rove(), Sender::native(), Sender::metered()];
    let panel = |title: &str| {
        let (x, y) = (Axis::linear("loss each way, %"), Axis::log("latency of a key, ms"));
        Panel::new(title, x, y, senders.iter().map(|one| Curve::solid(one.name, [])).collect())
    };
    let (mut means, mut tails) = (panel("mean"), panel("99th percentile"));
    for percent in LOSSES {
        let path = Profile::delay(DELAY).loss(Chance::percent(percent));
        for (number, sender) in senders.iter().enumerate() {
            let plan = Plan::alike(sender, Load::Mixed, path.clone());
            let row = row(percent, sender.name, &sessions(&plan, scale.runs(RUNS), times())?);
            for (panel, column) in [(&mut means, 4), (&mut tails, 9)] {
                let point = (f64::from(percent), row[column].as_f64().unwrap_or(f64::NAN));
                panel.curves[number].points.push(point);
            }
            table.rows.push(row);
        }
    }
    Ok(Report::new(
        "loss",
        "Keys over lossy paths: RTT 100 ms, no predictions",
        include_str!("text/loss.md"),
        DEPENDS,
        (
            vec![table, paths::others(scale)?, paths::letters(scale)?, paths::peers(scale)?],
            Figure::new("Load `mixed`, RTT 100 ms, loss each way, no predictions", [means, tails]),
        ),
    ))
}

fn row(percent: u32, name: &str, runs: &[Measured]) -> Vec<Value> {
    let all = Measured::sum(runs);
    let keys = Spread::of_keys(runs);
    let mut row = vec![json!(percent), json!(name)];
    row.extend(keys.cells());
    row.push(json!(all.unanswered));
    row.extend(
        [keys.sigma(), keys.quantile(0.95), keys.quantile(0.99), keys.quantile(1.0)].map(tenths),
    );
    row.extend(datagrams(&all));
    row
}

const COLUMNS: &str = "loss % | policy | keys | median | mean | ±95 % | unanswered | σ | p95 | \
    p99 | max | up/key | down/key | both/key | B up/key | B down/key";

/// Half of the round trip.
const DELAY: Duration = Duration::from_millis(50);

/// Sessions of a cell, each with a seed of its own.
const RUNS: u64 = 30;
