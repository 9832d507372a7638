//! `rove-lab loss`: how long keys take over paths that lose datagrams, for each policy of the sender.

use std::time::Duration;

use serde_json::{Value, json};

use super::probe::{Measured, Plan, Sender, sessions};
use super::report::{Report, Table, hundredths, tenths};
use super::{Scale, mean_of_runs, quantile};
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
    let mut table = Table::new(
        "Latency of keys in ms, datagrams and octets per key (UDP payload)",
        2,
        &COLUMNS,
    );
    let mut means: Vec<Curve> = Vec::new();
    let mut tails: Vec<Curve> = Vec::new();
    for sender in senders() {
        let (mut mean_points, mut tail_points) = (Vec::new(), Vec::new());
        for percent in LOSSES {
            let runs = cell(&sender, percent, scale)?;
            let row = row(percent, sender.name, &runs);
            mean_points.push((f64::from(percent), row[5].as_f64().unwrap_or(f64::NAN)));
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
        notes: vec![NOTE.to_owned()],
        tables: vec![table],
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
pub fn cell(sender: &Sender, percent: u32, scale: Scale) -> Result<Vec<Measured>, Fault> {
    let path = Profile::delay(DELAY).loss(Chance::percent(percent));
    let plan = Plan {
        seed: 0,
        sender: sender.clone(),
        load: Load::Mixed,
        size: Load::Mixed.size(),
        up: path.clone(),
        down: path,
    };
    sessions(&plan, scale.runs(RUNS), (SETTLE, SPAN))
}

/// The policies that are compared.
pub fn senders() -> Vec<Sender> {
    vec![Sender::stock(), Sender::rove(), Sender::native(), Sender::metered()]
}

fn row(percent: u32, name: &str, runs: &[Measured]) -> Vec<Value> {
    let mut all = Measured::default();
    runs.iter().for_each(|run| all.add(run.clone()));
    let (mean, half) = mean_of_runs(runs, |run| &run.keys_ms);
    let mut sorted = all.keys_ms.clone();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len() as f64;
    let sigma =
        (sorted.iter().map(|key| (key - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0)).sqrt();
    let per_key = |count: u64| hundredths(count as f64 / n);
    vec![
        json!(percent),
        json!(name),
        json!(sorted.len()),
        json!(all.unanswered),
        tenths(quantile(&sorted, 0.5)),
        tenths(mean),
        tenths(half),
        tenths(sigma),
        tenths(quantile(&sorted, 0.95)),
        tenths(quantile(&sorted, 0.99)),
        tenths(quantile(&sorted, 1.0)),
        per_key(all.up.offered),
        per_key(all.down.offered),
        per_key(all.up.offered + all.down.offered),
        tenths(all.up.offered_bytes as f64 / n),
        tenths(all.down.offered_bytes as f64 / n),
    ]
}

const COLUMNS: [&str; 16] = [
    "loss %",
    "policy",
    "keys",
    "unanswered",
    "median",
    "mean",
    "±95 %",
    "σ",
    "p95",
    "p99",
    "max",
    "up/key",
    "down/key",
    "both/key",
    "B up/key",
    "B down/key",
];

const NOTE: &str = "Each session settles for 30 s, then 150 s are measured; the interval is that of \
    the mean over sessions. Heartbeats count as datagrams.";

/// Loss each way, in percent.
const LOSSES: [u32; 6] = [0, 1, 5, 10, 29, 50];

/// Half of the round trip.
const DELAY: Duration = Duration::from_millis(50);

/// Sessions of a cell, each with a seed of its own.
const RUNS: u64 = 30;

/// How long a session is measured: about 400 keys.
const SPAN: Duration = Duration::from_secs(150);

/// How long estimates have to settle.
const SETTLE: Duration = Duration::from_secs(30);
