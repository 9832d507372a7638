//! `rove-lab bulk files`: many small files over a long path, where round trips are the brake.

use std::io;
use std::time::Duration;

use serde_json::json;

use super::super::RealFlags;
use super::super::contender::{Ssh, usual};
use super::super::outcome::Outcome;
use super::copier::{Copier, Load, Pipe, What, notes, only};
use super::copy::{Copied, Ending, copy};
use crate::experiments::report::{Table, hundredths, tenths};
use crate::net::lateness::Late;
use crate::plot::{Axis, Curve, Figure, Panel, Stroke};

/// Runs it.
///
/// # Errors
/// If there can be no links here, or the results cannot be written.
pub(super) fn run(flags: &RealFlags) -> io::Result<i32> {
    let setting = flags.setting();
    let limit = flags.span(30, 600);
    let (many, few) = setting.pick((200, 20), (FILES, 200));
    let pipe = Pipe::clean(200, 100);
    let pipe_of =
        |name: &str, what| Copier { name: name.to_owned(), ssh: Ssh::over(usual()), what };
    let scp = Copier { name: "scp -r".to_owned(), ..Copier::scp(usual()) };
    let all = vec![
        scp.clone(),
        pipe_of("tar, ssh, tar", What::SshPipe),
        Copier { name: "rove cp -r".to_owned(), ..Copier::rove() },
        pipe_of("tar, rove exec, tar", What::RovePipe),
    ];
    let (mut found, mut failures, mut late) = (Vec::new(), Vec::new(), Late::default());
    for copier in only(flags, all)? {
        // It takes some round trips for each file: all of them would take a day.
        let files = if copier.what == scp.what { few } else { many };
        let load = Load::Tree { files, bytes: BYTES };
        match copy(&copier, load, Some(&pipe.scenario(flags.seed)), limit, flags.seed) {
            Ok(copied) => {
                late = late.and(&copied.late);
                found.push((copier, copied));
            }
            Err(error) => failures.push(format!("{}: {error}", copier.name)),
        }
    }
    let (table, curves) = table(pipe, scp.what, &found);
    let mut notes = notes(setting);
    notes.insert(
        0,
        format!(
            "scp was measured on {few} files only, and the time for {FILES} is that for one times {FILES}, as is that of all \
             that did not copy them all: \"files\" says how many were. A thousand lie in each directory. The bar is a tenth \
             of scp's time."
        ),
    );
    let panel = Panel {
        title: "measured, and scaled".to_owned(),
        x: Axis::log("files"),
        y: Axis::log("s"),
        curves,
    };
    Outcome {
        name: "bulk files",
        file: "bulk-files",
        title: "Many small files over a long path".to_owned(),
        notes,
        tables: vec![table],
        figure: Figure { title: "Many small files".to_owned(), panels: vec![panel] },
        late,
        failures,
    }
    .write(flags)
}

/// A row and a curve for each program, held against this one.
fn table(pipe: Pipe, scp: What, found: &[(Copier, Copied)]) -> (Table, Vec<Curve>) {
    let theirs = found.iter().find(|(copier, _)| copier.what == scp);
    let theirs = theirs.map(|(_, copied)| each(copied));
    let mut table =
        Table::new(format!("files of {BYTES} octets over {}", pipe.name()), 1, &COLUMNS);
    let mut curves = Vec::new();
    for (copier, copied) in found {
        let cpu = copied.cpu_per_gigabyte();
        let times = theirs.map(|theirs| theirs / each(copied));
        let verdict = times.filter(|_| copier.what == What::RoveCopy);
        let verdict = verdict.map(|times| if times >= 10.0 { "holds" } else { "too slow" });
        let (files, seconds) = (copied.bytes / BYTES, copied.span.as_secs_f64());
        let points =
            vec![(files as f64, seconds), (f64::from(FILES), each(copied) * f64::from(FILES))];
        curves.push(Curve { name: copier.name.clone(), points, stroke: Stroke::Solid });
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

const COLUMNS: [&str; 10] = [
    "program",
    "files",
    "complete",
    "s",
    "files a second",
    "s for 100000",
    "times as fast as scp",
    "near CPU, s/GB",
    "far CPU, s/GB",
    "verdict",
];

/// What the bar speaks of.
const FILES: u32 = 100_000;
const BYTES: u64 = 4_096;
