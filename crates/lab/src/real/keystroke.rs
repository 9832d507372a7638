//! `rove-lab keystroke`: the cost of a keystroke, and of an idle session: packets, octets, processor time and
//! wake-ups at both ends, for OpenSSH with and without chaff, mosh and rove.

use std::fmt;
use std::io;
use std::time::Duration;

use serde_json::{Value, json};

use super::RealFlags;
use super::contender::{Chaff, Contender, Kind, Ssh, Wire, lets_log_in, missing, usual};
use super::experiment::{self, Body, Experiment, Measured, Over, Title};
use super::outcome::{AGAIN, Samples, counts, joined};
use super::sessions::OverLink;
use super::stage::Stage;
use super::typing::{Pace, Prose};
use crate::experiments::report::{Table, hundredths, paragraphs, tenths};
use crate::link::{Counters, Profile};
use crate::net::End;
use crate::net::scenario::Scenario;
use crate::plot::{Axis, Curve, Figure, Panel};
use crate::proc::{cpu_seconds, wakes};

/// The resources that both ends have used so far.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    /// Packets and octets, up and down.
    packets: [u64; 2],
    octets: [u64; 2],
    /// Time on a processor in seconds, and how often it was given up freely: near and far.
    cpu: [f64; 2],
    wakes: [u64; 2],
}

/// The keys typed meanwhile.
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

/// A load over a path.
#[derive(Clone, Copy)]
struct Setting {
    trip_ms: u32,
    load: Load,
}

impl fmt::Display for Setting {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}, {} ms", self.load.name(), self.trip_ms)
    }
}

/// Runs it.
///
/// # Errors
/// If there can be no links here, or the results cannot be written.
pub(crate) fn run(flags: &RealFlags) -> io::Result<i32> {
    let setting = flags.setting();
    let keystroke = Keystroke {
        trips: setting.pick(&[100][..], &[20, 100, 300][..]),
        loads: setting.pick(&[Load::Typing][..], &[Load::Typing, Load::Alone, Load::Idle][..]),
        span: flags.span(8, 120),
        contenders: flags.contenders(contenders(flags)?)?,
    };
    experiment::run(&keystroke, flags, |_| {
        let mut notes: Vec<String> = missing().into_iter().filter(|_| !lets_log_in()).collect();
        if flags.openssh.is_none() {
            notes.extend(paragraphs(include_str!("text/keystroke-openssh.md"), &[]));
        }
        notes
    })
}

/// The costs of keys and of silence.
struct Keystroke {
    trips: &'static [u32],
    loads: &'static [Load],
    span: Duration,
    contenders: Vec<Contender>,
}

impl Experiment for Keystroke {
    type Case = Over<Setting>;
    type Sample = Cost;

    fn title(&self) -> Title {
        let title = "What a keystroke costs, and what silence does";
        Title::new("keystroke", "keystroke", title, DEPENDS)
    }

    fn cases(&self) -> Vec<Over<Setting>> {
        let settings = self.trips.iter().flat_map(|trip_ms| {
            // Silence is the same at any distance.
            let loads = self.loads.iter().filter(|load| **load != Load::Idle || *trip_ms == 100);
            loads.map(|load| Setting { trip_ms: *trip_ms, load: *load })
        });
        Over::each(&settings.collect::<Vec<_>>(), &self.contenders)
    }

    fn lasts(&self, _: &Over<Setting>) -> Option<Duration> {
        Some(self.span + Duration::from_secs(4))
    }

    fn measure(&self, case: &Over<Setting>, seed: u64) -> io::Result<OverLink<Cost>> {
        let Over { path: Setting { trip_ms, load }, contender } = case;
        let (pace, span) = match load {
            Load::Typing => (Pace::Person, self.span),
            Load::Alone => (Pace::Every(ALONE), self.span.max(ALONE)),
            Load::Idle => (Pace::Person, self.span.max(MINUTE)),
        };
        let typed = if *load == Load::Idle { Duration::ZERO } else { span };
        let profile = Profile::delay(Duration::from_micros(u64::from(*trip_ms) * 500));
        let mut prose = Prose::open(contender, pace, typed, Scenario::alike(profile, seed))?;
        prose.stage.begin();
        // Traffic of the session's start, and the first minute of silence.
        prose.stage.rest(if *load == Load::Idle { MINUTE + SETTLE } else { SETTLE })?;
        let before = used(&prose.stage)?;
        let mut marks = Vec::new();
        let n = match load {
            Load::Idle => {
                prose.stage.rest(span)?;
                span.as_secs_f64() / 60.0
            }
            Load::Typing | Load::Alone => {
                let first = prose.deeds.first().map_or(Duration::ZERO, |deed| deed.at);
                let due: Vec<Duration> = prose.deeds.iter().map(|deed| deed.at - first).collect();
                let seen = prose.type_all(Duration::from_secs(5), |stage, since| {
                    // Once for each key, before it is typed.
                    if due.get(marks.len()).is_some_and(|due| *due <= since) {
                        marks.push(traffic(stage));
                    }
                    Ok(())
                })?;
                // Acknowledgments and chaff that the last key still causes.
                prose.stage.rest(if *load == Load::Alone { ALONE } else { SETTLE })?;
                seen.whole(&prose.stage)?.latencies.len() as f64
            }
        };
        let after = used(&prose.stage)?;
        let mut spent = Used::default();
        for side in 0..2 {
            spent.packets[side] = after.packets[side] - before.packets[side];
            spent.octets[side] = after.octets[side] - before.octets[side];
            spent.cpu[side] = (after.cpu[side] - before.cpu[side]).max(0.0);
            spent.wakes[side] = after.wakes[side].saturating_sub(before.wakes[side]);
        }
        let keys = marks.windows(2).map(|pair| (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1));
        let found = Cost { n, used: spent, keys: keys.collect() };
        Ok(OverLink { found, late: prose.stage.net.late() })
    }

    fn report(&self, results: &[Measured<Over<Setting>, Cost>]) -> Body {
        let costs = costs(results);
        let figure = figure(&costs, &self.contenders, self.loads, self.trips);
        Body { tables: tables(costs, results), figure }
    }

    fn prose(&self) -> Vec<String> {
        let seconds = self.span.as_secs();
        paragraphs(include_str!("text/keystroke.md"), &[("seconds", &seconds), ("again", &AGAIN)])
    }
}

/// A row for each session.
fn costs(results: &[Measured<Over<Setting>, Cost>]) -> Table {
    let mut table = Table::new(
        "packets and octets on the wire (with IP headers), processor time and wake-ups of all processes of the program",
        3,
        COLUMNS,
    );
    for Measured { case: Over { path, contender }, samples, .. } in results {
        for Cost { n, used, .. } in samples {
            let each = |count: f64| hundredths(count / n);
            table.rows.push(vec![
                json!(path.load.name()),
                json!(path.trip_ms),
                json!(contender.name),
                hundredths(*n),
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
    table
}

/// These costs, compared with mosh's, and the distributions of what single keys cost.
fn tables(costs: Table, results: &[Measured<Over<Setting>, Cost>]) -> Vec<Table> {
    let of_keys = |of: fn(&(f64, f64)) -> f64| {
        joined(results.iter().filter(|one| !one.samples.is_empty()).map(|one| Samples {
            path: one.case.path.to_string(),
            program: one.case.contender.name.clone(),
            values: one.samples.iter().flat_map(|cost| &cost.keys).map(of).collect(),
            unseen: 0,
            late: one.late.clone(),
        }))
    };
    let (packets, octets) = (of_keys(|key| key.0), of_keys(|key| key.1));
    vec![
        against_mosh(&costs),
        costs,
        counts("packets of each key, both ways", &packets),
        counts("octets of each key, both ways", &octets),
    ]
}

fn contenders(flags: &RealFlags) -> io::Result<Vec<Contender>> {
    let ssh = |name: &str, chaff, root| Contender {
        name: name.to_owned(),
        kind: Kind::Ssh(Ssh { chaff, root, ..Ssh::over(usual()) }),
    };
    let mut all = Vec::new();
    if lets_log_in() {
        all.push(ssh("ssh, the system's", Chaff::Default, None));
    }
    if let Some(root) = flags.openssh()?.filter(|_| lets_log_in()) {
        all.push(ssh("ssh with chaff", Chaff::Default, Some(root.clone())));
        all.push(ssh("ssh without chaff", Chaff::Off, Some(root.clone())));
    }
    all.extend([Contender::mosh(), Contender::rove(Wire::Native), Contender::rove(Wire::Mosh)]);
    Ok(all)
}

/// The costs of rove for a typed key, and for an idle minute, compared with mosh's in the same run, both ways
/// together.
fn against_mosh(costs: &Table) -> Table {
    let columns = "load | RTT, ms | program | packets | % of mosh's | octets | \
        % of mosh's octets | wake-ups, % of mosh's | no more packets and octets";
    let mut table = Table::new("rove against mosh, both ways and ends together", 3, columns);
    for row in &costs.rows {
        let [load, trip, program] = [&row[0], &row[1], &row[2]];
        if !program.as_str().is_some_and(|name| name.starts_with("rove")) {
            continue;
        }
        let sum = |program: &Value, columns: [&str; 2]| {
            let keys = [load.clone(), trip.clone(), program.clone()];
            Some(costs.number(&keys, columns[0])? + costs.number(&keys, columns[1])?)
        };
        let pair = |columns| Some((sum(program, columns)?, sum(&json!("mosh"), columns)?));
        let (Some(packets), Some(octets), Some(wakes)) = (
            pair(["packets up", "packets down"]),
            pair(["octets up", "octets down"]),
            pair(["client wake-ups", "server wake-ups"]),
        ) else {
            continue;
        };
        let percent = |(ours, theirs): (f64, f64)| match theirs > 0.0 {
            true => tenths(100.0 * ours / theirs),
            false => Value::Null,
        };
        let holds = packets.0 <= packets.1 && octets.0 <= octets.1;
        table.rows.push(vec![
            load.clone(),
            trip.clone(),
            program.clone(),
            hundredths(packets.0),
            percent(packets),
            hundredths(octets.0),
            percent(octets),
            percent(wakes),
            json!(if holds { "holds" } else { "more" }),
        ]);
    }
    table
}

/// The costs of one session.
struct Cost {
    /// Keys or minutes.
    n: f64,
    used: Used,
    /// Packets and octets from each key to the next, both ways.
    keys: Vec<(f64, f64)>,
}

/// Packets and octets so far, both ways.
fn traffic(stage: &Stage) -> (f64, f64) {
    let [up, down] = stage.net.passed();
    let sum = |of: fn(&Counters) -> u64| (of(&up.link) + of(&down.link)) as f64;
    (sum(|link| link.offered), sum(|link| link.offered_bytes))
}

fn used(stage: &Stage) -> io::Result<Used> {
    let mut used = Used::default();
    for (side, passed) in stage.net.passed().iter().enumerate() {
        used.packets[side] = passed.link.offered;
        used.octets[side] = passed.link.offered_bytes;
    }
    for (side, end) in [End::Near, End::Far].into_iter().enumerate() {
        for pid in stage.processes(end)? {
            // The time of processes that end meanwhile is lost.
            used.cpu[side] += cpu_seconds(pid).unwrap_or(0.0);
            used.wakes[side] += wakes(pid).unwrap_or(0);
        }
    }
    Ok(used)
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
            Curve::solid(&contender.name, points)
        };
        let curves = contenders.iter().map(curve).filter(|curve| !curve.points.is_empty());
        let (x, y) = (Axis::linear("round trip, ms"), Axis::log("packets, both ways"));
        panels.push(Panel::new(load.name(), x, y, curves.collect()));
    }
    Figure::new("Packets for each keystroke", panels)
}

const COLUMNS: &str = "load | RTT, ms | program | n | packets up | packets down | octets up | \
    octets down | client CPU, ms | server CPU, ms | client wake-ups | server wake-ups";

/// Between keys that are alone: what chaff follows a key has ended by then.
const ALONE: Duration = Duration::from_secs(5);
/// Programs may send less once no key was typed for a while.
const MINUTE: Duration = Duration::from_secs(60);
/// How long a session is left alone before it is measured.
const SETTLE: Duration = Duration::from_secs(2);

/// The parts of the lab that its numbers come from, besides those of all experiments on real programs.
const DEPENDS: &[&str] =
    &["crates/lab/src/real/keystroke.rs", "crates/lab/src/real/text/keystroke.md"];

#[cfg(test)]
mod tests;
