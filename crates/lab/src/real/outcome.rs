//! What experiments on real programs leave behind: tables with intervals, figures, and where they came from.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::{RealFlags, Setting};
use crate::demo::rove_program;
use crate::experiments::report::{Report, Table, hundredths, tenths};
use crate::net::lateness::Late;
use crate::plot::{Curve, Figure, Stroke};
use crate::stats::Summary;

/// The samples of one program in one setting.
#[derive(Clone, Debug)]
pub struct Samples {
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
pub const COLUMNS: [&str; 13] = [
    "path",
    "program",
    "n",
    "median",
    "95 % from",
    "to",
    "mean",
    "mean from",
    "mean to",
    "σ",
    "p95",
    "p99",
    "unseen",
];

/// A table of samples.
pub fn table(caption: &str, all: &[Samples]) -> Table {
    let mut table = Table::new(caption, 2, &COLUMNS);
    for samples in all {
        let Some(summary) = Summary::of(&samples.values) else { continue };
        let valid = if samples.late.is_valid() { "" } else { " (INVALID: the link was late)" };
        table.rows.push(vec![
            json!(format!("{}{valid}", samples.path)),
            json!(samples.program),
            json!(summary.n),
            tenths(summary.median),
            tenths(summary.interval.0),
            tenths(summary.interval.1),
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

/// How late the links of these samples were, together.
pub fn late(all: &[Samples]) -> Late {
    all.iter().fold(Late::default(), |sum, samples| sum.worse(samples.late))
}

/// Distributions as curves: the share of values up to each.
pub fn distribution(name: &str, values: &[f64]) -> Curve {
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

/// An experiment that is over.
pub struct Outcome {
    /// Its command.
    pub name: &'static str,
    /// The name of its files.
    pub file: &'static str,
    /// What it shows.
    pub title: String,
    /// What has to be known to read it.
    pub notes: Vec<String>,
    /// The numbers.
    pub tables: Vec<Table>,
    /// The picture.
    pub figure: Figure,
    /// The worst of its links.
    pub late: Late,
    /// What did not work, one line each.
    pub failures: Vec<String>,
}

impl Outcome {
    /// Writes it, with where it came from, and prints it. The exit status: 1 if something failed or a link was late.
    ///
    /// # Errors
    /// What the system says.
    pub fn write(self, flags: &RealFlags) -> io::Result<i32> {
        let setting = flags.setting();
        let name = format!("{}{}", self.file, setting.suffix());
        let mut command = format!("rove-lab {} --seed {}", self.name, flags.seed);
        if setting == Setting::Quick {
            command += " --quick";
        }
        if let Some(seconds) = flags.seconds {
            command += &format!(" --seconds {seconds}");
        }
        if let Some(only) = &flags.only {
            command += &format!(" --only '{only}'");
        }
        for (flag, set) in [
            ("--openssh", flags.openssh.is_some()),
            ("--cellular", flags.cellular.is_some()),
            ("--trace", !flags.traces.is_empty()),
        ] {
            if set {
                command += &format!(" {flag} ...");
            }
        }
        let versions = versions();
        let mut notes = self.notes;
        let late = self.late;
        notes.push(format!("Links delivered {} packets, {late}.", late.count));
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
        let valid = late.is_valid();
        let report = Report {
            name: self.file,
            title: self.title,
            command,
            notes,
            tables: self.tables,
            figure: self.figure,
        };
        let mut value = report.to_json();
        value["seed"] = json!(flags.seed);
        value["versions"] = versions;
        value["valid"] = json!(valid);
        value["notes"] = json!(report.notes);
        let late_ms = |span: std::time::Duration| hundredths(span.as_secs_f64() * 1e3);
        value["link_late_ms"] =
            json!({ "p50": late_ms(late.p50), "p99": late_ms(late.p99), "max": late_ms(late.max) });
        fs::create_dir_all(&flags.results)?;
        let path = |ending: &str| -> PathBuf { flags.results.join(format!("{name}.{ending}")) };
        let text = serde_json::to_string_pretty(&value).map_err(io::Error::other)?;
        fs::write(path("json"), text + "\n")?;
        fs::write(path("svg"), report.figure.to_svg())?;
        let markdown = report.to_markdown(&name);
        fs::write(path("md"), &markdown)?;
        print!("{markdown}");
        Ok(i32::from(!self.failures.is_empty() || !valid))
    }
}

/// Of all that was measured.
pub fn versions() -> Value {
    let line = |program: &str, flag: &str| {
        let output = Command::new(program).arg(flag).output().ok()?;
        // ssh tells its version on standard error.
        let text = [output.stdout, output.stderr].concat();
        Some(String::from_utf8_lossy(&text).lines().next()?.to_owned())
    };
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    json!({
        "rove": rove_program().ok().and_then(|rove| line(&rove.to_string_lossy(), "--version")),
        "mosh": line("mosh-server", "--version"),
        "ssh": line("ssh", "-V"),
        "linux": kernel.trim(),
    })
}

/// Points of a distribution's curve: more than pixels.
const POINTS_MAX: usize = 400;
