//! `rove-lab ways`: a session whose datagrams are dropped goes on over ssh: how soon it starts, what keys, Ctrl-C and a copy
//! take, beside ssh itself; how soon it changes its way, and finds that its server is gone.

use std::fmt;
use std::fs;
use std::io;
use std::time::Duration;

use rove_term::Size;

use super::RealFlags;
use super::bars::{self, Bar};
use super::contender::{Contender, Kind, Ssh, usual};
use super::experiment::{self, Body, Experiment, Measured, Over, Title, samples};
use super::interrupt;
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
use crate::rng::Rng;
use crate::run::Stranger;
use crate::scratch::Scratch;
use crate::stats::Summary;

/// A quantity that is measured in a session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Part {
    /// UDP is dropped from the start: until the program's first word is seen.
    Start,
    /// The same: until each key is seen.
    Keys,
    /// The same, over a slow way down: until Ctrl-C is answered.
    Interrupt,
    /// UDP is dropped: until a file has been copied, from the command's start.
    Copy,
    /// UDP is dropped after this time of use: until a key is seen again.
    Lost(Duration),
    /// UDP passes again after it was dropped for this time from the start: until it is used.
    Back(Duration),
    /// Server and relay are killed: until the client has ended.
    Gone,
}

impl fmt::Display for Part {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Start => out.write_str("first word"),
            Part::Keys => out.write_str("keys"),
            Part::Interrupt => write!(out, "Ctrl-C over {KBIT} kbit/s"),
            Part::Copy => write!(out, "a copy of {} MiB", COPIED_BYTES >> 20),
            Part::Gone => out.write_str("server killed"),
            Part::Lost(after) => write!(out, "UDP dropped after {} s", after.as_secs()),
            Part::Back(after) => write!(out, "UDP back after {} s", after.as_secs()),
        }
    }
}

/// Runs it.
///
/// # Errors
/// If there can be no links here, or the results cannot be written.
pub(crate) fn run(flags: &RealFlags) -> io::Result<i32> {
    let all = [
        Part::Start,
        Part::Keys,
        Part::Interrupt,
        Part::Copy,
        LOST,
        LOST_LATER,
        BACK,
        BACK_LATER,
        Part::Gone,
    ];
    let contenders = flags.contenders(vec![Contender::ssh(usual()), rove()?])?;
    let mut cases = Over::each(flags.setting().pick(&all[..5], &all), &contenders);
    cases.retain(|case| !case.path.is_of_rove_alone() || !case.contender.name.starts_with("ssh"));
    let ways = Ways { span: flags.span(10, 120), rounds: flags.setting().pick(2, 20), cases };
    experiment::run(&ways, flags, |_| Vec::new())
}

/// rove as users start it, with a real ssh.
fn rove() -> io::Result<Contender> {
    let server = format!("--server={}", rove_program()?.display());
    let words = ["rove", "--native", "--way=auto", "-F", "{config}", &server, "{host}", "--"];
    let words = words.into_iter().chain(["{command}"]).map(str::to_owned).collect();
    Ok(Contender { name: ROVE.to_owned(), kind: Kind::Other(words) })
}

impl Part {
    /// Whether ssh has nothing of it.
    fn is_of_rove_alone(self) -> bool {
        matches!(self, Part::Lost(_) | Part::Back(_) | Part::Gone)
    }
}

/// Sessions that go on over ssh.
struct Ways {
    /// How long is typed.
    span: Duration,
    /// Floods that one session ends.
    rounds: u32,
    cases: Vec<Over<Part>>,
}

/// Times in ms, and how many of them only say "no less than this".
struct Times {
    ms: Vec<f64>,
    unseen: usize,
}

impl Times {
    fn one(span: Duration) -> Times {
        Times { ms: vec![span.as_secs_f64() * 1e3], unseen: 0 }
    }
}

impl Experiment for Ways {
    type Case = Over<Part>;
    type Sample = Times;

    fn title(&self) -> Title {
        Title::new("ways", "ways", "A session over ssh where UDP is dropped", DEPENDS)
    }

    fn cases(&self) -> Vec<Over<Part>> {
        self.cases.clone()
    }

    fn times(&self, flags: &RealFlags, case: &Over<Part>) -> u32 {
        match case.path {
            Part::Start => flags.times(2, 30),
            Part::Keys | Part::Interrupt => flags.times(1, 2),
            Part::Copy => flags.times(1, 3),
            Part::Lost(_) | Part::Back(_) | Part::Gone => flags.times(1, 12),
        }
    }

    fn lasts(&self, case: &Over<Part>) -> Option<Duration> {
        match case.path {
            // The time counts a login, which takes longer beside others.
            Part::Start | Part::Copy | Part::Gone | LOST_LATER => None,
            _ => Some(self.span),
        }
    }

    fn measure(&self, case: &Over<Part>, seed: u64) -> io::Result<OverLink<Times>> {
        let Over { path: part, contender } = case;
        let path = Scenario::alike(Profile::delay(RTT / 2), seed);
        match *part {
            Part::Start => {
                let setup = dropped(Setup::script(contender, "echo ready$; read -r line", path));
                let stage = Stage::start(setup, Scratch::new()?, "ready$")?;
                Ok(OverLink { found: Times::one(stage.took), late: stage.net.late() })
            }
            Part::Keys => {
                let mut prose =
                    Prose::open_with(contender, Pace::Person, self.span, path, dropped)?;
                // What rove says of the way stands where keys would.
                prose.stage.rest(SAID)?;
                prose.stage.begin();
                let seen = prose.type_all(REST, |_, _| Ok(()))?.whole(&prose.stage)?;
                let found = Times { ms: seen.latencies, unseen: seen.unseen };
                Ok(OverLink { found, late: prose.stage.net.late() })
            }
            Part::Interrupt => {
                let setup = dropped(interrupt::floods(contender, KBIT, seed));
                let answers = interrupt::answers(setup, self.rounds)?;
                let found = Times { ms: answers.found.ms, unseen: answers.found.unseen };
                Ok(OverLink { found, late: answers.late })
            }
            Part::Copy => copied(contender, seed),
            Part::Gone => gone(contender, path),
            Part::Lost(after) => lost(contender, after, path),
            Part::Back(after) => back(contender, after, path),
        }
    }

    fn report(&self, results: &[Measured<Over<Part>, Times>]) -> Body {
        let all = samples(results, |times| (&times.ms, times.unseen));
        Body {
            tables: vec![bars(&all), table("times in ms", &all)],
            figure: Figure::new("Over ssh", distributions(&all, "ms", "share")),
        }
    }

    fn prose(&self) -> Vec<String> {
        let seconds = self.span.as_secs();
        paragraphs(include_str!("text/ways.md"), &[("seconds", &seconds), ("again", &AGAIN)])
    }
}

fn dropped(setup: Setup<'_>) -> Setup<'_> {
    Setup { drops_udp: true, ..setup }
}

/// How long no key is seen when datagrams are dropped in the middle of a session.
fn lost(contender: &Contender, after: Duration, path: Scenario) -> io::Result<OverLink<Times>> {
    // Not always at the moment of a key.
    let seed = path.seed;
    let when = after + Rng::new(seed).span_below(GAP);
    let mut prose = Prose::open(contender, Pace::Every(GAP), when + LOST_MAX, path)?;
    prose.stage.begin();
    let mut is_dropped = false;
    let mut at = when;
    let seen = prose.type_all(REST, |stage, since| {
        if !is_dropped && since >= when {
            is_dropped = true;
            stage.net.let_udp(false)?;
            at = since;
        }
        Ok(())
    })?;
    let seen = seen.whole(&prose.stage)?;
    let latencies = seen.latencies.iter().map(|ms| Duration::from_micros((ms * 1e3) as u64));
    let shown = seen.typed.iter().zip(latencies).map(|(typed, latency)| (*typed, *typed + latency));
    // Else something was wrong before, and no way is missing.
    if shown.clone().any(|(typed, shown)| typed + SEEN_MAX < at && shown > at) {
        return Err(prose.stage.client.missed("the keys before UDP was dropped", at).into());
    }
    let unseen = usize::from(seen.unseen > 0);
    if unseen > 0 {
        eprintln!("seed {seed}: {}", prose.stage.client.missed("a key", LOST_MAX + REST));
    }
    // The echo of a key before may still have been on its way behind the filter.
    let first = shown.filter(|(typed, _)| *typed > at).map(|(_, shown)| shown).min();
    let first = first.unwrap_or(when + LOST_MAX + REST);
    let ms = vec![(first - at).as_secs_f64() * 1e3];
    Ok(OverLink { found: Times { ms, unseen }, late: prose.stage.net.late() })
}

/// How long it takes until the panel says that UDP is used, once it passes.
fn back(contender: &Contender, after: Duration, path: Scenario) -> io::Result<OverLink<Times>> {
    let setup = Setup { size: Size::clamped(40, 120), ..Setup::script(contender, WAITS, path) };
    let mut stage = Stage::start(dropped(setup), Scratch::new()?, "ready$")?;
    stage.rest(after)?;
    stage.net.let_udp(true)?;
    let clock = stage.net.clock();
    let began = clock.now();
    stage.client.send(PANEL);
    let used = format!("UDP {FAR}");
    stage.client.wait_for("the panel to name UDP", BACK_MAX, |client| client.shows(&used))?;
    let found = Times::one(clock.now().since(began));
    Ok(OverLink { found, late: stage.net.late() })
}

/// How long a copy by scp or `rove cp` takes over a path of 100 Mbit/s, from the command's start.
fn copied(contender: &Contender, seed: u64) -> io::Result<OverLink<Times>> {
    let scratch = Scratch::new()?;
    let (source, target) = (scratch.join("source"), scratch.join("arrived"));
    let mut octets = Vec::new();
    rove_ssp::Rng::new(seed).fill(COPIED_BYTES, &mut octets);
    fs::write(&source, &octets)?;
    let profile = Profile::delay(COPY_RTT / 2).rate(COPY_BITS, COPY_QUEUE_BYTES);
    let ssh = Ssh::over(usual());
    let shell = Shell { ssh: &ssh, near: End::Near, path: Scenario::alike(profile, seed) };
    let program = match contender.name.starts_with(ROVE) {
        true => format!(
            "rove cp --way=auto --server={}",
            shell_word(&rove_program()?.to_string_lossy())
        ),
        false => "scp".to_owned(),
    };
    let mut stage = Stage::shell(shell, scratch, |_, config| {
        let [config, source, target] =
            [config, &source, &target].map(|path| shell_word(&path.to_string_lossy()));
        format!(
            "echo ready$; read -r line; {program} -q -F {config} {source} {FAR}:{target}; echo over-$?-"
        )
    })?;
    stage.net.let_udp(false)?;
    stage.begin();
    let clock = stage.net.clock();
    let began = clock.now();
    stage.client.send("\r");
    stage.client.wait_for("the copy", COPY_MAX, |client| client.shows("over-"))?;
    let found = Times::one(clock.now().since(began));
    if !stage.client.shows("over-0-") || fs::read(&target)? != octets {
        return Err(stage.client.missed("a copy that is equal", COPY_MAX).into());
    }
    Ok(OverLink { found, late: stage.net.late() })
}

/// How long a client takes to end when its server was killed.
fn gone(contender: &Contender, path: Scenario) -> io::Result<OverLink<Times>> {
    let mut stage = Stage::start(Setup::script(contender, WAITS, path), Scratch::new()?, "ready$")?;
    stage.begin();
    stage.rest(USED)?;
    let clock = stage.net.clock();
    let began = clock.now();
    for pid in stage.processes(End::Far)? {
        if proc::name(pid) == "rove" {
            // A relay may have ended with the server.
            drop(Stranger::open(pid));
        }
    }
    let status = stage.client.wait_exit(GONE_MAX)?;
    if status.code() != Some(255) {
        return Err(io::Error::other(format!("the client ended with {status}")));
    }
    Ok(OverLink { found: Times::one(clock.now().since(began)), late: stage.net.late() })
}

/// The bars of a session over ssh, and whether each is met.
fn bars(all: &[Samples]) -> Table {
    let mut bars = Vec::new();
    let of = |part: Part, is_rove: bool| {
        let name = part.to_string();
        let is_it = |samples: &&Samples| {
            samples.path == name && samples.program.starts_with(if is_rove { ROVE } else { "ssh" })
        };
        Summary::of(&all.iter().find(is_it)?.values)
    };
    let largest = |part: Part| {
        let name = part.to_string();
        let samples = all.iter().find(|one| one.path == name && one.program == ROVE)?;
        samples.values.iter().copied().max_by(f64::total_cmp)
    };
    let mut add = |bar: &str, measured: Option<f64>, most: f64, part: Part| {
        let (Some(measured), Some(n)) = (measured, of(part, true).map(|summary| summary.n)) else {
            return;
        };
        bars.push((Bar::exact(bar, most, measured), n));
    };
    let median = |part, is_rove| of(part, is_rove).map(|summary| summary.median);
    let beyond = |part| Some(median(part, true)? - median(part, false)?);
    let trip = RTT.as_secs_f64() * 1e3;
    add("first word, beyond ssh's, medians", beyond(Part::Start), trip, Part::Start);
    add("a key, median", median(Part::Keys, true), trip + 10.0, Part::Keys);
    add("a key, beyond ssh's, medians", beyond(Part::Keys), 5.0, Part::Keys);
    add("Ctrl-C in a flood, median", median(Part::Interrupt, true), 400.0, Part::Interrupt);
    let twice = median(Part::Copy, false).map(|ssh| 2.0 * ssh);
    if let Some(twice) = twice {
        add(
            "a copy, twice scp's median at most, median",
            median(Part::Copy, true),
            twice,
            Part::Copy,
        );
    }
    add("UDP lost with ssh open, the longest", largest(LOST), 10_500.0, LOST);
    add("UDP lost, a new ssh, the longest", largest(LOST_LATER), 12_000.0, LOST_LATER);
    add("UDP back after seconds, the longest", largest(BACK), 5_000.0, BACK);
    add("server killed, the longest", largest(Part::Gone), 15_000.0, Part::Gone);
    bars::counted("bar | measured, ms | at most, ms | n | verdict", &bars)
}

/// The name of rove's row.
const ROVE: &str = "rove over ssh";

const RTT: Duration = Duration::from_millis(100);
/// The way down of floods.
const KBIT: u32 = 1_000;
/// While the ssh that began the session is still there, and when it has been let go, which it is after half a minute. Not
/// before the first row is full, where the bar stands.
const LOST: Part = Part::Lost(Duration::from_secs(14));
const LOST_LATER: Part = Part::Lost(Duration::from_secs(50));
/// While UDP is tried each second, and when tries are up to a minute apart.
const BACK: Part = Part::Back(Duration::from_secs(6));
const BACK_LATER: Part = Part::Back(Duration::from_secs(90));
/// Between keys.
const GAP: Duration = Duration::from_millis(200);
/// By then a key has been seen while UDP passes.
const SEEN_MAX: Duration = Duration::from_secs(2);
/// How long is typed after UDP was lost, and how long is waited for keys that are not seen.
const LOST_MAX: Duration = Duration::from_secs(20);
const REST: Duration = Duration::from_secs(20);
/// How long rove may take to use UDP again: tries are a minute apart.
const BACK_MAX: Duration = Duration::from_secs(100);
/// By then the bar has said that ssh is the way, and is gone.
const SAID: Duration = Duration::from_secs(15);
/// The path and the file of copies.
const COPY_RTT: Duration = Duration::from_millis(20);
const COPY_BITS: u64 = 100_000_000;
const COPY_QUEUE_BYTES: usize = 250_000;
const COPIED_BYTES: usize = 40 << 20;
const COPY_MAX: Duration = Duration::from_secs(120);
/// How long a session is used before its server is killed, and how long its client may take.
const USED: Duration = Duration::from_secs(5);
const GONE_MAX: Duration = Duration::from_secs(60);
/// A program that waits.
const WAITS: &str = "echo ready$; while read -r line; do :; done";
/// The keys that open the panel.
const PANEL: &str = "\x1es";

/// The parts of the lab that its numbers come from, besides those of all experiments on real programs.
const DEPENDS: &[&str] = &[
    "crates/lab/src/real/bars.rs",
    "crates/lab/src/real/interrupt.rs",
    "crates/lab/src/real/text/ways.md",
    "crates/lab/src/real/ways.rs",
];

#[cfg(test)]
mod tests;
