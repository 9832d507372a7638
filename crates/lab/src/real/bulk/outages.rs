//! `rove-lab bulk outages`: interrupts a copy by a minute without a network, by a new address, and by a NAT that
//! forgets its mappings.

use std::fmt;
use std::io;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::RealFlags;
use super::super::contender::usual;
use super::super::experiment::{Body, Experiment, Measured, Title};
use super::super::sessions::OverLink;
use super::copier::{Copier, Load, Pipe, only};
use super::copy::{Ending, Look, Transfer};
use crate::experiments::report::{Table, hundredths, paragraphs, tenths};
use crate::net::scenario::{Happening, Middle, Scenario};
use crate::plot::{Axis, Curve, Figure, Panel, Stroke};
use crate::stats::Summary;

/// Copies of one file that a disruption of the path interrupts.
pub(super) struct Outages {
    load: Load,
    pipe: Pipe,
    /// How long a copy is left alone after the disruption.
    after: Duration,
    disruptions: [Disruption; 3],
    copiers: Vec<Copier>,
}

impl Outages {
    /// # Errors
    /// If --only leaves no program.
    pub(super) fn new(flags: &RealFlags) -> io::Result<Outages> {
        let setting = flags.setting();
        let outage = Disruption::Outage(flags.span(2, 60));
        let all = vec![Copier::scp(usual()), Copier::rove(), Copier::rove_pipe()];
        Ok(Outages {
            load: Load::File { bytes: setting.pick(60, 150) << 20 },
            pipe: Pipe::clean(200, 100),
            after: Duration::from_secs(setting.pick(10, 30)),
            disruptions: [outage, Disruption::Address, Disruption::Nat],
            copiers: only(flags, all)?,
        })
    }
}

impl Experiment for Outages {
    type Case = Case;
    type Sample = Track;

    fn title(&self) -> Title {
        let title = "Copies through outages and changes of address";
        Title::new("bulk outages", "bulk-outages", title, DEPENDS)
    }

    fn cases(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for disruption in self.disruptions {
            let case = |copier: &Copier| Case { disruption, copier: copier.clone() };
            cases.extend(self.copiers.iter().map(case));
        }
        cases
    }

    fn times(&self, flags: &RealFlags, _: &Case) -> u32 {
        flags.times(1, 3)
    }

    fn measure(&self, case: &Case, seed: u64) -> io::Result<OverLink<Track>> {
        let Case { disruption, copier } = case;
        let middle = if *disruption == Disruption::Nat { Middle::Nat } else { Middle::Plain };
        let scenario = Scenario { middle, ..self.pipe.scenario(seed) };
        let mut transfer = Transfer::open(copier, self.load, Some(&scenario), seed)?;
        let mut track = Track::default();
        let limit = WHEN + disruption.lasts() * 2 + self.after;
        let OverLink { found: copied, late } = transfer.run(limit, |stage, look| {
            track.look(look);
            if track.over.is_none() && look.since >= WHEN {
                track.over = Some(look.since + disruption.lasts());
                match disruption {
                    Disruption::Outage(span) => stage.net.cut(*span),
                    Disruption::Address => stage.net.happen(Happening::Roam)?,
                    Disruption::Nat => stage.net.happen(Happening::Rebind)?,
                }
            }
            Ok(())
        })?;
        if track.over.is_none_or(|over| over > copied.span) && copied.ending == Ending::Whole {
            return Err(io::Error::other("the copy was over before the trouble"));
        }
        track.end(copied.span, &copied.ending);
        Ok(OverLink { found: track, late })
    }

    fn report(&self, results: &[Measured<Case, Track>]) -> Body {
        let caption = format!("{} over {}", self.load, self.pipe.name());
        let mut table = Table::new(caption, 2, COLUMNS);
        let panel = |disruption: Disruption| {
            let (x, y) = (Axis::linear("s since the copy began"), Axis::linear("MB arrived"));
            Panel::new(disruption.name(), x, y, Vec::new())
        };
        let mut panels = self.disruptions.map(panel);
        for Measured { case, samples, .. } in results {
            let Some(first) = samples.first() else { continue };
            table.rows.push(row(case, samples));
            let (name, points) = (case.copier.name.clone(), first.points.clone());
            let curve = Curve { name, points, stroke: Stroke::Steps };
            let of_case = self.disruptions.iter().position(|one| *one == case.disruption);
            of_case.into_iter().for_each(|at| panels[at].curves.push(curve.clone()));
        }
        Body { tables: vec![table], figure: Figure::new("Copies through trouble", panels) }
    }

    fn prose(&self) -> Vec<String> {
        let text = include_str!("../text/bulk-outages.md");
        paragraphs(text, &[("when", &WHEN.as_secs_f64()), ("after", &self.after.as_secs())])
    }
}

/// A program, and the disruption of its copy.
pub(super) struct Case {
    disruption: Disruption,
    copier: Copier,
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}, {}", self.copier, self.disruption.name())
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Disruption {
    /// An outage of this length.
    Outage(Duration),
    /// The near end gets another address.
    Address,
    /// The translator between them forgets all it knew.
    Nat,
}

impl Disruption {
    fn name(self) -> String {
        match self {
            Disruption::Outage(span) => format!("{} s without a network", span.as_secs()),
            Disruption::Address => "another address".to_owned(),
            Disruption::Nat => "a translator that forgets".to_owned(),
        }
    }

    fn lasts(self) -> Duration {
        match self {
            Disruption::Outage(span) => span,
            Disruption::Address | Disruption::Nat => Duration::ZERO,
        }
    }
}

/// How a copy went on.
#[derive(Default)]
pub(super) struct Track {
    /// When the disruption was over, since the copy began.
    over: Option<Duration>,
    /// Seconds, and megabytes that had arrived.
    points: Vec<(f64, f64)>,
    arrived: u64,
    /// When there was more for the last time.
    grew: Duration,
    /// The longest time without more that the disruption can have caused: from when to when.
    stall: Option<(Duration, Duration)>,
    is_whole: bool,
    span: Duration,
}

impl Track {
    fn look(&mut self, look: Look) {
        if look.arrived == self.arrived {
            return;
        }
        self.pause(look.since);
        (self.arrived, self.grew) = (look.arrived, look.since);
        let at = look.since.as_secs_f64();
        if self.points.last().is_none_or(|(before, _)| at - before >= POINT_S) {
            self.points.push((at, look.arrived as f64 / 1e6));
        }
    }

    /// Notes the time since there was more, if it is the longest.
    fn pause(&mut self, until: Duration) {
        let counts = self.over.is_some_and(|over| until >= over && self.grew < over + SECOND);
        if counts && self.stall.is_none_or(|(from, to)| until - self.grew > to - from) {
            self.stall = Some((self.grew, until));
        }
    }

    /// No more comes.
    fn end(&mut self, span: Duration, ending: &Ending) {
        (self.span, self.is_whole) = (span, *ending == Ending::Whole);
        if !self.is_whole {
            self.pause(span);
        }
    }

    /// How long after the disruption's end it was back; nothing if that never was.
    fn back(&self) -> Option<f64> {
        let (from, to) = self.stall.filter(|(_, to)| self.is_whole || *to < self.span)?;
        Some((to - from.max(self.over?)).as_secs_f64())
    }

    fn longest(&self) -> Option<Duration> {
        self.stall.map(|(from, to)| to - from)
    }
}

fn row(Case { disruption, copier }: &Case, all: &[Track]) -> Vec<Value> {
    let back: Vec<f64> = all.iter().filter_map(Track::back).collect();
    let whole = all.iter().filter(|track| track.is_whole).count();
    let worst = back.iter().copied().fold(0.0, f64::max);
    let stall = all.iter().filter_map(Track::longest).max();
    let spans: Vec<f64> = all.iter().map(|track| track.span.as_secs_f64()).collect();
    let verdict = match copier.is_rove() {
        false => Value::Null,
        true if back.len() == all.len() && worst <= BACK_S => json!("holds"),
        true => json!("too late"),
    };
    vec![
        json!(disruption.name()),
        json!(copier.name),
        json!(all.len()),
        json!(format!("{whole} of {}", all.len())),
        Summary::of(&back).map_or(Value::Null, |back| hundredths(back.median)),
        if back.is_empty() { Value::Null } else { hundredths(worst) },
        stall.map_or(Value::Null, |stall| hundredths(stall.as_secs_f64())),
        Summary::of(&spans).map_or(Value::Null, |spans| tenths(spans.median)),
        verdict,
    ]
}

const COLUMNS: &str =
    "trouble | program | n | complete | back, s | worst, s | longest stall, s | all, s | verdict";

/// When the disruption comes: in the middle of a copy.
const WHEN: Duration = Duration::from_millis(1_500);
/// Within which rove must be back.
const BACK_S: f64 = 0.5;
const SECOND: Duration = Duration::from_secs(1);
/// Between points of the figure.
const POINT_S: f64 = 0.1;

/// The parts of the lab that its numbers come from, besides those of all experiments on real programs.
const DEPENDS: &[&str] = &[
    "crates/lab/src/real/bulk.rs",
    "crates/lab/src/real/bulk/copier.rs",
    "crates/lab/src/real/bulk/copy.rs",
    "crates/lab/src/real/bulk/outages.rs",
    "crates/lab/src/real/ping.rs",
];
