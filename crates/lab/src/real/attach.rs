//! `rove-lab attach`: sessions that outlive their clients: how soon one is seen again after its client was killed, what a
//! second viewer costs the first, and how long a list of many takes.

use std::fmt;
use std::io;
use std::time::Duration;

use super::RealFlags;
use super::bars::{self, Bar};
use super::contender::{Contender, Kind, Ssh, usual};
use super::experiment::{self, Body, Experiment, Measured, Title};
use super::outcome::{AGAIN, Samples, distributions, table};
use super::sessions::OverLink;
use super::stage::{Setup, Shell, Stage};
use super::typing::{Pace, Prose};
use crate::demo::{rove_program, shell_word};
use crate::experiments::report::{Table, paragraphs};
use crate::link::Profile;
use crate::net::scenario::Scenario;
use crate::net::{End, FAR};
use crate::plot::Figure;
use crate::proc;
use crate::run::Program;
use crate::scratch::Scratch;
use crate::stats::Summary;

/// A quantity that is measured.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Part {
    /// A client is killed: from the start of another until the screen is there.
    Return,
    /// Keys of a client beside this many others.
    Keys(usize),
    /// A list of this many sessions, beyond what ssh takes to run nothing.
    List(u32),
}

impl fmt::Display for Part {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Return => out.write_str("attach after a kill"),
            Part::Keys(0) => out.write_str("keys, alone"),
            Part::Keys(others) => write!(out, "keys, {others} more attached"),
            Part::List(count) => write!(out, "ls of {count} sessions, beyond ssh"),
        }
    }
}

/// Runs it.
///
/// # Errors
/// If there can be no links here, or the results cannot be written.
pub(crate) fn run(flags: &RealFlags) -> io::Result<i32> {
    let list = flags.setting().pick(SHORT_LIST, LIST);
    let attach =
        Attach { span: flags.span(10, 120), cases: vec![Part::Return, ALONE, BESIDE, list] };
    experiment::run(&attach, flags, |_| Vec::new())
}

/// Sessions with several clients, one after the other or at the same time.
struct Attach {
    /// How long is typed.
    span: Duration,
    cases: Vec<Part>,
}

/// Times in ms, how many of them only say "no less than this", and what the server takes of memory, if that is looked at.
struct Times {
    ms: Vec<f64>,
    unseen: usize,
    server_kib: Option<f64>,
}

impl Experiment for Attach {
    type Case = Part;
    type Sample = Times;

    fn title(&self) -> Title {
        Title::new("attach", "attach", "Sessions that outlive their clients", DEPENDS)
    }

    fn cases(&self) -> Vec<Part> {
        self.cases.clone()
    }

    fn times(&self, flags: &RealFlags, part: &Part) -> u32 {
        match part {
            Part::Return => flags.times(2, 100),
            Part::Keys(_) => flags.times(1, 8),
            Part::List(_) => 1,
        }
    }

    fn measure(&self, part: &Part, seed: u64) -> io::Result<OverLink<Times>> {
        let path = Scenario::alike(Profile::delay(RTT / 2), seed);
        match *part {
            Part::Return => return_after_a_kill(path),
            Part::Keys(others) => keys(others, self.span, path),
            Part::List(count) => list(count, path),
        }
    }

    fn report(&self, results: &[Measured<Part, Times>]) -> Body {
        let all: Vec<Samples> = results
            .iter()
            .filter(|one| !one.samples.is_empty())
            .map(|one| Samples {
                path: one.case.to_string(),
                program: "rove".to_owned(),
                values: one.samples.iter().flat_map(|sample| sample.ms.iter().copied()).collect(),
                unseen: one.samples.iter().map(|sample| sample.unseen).sum(),
                late: one.late.clone(),
            })
            .collect();
        let memory = |part: Part| {
            let one = results.iter().find(|one| one.case == part)?;
            let kib: Vec<f64> = one.samples.iter().filter_map(|sample| sample.server_kib).collect();
            Some(Summary::of(&kib)?.median)
        };
        let more = memory(BESIDE).zip(memory(ALONE)).map(|(beside, alone)| beside - alone);
        Body {
            tables: vec![bars(&all, more), table("times in ms", &all)],
            figure: Figure::new("Attached", distributions(&all, "ms", "share")),
        }
    }

    fn prose(&self) -> Vec<String> {
        let seconds = self.span.as_secs();
        paragraphs(include_str!("text/attach.md"), &[("seconds", &seconds), ("again", &AGAIN)])
    }
}

/// A session of this name, made by `rove new` through a real ssh.
fn new(name: &str) -> io::Result<Contender> {
    let server = server()?;
    let words = ["rove", "new", "-s", name, "--native", "--way=auto", "-F", "{config}", &server];
    let words = words.into_iter().chain(["{host}", "--", "{command}"]).map(str::to_owned);
    Ok(Contender { name: "rove".to_owned(), kind: Kind::Other(words.collect()) })
}

/// Another client of the session, in the same network as the first.
fn attach(stage: &Stage, name: &str) -> io::Result<Program> {
    let server = shell_word(&server()?);
    stage.beside(|_, config| {
        let config = shell_word(&config.to_string_lossy());
        format!("exec rove attach --way=auto -F {config} {server} {FAR}:{name}")
    })
}

fn server() -> io::Result<String> {
    Ok(format!("--server={}", rove_program()?.display()))
}

/// A name that no other session of this user has.
fn name_of(seed: u64) -> String {
    format!("lab-{}-{seed}", std::process::id())
}

fn return_after_a_kill(path: Scenario) -> io::Result<OverLink<Times>> {
    let name = format!("{}-return", name_of(path.seed));
    let contender = new(&name)?;
    let script = "echo ready$; while read -r word; do echo got $word; done";
    let mut stage =
        Stage::start(Setup::script(&contender, script, path), Scratch::new()?, "ready$")?;
    stage.begin();
    stage.client.send("first\r");
    stage.client.wait_for("the answer", LIMIT, |client| client.shows("got first"))?;
    stage.client.kill()?;
    stage.client.wait_exit(LIMIT)?;
    let clock = stage.net.clock();
    let began = clock.now();
    let mut other = attach(&stage, &name)?;
    other.wait_for("the screen", LIMIT, |client| client.shows("got first"))?;
    let ms = vec![clock.now().since(began).as_secs_f64() * 1e3];
    other.send("second\r");
    other.wait_for("another answer", LIMIT, |client| client.shows("got second"))?;
    Ok(OverLink { found: Times { ms, unseen: 0, server_kib: None }, late: stage.net.late() })
}

fn keys(others: usize, span: Duration, path: Scenario) -> io::Result<OverLink<Times>> {
    let name = format!("{}-keys{others}", name_of(path.seed));
    let contender = new(&name)?;
    let mut prose = Prose::open(&contender, Pace::Person, span, path)?;
    let others = (0..others).map(|_| attach(&prose.stage, &name));
    let mut others = others.collect::<io::Result<Vec<Program>>>()?;
    for other in &mut others {
        other.wait_for("the screen", LIMIT, |client| client.shows("ready$"))?;
    }
    // What the bar says of them stands where keys would.
    prose.stage.rest(SAID)?;
    prose.stage.begin();
    let seen = prose.type_all(REST, |_, _| {
        others.iter_mut().try_for_each(|other| other.pump(Duration::ZERO).map(drop))
    })?;
    let seen = seen.whole(&prose.stage)?;
    let kib = |pid: u32| proc::field(format!("/proc/{pid}/status"), "VmRSS:")?.parse().ok();
    let servers = prose.stage.processes(End::Far)?;
    let servers = servers.into_iter().filter(|pid| proc::name(*pid) == "rove");
    // Relays take less than the session's server.
    let server_kib = servers.filter_map(kib).max_by(f64::total_cmp);
    let found = Times { ms: seen.latencies, unseen: seen.unseen, server_kib };
    Ok(OverLink { found, late: prose.stage.net.late() })
}

fn list(count: u32, path: Scenario) -> io::Result<OverLink<Times>> {
    let ssh = Ssh::over(usual());
    let prefix = name_of(path.seed);
    let shell = Shell { ssh: &ssh, near: End::Near, path };
    let stage =
        Stage::shell(shell, Scratch::new()?, |_, _| "echo ready$; read -r line".to_owned())?;
    stage.begin();
    let server = shell_word(&server()?);
    for number in 0..count {
        let mut client = stage.beside(|_, config| {
            let config = shell_word(&config.to_string_lossy());
            format!(
                "exec rove new -s {prefix}-{number} --way=auto -F {config} {server} {FAR} -- sh -c 'echo ready$; cat'"
            )
        })?;
        client.wait_for("a session", LIMIT, |client| client.shows("ready$"))?;
        client.kill()?;
    }
    let clock = stage.net.clock();
    let time = |line: &dyn Fn(&str) -> String, last: &str| -> io::Result<f64> {
        let began = clock.now();
        let mut client = stage.beside(|_, config| line(&shell_word(&config.to_string_lossy())))?;
        let status = client.wait_exit(LIMIT)?;
        if !status.success() || !client.lines().iter().any(|line| line.contains(last)) {
            return Err(client.missed("a whole list", LIMIT).into());
        }
        Ok(clock.now().since(began).as_secs_f64() * 1e3)
    };
    let (mut lists, mut logins) = (Vec::new(), Vec::new());
    for _ in 0..LISTS {
        let last = format!("{prefix}-{}", count - 1);
        let list = |config: &str| format!("exec rove ls -F {config} {server} {FAR}");
        lists.push(time(&list, &last)?);
        logins.push(time(&|config| format!("exec ssh -F {config} {FAR} echo done"), "done")?);
    }
    let login = Summary::of(&logins).map_or(0.0, |summary| summary.median);
    let ms = lists.iter().map(|ms| ms - login).collect();
    Ok(OverLink { found: Times { ms, unseen: 0, server_kib: None }, late: stage.net.late() })
}

/// The bars of sessions, and whether each is met.
fn bars(all: &[Samples], viewer_kib: Option<f64>) -> Table {
    let mut bars = Vec::new();
    let of = |part: Part| all.iter().find(|samples| samples.path == part.to_string());
    let summary = |part: Part| Summary::of(&of(part)?.values);
    let mut add = |bar: &str, measured: Option<f64>, most: f64, n: usize| {
        bars.extend(measured.map(|measured| (Bar::exact(bar, most, measured), n)));
    };
    let n = |part: Part| of(part).map_or(0, |samples| samples.values.len());
    let longest =
        of(Part::Return).and_then(|samples| samples.values.iter().copied().max_by(f64::total_cmp));
    add("seen again after a kill, the longest, ms", longest, 2_000.0, n(Part::Return));
    if let Some(alone) = summary(ALONE) {
        let beside = summary(BESIDE).map(|summary| summary.p99);
        add("keys beside a second viewer, p99, ms", beside, alone.p99 * 1.05, n(BESIDE));
    }
    add("a second viewer, KiB of the server", viewer_kib, 1_024.0, n(BESIDE));
    for list in [SHORT_LIST, LIST] {
        let median = summary(list).map(|summary| summary.median);
        add(&format!("{list}, median, ms"), median, 300.0, n(list));
    }
    bars::counted("bar | measured | at most | n | verdict", &bars)
}

const ALONE: Part = Part::Keys(0);
const BESIDE: Part = Part::Keys(1);
const LIST: Part = Part::List(64);
const SHORT_LIST: Part = Part::List(4);
/// How often the list is asked for.
const LISTS: u32 = 15;
const RTT: Duration = Duration::from_millis(20);
const LIMIT: Duration = Duration::from_secs(60);
/// By then the bar has said who is attached, and is gone.
const SAID: Duration = Duration::from_secs(15);
/// How long is waited for keys that are not seen.
const REST: Duration = Duration::from_secs(20);

/// The parts of the lab that its numbers come from, besides those of all experiments on real programs.
const DEPENDS: &[&str] = &[
    "crates/lab/src/real/attach.rs",
    "crates/lab/src/real/bars.rs",
    "crates/lab/src/real/text/attach.md",
];

#[cfg(test)]
mod tests;
