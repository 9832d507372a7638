//! Judges local echo: replays recorded sessions over emulated paths and counts which keys the user saw at once,
//! rightly or wrongly.

pub(crate) mod act;
pub(crate) mod calibrate;
pub(crate) mod cast;
pub(crate) mod ceiling;
pub(crate) mod judge;
pub(crate) mod lines;
pub(crate) mod live;
pub(crate) mod queries;
pub(crate) mod recorder;
pub(crate) mod replay;
pub(crate) mod script;
pub(crate) mod seat;
pub(crate) mod skills;
pub(crate) mod trace;
pub(crate) mod typist;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use rove_session::predict::{Display, Settings};

use crate::experiments::many;
use crate::link::Profile;
use crate::world::Fault;
use ceiling::{Cause, Demand};
use judge::{Deed, Mistake, Tally};
use replay::{Scenario, Typist};
pub(crate) use trace::DIALECT;
use trace::Trace;

/// Replays recorded sessions in virtual time and judges what local echo showed of them
#[derive(Args, Clone, Debug)]
pub(crate) struct PredictFlags {
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
    /// How much an engine that never errs could show, by what it demands; nothing is replayed
    #[arg(long)]
    ceiling: bool,
    /// Hold what our rules show against what is asked of them
    #[arg(long, conflicts_with_all = ["rules", "by_program", "causes"])]
    bars: bool,
    /// What each of our skills is worth: the same replay with it and without it
    #[arg(long, conflicts_with_all = ["rules", "by_program", "causes", "bars"])]
    skills: bool,
    /// One row for each cause that keeps keys from being shown at once
    #[arg(long)]
    causes: bool,
    /// List the keys that nothing keeps from being shown at once, and that were not
    #[arg(long)]
    missed: bool,
    /// List the graphemes that were wrong
    #[arg(long)]
    mistakes: bool,
}

/// A path, and how the user types over it.
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
    /// Its scenario.
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

impl PathWord {
    /// The share of keys that the real stock client was measured to show at once on the shared recordings
    /// (issue 4), in percent.
    const fn told(self) -> f64 {
        match self {
            Self::Rtt100 => 79.5,
            Self::Rtt273 => 70.5,
            Self::Rtt500Patient => 65.0,
            Self::Rtt500 => 58.0,
            Self::Queue4s => 0.0,
        }
    }
}

impl RulesWord {
    fn name(self) -> &'static str {
        match self {
            Self::Stock => "stock",
            Self::Rove => "rove",
        }
    }

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
pub(crate) fn run(flags: &PredictFlags) -> io::Result<i32> {
    let load = |path: &PathBuf| match flags.infer_lines {
        true => Trace::load(path).map(Trace::with_inferred_lines),
        false => Trace::load(path),
    };
    let traces: Vec<Trace> = flags.traces.iter().map(load).collect::<io::Result<_>>()?;
    if flags.ceiling {
        return Ok(ceilings(paths(&flags.paths), &traces));
    }
    if flags.bars {
        return bars(flags, &traces);
    }
    if flags.skills {
        return skills_table(flags, &traces);
    }
    println!("{HEADER}");
    for path in paths(&flags.paths) {
        let scenario = path.scenario();
        for rules in RulesWord::value_variants() {
            if flags.rules.is_none_or(|only| only == *rules) {
                let found = replay_all(flags, &traces, &scenario, rules.settings())?;
                found.print(flags, scenario.name, rules.name());
            }
        }
    }
    Ok(0)
}

/// Prints the bar for each path beside the result. A bar is 10 points above the real stock client's measured share,
/// or half of the echoable keys that it leaves, whichever is less.
fn bars(flags: &PredictFlags, traces: &[Trace]) -> io::Result<i32> {
    println!("path              told  stock  ceiling  asked   rove  wrong: stock   rove",);
    let mut patience: Vec<f64> = Vec::new();
    for path in paths(&flags.paths) {
        let scenario = path.scenario();
        let [stock, rove] = [RulesWord::Stock, RulesWord::Rove]
            .map(|rules| replay_all(flags, traces, &scenario, rules.settings()));
        let (stock, rove) = (stock?.rows.all, rove?.rows.all);
        let told = path.told();
        let asked = match path {
            PathWord::Queue4s => 70.0,
            _ => told + ((rove.percent(rove.echoed) - told) / 2.0).min(10.0),
        };
        println!(
            "{:17} {told:4.1} {:5.1}% {:7.1}% {asked:5.1}% {:5.1}% {:12.2}% {:5.2}%",
            scenario.name,
            stock.percent(stock.at_once),
            rove.percent(rove.echoed),
            rove.percent(rove.at_once),
            stock.percent(stock.wrong),
            rove.percent(rove.wrong),
        );
        if matches!(path, PathWord::Rtt500 | PathWord::Rtt500Patient) {
            patience.push(rove.percent(rove.at_once));
        }
    }
    if let [patient, hasty] = patience[..] {
        println!("patience makes a difference of {:.1} points", (patient - hasty).abs());
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

/// Prints, for each of our skills, how many keys call for it, in how many recordings; and over all keys how
/// many were shown at once and how many were wrong, with it and without.
fn skills_table(flags: &PredictFlags, traces: &[Trace]) -> io::Result<i32> {
    println!(
        "path              skill                   keys  files  at once: with  without  wrong: with  without"
    );
    let deeds: Vec<Vec<Deed>> = traces.iter().map(judge::deeds).collect();
    for path in paths(&flags.paths) {
        let scenario = path.scenario();
        let with = replay_all(flags, traces, &scenario, Settings::ROVE)?.rows.all;
        for (skill, name) in skills::ALL {
            let counts: Vec<u64> = deeds.iter().map(|of| skills::called_for(skill, of)).collect();
            let keys: u64 = counts.iter().sum();
            let files = counts.iter().filter(|count| **count > 0).count();
            let settings = Settings::ROVE.without(skill);
            let without = replay_all(flags, traces, &scenario, settings)?.rows.all;
            println!(
                "{:17} {name:22} {keys:5} {files:6} {:14} {:8} {:12} {:8}",
                scenario.name, with.at_once, without.at_once, with.wrong, without.wrong
            );
        }
    }
    Ok(0)
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

/// The result of replaying some traces by one set of rules.
#[derive(Debug, Default)]
struct Found {
    rows: Rows,
    /// Keys delayed by each cause: all of them, and those that were shown at once.
    causes: BTreeMap<Cause, (u64, u64)>,
    /// Keys worth a closer look, a line each.
    notes: Vec<String>,
}

impl Found {
    fn count(&mut self, causes: &[Option<Cause>], latencies: &[Option<Duration>]) {
        for (cause, latency) in causes.iter().zip(latencies) {
            let Some(cause) = cause else { continue };
            let (keys, at_once) = self.causes.entry(*cause).or_default();
            *keys += 1;
            *at_once += u64::from(judge::is_at_once(*latency));
        }
    }

    fn merge(&mut self, other: Self) {
        self.rows.merge(other.rows);
        for (cause, (keys, at_once)) in other.causes {
            let sums = self.causes.entry(cause).or_default();
            *sums = (sums.0 + keys, sums.1 + at_once);
        }
        self.notes.extend(other.notes);
    }

    fn print(&self, flags: &PredictFlags, path: &str, rules: &str) {
        self.notes.iter().for_each(|note| println!("    {note}"));
        for (row, tally) in self.rows.parts.iter().filter(|_| flags.by_program) {
            println!("{}", line(path, rules, row, tally));
        }
        println!("{}", line(path, rules, "all", &self.rows.all));
        for (cause, name) in Cause::ALL.iter().filter(|_| flags.causes) {
            let (keys, at_once) = self.causes.get(cause).copied().unwrap_or_default();
            let share = |count: u64| self.rows.all.percent(count);
            println!(
                "  kept back: {name:25} {keys:5} {:5.1}%, at once {at_once:5} {:5.1}%, later {:5} {:5.1}%",
                share(keys),
                share(at_once),
                keys - at_once,
                share(keys - at_once)
            );
        }
    }
}

/// Replays all traces, both cores at work.
fn replay_all(
    flags: &PredictFlags,
    traces: &[Trace],
    scenario: &Scenario,
    settings: Settings,
) -> io::Result<Found> {
    let display = if flags.adaptive { Display::Adaptive } else { Display::Always };
    let settings = settings.with_display(display);
    let scenarios = (0..flags.runs).map(|run| Scenario { run, ..scenario.clone() });
    let runs: Vec<(Scenario, &Trace)> = scenarios
        .flat_map(|scenario| traces.iter().map(move |trace| (scenario.clone(), trace)))
        .collect();
    let replay = |(scenario, trace): &(Scenario, &Trace)| {
        let found = replay_one(flags, trace, scenario, settings);
        Ok(found.map_err(|fault| io::Error::other(format!("{}: {fault}", trace.name))))
    };
    let mut found = Found::default();
    for one in many(&runs, replay).map_err(io::Error::other)? {
        found.merge(one?);
    }
    Ok(found)
}

fn replay_one(
    flags: &PredictFlags,
    trace: &Trace,
    scenario: &Scenario,
    settings: Settings,
) -> Result<Found, Fault> {
    let mut found = Found::default();
    let deeds = judge::deeds(trace);
    let replay::Replayed { judge, end, .. } = replay::replay(trace, &deeds, scenario, settings)?;
    let causes = ceiling::causes(&deeds, scenario);
    found.count(&causes, judge.latencies());
    let note = |key: usize, what: String| {
        let Deed { program, at, octets, .. } = &deeds[key];
        let typed = String::from_utf8_lossy(octets);
        format!("{}.cast {program} at {at:?}, key {key} ({typed:?}): {what}", trace.name)
    };
    for (key, latency) in judge.latencies().iter().enumerate().filter(|_| flags.missed) {
        if causes[key] == Some(Cause::Nothing) && !judge::is_at_once(*latency) {
            found.notes.push(note(key, format!("seen after {latency:?}")));
        }
    }
    let (tallies, mistakes) = judge.finish(end);
    found.rows.add(&trace.name, &tallies);
    let wrong = |mistake: &Mistake| {
        let Mistake { text, at, stood, .. } = mistake;
        note(mistake.key, format!("{text:?} at {at:?} for {stood:?}"))
    };
    found.notes.extend(mistakes.iter().filter(|_| flags.mistakes).map(wrong));
    Ok(found)
}

const HEADER: &str = "path              rules  program         keys effect  ceiling  at once   wrong   rate  \
                      stood ms  flicker  median ms  mean ms";

/// One row of the table. Shares are of the keys with an effect.
fn line(path: &str, rules: &str, row: &str, tally: &Tally) -> String {
    let percent = |count: u64| tally.percent(count);
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
