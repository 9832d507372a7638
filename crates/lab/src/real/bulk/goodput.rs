//! `rove-lab bulk goodput` and `shallow`: the speed of copies over long, fat, lossy pipes.

use std::fmt;
use std::io;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::RealFlags;
use super::super::experiment::{Body, Experiment, Measured, Title};
use super::super::sessions::OverLink;
use super::copier::{Copier, Load, Pipe, only};
use super::copy::{Copied, Ending, copy, cpu_medians};
use crate::experiments::report::{Table, hundredths, paragraphs, tenths};
use crate::plot::{Axis, Curve, Figure, Panel};
use crate::rng::Chance;
use crate::stats::Summary;

/// Copies of one file over paths that differ in speed and loss.
pub(super) struct Goodput {
    queue: Queue,
    limit: Duration,
    load: Load,
    pipes: Vec<Pipe>,
    copiers: Vec<Copier>,
}

/// How long the queue before the bottleneck is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Queue {
    /// One bandwidth-delay product.
    Full,
    /// A tenth of it.
    Shallow,
}

impl Queue {
    fn command(self) -> &'static str {
        match self {
            Queue::Full => "bulk goodput",
            Queue::Shallow => "bulk shallow",
        }
    }

    fn percent(self) -> u64 {
        match self {
            Queue::Full => 100,
            Queue::Shallow => 10,
        }
    }
}

/// A program over a path.
pub(super) struct Case {
    pipe: Pipe,
    copier: Copier,
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}, {}", self.copier, self.pipe.name())
    }
}

impl Goodput {
    /// # Errors
    /// If --only leaves no program.
    pub(super) fn new(flags: &RealFlags, queue: Queue) -> io::Result<Goodput> {
        let setting = flags.setting();
        let goodput = Goodput {
            queue,
            limit: flags.span(6, 30),
            load: Load::File { bytes: setting.pick(10, 150) << 20 },
            pipes: pipes(queue.percent(), setting.pick(2, 8)),
            copiers: only(flags, Copier::all())?,
        };
        let copies = goodput.pipes.len() * goodput.copiers.len();
        eprintln!("{}: {copies} copies, at most {:?} each", goodput.queue.command(), goodput.limit);
        Ok(goodput)
    }
}

impl Experiment for Goodput {
    type Case = Case;
    type Sample = Copied;

    fn title(&self) -> Title {
        let file = match self.queue {
            Queue::Full => "bulk",
            Queue::Shallow => "bulk-shallow",
        };
        let bdp = self.queue.percent() as f64 / 100.0;
        let title = format!("Files over long, fat, lossy pipes, queues of {bdp} BDP");
        Title::new(self.queue.command(), file, title, DEPENDS)
    }

    fn cases(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for pipe in &self.pipes {
            cases.extend(
                self.copiers.iter().map(|copier| Case { pipe: *pipe, copier: copier.clone() }),
            );
        }
        cases
    }

    fn measure(&self, case: &Case, seed: u64) -> io::Result<OverLink<Copied>> {
        copy(&case.copier, self.load, Some(&case.pipe.scenario(seed)), self.limit, seed)
    }

    fn report(&self, results: &[Measured<Case, Copied>]) -> Body {
        let mut table = Table::new(format!("{} of random data", self.load), 2, COLUMNS);
        let row = |one: &Measured<Case, Copied>| row(&one.case, &one.samples);
        table.rows.extend(results.iter().filter_map(row));
        let figure = figure(&table, &self.copiers, &self.pipes);
        Body { tables: vec![table], figure }
    }

    fn prose(&self) -> Vec<String> {
        let text = include_str!("../text/bulk-goodput.md");
        paragraphs(text, &[("seconds", &self.limit.as_secs())])
    }
}

/// The first of all pipes: each loss for each speed.
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

/// The bar for rove in Mbit/s, with a queue of one bandwidth-delay product.
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
fn row(Case { pipe, copier }: &Case, all: &[Copied]) -> Option<Vec<Value>> {
    let mbit = Summary::of(&all.iter().map(Copied::mbit).collect::<Vec<f64>>())?;
    let least = all.iter().map(Copied::mbit).fold(f64::MAX, f64::min);
    let whole = all.iter().filter(|copied| copied.ending == Ending::Whole).count();
    let pings: Vec<f64> = all.iter().flat_map(|copied| copied.pings.iter().copied()).collect();
    let pings = Summary::of(&pings);
    let bar = bar(*pipe).filter(|_| copier.is_rove());
    let [near, far, _] = cpu_medians(all).map(|cpu| json!(cpu.map(hundredths)));
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
        near,
        far,
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
            Curve::solid(&copier.name, points)
        };
        let trip = here().next()?.round_trip;
        let curves = copiers.iter().map(curve).filter(|curve| !curve.points.is_empty());
        Some(Panel::new(
            format!("{mbit} Mbit/s, {} ms", trip.as_millis()),
            Axis::log("loss, % (none at 0.01)"),
            Axis::linear("Mbit/s"),
            curves.collect(),
        ))
    };
    Figure::new("Goodput of copies", [200, 400].into_iter().filter_map(panel))
}

const COLUMNS: &str = "path | program | n | Mbit/s | least | bar | complete | near CPU, s/GB | \
    far CPU, s/GB | ping median, ms | ping p95, ms | verdict";

/// The most that a ping may take beyond the path's round trip.
const PING_MORE_MS: f64 = 20.0;

/// The parts of the lab that its numbers come from, besides those of all experiments on real programs.
const DEPENDS: &[&str] = &[
    "crates/lab/src/real/bulk.rs",
    "crates/lab/src/real/bulk/copier.rs",
    "crates/lab/src/real/bulk/copy.rs",
    "crates/lab/src/real/bulk/goodput.rs",
    "crates/lab/src/real/ping.rs",
];
