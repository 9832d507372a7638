//! `rove-lab bulk`: how fast files go over long, fat, lossy pipes, what that costs both machines, and what it does to
//! everybody beside it. scp over CUBIC and BBR, HPN-SSH's if it is there, `rove cp`, and a pipe into `rove exec`. Each
//! part is an experiment with files of its own.

mod ciphers;
mod copy;
mod flow;
mod goodput;
mod keys;
mod loopback;
mod outages;
mod shares;
mod tree;

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::contender::{CONTROLS, Ssh, is_usable, usual};
use super::{RealFlags, Setting};
use crate::demo::shell_word;
use crate::link::{Loss, Profile};
use crate::net::FAR;
use crate::net::scenario::Scenario;
use crate::rng::Chance;
use copy::Load;

/// Files over long, fat, lossy pipes
#[derive(Args, Clone, Debug)]
pub struct BulkFlags {
    /// What is measured; all of it without any
    #[arg(value_enum, value_name = "PART")]
    parts: Vec<Part>,
    #[command(flatten)]
    real: RealFlags,
}

/// What is measured.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Part {
    /// Copies over 200 Mbit/s at 100 ms and 400 Mbit/s at 60 ms that lose 0 to 5 %, before them queues of 1 BDP
    Goodput,
    /// The same with queues of 0.1 BDP
    Shallow,
    /// Copies over loopback
    Loopback,
    /// Keys at a shell, while the same session or another program fills the path
    Keys,
    /// ssh's ciphers at 40 ms
    Ciphers,
    /// A copy beside one TCP connection, over CUBIC and BBR
    Shares,
    /// Many small files
    Files,
    /// A minute without a network, and a new address, in the middle of a copy
    Outages,
}

/// Runs the parts asked for.
///
/// # Errors
/// If there can be no links here, or the results cannot be written.
pub fn run(flags: &BulkFlags) -> io::Result<i32> {
    let mut status = 0;
    for part in Part::value_variants() {
        if flags.parts.is_empty() || flags.parts.contains(part) {
            let run = match part {
                Part::Goodput => goodput::run,
                Part::Shallow => goodput::run_shallow,
                Part::Loopback => loopback::run,
                Part::Keys => keys::run,
                Part::Ciphers => ciphers::run,
                Part::Shares => shares::run,
                Part::Files => tree::run,
                Part::Outages => outages::run,
            };
            status = status.max(run(&flags.real)?);
        }
    }
    Ok(status)
}

/// A program that copies.
#[derive(Clone, Debug)]
struct Copier {
    name: String,
    /// The OpenSSH beside it, and TCP's congestion control in the networks.
    ssh: Ssh,
    what: What,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum What {
    /// scp with this cipher.
    Scp(&'static str),
    /// HPN-SSH's, between two of it.
    HpnScp(&'static str),
    /// cat or tar through ssh.
    SshPipe,
    RoveCopy,
    /// cat or tar through `rove exec`.
    RovePipe,
}

impl Copier {
    fn scp(congestion: &'static str) -> Copier {
        let (ssh, what) = (Ssh::over(congestion), What::Scp(GCM));
        Copier { name: format!("scp ({congestion})"), ssh, what }
    }

    /// HPN-SSH's scp, where it and its server are on PATH.
    fn hpn(congestion: &'static str) -> Option<Copier> {
        let daemon = which("hpnscp").and_then(|_| which("hpnsshd"))?;
        let ssh = Ssh { daemon: Some(daemon), ..Ssh::over(congestion) };
        let what = What::HpnScp(GCM);
        Some(Copier { name: format!("hpnscp ({congestion})"), ssh, what })
    }

    fn rove() -> Copier {
        let (ssh, what) = (Ssh::over(usual()), What::RoveCopy);
        Copier { name: "rove cp".to_owned(), ssh, what }
    }

    fn rove_pipe() -> Copier {
        Copier { name: "rove exec, a pipe".to_owned(), what: What::RovePipe, ..Copier::rove() }
    }

    /// scp over each congestion control that the kernel lets us have, HPN-SSH's, `rove cp`, and a pipe.
    fn all() -> Vec<Copier> {
        let mut all = Vec::new();
        for congestion in CONTROLS.into_iter().filter(|control| is_usable(control)) {
            all.push(Copier::scp(congestion));
            all.extend(Copier::hpn(congestion));
        }
        all.extend([Copier::rove(), Copier::rove_pipe()]);
        all
    }

    fn is_rove(&self) -> bool {
        matches!(self.what, What::RoveCopy | What::RovePipe)
    }

    /// The copy as a line for sh, both ends on this machine.
    fn words(&self, load: Load, ssh: &str, config: &Path, source: &Path, target: &Path) -> String {
        let [config, source, target] =
            [config, source, target].map(|path| shell_word(&path.to_string_lossy()));
        let ssh = shell_word(ssh);
        let (recursive, give, take) = match load {
            Load::File { .. } => ("", format!("cat {source}"), format!("cat > {target}")),
            Load::Tree { .. } => (
                "-r ",
                format!("tar -C {source} -cf - ."),
                format!("mkdir {target} && tar -C {target} -xf -"),
            ),
        };
        let take = shell_word(&take);
        match self.what {
            What::Scp(cipher) => {
                format!("scp {recursive}-q -c {cipher} -F {config} {source} {FAR}:{target}")
            }
            What::HpnScp(cipher) => {
                format!("hpnscp {recursive}-q -c {cipher} -F {config} {source} {FAR}:{target}")
            }
            What::SshPipe => format!("{give} | ssh -F {config} {FAR} {take}"),
            What::RoveCopy => format!("rove cp {recursive}-q --ssh={ssh} {source} {FAR}:{target}"),
            What::RovePipe => format!("{give} | rove exec --ssh={ssh} {FAR} {take}"),
        }
    }
}

/// The programs of these that were asked for.
fn only(flags: &RealFlags, mut all: Vec<Copier>) -> io::Result<Vec<Copier>> {
    if let Some(only) = &flags.only {
        all.retain(|copier| only.split(',').any(|part| copier.name.contains(part)));
    }
    match all.is_empty() {
        true => Err(io::Error::other("no program is left to compare")),
        false => Ok(all),
    }
}

/// A long path: a bottleneck up, chance losses before it, nothing else back.
#[derive(Clone, Copy, Debug)]
struct Pipe {
    mbit: u64,
    round_trip: Duration,
    queue_percent: u64,
    loss: Chance,
}

impl Pipe {
    /// One with a queue of one bandwidth-delay product that loses nothing by chance.
    fn clean(mbit: u64, trip_ms: u64) -> Pipe {
        let (round_trip, loss) = (Duration::from_millis(trip_ms), Chance::per_million(0));
        Pipe { mbit, round_trip, queue_percent: 100, loss }
    }

    fn name(self) -> String {
        format!(
            "{} Mbit/s, {} ms, loss {}, queue {} BDP",
            self.mbit,
            self.round_trip.as_millis(),
            self.loss,
            self.queue_percent as f64 / 100.0
        )
    }

    fn scenario(self, seed: u64) -> Scenario {
        let holds = self.mbit * 125 * self.round_trip.as_millis() as u64;
        let queue_bytes = (holds * self.queue_percent / 100) as usize;
        let back = Profile { header_bytes: 0, ..Profile::delay(self.round_trip / 2) };
        let up = Profile { loss: Loss::Independent(self.loss), ..back.clone() };
        Scenario::steady(up.rate(self.mbit * 1_000_000, queue_bytes), back, seed)
    }
}

/// What has to be known of every copy.
fn notes(setting: Setting) -> Vec<String> {
    let mut notes = vec![
        "One copy at a time, of random data between files on disk; what is whole at the end is compared octet by octet, \
         and logging in is not counted. Processor time is that of all processes of the program at an end, in seconds for a gigabyte (10^9 \
         octets), looked at 20 times a second, and told of copies that lasted for ten looks and more. TCP may use windows of up to 32 MB. What ran over a link that was late by more than 1 ms at p99 \
         ran again, up to twice, and the one whose link was least late counts."
            .to_owned(),
    ];
    notes.extend(super::contender::missing());
    if Copier::hpn(usual()).is_none() {
        notes.push(
            "HPN-SSH is compared where `hpnscp` and `hpnsshd` are on PATH; here they are not."
                .to_owned(),
        );
    }
    if setting == Setting::Quick {
        notes.push("A quick run shows that everything works; it is too short for numbers.".into());
    }
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    notes.push(format!("Load of the machine at the end (1, 5, 15 minutes): {}.", load.trim()));
    notes
}

/// Where a program is on PATH.
fn which(program: &str) -> Option<PathBuf> {
    let mut command = crate::run::limited("sh", 5);
    let output = command.args(["-c", &format!("command -v {program}")]).output().ok()?;
    let mut path = String::new();
    output.stdout.as_slice().read_to_string(&mut path).ok()?;
    let path = path.trim();
    (!path.is_empty()).then(|| path.into())
}

/// The quickest of ssh's ciphers on machines of today.
const GCM: &str = "aes128-gcm@openssh.com";
