//! `rove-lab keystroke`: what a keystroke costs, and what silence does: packets, octets, processor time and
//! wake-ups at both ends. OpenSSH with and without chaff, mosh, rove.

use std::fs;
use std::io;
use std::time::Duration;

use serde_json::json;

use super::RealFlags;
use super::contender::{Chaff, Contender, Echo, Kind, Ssh, Wire};
use super::outcome::Outcome;
use super::stage::{Setup, Stage};
use super::typing::{Pace, READY, prose, type_keys};
use crate::experiments::report::{Table, hundredths};
use crate::link::Profile;
use crate::net::End;
use crate::net::lateness::Late;
use crate::net::scenario::{Middle, Scenario};
use crate::plot::{Axis, Curve, Figure, Panel, Stroke};
use crate::predict::judge::deeds;
use crate::predict::trace::Trace;
use crate::scratch::Scratch;

/// What both ends have used so far.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    /// Packets and octets, up and down.
    packets: [u64; 2],
    octets: [u64; 2],
    /// Time on a processor in seconds, and how often it was given up freely: near and far.
    cpu: [f64; 2],
    wakes: [u64; 2],
}

/// What was typed meanwhile.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Load {
    /// Like a person.
    Typing,
    /// One key, and a long time nothing.
    Alone,
    /// Nothing.
    Idle,
}

impl Load {
    fn name(self) -> &'static str {
        match self {
            Load::Typing => "typing, for each key",
            Load::Alone => "a key alone, for each",
            Load::Idle => "idle, a minute",
        }
    }
}

/// Runs it.
///
/// # Errors
/// If there can be no links here, or the results cannot be written.
pub fn run(flags: &RealFlags) -> io::Result<i32> {
    let setting = flags.setting();
    let trips = setting.pick(&[100u32][..], &[20, 100, 300][..]);
    let loads = setting.pick(&[Load::Typing][..], &[Load::Typing, Load::Alone, Load::Idle][..]);
    let span = flags.span(8, 120);
    let contenders = flags.contenders(contenders(flags))?;
    let mut items: Vec<(u32, Load, &Contender)> = Vec::new();
    for trip in trips {
        // Silence is the same at any distance.
        for load in loads.iter().filter(|load| **load != Load::Idle || *trip == 100) {
            items.extend(contenders.iter().map(|contender| (*trip, *load, contender)));
        }
    }
    flags.estimate("keystroke", items.len(), span + Duration::from_secs(4));
    let mut table = Table::new(
        "packets and octets on the wire (with IP headers), processor time and wake-ups of all processes of the program",
        3,
        &[
            "load",
            "RTT, ms",
            "program",
            "n",
            "packets up",
            "packets down",
            "octets up",
            "octets down",
            "client CPU, ms",
            "server CPU, ms",
            "client wake-ups",
            "server wake-ups",
        ],
    );
    let (mut late, mut failures) = (Late::default(), Vec::new());
    let results = flags
        .each(&items, |(trip, load, contender)| session(contender, *trip, *load, span, flags.seed));
    for ((trip, load, contender), result) in items.iter().zip(results) {
        match result {
            Err(error) => failures.push(format!("{}, {}: {error}", contender.name, load.name())),
            Ok((n, used, links)) => {
                late = late.worse(links);
                let each = |count: f64| hundredths(count / n);
                table.rows.push(vec![
                    json!(load.name()),
                    json!(trip),
                    json!(contender.name),
                    hundredths(n),
                    each(used.packets[0] as f64),
                    each(used.packets[1] as f64),
                    each(used.octets[0] as f64),
                    each(used.octets[1] as f64),
                    each(used.cpu[0] * 1e3),
                    each(used.cpu[1] * 1e3),
                    each(used.wakes[0] as f64),
                    each(used.wakes[1] as f64),
                ]);
            }
        }
    }
    let mut notes = vec![format!(
        "Without predictions, over a path that loses nothing, {} s of each load. Typing is text at a prompt, about 4 keys \
         a second; a key alone is one in 5 s; silence is measured after its first minute, if it is that long. \"n\" is \
         keys, or minutes.",
        span.as_secs()
    )];
    if flags.openssh.is_none() {
        notes.push(
            "The system's ssh alone: one of 9.5 or later, which hides keystrokes among others, is compared where \
             --openssh names a directory with one (scripts/fetch-openssh)."
                .to_owned(),
        );
    }
    let figure = figure(&table, &contenders, loads, trips);
    Outcome {
        name: "keystroke",
        file: "keystroke",
        title: "What a keystroke costs, and what silence does".to_owned(),
        notes,
        tables: vec![table],
        figure,
        late,
        failures,
    }
    .write(flags)
}

fn contenders(flags: &RealFlags) -> Vec<Contender> {
    let ssh = |name: &str, chaff, root| Contender {
        name: name.to_owned(),
        kind: Kind::Ssh(Ssh { congestion: super::contender::usual(), chaff, root }),
    };
    let mut all = vec![ssh("ssh, the system's", Chaff::Default, None)];
    if let Some(root) = &flags.openssh {
        all.push(ssh("ssh with chaff", Chaff::Default, Some(root.clone())));
        all.push(ssh("ssh without chaff", Chaff::Off, Some(root.clone())));
    }
    all.extend([Contender::mosh(), Contender::rove(Wire::Native), Contender::rove(Wire::Mosh)]);
    all
}

/// How many keys or minutes, what they took, and how late the link was.
fn session(
    contender: &Contender,
    trip: u32,
    load: Load,
    span: Duration,
    seed: u64,
) -> io::Result<(f64, Used, Late)> {
    let scratch = Scratch::new()?;
    let cast = scratch.join("prose.cast");
    let (keys, pace) = match load {
        Load::Typing => ((span.as_secs() * 4) as usize, Pace::Person),
        Load::Alone => ((span.as_secs() / ALONE.as_secs()).max(1) as usize, Pace::Every(ALONE)),
        Load::Idle => (0, Pace::Person),
    };
    prose(&cast, keys, pace, seed)?;
    let trace = Trace::load(&cast)?;
    let mut deeds = deeds(&trace);
    if load == Load::Typing {
        let first = deeds.first().map_or(Duration::ZERO, |deed| deed.at);
        deeds.retain(|deed| deed.at - first < span);
    }
    let lab = std::env::current_exe()?;
    let setup = Setup {
        contender,
        echo: Echo::Never,
        remote: vec![lab.into(), "act".into(), cast.into()],
        size: trace.size,
        middle: Middle::Plain,
        seed,
    };
    let mut stage = Stage::start(setup, scratch, READY)?;
    let profile = Profile::delay(Duration::from_micros(u64::from(trip) * 500));
    stage.follow(&Scenario::steady(profile.clone(), profile, seed));
    // What the start of a session still has to say.
    let settle = if load == Load::Idle && span >= MINUTE { MINUTE + SETTLE } else { SETTLE };
    rest(&mut stage, settle)?;
    let before = used(&stage)?;
    let n = match load {
        Load::Idle => {
            rest(&mut stage, span)?;
            span.as_secs_f64() / 60.0
        }
        Load::Typing | Load::Alone => {
            let seen =
                type_keys(&mut stage, &trace, &deeds, Duration::from_secs(5), |_, _| Ok(()))?;
            // Acknowledgments and chaff that the last key still causes.
            rest(&mut stage, if load == Load::Alone { ALONE } else { SETTLE })?;
            seen.latencies.len() as f64
        }
    };
    let after = used(&stage)?;
    let mut spent = Used::default();
    for side in 0..2 {
        spent.packets[side] = after.packets[side] - before.packets[side];
        spent.octets[side] = after.octets[side] - before.octets[side];
        spent.cpu[side] = (after.cpu[side] - before.cpu[side]).max(0.0);
        spent.wakes[side] = after.wakes[side].saturating_sub(before.wakes[side]);
    }
    Ok((n, spent, stage.net.late()))
}

fn rest(stage: &mut Stage, span: Duration) -> io::Result<()> {
    let clock = stage.net.clock();
    let until = clock.now() + span;
    while clock.now() < until {
        stage.client.pump(until.since(clock.now()))?;
    }
    Ok(())
}

fn used(stage: &Stage) -> io::Result<Used> {
    let mut used = Used::default();
    for (side, passed) in stage.net.passed().iter().enumerate() {
        used.packets[side] = passed.link.offered;
        used.octets[side] = passed.link.offered_bytes;
    }
    for (side, end) in [End::Near, End::Far].into_iter().enumerate() {
        for pid in stage.processes(end)? {
            // Processes that end meanwhile take what they used with them.
            used.cpu[side] += cpu_seconds(pid).unwrap_or(0.0);
            used.wakes[side] += wakes(pid).unwrap_or(0);
        }
    }
    Ok(used)
}

/// Time on a processor of all threads of a process (proc(5), the first number of schedstat, in nanoseconds).
pub(super) fn cpu_seconds(pid: u32) -> Option<f64> {
    sum(pid, |task| {
        let text = fs::read_to_string(task.join("schedstat")).ok()?;
        Some(text.split_whitespace().next()?.parse::<f64>().ok()? / 1e9)
    })
}

/// How often its threads slept and were woken (proc(5), voluntary_ctxt_switches).
fn wakes(pid: u32) -> Option<u64> {
    let sum = sum(pid, |task| {
        let text = fs::read_to_string(task.join("status")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line?.trim().parse::<f64>().ok()
    });
    sum.map(|sum| sum as u64)
}

fn sum(pid: u32, of: impl Fn(&std::path::Path) -> Option<f64>) -> Option<f64> {
    let mut sum = 0.0;
    for task in fs::read_dir(format!("/proc/{pid}/task")).ok()? {
        sum += of(&task.ok()?.path())?;
    }
    Some(sum)
}

fn figure(table: &Table, contenders: &[Contender], loads: &[Load], trips: &[u32]) -> Figure {
    let mut panels = Vec::new();
    for load in loads.iter().filter(|load| **load != Load::Idle) {
        let curve = |contender: &Contender| {
            let points = trips.iter().filter_map(|trip| {
                let keys = [json!(load.name()), json!(trip), json!(contender.name)];
                let up = table.number(&keys, "packets up")?;
                let down = table.number(&keys, "packets down")?;
                Some((f64::from(*trip), up + down))
            });
            Curve { name: contender.name.clone(), points: points.collect(), stroke: Stroke::Solid }
        };
        panels.push(Panel {
            title: load.name().to_owned(),
            x: Axis::linear("round trip, ms"),
            y: Axis::log("packets, both ways"),
            curves: contenders.iter().map(curve).filter(|curve| !curve.points.is_empty()).collect(),
        });
    }
    Figure { title: "Packets for each keystroke".to_owned(), panels }
}

/// Between keys that are alone: what chaff follows a key has ended by then.
const ALONE: Duration = Duration::from_secs(5);
/// Programs may say less once nobody has typed for a while.
const MINUTE: Duration = Duration::from_secs(60);
/// How long a session is left alone before it is measured.
const SETTLE: Duration = Duration::from_secs(2);
