//! `rove-lab server`: memory and processor time of client and server in use: large outputs, and an hour (in the
//! full setting) of work at a shell.

use std::fs;
use std::io;
use std::time::Duration;

use serde_json::{Value, json};

use super::RealFlags;
use super::contender::Contender;
use super::experiment::{self, Body, Experiment, Measured, Over, Title};
use super::outcome::{AGAIN, Samples, counts, table as times};
use super::sessions::OverLink;
use super::stage::{Setup, Stage};
use crate::experiments::report::{Table, paragraphs, tenths};
use crate::link::Profile;
use crate::net::End;
use crate::net::scenario::Scenario;
use crate::plot::{Axis, Curve, Figure, Panel};
use crate::proc::{cpu_seconds, field};
use crate::scratch::Scratch;

/// The memory and processor time of one program.
struct Footprint {
    megabytes: f64,
    /// Each time.
    cat_ms: Vec<f64>,
    cat_cpu: [f64; 2],
    /// Minutes since the start, and the resident KiB near and far.
    memory: Vec<(f64, [f64; 2])>,
    hour_cpu: [f64; 2],
}

/// Runs it.
///
/// # Errors
/// If there can be no links here, or the results cannot be written.
pub(crate) fn run(flags: &RealFlags) -> io::Result<i32> {
    let (lines, cats) = flags.setting().pick((20_000, 1), (400_000, 5));
    let cases = Over::each(&["20 ms"], &flags.contenders(Contender::all())?);
    let server = Server { span: flags.span(8, 3_600), lines, cats, cases };
    experiment::run(&server, flags, |_| Vec::new())
}

/// Client and server in use.
struct Server {
    span: Duration,
    /// Lines of a large output, and how often it is written.
    lines: u32,
    cats: u32,
    cases: Vec<Over<&'static str>>,
}

impl Experiment for Server {
    type Case = Over<&'static str>;
    type Sample = Footprint;

    fn title(&self) -> Title {
        let title = "Memory and processor time of client and server in use";
        Title::new("server", "server", title, DEPENDS)
    }

    fn cases(&self) -> Vec<Over<&'static str>> {
        self.cases.clone()
    }

    fn lasts(&self, _: &Over<&str>) -> Option<Duration> {
        Some(self.span + Duration::from_secs(10))
    }

    fn measure(&self, case: &Over<&str>, seed: u64) -> io::Result<OverLink<Footprint>> {
        let scratch = Scratch::new()?;
        let big = scratch.join("big.txt");
        let mut text = String::new();
        for line in 0..self.lines {
            text += &format!(
                "{line:>8} the quick brown fox jumps over the lazy dog, again and again\n"
            );
        }
        fs::write(&big, &text)?;
        let script = format!(
            "echo ready$; n=0; while read line; do n=$((n+1)); case $line in \
         c) cat {}; echo end-of-cat-$n-;; *) seq -f \"work $n line %g\" 1 40; echo worked-$n-;; esac; done",
            big.display()
        );
        let path = Scenario::alike(Profile::delay(Duration::from_millis(10)), seed);
        let setup = Setup::script(&case.contender, &script, path);
        let mut stage = Stage::start(setup, scratch, "ready$")?;
        stage.begin();
        let clock = stage.net.clock();
        let before = cpu(&stage)?;
        let mut cat_ms = Vec::new();
        for number in 1..=self.cats {
            let began = clock.now();
            stage.client.send("c\r");
            let text = format!("end-of-cat-{number}-");
            stage.client.wait_for(&text, LIMIT, |client| client.shows(&text))?;
            cat_ms.push(clock.now().since(began).as_secs_f64() * 1e3);
        }
        let after = cpu(&stage)?;
        let began = clock.now();
        let mut memory = vec![(0.0, resident(&stage)?)];
        let steps = (self.span.as_secs() / STEP.as_secs()).max(1);
        for number in 0..steps {
            let due = began + STEP * number as u32;
            while clock.now() < due {
                stage.client.pump(due.since(clock.now()))?;
            }
            stage.client.send("w\r");
            let text = format!("worked-{}-", number + 1 + u64::from(self.cats));
            stage.client.wait_for(&text, LIMIT, |client| client.shows(&text))?;
            if number % (steps / SAMPLES).max(1) == 0 || number + 1 == steps {
                let minutes = clock.now().since(began).as_secs_f64() / 60.0;
                memory.push((minutes, resident(&stage)?));
            }
        }
        let end = cpu(&stage)?;
        let found = Footprint {
            megabytes: text.len() as f64 / 1e6,
            cat_ms,
            cat_cpu: [after[0] - before[0], after[1] - before[1]],
            memory,
            hour_cpu: [end[0] - after[0], end[1] - after[1]],
        };
        Ok(OverLink { found, late: stage.net.late() })
    }

    fn report(&self, results: &[Measured<Over<&'static str>, Footprint>]) -> Body {
        Body { tables: tables(results, self.span), figure: figure(results) }
    }

    fn prose(&self) -> Vec<String> {
        paragraphs(
            include_str!("text/server.md"),
            &[
                ("lines", &self.lines),
                ("times", &self.cats),
                ("seconds", &self.span.as_secs()),
                ("again", &AGAIN),
            ],
        )
    }
}

fn tables(results: &[Measured<Over<&'static str>, Footprint>], span: Duration) -> Vec<Table> {
    let mut table = Table::new(
        "one session of each, 20 ms round trip; memory is the proportional share (PSS) of all processes of the program",
        1,
        COLUMNS,
    );
    let (mut cats, mut residents) = (Vec::new(), Vec::new());
    for Measured { case, samples, late } in results {
        let program = &case.contender.name;
        for one in samples {
            let samples = |path: &str, values: Vec<f64>| Samples {
                path: path.to_owned(),
                program: program.clone(),
                values,
                unseen: 0,
                late: late.clone(),
            };
            cats.push(samples("cat", one.cat_ms.clone()));
            for (side, name) in SIDES.into_iter().enumerate() {
                let kib = one.memory.iter().map(|(_, kib)| kib[side]).collect();
                residents.push(samples(name, kib));
            }
            table.rows.extend(one.row(program, span));
        }
    }
    vec![
        table,
        times("from the command to the end of its output, ms", &cats),
        counts("memory (PSS) in KiB, looked at while in use", &residents),
    ]
}

impl Footprint {
    /// Its row, if its memory was looked at.
    fn row(&self, program: &str, span: Duration) -> Option<Vec<Value>> {
        let (first, last) = (self.memory.first()?.1, self.memory.last()?.1);
        let minutes = span.as_secs_f64() / 60.0;
        let cat_mb = self.megabytes * self.cat_ms.len() as f64;
        let cat_ms = self.cat_ms.iter().sum::<f64>();
        Some(vec![
            json!(program),
            tenths(cat_mb),
            tenths(1e3 * cat_mb / cat_ms),
            tenths(1e3 * self.cat_cpu[0] / cat_mb),
            tenths(1e3 * self.cat_cpu[1] / cat_mb),
            tenths(first[0]),
            tenths(last[0]),
            tenths(first[1]),
            tenths(last[1]),
            tenths(1e3 * self.hour_cpu[0] / minutes),
            tenths(1e3 * self.hour_cpu[1] / minutes),
        ])
    }
}

/// A panel for the client and one for the server.
fn figure(results: &[Measured<Over<&'static str>, Footprint>]) -> Figure {
    let panels = SIDES.into_iter().enumerate().map(|(side, title)| {
        let curves = results.iter().flat_map(|one| {
            one.samples.iter().map(move |found| {
                let points = found.memory.iter().map(|(at, kib)| (*at, kib[side]));
                Curve::solid(&one.case.contender.name, points)
            })
        });
        let (x, y) = (Axis::linear("minutes of use"), Axis::linear("PSS, KiB"));
        Panel::new(title, x, y, curves.collect())
    });
    Figure::new("Memory in use", panels)
}

fn cpu(stage: &Stage) -> io::Result<[f64; 2]> {
    both(stage, cpu_seconds)
}

fn resident(stage: &Stage) -> io::Result<[f64; 2]> {
    both(stage, |pid| field(format!("/proc/{pid}/smaps_rollup"), "Pss:")?.parse().ok())
}

fn both(stage: &Stage, of: impl Fn(u32) -> Option<f64>) -> io::Result<[f64; 2]> {
    let mut sums = [0.0; 2];
    for (sum, end) in sums.iter_mut().zip([End::Near, End::Far]) {
        // A process may end while it is looked at.
        *sum = stage.processes(end)?.into_iter().filter_map(&of).sum();
    }
    Ok(sums)
}

const SIDES: [&str; 2] = ["client", "server"];

const COLUMNS: &str = "program | cat, MB | MB/s | client CPU, ms/MB | server CPU, ms/MB | \
    client at the start, KiB | at the end | server at the start, KiB | at the end | \
    client CPU in use, ms/min | server CPU in use, ms/min";

/// From one command to the next.
const STEP: Duration = Duration::from_secs(2);
/// Looks at the memory in a session.
const SAMPLES: u64 = 30;
const LIMIT: Duration = Duration::from_secs(300);

/// The parts of the lab that its numbers come from, besides those of all experiments on real programs.
const DEPENDS: &[&str] =
    &["crates/lab/src/real/footprint.rs", "crates/lab/src/real/text/server.md"];

#[cfg(test)]
mod tests;
