//! `rove-lab bulk`: how fast files go over long, fat, lossy pipes, what that costs both machines, and what it does
//! to everybody beside it. scp over CUBIC and BBR, HPN-SSH's if it is there, `rove cp`, and a pipe into `rove exec`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::contender::{CONTROLS, Chaff, Ssh, is_usable, missing};
use super::outcome::Outcome;
use super::ping::Pinger;
use super::stage::{Shell, Stage};
use super::{RealFlags, keystroke::cpu_seconds};
use crate::clock::Clock;
use crate::demo::shell_word;
use crate::experiments::report::{Table, hundredths, tenths};
use crate::link::{Loss, Profile};
use crate::net::lateness::Late;
use crate::net::scenario::Scenario;
use crate::net::{End, FAR};
use crate::plot::{Axis, Curve, Figure, Panel, Stroke};
use crate::rng::{Chance, Rng};
use crate::scratch::Scratch;
use crate::stats::Summary;

/// Runs it.
///
/// # Errors
/// If there can be no links here, or the results cannot be written.
pub fn run(flags: &RealFlags) -> io::Result<i32> {
    let setting = flags.setting();
    let limit = flags.span(12, 30);
    let megabytes = setting.pick(40, 150);
    let programs = programs(flags)?;
    let mut items = Vec::new();
    for path in paths(setting.pick(1, 16)) {
        items.extend(programs.iter().map(|program| (path, program)));
    }
    eprintln!(
        "bulk: {} copies of {megabytes} MB, one at a time, at most {limit:?} each",
        items.len()
    );
    let mut table = Table::new(
        format!(
            "{megabytes} MB of random data, from its first octets on the path to the end of the program"
        ),
        2,
        &COLUMNS,
    );
    let (mut late, mut failures) = (Late::default(), Vec::new());
    // One at a time: copies beside each other would measure the machine.
    for (path, program) in &items {
        match copy(program, path.as_ref(), megabytes << 20, limit, flags.seed) {
            Ok(copied) => {
                late = late.worse(copied.late);
                table
                    .rows
                    .push(copied.row(&path.map_or("loopback".to_owned(), Pipe::name), program));
            }
            Err(error) => {
                let path = path.map_or("loopback".to_owned(), Pipe::name);
                failures.push(format!("{}, {path}: {error}", program.name));
            }
        }
    }
    let mut notes = vec![format!(
        "Files on disk at both ends, compared at the end; logging in is not counted. A copy that is not over after {} s \
         counts with what had arrived. Pings are ten a second beside it. Processor time is that of all processes of the \
         program at an end, in seconds for a gigabyte (10^9 octets).",
        limit.as_secs()
    )];
    notes.extend(missing());
    if which("hpnscp").is_none() {
        notes.push(
            "HPN-SSH is compared where `hpnscp` and `hpnsshd` are on PATH; here they are not."
                .to_owned(),
        );
    }
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    notes.push(format!("Load of the machine at the end (1, 5, 15 minutes): {}.", load.trim()));
    let figure = figure(&table, &programs);
    Outcome {
        name: "bulk",
        file: "bulk",
        title: "Files over long, fat, lossy pipes".to_owned(),
        notes,
        tables: vec![table],
        figure,
        late,
        failures,
    }
    .write(flags)
}

/// A program that copies.
#[derive(Clone, Debug)]
struct Copier {
    name: String,
    /// TCP's congestion control in the networks.
    congestion: &'static str,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Scp,
    HpnScp,
    RoveCopy,
    RovePipe,
}

/// A long path.
#[derive(Clone, Copy, Debug)]
struct Pipe {
    mbit: u64,
    round_trip: Duration,
    queue_percent: u64,
    loss: Chance,
}

/// What a copy was like.
struct Copied {
    bytes: u64,
    span: Duration,
    is_complete: bool,
    cpu: [f64; 2],
    pings: Vec<f64>,
    late: Late,
}

impl Pipe {
    fn name(self) -> String {
        format!(
            "{} Mbit/s, {} ms, loss {}, queue {} BDP",
            self.mbit,
            self.round_trip.as_millis(),
            self.loss,
            self.queue_percent as f64 / 100.0
        )
    }

    fn scenario(self, seed: u64) -> Scenario {
        let holds = self.mbit * 125 * self.round_trip.as_millis() as u64;
        let queue_bytes = (holds * self.queue_percent / 100) as usize;
        let back = Profile { header_bytes: 0, ..Profile::delay(self.round_trip / 2) };
        let up = Profile { loss: Loss::Independent(self.loss), ..back.clone() };
        Scenario::steady(up.rate(self.mbit * 1_000_000, queue_bytes), back, seed)
    }
}

impl Copied {
    fn row(&self, path: &str, program: &Copier) -> Vec<Value> {
        let gigabytes = self.bytes.max(1) as f64 / 1e9;
        let pings = Summary::of(&self.pings);
        vec![
            json!(path),
            json!(program.name),
            tenths(self.bytes as f64 * 8.0 / self.span.as_secs_f64() / 1e6),
            json!(if self.is_complete { "yes" } else { "no" }),
            hundredths(self.cpu[0] / gigabytes),
            hundredths(self.cpu[1] / gigabytes),
            pings.as_ref().map_or(Value::Null, |pings| tenths(pings.median)),
            pings.as_ref().map_or(Value::Null, |pings| tenths(pings.p95)),
        ]
    }
}

/// The first so many paths; without a pipe it is loopback.
fn paths(most: usize) -> Vec<Option<Pipe>> {
    let mut paths = vec![None];
    for (mbit, trip_ms) in [(200, 100), (400, 60)] {
        for queue_percent in [100, 10] {
            for ppm in [0, 10_000, 1_000, 50_000] {
                let (round_trip, loss) = (Duration::from_millis(trip_ms), Chance::per_million(ppm));
                paths.push(Some(Pipe { mbit, round_trip, queue_percent, loss }));
            }
        }
    }
    paths.truncate(most + 1);
    paths
}

fn programs(flags: &RealFlags) -> io::Result<Vec<Copier>> {
    let mut all = Vec::new();
    for congestion in CONTROLS.into_iter().filter(|control| is_usable(control)) {
        all.push(Copier { name: format!("scp ({congestion})"), congestion, what: What::Scp });
        if which("hpnscp").is_some() {
            let name = format!("hpnscp ({congestion})");
            all.push(Copier { name, congestion, what: What::HpnScp });
        }
    }
    let congestion = super::contender::usual();
    for (name, what) in [("rove cp", What::RoveCopy), ("rove exec, a pipe", What::RovePipe)] {
        all.push(Copier { name: name.to_owned(), congestion, what });
    }
    if let Some(only) = &flags.only {
        all.retain(|copier| only.split(',').any(|part| copier.name.contains(part)));
    }
    match all.is_empty() {
        true => Err(io::Error::other("no program is left to compare")),
        false => Ok(all),
    }
}

/// One copy over one path.
fn copy(
    copier: &Copier,
    pipe: Option<&Pipe>,
    bytes: u64,
    limit: Duration,
    seed: u64,
) -> io::Result<Copied> {
    let scratch = Scratch::new()?;
    let (source, target) = (scratch.join("source"), scratch.join("arrived"));
    write_random(&source, bytes, seed)?;
    fs::create_dir_all(&target)?;
    let ssh = Ssh { congestion: copier.congestion, chaff: Chaff::Default, root: None };
    let near = if pipe.is_some() { End::Near } else { End::Far };
    let shell = Shell { ssh: &ssh, near, seed };
    let mut stage = Stage::shell(shell, scratch, |ssh, config| {
        let copy = words(copier.what, ssh, config, &source, &target.join("file"));
        format!("echo ready$; read line; {copy}; echo over-$?-")
    })?;
    if let Some(pipe) = pipe {
        stage.follow(&pipe.scenario(seed));
    }
    let pinger = pipe.map(|_| Pinger::start(&stage.net)).transpose()?;
    let watched = watch(&mut stage, &target, bytes, limit)?;
    let pings = pinger.map_or(Vec::new(), Pinger::finish);
    let is_complete = watched.is_complete;
    if is_complete && fs::read(&source)? != fs::read(target.join("file"))? {
        return Err(io::Error::other("what arrived is not what was sent"));
    }
    Ok(Copied { pings, late: stage.net.late(), ..watched })
}

/// The copy as a line for sh, both files on this machine.
fn words(what: What, ssh: &str, config: &Path, source: &Path, target: &Path) -> String {
    let [config, source, target] = [config, source, target].map(|path| path.display().to_string());
    let ssh = shell_word(ssh);
    match what {
        What::Scp => {
            format!("scp -q -c aes128-gcm@openssh.com -F {config} {source} {FAR}:{target}")
        }
        What::HpnScp => {
            format!("hpnscp -q -c aes128-gcm@openssh.com -F {config} {source} {FAR}:{target}")
        }
        What::RoveCopy => format!("rove cp -q --ssh={ssh} {source} {FAR}:{target}"),
        What::RovePipe => format!("rove exec --ssh={ssh} {FAR} 'cat > {target}' < {source}"),
    }
}

/// Lets the copy begin, and looks at it until it is over or its time is.
fn watch(stage: &mut Stage, target: &Path, bytes: u64, limit: Duration) -> io::Result<Copied> {
    let clock = Clock::start();
    let before = stage.net.passed()[0].link.delivered_bytes;
    stage.client.send("\r");
    let mut began = Duration::ZERO;
    let mut has_begun = false;
    let mut cpu = BTreeMap::new();
    let mut status = None;
    let mut weighed = Duration::ZERO;
    while status.is_none() && clock.elapsed() < began + if has_begun { limit } else { LOGIN_MAX } {
        stage.client.pump(LOOK)?;
        let arriving = stage.net.passed()[0].link.delivered_bytes - before > BEGUN_BYTES
            || arrived(target)? > 0;
        if !has_begun && arriving {
            (has_begun, began) = (true, clock.elapsed());
        }
        if clock.elapsed() >= weighed + WEIGH {
            weighed = clock.elapsed();
            weigh(stage, &mut cpu)?;
        }
        status = [0, 1].into_iter().find(|status| {
            let ends = if *status == 0 { "over-0-" } else { "over-" };
            stage.client.shows(ends)
        });
    }
    if !has_begun {
        return Err(stage.client.missed("data on its way", LOGIN_MAX).into());
    }
    weigh(stage, &mut cpu)?;
    if status == Some(1) {
        let said = stage.client.screen().text().join(" ");
        return Err(io::Error::other(format!("it failed: {}", said.trim())));
    }
    let spent =
        |side: usize| cpu.iter().filter(|((at, _), _)| *at == side).map(|(_, cpu)| cpu).sum();
    Ok(Copied {
        bytes: if status.is_some() { bytes } else { arrived(target)? },
        span: clock.elapsed().saturating_sub(began).max(LOOK),
        is_complete: status.is_some(),
        cpu: [spent(0), spent(1)],
        pings: Vec::new(),
        late: Late::default(),
    })
}

/// Notes what the processes of each end have used so far; what one uses after the last look is not counted.
fn weigh(stage: &Stage, cpu: &mut BTreeMap<(usize, u32), f64>) -> io::Result<()> {
    for (side, end) in [End::Near, End::Far].into_iter().enumerate() {
        for pid in stage.processes(end)? {
            if let Some(seconds) = cpu_seconds(pid) {
                cpu.insert((side, pid), seconds);
            }
        }
    }
    Ok(())
}

/// Octets of all files in a directory, whatever they are called until the end.
fn arrived(directory: &Path) -> io::Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(directory)? {
        // One may get its last name meanwhile.
        sum += entry?.metadata().map_or(0, |metadata| metadata.len());
    }
    Ok(sum)
}

fn write_random(path: &Path, bytes: u64, seed: u64) -> io::Result<()> {
    let mut rng = Rng::new(seed);
    let mut file = io::BufWriter::new(File::create(path)?);
    for _ in 0..bytes / 8 {
        file.write_all(&rng.next_u64().to_le_bytes())?;
    }
    file.flush()
}

/// Where a program is on PATH.
fn which(program: &str) -> Option<String> {
    let mut command = crate::run::limited("sh", 5);
    let output = command.args(["-c", &format!("command -v {program}")]).output().ok()?;
    let mut path = String::new();
    output.stdout.as_slice().read_to_string(&mut path).ok()?;
    (!path.is_empty()).then_some(path)
}

fn figure(table: &Table, programs: &[Copier]) -> Figure {
    let panels = [(200, 100), (400, 60)].map(|(mbit, trip)| {
        let curve = |copier: &Copier| {
            let points = [(0, 0.01), (1_000, 0.1), (10_000, 1.0), (50_000, 5.0)];
            let points = points.into_iter().filter_map(|(ppm, at)| {
                let (round_trip, loss) = (Duration::from_millis(trip), Chance::per_million(ppm));
                let pipe = Pipe { mbit, round_trip, queue_percent: 100, loss };
                let keys = [json!(pipe.name()), json!(copier.name)];
                Some((at, table.number(&keys, "Mbit/s")?))
            });
            Curve { name: copier.name.clone(), points: points.collect(), stroke: Stroke::Solid }
        };
        Panel {
            title: format!("{mbit} Mbit/s, {trip} ms, queue 1 BDP"),
            x: Axis::log("loss, %"),
            y: Axis::linear("Mbit/s"),
            curves: programs.iter().map(curve).filter(|curve| !curve.points.is_empty()).collect(),
        }
    });
    Figure { title: "Goodput of copies".to_owned(), panels: panels.to_vec() }
}

const COLUMNS: [&str; 8] = [
    "path",
    "program",
    "Mbit/s",
    "complete",
    "near CPU, s/GB",
    "far CPU, s/GB",
    "ping median, ms",
    "ping p95, ms",
];

/// How often a copy is looked at: an end is seen so late at most.
const LOOK: Duration = Duration::from_millis(20);
/// How often its processes are.
const WEIGH: Duration = Duration::from_millis(250);
/// How long it may take until data is on its way.
const LOGIN_MAX: Duration = Duration::from_secs(20);
/// More than any login takes on the way up.
const BEGUN_BYTES: u64 = 64 << 10;
