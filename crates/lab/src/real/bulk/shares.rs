//! `rove-lab bulk shares`: measures how a copy and a real TCP connection that was there before it share a path,
//! and, for comparison, how two TCP connections do.

use std::fmt;
use std::io;
use std::net::SocketAddrV4;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::RealFlags;
use super::super::contender::{CONTROLS, is_usable};
use super::super::experiment::{Body, Experiment, Measured, Title};
use super::super::flow::Flow;
use super::super::ping::Pinger;
use super::super::sessions::OverLink;
use super::copier::{Copier, Load, Pipe};
use super::copy::{Transfer, widen};
use crate::clock::Clock;
use crate::experiments::report::{Table, hundredths, paragraphs, tenths};
use crate::net::{FAR, Net};
use crate::plot::{Axis, Curve, Figure, Panel};
use crate::relay::Direction;
use crate::stats::Summary;

/// Two flows over one path.
pub(super) struct Shares {
    span: Duration,
    cases: Vec<Case>,
}

impl Shares {
    pub(super) fn new(flags: &RealFlags) -> Shares {
        let queues = flags.setting().pick(&[100u64][..], &[100, 400, 20][..]);
        let controls: Vec<&str> =
            CONTROLS.into_iter().filter(|control| is_usable(control)).collect();
        let mut flows = vec![SecondFlow::Copy];
        flows.extend(controls.iter().map(|control| SecondFlow::Tcp(control)));
        flows.retain(|second| flags.wants(&second.name()));
        let mut cases = Vec::new();
        for queue_percent in queues {
            let pipe = Pipe { queue_percent: *queue_percent, ..Pipe::clean(100, 40) };
            for first in &controls {
                cases.extend(flows.iter().map(|second| Case { pipe, first, second: *second }));
            }
        }
        Shares { span: flags.span(8, 40), cases }
    }
}

impl Experiment for Shares {
    type Case = Case;
    type Sample = Shared;

    fn title(&self) -> Title {
        Title::new("bulk shares", "bulk-shares", "A copy beside one TCP connection", DEPENDS)
    }

    fn cases(&self) -> Vec<Case> {
        self.cases.clone()
    }

    fn times(&self, flags: &RealFlags, _: &Case) -> u32 {
        flags.times(1, 3)
    }

    fn measure(&self, case: &Case, seed: u64) -> io::Result<OverLink<Shared>> {
        let Case { pipe, first, second } = *case;
        let (scenario, mut meter) = (pipe.scenario(seed), Meter::default());
        let SecondFlow::Tcp(control) = second else {
            // More than all that passes meanwhile.
            let load = Load::File { bytes: pipe.mbit * 125_000 * self.span.as_secs().max(1) };
            let mut transfer = Transfer::open(&Copier::rove(), load, Some(&scenario), seed)?;
            let first = Flow::start(&transfer.stage.net, Direction::Up, at(1), at(1), Some(first))?;
            transfer.is_shared = true;
            transfer.stage.rest(AHEAD)?;
            let OverLink { found, late } = transfer.run(self.span, |_, look| {
                meter.look(look.since, [look.arrived, first.received()]);
                Ok(())
            })?;
            first.finish()?;
            let found = Shared { marks: meter.marks, pings: found.unbroken()?.pings };
            return Ok(OverLink { found, late });
        };
        let net = Net::open(&scenario, None)?;
        widen(&net)?;
        let first = Flow::start(&net, Direction::Up, at(1), at(1), Some(first))?;
        net.clock().wait_until(net.clock().now() + AHEAD);
        let pinger = Pinger::start(&net)?;
        let second = Flow::start(&net, Direction::Up, at(2), at(2), Some(control))?;
        let clock = Clock::start();
        while clock.elapsed() < self.span {
            meter.look(clock.elapsed(), [second.received(), first.received()]);
            clock.wait_until(clock.now() + STEP / 10);
        }
        let pings = pinger.finish();
        first.finish()?;
        second.finish()?;
        Ok(OverLink { found: Shared { marks: meter.marks, pings }, late: net.late() })
    }

    fn report(&self, results: &[Measured<Case, Shared>]) -> Body {
        let (mut table, mut panels) = (Table::new("shares of a path", 3, COLUMNS), Vec::new());
        for Measured { case, samples, .. } in results {
            table.rows.extend(samples.iter().map(|shared| shared.row(*case)));
            panels.extend(samples.first().map(|shared| shared.panel(*case)));
        }
        Body {
            tables: vec![table],
            figure: Figure::new("A copy beside one TCP connection", panels),
        }
    }

    fn prose(&self) -> Vec<String> {
        let text = include_str!("../text/bulk-shares.md");
        paragraphs(text, &[("ahead", &AHEAD.as_secs()), ("seconds", &self.span.as_secs())])
    }
}

/// A path, the congestion control of the TCP connection that is there first, and the flow that joins it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pipe: Pipe,
    first: &'static str,
    second: SecondFlow,
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} beside {}, {}", self.second.name(), self.first, self.pipe.name())
    }
}

/// The flow that comes second.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum SecondFlow {
    /// `rove cp`.
    Copy,
    /// Another TCP connection with this congestion control.
    Tcp(&'static str),
}

impl SecondFlow {
    fn name(self) -> String {
        match self {
            SecondFlow::Copy => "rove cp".to_owned(),
            SecondFlow::Tcp(control) => format!("TCP ({control})"),
        }
    }
}

/// The result for both.
pub(super) struct Shared {
    /// Seconds since the second came, and octets of the second and of the first so far.
    marks: Vec<(f64, [u64; 2])>,
    pings: Vec<f64>,
}

/// Marks how far two are, once in a while.
#[derive(Default)]
struct Meter {
    marks: Vec<(f64, [u64; 2])>,
}

impl Meter {
    fn look(&mut self, since: Duration, octets: [u64; 2]) {
        if since >= STEP * self.marks.len() as u32 {
            self.marks.push((since.as_secs_f64(), octets));
        }
    }
}

impl Shared {
    /// Mbit/s of the second and of the first, in the second half.
    fn rates(&self) -> [f64; 2] {
        let half = self.marks.get(self.marks.len() / 2);
        let (Some((from, before)), Some((to, after))) = (half, self.marks.last()) else {
            return [0.0; 2];
        };
        let rate = |whose: usize| {
            let octets = after[whose].saturating_sub(before[whose]) as f64;
            octets * 8.0 / (to - from).max(1e-3) / 1e6
        };
        [rate(0), rate(1)]
    }

    fn row(&self, Case { pipe, first, second }: Case) -> Vec<Value> {
        let [ours, theirs] = self.rates();
        let jain = (ours + theirs).powi(2) / (2.0 * (ours.powi(2) + theirs.powi(2))).max(1e-9);
        let ping = Summary::of(&self.pings).map(|pings| tenths(pings.median));
        vec![
            json!(pipe.name()),
            json!(format!("TCP ({first})")),
            json!(second.name()),
            tenths(theirs),
            tenths(ours),
            tenths(100.0 * ours / (ours + theirs).max(1e-9)),
            hundredths(jain),
            json!(ping),
        ]
    }

    fn panel(&self, Case { pipe, first, second }: Case) -> Panel {
        let curve = |name: &str, whose: usize| {
            let points = self.marks.windows(2).map(|pair| {
                let [(from, before), (to, after)] = [pair[0], pair[1]];
                let octets = after[whose].saturating_sub(before[whose]) as f64;
                (to, octets * 8.0 / (to - from).max(1e-3) / 1e6)
            });
            Curve::solid(name, points)
        };
        let queue = pipe.queue_percent as f64 / 100.0;
        Panel::new(
            format!("{} comes to TCP ({first}), {queue} BDP", second.name()),
            Axis::linear("s since it came"),
            Axis::linear("Mbit/s"),
            vec![curve("who came", 0), curve("who was there", 1)],
        )
    }
}

fn at(number: u16) -> SocketAddrV4 {
    SocketAddrV4::new(FAR, 4_000 + number)
}

const COLUMNS: &str = "path | who was there | who came | was there, Mbit/s | came, Mbit/s | \
    came, % | Jain's index | ping median, ms";

/// How long the first is alone.
const AHEAD: Duration = Duration::from_secs(3);
/// Between marks.
const STEP: Duration = Duration::from_millis(500);

/// The parts of the lab that its numbers come from, besides those of all experiments on real programs.
const DEPENDS: &[&str] = &[
    "crates/lab/src/real/bulk.rs",
    "crates/lab/src/real/bulk/copier.rs",
    "crates/lab/src/real/bulk/copy.rs",
    "crates/lab/src/real/bulk/shares.rs",
    "crates/lab/src/real/flow.rs",
    "crates/lab/src/real/ping.rs",
];
