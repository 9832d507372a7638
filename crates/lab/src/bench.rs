//! `rove-lab bench`: measures real programs beside stock mosh's on this machine. Each benchmark is one command. It
//! prints a table and writes all samples to `<name>.json` in the directory of results.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rove_term::Size;
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::demo::rove_program;
use crate::experiments::report::{save, save_json};
use crate::flood::Kind;
use crate::link::Profile;
use crate::pair::{Make, Pair, Setup, Watch};
use crate::proc::{cpu_seconds, field};
use crate::provenance::{self, Provenance};
use crate::real::outcome;
use crate::stats::Summary;
use crate::sys::spawn_on_pty;

/// Which benchmark.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub(crate) enum Bench {
    /// Memory of client and server after ordinary work
    Memory,
    /// `cat` of 20 MB through a session: time, and CPU time of both ends
    Cat,
    /// 24 MB of each kind of output through a session, and through a bare pty
    Throughput,
    /// From Ctrl-C during a flood until the program's answer is seen
    Interrupt,
}

/// Measures `runs` sessions of each make, in turns, and writes the results.
///
/// # Errors
/// If a session fails, or the results cannot be written.
pub(crate) fn run(bench: Bench, runs: u32, results: &Path) -> io::Result<()> {
    let (name, title) = match bench {
        Bench::Memory => ("memory", "Memory of client and server"),
        Bench::Cat => ("cat", "`cat` of 20 MB through a session"),
        Bench::Throughput => ("throughput", "24 MB of each kind of output through a session"),
        Bench::Interrupt => ("interrupt", "Ctrl-C during a flood of output"),
    };
    let mut table = Table::default();
    for run in 1..=runs {
        for conditions in bench.all_conditions() {
            for make in [Make::Rove, Make::Stock] {
                eprintln!("{name}: run {run} of {runs}, {make:?}{}", conditions.name());
                let mut pair = start(make, *conditions)?;
                let values = match bench {
                    Bench::Memory => memory(&mut pair)?,
                    Bench::Cat => throughput(&mut pair)?,
                    Bench::Throughput => floods(&mut pair)?,
                    Bench::Interrupt => interrupt(&mut pair, *conditions)?,
                };
                pair.send("exit\r");
                pair.client_mut().wait_exit(LIMIT)?;
                for (quantity, value) in values {
                    table.add(quantity, make, value);
                }
            }
        }
    }
    let command = provenance::command("bench");
    let value = json!({
        "title": title,
        "command": command,
        "versions": versions(),
        "quantities": table.to_json(),
    });
    let recorded = save_json(results, name, value, DEPENDS.iter().copied())?;
    let text = table.to_markdown(title, &command, &recorded) + &table.bars();
    save(results, &format!("{name}.md"), &text)?;
    print!("{text}");
    Ok(())
}

/// Where a session runs: the user's window, and the path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Conditions {
    rows: u16,
    cols: u16,
    rtt: Duration,
}

impl Conditions {
    const HERE: Conditions = Conditions { rows: 24, cols: 80, rtt: Duration::ZERO };

    fn size(self) -> Size {
        Size::clamped(self.rows, self.cols)
    }

    fn name(self) -> String {
        format!(", {}x{}, RTT {} ms", self.cols, self.rows, self.rtt.as_millis())
    }
}

impl Bench {
    fn all_conditions(self) -> &'static [Conditions] {
        const RTT: Duration = Duration::from_millis(100);
        const LARGE: Conditions = Conditions { rows: 100, cols: 200, ..Conditions::HERE };
        match self {
            Bench::Memory | Bench::Cat | Bench::Throughput => &[Conditions::HERE],
            Bench::Interrupt => &[
                Conditions::HERE,
                LARGE,
                Conditions { rtt: RTT, ..Conditions::HERE },
                Conditions { rtt: RTT, ..LARGE },
            ],
        }
    }
}

fn start(make: Make, conditions: Conditions) -> io::Result<Pair> {
    let way = Profile::delay(conditions.rtt / 2);
    let mut pair = Pair::start(&Setup {
        client: make,
        server: make,
        rove: rove_program()?,
        lab: std::env::current_exe()?,
        size: conditions.size(),
        up: way.clone(),
        down: way,
        seed: 1,
        watch: Watch::Nothing,
    })?;
    pair.wait_for("the prompt", LIMIT, |pair| pair.client().shows("$") && pair.server().is_some())?;
    Ok(pair)
}

/// Measures the resident memory, in KiB, after a listing, an editor and a screenful of colours.
fn memory(pair: &mut Pair) -> io::Result<Vec<(Quantity, f64)>> {
    for n in 1..=3 {
        pair.send(format!("seq -s ' ' 1 20000; echo work-$(({n}+10))\r"));
        pair.wait_for("the work", LIMIT, |pair| pair.client().shows(&format!("work-{}", n + 10)))?;
    }
    pair.send("vim -N -u NONE -i NONE -c 'help' -c quit -c quit; clear; echo edited-$((1+1))\r");
    pair.wait_for("the editor's end", LIMIT, |pair| pair.client().shows("edited-2"))?;
    // Acknowledgments and keepalives come to rest.
    let clock = Clock::start();
    pair.wait_for("rest", LIMIT, |_| clock.elapsed() > Duration::from_secs(5))?;
    let [client, server] = ends(pair)?;
    let mut values = Vec::new();
    for (pid, names) in [
        (client, ["client, resident", "client, its own (private dirty)"]),
        (server, ["server, resident", "server, its own (private dirty)"]),
    ] {
        for (name, key) in names.into_iter().zip(["Rss:", "Private_Dirty:"]) {
            let quantity = Quantity { name, unit: "KiB", at: At::All };
            let kib = field(format!("/proc/{pid}/smaps_rollup"), key);
            values.push((quantity, there(key, kib.and_then(|kib| kib.parse().ok()))?));
        }
    }
    Ok(values)
}

/// The time until the end of 20 MB is on the client's screen, and the CPU time both ends took.
fn throughput(pair: &mut Pair) -> io::Result<Vec<(Quantity, f64)>> {
    let mut text = String::with_capacity(CAT_BYTES);
    for line in 0u32.. {
        if text.len() >= CAT_BYTES {
            break;
        }
        let _ = writeln!(
            text,
            "{line:>8} the quick brown fox jumps over the lazy dog, again and again"
        );
    }
    fs::write(pair.home().join("big.txt"), &text)?;
    let megabytes = text.len() as f64 / 1e6;
    let ends = ends(pair)?;
    let before = cpu(ends)?;
    let clock = Clock::start();
    pair.send("cat big.txt; echo end-$((1+1))\r");
    pair.wait_for("the end", LIMIT, |pair| pair.client().shows("end-2"))?;
    let seconds = clock.elapsed().as_secs_f64();
    let after = cpu(ends)?;
    let each = |side: usize| 1e3 * (after[side] - before[side]) / megabytes;
    let quantity = |name, unit| Quantity { name, unit, at: At::All };
    Ok(vec![
        (quantity(PACE, "MB/s"), megabytes / seconds),
        (quantity(SERVER_CPU, "ms/MB"), each(1)),
        (quantity(CLIENT_CPU, "ms/MB"), each(0)),
    ])
}

/// Each kind of output: its pace and the CPU time of both ends, and the pace of a pty with nothing behind it.
fn floods(pair: &mut Pair) -> io::Result<Vec<(Quantity, f64)>> {
    let mut values = Vec::new();
    for (number, kind) in Kind::ALL.into_iter().enumerate() {
        let octets = kind.octets(FLOOD_BYTES, 1);
        let megabytes = octets.len() as f64 / 1e6;
        let file = pair.home().join("flood");
        fs::write(&file, &octets)?;
        let bare = megabytes / bare_seconds(&file)?;
        let ends = ends(pair)?;
        let before = cpu(ends)?;
        let clock = Clock::start();
        let end = 1000 + number;
        pair.send(format!("cat flood; printf '\\033c'; echo end-$(({end}+1000))\r"));
        let shown = format!("end-{}", end + 1000);
        pair.wait_for("the end", LIMIT, |pair| pair.client().shows(&shown))?;
        let seconds = clock.elapsed().as_secs_f64();
        let after = cpu(ends)?;
        let each = |side: usize| 1e3 * (after[side] - before[side]) / megabytes;
        for (name, unit, value) in [
            (BARE, "MB/s", bare),
            (PACE, "MB/s", megabytes / seconds),
            (SERVER_CPU, "ms/MB", each(1)),
            (CLIENT_CPU, "ms/MB", each(0)),
        ] {
            values.push((Quantity { name, unit, at: At::Kind(kind) }, value));
        }
    }
    Ok(values)
}

/// How long a pty takes for this file with a reader that only reads.
fn bare_seconds(file: &Path) -> io::Result<f64> {
    let mut command = Command::new("cat");
    command.arg(file);
    let clock = Clock::start();
    let (mut child, master) = spawn_on_pty(command, 24, 80)?;
    let mut buffer = vec![0; 1 << 16];
    // A pty whose other side has been closed reads as an error.
    while rustix::io::read(&master, &mut buffer).is_ok_and(|count| count > 0) {}
    let seconds = clock.elapsed().as_secs_f64();
    child.wait()?;
    Ok(seconds)
}

/// In milliseconds, a few times under each of two floods: one of equal short lines, one of full lines.
fn interrupt(pair: &mut Pair, conditions: Conditions) -> io::Result<Vec<(Quantity, f64)>> {
    let width: usize = conditions.cols.into();
    let lines = Kind::Dense.octets(FLOOD_LINES_BYTES, 1);
    let text: Vec<u8> = lines
        .split(|octet| *octet == b'\n')
        .flatten()
        .copied()
        .collect::<Vec<u8>>()
        .chunks(width - 1)
        .flat_map(|line| line.iter().copied().chain([b'\n']))
        .collect();
    fs::write(pair.home().join("lines"), text)?;
    let mut values = Vec::new();
    for number in 1..=INTERRUPTS {
        for (code, flood) in
            [(100, "yes flood-of-output"), (200, "while :; do cat lines lines lines lines; done")]
        {
            pair.send(format!(
                "sh -c 'trap \"echo; echo caught-\\$(({number}+{code})); exit\" INT; {flood}'\r"
            ));
            let clock = Clock::start();
            // The command line goes when the flood has filled the screen, so the trap is set.
            pair.wait_for("the flood", LIMIT, |pair| {
                clock.elapsed() > FLOOD_TIME && !pair.client().shows("trap")
            })?;
            let clock = Clock::start();
            pair.send("\x03");
            let shown = format!("caught-{}", number + code);
            pair.wait_for("the answer", LIMIT, |pair| pair.client().shows(&shown))?;
            let value = 1e3 * clock.elapsed().as_secs_f64();
            let name = if code == 100 { "Ctrl-C in equal lines" } else { "Ctrl-C in full lines" };
            values.push((Quantity { name, unit: "ms", at: At::Conditions(conditions) }, value));
        }
    }
    Ok(values)
}

/// A measured quantity.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Quantity {
    name: &'static str,
    unit: &'static str,
    at: At,
}

/// In which of several circumstances.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum At {
    /// There is one alone.
    All,
    /// This kind of output.
    Kind(Kind),
    /// This window and path.
    Conditions(Conditions),
}

impl Quantity {
    fn name(self) -> String {
        match self.at {
            At::All => self.name.to_owned(),
            At::Kind(kind) => format!("{}: {}", kind.name(), self.name),
            At::Conditions(conditions) => format!("{}{}", self.name, conditions.name()),
        }
    }
}

#[derive(Default)]
struct Table {
    rows: Vec<Row>,
}

struct Row {
    quantity: Quantity,
    rove: Vec<f64>,
    stock: Vec<f64>,
}

impl Table {
    fn add(&mut self, quantity: Quantity, make: Make, value: f64) {
        let at = self.rows.iter().position(|row| row.quantity == quantity);
        let at = at.unwrap_or_else(|| {
            self.rows.push(Row { quantity, rove: Vec::new(), stock: Vec::new() });
            self.rows.len() - 1
        });
        match make {
            Make::Rove => self.rows[at].rove.push(value),
            Make::Stock => self.rows[at].stock.push(value),
        }
    }

    fn to_json(&self) -> Value {
        let rows = self.rows.iter().filter_map(|row| {
            let (rove, stock) = row.summaries()?;
            Some(json!({
                "quantity": row.quantity.name(),
                "unit": row.quantity.unit,
                "rove": { "samples": row.rove, "summary": rove.to_json() },
                "mosh": { "samples": row.stock, "summary": stock.to_json() },
                "ratio_of_medians": rove.median / stock.median,
            }))
        });
        rows.collect()
    }

    fn to_markdown(&self, title: &str, command: &str, recorded: &Provenance) -> String {
        let mut text = format!("# {title}\n\nMade by `{command}`");
        for (name, version) in versions().as_object().into_iter().flatten() {
            let _ = write!(text, "; {name}: {}", version.as_str().unwrap_or("?"));
        }
        let _ = write!(text, ".\n\n{}\n\n", recorded.sentence());
        text += "| quantity | program | n | median | 95 % interval | mean | σ | p99 | to mosh |\n";
        text += "|---|---|---|---|---|---|---|---|---|\n";
        for row in &self.rows {
            let Some((rove, stock)) = row.summaries() else { continue };
            let (name, unit) = (row.quantity.name(), row.quantity.unit);
            for (program, summary) in [("rove", &rove), ("mosh", &stock)] {
                let (low, high) = summary.interval;
                let ratio = summary.median / stock.median;
                let _ = writeln!(
                    text,
                    "| {name}, {unit} | {program} | {} | {:.2} | {low:.2} to {high:.2} | {:.2} | {:.2} | \
                     {:.2} | {ratio:.2} |",
                    summary.n, summary.median, summary.mean, summary.sigma, summary.p99
                );
            }
        }
        text
    }

    /// The wanted property of output through a session, beside the measured one; empty for other measurements.
    fn bars(&self) -> String {
        let mut text = String::new();
        for kind in Kind::ALL {
            let [bare, pace, cpu] = [BARE, PACE, SERVER_CPU].map(|name| self.medians(kind, name));
            let (Some(bare), Some(pace), Some(cpu)) = (bare, pace, cpu) else { continue };
            let least = (PACE_TO_STOCK * pace.1).min(PACE_TO_BARE * bare.0);
            let most = CPU_TO_STOCK * cpu.1;
            let verdict = |met: bool| if met { "met" } else { "missed" };
            let _ = writeln!(
                text,
                "| {} | {:.1} | {least:.1} | {} | {:.2} | {most:.2} | {} |",
                kind.name(),
                pace.0,
                verdict(pace.0 >= least),
                cpu.0,
                verdict(cpu.0 <= most)
            );
        }
        if text.is_empty() {
            return text;
        }
        format!(
            "\nThe bars: the lesser of {PACE_TO_STOCK} times mosh's throughput and {PACE_TO_BARE} of the bare \
             pty's, and {CPU_TO_STOCK} of mosh's server CPU.\n\n\
             | output | MB/s | at least | | server ms/MB | at most | |\n|---|---|---|---|---|---|---|\n{text}"
        )
    }

    /// Of rove and of mosh.
    fn medians(&self, kind: Kind, name: &str) -> Option<(f64, f64)> {
        let quantity = |row: &&Row| row.quantity.at == At::Kind(kind) && row.quantity.name == name;
        let (rove, stock) = self.rows.iter().find(quantity)?.summaries()?;
        Some((rove.median, stock.median))
    }
}

const BARE: &str = "bare pty in the same turn";
const PACE: &str = "throughput";
const SERVER_CPU: &str = "server CPU";
const CLIENT_CPU: &str = "client CPU";
/// Of these two the lesser is asked of the throughput.
const PACE_TO_STOCK: f64 = 4.0;
const PACE_TO_BARE: f64 = 0.8;
/// The most that is asked of the server's time on a processor.
const CPU_TO_STOCK: f64 = 0.2;

impl Row {
    fn summaries(&self) -> Option<(Summary, Summary)> {
        Some((Summary::of(&self.rove)?, Summary::of(&self.stock)?))
    }
}

/// The processes of client and server.
fn ends(pair: &Pair) -> io::Result<[u32; 2]> {
    let server = pair.server().ok_or_else(|| io::Error::other("the server is not known"))?;
    Ok([pair.client().pid(), server.pid()])
}

/// A number of /proc, of a process that must be there.
fn there<T>(what: &str, number: Option<T>) -> io::Result<T> {
    number.ok_or_else(|| io::Error::other(format!("a process does not tell its {what}")))
}

/// Seconds on a processor so far of client and server.
fn cpu(ends: [u32; 2]) -> io::Result<[f64; 2]> {
    let [client, server] = ends.map(|pid| there("time", cpu_seconds(pid)));
    Ok([client?, server?])
}

/// Of the programs compared here, which need no ssh.
fn versions() -> Value {
    let mut versions = outcome::versions();
    versions.as_object_mut().into_iter().for_each(|versions| drop(versions.remove("ssh")));
    versions
}

/// The code that the numbers come from.
const DEPENDS: &[&str] = &[
    "Cargo.lock",
    "crates/lab/src/bench.rs",
    "crates/lab/src/flood.rs",
    "crates/lab/src/pair.rs",
    "crates/rove/src",
    "crates/session/src",
    "crates/ssp/src",
    "crates/streams/src",
    "crates/term/src",
];

/// How long one step may take.
const LIMIT: Duration = Duration::from_secs(120);

/// Interruptions of each flood in one session.
const INTERRUPTS: u32 = 5;

/// The file that is a flood when shown again and again.
const FLOOD_LINES_BYTES: usize = 4_000_000;

/// How long a flood goes on before it is interrupted.
const FLOOD_TIME: Duration = Duration::from_secs(1);

/// Of each kind (the input of `bench throughput`).
const FLOOD_BYTES: usize = 24_000_000;

/// The number of cells shown.
const CAT_BYTES: usize = 20_000_000;
