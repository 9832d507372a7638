//! `rove-lab paper`: repeats the comparison of the Mosh paper (USENIX ATC 2012, section 4) on real programs: a slow
//! cellular network, one with a bulk transfer and a deep queue, a wire around the world, and a lossy path without
//! predictions. It also checks the paper's other claims on the recordings that it types.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::contender::{Contender, Echo, missing, usual};
use super::outcome::{AGAIN, Outcome, Samples, against, distributions, joined, late, table};
use super::stage::{Setup, Stage};
use super::typing::{Pace, READY, prose, type_keys};
use super::{OverLink, Ran, RealFlags, Sessions, Setting, claims};
use crate::experiments::report::{Table, hundredths};
use crate::link::{Profile, Traced};
use crate::net::lateness::Late;
use crate::net::scenario::Scenario;
use crate::net::{End, FAR};
use crate::opportunities::Opportunities;
use crate::plot::Figure;
use crate::predict::cast::Writer;
use crate::predict::judge::deeds;
use crate::predict::trace::{Kind, Trace};
use crate::rng::Chance;
use crate::scratch::Scratch;
use rove_ssp::Time;
use serde_json::json;

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

/// Runs it.
///
/// # Errors
/// If there can be no links here, recordings cannot be read, or the results cannot be written.
pub(crate) fn run(flags: &RealFlags) -> io::Result<i32> {
    let setting = flags.setting();
    let accesses = accesses(flags)?;
    let span = flags.span(5, 180);
    let contenders = flags.contenders(Contender::all())?;
    let scratch = Scratch::new()?;
    let traces = recordings(flags, &scratch, span)?;
    let mut paths: Vec<(&Access, &(PathBuf, Trace))> = Vec::new();
    for access in &accesses {
        paths.extend(traces.iter().map(|trace| (access, trace)));
    }
    let tail = setting.pick(QUICK_TAIL, TAIL);
    let sessions = Sessions {
        name: "paper",
        lasts: span + LEAD + tail / 3,
        paths: &paths,
        contenders: &contenders,
        times: flags.times(1, 1),
    };
    let Ran { found, failures, note } = sessions.run(
        flags,
        |(access, _)| access.name.to_owned(),
        |contender, (access, trace), seed| session(contender, access, trace, tail, seed),
    );
    let all = joined(found.iter().map(|(_, _, (samples, _))| samples.clone()));
    let echo = echo(&all, found.iter().map(|(_, _, (samples, wrong))| (samples, wrong)));
    let mut notes = vec![
        format!(
            "{} recording(s), {} s of each, typed at the recorded times; latency in ms from the key to its effect on the \
             screen that the client painted. Predictions as the programs come, except on the lossy path. Wrong graphemes \
             are read from outside, by whether the program ever held one there: fewer than the prediction judge finds \
             (`rove-lab predict`), never more. {AGAIN}",
            traces.len(),
            span.as_secs()
        ),
        format!(
            "TCP's congestion control at both ends is named behind ssh; the download is a TCP transfer with {}.",
            usual()
        ),
    ];
    notes.push(note);
    notes.extend(missing());
    if flags.cellular.is_none() && setting == Setting::Full {
        notes.push("Recorded cellular networks are used where --cellular names their directory; here none were.".to_owned());
    }
    let mut tables = vec![table("latency of keys in ms", &all), against(&all), echo];
    match claims::recordings(flags)? {
        recordings if recordings.is_empty() => notes.push(format!(
            "What the paper claims of its recordings is looked at where {} is, or --trace names some; here neither is.",
            claims::DIRECTORY
        )),
        recordings => tables.push(claims::table(&recordings)?),
    }
    Outcome {
        name: "paper",
        file: "paper",
        title: "The Mosh paper's comparison, real programs".to_owned(),
        notes,
        tables,
        figure: Figure {
            title: "From key to screen".to_owned(),
            panels: distributions(&all, "from key to screen, ms", "share of keys"),
        },
        late: late(&all),
        failures,
    }
    .write(flags)
}

/// The results of local echo: keys shown at once, and wrong graphemes.
fn echo<'a>(
    all: &[Samples],
    found: impl Iterator<Item = (&'a Samples, &'a Vec<(u16, u16)>)> + Clone,
) -> Table {
    let mut table = Table::new(
        "keys seen within 5 ms, and wrong graphemes shown, all recordings together",
        2,
        "path | program | keys | at once, % | wrong graphemes",
    );
    for samples in all {
        let at_once = samples.values.iter().filter(|ms| **ms <= 5.0).count();
        let keys = samples.values.len();
        let same = |one: &&Samples| (&one.path, &one.program) == (&samples.path, &samples.program);
        let wrong = found.clone().filter(|(one, _)| same(one)).map(|(_, wrong)| wrong.len());
        table.rows.push(vec![
            json!(samples.path),
            json!(samples.program),
            json!(keys),
            hundredths(100.0 * at_once as f64 / keys.max(1) as f64),
            json!(wrong.sum::<usize>()),
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
) -> io::Result<Vec<(PathBuf, Trace)>> {
    let mut all = Vec::new();
    if flags.traces.is_empty() {
        let path = scratch.join("prose.cast");
        prose(&path, Pace::Person, span, flags.seed)?;
        let trace = Trace::load(&path)?.cut(Some(span.as_secs_f64()))?;
        return Ok(vec![(path, trace)]);
    }
    for (number, path) in flags.traces.iter().enumerate() {
        let trace = Trace::load(path)?.cut(Some(span.as_secs_f64()))?;
        let marked = scratch.join(&format!("{number}.cast"));
        mark(&trace, &marked)?;
        all.push((marked.clone(), Trace::load(&marked)?));
    }
    Ok(all)
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

impl OverLink for (Samples, Vec<(u16, u16)>) {
    fn late(&self) -> &Late {
        &self.0.late
    }
}

fn session(
    contender: &Contender,
    access: &Access,
    (path, trace): &(PathBuf, Trace),
    tail: Duration,
    seed: u64,
) -> io::Result<(Samples, Vec<(u16, u16)>)> {
    let deeds = deeds(trace);
    let link = Scenario::steady(access.up.clone(), access.down.clone(), seed);
    let setup = Setup { echo: access.echo, ..Setup::playing(contender, path, trace.size, link)? };
    let mut stage = Stage::start(setup, Scratch::new()?, READY)?;
    stage.begin();
    let _bulk = match access.bulk {
        Bulk::Nothing => None,
        Bulk::Download => Some(Download::start(&stage)?),
    };
    // The mark is over by then, and the client knows its path.
    stage.rest(LEAD)?;
    let seen = type_keys(&mut stage, trace, &deeds, tail, |_, _| Ok(()))?.whole(&stage)?;
    let samples = Samples {
        path: access.name.to_owned(),
        program: contender.name.clone(),
        values: seen.latencies,
        unseen: seen.unseen,
        late: stage.net.late(),
    };
    Ok((samples, seen.wrong))
}

/// A TCP transfer from the far end that never ends, until it is dropped.
struct Download {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Download {
    fn start(stage: &Stage) -> io::Result<Download> {
        // Connections that are open keep theirs.
        let listener = stage.net.within(End::Far, || {
            std::fs::write("/proc/sys/net/ipv4/tcp_congestion_control", usual())?;
            TcpListener::bind((FAR, BULK_PORT))
        })?;
        listener.set_nonblocking(true)?;
        let over = Arc::new(AtomicBool::new(false));
        let (sends, reads) = (Arc::clone(&over), Arc::clone(&over));
        let name = || std::thread::Builder::new().name("download".into());
        let sender = name().spawn(move || {
            let mut stream = None;
            while !sends.load(Ordering::Acquire) && stream.is_none() {
                stream = listener.accept().ok().map(|(stream, _)| stream);
                let _ = crate::run::look_again_later();
            }
            let Some(mut stream) = stream else { return };
            let _ = stream.set_nonblocking(false);
            let _ = stream.set_write_timeout(Some(Duration::from_millis(500)));
            let chunk = [0; 1 << 14];
            while !sends.load(Ordering::Acquire) {
                match stream.write(&chunk) {
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => return,
                }
            }
        })?;
        let mut stream = stage.net.within(End::Near, || {
            TcpStream::connect_timeout(&SocketAddr::from((FAR, BULK_PORT)), Duration::from_secs(20))
        })?;
        stream.set_read_timeout(Some(Duration::from_millis(500)))?;
        let reader = name().spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while !reads.load(Ordering::Acquire) {
                match stream.read(&mut buffer) {
                    Ok(0) => return,
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => return,
                }
            }
        })?;
        Ok(Download { over, threads: vec![sender, reader] })
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// When the mark at the beginning of a recording goes: it must have been seen by then.
const MARK: Duration = Duration::from_secs(5);
/// Before the first key: longer than the mark stands.
const LEAD: Duration = Duration::from_secs(8);
const TAIL: Duration = Duration::from_secs(60);
const QUICK_TAIL: Duration = Duration::from_secs(6);
const BULK_PORT: u16 = 7_001;
