//! `rove-lab flood`: measures keys typed while a program floods the screen, over slow, deep-queued and policed
//! links.

use std::time::Duration;

use rove_term::Size;
use serde_json::{Value, json};

use super::Scale;
use super::probe::{Measured, Plan, sessions};
use super::report::{Report, Table, tenths};
use super::sender::Sender;
use super::spread::Spread;
use crate::host::Load;
use crate::link::Profile;
use crate::plot::{Axis, Curve, Figure, Panel};
use crate::world::Fault;

/// The parts of the lab that its numbers come from.
pub const DEPENDS: &[&str] = &[
    "crates/lab/src/experiments/flood.rs",
    "crates/lab/src/experiments/probe.rs",
    "crates/lab/src/experiments/sender.rs",
    "crates/lab/src/experiments/spread.rs",
    "crates/lab/src/experiments/text/flood.md",
    "crates/lab/src/host.rs",
];

/// The experiment.
///
/// # Errors
/// What must not happen.
pub fn report(scale: Scale) -> Result<Report, Fault> {
    let mut table = Table::new(
        "Latency of keys in ms during a flood of output; octets a second downwards, mean wait in the \
         bottleneck's queue in ms, datagrams dropped there",
        3,
        COLUMNS,
    );
    let senders = [Sender::stock(), Sender::rove(), Sender::native()];
    let screens = [("24x80", Size::DEFAULT), ("60x200", Size::clamped(60, 200))];
    let mut panels = screens.map(|(screen, _)| {
        let x = Axis::linear("path (number in the table)");
        let y = Axis::log("99th percentile of keys, ms");
        let curves = senders.iter().map(|sender| Curve::solid(sender.name, [])).collect();
        Panel::new(format!("screen {screen}"), x, y, curves)
    });
    for (place, (name, down)) in paths().into_iter().enumerate() {
        for ((screen, size), panel) in screens.into_iter().zip(&mut panels) {
            for (sender, curve) in senders.iter().zip(&mut panel.curves) {
                let (sender, up) = (sender.clone(), Profile::delay(down.delay));
                let plan =
                    Plan { seed: 0, sender, load: Load::Flood, size, up, down: down.clone() };
                let times = (TIMES.0, scale.span(TIMES.1));
                let runs = sessions(&plan, scale.runs(RUNS), times)?;
                let row = row(name, screen, plan.sender.name, &runs);
                curve.points.push((place as f64 + 1.0, row[7].as_f64().unwrap_or(f64::NAN)));
                table.rows.push(row);
            }
        }
    }
    Ok(Report::new(
        "flood",
        "Keys during a flood of output",
        include_str!("text/flood.md"),
        DEPENDS,
        (vec![table], Figure::new("A key each 500 ms while the screen scrolls", panels)),
    ))
}

/// Paths by name; only the way down is narrow.
fn paths() -> Vec<(&'static str, Profile)> {
    let half = |rtt_ms: u64| Profile::delay(Duration::from_millis(rtt_ms / 2));
    vec![
        ("1: 40 kbit/s, 20 kB, RTT 600", half(600).rate(40_000, 20_000)),
        ("2: 256 kbit/s, 32 kB, RTT 100", half(100).rate(256_000, 32_000)),
        ("3: 256 kbit/s, 4 kB, RTT 100", half(100).rate(256_000, 4_000)),
        ("4: 1 Mbit/s, 128 kB, RTT 60", half(60).rate(1_000_000, 128_000)),
        ("5: 1 Mbit/s, 2 MB, RTT 60", half(60).rate(1_000_000, 2_000_000)),
        ("6: 10 Mbit/s, 1 MB, RTT 40", half(40).rate(10_000_000, 1_000_000)),
        ("7: policer 64 kbit/s, 8 kB, RTT 100", half(100).policer(64_000, 8_000)),
        ("8: policer 256 kbit/s, 16 kB, RTT 100", half(100).policer(256_000, 16_000)),
    ]
}

fn row(path: &str, screen: &str, policy: &str, runs: &[Measured]) -> Vec<Value> {
    let all = Measured::sum(runs);
    let keys = Spread::of_keys(runs);
    let passed = (all.down.offered - all.down.overflowed).max(1) as f64;
    let mut row = vec![json!(path), json!(screen), json!(policy)];
    row.extend(keys.cells());
    row.extend([
        tenths(keys.quantile(0.99)),
        json!((all.down.offered_bytes as f64 / all.span.as_secs_f64()).round()),
        tenths(all.down.queued.as_secs_f64() * 1e3 / passed),
        json!(all.down.overflowed),
    ]);
    row
}

const COLUMNS: &str =
    "path | screen | policy | keys | median | mean | ±95 % | p99 | B/s | queue ms | drops";

/// Sessions of a cell.
const RUNS: u64 = 3;

/// How long the flood has gone on before, and how long is measured.
const TIMES: (Duration, Duration) = (Duration::from_secs(20), Duration::from_secs(60));
