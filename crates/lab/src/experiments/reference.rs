//! `rove-lab reference`: compares base states for diffs. λ is the probability that a diff starts from the known
//! state; otherwise it starts from the assumed state.

use std::time::Duration;

use rove_ssp::{Ratio, Reference, Timing};
use serde_json::{Value, json};

use super::Scale;
use super::probe::{Measured, Plan, sessions};
use super::report::{Report, Table, tenths};
use super::sender::Sender;
use super::spread::Spread;
use crate::host::Load;
use crate::link::Profile;
use crate::plot::{Axis, Curve, Figure, Panel};
use crate::rng::Chance;
use crate::world::Fault;

/// The parts of the lab that its numbers come from.
pub const DEPENDS: &[&str] = &[
    "crates/lab/src/experiments/probe.rs",
    "crates/lab/src/experiments/reference.rs",
    "crates/lab/src/experiments/sender.rs",
    "crates/lab/src/experiments/spread.rs",
    "crates/lab/src/experiments/text/reference.md",
    "crates/lab/src/host.rs",
];

/// The experiment.
///
/// # Errors
/// What must not happen.
pub fn report(scale: Scale) -> Result<Report, Fault> {
    let mut table = Table::new(
        "Age of Information in ms: for each of 20 states a second, the time until the receiver holds it \
         or a later one; octets a second downwards",
        3,
        COLUMNS,
    );
    let senders = senders();
    let mut panels = Vec::new();
    for rtt_ms in RTTS_MS {
        let mut curves: Vec<Curve> =
            senders.iter().map(|sender| Curve::solid(sender.name, [])).collect();
        for percent in LOSSES {
            for (sender, curve) in senders.iter().zip(&mut curves) {
                let plan = Plan::alike(sender, Load::Stream20, path(rtt_ms / 2, percent));
                let runs = sessions(&plan, scale.runs(RUNS), TIMES)?;
                let row = row(rtt_ms, percent, sender.name, &runs);
                curve.points.push((f64::from(percent), row[5].as_f64().unwrap_or(f64::NAN)));
                table.rows.push(row);
            }
        }
        let (x, y) = (Axis::linear("loss each way, %"), Axis::log("mean age, ms"));
        panels.push(Panel::new(format!("RTT {rtt_ms} ms"), x, y, curves));
    }
    Ok(Report::new(
        "reference",
        "Which state a diff starts from",
        include_str!("text/reference.md"),
        DEPENDS,
        (vec![table, study(scale)?], Figure::new("Age of Information by λ, 20 states/s", panels)),
    ))
}

/// The setting of the λ study: a state each 50 ms, sent at once; one way 1000 ms, 75 % loss, 10 runs.
fn study(scale: Scale) -> Result<Table, Fault> {
    let mut table = Table::new(
        "The λ study's own setting: 20 small states a second, each sent at once; one way 1000 ms, 75 % \
         loss; how many instructions λ could decide about at all. Below, real senders in the same place",
        2,
        STUDY_COLUMNS,
    );
    for (bound, rto_max) in [("1 s, as mosh", 1_000), ("none", 60_000)] {
        for (name, reference) in lambdas().into_iter().take(5) {
            let timing = Timing {
                send_interval_min: Duration::from_millis(50),
                send_interval_max: Duration::from_millis(50),
                collect_server: Duration::ZERO,
                ack_delay: Duration::from_millis(1),
                rto_max: Duration::from_millis(rto_max),
                sent_states_max: 1024,
                reference,
                ..Timing::MOSH
            };
            let sender = Sender::stock().with(name, timing);
            table.rows.push(studied(bound, &sender, scale)?);
        }
    }
    for (whose, sender) in [("mosh's", Sender::stock()), ("ours", Sender::native())] {
        table.rows.push(studied(whose, &sender, scale)?);
    }
    Ok(table)
}

fn studied(bound: &str, sender: &Sender, scale: Scale) -> Result<Vec<Value>, Fault> {
    let plan = Plan::alike(sender, Load::Small20, path(1000, 75));
    let runs = sessions(&plan, scale.runs(STUDY_RUNS), STUDY_TIMES)?;
    let all = Measured::sum(&runs);
    let counts = all.down_stats;
    let share = |part: u64, of: u64| tenths(100.0 * part as f64 / of.max(1) as f64);
    let mut row = vec![json!(bound), json!(sender.name)];
    row.extend(Spread::of_ages(&runs).cells());
    row.push(share(counts.from_assumed, counts.instructions));
    row.push(share(counts.unusable, counts.received));
    row.push(json!((all.down.offered_bytes as f64 / all.span.as_secs_f64()).round()));
    Ok(row)
}

fn lambdas() -> [(&'static str, Reference); 6] {
    let mixed = |part| Reference::Mixed { known: Ratio::new(part, 4) };
    [
        ("λ 0", Reference::Assumed),
        ("λ .25", mixed(1)),
        ("λ .5", mixed(2)),
        ("λ .75", mixed(3)),
        ("λ 1", Reference::Known),
        ("adaptive", Reference::Adaptive),
    ]
}

fn senders() -> Vec<Sender> {
    let with = |(name, reference)| Sender::stock().with(name, Timing { reference, ..Timing::MOSH });
    let mut senders: Vec<Sender> = lambdas().into_iter().map(with).collect();
    senders.extend([Sender::stock(), Sender::native()]);
    senders
}

fn path(one_way_ms: u64, percent: u32) -> Profile {
    Profile::delay(Duration::from_millis(one_way_ms)).loss(Chance::percent(percent))
}

fn row(rtt_ms: u64, percent: u32, name: &str, runs: &[Measured]) -> Vec<Value> {
    let all = Measured::sum(runs);
    let mut row = vec![json!(rtt_ms), json!(percent), json!(name)];
    row.extend(Spread::of_ages(runs).cells());
    row.push(json!((all.down.offered_bytes as f64 / all.span.as_secs_f64()).round()));
    row
}

const COLUMNS: &str = "RTT ms | loss % | base | states | median | mean | ±95 % | B/s";

const STUDY_COLUMNS: &str =
    "RTO bound | base | states | median | mean | ±95 % | not from known % | unusable % | B/s";

const RTTS_MS: [u64; 4] = [20, 100, 500, 2000];
const LOSSES: [u32; 6] = [0, 5, 10, 29, 50, 75];

/// Sessions of a cell.
const RUNS: u64 = 5;
const STUDY_RUNS: u64 = 10;

/// How long estimates settle, and how long is measured.
const TIMES: (Duration, Duration) = (Duration::from_secs(20), Duration::from_secs(60));
const STUDY_TIMES: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(60));
