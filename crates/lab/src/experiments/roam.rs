//! `rove-lab roam`: measures how soon a session works again after an interruption, with a key pending and without.

use std::time::Duration;

use rove_session::Peer;
use rove_ssp::Time;
use serde_json::json;

use super::probe::{Plan, Probe};
use super::report::{Report, Table, tenths};
use super::sender::Sender;
use super::spread::Spread;
use super::{Scale, many};
use crate::host::Load;
use crate::link::Profile;
use crate::plot::{Axis, Curve, Figure, Panel};
use crate::rng::Rng;
use crate::world::Fault;

/// The parts of the lab that its numbers come from.
pub const DEPENDS: &[&str] = &[
    "crates/lab/src/experiments/probe.rs",
    "crates/lab/src/experiments/roam.rs",
    "crates/lab/src/experiments/sender.rs",
    "crates/lab/src/experiments/spread.rs",
    "crates/lab/src/experiments/text/roam.md",
    "crates/lab/src/host.rs",
];

/// The experiment.
///
/// # Errors
/// What must not happen.
pub fn report(scale: Scale) -> Result<Report, Fault> {
    let mut table = Table::new(
        "From the end of the interruption until the answer to a key is seen, in ms; RTT 100 ms",
        2,
        COLUMNS,
    );
    let senders = [Sender::stock(), Sender::rove(), Sender::native()];
    let mut curves = senders.each_ref().map(|sender| Curve::solid(sender.name, []));
    let seeds: Vec<u64> = (1..=scale.runs(RUNS)).collect();
    for (place, case) in CASES.iter().enumerate() {
        for (sender, curve) in senders.iter().zip(&mut curves) {
            let waits = Spread::of_samples(many(&seeds, |&seed| case.run(sender, seed))?);
            curve.points.push((place as f64 + 1.0, waits.quantile(1.0)));
            let mut row = vec![json!(case.name), json!(sender.name)];
            row.extend(waits.cells());
            row.push(tenths(waits.quantile(1.0)));
            table.rows.push(row);
        }
    }
    let (x, y) = (Axis::linear("case (number in the table)"), Axis::log("ms"));
    Ok(Report::new(
        "roam",
        "Back after an interruption",
        include_str!("text/roam.md"),
        DEPENDS,
        (
            vec![table],
            Figure::new(
                "Longest wait for a key after an interruption, RTT 100 ms",
                [Panel::new("", x, y, curves.into())],
            ),
        ),
    ))
}

/// An interruption, and a key typed during it or right after.
struct Case {
    name: &'static str,
    what: What,
    span: Duration,
    key: Typed,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum What {
    /// The client has another address at once, and its system says so.
    Move,
    /// As a new address, but the client does not learn of it: a NAT has forgotten its port.
    Rebind,
    /// Nothing passes.
    Outage,
    /// Datagrams wait on the way, and all arrive at the end.
    Hold,
    /// The client sleeps.
    Suspend,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Typed {
    /// How long before the end of the interruption.
    Before(Duration),
    /// How long before the start of the interruption, so that the server has just answered and its answer goes to
    /// the old address.
    InFlight,
    /// When it is over.
    After,
}

impl Case {
    /// How long the key's answer took from the end of the interruption, in ms.
    fn run(&self, sender: &Sender, seed: u64) -> Result<f64, Fault> {
        let path = Profile::delay(DELAY);
        let plan = Plan::alike(sender, Load::Typing, path.clone());
        let mut probe = Probe::start(&Plan { seed, ..plan })?;
        probe.settle(Duration::from_secs(30))?;
        probe.stop()?;
        probe.take();
        // Not always in step with heartbeats.
        let mut rng = Rng::new(seed);
        let start = probe.world.now() + rng.span_below(Duration::from_secs(6));
        let end = start + self.span;
        match self.what {
            What::Move | What::Rebind => probe.world.roam_at(start, probe.client),
            What::Suspend => probe.world.suspend_at(start, probe.client, self.span),
            What::Outage => probe.set_paths(&Profile { outages: vec![start..end], ..path }),
            What::Hold => probe.set_paths(&Profile { holds: vec![start..end], ..path }),
        }
        let at = match self.key {
            Typed::InFlight => start - (DELAY + Duration::from_millis(10)),
            Typed::Before(span) => start.max(end - span - rng.span_below(Duration::from_secs(1))),
            Typed::After => end + Duration::from_micros(1),
        };
        if at < start {
            probe.world.run_until(at)?;
            probe.press(b'x')?;
        }
        // mosh's client ignores its system's notifications about networks.
        if self.what == What::Move && sender.peer == Peer::Rove {
            probe.world.run_until(end)?;
            probe.tell_of_move()?;
        }
        if at >= start {
            probe.world.run_until(at)?;
            probe.press(b'x')?;
        }
        probe.world.run_until(end + GIVEN_UP)?;
        let answered = at + Duration::from_secs_f64(answer_ms(&mut probe) / 1e3);
        Ok(answered.since(end.max(Time::ZERO)).as_secs_f64() * 1e3)
    }
}

/// A key that was never answered took as long as was waited.
fn answer_ms(probe: &mut Probe) -> f64 {
    probe.take().keys_ms.first().copied().unwrap_or(1e9)
}

const CASES: [Case; 12] = [
    case("1: new address, then a key", What::Move, MS, Typed::After),
    case("2: new address, an answer under way", What::Move, MS, Typed::InFlight),
    case("3: NAT rebinding, then a key", What::Rebind, MS, Typed::After),
    case("4: NAT rebinding, an answer under way", What::Rebind, MS, Typed::InFlight),
    case("5: held for 5 s, key 2 s before", What::Hold, secs(5), before(2)),
    case("6: outage 10 s, key 5 s before", What::Outage, secs(10), before(5)),
    case("7: outage 10 s, then a key", What::Outage, secs(10), Typed::After),
    case("8: outage 60 s, key 55 s before", What::Outage, secs(60), before(55)),
    case("9: outage 60 s, then a key", What::Outage, secs(60), Typed::After),
    case("10: outage 72 h, key 71 h before", What::Outage, secs(259_200), before(255_600)),
    case("11: outage 72 h, then a key", What::Outage, secs(259_200), Typed::After),
    case("12: asleep 8 h, then a key", What::Suspend, secs(28_800), Typed::After),
];

const fn case(name: &'static str, what: What, span: Duration, key: Typed) -> Case {
    Case { name, what, span, key }
}

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

const fn before(secs: u64) -> Typed {
    Typed::Before(Duration::from_secs(secs))
}

const COLUMNS: &str = "case | policy | runs | median | mean | ±95 % | max";

const MS: Duration = Duration::from_millis(1);

/// Half of the round trip.
const DELAY: Duration = Duration::from_millis(50);

/// How long an answer is waited for.
const GIVEN_UP: Duration = Duration::from_secs(60);

/// Sessions of a case.
const RUNS: u64 = 10;
