//! `rove-lab bulk ciphers`: throughput at 40 ms by cipher. It repeats the table of HPN-SSH's page with the programs
//! of today.

use std::io;
use std::time::Duration;

use serde_json::json;

use super::super::RealFlags;
use super::super::contender::{Ssh, usual};
use super::super::experiment::{Body, Experiment, Measured, Title};
use super::super::sessions::OverLink;
use super::copier::{Copier, GCM, Load, Pipe, What, only};
use super::copy::{Copied, copy, cpu_medians};
use crate::experiments::report::{Table, hundredths, paragraphs, tenths};
use crate::plot::{Axis, Curve, Figure, Panel};
use crate::stats::Summary;

/// Copies of one file over one path with each cipher.
pub(super) struct Ciphers {
    limit: Duration,
    load: Load,
    pipe: Pipe,
    copiers: Vec<Copier>,
}

impl Ciphers {
    /// # Errors
    /// If --only leaves no program.
    pub(super) fn new(flags: &RealFlags) -> io::Result<Ciphers> {
        let setting = flags.setting();
        Ok(Ciphers {
            limit: flags.span(10, 30),
            load: Load::File { bytes: setting.pick(5, 150) << 20 },
            pipe: Pipe::clean(400, 40),
            copiers: only(flags, copiers(setting.pick(2, CIPHERS.len())))?,
        })
    }
}

impl Experiment for Ciphers {
    type Case = Copier;
    type Sample = Copied;

    fn title(&self) -> Title {
        Title::new("bulk ciphers", "bulk-ciphers", "Ciphers at 40 ms", DEPENDS)
    }

    fn cases(&self) -> Vec<Copier> {
        self.copiers.clone()
    }

    fn measure(&self, copier: &Copier, seed: u64) -> io::Result<OverLink<Copied>> {
        copy(copier, self.load, Some(&self.pipe.scenario(seed)), self.limit, seed)
    }

    fn report(&self, results: &[Measured<Copier, Copied>]) -> Body {
        let caption = format!("{} of random data over {}", self.load, self.pipe.name());
        let mut table = Table::new(caption, 1, COLUMNS);
        let mut curves = Vec::new();
        for Measured { case: copier, samples, .. } in results {
            let mbit: Vec<f64> = samples.iter().map(Copied::mbit).collect();
            let Some(mbit) = Summary::of(&mbit) else { continue };
            let cpu = cpu_medians(samples);
            curves.push(Curve::solid(&copier.name, cpu[2].map(|both| (both, mbit.median))));
            let mut row = vec![json!(copier.name), json!(mbit.n), tenths(mbit.median)];
            row.extend(cpu.map(|cpu| json!(cpu.map(hundredths))));
            table.rows.push(row);
        }
        let x = Axis::linear("processor time of both ends, s/GB");
        let panel = Panel::new(self.pipe.name(), x, Axis::linear("Mbit/s"), curves);
        Body { tables: vec![table], figure: Figure::new("Ciphers at 40 ms", [panel]) }
    }

    fn prose(&self) -> Vec<String> {
        paragraphs(include_str!("../text/bulk-ciphers.md"), &[])
    }
}

/// scp with each of the first ciphers, HPN-SSH's with the same, and rove, which has one.
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

/// The ciphers that OpenSSH's servers offer by default.
const CIPHERS: [&str; 6] = [
    GCM,
    "chacha20-poly1305@openssh.com",
    "aes256-gcm@openssh.com",
    "aes128-ctr",
    "aes192-ctr",
    "aes256-ctr",
];

const COLUMNS: &str = "program | n | Mbit/s | near CPU, s/GB | far CPU, s/GB | both, s/GB";

/// The parts of the lab that its numbers come from, besides those of all experiments on real programs.
const DEPENDS: &[&str] = &[
    "crates/lab/src/real/bulk.rs",
    "crates/lab/src/real/bulk/ciphers.rs",
    "crates/lab/src/real/bulk/copier.rs",
    "crates/lab/src/real/bulk/copy.rs",
    "crates/lab/src/real/ping.rs",
];
