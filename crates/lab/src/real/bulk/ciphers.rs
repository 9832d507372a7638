//! `rove-lab bulk ciphers`: the table of HPN-SSH's page, with what is there today: throughput at 40 ms by cipher.

use std::io;

use serde_json::json;

use super::super::RealFlags;
use super::super::contender::{Ssh, usual};
use super::super::outcome::Outcome;
use super::copier::{Copier, GCM, Load, Pipe, What, notes, only};
use super::copy::{Copied, copy};
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
        let median = |number: fn(&Copied) -> Option<f64>| {
            let ours = found.iter().filter(|(whose, _)| whose.name == copier.name);
            Summary::of(&ours.filter_map(|(_, copied)| number(copied)).collect::<Vec<f64>>())
        };
        let Some(mbit) = median(|copied| Some(copied.mbit())) else { continue };
        let cpu = [
            median(|copied| copied.cpu_per_gigabyte().map(|[near, _]| near)),
            median(|copied| copied.cpu_per_gigabyte().map(|[_, far]| far)),
            median(|copied| copied.cpu_per_gigabyte().map(|[near, far]| near + far)),
        ];
        let both = cpu[2].as_ref().map(|both| (both.median, mbit.median));
        let (name, points) = (copier.name.clone(), both.into_iter().collect());
        curves.push(Curve { name, points, stroke: Stroke::Solid });
        let mut row = vec![json!(copier.name), json!(mbit.n), tenths(mbit.median)];
        row.extend(cpu.map(|cpu| json!(cpu.map(|cpu| hundredths(cpu.median)))));
        table.rows.push(row);
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
