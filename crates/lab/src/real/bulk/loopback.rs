//! `rove-lab bulk loopback`: copies within this machine, where only the programs limit the speed.

use std::io;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::RealFlags;
use super::super::contender::{Ssh, usual};
use super::super::experiment::{Body, Experiment, Measured, Title};
use super::super::sessions::OverLink;
use super::copier::{Copier, GCM, Load, What, only};
use super::copy::{Copied, Ending, copy, cpu_medians};
use crate::experiments::report::{Table, hundredths, paragraphs, tenths};
use crate::net::lateness::Late;
use crate::plot::{Axis, Curve, Figure, Panel};
use crate::stats::Summary;

/// Copies of one file within this machine.
pub(super) struct Loopback {
    load: Load,
    copiers: Vec<Copier>,
}

impl Loopback {
    /// # Errors
    /// If --only leaves no program.
    pub(super) fn new(flags: &RealFlags) -> io::Result<Loopback> {
        let ssh =
            |name: &str, what| Copier { name: name.to_owned(), ssh: Ssh::over(usual()), what };
        let mut all = vec![
            ssh("scp, aes128-gcm", What::Scp(GCM)),
            ssh("ssh, a pipe", What::SshPipe),
            Copier::rove(),
            Copier::rove_pipe(),
        ];
        all.extend(Copier::hpn(usual()));
        let load = Load::File { bytes: flags.setting().pick(20, 1_000) << 20 };
        Ok(Loopback { load, copiers: only(flags, all)? })
    }
}

impl Experiment for Loopback {
    type Case = Copier;
    type Sample = Copied;

    fn title(&self) -> Title {
        Title::new("bulk loopback", "bulk-loopback", "Files within one machine", DEPENDS)
    }

    fn cases(&self) -> Vec<Copier> {
        self.copiers.clone()
    }

    fn times(&self, flags: &RealFlags, _: &Copier) -> u32 {
        flags.times(1, 5)
    }

    fn measure(&self, copier: &Copier, seed: u64) -> io::Result<OverLink<Copied>> {
        let OverLink { found, .. } = copy(copier, self.load, None, LIMIT, seed)?;
        match found.ending {
            // There is no link that could be late.
            Ending::Whole => Ok(OverLink { found, late: Late::default() }),
            _ => Err(io::Error::other(format!("not over after {LIMIT:?}"))),
        }
    }

    fn report(&self, results: &[Measured<Copier, Copied>]) -> Body {
        let (mut table, curves) = table(self.load, results);
        judge(&mut table, &self.copiers);
        let x = Axis::linear("processor time of both ends, s/GB");
        let panel = Panel::new("loopback", x, Axis::linear("Mbit/s"), curves);
        Body { tables: vec![table], figure: Figure::new("Goodput, and what it costs", [panel]) }
    }

    fn prose(&self) -> Vec<String> {
        paragraphs(include_str!("../text/bulk-loopback.md"), &[])
    }
}

/// A row and a point for each program.
fn table(load: Load, results: &[Measured<Copier, Copied>]) -> (Table, Vec<Curve>) {
    let mut table = Table::new(format!("{load} of random data within this machine"), 1, COLUMNS);
    let mut curves = Vec::new();
    for Measured { case: copier, samples, .. } in results {
        let mbit = samples.iter().map(Copied::mbit);
        let Some(mbit) = Summary::of(&mbit.collect::<Vec<f64>>()) else { continue };
        let [near, far, both] = cpu_medians(samples);
        curves.push(Curve::solid(&copier.name, both.map(|both| (both, mbit.median))));
        table.rows.push(vec![
            json!(copier.name),
            json!(mbit.n),
            tenths(mbit.median),
            tenths(mbit.interval.0),
            tenths(mbit.interval.1),
            json!(near.map(hundredths)),
            json!(far.map(hundredths)),
            json!(both.map(hundredths)),
            Value::Null,
        ]);
    }
    (table, curves)
}

/// Adds the verdicts to rove's rows, by comparison with ssh's.
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

const COLUMNS: &str =
    "program | n | Mbit/s | 95 % from | to | near CPU, s/GB | far CPU, s/GB | both, s/GB | verdict";

/// Longer than any copy takes that makes progress.
const LIMIT: Duration = Duration::from_secs(120);

/// The parts of the lab that its numbers come from, besides those of all experiments on real programs.
const DEPENDS: &[&str] = &[
    "crates/lab/src/real/bulk.rs",
    "crates/lab/src/real/bulk/copier.rs",
    "crates/lab/src/real/bulk/copy.rs",
    "crates/lab/src/real/bulk/loopback.rs",
    "crates/lab/src/real/ping.rs",
];
