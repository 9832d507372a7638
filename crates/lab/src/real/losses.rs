//! `rove-lab cs244`: key latency over lossy paths on real programs without predictions, as in the reproduction of
//! 2013: loss of 0 to 29 % at a round trip of 100 ms, and round trips of 10 to 200 ms at 10 % loss.

use std::fmt;
use std::io;
use std::time::Duration;

use super::RealFlags;
use super::contender::{Contender, Kind, missing};
use super::experiment::{self, Body, Experiment, Measured, Over, Title, samples};
use super::outcome::{AGAIN, Samples, against, table};
use super::sessions::OverLink;
use super::typing::{Pace, Prose, Seen};
use crate::experiments::report::paragraphs;
use crate::link::Profile;
use crate::net::scenario::Scenario;
use crate::plot::{Axis, Curve, Figure, Panel, Stroke};
use crate::rng::Chance;
use crate::stats::Summary;

/// A path of the sweep.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Point {
    /// In milliseconds.
    pub rtt: u32,
    /// Each way.
    pub loss: u32,
}

impl fmt::Display for Point {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ms, {} %", self.rtt, self.loss)
    }
}

/// Runs the sweep.
///
/// # Errors
/// If there can be no links here, or the results cannot be written.
pub(crate) fn run(flags: &RealFlags) -> io::Result<i32> {
    let setting = flags.setting();
    let losses = setting.pick(&[0, 29][..], &[0, 1, 5, 10, 15, 20, 29][..]);
    let trips = setting.pick(&[][..], &[10, 25, 50, 150, 200][..]);
    let mut points: Vec<Point> =
        losses.iter().map(|loss| Point { rtt: 100, loss: *loss }).collect();
    points.extend(trips.iter().map(|rtt| Point { rtt: *rtt, loss: 10 }));
    let losses = Losses {
        span: flags.span(15, 120),
        tail: setting.pick(QUICK_TAIL, TAIL),
        points,
        contenders: flags.contenders(Contender::all())?,
    };
    experiment::run(&losses, flags, |_| missing())
}

/// Keys over paths that lose.
pub(crate) struct Losses {
    /// How long is typed.
    pub span: Duration,
    /// How long is waited for keys that are not seen when all are typed.
    pub tail: Duration,
    /// The paths.
    pub points: Vec<Point>,
    /// The programs.
    pub contenders: Vec<Contender>,
}

impl Experiment for Losses {
    type Case = Over<Point>;
    type Sample = Seen;

    fn title(&self) -> Title {
        Title::new(
            "cs244",
            "cs244",
            "Keys over lossy paths, real programs, no predictions",
            DEPENDS,
        )
    }

    fn cases(&self) -> Vec<Over<Point>> {
        Over::each(&self.points, &self.contenders)
    }

    // Where most is lost the paper compares means, and a mean over losses takes more keys than one over none.
    fn times(&self, flags: &RealFlags, case: &Over<Point>) -> u32 {
        if case.path.loss >= 29 { flags.times(3, 4) } else { flags.times(1, 1) }
    }

    fn lasts(&self, _: &Over<Point>) -> Option<Duration> {
        Some(self.span + self.tail / 3)
    }

    fn measure(&self, case: &Over<Point>, seed: u64) -> io::Result<OverLink<Seen>> {
        let Over { path, contender } = case;
        let delay = Duration::from_micros(u64::from(path.rtt) * 500);
        let profile = Profile::delay(delay).loss(Chance::percent(path.loss));
        let mut prose =
            Prose::open(contender, Pace::Person, self.span, Scenario::alike(profile, seed))?;
        prose.stage.begin();
        let found = prose.type_all(self.tail, |_, _| Ok(()))?.whole(&prose.stage)?;
        Ok(OverLink { found, late: prose.stage.net.late() })
    }

    fn report(&self, results: &[Measured<Over<Point>, Seen>]) -> Body {
        let all = samples(results, |seen| (&seen.latencies, seen.unseen));
        let times = table("latency of keys in ms by round trip and loss each way", &all);
        let figure = figure(&all, &self.points, &self.contenders);
        Body { tables: vec![times, against(&all)], figure }
    }

    fn prose(&self) -> Vec<String> {
        let seconds = self.span.as_secs();
        paragraphs(include_str!("text/cs244.md"), &[("seconds", &seconds), ("again", &AGAIN)])
    }
}

fn figure(all: &[Samples], points: &[Point], contenders: &[Contender]) -> Figure {
    let curve = |contender: &Contender,
                 chosen: &dyn Fn(&Point) -> Option<f64>,
                 value: fn(&Summary) -> f64| {
        let mut places: Vec<(f64, f64)> = points
            .iter()
            .filter_map(|point| {
                let x = chosen(point)?;
                let samples = all.iter().find(|samples| {
                    samples.path == point.to_string() && samples.program == contender.name
                })?;
                Some((x, value(&Summary::of(&samples.values)?)))
            })
            .collect();
        places.sort_by(|a, b| a.0.total_cmp(&b.0));
        let stroke =
            if matches!(contender.kind, Kind::Ssh(_)) { Stroke::Dashed } else { Stroke::Solid };
        Curve { name: contender.name.clone(), points: places, stroke }
    };
    let by_loss = |point: &Point| (point.rtt == 100).then_some(f64::from(point.loss));
    let by_trip = |point: &Point| (point.loss == 10).then_some(f64::from(point.rtt));
    let panel = |title: &str,
                 x: &str,
                 y: &str,
                 chosen: &dyn Fn(&Point) -> Option<f64>,
                 value: fn(&Summary) -> f64| {
        let curves = contenders.iter().map(|contender| curve(contender, chosen, value));
        let curves = curves.filter(|curve| !curve.points.is_empty()).collect();
        Panel::new(title, Axis::linear(x), Axis::log(y), curves)
    };
    let (loss, trip) = ("loss each way, %", "round trip, ms");
    let mut panels = vec![
        panel("100 ms round trip", loss, "mean latency, ms", &by_loss, |summary| summary.mean),
        panel("100 ms round trip", loss, "σ of latency, ms", &by_loss, |summary| {
            summary.sigma.max(1.0)
        }),
    ];
    if points.iter().filter(|point| by_trip(point).is_some()).count() > 1 {
        panels.push(panel("10 % loss each way", trip, "mean latency, ms", &by_trip, |summary| {
            summary.mean
        }));
    }
    Figure::new("Keys over lossy paths", panels)
}

/// How long is waited for keys that are not seen when all are typed.
const TAIL: Duration = Duration::from_secs(60);
const QUICK_TAIL: Duration = Duration::from_secs(6);

/// The parts of the lab that its numbers come from, besides those of all experiments on real programs.
const DEPENDS: &[&str] = &["crates/lab/src/real/losses.rs", "crates/lab/src/real/text/cs244.md"];

#[cfg(test)]
mod tests;
