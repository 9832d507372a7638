//! Experiments on real programs: rove, stock mosh and OpenSSH side by side over emulated links. Each is one command
//! with a quick and a full setting; docs/lab.md says what each measures.

pub(crate) mod age;
pub(crate) mod attach;
mod bars;
pub(crate) mod bulk;
pub(crate) mod claims;
pub(crate) mod contender;
pub(crate) mod experiment;
pub(crate) mod film;
mod flow;
pub(crate) mod footprint;
pub(crate) mod interrupt;
pub(crate) mod keystroke;
pub(crate) mod losses;
pub(crate) mod outcome;
pub(crate) mod paper;
pub(crate) mod ping;
pub(crate) mod privacy;
pub(crate) mod repeatability;
pub(crate) mod roaming;
pub(crate) mod sessions;
pub(crate) mod stage;
pub(crate) mod typing;
pub(crate) mod ways;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use contender::Contender;

use crate::files::read_text;

/// Measures real programs over emulated links
#[derive(Args, Clone, Debug)]
pub(crate) struct RealFlags {
    /// Where the results go
    #[arg(long, value_name = "DIRECTORY", default_value = "results")]
    pub results: PathBuf,
    /// A short run that shows that everything works; its files end in -quick
    #[arg(long)]
    pub quick: bool,
    /// Seed of all chances
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Sessions at the same time; above what the machine bears the links are late and the run is invalid
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub jobs: u32,
    /// Seconds of each session, instead of the setting's
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub seconds: Option<u32>,
    /// Sessions of each program over each path, each with a seed of its own, instead of the setting's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub sessions: Option<u32>,
    /// Only programs whose name holds this, or one of these with commas between them
    #[arg(long, value_name = "NAME")]
    pub only: Option<String>,
    /// One more program to compare: {"name": "...", "client": ["word", "{ssh}", "{host}", "{command}"]}
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
    /// Where another OpenSSH is unpacked (scripts/fetch-openssh), for `keystroke` and `privacy`
    #[arg(long, value_name = "DIRECTORY")]
    pub openssh: Option<PathBuf>,
    /// Recordings to type, for `paper`, and whose intervals are typed, for `privacy`; text at a prompt without any
    #[arg(long = "trace", value_name = "FILE", num_args = 1..)]
    pub traces: Vec<PathBuf>,
    /// Directory of recorded bottlenecks in Mahimahi's format, for `paper`
    #[arg(long, value_name = "DIRECTORY")]
    pub cellular: Option<PathBuf>,
}

/// How much is run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Setting {
    /// As much as a test may take.
    Quick,
    /// As much as the claims need.
    Full,
}

impl Setting {
    /// One of two.
    pub(crate) fn pick<T>(self, quick: T, full: T) -> T {
        match self {
            Setting::Quick => quick,
            Setting::Full => full,
        }
    }

    /// The suffix of the names of results' files.
    pub(crate) fn suffix(self) -> &'static str {
        self.pick("-quick", "")
    }
}

/// Whether `--only` leaves the program of this name: without it all, else those that hold one of its parts.
pub(crate) fn is_wanted(only: Option<&str>, name: &str) -> bool {
    only.is_none_or(|only| only.split(',').any(|part| name.contains(part)))
}

impl RealFlags {
    /// How much is run.
    pub(crate) fn setting(&self) -> Setting {
        if self.quick { Setting::Quick } else { Setting::Full }
    }

    /// How long a session is typed at.
    pub(crate) fn span(&self, quick: u32, full: u32) -> Duration {
        let seconds = self.seconds.unwrap_or(self.setting().pick(quick, full));
        Duration::from_secs(seconds.into())
    }

    /// Where another OpenSSH is, as sshd wants to be called: by a path from the root.
    ///
    /// # Errors
    /// If nothing is there.
    pub(crate) fn openssh(&self) -> io::Result<Option<PathBuf>> {
        let found = self.openssh.as_ref().map(|path| {
            let what = |error| io::Error::other(format!("--openssh {}: {error}", path.display()));
            path.canonicalize().map_err(what)
        });
        found.transpose()
    }

    /// The programs to compare, of these.
    ///
    /// # Errors
    /// If the file of one more cannot be read or is none.
    pub(crate) fn contenders(&self, mut all: Vec<Contender>) -> io::Result<Vec<Contender>> {
        if let Some(path) = &self.program {
            let text = read_text(path, PROGRAM_BYTES_MAX)?;
            let more = Contender::from_json(&text)
                .map_err(|error| io::Error::other(format!("{}: {error}", path.display())))?;
            all.push(more);
        }
        self.only(all, |contender| &contender.name)
    }

    /// What --only leaves of these.
    ///
    /// # Errors
    /// If it leaves none.
    pub(crate) fn only<T>(&self, mut all: Vec<T>, name: fn(&T) -> &str) -> io::Result<Vec<T>> {
        all.retain(|one| self.wants(name(one)));
        match all.is_empty() {
            true => Err(io::Error::other("no program is left to compare")),
            false => Ok(all),
        }
    }

    /// Whether --only leaves the program of this name.
    pub(crate) fn wants(&self, name: &str) -> bool {
        is_wanted(self.only.as_deref(), name)
    }

    /// How many sessions of each program over each path.
    pub(crate) fn times(&self, quick: u32, full: u32) -> u32 {
        self.sessions.unwrap_or(self.setting().pick(quick, full))
    }
}

/// The longest file of one more program.
const PROGRAM_BYTES_MAX: u64 = 64 << 10;
