//! `rove-lab roam --real`: measures how a change of address, ten seconds without a network, and a NAT that forgets
//! its mappings delay a user's keys.

use std::fmt;
use std::io;
use std::time::Duration;

use super::RealFlags;
use super::contender::Contender;
use super::experiment::{self, Body, Experiment, Measured, Over, Title, samples};
use super::outcome::{AGAIN, table};
use super::sessions::OverLink;
use super::typing::{Pace, Prose};
use crate::experiments::report::paragraphs;
use crate::link::Profile;
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

impl fmt::Display for Disruption {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Disruption::Address => "another address",
            Disruption::Outage => "10 s without a network",
            Disruption::Nat => "the translator forgets",
        })
    }
}

impl Disruption {
    /// How long nothing passes.
    fn lasts(self) -> Duration {
        match self {
            Disruption::Outage => OUTAGE,
            Disruption::Address | Disruption::Nat => Duration::ZERO,
        }
    }
}

/// One session's numbers.
struct Track {
    /// The worst key in ms.
    worst: f64,
    /// How long it took until one was seen after the disruption, in ms.
    back: f64,
    unseen: usize,
    /// When each key was typed, and its latency in ms.
    keys: Vec<(f64, f64)>,
}

/// Runs it.
///
/// # Errors
/// If there can be no links here, or the results cannot be written.
pub(crate) fn run(flags: &RealFlags) -> io::Result<i32> {
    let disruptions = [Disruption::Address, Disruption::Outage, Disruption::Nat];
    let disruptions = flags.setting().pick(&disruptions[..1], &disruptions);
    let cases = Over::each(disruptions, &flags.contenders(Contender::all())?);
    experiment::run(&Roaming { cases }, flags, |_| Vec::new())
}

/// Keys during disruptions.
struct Roaming {
    cases: Vec<Over<Disruption>>,
}

impl Experiment for Roaming {
    type Case = Over<Disruption>;
    type Sample = Track;

    fn title(&self) -> Title {
        let title = "Roaming, outages and forgetful translators, real programs";
        Title::new("roam --real", "roam-real", title, DEPENDS)
    }

    fn cases(&self) -> Vec<Over<Disruption>> {
        self.cases.clone()
    }

    fn times(&self, flags: &RealFlags, _: &Over<Disruption>) -> u32 {
        flags.times(1, 10)
    }

    fn lasts(&self, _: &Over<Disruption>) -> Option<Duration> {
        Some(WHEN + OUTAGE + REST / 3)
    }

    fn measure(&self, case: &Over<Disruption>, seed: u64) -> io::Result<OverLink<Track>> {
        let Over { path: disruption, contender } = case;
        let middle = if *disruption == Disruption::Nat { Middle::Nat } else { Middle::Plain };
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
        let typed = seen.typed.iter().map(Duration::as_secs_f64);
        let keys = typed.zip(seen.latencies.iter().map(|latency| latency.max(1.0))).collect();
        let found = Track { worst, back, unseen: seen.unseen, keys };
        Ok(OverLink { found, late: prose.stage.net.late() })
    }

    fn report(&self, results: &[Measured<Over<Disruption>, Track>]) -> Body {
        let each = |value: fn(&Track) -> &f64| {
            samples(results, |track| (std::slice::from_ref(value(track)), track.unseen))
        };
        let mut panels: Vec<Panel> = Vec::new();
        for Measured { case, samples, .. } in results {
            // The first session of each.
            let Some(first) = samples.first() else { continue };
            let title = case.path.to_string();
            if panels.last().is_none_or(|panel| panel.title != title) {
                let (x, y) =
                    (Axis::linear("when a key was typed, s"), Axis::log("until it was seen, ms"));
                panels.push(Panel::new(title, x, y, Vec::new()));
            }
            let (name, points) = (case.contender.name.clone(), first.keys.clone());
            let panel = panels.last_mut().expect("there is one by now");
            panel.curves.push(Curve { name, points, stroke: Stroke::Steps });
        }
        let worst = "the worst key of each session, ms; unseen are all keys of all sessions";
        Body {
            tables: vec![
                table(
                    "from the end of the trouble until a key is seen after it, ms",
                    &each(|track| &track.back),
                ),
                table(worst, &each(|track| &track.worst)),
            ],
            figure: Figure::new("Roaming", panels),
        }
    }

    fn prose(&self) -> Vec<String> {
        let (when, rest) = (WHEN.as_secs(), REST.as_secs());
        let values: [(&str, &dyn fmt::Display); 3] =
            [("when", &when), ("rest", &rest), ("again", &AGAIN)];
        paragraphs(include_str!("text/roam.md"), &values)
    }
}

/// When the disruption comes, how long it lasts where it lasts, and how long is typed after it.
const WHEN: Duration = Duration::from_secs(3);
const OUTAGE: Duration = Duration::from_secs(10);
const AFTER: Duration = Duration::from_secs(3);
/// Between keys.
const GAP: Duration = Duration::from_millis(200);
/// How long is waited for keys that are not seen.
const REST: Duration = Duration::from_secs(20);

/// The parts of the lab that its numbers come from, besides those of all experiments on real programs.
const DEPENDS: &[&str] = &["crates/lab/src/real/roaming.rs", "crates/lab/src/real/text/roam.md"];

#[cfg(test)]
mod tests;
