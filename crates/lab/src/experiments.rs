//! Experiments in virtual time. Each is one command and makes a table and a figure; the same command makes the same
//! bytes.

pub(crate) mod agree;
pub(crate) mod collection;
pub(crate) mod flood;
pub(crate) mod loss;
mod loss_matrix;
pub(crate) mod pace;
pub(crate) mod paths;
pub(crate) mod probe;
pub(crate) mod reference;
pub(crate) mod report;
pub(crate) mod roam;
pub(crate) mod sender;
pub(crate) mod spread;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::pool;
use crate::world::Fault;
use report::Report;

/// How long an experiment runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Scale {
    /// As long as its claims need.
    Full,
    /// As long as a test may take.
    Small,
}

impl Scale {
    /// The length of a session for this scale, given the full one; a tenth where each second is a lot of work.
    pub fn span(self, full: Duration) -> Duration {
        match self {
            Scale::Full => full,
            Scale::Small => full / 3,
        }
    }

    /// The number of sessions of each setting for this scale, given the full number.
    pub fn runs(self, full: u64) -> u64 {
        match self {
            Scale::Full => full,
            Scale::Small => full.div_ceil(10),
        }
    }
}

/// Runs an experiment in virtual time
#[derive(Args, Clone, Debug)]
pub(crate) struct ExperimentFlags {
    /// Where the results go
    #[arg(long, value_name = "DIRECTORY", default_value = "results")]
    pub results: PathBuf,
    /// A tenth of the sessions
    #[arg(long)]
    pub small: bool,
}

/// Makes a report and writes it.
///
/// # Errors
/// If something happened that must not, or the files cannot be written.
pub(crate) fn run(
    flags: &ExperimentFlags,
    experiment: impl Fn(Scale) -> Result<Report, Fault>,
) -> io::Result<i32> {
    let scale = if flags.small { Scale::Small } else { Scale::Full };
    experiment(scale).map_err(io::Error::other)?.write(&flags.results)?;
    Ok(0)
}

/// The same work for each item, on both cores, with the results in order.
///
/// # Errors
/// The first fault, in the order of the items.
pub(crate) fn many<I: Sync, O: Send>(
    items: &[I],
    work: impl Fn(&I) -> Result<O, Fault> + Sync,
) -> Result<Vec<O>, Fault> {
    pool::each(THREADS, items, work).into_iter().collect()
}

/// The smallest sample that at least this share of them does not exceed. `samples` are sorted.
pub fn quantile(samples: &[f64], share: f64) -> f64 {
    let rank = (samples.len() as f64 * share).ceil().max(1.0) as usize;
    samples.get(rank - 1).copied().unwrap_or(f64::NAN)
}

/// Small machines have as many cores.
const THREADS: usize = 2;
