//! `rove-lab paper`: repeats the comparison of the Mosh paper (USENIX ATC 2012, section 4) on real programs: a slow
//! cellular network, one with a bulk transfer and a deep queue, a wire around the world, and a lossy path without
//! predictions. It also checks the paper's other claims on the recordings that it types.

use std::fmt;
use std::io;
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rove_ssp::Time;
use serde_json::json;

use super::contender::{Contender, Echo, missing, usual};
use super::experiment::{self, Body, Experiment, Measured, Over, Title, samples};
use super::flow::Flow;
use super::outcome::{AGAIN, Samples, against, distributions, table};
use super::sessions::OverLink;
use super::stage::{Setup, Stage};
use super::typing::{Pace, READY, Seen, prose, type_keys};
use super::{RealFlags, Setting, claims};
use crate::experiments::report::{Table, hundredths, paragraphs};
use crate::link::{Profile, Traced};
use crate::net::FAR;
use crate::net::scenario::Scenario;
use crate::opportunities::Opportunities;
use crate::plot::Figure;
use crate::predict::cast::Writer;
use crate::predict::judge::deeds;
use crate::predict::trace::{Kind, Trace};
use crate::relay::Direction;
use crate::rng::Chance;
use crate::scratch::Scratch;

/// A path of the paper.
#[derive(Clone, Debug)]
struct Access {
    name: &'static str,
    up: Profile,
    down: Profile,
    bulk: Bulk,
    echo: Echo,
}

/// Whether something else fills the queue.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Bulk {
    Nothing,
    /// A TCP download.
    Download,
}

/// A recording that is typed over a path.
#[derive(Clone)]
struct Course {
    access: Access,
    recording: Arc<(PathBuf, Trace)>,
}

impl fmt::Display for Course {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.access.name)
    }
}

/// Runs it.
///
/// # Errors
/// If there can be no links here, recordings cannot be read, or the results cannot be written.
pub(crate) fn run(flags: &RealFlags) -> io::Result<i32> {
    let scratch = Scratch::new()?;
    let recorded = claims::recordings(flags)?;
    let paper = Paper {
        span: flags.span(5, 180),
        tail: flags.setting().pick(QUICK_TAIL, TAIL),
        congestion: usual(),
        accesses: accesses(flags)?,
        contenders: flags.contenders(Contender::all())?,
        recordings: recordings(flags, &scratch, flags.span(5, 180))?,
        claims: if recorded.is_empty() { None } else { Some(claims::table(&recorded)?) },
    };
    experiment::run(&paper, flags, |setting| {
        let mut notes = missing();
        if flags.cellular.is_none() && setting == Setting::Full {
            notes.push("Recorded cellular networks are used where --cellular names their directory; here none were.".to_owned());
        }
        if paper.claims.is_none() {
            notes.push(format!(
                "What the paper claims of its recordings is looked at where {} is, or --trace names some; here \
                 neither is.",
                claims::DIRECTORY
            ));
        }
        notes
    })
}

/// The paper's comparison.
struct Paper {
    span: Duration,
    tail: Duration,
    /// The congestion control of downloads.
    congestion: &'static str,
    accesses: Vec<Access>,
    contenders: Vec<Contender>,
    recordings: Vec<Arc<(PathBuf, Trace)>>,
    /// What the paper claims of its recordings, where there are any to hold it against.
    claims: Option<Table>,
}

impl Experiment for Paper {
    type Case = Over<Course>;
    type Sample = Seen;

    fn title(&self) -> Title {
        Title::new("paper", "paper", "The Mosh paper's comparison, real programs", DEPENDS)
    }

    fn cases(&self) -> Vec<Over<Course>> {
        let courses = self.accesses.iter().flat_map(|access| {
            let recordings = self.recordings.iter().cloned();
            recordings.map(|recording| Course { access: access.clone(), recording })
        });
        Over::each(&courses.collect::<Vec<_>>(), &self.contenders)
    }

    fn lasts(&self, _: &Over<Course>) -> Option<Duration> {
        Some(self.span + LEAD + self.tail / 3)
    }

    fn measure(&self, case: &Over<Course>, seed: u64) -> io::Result<OverLink<Seen>> {
        let Over { path: Course { access, recording }, contender } = case;
        let (path, trace) = &**recording;
        let deeds = deeds(trace);
        let link = Scenario::steady(access.up.clone(), access.down.clone(), seed);
        let setup =
            Setup { echo: access.echo, ..Setup::playing(contender, path, trace.size, link)? };
        let mut stage = Stage::start(setup, Scratch::new()?, READY)?;
        stage.begin();
        let bulk = match access.bulk {
            Bulk::Nothing => None,
            Bulk::Download => Some(Flow::start(
                &stage.net,
                Direction::Down,
                FAR_BULK,
                FAR_BULK,
                Some(self.congestion),
            )?),
        };
        // The mark is over by then, and the client knows its path.
        stage.rest(LEAD)?;
        let found =
            type_keys(&mut stage, trace, &deeds, self.tail, |_, _| Ok(()))?.whole(&stage)?;
        bulk.map_or(Ok(()), Flow::finish)?;
        Ok(OverLink { found, late: stage.net.late() })
    }

    fn report(&self, results: &[Measured<Over<Course>, Seen>]) -> Body {
        let all = samples(results, |seen| (&seen.latencies, seen.unseen));
        let times = table("latency of keys in ms", &all);
        let mut tables = vec![times, against(&all), echo(&all, results)];
        tables.extend(self.claims.clone());
        let panels = distributions(&all, "from key to screen, ms", "share of keys");
        Body { tables, figure: Figure::new("From key to screen", panels) }
    }

    fn prose(&self) -> Vec<String> {
        paragraphs(
            include_str!("text/paper.md"),
            &[
                ("recordings", &self.recordings.len()),
                ("seconds", &self.span.as_secs()),
                ("again", &AGAIN),
                ("usual", &self.congestion),
            ],
        )
    }
}

/// The results of local echo: keys shown at once, and wrong graphemes.
fn echo(all: &[Samples], results: &[Measured<Over<Course>, Seen>]) -> Table {
    let mut table = Table::new(
        "keys seen within 5 ms, and wrong graphemes shown, all recordings together",
        2,
        "path | program | keys | at once, % | wrong graphemes",
    );
    for samples in all {
        let at_once = samples.values.iter().filter(|ms| **ms <= 5.0).count();
        let keys = samples.values.len();
        let same = |case: &Over<Course>| {
            case.path.access.name == samples.path && case.contender.name == samples.program
        };
        let seen = results.iter().filter(|one| same(&one.case)).flat_map(|one| &one.samples);
        table.rows.push(vec![
            json!(samples.path),
            json!(samples.program),
            json!(keys),
            hundredths(100.0 * at_once as f64 / keys.max(1) as f64),
            json!(seen.map(|seen| seen.wrong.len()).sum::<usize>()),
        ]);
    }
    table
}

fn accesses(flags: &RealFlags) -> io::Result<Vec<Access>> {
    let ms = Duration::from_millis;
    let access = |name, up: Profile, down: Profile| Access {
        name,
        up,
        down,
        bulk: Bulk::Nothing,
        echo: Echo::Default,
    };
    let lossy = Profile::delay(ms(50)).loss(Chance::percent(29));
    let lossy = Access {
        echo: Echo::Never,
        ..access("100 ms, 29 % loss, no predictions", lossy.clone(), lossy)
    };
    let slow = Profile::delay(ms(250));
    let slow = access(
        "500 ms, 843 up, 521 kbit/s down",
        slow.clone().rate(843_000, 256 << 10),
        slow.rate(521_000, 256 << 10),
    );
    if flags.setting() == Setting::Quick {
        return Ok(vec![slow, lossy]);
    }
    let wired = access(
        "273 ms, wired",
        Profile::delay(Duration::from_micros(136_500)),
        Profile::delay(Duration::from_micros(136_500)),
    );
    let lte = Profile::delay(ms(25));
    // Five seconds of queue, as the paper found.
    let loaded = Access {
        bulk: Bulk::Download,
        ..access(
            "LTE, 5 Mbit/s with a download, deep queue",
            lte.clone().rate(5_946_000, 1 << 20),
            lte.clone().rate(5_028_000, 3 << 20),
        )
    };
    let mut accesses = vec![slow, wired, loaded, lossy];
    if let Some(directory) = &flags.cellular {
        let traced = |name: &str, delay: Duration, queue_bytes_max| {
            let opportunities = Arc::new(Opportunities::load(&directory.join(name))?);
            let trace = Some(Traced { opportunities, begins: Time::ZERO, queue_bytes_max });
            Ok::<Profile, io::Error>(Profile { trace, ..Profile::delay(delay) })
        };
        accesses.push(access(
            "EV-DO recorded, 500 ms",
            traced("Verizon-EVDO-driving.up", ms(250), 256 << 10)?,
            traced("Verizon-EVDO-driving.down", ms(250), 256 << 10)?,
        ));
        accesses.push(Access {
            bulk: Bulk::Download,
            ..access(
                "LTE recorded with a download, deep queue",
                traced("Verizon-LTE-short.up", ms(25), 1 << 20)?,
                traced("Verizon-LTE-short.down", ms(25), 3 << 20)?,
            )
        });
    }
    Ok(accesses)
}

/// The keys to type: the recordings asked for, or text at a prompt; each begins with a mark that shows that the
/// program runs.
fn recordings(
    flags: &RealFlags,
    scratch: &Scratch,
    span: Duration,
) -> io::Result<Vec<Arc<(PathBuf, Trace)>>> {
    if flags.traces.is_empty() {
        let path = scratch.join("prose.cast");
        prose(&path, Pace::Person, span, flags.seed)?;
        let trace = Trace::load(&path)?.cut(Some(span.as_secs_f64()))?;
        return Ok(vec![Arc::new((path, trace))]);
    }
    let marked = |(number, path): (usize, &PathBuf)| {
        let trace = Trace::load(path)?.cut(Some(span.as_secs_f64()))?;
        let marked = scratch.join(&format!("{number}.cast"));
        mark(&trace, &marked)?;
        let trace = Trace::load(&marked)?;
        Ok(Arc::new((marked, trace)))
    };
    flags.traces.iter().enumerate().map(marked).collect()
}

fn mark(trace: &Trace, path: &Path) -> io::Result<()> {
    let mut writer = Writer::new(std::fs::File::create(path)?, trace.size, &trace.name)?;
    writer.output(Duration::ZERO, READY.as_bytes())?;
    writer.output(MARK, b"\x1b[H\x1b[2J")?;
    for event in &trace.events {
        let at = event.at + MARK;
        match &event.kind {
            Kind::Output(octets) => writer.output(at, octets)?,
            Kind::Key(octets) => writer.key(at, octets)?,
            Kind::Program(name) => writer.program(at, name)?,
            Kind::Line(_) => {}
        }
    }
    Ok(())
}

/// When the mark at the beginning of a recording goes: it must have been seen by then.
const MARK: Duration = Duration::from_secs(5);
/// Before the first key: longer than the mark stands.
const LEAD: Duration = Duration::from_secs(8);
const TAIL: Duration = Duration::from_secs(60);
const QUICK_TAIL: Duration = Duration::from_secs(6);
/// Where the far end gives the download.
const FAR_BULK: SocketAddrV4 = SocketAddrV4::new(FAR, 7_001);

/// The parts of the lab that its numbers come from, besides those of all experiments on real programs.
const DEPENDS: &[&str] = &[
    "crates/lab/src/real/claims.rs",
    "crates/lab/src/real/flow.rs",
    "crates/lab/src/real/paper.rs",
    "crates/lab/src/real/text/paper.md",
    "crates/lab/src/predict",
    "crates/lab/traces/keystrokes",
];

#[cfg(test)]
mod tests;
