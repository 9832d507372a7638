//! `rove-lab link`: runs two programs in two networks with an emulated path between them.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::forwarder::Passed;
use super::scenario::{self, Event, Scenario};
use super::{End, Net, check, describe};
use crate::clock::Clock;
use crate::files::read_text;
use crate::opportunities::Opportunities;
use crate::run::{PUMP, look_again_later};
use crate::sys;

/// Runs two programs in two networks of their own with an emulated path between them
///
/// The near program runs in the foreground; its exit status is ours. The far one is started first, and ended
/// when the near one has ended. Each finds the addresses of both ends in LINK_HERE and LINK_THERE. Needs root,
/// or a user namespace (made if there can be one) and a /dev/net/tun that it may open.
#[derive(Args, Clone, Debug)]
pub(crate) struct LinkFlags {
    /// What the path does, as JSON (docs/lab.md); without it, nothing
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// Seed of all chances, instead of the scenario's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Write what passes the near end, as pcap
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
    /// Write the counters, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Measure the path instead of running programs, and compare it with the scenario
    #[arg(long)]
    check: bool,
    /// How long each step is measured by --check, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    seconds: f64,
    /// The near program, and behind another `--` the far one
    #[arg(last = true, value_name = "NEAR... -- FAR...")]
    words: Vec<OsString>,
}

/// Runs `rove-lab link`; the near program's exit status.
///
/// # Errors
/// If the scenario is none, there can be no link here, or a program cannot be started.
pub(crate) fn run(flags: &LinkFlags) -> io::Result<i32> {
    let mut scenario = match &flags.scenario {
        Some(path) => load(path)?,
        None => Scenario::alike(Default::default(), 1),
    };
    scenario.seed = flags.seed.unwrap_or(scenario.seed);
    be_allowed();
    if flags.check {
        let span = Duration::try_from_secs_f64(flags.seconds).map_err(io::Error::other)?;
        return check::run(&scenario, span);
    }
    let mut parts = flags.words.split(|word| word == "--");
    let near = parts.next().filter(|words| !words.is_empty());
    let near = near.ok_or_else(|| io::Error::other("no program to run: ... -- NEAR -- FAR"))?;
    let far: Vec<OsString> = parts.collect::<Vec<_>>().join(&OsString::from("--"));
    let net = Net::open(&scenario, flags.capture.as_deref())?;
    let far = match far.is_empty() {
        true => None,
        false => Some(start_far(&net, &far)?),
    };
    let mut command = Command::new(&near[0]);
    command.args(&near[1..]);
    net.place(End::Near, &mut command);
    // The scenario begins with the program, not with the making of networks.
    net.follow(&scenario);
    let child = command.spawn().map_err(|error| named(&near[0], &error))?;
    let status = wait(child, &net, &scenario.events);
    drop(far);
    let passed = net.passed();
    net.close()?;
    eprint!("{}", describe(&passed));
    if let Some(path) = &flags.json {
        fs::write(path, format!("{:#}\n", to_json(&scenario, &passed)))?;
    }
    status
}

/// Becomes root in a user namespace if the caller is not root.
pub(crate) fn be_allowed() {
    if !rustix::process::geteuid().is_root() {
        // Where that fails, making the networks fails as well, and says what is missing.
        let _ = sys::become_root_within();
    }
}

/// Reads a scenario's file; recorded bottlenecks are found beside it.
///
/// # Errors
/// If it cannot be read or is none; the message names the file and the field.
pub(crate) fn load(path: &Path) -> io::Result<Scenario> {
    let faulty = |what: &dyn std::fmt::Display| {
        io::Error::new(io::ErrorKind::InvalidData, format!("{}: {what}", path.display()))
    };
    let text = read_text(path, scenario::FILE_BYTES_MAX as u64)?;
    let mut traces = |name: &str| {
        let beside = path.parent().unwrap_or(Path::new("")).join(name);
        Opportunities::load(&beside)
    };
    Scenario::parse(&text, &mut traces).map_err(|error| faulty(&error))
}

/// The far program, ended when dropped.
struct Far(Child);

impl Drop for Far {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            let pid = rustix::process::Pid::from_child(&self.0);
            // It may have ended this moment.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            let clock = Clock::start();
            while clock.elapsed() < END_MAX && matches!(self.0.try_wait(), Ok(None)) {
                if look_again_later().is_err() {
                    break;
                }
            }
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the far program and waits until it listens, ends, or has had its time.
fn start_far(net: &Net, words: &[OsString]) -> io::Result<Far> {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::null());
    net.place(End::Far, &mut command);
    let mut far = Far(command.spawn().map_err(|error| named(&words[0], &error))?);
    let clock = Clock::start();
    while clock.elapsed() < LISTEN_MAX && far.0.try_wait()?.is_none() && !listens(far.0.id()) {
        look_again_later()?;
    }
    Ok(far)
}

/// Whether any socket is open in the network of this process.
fn listens(pid: u32) -> bool {
    ["tcp", "tcp6", "udp", "udp6"].iter().any(|table| {
        let text = fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        text.lines().count() > 1
    })
}

fn wait(mut child: Child, net: &Net, events: &[Event]) -> io::Result<i32> {
    let began = net.now();
    let mut events = events.iter().peekable();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)));
        }
        let since = net.now().since(began);
        while let Some(event) = events.next_if(|event| event.at <= since) {
            net.happen(event.what)?;
        }
        let next = events.peek().map_or(PUMP, |event| event.at.saturating_sub(since).min(PUMP));
        net.clock().wait_until(net.now() + next);
    }
}

fn named(program: &OsString, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", program.to_string_lossy()))
}

/// Counters and lateness, for a results file.
pub(crate) fn to_json(scenario: &Scenario, passed: &[Passed; 2]) -> Value {
    let one = |passed: &Passed| {
        let (link, late) = (&passed.link, &passed.late);
        let ms = |span: Duration| span.as_secs_f64() * 1e3;
        json!({
            "offered": link.offered, "offered_bytes": link.offered_bytes,
            "delivered": link.delivered, "delivered_bytes": link.delivered_bytes,
            "lost": link.lost, "overflowed": link.overflowed, "cut": link.cut,
            "oversized": link.oversized, "duplicated": link.duplicated,
            "reordered": link.reordered, "corrupted": link.corrupted,
            "refused": passed.refused, "overrun": passed.overrun,
            "late_ms": { "p50": ms(late.p50()), "p99": ms(late.p99()), "max": ms(late.max()) },
            "valid": late.is_valid(),
        })
    };
    let [up, down] = passed;
    json!({ "scenario": scenario.name, "seed": scenario.seed, "up": one(up), "down": one(down) })
}

/// How long a far program has to listen before the near one starts anyway.
const LISTEN_MAX: Duration = Duration::from_secs(20);
/// How long a far program has to end when it is asked to.
const END_MAX: Duration = Duration::from_secs(2);
