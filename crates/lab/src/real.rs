//! Experiments on real programs: rove, stock mosh and OpenSSH side by side over emulated links. Each is one command
//! with a quick and a full setting; docs/lab.md says what each measures.

pub(crate) mod age;
pub(crate) mod bulk;
pub(crate) mod claims;
pub(crate) mod contender;
mod experiment;
pub(crate) mod footprint;
pub(crate) mod interrupt;
pub(crate) mod keystroke;
pub(crate) mod losses;
pub(crate) mod outcome;
pub(crate) mod paper;
pub(crate) mod ping;
pub(crate) mod repeatability;
pub(crate) mod roaming;
pub(crate) mod stage;
pub(crate) mod typing;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use contender::Contender;

use crate::files::read_text;
use crate::net::lateness::Late;
use crate::pool;

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
        all.retain(|contender| self.wants(&contender.name));
        if all.is_empty() {
            return Err(io::Error::other("no program is left to compare"));
        }
        Ok(all)
    }

    /// Whether --only leaves the program of this name.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.split(',').any(|part| name.contains(part)))
    }

    /// How many sessions of each program over each path.
    pub(crate) fn times(&self, quick: u32, full: u32) -> u32 {
        self.sessions.unwrap_or(self.setting().pick(quick, full))
    }

    /// Prints the expected time.
    fn estimate(&self, name: &str, sessions: usize, each: Duration) {
        let rounds = sessions.div_ceil(self.jobs as usize) as u32;
        // Starting a session and ending it.
        let total = (each + Duration::from_secs(3)) * rounds;
        eprintln!(
            "{name}: {sessions} sessions, {} at a time, about {} s",
            self.jobs,
            total.as_secs()
        );
    }
}

/// Sessions to run: each program over each path.
pub(crate) struct Sessions<'a, P> {
    /// The experiment.
    pub name: &'static str,
    /// How long one lasts, about.
    pub lasts: Duration,
    /// The paths.
    pub paths: &'a [P],
    /// The programs.
    pub contenders: &'a [Contender],
    /// How many of each, the first with the seed asked for and each other with the next.
    pub times: u32,
}

/// A path, a program, and the result of its session.
pub(crate) type Found<'a, P, O> = (&'a P, &'a Contender, O);

/// A result of a measurement over an emulated link.
pub(crate) trait OverLink {
    /// How late the link was.
    fn late(&self) -> &Late;
}

/// The results of all sessions.
pub(crate) struct Ran<'a, P, O> {
    /// In the order of paths, programs and seeds.
    pub found: Vec<Found<'a, P, O>>,
    /// Errors, each with the program's and the path's name.
    pub failures: Vec<String>,
    /// A note on how the sessions ran.
    pub note: String,
}

impl<'a, P: Sync> Sessions<'a, P> {
    /// Runs them, some at the same time, and then again those whose link was late.
    pub(crate) fn run<O: OverLink + Send>(
        &self,
        flags: &RealFlags,
        name: impl Fn(&P) -> String,
        work: impl Fn(&Contender, &P, u64) -> io::Result<O> + Sync,
    ) -> Ran<'a, P, O> {
        let mut items: Vec<(&'a P, &'a Contender, u64)> = Vec::new();
        for path in self.paths {
            for contender in self.contenders {
                let seeds = (0..self.times).map(|number| flags.seed + u64::from(number));
                items.extend(seeds.map(|seed| (path, contender, seed)));
            }
        }
        flags.estimate(self.name, items.len(), self.lasts);
        let work = |(path, contender, seed): &(&P, &Contender, u64)| work(contender, path, *seed);
        let mut results = pool::each(flags.jobs as usize, &items, work);
        let note = self.repeat_late(flags, &items, work, &mut results);
        let (mut found, mut failures) = (Vec::new(), Vec::new());
        for ((path, contender, _), result) in items.into_iter().zip(results) {
            match result {
                Ok(one) => found.push((path, contender, one)),
                Err(error) => failures.push(format!("{}, {}: {error}", contender.name, name(path))),
            }
        }
        Ran { found, failures, note }
    }

    /// A shared machine stands still at times, and that is not the programs' fault: a session whose link was late
    /// runs again with fewer beside it, and the one whose link was less late counts.
    fn repeat_late<I: Clone + Sync, O: OverLink + Send>(
        &self,
        flags: &RealFlags,
        items: &[I],
        work: impl Fn(&I) -> io::Result<O> + Sync,
        results: &mut [io::Result<O>],
    ) -> String {
        let is_late = |result: &io::Result<O>| matches!(result, Ok(one) if !one.late().is_valid());
        let mut repeated = 0;
        for _ in 0..REPEATS_MAX {
            let places: Vec<usize> = (0..items.len()).filter(|at| is_late(&results[*at])).collect();
            if places.is_empty() {
                break;
            }
            eprintln!("{}: the links of {} sessions were late: again", self.name, places.len());
            repeated += places.len();
            let late: Vec<I> = places.iter().map(|at| items[*at].clone()).collect();
            let second = pool::each(flags.jobs.div_ceil(4) as usize, &late, &work);
            for (at, second) in places.into_iter().zip(second) {
                let (Ok(one), Ok(old)) = (&second, &results[at]) else { continue };
                if one.late().p99() < old.late().p99() {
                    results[at] = second;
                }
            }
        }
        format!(
            "{} sessions, {} at a time; {repeated} times one ran again since its link was late by more than 1 ms at \
             p99, and the one whose link was less late counts.",
            items.len(),
            flags.jobs
        )
    }
}

/// Runs a session, and again while its link was late; returns the one whose link was least late. A repetition that
/// fails changes nothing.
fn least_late<O: OverLink>(mut session: impl FnMut() -> io::Result<O>) -> io::Result<O> {
    let mut best = session()?;
    for _ in 0..REPEATS_MAX {
        if best.late().is_valid() {
            break;
        }
        let Ok(one) = session() else { continue };
        if one.late().p99() < best.late().p99() {
            best = one;
        }
    }
    Ok(best)
}

/// How often a session with a late link is repeated.
const REPEATS_MAX: u32 = 2;
/// The longest file of one more program.
const PROGRAM_BYTES_MAX: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use clap::{Command, FromArgMatches as _};

    use super::*;
    use crate::net::lateness::Lateness;

    struct One(Late);

    impl OverLink for One {
        fn late(&self) -> &Late {
            &self.0
        }
    }

    fn late(ms: u64) -> One {
        let lateness = Lateness::default();
        lateness.add(Duration::from_millis(ms));
        One(lateness.look())
    }

    #[test]
    fn what_was_late_runs_again() {
        let found = |spans: &[u64]| {
            let mut next = spans.iter();
            let one = least_late(|| Ok(late(*next.next().unwrap()))).unwrap();
            (one.0.max().as_millis(), next.len())
        };
        assert_eq!(found(&[0, 7]), (0, 1), "what was not late counts");
        assert_eq!(found(&[5, 0, 7]), (0, 1));
        assert_eq!(found(&[5, 3, 4, 0]), (3, 1), "the least late of three counts");
        let mut tries = 0;
        let one = least_late(|| {
            tries += 1;
            if tries == 1 { Ok(late(5)) } else { Err(io::ErrorKind::TimedOut.into()) }
        });
        assert_eq!((one.unwrap().0.max().as_millis(), tries), (5, 3), "what failed takes nothing");
        assert!(least_late(|| Err::<One, _>(io::ErrorKind::TimedOut.into())).is_err());
    }

    #[test]
    fn sessions_that_were_late_run_again() {
        let flags = RealFlags::from_arg_matches(
            &RealFlags::augment_args(Command::new("lab")).get_matches_from(["lab", "--jobs=3"]),
        )
        .unwrap();
        let tries = Mutex::new(Vec::new());
        let work = |item: &u64| {
            tries.lock().unwrap().push(*item);
            let again = tries.lock().unwrap().iter().filter(|one| *one == item).count() as u64;
            Ok(late(item.saturating_sub(again)))
        };
        let items = [0, 1, 3, 9];
        let sessions = Sessions {
            name: "these",
            lasts: Duration::ZERO,
            paths: &[(); 0],
            contenders: &[],
            times: 1,
        };
        let mut results = pool::each(flags.jobs as usize, &items, work);
        let note = sessions.repeat_late(&flags, &items, work, &mut results);
        let left = results.iter().map(|one| one.as_ref().unwrap().0.max().as_millis());
        assert_eq!(left.collect::<Vec<_>>(), [0, 0, 1, 6]);
        assert_eq!(tries.into_inner().unwrap().len(), 4 + 2 + 1);
        assert!(note.starts_with("4 sessions, 3 at a time; 3 times"), "{note}");
    }
}
