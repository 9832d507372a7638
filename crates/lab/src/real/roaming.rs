//! `rove-lab roam --real`: measures how a change of address, ten seconds without a network, and a NAT that forgets
//! its mappings delay a user's keys.

use std::io;
use std::time::Duration;

use super::contender::Contender;
use super::outcome::{AGAIN, Outcome, Samples, joined, late, table};
use super::typing::{Pace, Prose};
use super::{OverLink, Ran, RealFlags, Sessions};
use crate::link::Profile;
use crate::net::lateness::Late;
use crate::net::scenario::{Happening, Middle, Scenario};
use crate::plot::{Axis, Curve, Figure, Panel, Stroke};
use crate::rng::Rng;

/// The disruption.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Disruption {
    Address,
    Outage,
    Nat,
}

impl Disruption {
    fn name(self) -> &'static str {
        match self {
            Disruption::Address => "another address",
            Disruption::Outage => "10 s without a network",
            Disruption::Nat => "the translator forgets",
        }
    }

    /// How long nothing passes.
    fn lasts(self) -> Duration {
        match self {
            Disruption::Outage => OUTAGE,
            Disruption::Address | Disruption::Nat => Duration::ZERO,
        }
    }
}

/// One session's numbers.
struct Found {
    /// The worst key, and how long it took until one was seen after the disruption, in ms.
    worst: Samples,
    back: Samples,
    /// When each key was typed, and its latency in ms.
    keys: Vec<(f64, f64)>,
}

impl OverLink for Found {
    fn late(&self) -> &Late {
        &self.worst.late
    }
}

/// Runs it.
///
/// # Errors
/// If there can be no links here, or the results cannot be written.
pub(crate) fn run(flags: &RealFlags) -> io::Result<i32> {
    let setting = flags.setting();
    let disruptions = setting.pick(
        &[Disruption::Address][..],
        &[Disruption::Address, Disruption::Outage, Disruption::Nat][..],
    );
    let contenders = flags.contenders(Contender::all())?;
    let (times, lasts) = (flags.times(1, 10), WHEN + OUTAGE + REST / 3);
    let sessions =
        Sessions { name: "roam --real", lasts, paths: disruptions, contenders: &contenders, times };
    let Ran { found, failures, note } = sessions.run(
        flags,
        |disruption| disruption.name().to_owned(),
        |contender, disruption, seed| session(contender, *disruption, seed),
    );
    let mut panels: Vec<Panel> = Vec::new();
    for (disruption, contender, one) in &found {
        if !panels.iter().any(|panel| panel.title == disruption.name()) {
            panels.push(Panel {
                title: disruption.name().to_owned(),
                x: Axis::linear("when a key was typed, s"),
                y: Axis::log("until it was seen, ms"),
                curves: Vec::new(),
            });
        }
        let panel = panels.last_mut().expect("there is one by now");
        // The first session of each.
        if panel.curves.iter().all(|curve| curve.name != contender.name) {
            let (name, points) = (contender.name.clone(), one.keys.clone());
            panel.curves.push(Curve { name, points, stroke: Stroke::Steps });
        }
    }
    let (worst, back): (Vec<Samples>, Vec<Samples>) =
        found.into_iter().map(|(_, _, one)| (one.worst, one.back)).unzip();
    let (worst, back) = (joined(worst), joined(back));
    Outcome {
        name: "roam --real",
        file: "roam-real",
        title: "Roaming, outages and forgetful translators, real programs".to_owned(),
        notes: vec![format!(
            "100 ms round trip, a key each 200 ms, without predictions; the trouble comes after {} s, anywhere \
             between two keys. Keys that were not seen {} s later are \"unseen\" and count with the time they were \
             waited for: a TCP connection is lost with its address, and a client that ends has lost all that it had \
             not shown. The command is `rove-lab roam --real`. {AGAIN}",
            WHEN.as_secs(),
            REST.as_secs()
        ), note],
        tables: vec![
            table("from the end of the trouble until a key is seen after it, ms", &back),
            table("the worst key of each session, ms; unseen are all keys of all sessions", &worst),
        ],
        figure: Figure { title: "Roaming".to_owned(), panels },
        late: late(&back),
        failures,
    }
    .write(flags)
}

fn session(contender: &Contender, disruption: Disruption, seed: u64) -> io::Result<Found> {
    let middle = if disruption == Disruption::Nat { Middle::Nat } else { Middle::Plain };
    // Not always at the moment of a key.
    let when = WHEN + Rng::new(seed).span_below(GAP);
    let span = when + disruption.lasts() + AFTER;
    let profile = Profile::delay(Duration::from_millis(50));
    let path = Scenario { middle, ..Scenario::alike(profile, seed) };
    let mut prose = Prose::open(contender, Pace::Every(GAP), span, path)?;
    prose.stage.begin();
    let mut happened = false;
    let seen = prose.type_all(REST, |stage, since| {
        if !happened && since >= when {
            happened = true;
            match disruption {
                Disruption::Address => stage.net.happen(Happening::Roam)?,
                Disruption::Nat => stage.net.happen(Happening::Rebind)?,
                Disruption::Outage => stage.net.cut(OUTAGE),
            }
        }
        Ok(())
    })?;
    let over = when + disruption.lasts();
    let back = seen
        .typed
        .iter()
        .zip(&seen.latencies)
        .map(|(at, latency)| *at + Duration::from_micros((latency * 1e3) as u64))
        .filter(|seen| *seen > over)
        .min();
    let worst = seen.latencies.iter().copied().fold(0.0, f64::max);
    let back = back.map_or(worst, |back| (back - over).as_secs_f64() * 1e3);
    let samples = |value: f64| Samples {
        path: disruption.name().to_owned(),
        program: contender.name.clone(),
        values: vec![value],
        unseen: seen.unseen,
        late: prose.stage.net.late(),
    };
    let typed = seen.typed.iter().map(Duration::as_secs_f64);
    let keys = typed.zip(seen.latencies.iter().map(|latency| latency.max(1.0))).collect();
    Ok(Found { worst: samples(worst), back: samples(back), keys })
}

/// When the disruption comes, how long it lasts where it lasts, and how long is typed after it.
const WHEN: Duration = Duration::from_secs(3);
const OUTAGE: Duration = Duration::from_secs(10);
const AFTER: Duration = Duration::from_secs(3);
/// Between keys.
const GAP: Duration = Duration::from_millis(200);
/// How long is waited for keys that are not seen.
const REST: Duration = Duration::from_secs(20);
