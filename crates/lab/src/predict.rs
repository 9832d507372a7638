//! The judge of predictions: recorded sessions, replayed over emulated paths, and how much of what was
//! typed the user saw at once, rightly or wrongly.

pub mod act;
pub mod calibrate;
pub mod cast;
pub mod ceiling;
pub mod ends;
pub mod judge;
pub mod lines;
pub mod live;
pub mod queries;
pub mod recorder;
pub mod replay;
pub mod script;
pub mod trace;
pub mod typist;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use rove_session::predict::{Display, Settings};
use rove_term::Dialect;

use crate::link::Profile;
use ceiling::Demand;
use judge::Tally;
use replay::{Scenario, Typist};
use trace::Trace;

/// What the recorded programs' output is read with.
pub const DIALECT: Dialect = Dialect::ROVE;

/// Replays recorded sessions in virtual time and judges what local echo showed of them
#[derive(Args, Clone, Debug)]
pub struct PredictFlags {
    /// A recorded session (asciicast v2 with what was typed)
    #[arg(long = "trace", value_name = "FILE", required = true, num_args = 1..)]
    traces: Vec<PathBuf>,
    /// The path to replay over; all of them by default
    #[arg(long = "path", value_name = "PATH")]
    paths: Vec<PathWord>,
    /// Whose rules make the guesses; both by default
    #[arg(long, value_name = "RULES")]
    rules: Option<RulesWord>,
    /// Show guesses only where a path is slow, as the programs do by default
    #[arg(long)]
    adaptive: bool,
    /// Type each recording so often, from the second time on over a path with a little jitter
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100))]
    runs: u64,
    /// Infer the terminal line of recordings that do not tell of it, and report it to our rules
    #[arg(long)]
    infer_lines: bool,
    /// One row for each program, and for each recording
    #[arg(long)]
    by_program: bool,
    /// How much an engine that never errs could show, by what it demands after Enter; nothing is replayed
    #[arg(long)]
    ceiling: bool,
    /// List the graphemes that were wrong
    #[arg(long)]
    mistakes: bool,
}

/// A path, and who types over it.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum PathWord {
    /// 100 ms round trip
    Rtt100,
    /// 273 ms round trip
    Rtt273,
    /// 500 ms round trip; the typist waits for what is not simply echoed
    Rtt500Patient,
    /// 500 ms round trip; the typist never waits
    Rtt500,
    /// 50 ms up, and a queue of 4 s down
    Queue4s,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum RulesWord {
    Stock,
    Rove,
}

impl PathWord {
    /// What it does.
    pub fn scenario(self) -> Scenario {
        let (name, up, down, typist) = match self {
            Self::Rtt100 => ("100 ms", 50, 50, Typist::TypesOn),
            Self::Rtt273 => ("273 ms", 136, 137, Typist::TypesOn),
            Self::Rtt500Patient => ("500 ms, patient", 250, 250, Typist::Patient),
            Self::Rtt500 => ("500 ms, types on", 250, 250, Typist::TypesOn),
            Self::Queue4s => ("4 s queue", 50, 4000, Typist::TypesOn),
        };
        let way = |ms| Profile::delay(Duration::from_millis(ms));
        Scenario { name, up: way(up), down: way(down), typist, run: 0 }
    }
}

impl RulesWord {
    fn settings(self) -> Settings {
        match self {
            Self::Stock => Settings::STOCK,
            Self::Rove => Settings::ROVE,
        }
    }
}

/// Runs `rove-lab predict`.
///
/// # Errors
/// A trace that cannot be read, or a replay in which something happened that must not.
pub fn run(flags: &PredictFlags) -> io::Result<i32> {
    let load = |path: &PathBuf| match flags.infer_lines {
        true => Trace::load(path).map(Trace::with_inferred_lines),
        false => Trace::load(path),
    };
    let traces: Vec<Trace> = flags.traces.iter().map(load).collect::<io::Result<_>>()?;
    if flags.ceiling {
        return Ok(ceilings(paths(&flags.paths), &traces));
    }
    println!("{HEADER}");
    for path in paths(&flags.paths) {
        for rules in RulesWord::value_variants() {
            if flags.rules.is_none_or(|only| only == *rules) {
                run_one(flags, &traces, &path.scenario(), *rules)?;
            }
        }
    }
    Ok(0)
}

/// Prints what could be shown at once.
fn ceilings(paths: &[PathWord], traces: &[Trace]) -> i32 {
    println!("{:17} {:24} at once", "path", "what is shown");
    for path in paths {
        let scenario = path.scenario();
        for (demand, name) in Demand::ALL {
            let (mut shown, mut effects) = (0, 0);
            for trace in traces {
                let (more, of) = ceiling::ceiling(&judge::deeds(trace), &scenario, demand);
                (shown, effects) = (shown + more, effects + of);
            }
            let share = 100.0 * shown as f64 / effects.max(1) as f64;
            println!("{:17} {name:24} {share:6.1}%", scenario.name);
        }
    }
    0
}

/// The paths asked for; all if none is.
fn paths(asked: &[PathWord]) -> &[PathWord] {
    if asked.is_empty() { PathWord::value_variants() } else { asked }
}

/// The rows of a table.
#[derive(Clone, Debug, Default)]
struct Rows {
    all: Tally,
    /// By program, and by recording.
    parts: BTreeMap<String, Tally>,
}

impl Rows {
    fn add(&mut self, trace: &str, tallies: &BTreeMap<String, Tally>) {
        for (program, tally) in tallies {
            self.parts.entry(program.clone()).or_default().add(tally);
            self.parts.entry(format!("{trace}.cast")).or_default().add(tally);
            self.all.add(tally);
        }
    }

    fn merge(&mut self, other: Self) {
        self.all.add(&other.all);
        for (name, tally) in other.parts {
            self.parts.entry(name).or_default().add(&tally);
        }
    }
}

fn run_one(
    flags: &PredictFlags,
    traces: &[Trace],
    scenario: &Scenario,
    rules: RulesWord,
) -> io::Result<()> {
    let display = if flags.adaptive { Display::Adaptive } else { Display::Always };
    let settings = rules.settings().with_display(display);
    let mut rows = Rows::default();
    let scenarios = (0..flags.runs).map(|run| Scenario { run, ..scenario.clone() });
    let runs =
        scenarios.flat_map(|scenario| traces.iter().map(move |trace| (scenario.clone(), trace)));
    for (scenario, trace) in runs {
        let deeds = judge::deeds(trace);
        let replay::Replayed { judge, end, .. } =
            replay::replay(trace, &deeds, &scenario, settings)
                .map_err(|fault| io::Error::other(format!("{}: {fault}", trace.name)))?;
        let (tallies, mistakes) = judge.finish(end);
        rows.add(&trace.name, &tallies);
        for mistake in mistakes.iter().filter(|_| flags.mistakes) {
            let deed = &deeds[mistake.key];
            println!(
                "    {}.cast {} at {:?}, key {} ({:?}): {:?} at {:?} for {:?}",
                trace.name,
                deed.program,
                deed.at,
                mistake.key,
                String::from_utf8_lossy(&deed.octets),
                mistake.text,
                mistake.at,
                mistake.stood
            );
        }
    }
    let name = if rules == RulesWord::Stock { "stock" } else { "rove" };
    for (row, tally) in rows.parts.iter().filter(|_| flags.by_program) {
        println!("{}", line(scenario.name, name, row, tally));
    }
    println!("{}", line(scenario.name, name, "all", &rows.all));
    Ok(())
}

const HEADER: &str = "path              rules  program         keys effect  ceiling  at once   wrong   rate  \
                      stood ms  flicker  median ms  mean ms";

/// One row of the table. Shares are of the keys with an effect.
fn line(path: &str, rules: &str, row: &str, tally: &Tally) -> String {
    let percent = |count: u64| 100.0 * count as f64 / tally.effects.max(1) as f64;
    let millis = |span: Duration| span.as_secs_f64() * 1e3;
    let mut latencies = tally.latencies.clone();
    latencies.sort_unstable();
    let median = latencies.get(latencies.len() / 2).copied().unwrap_or_default();
    let mean = latencies.iter().map(Duration::as_secs_f64).sum::<f64>() * 1e3
        / latencies.len().max(1) as f64;
    let stood = tally.stood.iter().map(Duration::as_secs_f64).sum::<f64>() * 1e3
        / tally.stood.len().max(1) as f64;
    format!(
        "{path:17} {rules:6} {row:14} {:5} {:6} {:7.1}% {:7.1}% {:7} {:5.2}% {:9.0} {:8} {:10.1} {:8.1}",
        tally.keys,
        tally.effects,
        percent(tally.echoed),
        percent(tally.at_once),
        tally.wrong,
        percent(tally.wrong),
        stood,
        tally.flicker,
        millis(median),
        mean
    )
}
