//! `rove-lab bulk goodput` and `shallow`: how fast files go over long, fat, lossy pipes.

use std::io;

use serde_json::{Value, json};

use super::super::RealFlags;
use super::super::outcome::Outcome;
use super::copier::{Copier, Load, Pipe, notes, only};
use super::copy::{Copied, Ending, copy};
use crate::experiments::report::{Table, hundredths, tenths};
use crate::net::lateness::Late;
use crate::plot::{Axis, Curve, Figure, Panel, Stroke};
use crate::rng::Chance;
use crate::stats::Summary;

/// Runs it with queues of one bandwidth-delay product.
///
/// # Errors
/// If there can be no links here, or the results cannot be written.
pub(super) fn run(flags: &RealFlags) -> io::Result<i32> {
    measure(flags, "bulk goodput", "bulk", 100)
}

/// Runs it with queues of a tenth of that.
///
/// # Errors
/// If there can be no links here, or the results cannot be written.
pub(super) fn run_shallow(flags: &RealFlags) -> io::Result<i32> {
    measure(flags, "bulk shallow", "bulk-shallow", 10)
}

fn measure(
    flags: &RealFlags,
    name: &'static str,
    file: &'static str,
    queue_percent: u64,
) -> io::Result<i32> {
    let setting = flags.setting();
    let limit = flags.span(6, 30);
    let load = Load::File { bytes: setting.pick(10, 150) << 20 };
    let copiers = only(flags, Copier::all())?;
    let times = flags.times(1, 1);
    let pipes = pipes(queue_percent, setting.pick(2, 8));
    eprintln!("{name}: {} copies, at most {limit:?} each", pipes.len() * copiers.len());
    let mut table = Table::new(format!("{load} of random data"), 2, &COLUMNS);
    let (mut late, mut failures) = (Late::default(), Vec::new());
    // One at a time: copies beside each other would measure the machine.
    for pipe in &pipes {
        for copier in &copiers {
            let mut all = Vec::new();
            for seed in flags.seed..flags.seed + u64::from(times) {
                match copy(copier, load, Some(&pipe.scenario(seed)), limit, seed) {
                    Ok(copied) => all.push(copied),
                    Err(error) => {
                        failures.push(format!("{}, {}: {error}", copier.name, pipe.name()));
                    }
                }
            }
            late = all.iter().fold(late, |late, copied| late.and(&copied.late));
            table.rows.extend(row(*pipe, copier, &all));
        }
    }
    let mut notes = notes(setting);
    notes.insert(
        0,
        format!(
            "From the 65,537th octet on the path, which is more than logging in takes, to the end of the program; a copy \
             that is not over after {} s counts with what had arrived. Pings are ten a second beside it. The verdict is on \
             rove's goodput, and on the median ping: no more than 20 ms beyond the path's round trip.",
            limit.as_secs()
        ),
    );
    let figure = figure(&table, &copiers, &pipes);
    let title = format!(
        "Files over long, fat, lossy pipes, queues of {} BDP",
        queue_percent as f64 / 100.0
    );
    Outcome { name, file, title, notes, tables: vec![table], figure, late, failures }.write(flags)
}

/// The first so many: of each speed, what is lost by chance.
fn pipes(queue_percent: u64, most: usize) -> Vec<Pipe> {
    let mut pipes = Vec::new();
    for (mbit, trip_ms) in [(200, 100), (400, 60)] {
        for ppm in [0, 10_000, 1_000, 50_000] {
            let loss = Chance::per_million(ppm);
            pipes.push(Pipe { queue_percent, loss, ..Pipe::clean(mbit, trip_ms) });
        }
    }
    pipes.truncate(most);
    pipes
}

/// What rove must reach, in Mbit/s; with a queue of one bandwidth-delay product.
fn bar(pipe: Pipe) -> Option<f64> {
    let is = |ppm| pipe.loss == Chance::per_million(ppm);
    let bars: &[(u32, f64)] = match (pipe.mbit, pipe.queue_percent) {
        (200, 100) => &[(0, 175.0), (1_000, 165.0), (10_000, 160.0), (50_000, 145.0)],
        (400, 100) => &[(0, 330.0), (10_000, 300.0)],
        _ => &[],
    };
    bars.iter().find(|(ppm, _)| is(*ppm)).map(|(_, bar)| *bar)
}

/// Copies of one program over one path, if there are any.
fn row(pipe: Pipe, copier: &Copier, all: &[Copied]) -> Option<Vec<Value>> {
    let mbit = Summary::of(&all.iter().map(Copied::mbit).collect::<Vec<f64>>())?;
    let least = all.iter().map(Copied::mbit).fold(f64::MAX, f64::min);
    let whole = all.iter().filter(|copied| copied.ending == Ending::Whole).count();
    let pings: Vec<f64> = all.iter().flat_map(|copied| copied.pings.iter().copied()).collect();
    let pings = Summary::of(&pings);
    let bar = bar(pipe).filter(|_| copier.is_rove());
    let cpu = |side: usize| {
        let each = all.iter().filter_map(|copied| Some(copied.cpu_per_gigabyte()?[side]));
        Summary::of(&each.collect::<Vec<f64>>()).map_or(Value::Null, |cpu| hundredths(cpu.median))
    };
    let trip_ms = pipe.round_trip.as_secs_f64() * 1e3;
    let is_late = pings.as_ref().is_none_or(|pings| pings.median > trip_ms + PING_MORE_MS);
    let verdict = match bar.map(|bar| mbit.median >= bar) {
        None => Value::Null,
        Some(true) if is_late => json!("pings too late"),
        Some(false) if is_late => json!("too slow, pings too late"),
        Some(true) => json!("holds"),
        Some(false) => json!("too slow"),
    };
    let ping = |of: fn(&Summary) -> f64| pings.as_ref().map_or(Value::Null, |all| tenths(of(all)));
    Some(vec![
        json!(pipe.name()),
        json!(copier.name),
        json!(mbit.n),
        tenths(mbit.median),
        tenths(least),
        json!(bar),
        json!(format!("{whole} of {}", all.len())),
        cpu(0),
        cpu(1),
        ping(|pings| pings.median),
        ping(|pings| pings.p95),
        verdict,
    ])
}

fn figure(table: &Table, copiers: &[Copier], pipes: &[Pipe]) -> Figure {
    let panel = |mbit: u64| {
        let here = || pipes.iter().filter(|pipe| pipe.mbit == mbit);
        let curve = |copier: &Copier| {
            let points = here().filter_map(|pipe| {
                let keys = [json!(pipe.name()), json!(copier.name)];
                let percent = (f64::from(pipe.loss.as_per_million()) / 1e4).max(0.01);
                Some((percent, table.number(&keys, "Mbit/s")?))
            });
            let mut points: Vec<(f64, f64)> = points.collect();
            points.sort_by(|one, other| one.0.total_cmp(&other.0));
            Curve { name: copier.name.clone(), points, stroke: Stroke::Solid }
        };
        let trip = here().next()?.round_trip;
        Some(Panel {
            title: format!("{mbit} Mbit/s, {} ms", trip.as_millis()),
            x: Axis::log("loss, % (none at 0.01)"),
            y: Axis::linear("Mbit/s"),
            curves: copiers.iter().map(curve).filter(|curve| !curve.points.is_empty()).collect(),
        })
    };
    let panels = [200, 400].into_iter().filter_map(panel).collect();
    Figure { title: "Goodput of copies".to_owned(), panels }
}

const COLUMNS: [&str; 12] = [
    "path",
    "program",
    "n",
    "Mbit/s",
    "least",
    "bar",
    "complete",
    "near CPU, s/GB",
    "far CPU, s/GB",
    "ping median, ms",
    "ping p95, ms",
    "verdict",
];

/// What a ping may take beyond the path's round trip.
const PING_MORE_MS: f64 = 20.0;
