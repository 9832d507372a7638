//! `rove-lab collection`: compares collection intervals, the time for which a server gathers a program's writes
//! before it sends a frame (figure 3 of the Mosh paper). A short interval splits a burst of writes, and its second
//! half waits for the next frame; a long one delays all of it.

use std::time::Duration;

use rove_ssp::Timing;
use serde_json::json;

use super::Scale;
use super::probe::{Measured, Plan, sessions};
use super::report::{Report, Table, hundredths, tenths};
use super::sender::Sender;
use super::spread::Spread;
use crate::host::Load;
use crate::link::Profile;
use crate::plot::{Axis, Curve, Figure, Panel};
use crate::world::Fault;

/// The parts of the lab that its numbers come from.
pub const DEPENDS: &[&str] = &[
    "crates/lab/src/experiments/collection.rs",
    "crates/lab/src/experiments/probe.rs",
    "crates/lab/src/experiments/sender.rs",
    "crates/lab/src/experiments/spread.rs",
    "crates/lab/src/experiments/text/collection.md",
    "crates/lab/src/host.rs",
];

/// The experiment.
///
/// # Errors
/// What must not happen.
pub fn report(scale: Scale) -> Result<Report, Fault> {
    let mut table = Table::new(
        "Delay of what programs write in ms, beyond the way there, and frames per key",
        2,
        COLUMNS,
    );
    let mut curves = Vec::new();
    let path = Profile::delay(DELAY);
    for (name, sender) in [("stock frames", Sender::stock()), ("rove frames", Sender::native())] {
        let mut points = Vec::new();
        for collect_us in COLLECTS_US {
            let collect_server = Duration::from_micros(collect_us);
            let timing = Timing { collect_server, ..sender.server.clone() };
            let sender = Sender { server: timing, ..sender.clone() };
            let plan = Plan::alike(&sender, Load::Mixed, path.clone());
            let runs = sessions(&plan, scale.runs(RUNS), TIMES)?;
            let ages = Spread::of_ages(&runs);
            let added = ages.mean() - DELAY.as_secs_f64() * 1e3;
            let all = Measured::sum(&runs);
            let frames_per_key = all.down.offered as f64 / all.keys_ms.len().max(1) as f64;
            let collect_ms = collect_us as f64 / 1e3;
            points.push((collect_ms.max(0.1), added));
            table.rows.push(vec![
                json!(name),
                json!(collect_ms),
                json!(ages.len()),
                tenths(added),
                tenths(ages.half()),
                hundredths(frames_per_key),
            ]);
        }
        curves.push(Curve::solid(name, points));
    }
    let (x, y) = (Axis::log("collection interval, ms"), Axis::linear("mean added delay, ms"));
    Ok(Report::new(
        "collection",
        "How long to gather what a program writes",
        include_str!("text/collection.md"),
        DEPENDS,
        (
            vec![table],
            Figure::new(
                "Load `mixed`, RTT 500 ms (stock sends a frame each 250 ms)",
                [Panel::new("", x, y, curves)],
            ),
        ),
    ))
}

const COLUMNS: &str = "policy | collection ms | writes | added delay | ±95 % | datagrams down/key";

const COLLECTS_US: [u64; 11] =
    [100, 1_000, 2_000, 4_000, 8_000, 12_000, 16_000, 24_000, 32_000, 64_000, 100_000];

/// Half of the round trip.
const DELAY: Duration = Duration::from_millis(250);

/// Sessions of a cell.
const RUNS: u64 = 20;

/// How long estimates settle, and how long is measured.
const TIMES: (Duration, Duration) = (Duration::from_secs(20), Duration::from_secs(150));
