//! `rove-lab agree`: checks the simulator's model of stock mosh against real mosh 1.4.0 over the same emulated
//! link. mosh-client and mosh-server run on ptys with a relay between them, and the kernel echoes letters.

use std::io;
use std::process::Command;
use std::time::Duration;

use clap::Args;
use rove_ssp::Time;
use serde_json::{Value, json};

use super::probe::{Plan, sessions};
use super::report::{Table, VIRTUAL, hundredths, save, save_json, tenths};
use super::sender::Sender;
use super::spread::Spread;
use crate::clock::Clock;
use crate::demo::rove_program;
use crate::host::{Load, Typist};
use crate::link::{Counters, Profile};
use crate::pair::{Make, Pair, Setup, Watch};
use crate::provenance;
use crate::relay::LATE;
use crate::rng::{Chance, Rng};

/// Compares stock's policy in the simulator with real mosh over the same link; takes minutes of real time
#[derive(Args, Clone, Debug)]
pub(crate) struct AgreeFlags {
    /// Sessions of real mosh at a time, for each loss
    #[arg(long, default_value_t = 6)]
    sessions: u64,
    /// Keys of each
    #[arg(long, default_value_t = 300)]
    keys: u32,
    /// Where the results go
    #[arg(long, value_name = "DIRECTORY", default_value = "results")]
    results: std::path::PathBuf,
}

/// Runs it.
///
/// # Errors
/// If a session fails, or the results cannot be written.
pub(crate) fn run(flags: &AgreeFlags) -> io::Result<i32> {
    let mut agreement = Table::new("Latency of typed letters in ms, RTT 100 ms", 2, COLUMNS);
    let caption =
        "The same with rove at one end, and what a key costs; each real, over the same link";
    let mut peers = Table::new(caption, 2, PEER_COLUMNS);
    let profiles = LOSSES.map(|percent| Profile::delay(DELAY).loss(Chance::percent(percent)));
    let simulated = profiles.each_ref().map(simulate);
    // The simulations need no haste: only what runs in real time must not wait for other programs.
    let precedence = Precedence::take();
    for ((percent, path), simulated) in LOSSES.into_iter().zip(&profiles).zip(simulated) {
        let simulated = simulated?;
        let measured = measure_all(path, flags)?;
        agreement.rows.push(row(percent, "simulated", &simulated, 0, &simulated));
        for (ends, sessions) in ENDS.iter().zip(&measured) {
            let keys: Vec<Key> = sessions.iter().flat_map(|run| run.keys.iter().copied()).collect();
            let undisturbed = keys.iter().filter(|key| key.disturbed == 0);
            let spread = Spread::of_samples(undisturbed.map(|key| key.ms).collect());
            let left_out = keys.len() - spread.len();
            if ends.client == Make::Stock && ends.server == Make::Stock {
                agreement.rows.push(row(percent, ends.name, &spread, left_out, &simulated));
            }
            peers.rows.push(peer_row(percent, ends.name, &spread, keys.len(), sessions));
        }
    }
    write(flags, &[agreement, peers], precedence)?;
    Ok(0)
}

/// All pairs of ends at the same time, so that they meet the same machine.
fn measure_all(path: &Profile, flags: &AgreeFlags) -> io::Result<Vec<Vec<Session>>> {
    let count = flags.keys;
    std::thread::scope(|scope| {
        let workers: Vec<Vec<_>> = ENDS
            .iter()
            .map(|ends| {
                let start = |seed| scope.spawn(move || measure(path, ends, seed, count));
                (1..=flags.sessions).map(start).collect()
            })
            .collect();
        let panicked = |_| Err(io::Error::other("a session panicked"));
        let join = |worker: std::thread::ScopedJoinHandle<'_, io::Result<Session>>| {
            worker.join().unwrap_or_else(panicked)
        };
        workers.into_iter().map(|sessions| sessions.into_iter().map(join).collect()).collect()
    })
}

fn row(percent: u32, who: &str, keys: &Spread, left_out: usize, simulated: &Spread) -> Vec<Value> {
    let off = |ours: f64, theirs: f64| tenths(100.0 * (ours / theirs - 1.0));
    let mut row = vec![json!(percent), json!(who)];
    row.extend(keys.cells());
    row.extend([tenths(keys.sigma()), tenths(keys.quantile(0.99)), json!(left_out)]);
    row.push(off(keys.quantile(0.5), simulated.quantile(0.5)));
    row.push(off(keys.mean(), simulated.mean()));
    row
}

fn peer_row(percent: u32, who: &str, keys: &Spread, all: usize, runs: &[Session]) -> Vec<Value> {
    let per_key = |of: fn(&Session) -> u64| runs.iter().map(of).sum::<u64>() as f64 / all as f64;
    let mut row = vec![json!(percent), json!(who)];
    row.extend(keys.cells());
    row.push(tenths(keys.quantile(0.99)));
    row.extend([per_key(|run| run.up.offered), per_key(|run| run.down.offered)].map(hundredths));
    let octets = [per_key(|run| run.up.offered_bytes), per_key(|run| run.down.offered_bytes)];
    row.extend(octets.map(tenths));
    row
}

/// The make of both programs of a session.
struct Ends {
    name: &'static str,
    client: Make,
    server: Make,
}

const ENDS: [Ends; 4] = [
    Ends { name: "mosh 1.4.0", client: Make::Stock, server: Make::Stock },
    Ends { name: "mosh-client to rove", client: Make::Stock, server: Make::Rove },
    Ends { name: "rove to mosh-server", client: Make::Rove, server: Make::Stock },
    Ends { name: "rove to rove", client: Make::Rove, server: Make::Rove },
];

/// Whether what runs in real time goes before other programs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Precedence {
    RealTime,
    None,
}

impl Precedence {
    /// Asks for real-time scheduling for this thread and its children. Only root gets it.
    fn take() -> Precedence {
        let pid = std::process::id().to_string();
        let asked = Command::new("chrt").args(["--fifo", "--pid", "10", &pid]).output();
        match asked.is_ok_and(|output| output.status.success()) {
            true => Precedence::RealTime,
            false => Precedence::None,
        }
    }

    fn describe(self) -> &'static str {
        match self {
            Precedence::RealTime => {
                "The relay and the programs ran with real-time priority (SCHED_FIFO), so that other work on \
                 the machine did not hold them up."
            }
            Precedence::None => {
                "The relay and the programs ran with no priority over other work, which the real rows \
                 include if the machine was busy; as root they have it."
            }
        }
    }
}

fn write(flags: &AgreeFlags, tables: &[Table], precedence: Precedence) -> io::Result<()> {
    let command = provenance::command("agree");
    let numbers = tables.iter().map(Table::to_json).collect::<Vec<Value>>();
    let value = json!({ "command": command, "tables": numbers });
    let depends = DEPENDS.iter().chain(VIRTUAL).copied();
    let recorded = save_json(&flags.results, "agree", value, depends)?;
    let text = format!(
        "# The simulator against real mosh 1.4.0\n\nMade by `{command}` in real time.\n\n{}\n\n{} Left out are keys \
         during which the relay delivered a datagram more than {} ms late.\n\n{}",
        recorded.sentence(),
        precedence.describe(),
        LATE.as_millis(),
        tables.iter().map(Table::to_markdown).collect::<Vec<String>>().join("\n")
    );
    print!("{text}");
    save(&flags.results, "agree.md", &text)
}

fn simulate(path: &Profile) -> io::Result<Spread> {
    let plan = Plan::alike(&Sender::stock(), Load::Typing, path.clone());
    let runs = sessions(&plan, SIMULATED, TIMES).map_err(io::Error::other)?;
    Ok(Spread::of_keys(&runs))
}

/// A key that was answered.
#[derive(Clone, Copy, Debug)]
struct Key {
    ms: f64,
    /// Datagrams that the relay was late with meanwhile.
    disturbed: u64,
}

/// One session of real programs: its keys, and what both directions carried meanwhile.
#[derive(Clone, Debug)]
struct Session {
    keys: Vec<Key>,
    up: Counters,
    down: Counters,
}

fn measure(path: &Profile, ends: &Ends, seed: u64, count: u32) -> io::Result<Session> {
    let mut pair = Pair::start(&Setup {
        client: ends.client,
        server: ends.server,
        rove: rove_program()?,
        lab: std::env::current_exe()?,
        size: Load::Typing.size(),
        up: Profile::delay(path.delay),
        down: Profile::delay(path.delay),
        seed,
        watch: Watch::Nothing,
    })?;
    pair.wait_for("the prompt", LIMIT, |pair| pair.client().shows("$") && pair.server().is_some())?;
    pair.send("stty -icanon; printf '\\033c'; echo begin-$((1+1)); exec cat >/dev/null\r");
    pair.wait_for("the program", LIMIT, |pair| pair.client().shows("begin-2"))?;
    pair.relay().set_profiles(path.clone(), path.clone());
    let mut typist = Typist::new(Load::Typing, Rng::new(seed));
    let clock = Clock::start();
    // When each was typed, its letter, and the relay's lateness by then.
    let mut typed: Vec<(Time, u8, u64)> = Vec::new();
    let mut answered: Vec<Key> = Vec::new();
    let mut next = typist.next_key();
    let mut due = next.map(|(pause, _)| clock.now() + pause);
    let mut before = None;
    let until = Duration::from_secs(u64::from(count) * 2 + 60);
    while answered.len() < (count + SETTLING) as usize && clock.elapsed() < until {
        if answered.len() >= SETTLING as usize {
            before.get_or_insert_with(|| pair.relay().report());
        }
        let now = clock.now();
        if let (Some(at), Some((_, key))) = (due.filter(|at| *at <= now), next) {
            typed.push((now, key, pair.relay().report().late));
            pair.send([key]);
            next = typist.next_key();
            due = next.map(|(pause, _)| at + pause);
        }
        let rest = due.map_or(POLL, |at| at.since(clock.now()).min(POLL));
        pair.pump(rest)?;
        let shown = pair.client().screen().text().concat();
        let now = clock.now();
        let seen = (answered.len() + 1..=typed.len()).rev().find(|&count| {
            let tail: String = typed[count.saturating_sub(TAIL)..count]
                .iter()
                .map(|(_, key, _)| char::from(*key))
                .collect();
            shown.ends_with(&tail)
        });
        while seen.is_some_and(|seen| answered.len() < seen) {
            let (at, _, late) = typed[answered.len()];
            let disturbed = pair.relay().report().late - late;
            answered.push(Key { ms: now.since(at).as_secs_f64() * 1e3, disturbed });
        }
    }
    let keys = answered.split_off(answered.len().min(SETTLING as usize));
    let (before, after) = (before.unwrap_or_default(), pair.relay().report());
    let (up, down) = (after.up.since(&before.up), after.down.since(&before.down));
    Ok(Session { keys, up, down })
}

const COLUMNS: &str =
    "loss % | who | keys | median | mean | ±95 % | σ | p99 | left out | median off % | mean off %";

const PEER_COLUMNS: &str =
    "loss % | who | keys | median | mean | ±95 % | p99 | up/key | down/key | B up/key | B down/key";

/// What its numbers come from besides those of all experiments in virtual time.
const DEPENDS: &[&str] = &[
    "crates/lab/src/experiments/agree.rs",
    "crates/lab/src/experiments/probe.rs",
    "crates/lab/src/experiments/sender.rs",
    "crates/lab/src/host.rs",
    "crates/lab/src/pair.rs",
    "crates/lab/src/relay.rs",
    "crates/rove/src",
];

const LOSSES: [u32; 3] = [0, 10, 29];

/// Half of the round trip.
const DELAY: Duration = Duration::from_millis(50);

/// Simulated sessions, how long they settle and how long they are measured.
const SIMULATED: u64 = 20;
const TIMES: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(150));

/// Keys that are not counted, since estimates settle.
const SETTLING: u32 = 60;

/// A run of letters so long that it stands nowhere else on the screen.
const TAIL: usize = 12;

/// How often the client's terminal is looked at, at least.
const POLL: Duration = Duration::from_millis(5);

/// How long a start may take.
const LIMIT: Duration = Duration::from_secs(60);
