//! `rove-lab bulk loopback`: copies within this machine, where nothing but the programs is the brake.

use std::io;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::RealFlags;
use super::super::contender::{Ssh, usual};
use super::super::outcome::Outcome;
use super::copier::{Copier, GCM, Load, What, notes, only};
use super::copy::{Copied, Ending, copy};
use crate::experiments::report::{Table, hundredths, tenths};
use crate::net::lateness::Late;
use crate::plot::{Axis, Curve, Figure, Panel, Stroke};
use crate::stats::Summary;

/// Runs it.
///
/// # Errors
/// If there can be no networks here, or the results cannot be written.
pub(super) fn run(flags: &RealFlags) -> io::Result<i32> {
    let setting = flags.setting();
    let load = Load::File { bytes: setting.pick(20, 1_000) << 20 };
    let ssh = |name: &str, what| Copier { name: name.to_owned(), ssh: Ssh::over(usual()), what };
    let mut all = vec![
        ssh("scp, aes128-gcm", What::Scp(GCM)),
        ssh("ssh, a pipe", What::SshPipe),
        Copier::rove(),
        Copier::rove_pipe(),
    ];
    all.extend(Copier::hpn(usual()));
    let copiers = only(flags, all)?;
    let (mut found, mut failures) = (Vec::new(), Vec::new());
    // In turns: what else the machine does falls on all of them.
    for seed in flags.seed..flags.seed + u64::from(flags.times(1, 5)) {
        for copier in &copiers {
            match copy(copier, load, None, LIMIT, seed) {
                Ok(copied) if copied.ending == Ending::Whole => found.push((copier, copied)),
                Ok(_) => failures.push(format!("{}: not over after {LIMIT:?}", copier.name)),
                Err(error) => failures.push(format!("{}: {error}", copier.name)),
            }
        }
    }
    let (mut table, curves) = table(load, &copiers, &found);
    judge(&mut table, &copiers);
    let mut notes = notes(setting);
    notes.insert(
        0,
        "Both ends in one network, over its loopback device. Medians, with 95 % intervals by bootstrap. The verdict holds \
         rove's copy against scp with aes128-gcm, and its pipe against ssh's with the cipher that ssh takes by itself: no \
         slower, at no more processor time. rove asks the disk to have the file before it says so, scp does not."
            .to_owned(),
    );
    let panel = Panel {
        title: "loopback".to_owned(),
        x: Axis::linear("processor time of both ends, s/GB"),
        y: Axis::linear("Mbit/s"),
        curves,
    };
    Outcome {
        name: "bulk loopback",
        file: "bulk-loopback",
        title: "Files within one machine".to_owned(),
        notes,
        tables: vec![table],
        figure: Figure { title: "Goodput, and what it costs".to_owned(), panels: vec![panel] },
        late: Late::default(),
        failures,
    }
    .write(flags)
}

/// A row and a point for each program.
fn table(load: Load, copiers: &[Copier], found: &[(&Copier, Copied)]) -> (Table, Vec<Curve>) {
    let mut table = Table::new(format!("{load} of random data within this machine"), 1, &COLUMNS);
    let mut curves = Vec::new();
    for copier in copiers {
        let of = |number: fn(&Copied) -> f64| {
            let ours = found.iter().filter(|(whose, _)| whose.name == copier.name);
            Summary::of(&ours.map(|(_, copied)| number(copied)).collect::<Vec<f64>>())
        };
        let cpu = |side: fn([f64; 2]) -> f64| {
            let ours = found.iter().filter(|(whose, _)| whose.name == copier.name);
            let each = ours.filter_map(|(_, copied)| copied.cpu_per_gigabyte().map(side));
            Summary::of(&each.collect::<Vec<f64>>()).map(|cpu| cpu.median)
        };
        let Some(mbit) = of(Copied::mbit) else { continue };
        let both = cpu(|[near, far]| near + far);
        curves.push(Curve {
            name: copier.name.clone(),
            points: both.map(|both| (both, mbit.median)).into_iter().collect(),
            stroke: Stroke::Solid,
        });
        table.rows.push(vec![
            json!(copier.name),
            json!(mbit.n),
            tenths(mbit.median),
            tenths(mbit.interval.0),
            tenths(mbit.interval.1),
            json!(cpu(|[near, _]| near).map(hundredths)),
            json!(cpu(|[_, far]| far).map(hundredths)),
            json!(both.map(hundredths)),
            Value::Null,
        ]);
    }
    (table, curves)
}

/// Says of rove's rows whether they hold against ssh's.
fn judge(table: &mut Table, copiers: &[Copier]) {
    let name = |what| copiers.iter().find(|copier| copier.what == what).map(|copier| &copier.name);
    for (ours, theirs) in [(What::RoveCopy, What::Scp(GCM)), (What::RovePipe, What::SshPipe)] {
        let (Some(ours), Some(theirs)) = (name(ours), name(theirs)) else { continue };
        let of = |name: &str, column: &str| table.number(&[json!(name)], column);
        let more = |column: &str| Some(of(ours, column)? - of(theirs, column)?);
        let verdict = match (more("Mbit/s"), more("both, s/GB")) {
            (Some(speed), Some(cost)) if speed >= 0.0 && cost <= 0.0 => "holds",
            (Some(speed), Some(cost)) if speed < 0.0 && cost > 0.0 => "slower, costs more",
            (Some(speed), Some(_)) if speed < 0.0 => "slower",
            (Some(_), Some(_)) => "costs more",
            _ => continue,
        };
        let row = table.rows.iter_mut().find(|row| row[0] == json!(ours));
        row.into_iter().filter_map(|row| row.last_mut()).for_each(|cell| *cell = json!(verdict));
    }
}

const COLUMNS: [&str; 9] = [
    "program",
    "n",
    "Mbit/s",
    "95 % from",
    "to",
    "near CPU, s/GB",
    "far CPU, s/GB",
    "both, s/GB",
    "verdict",
];

/// More than any copy takes that goes on at all.
const LIMIT: Duration = Duration::from_secs(120);
