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
use crate::plot::{Axis, Curve, Figure, Panel, Stroke};
use crate::rng::Chance;
use crate::world::Fault;

/// The experiment.
///
/// # Errors
/// What must not happen.
pub fn report(scale: Scale) -> Result<Report, Fault> {
    let mut table =
        Table::new("Latency of keys in ms, datagrams and octets per key (UDP payload)", 2, COLUMNS);
    let mut means: Vec<Curve> = Vec::new();
    let mut tails: Vec<Curve> = Vec::new();
    for sender in senders() {
        let (mut mean_points, mut tail_points) = (Vec::new(), Vec::new());
        for percent in LOSSES {
            let runs = cell(&sender, percent, scale)?;
            let row = row(percent, sender.name, &runs);
            mean_points.push((f64::from(percent), row[4].as_f64().unwrap_or(f64::NAN)));
            tail_points.push((f64::from(percent), row[9].as_f64().unwrap_or(f64::NAN)));
            table.rows.push(row);
        }
        let curve = |points| Curve { name: sender.name.to_owned(), points, stroke: Stroke::Solid };
        means.push(curve(mean_points));
        tails.push(curve(tail_points));
    }
    table.rows.sort_by_key(|row| row[0].as_u64());
    let panel = |title: &str, curves| Panel {
        title: title.to_owned(),
        x: Axis::linear("loss each way, %"),
        y: Axis::log("latency of a key, ms"),
        curves,
    };
    Ok(Report {
        name: "loss",
        title: "Keys over lossy paths: RTT 100 ms, no predictions".to_owned(),
        command: "rove-lab loss".to_owned(),
        notes: NOTES.map(str::to_owned).to_vec(),
        tables: vec![table, paths::others(scale)?, paths::letters(scale)?, paths::peers(scale)?],
        figure: Figure {
            title: "Load `mixed`, RTT 100 ms, loss each way, no predictions".to_owned(),
            panels: vec![panel("mean", means), panel("99th percentile", tails)],
        },
    })
}

/// All runs of one policy at one loss.
///
/// # Errors
/// What must not happen.
pub(crate) fn cell(sender: &Sender, percent: u32, scale: Scale) -> Result<Vec<Measured>, Fault> {
    let path = Profile::delay(DELAY).loss(Chance::percent(percent));
    sessions(&Plan::alike(sender, Load::Mixed, path), scale.runs(RUNS), times())
}

/// The policies that are compared.
pub(crate) fn senders() -> Vec<Sender> {
    vec![Sender::stock(), Sender::rove(), Sender::native(), Sender::metered()]
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

const NOTES: [&str; 2] = [
    "Each session settles for 30 s, then 150 s are measured; the interval is that of the mean over sessions. \
     Heartbeats count as datagrams.",
    "`stock` is mosh 1.4.0's policy, `rove` ours on mosh's wire, `rove native` ours on our own wire, `metered` \
     the same where octets cost. No program takes time to answer and nothing is predicted: these are times until \
     the answer is on the screen.",
];

/// Half of the round trip.
const DELAY: Duration = Duration::from_millis(50);

/// Sessions of a cell, each with a seed of its own.
const RUNS: u64 = 30;
