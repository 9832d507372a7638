//! Sweeps over many machines. `rove-lab sweep --print` lists independent commands, each with one seed and one
//! setting, which GNU parallel or a Slurm array runs as they are. `rove-lab point` is such a command and prints one
//! line of JSON. `rove-lab sweep --merge` makes a table and a figure of those lines.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, Read as _};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::experiments::probe::{Plan, Probe};
use crate::experiments::report::{Report, Table, tenths};
use crate::experiments::sender::Sender;
use crate::host::Load;
use crate::link::Profile;
use crate::plot::{Axis, Curve, Figure, Panel};
use crate::real::contender::{Contender, Wire};
use crate::real::experiment::{Experiment as _, Over};
use crate::real::losses::{Losses, Point};
use crate::real::sessions::OverLink;
use crate::rng::Chance;
use crate::stats::Summary;

/// Lists the commands of a sweep, or merges what they printed
#[derive(Args, Clone, Debug)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["print", "merge"])))]
pub(crate) struct SweepFlags {
    /// List the commands, one a line
    #[arg(long)]
    print: bool,
    /// Merge the lines that they printed, from these files or from standard input
    #[arg(long, value_name = "FILE", num_args = 0..)]
    merge: Option<Vec<PathBuf>>,
    /// Where programs run
    #[arg(long, value_enum, default_value_t = World::Virtual)]
    world: World,
    /// Seeds of each setting, from 1 on
    #[arg(long, value_name = "N", default_value_t = 10)]
    seeds: u64,
    /// Losses each way, in percent
    #[arg(
        long,
        value_name = "PERCENT",
        value_delimiter = ',',
        default_value = "0,1,5,10,20,29,50"
    )]
    loss: Vec<u32>,
    /// Round trips, in milliseconds
    #[arg(long, value_name = "MS", value_delimiter = ',', default_value = "20,100,500")]
    rtt_ms: Vec<u32>,
    /// Programs
    #[arg(long, value_enum, value_delimiter = ',', default_value = "mosh,rove")]
    program: Vec<Program>,
    /// Seconds of each session
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,
    /// Where the merged results go
    #[arg(long, value_name = "DIRECTORY", default_value = "results")]
    results: PathBuf,
}

/// One setting and one seed of a sweep; prints one line of JSON
#[derive(Args, Clone, Debug)]
pub(crate) struct PointFlags {
    /// Where the programs run
    #[arg(long, value_enum, default_value_t = World::Virtual)]
    world: World,
    /// Which program
    #[arg(long, value_enum)]
    program: Program,
    /// Round trip in milliseconds
    #[arg(long, value_name = "MS")]
    rtt_ms: u32,
    /// Loss each way, in percent
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(0..=100))]
    loss: u32,
    /// Seed of all chances
    #[arg(long, value_name = "N")]
    seed: u64,
    /// Seconds of the session
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,
}

/// Where programs run.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum World {
    /// Our machines, in virtual time: needs nothing, and the same line is the same run.
    Virtual,
    /// The real programs, over emulated links.
    Real,
}

/// Programs of a sweep.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Program {
    /// Stock mosh; its policy, in virtual time.
    Mosh,
    /// rove on its own wire.
    Rove,
    /// rove on mosh's wire.
    RoveMoshWire,
    /// OpenSSH, over cubic where it may; not in virtual time.
    Ssh,
}

/// Runs `rove-lab sweep`.
///
/// # Errors
/// If lines to merge are none, or the results cannot be written.
pub(crate) fn run(flags: &SweepFlags) -> io::Result<i32> {
    match &flags.merge {
        Some(files) => merge(flags, files),
        None => {
            for line in lines(flags) {
                println!("{line}");
            }
            Ok(0)
        }
    }
}

/// The commands of a sweep.
pub(crate) fn lines(flags: &SweepFlags) -> Vec<String> {
    let mut lines = Vec::new();
    let world = word(&flags.world);
    for seed in 1..=flags.seeds {
        for rtt in &flags.rtt_ms {
            for loss in &flags.loss {
                for program in &flags.program {
                    let program = word(program);
                    lines.push(format!(
                        "rove-lab point --world {world} --program {program} --rtt-ms {rtt} --loss {loss} --seed {seed} \
                         --seconds {}",
                        flags.seconds
                    ));
                }
            }
        }
    }
    lines
}

/// The word of the command line that means this.
fn word(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// Runs `rove-lab point`.
///
/// # Errors
/// If the session fails.
pub(crate) fn point(flags: &PointFlags) -> io::Result<i32> {
    let (values, unseen, valid) = match flags.world {
        World::Virtual => virtual_point(flags)?,
        World::Real => real_point(flags)?,
    };
    let (world, program) = (word(&flags.world), word(&flags.program));
    let rounded: Vec<Value> = values.iter().map(|value| tenths(*value)).collect();
    println!(
        "{}",
        json!({
            "world": world, "program": program, "rtt_ms": flags.rtt_ms, "loss": flags.loss,
            "seed": flags.seed, "seconds": flags.seconds, "unseen": unseen, "valid": valid, "ms": rounded,
        })
    );
    Ok(0)
}

fn virtual_point(flags: &PointFlags) -> io::Result<(Vec<f64>, u64, bool)> {
    let sender = match flags.program {
        Program::Mosh => Sender::stock(),
        Program::Rove => Sender::native(),
        Program::RoveMoshWire => Sender::rove(),
        Program::Ssh => return Err(io::Error::other("ssh runs with --world real only")),
    };
    let path = Profile::delay(Duration::from_micros(u64::from(flags.rtt_ms) * 500))
        .loss(Chance::percent(flags.loss));
    let plan = Plan { seed: flags.seed, ..Plan::alike(&sender, Load::Mixed, path) };
    let mut probe = Probe::start(&plan).map_err(io::Error::other)?;
    probe.settle(SETTLE).map_err(io::Error::other)?;
    let span = Duration::from_secs(flags.seconds.into());
    let measured = probe.measure(span).map_err(io::Error::other)?;
    Ok((measured.keys_ms, measured.unanswered, true))
}

fn real_point(flags: &PointFlags) -> io::Result<(Vec<f64>, u64, bool)> {
    let contender = match flags.program {
        Program::Mosh => Contender::mosh(),
        Program::Rove => Contender::rove(Wire::Native),
        Program::RoveMoshWire => Contender::rove(Wire::Mosh),
        Program::Ssh => Contender::ssh(crate::real::contender::usual()),
    };
    crate::net::command::be_allowed();
    let span = Duration::from_secs(flags.seconds.into());
    let path = Point { rtt: flags.rtt_ms, loss: flags.loss };
    let losses = Losses { span, tail: span, points: Vec::new(), contenders: Vec::new() };
    let OverLink { found, late } = losses.measure(&Over { path, contender }, flags.seed)?;
    Ok((found.latencies, found.unseen as u64, late.is_valid()))
}

/// A setting of a merged sweep: world, program, round trip, loss.
type Setting = (String, String, u64, u64);

/// Points by program.
type Curves = BTreeMap<String, Vec<(f64, f64)>>;

/// All that was found in a setting.
#[derive(Default)]
struct Found {
    seeds: BTreeMap<u64, Vec<f64>>,
    unseen: u64,
    invalid: u64,
}

fn merge(flags: &SweepFlags, files: &[PathBuf]) -> io::Result<i32> {
    let mut all: BTreeMap<Setting, Found> = BTreeMap::new();
    let mut take = |name: &str, input: &mut dyn io::Read| -> io::Result<()> {
        for (number, line) in io::BufReader::new(input.take(FILE_BYTES_MAX)).lines().enumerate() {
            let line = line?;
            if line.trim().is_empty() {
                continue;
            }
            let at = |what: &str| io::Error::other(format!("{name}:{}: {what}", number + 1));
            add(&mut all, &line).map_err(at)?;
        }
        Ok(())
    };
    if files.is_empty() {
        take("standard input", &mut io::stdin().lock())?;
    }
    for path in files {
        take(&path.display().to_string(), &mut std::fs::File::open(path)?)?;
    }
    report(&all).write(&flags.results)?;
    Ok(0)
}

/// One line; a second one of the same setting and seed is the same run, as after a resumed sweep, and is left out.
fn add(all: &mut BTreeMap<Setting, Found>, line: &str) -> Result<(), &'static str> {
    let value: Value = serde_json::from_str(line).map_err(|_| "no JSON")?;
    let text = |name: &str| value[name].as_str().map(str::to_owned).ok_or("no world or program");
    let number = |name: &str| value[name].as_u64().ok_or("no setting");
    let setting = (text("world")?, text("program")?, number("rtt_ms")?, number("loss")?);
    let samples = value["ms"].as_array().ok_or("no samples")?;
    let samples: Option<Vec<f64>> = samples.iter().map(Value::as_f64).collect();
    let found = all.entry(setting).or_default();
    let seed = number("seed")?;
    if found.seeds.contains_key(&seed) {
        return Ok(());
    }
    found.seeds.insert(seed, samples.ok_or("a sample that is no number")?);
    found.unseen += number("unseen")?;
    found.invalid += u64::from(value["valid"] != true);
    Ok(())
}

fn report(all: &BTreeMap<Setting, Found>) -> Report {
    let columns = "world | RTT, ms | loss, % | program | seeds | n | median | 95 % from | to | \
        mean | σ | p95 | p99 | unseen | invalid runs";
    let mut table = Table::new("latency of keys in ms, all seeds together", 4, columns);
    let mut panels: BTreeMap<(String, u64), Curves> = BTreeMap::new();
    for ((world, program, rtt, loss), found) in all {
        let samples: Vec<f64> = found.seeds.values().flatten().copied().collect();
        let Some(summary) = Summary::of(&samples) else { continue };
        let curves = panels.entry((world.clone(), *rtt)).or_default();
        curves.entry(program.clone()).or_default().push((*loss as f64, summary.mean));
        table.rows.push(vec![
            json!(world),
            json!(rtt),
            json!(loss),
            json!(program),
            json!(found.seeds.len()),
            json!(summary.n),
            tenths(summary.median),
            tenths(summary.interval.0),
            tenths(summary.interval.1),
            tenths(summary.mean),
            tenths(summary.sigma),
            tenths(summary.p95),
            tenths(summary.p99),
            json!(found.unseen),
            json!(found.invalid),
        ]);
    }
    let panels = panels.into_iter().map(|((world, rtt), curves)| {
        let (x, y) = (Axis::linear("loss each way, %"), Axis::log("mean latency, ms"));
        let curves = curves.into_iter().map(|(name, points)| Curve::solid(&name, points));
        Panel::new(format!("{world}, {rtt} ms round trip"), x, y, curves.collect())
    });
    let (title, figure) = ("Keys over many paths", Figure::new("Keys over many paths", panels));
    let note = "Each line of the sweep is one setting and one seed; docs/lab.md shows how many machines run it.";
    let depends = &["crates/lab/src/sweep.rs"];
    Report::new("sweep", title, note, depends, (vec![table], figure))
}

/// Before keys count: as in `rove-lab loss`.
const SETTLE: Duration = Duration::from_secs(20);
/// The longest file of lines.
const FILE_BYTES_MAX: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_merge_once() {
        let line = |seed: u64| {
            json!({"world": "virtual", "program": "rove", "rtt_ms": 100, "loss": 29, "seed": seed,
                "unseen": 1, "valid": true, "ms": [100.0, 200.0]})
            .to_string()
        };
        let mut all = BTreeMap::new();
        for seed in [1, 2, 1] {
            add(&mut all, &line(seed)).unwrap();
        }
        let report = report(&all);
        let keys = [json!("virtual"), json!(100), json!(29), json!("rove")];
        let number = |column| report.tables[0].number(&keys, column);
        assert_eq!(
            (number("seeds"), number("n"), number("median")),
            (Some(2.0), Some(4.0), Some(150.0))
        );
        assert_eq!(number("unseen"), Some(2.0));
        for line in ["", "{}", r#"{"world": "x", "program": "y", "rtt_ms": 1, "loss": 1}"#] {
            assert!(add(&mut all, line).is_err(), "{line}");
        }
    }
}
