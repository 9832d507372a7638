//! `rove-lab bulk ciphers`: the table of HPN-SSH's page, with what is there today: throughput at 40 ms by cipher.

use std::io;

use serde_json::json;

use super::super::RealFlags;
use super::super::contender::{Ssh, usual};
use super::super::outcome::Outcome;
use super::copy::{Copied, Load, copy};
use super::{Copier, GCM, Pipe, What, notes, only};
use crate::experiments::report::{Table, hundredths, tenths};
use crate::net::lateness::Late;
use crate::plot::{Axis, Curve, Figure, Panel, Stroke};
use crate::stats::Summary;

/// Runs it.
///
/// # Errors
/// If there can be no links here, or the results cannot be written.
pub(super) fn run(flags: &RealFlags) -> io::Result<i32> {
    let setting = flags.setting();
    let limit = flags.span(10, 30);
    let load = Load::File { bytes: setting.pick(5, 150) << 20 };
    let pipe = Pipe::clean(400, 40);
    let copiers = only(flags, copiers(setting.pick(2, CIPHERS.len())))?;
    let (mut found, mut failures, mut late) = (Vec::new(), Vec::new(), Late::default());
    for seed in flags.seed..flags.seed + u64::from(flags.times(1, 1)) {
        for copier in &copiers {
            match copy(copier, load, Some(&pipe.scenario(seed)), limit, seed) {
                Ok(copied) => {
                    late = late.and(&copied.late);
                    found.push((copier, copied));
                }
                Err(error) => failures.push(format!("{}: {error}", copier.name)),
            }
        }
    }
    let mut table = Table::new(format!("{load} of random data over {}", pipe.name()), 1, &COLUMNS);
    let mut curves = Vec::new();
    for copier in &copiers {
        let median = |number: fn(&Copied) -> f64| {
            let ours = found.iter().filter(|(whose, _)| whose.name == copier.name);
            Summary::of(&ours.map(|(_, copied)| number(copied)).collect::<Vec<f64>>())
        };
        let (Some(mbit), Some(near), Some(far)) = (
            median(Copied::mbit),
            median(|copied| copied.cpu_per_gigabyte()[0]),
            median(|copied| copied.cpu_per_gigabyte()[1]),
        ) else {
            continue;
        };
        let both = near.median + far.median;
        let (name, points) = (copier.name.clone(), vec![(both, mbit.median)]);
        curves.push(Curve { name, points, stroke: Stroke::Solid });
        table.rows.push(vec![
            json!(copier.name),
            json!(mbit.n),
            tenths(mbit.median),
            hundredths(near.median),
            hundredths(far.median),
            hundredths(both),
        ]);
    }
    let mut notes = notes(setting);
    notes.insert(
        0,
        "HPN-SSH's page compares its ciphers with OpenSSH's by their throughput at 40 ms; this is the same with the \
         programs of today. OpenSSH's channel window of 2 MiB allows 419 Mbit/s there, so that it is not the brake; over \
         longer paths it is."
            .to_owned(),
    );
    let panel = Panel {
        title: pipe.name(),
        x: Axis::linear("processor time of both ends, s/GB"),
        y: Axis::linear("Mbit/s"),
        curves,
    };
    Outcome {
        name: "bulk ciphers",
        file: "bulk-ciphers",
        title: "Ciphers at 40 ms".to_owned(),
        notes,
        tables: vec![table],
        figure: Figure { title: "Ciphers at 40 ms".to_owned(), panels: vec![panel] },
        late,
        failures,
    }
    .write(flags)
}

/// scp with each of so many ciphers, HPN-SSH's with the same, and rove, which has one.
fn copiers(most: usize) -> Vec<Copier> {
    let ciphers = || CIPHERS.into_iter().take(most);
    let short = |cipher: &str| cipher.trim_end_matches("@openssh.com").to_owned();
    let mut all: Vec<Copier> = ciphers()
        .map(|cipher| Copier {
            name: format!("scp, {}", short(cipher)),
            ssh: Ssh::over(usual()),
            what: What::Scp(cipher),
        })
        .collect();
    if let Some(hpn) = Copier::hpn(usual()) {
        all.extend(ciphers().map(|cipher| Copier {
            name: format!("hpnscp, {}", short(cipher)),
            what: What::HpnScp(cipher),
            ..hpn.clone()
        }));
    }
    all.extend([Copier::rove(), Copier::rove_pipe()]);
    all
}

/// What OpenSSH's servers offer by themselves.
const CIPHERS: [&str; 6] = [
    GCM,
    "chacha20-poly1305@openssh.com",
    "aes256-gcm@openssh.com",
    "aes128-ctr",
    "aes192-ctr",
    "aes256-ctr",
];

const COLUMNS: [&str; 6] =
    ["program", "n", "Mbit/s", "near CPU, s/GB", "far CPU, s/GB", "both, s/GB"];
