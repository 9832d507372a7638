//! `rove-lab cs244`: key latency over lossy paths on real programs without predictions, as in the reproduction of
//! 2013: loss of 0 to 29 % at a round trip of 100 ms, and round trips of 10 to 200 ms at 10 % loss.

use std::io;
use std::time::Duration;

use super::contender::{Contender, Kind, missing};
use super::outcome::{AGAIN, Outcome, Samples, against, joined, late, table};
use super::typing::{Pace, Prose};
use super::{RealFlags, Sessions};
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

impl Point {
    /// In words.
    pub(crate) fn name(self) -> String {
        format!("{} ms, {} %", self.rtt, self.loss)
    }

    /// Where the paper compares means, with the most to lose.
    fn is_worst(self) -> bool {
        self.loss >= 29
    }

    /// Both ways the same.
    pub(crate) fn scenario(self, seed: u64) -> Scenario {
        let profile = Profile::delay(Duration::from_micros(u64::from(self.rtt) * 500))
            .loss(Chance::percent(self.loss));
        Scenario::alike(profile, seed)
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
    let (span, tail) = (flags.span(15, 120), setting.pick(QUICK_TAIL, TAIL));
    let contenders = flags.contenders(Contender::all())?;
    let (mut all, mut failures, mut ran_as) = (Vec::new(), Vec::new(), Vec::new());
    // A mean over losses takes more keys than one over none.
    for (paths, times) in points.chunk_by(|a, b| a.is_worst() == b.is_worst()).map(|points| {
        (points, if points[0].is_worst() { flags.times(3, 4) } else { flags.times(1, 1) })
    }) {
        let lasts = span + tail / 3;
        let sessions = Sessions { name: "cs244", lasts, paths, contenders: &contenders, times };
        let ran = sessions.run(
            flags,
            |point| point.name(),
            |contender, point, seed| session(contender, *point, span, tail, seed),
        );
        all.extend(joined(ran.found.into_iter().map(|(_, _, samples)| samples)));
        failures.extend(ran.failures);
        ran_as.push(ran.note);
    }
    let mut notes = vec![format!(
        "Somebody types text at a prompt that echoes each key after 1 ms, about 4 keys a second, for {} s, without \
         predictions; latency in ms from the key to its place on the screen that the client painted. A key that was \
         never seen counts with the time it was waited for (\"unseen\"). The session is opened before the path begins \
         to lose; where several are, each has a seed of its own. {AGAIN}",
        span.as_secs()
    )];
    notes.extend(ran_as);
    notes.extend(missing());
    let figure = figure(&all, &points, &contenders);
    Outcome {
        name: "cs244",
        file: "cs244",
        title: "Keys over lossy paths, real programs, no predictions".to_owned(),
        notes,
        tables: vec![
            table("latency of keys in ms by round trip and loss each way", &all),
            against(&all),
        ],
        figure,
        late: late(&all),
        failures,
    }
    .write(flags)
}

/// One program over one path.
///
/// # Errors
/// If it does not start, or ends.
pub(crate) fn session(
    contender: &Contender,
    point: Point,
    span: Duration,
    tail: Duration,
    seed: u64,
) -> io::Result<Samples> {
    let mut prose = Prose::open(contender, Pace::Person, span, point.scenario(seed))?;
    prose.stage.begin();
    let seen = prose.type_all(tail, |_, _| Ok(()))?.whole(&prose.stage)?;
    Ok(Samples {
        path: point.name(),
        program: contender.name.clone(),
        values: seen.latencies,
        unseen: seen.unseen,
        late: prose.stage.net.late(),
    })
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
                    samples.path == point.name() && samples.program == contender.name
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
                 value: fn(&Summary) -> f64| Panel {
        title: title.to_owned(),
        x: Axis::linear(x),
        y: Axis::log(y),
        curves: contenders
            .iter()
            .map(|contender| curve(contender, chosen, value))
            .filter(|curve| !curve.points.is_empty())
            .collect(),
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
    Figure { title: "Keys over lossy paths".to_owned(), panels }
}

/// How long is waited for keys that are not seen when all are typed.
const TAIL: Duration = Duration::from_secs(60);
const QUICK_TAIL: Duration = Duration::from_secs(6);
