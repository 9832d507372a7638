//! The results of experiments on real programs: tables with intervals, figures, and the command, versions and links
//! that made them.

use std::fs;
use std::io;
use std::process::Command;

use serde_json::{Value, json};

use super::RealFlags;
use crate::demo::rove_program;
use crate::experiments::report::{Report, Table, hundredths, tenths};
use crate::net::lateness::Late;
use crate::plot::{Axis, Curve, Figure, Panel, Stroke};
use crate::provenance;
use crate::stats::{Summary, share};

/// The samples of one program in one setting.
#[derive(Clone, Debug)]
pub(crate) struct Samples {
    /// Which setting.
    pub path: String,
    /// Which program.
    pub program: String,
    /// In the unit of the table.
    pub values: Vec<f64>,
    /// Of the values, those that only say "no less than this".
    pub unseen: usize,
    /// How late the link was.
    pub late: Late,
}

/// Columns of a table of samples.
pub(crate) const COLUMNS: &str = "path | program | n | median | 95 % from | to | again from | \
    again to | mean | mean from | mean to | σ | p95 | p99 | unseen";

/// Explains the columns of [`table`].
pub(crate) const AGAIN: &str = "Intervals are by bootstrap, 95 % for median and mean; in 99 of 100 cases the median of a second \
     run of the same command lies between \"again from\" and \"to\" (`rove-lab again` tells).";

/// Samples of one path and program together, in the order in which they first come.
pub(crate) fn joined(all: impl IntoIterator<Item = Samples>) -> Vec<Samples> {
    let mut joined: Vec<Samples> = Vec::new();
    for samples in all {
        let same =
            |old: &&mut Samples| (&old.path, &old.program) == (&samples.path, &samples.program);
        match joined.iter_mut().find(same) {
            None => joined.push(samples),
            Some(old) => {
                old.values.extend(samples.values);
                old.unseen += samples.unseen;
                old.late = std::mem::take(&mut old.late).and(&samples.late);
            }
        }
    }
    joined
}

/// Latencies compared with ssh's and mosh's over the same path.
pub(crate) fn against(all: &[Samples]) -> Table {
    let caption = "against ssh's quickest median and mosh's numbers on the same path";
    let columns = "path | program | median beyond ssh's, ms | median, % of mosh's | \
        mean, % of mosh's | 95 % from | to";
    let mut table = Table::new(caption, 2, columns);
    let rivals = |samples: &&Samples| !samples.program.starts_with("ssh");
    let middle = |samples: &Samples| Summary::of(&samples.values).map(|summary| summary.median);
    for samples in all.iter().filter(rivals) {
        let others = || all.iter().filter(|other| other.path == samples.path);
        let Some(median) = middle(samples) else { continue };
        let ssh = others().filter(|other| !rivals(other)).filter_map(middle).min_by(f64::total_cmp);
        let mosh = others().find(|other| other.program == "mosh" && samples.program != "mosh");
        if ssh.is_none() && mosh.is_none() {
            continue;
        }
        let share = mosh.and_then(|mosh| share(&samples.values, &mosh.values));
        let percent = |share: Option<f64>| share.map_or(Value::Null, |share| tenths(100.0 * share));
        table.rows.push(vec![
            json!(samples.path),
            json!(samples.program),
            ssh.map_or(Value::Null, |ssh| tenths(median - ssh)),
            percent(mosh.and_then(middle).map(|mosh| median / mosh)),
            percent(share.map(|share| share.0)),
            percent(share.map(|share| share.1.0)),
            percent(share.map(|share| share.1.1)),
        ]);
    }
    table
}

/// A table of times in ms.
pub(crate) fn table(caption: &str, all: &[Samples]) -> Table {
    samples(caption, all, RESOLUTION)
}

/// A table of numbers that are exact.
pub(crate) fn counts(caption: &str, all: &[Samples]) -> Table {
    samples(caption, all, 0.0)
}

fn samples(caption: &str, all: &[Samples], resolution: f64) -> Table {
    let mut table = Table::new(caption, 2, COLUMNS);
    for samples in all {
        let Some(summary) = Summary::of(&samples.values) else { continue };
        // Fewer samples do not predict a second run.
        let again = |ms: f64| if summary.n < AGAIN_MIN { Value::Null } else { tenths(ms.max(0.0)) };
        let valid = if samples.late.is_valid() { "" } else { " (INVALID: the link was late)" };
        table.rows.push(vec![
            json!(format!("{}{valid}", samples.path)),
            json!(samples.program),
            json!(summary.n),
            tenths(summary.median),
            tenths(summary.interval.0),
            tenths(summary.interval.1),
            again(summary.again.0 - resolution),
            again(summary.again.1 + resolution),
            tenths(summary.mean),
            tenths(summary.mean_interval.0),
            tenths(summary.mean_interval.1),
            tenths(summary.sigma),
            tenths(summary.p95),
            tenths(summary.p99),
            json!(samples.unseen),
        ]);
    }
    table
}

/// Distributions as curves: the share of values up to each.
pub(crate) fn distribution(name: &str, values: &[f64]) -> Curve {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len().max(1) as f64;
    let step = sorted.len().div_ceil(POINTS_MAX).max(1);
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (place, value) in sorted.iter().enumerate() {
        if place % step == 0 || place + 1 == sorted.len() {
            points.push((value.max(0.1), (place + 1) as f64 / n));
        }
    }
    Curve { name: name.to_owned(), points, stroke: Stroke::Steps }
}

/// A panel of distributions for each path.
pub(crate) fn distributions(all: &[Samples], x: &str, y: &str) -> Vec<Panel> {
    let mut panels: Vec<Panel> = Vec::new();
    for samples in all {
        let curve = distribution(&samples.program, &samples.values);
        match panels.iter_mut().find(|panel| panel.title == samples.path) {
            Some(panel) => panel.curves.push(curve),
            None => {
                let (x, y) = (Axis::log(x), Axis::linear(y));
                panels.push(Panel::new(samples.path.clone(), x, y, vec![curve]));
            }
        }
    }
    panels
}

/// An experiment that is over.
pub(crate) struct Outcome {
    /// Its command.
    pub name: &'static str,
    /// The name of its files.
    pub file: &'static str,
    /// The title.
    pub title: String,
    /// Explanations for readers.
    pub notes: Vec<String>,
    /// The numbers.
    pub tables: Vec<Table>,
    /// The picture.
    pub figure: Figure,
    /// The files and directories of its own that the numbers come from.
    pub depends: &'static [&'static str],
    /// How many times the cases were measured: the one of which there are fewest samples, and the one of most.
    pub times: (usize, usize),
    /// The worst of its links.
    pub late: Late,
    /// Failures, one line each.
    pub failures: Vec<String>,
    /// Why the numbers mean nothing, one line each.
    pub doubts: Vec<String>,
}

impl Outcome {
    /// Writes it with its command, versions and links, and prints it. The exit status: 1 if something failed, a
    /// link was late, or the numbers mean nothing.
    ///
    /// # Errors
    /// Errors of the file system.
    pub(crate) fn write(self, flags: &RealFlags) -> io::Result<i32> {
        let setting = flags.setting();
        let name = format!("{}{}", self.file, setting.suffix());
        let mut versions = versions();
        if let Some(root) = &flags.openssh {
            let ssh = root.join("usr/bin/ssh");
            let found = version(&ssh.to_string_lossy(), "-V");
            versions["openssh"] = json!(found.map(|said| format!("{said} of {}", root.display())));
        }
        let mut notes = self.notes;
        let late = self.late;
        let (least, most) = self.times;
        let times = if least == most { least.to_string() } else { format!("{least} to {most}") };
        notes.push(format!("Measurements of each case: {times}."));
        notes.push(format!("Links delivered {} packets, {late}.", late.count()));
        let told: Vec<String> = versions
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(name, version)| Some(format!("{name}: {}", version.as_str()?)))
            .collect();
        notes.push(format!("Versions: {}. Seed {}.", told.join("; "), flags.seed));
        for failure in &self.failures {
            notes.push(format!("Failed: {failure}"));
        }
        for doubt in &self.doubts {
            notes.push(format!("INVALID: {doubt}"));
        }
        let valid = late.is_valid() && self.doubts.is_empty();
        let tables = self.tables.into_iter().filter(|table| !table.rows.is_empty()).collect();
        let report = Report {
            name: self.file,
            title: self.title,
            command: provenance::command(self.name),
            depends: [REAL, self.depends].concat(),
            recorded: None,
            notes,
            tables,
            figure: self.figure,
        };
        let mut value = report.to_json();
        value["seed"] = json!(flags.seed);
        value["n"] = json!({ "least": self.times.0, "most": self.times.1 });
        value["versions"] = versions;
        value["valid"] = json!(valid);
        value["notes"] = json!(report.notes);
        let late_ms = |span: std::time::Duration| hundredths(span.as_secs_f64() * 1e3);
        value["link_late_ms"] = json!({ "p50": late_ms(late.p50()), "p99": late_ms(late.p99()), "max": late_ms(late.max()) });
        report.write_as(&flags.results, &name, value)?;
        Ok(i32::from(!self.failures.is_empty() || !valid))
    }
}

/// Of all that was measured.
pub(crate) fn versions() -> Value {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    json!({
        "rove": rove_program().ok().and_then(|rove| version(&rove.to_string_lossy(), "--version")),
        "mosh": version("mosh-server", "--version"),
        "ssh": version("ssh", "-V"),
        "linux": kernel.trim(),
    })
}

/// The first line that a program says of its version.
fn version(program: &str, flag: &str) -> Option<String> {
    let output = Command::new(program).arg(flag).output().ok()?;
    // ssh tells its version on standard error.
    let text = [output.stdout, output.stderr].concat();
    Some(String::from_utf8_lossy(&text).lines().next()?.to_owned())
}

/// What the numbers of all experiments on real programs come from.
pub(crate) const REAL: &[&str] = &[
    "Cargo.lock",
    "crates/lab/src/link",
    "crates/lab/src/link.rs",
    "crates/lab/src/net",
    "crates/lab/src/net.rs",
    "crates/lab/src/real/contender.rs",
    "crates/lab/src/real/experiment.rs",
    "crates/lab/src/real/outcome.rs",
    "crates/lab/src/real/sessions.rs",
    "crates/lab/src/real/stage.rs",
    "crates/lab/src/real/typing.rs",
    "crates/lab/src/stats.rs",
    "crates/rove/src",
    "crates/session/src",
    "crates/ssp/src",
    "crates/streams/src",
    "crates/term/src",
];

/// The resolution of times in ms: a valid link may be this late. The interval for a second run is no narrower.
const RESOLUTION: f64 = 1.0;

/// The fewest samples for which an interval for a second run's median is given.
const AGAIN_MIN: usize = 10;

/// Points of a distribution's curve: more than pixels.
const POINTS_MAX: usize = 400;
