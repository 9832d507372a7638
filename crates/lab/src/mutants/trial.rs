//! Runs test programs with a mutant, or with none and a list of the mutants that each test reaches.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::tree::Program;
use crate::clock::Clock;
use crate::process::Owned;
use crate::scratch::Scratch;

/// A program that passes without a mutant.
pub(crate) struct Measured {
    pub program: Program,
    /// How long it takes.
    pub took: Duration,
    /// By mutant: the tests that reach it.
    reached: BTreeMap<usize, Tests>,
}

/// Tests of a program.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Tests {
    Named(BTreeSet<String>),
    /// A thread without a test's name was there.
    All,
}

/// What became of a mutant.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Fate {
    /// No test runs the place where it is.
    Unreached,
    /// All tests pass with it.
    Survived,
    /// A test failed, or its program ended otherwise than by itself.
    Killed { by: String },
}

/// How a run ended.
#[derive(Debug)]
enum End {
    Passed,
    Failed(String),
}

impl Measured {
    /// Runs a program without a mutant.
    ///
    /// # Errors
    /// If it fails twice, or cannot be run.
    pub(crate) fn new(program: Program) -> io::Result<Measured> {
        let mut ends = String::new();
        // A test in real time may be late once.
        for _ in 0..2 {
            let scratch = Scratch::new()?;
            let list = scratch.join("reached");
            let clock = Clock::start();
            let mut command = limited(&program, FIRST_SECONDS_MAX);
            command.env("ROVE_MUTANTS_REACHED", &list);
            let mut names = BTreeSet::new();
            match watch(command, &mut names)? {
                End::Passed => {
                    let took = clock.elapsed();
                    let list = match fs::read(&list) {
                        Ok(octets) => String::from_utf8_lossy(&octets).into_owned(),
                        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
                        Err(error) => return Err(error),
                    };
                    return Ok(Measured { program, took, reached: reached(&list, &names) });
                }
                End::Failed(what) => ends = what,
            }
        }
        let Program { package, name, .. } = &program;
        Err(io::Error::other(format!("without a mutant {package}'s {name} fails: {ends}")))
    }

    /// Whether some test of it reaches the mutant.
    pub(crate) fn reaches(&self, mutant: usize) -> bool {
        self.reached.contains_key(&mutant)
    }

    /// Runs the tests that reach a mutant, with it; returns what failed.
    fn judge(&self, mutant: usize, least_seconds: u64) -> io::Result<Option<String>> {
        let Some(tests) = self.reached.get(&mutant) else { return Ok(None) };
        let once = || {
            let seconds = (self.took.as_secs() * 4).max(least_seconds);
            let mut command = limited(&self.program, seconds);
            command.env("ROVE_MUTANT", mutant.to_string());
            if let Tests::Named(names) = tests {
                command.arg("--exact").args(names);
            }
            watch(command, &mut BTreeSet::new())
        };
        let End::Failed(mut by) = once()? else { return Ok(None) };
        if REAL_TIME.contains(&self.program.package.as_str()) {
            // It may have been late, which is no deed of the mutant.
            let End::Failed(again) = once()? else { return Ok(None) };
            by = again;
        }
        Ok(Some(format!("{} {}: {by}", self.program.package, self.program.name)))
    }
}

/// Tries a mutant with the tests of these crates, in their order, the shortest programs first.
///
/// # Errors
/// If a program cannot be run.
pub(crate) fn try_mutant(
    mutant: usize,
    programs: &[Measured],
    judges: &[&str],
    least_seconds: u64,
) -> io::Result<Fate> {
    let rank = |measured: &&Measured| {
        let package = judges.iter().position(|judge| *judge == measured.program.package);
        (package, measured.took)
    };
    let mut able: Vec<&Measured> = programs
        .iter()
        .filter(|measured| measured.reaches(mutant) && rank(measured).0.is_some())
        .collect();
    able.sort_by_key(rank);
    if able.is_empty() {
        return Ok(Fate::Unreached);
    }
    for measured in able {
        if let Some(by) = measured.judge(mutant, least_seconds)? {
            return Ok(Fate::Killed { by });
        }
    }
    Ok(Fate::Survived)
}

/// Crates with tests that wait in real time.
const REAL_TIME: [&str; 2] = ["streams", "rove"];

/// The limit of a run without a mutant.
const FIRST_SECONDS_MAX: u64 = 900;

/// By mutant: which of the tests reached it.
fn reached(list: &str, names: &BTreeSet<String>) -> BTreeMap<usize, Tests> {
    let mut reached = BTreeMap::new();
    for line in list.lines() {
        let (number, thread) = line.split_once(' ').unwrap_or((line, ""));
        let Ok(number) = number.parse() else { continue };
        let tests = reached.entry(number).or_insert_with(|| Tests::Named(BTreeSet::new()));
        match tests {
            Tests::Named(tests) if names.contains(thread) => {
                tests.insert(thread.to_owned());
            }
            tests => *tests = Tests::All,
        }
    }
    reached
}

/// A program that is killed after this many seconds of processor time. A busy machine makes no mutant slow, so that the
/// limit of real time, for those that wait for ever, is far beyond.
fn limited(program: &Program, seconds: u64) -> Command {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", &(seconds * 4 + 60).to_string(), "nice", "-n", NICE, "prlimit"]);
    command.args([&format!("--cpu={seconds}"), &format!("--as={MEMORY_BYTES_MAX}"), "--"]);
    command.arg(&program.path).arg("--test-threads=2").current_dir(&program.directory);
    command.env("CARGO_MANIFEST_DIR", &program.directory).env("SEEDS", SEEDS);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// Below what else runs, and not so far that a busy machine never gets to it.
const NICE: &str = "5";

/// What a test program may take.
const MEMORY_BYTES_MAX: u64 = 6 << 30;

/// How many seeds simulations run.
const SEEDS: &str = "8";

/// Waits until a test fails or the program ends, and gathers the names of the tests that passed.
fn watch(mut command: Command, passed: &mut BTreeSet<String>) -> io::Result<End> {
    let mut child = Owned(command.spawn()?);
    let out = child.stdout.take().ok_or_else(|| io::Error::other("no output"))?;
    for line in BufReader::new(out).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        let Some((name, outcome)) =
            line.strip_prefix("test ").and_then(|line| line.rsplit_once(" ... "))
        else {
            continue;
        };
        let name = name.strip_suffix(" - should panic").unwrap_or(name);
        match outcome {
            "ok" => {
                passed.insert(name.to_owned());
            }
            "FAILED" => {
                end(&child)?;
                child.wait()?;
                return Ok(End::Failed(name.to_owned()));
            }
            _ => {}
        }
    }
    let status = child.wait()?;
    let signal = status.signal().or_else(|| status.code().map(|code| code - 128)).unwrap_or(0);
    Ok(match (status.code(), signal) {
        (Some(0), _) => End::Passed,
        (Some(124), _) | (_, 9 | 24) => End::Failed("does not end".to_owned()),
        (_, 6 | 11) => End::Failed("aborts".to_owned()),
        _ => End::Failed(format!("ends with {status}")),
    })
}

/// Ends a program and the `timeout` around it, which passes the signal on.
fn end(child: &Child) -> io::Result<()> {
    match kill_process(Pid::from_child(child), Signal::TERM) {
        Err(rustix::io::Errno::SRCH) => Ok(()),
        done => Ok(done?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_told_by_the_names_of_their_threads() {
        let names: BTreeSet<String> = ["a::b", "c"].map(str::to_owned).into();
        let reached = reached("1 a::b\n2 a::b\n2 c\n3 c\n3 tokio-worker\n1 a::b\n4 \n", &names);
        let named = |names: &[&str]| Tests::Named(names.iter().map(|&name| name.into()).collect());
        let want = [(1, named(&["a::b"])), (2, named(&["a::b", "c"])), (3, Tests::All)];
        assert_eq!(reached, want.into_iter().chain([(4, Tests::All)]).collect());
    }
}
