//! Experiments on real programs: rove, stock mosh and OpenSSH side by side over emulated links. Each is one
//! command with a quick and a full setting; docs/lab.md says what each measures.

pub mod age;
pub mod claims;
pub mod contender;
pub mod footprint;
pub mod interrupt;
pub mod keystroke;
pub mod losses;
pub mod outcome;
pub mod paper;
pub mod roaming;
pub mod stage;
pub mod typing;

use std::io;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use clap::Args;

use contender::Contender;

/// Measures real programs over emulated links
#[derive(Args, Clone, Debug)]
pub struct RealFlags {
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
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub jobs: u32,
    /// Seconds of each session, instead of the setting's
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub seconds: Option<u32>,
    /// Only programs whose name holds this, or one of these with commas between them
    #[arg(long, value_name = "NAME")]
    pub only: Option<String>,
    /// One more program to compare: {"name": "...", "client": ["word", "{ssh}", "{host}", "{command}"]}
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
    /// Where another OpenSSH is unpacked (scripts/fetch-openssh), for `keystroke`
    #[arg(long, value_name = "DIRECTORY")]
    pub openssh: Option<PathBuf>,
    /// Recordings to type, for `paper`; text at a prompt without any
    #[arg(long = "trace", value_name = "FILE", num_args = 1..)]
    pub traces: Vec<PathBuf>,
    /// Directory of recorded bottlenecks in Mahimahi's format, for `paper`
    #[arg(long, value_name = "DIRECTORY")]
    pub cellular: Option<PathBuf>,
}

/// How much is run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Setting {
    /// What a test may take.
    Quick,
    /// What the claims need.
    Full,
}

impl Setting {
    /// One of two.
    pub fn pick<T>(self, quick: T, full: T) -> T {
        match self {
            Setting::Quick => quick,
            Setting::Full => full,
        }
    }

    /// What files of results are called, after the experiment.
    pub fn suffix(self) -> &'static str {
        self.pick("-quick", "")
    }
}

impl RealFlags {
    /// How much is run.
    pub fn setting(&self) -> Setting {
        if self.quick { Setting::Quick } else { Setting::Full }
    }

    /// How long a session is typed at.
    pub fn span(&self, quick: u32, full: u32) -> Duration {
        let seconds = self.seconds.unwrap_or(self.setting().pick(quick, full));
        Duration::from_secs(seconds.into())
    }

    /// The programs to compare, of these.
    ///
    /// # Errors
    /// If the file of one more cannot be read or is none.
    pub fn contenders(&self, mut all: Vec<Contender>) -> io::Result<Vec<Contender>> {
        if let Some(path) = &self.program {
            let text = std::fs::read_to_string(path)?;
            let more = Contender::from_json(&text)
                .map_err(|error| io::Error::other(format!("{}: {error}", path.display())))?;
            all.push(more);
        }
        if let Some(only) = &self.only {
            all.retain(|contender| only.split(',').any(|part| contender.name.contains(part)));
        }
        if all.is_empty() {
            return Err(io::Error::other("no program is left to compare"));
        }
        Ok(all)
    }

    /// Says how long it will take: so many sessions of so long each.
    pub fn estimate(&self, name: &str, sessions: usize, each: Duration) {
        let rounds = sessions.div_ceil(self.jobs as usize) as u32;
        // Starting a session and ending it.
        let total = (each + Duration::from_secs(3)) * rounds;
        eprintln!(
            "{name}: {sessions} sessions, {} at a time, about {} s",
            self.jobs,
            total.as_secs()
        );
    }

    /// Does the work for each item, some at the same time; results in order, with what went wrong.
    pub fn each<I: Sync, O: Send>(
        &self,
        items: &[I],
        work: impl Fn(&I) -> io::Result<O> + Sync,
    ) -> Vec<io::Result<O>> {
        let next = AtomicUsize::new(0);
        let done: Mutex<Vec<Option<io::Result<O>>>> =
            Mutex::new(items.iter().map(|_| None).collect());
        std::thread::scope(|scope| {
            for _ in 0..self.jobs {
                scope.spawn(|| {
                    loop {
                        let place = next.fetch_add(1, Ordering::Relaxed);
                        let Some(item) = items.get(place) else { break };
                        let result = work(item);
                        done.lock().expect("no thread panics with it")[place] = Some(result);
                    }
                });
            }
        });
        let done = done.into_inner().expect("no thread panics with it");
        done.into_iter().map(|result| result.expect("each place was worked on")).collect()
    }
}
