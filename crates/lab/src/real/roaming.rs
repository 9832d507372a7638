//! `rove-lab roam --real`: what a change of address, ten seconds without a network, and a translator that
//! forgets do to somebody who types.

use std::io;
use std::time::Duration;

use serde_json::json;

use super::RealFlags;
use super::contender::{Contender, Echo};
use super::outcome::Outcome;
use super::stage::{Setup, Stage};
use super::typing::{Pace, READY, prose, type_keys};
use crate::experiments::report::{Table, tenths};
use crate::link::Profile;
use crate::net::lateness::Late;
use crate::net::scenario::{Happening, Middle, Scenario};
use crate::plot::{Axis, Curve, Figure, Panel, Stroke};
use crate::predict::judge::deeds;
use crate::predict::trace::Trace;
use crate::scratch::Scratch;
use crate::stats::Summary;

/// What happens to the network.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Trouble {
    Address,
    Outage,
    Nat,
}

impl Trouble {
    fn name(self) -> &'static str {
        match self {
            Trouble::Address => "another address",
            Trouble::Outage => "10 s without a network",
            Trouble::Nat => "the translator forgets",
        }
    }

    /// From when on somebody can be back.
    fn over(self) -> Duration {
        match self {
            Trouble::Outage => WHEN + OUTAGE,
            Trouble::Address | Trouble::Nat => WHEN,
        }
    }
}

/// One session's numbers, in milliseconds.
struct Found {
    worst: f64,
    recovered: f64,
    keys: Vec<(Duration, f64)>,
    unseen: usize,
    late: Late,
}

/// Runs it.
///
/// # Errors
/// If there can be no links here, or the results cannot be written.
pub fn run(flags: &RealFlags) -> io::Result<i32> {
    let setting = flags.setting();
    let troubles = setting
        .pick(&[Trouble::Address][..], &[Trouble::Address, Trouble::Outage, Trouble::Nat][..]);
    let runs = setting.pick(1, 10);
    let contenders = flags.contenders(Contender::all())?;
    let mut items: Vec<(Trouble, &Contender, u64)> = Vec::new();
    for trouble in troubles {
        for contender in &contenders {
            items.extend((0..runs).map(|run| (*trouble, contender, flags.seed + run)));
        }
    }
    flags.estimate("roam --real", items.len(), WHEN + OUTAGE + REST / 3);
    let results =
        flags.each(&items, |(trouble, contender, seed)| session(contender, *trouble, *seed));
    let mut table = Table::new(
        "in ms: the worst key of a session, and from the end of the trouble to the first key that is seen after it",
        2,
        &[
            "trouble",
            "program",
            "n",
            "worst, median",
            "worst, max",
            "back, median",
            "95 % from",
            "to",
            "back, p95",
            "unseen",
        ],
    );
    let (mut late, mut failures, mut panels) = (Late::default(), Vec::new(), Vec::new());
    let mut results = items.iter().zip(results).peekable();
    while let Some(((trouble, contender, _), _)) = results.peek() {
        let (trouble, contender) = (*trouble, *contender);
        let mut group = Vec::new();
        while let Some((_, result)) =
            results.next_if(|((t, c, _), _)| *t == trouble && c.name == contender.name)
        {
            match result {
                Ok(found) => group.push(found),
                Err(error) => {
                    failures.push(format!("{}, {}: {error}", contender.name, trouble.name()))
                }
            }
        }
        let column = |of: fn(&Found) -> f64| Summary::of(&group.iter().map(of).collect::<Vec<_>>());
        let (Some(worst), Some(back)) = (column(|f| f.worst), column(|f| f.recovered)) else {
            continue;
        };
        late = group.iter().fold(late, |late, found| late.worse(found.late));
        let max = group.iter().map(|found| found.worst).fold(0.0, f64::max);
        table.rows.push(vec![
            json!(trouble.name()),
            json!(contender.name),
            json!(group.len()),
            tenths(worst.median),
            tenths(max),
            tenths(back.median),
            tenths(back.interval.0),
            tenths(back.interval.1),
            tenths(back.p95),
            json!(group.iter().map(|found| found.unseen).sum::<usize>()),
        ]);
        if !panels.iter().any(|panel: &Panel| panel.title == trouble.name()) {
            panels.push(Panel {
                title: trouble.name().to_owned(),
                x: Axis::linear("when a key was typed, s"),
                y: Axis::log("until it was seen, ms"),
                curves: Vec::new(),
            });
        }
        if let (Some(panel), Some(first)) = (panels.last_mut(), group.first()) {
            let points =
                first.keys.iter().map(|(at, latency)| (at.as_secs_f64(), latency.max(1.0)));
            let name = contender.name.clone();
            panel.curves.push(Curve { name, points: points.collect(), stroke: Stroke::Steps });
        }
    }
    drop(results);
    Outcome {
        name: "roam --real",
        file: "roam-real",
        title: "Roaming, outages and forgetful translators, real programs".to_owned(),
        notes: vec![format!(
            "100 ms round trip, a key each 200 ms, without predictions; the trouble comes after {} s. Keys that were not \
             seen {} s later are \"unseen\" and count with the time they were waited for: a TCP connection is lost with \
             its address. The command is `rove-lab roam --real`.",
            WHEN.as_secs(),
            REST.as_secs()
        )],
        tables: vec![table],
        figure: Figure { title: "Roaming".to_owned(), panels },
        late,
        failures,
    }
    .write(flags)
}

fn session(contender: &Contender, trouble: Trouble, seed: u64) -> io::Result<Found> {
    let scratch = Scratch::new()?;
    let cast = scratch.join("prose.cast");
    let typed = trouble.over() + AFTER;
    prose(&cast, (typed.as_millis() / GAP.as_millis()) as usize, Pace::Every(GAP), seed)?;
    let trace = Trace::load(&cast)?;
    let deeds = deeds(&trace);
    let lab = std::env::current_exe()?;
    let middle = if trouble == Trouble::Nat { Middle::Nat } else { Middle::Plain };
    let setup = Setup {
        contender,
        echo: Echo::Never,
        remote: vec![lab.into(), "act".into(), cast.into()],
        size: trace.size,
        middle,
        seed,
    };
    let mut stage = Stage::start(setup, scratch, READY)?;
    let profile = Profile::delay(Duration::from_millis(50));
    stage.follow(&Scenario { middle, ..Scenario::steady(profile.clone(), profile, seed) });
    let mut happened = false;
    let seen = type_keys(&mut stage, &trace, &deeds, REST, |stage, since| {
        if !happened && since >= WHEN {
            happened = true;
            match trouble {
                Trouble::Address => stage.net.happen(Happening::Roam)?,
                Trouble::Nat => stage.net.happen(Happening::Rebind)?,
                Trouble::Outage => stage.net.cut(OUTAGE),
            }
        }
        Ok(())
    })?;
    let over = trouble.over();
    let back = seen
        .typed
        .iter()
        .zip(&seen.latencies)
        .map(|(at, latency)| *at + Duration::from_micros((latency * 1e3) as u64))
        .filter(|seen| *seen > over)
        .min();
    let worst = seen.latencies.iter().copied().fold(0.0, f64::max);
    Ok(Found {
        worst,
        recovered: back.map_or(worst, |back| (back - over).as_secs_f64() * 1e3),
        keys: seen.typed.iter().copied().zip(seen.latencies.iter().copied()).collect(),
        unseen: seen.unseen,
        late: stage.net.late(),
    })
}

/// When the trouble comes, how long it lasts where it lasts, and how long is typed after it.
const WHEN: Duration = Duration::from_secs(3);
const OUTAGE: Duration = Duration::from_secs(10);
const AFTER: Duration = Duration::from_secs(3);
/// Between keys.
const GAP: Duration = Duration::from_millis(200);
/// How long is waited for keys that are not seen.
const REST: Duration = Duration::from_secs(20);
