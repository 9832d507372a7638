//! The programs that copy, the long paths that they copy over, and the notes that all results on copies share.

use std::fmt;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::demo::shell_word;
use crate::experiments::report::paragraphs;
use crate::link::{Loss, Profile};
use crate::net::FAR;
use crate::net::scenario::Scenario;
use crate::real::contender::{CONTROLS, Ssh, is_usable, missing, usual};
use crate::real::{RealFlags, Setting};
use crate::rng::Chance;

/// The data of a copy: random octets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Load {
    /// One file.
    File { bytes: u64 },
    /// This many files of this length, a thousand in a directory.
    Tree { files: u32, bytes: u64 },
}

impl Load {
    pub(super) fn bytes(self) -> u64 {
        match self {
            Load::File { bytes } => bytes,
            Load::Tree { files, bytes } => bytes * u64::from(files),
        }
    }
}

/// A program that copies.
#[derive(Clone, Debug)]
pub(super) struct Copier {
    pub(super) name: String,
    /// The OpenSSH beside it, and TCP's congestion control in the networks.
    pub(super) ssh: Ssh,
    pub(super) what: What,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum What {
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

impl fmt::Display for Copier {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.name)
    }
}

impl Copier {
    pub(super) fn scp(congestion: &'static str) -> Copier {
        let (ssh, what) = (Ssh::over(congestion), What::Scp(GCM));
        Copier { name: format!("scp ({congestion})"), ssh, what }
    }

    /// HPN-SSH's scp, where it and its server are on PATH.
    pub(super) fn hpn(congestion: &'static str) -> Option<Copier> {
        let daemon = which("hpnscp").and_then(|_| which("hpnsshd"))?;
        let ssh = Ssh { daemon: Some(daemon), ..Ssh::over(congestion) };
        let what = What::HpnScp(GCM);
        Some(Copier { name: format!("hpnscp ({congestion})"), ssh, what })
    }

    pub(super) fn rove() -> Copier {
        let (ssh, what) = (Ssh::over(usual()), What::RoveCopy);
        Copier { name: "rove cp".to_owned(), ssh, what }
    }

    pub(super) fn rove_pipe() -> Copier {
        Copier { name: "rove exec, a pipe".to_owned(), what: What::RovePipe, ..Copier::rove() }
    }

    /// scp over each congestion control that the kernel lets us have, HPN-SSH's, `rove cp`, and a pipe.
    pub(super) fn all() -> Vec<Copier> {
        let mut all = Vec::new();
        for congestion in CONTROLS.into_iter().filter(|control| is_usable(control)) {
            all.push(Copier::scp(congestion));
            all.extend(Copier::hpn(congestion));
        }
        all.extend([Copier::rove(), Copier::rove_pipe()]);
        all
    }

    pub(super) fn is_rove(&self) -> bool {
        matches!(self.what, What::RoveCopy | What::RovePipe)
    }

    /// The copy as a line for sh, both ends on this machine.
    pub(super) fn words(
        &self,
        load: Load,
        ssh: &str,
        config: &Path,
        source: &Path,
        target: &Path,
    ) -> String {
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
///
/// # Errors
/// If there are none.
pub(super) fn only(flags: &RealFlags, all: Vec<Copier>) -> io::Result<Vec<Copier>> {
    flags.only(all, |copier| &copier.name)
}

/// A long path: a bottleneck up, chance losses before it, nothing else back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pipe {
    pub(super) mbit: u64,
    pub(super) round_trip: Duration,
    pub(super) queue_percent: u64,
    pub(super) loss: Chance,
}

impl Pipe {
    /// One with a queue of one bandwidth-delay product that loses nothing by chance.
    pub(super) fn clean(mbit: u64, trip_ms: u64) -> Pipe {
        let (round_trip, loss) = (Duration::from_millis(trip_ms), Chance::per_million(0));
        Pipe { mbit, round_trip, queue_percent: 100, loss }
    }

    pub(super) fn name(self) -> String {
        format!(
            "{} Mbit/s, {} ms, loss {}, queue {} BDP",
            self.mbit,
            self.round_trip.as_millis(),
            self.loss,
            self.queue_percent as f64 / 100.0
        )
    }

    pub(super) fn scenario(self, seed: u64) -> Scenario {
        let holds = self.mbit * 125 * self.round_trip.as_millis() as u64;
        let queue_bytes = (holds * self.queue_percent / 100) as usize;
        let back = Profile { header_bytes: 0, ..Profile::delay(self.round_trip / 2) };
        let up = Profile { loss: Loss::Independent(self.loss), ..back.clone() };
        Scenario::steady(up.rate(self.mbit * 1_000_000, queue_bytes), back, seed)
    }
}

/// The notes that follow each experiment's own: how copies are measured, which programs are missing here, and how
/// busy the machine was.
pub(super) fn notes(setting: Setting) -> Vec<String> {
    let mut notes = paragraphs(include_str!("../text/bulk.md"), &[]);
    notes.extend(missing());
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
pub(super) const GCM: &str = "aes128-gcm@openssh.com";
