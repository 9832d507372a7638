//! `rove-lab bulk files`: copies many small files over a long path, where round trips limit the speed.

use std::io;
use std::time::Duration;

use serde_json::json;

use super::super::RealFlags;
use super::super::contender::{Ssh, usual};
use super::super::experiment::{Body, Experiment, Measured, Title};
use super::super::sessions::OverLink;
use super::copier::{Copier, Load, Pipe, What, only};
use super::copy::{Copied, Ending, copy};
use crate::experiments::report::{Table, hundredths, paragraphs, tenths};
use crate::plot::{Axis, Curve, Figure, Panel};

/// Copies of a directory of small files over one path.
pub(super) struct Files {
    limit: Duration,
    /// How many files scp copies. It takes some round trips for each: all of them would take a day.
    few: u32,
    /// How many the others copy.
    many: u32,
    pipe: Pipe,
    copiers: Vec<Copier>,
}

impl Files {
    /// # Errors
    /// If --only leaves no program.
    pub(super) fn new(flags: &RealFlags) -> io::Result<Files> {
        let (many, few) = flags.setting().pick((200, 20), (FILES, 200));
        let pipe_of =
            |name: &str, what| Copier { name: name.to_owned(), ssh: Ssh::over(usual()), what };
        let all = vec![
            Copier { name: "scp -r".to_owned(), ..Copier::scp(usual()) },
            pipe_of("tar, ssh, tar", What::SshPipe),
            Copier { name: "rove cp -r".to_owned(), ..Copier::rove() },
            pipe_of("tar, rove exec, tar", What::RovePipe),
        ];
        let (limit, pipe) = (flags.span(30, 600), Pipe::clean(200, 100));
        Ok(Files { limit, few, many, pipe, copiers: only(flags, all)? })
    }
}

impl Experiment for Files {
    type Case = Copier;
    type Sample = Copied;

    fn title(&self) -> Title {
        Title::new("bulk files", "bulk-files", "Many small files over a long path", DEPENDS)
    }

    fn cases(&self) -> Vec<Copier> {
        self.copiers.clone()
    }

    fn times(&self, _: &RealFlags, _: &Copier) -> u32 {
        1
    }

    fn measure(&self, copier: &Copier, seed: u64) -> io::Result<OverLink<Copied>> {
        let files = if is_scp(copier) { self.few } else { self.many };
        let load = Load::Tree { files, bytes: BYTES };
        copy(copier, load, Some(&self.pipe.scenario(seed)), self.limit, seed)
    }

    fn report(&self, results: &[Measured<Copier, Copied>]) -> Body {
        let (table, curves) = table(self.pipe, results);
        let panel = Panel::new("measured, and scaled", Axis::log("files"), Axis::log("s"), curves);
        Body { tables: vec![table], figure: Figure::new("Many small files", [panel]) }
    }

    fn prose(&self) -> Vec<String> {
        let text = include_str!("../text/bulk-files.md");
        paragraphs(text, &[("few", &self.few), ("files", &FILES)])
    }
}

fn is_scp(copier: &Copier) -> bool {
    matches!(copier.what, What::Scp(_))
}

/// A row and a curve for each program, compared with scp.
fn table(pipe: Pipe, results: &[Measured<Copier, Copied>]) -> (Table, Vec<Curve>) {
    let found =
        || results.iter().flat_map(|one| one.samples.iter().map(|copied| (&one.case, copied)));
    let theirs = found().find(|(copier, _)| is_scp(copier));
    let theirs = theirs.map(|(_, copied)| each(copied));
    let mut table = Table::new(format!("files of {BYTES} octets over {}", pipe.name()), 1, COLUMNS);
    let mut curves = Vec::new();
    for (copier, copied) in found() {
        let cpu = copied.cpu_per_gigabyte();
        let times = theirs.map(|theirs| theirs / each(copied));
        let verdict = times.filter(|_| copier.what == What::RoveCopy);
        let verdict = verdict.map(|times| if times >= 10.0 { "holds" } else { "too slow" });
        let (files, seconds) = (copied.bytes / BYTES, copied.span.as_secs_f64());
        let points = [(files as f64, seconds), (f64::from(FILES), each(copied) * f64::from(FILES))];
        curves.push(Curve::solid(&copier.name, points));
        table.rows.push(vec![
            json!(copier.name),
            json!(files),
            json!(if copied.ending == Ending::Whole { "yes" } else { "no" }),
            tenths(seconds),
            tenths(1.0 / each(copied)),
            tenths(each(copied) * f64::from(FILES)),
            times.map_or(json!(null), tenths),
            json!(cpu.map(|[near, _]| hundredths(near))),
            json!(cpu.map(|[_, far]| hundredths(far))),
            json!(verdict),
        ]);
    }
    (table, curves)
}

/// Seconds for each file.
fn each(copied: &Copied) -> f64 {
    copied.span.max(Duration::from_millis(1)).as_secs_f64() / (copied.bytes / BYTES).max(1) as f64
}

const COLUMNS: &str = "program | files | complete | s | files a second | s for 100000 | \
    times as fast as scp | near CPU, s/GB | far CPU, s/GB | verdict";

/// The number of files for which the bar is stated.
const FILES: u32 = 100_000;
const BYTES: u64 = 4_096;

/// The parts of the lab that its numbers come from, besides those of all experiments on real programs.
const DEPENDS: &[&str] = &[
    "crates/lab/src/real/bulk.rs",
    "crates/lab/src/real/bulk/copier.rs",
    "crates/lab/src/real/bulk/copy.rs",
    "crates/lab/src/real/bulk/tree.rs",
    "crates/lab/src/real/ping.rs",
];
