//! `rove-lab pace`: measures the congestion controller of bulk streams, with quinn's machines in virtual time. It
//! runs alone over long lossy paths, beside other connections, and over paths that change, mark or police.

use std::time::Duration;

use rove_ssp::Time;
use serde_json::{Value, json};

use super::report::{Report, Table, tenths};
use super::{Scale, many, quantile};
use crate::link::{Loss, Profile};
use crate::plot::{Axis, Curve, Figure, Panel};
use crate::quic::{Control, Course, Flow, Plan, SLOT};
use crate::rng::Chance;
use crate::world::Fault;

/// The parts of the lab that its numbers come from.
pub const DEPENDS: &[&str] = &[
    "crates/lab/src/experiments/pace.rs",
    "crates/lab/src/experiments/text/pace.md",
    "crates/lab/src/quic",
    "crates/lab/src/quic.rs",
    "crates/streams/src",
];

/// Runs the experiment.
///
/// # Errors
/// None: what does not work panics.
pub(crate) fn report(scale: Scale) -> Result<Report, Fault> {
    let (alone, alone_figure) = alone(scale)?;
    let (shared, shared_figure) = shared(scale)?;
    let others = others(scale)?;
    Ok(Report::new(
        "pace",
        "The congestion controller of bulk streams, in virtual time",
        include_str!("text/pace.md"),
        DEPENDS,
        (
            vec![alone, shared, others],
            Figure::new("Goodput of bulk streams, Mbit/s", [alone_figure, shared_figure].concat()),
        ),
    ))
}

/// A long path: bits in a second, round trip.
#[derive(Clone, Copy, Debug)]
pub struct Long {
    /// Of the bottleneck.
    pub mbit: u64,
    /// Without a queue.
    pub round_trip: Duration,
}

impl Long {
    /// Two long paths of the issue of long pipes: 200 Mbit/s at 100 ms, and 400 Mbit/s at 60 ms.
    pub const ALL: [Long; 2] = [
        Long { mbit: 200, round_trip: Duration::from_millis(100) },
        Long { mbit: 400, round_trip: Duration::from_millis(60) },
    ];

    /// One connection over it, with a queue of this percentage of the bandwidth-delay product, and this loss.
    pub fn plan(self, queue_percent: u64, loss: Chance) -> Plan {
        let holds = self.mbit * 1_000_000 / 8 * self.round_trip.as_millis() as u64 / 1_000;
        let queue_bytes = (holds * queue_percent / 100) as usize;
        let mut plan = Plan::bottleneck(self.mbit * 1_000_000, self.round_trip, queue_bytes);
        plan.up.loss = Loss::Independent(loss);
        plan
    }

    fn name(self) -> String {
        format!("{} Mbit/s, {} ms", self.mbit, self.round_trip.as_millis())
    }
}

/// One connection over each path, with each controller.
fn alone(scale: Scale) -> Result<(Table, Vec<Panel>), Fault> {
    let span = scale.span(Duration::from_secs(24));
    let mut cells: Vec<(Long, u64, u32, Control)> = Vec::new();
    for long in Long::ALL {
        for queue in [100, 10] {
            for loss in [0, 1_000, 10_000, 50_000] {
                for control in [Control::Pace, Control::Bbr, Control::Cubic] {
                    cells.push((long, queue, loss, control));
                }
            }
        }
    }
    let courses = many(&cells, |(long, queue, loss, control)| {
        let mut plan = long.plan(*queue, Chance::per_million(*loss));
        plan.span = span;
        plan.flows = vec![Flow::of(*control)];
        Ok(plan.run())
    })?;
    let mut table = Table::new(
        format!("one connection from its start, {} s", span.as_secs()),
        4,
        "path | queue, BDP | loss, % | control | Mbit/s | ping median | ping p95 | \
            taken for lost, %",
    );
    for ((long, queue, loss, control), course) in cells.iter().zip(&courses) {
        let pings = course.pings_ms(Duration::ZERO, span);
        table.rows.push(vec![
            json!(long.name()),
            json!(*queue as f64 / 100.0),
            json!(f64::from(*loss) / 10_000.0),
            json!(control.name()),
            tenths(course.goodput_mbit(0, Duration::ZERO, span)),
            tenths(quantile(&pings, 0.5)),
            tenths(quantile(&pings, 0.95)),
            lost(course, 0),
        ]);
    }
    let panels = Long::ALL.map(|long| {
        let curve = |control: Control| {
            let rows = table.rows.iter().filter(|row| {
                row[0] == json!(long.name())
                    && row[1] == json!(1.0)
                    && row[3] == json!(control.name())
            });
            let points =
                rows.filter_map(|row| Some((row[2].as_f64()?.max(0.01), row[4].as_f64()?)));
            Curve::solid(control.name(), points)
        };
        let curves = [Control::Pace, Control::Bbr, Control::Cubic].map(curve);
        Panel::new(long.name(), Axis::log("loss, %"), Axis::linear("Mbit/s"), curves.to_vec())
    });
    Ok((table, panels.to_vec()))
}

/// Ours beside another, which came 5 s before.
pub fn beside(other: Control, queue_percent: u64, span: Duration) -> Plan {
    let long = Long { mbit: 100, round_trip: Duration::from_millis(40) };
    let mut plan = long.plan(queue_percent, Chance::NEVER);
    plan.span = span;
    plan.flows = vec![Flow::of(other), Flow::of(Control::Pace).from(Duration::from_secs(5))];
    plan
}

fn shared(scale: Scale) -> Result<(Table, Vec<Panel>), Fault> {
    let span = scale.span(Duration::from_secs(90));
    let from = span / 3;
    let mut cells = Vec::new();
    for queue in [20, 100, 400] {
        for other in [Control::Cubic, Control::Bbr, Control::Pace] {
            cells.push((queue, other));
        }
    }
    let courses = many(&cells, |(queue, other)| Ok(beside(*other, *queue, span).run()))?;
    let mut table = Table::new(
        format!(
            "beside one other connection over 100 Mbit/s, 40 ms, from {} s to {} s",
            from.as_secs(),
            span.as_secs()
        ),
        2,
        "queue, BDP | other | rove, Mbit/s | other, Mbit/s | share | ping median",
    );
    let mut panels = Vec::new();
    for ((queue, other), course) in cells.iter().zip(&courses) {
        let [theirs, ours] = [0, 1].map(|flow| course.goodput_mbit(flow, from, span));
        let pings = course.pings_ms(from, span);
        table.rows.push(vec![
            json!(*queue as f64 / 100.0),
            json!(other.name()),
            tenths(ours),
            tenths(theirs),
            json!((ours / (ours + theirs) * 100.0).round() / 100.0),
            tenths(quantile(&pings, 0.5)),
        ]);
        if *queue == 100 {
            let theirs = format!("the other: {}", other.name());
            panels.push(Panel::new(
                format!("beside {}", other.name()),
                Axis::linear("s"),
                Axis::linear("Mbit/s"),
                vec![over_time(course, 1, "rove"), over_time(course, 0, &theirs)],
            ));
        }
    }
    Ok((table, panels))
}

/// Other changes of a path.
fn others(scale: Scale) -> Result<Table, Fault> {
    let span = scale.span(Duration::from_secs(60));
    let cases = cases(span);
    let courses = many(&cases, |(_, plan)| Ok(plan.run()))?;
    let mut table = Table::new(
        format!("one connection, {} s; thirds of that", span.as_secs()),
        1,
        "path | 1st, Mbit/s | ping | 2nd, Mbit/s | ping | 3rd, Mbit/s | ping | taken for lost, %",
    );
    for ((name, _), course) in cases.iter().zip(&courses) {
        let mut row = vec![json!(name)];
        for third in 0..3 {
            let (from, until) = (span / 3 * third, span / 3 * (third + 1));
            row.push(tenths(course.goodput_mbit(0, from, until)));
            row.push(tenths(quantile(&course.pings_ms(from, until), 0.5)));
        }
        row.push(lost(course, 0));
        table.rows.push(row);
    }
    Ok(table)
}

/// Paths that change, mark, police or are not filled, by name.
pub fn cases(span: Duration) -> Vec<(&'static str, Plan)> {
    let long = Long { mbit: 100, round_trip: Duration::from_millis(50) };
    let steady = Plan { span, ..long.plan(100, Chance::NEVER) };
    let at = |third: u32| Time::ZERO + span / 3 * third;
    let rate = |mbit: u64| steady.up.clone().rate(mbit * 1_000_000, 625_000);
    let mut step = steady.clone();
    step.changes = vec![(at(1), rate(25)), (at(2), rate(100))];
    let mut longer = steady.clone();
    let far = Profile { delay: Duration::from_millis(65), ..steady.up.clone() };
    longer.changes = vec![(at(1), far), (at(2), steady.up.clone())];
    let mut marks = steady.clone();
    marks.mark_after = Some(Duration::from_millis(3));
    let mut policed = steady.clone();
    policed.up = Profile { rate: None, ..policed.up }.policer(50_000_000, 100_000);
    let mut limited = steady.clone();
    limited.flows[0].supply = Some(2_500_000);
    let mut jitter = steady.clone();
    jitter.up.jitter = crate::link::Jitter::Uniform(Duration::from_millis(20));
    let mut typing = steady.clone();
    typing.typing = Some((at(1), at(2)));
    let mut crossed = steady.clone();
    let cubic = Flow::of(Control::Cubic).from(span / 3).until(span / 3 * 2);
    crossed.flows.push(cubic);
    vec![
        ("100, then 25, then 100 Mbit/s", step),
        ("50 ms, then 90 ms, then 50 ms", longer),
        ("marks from 3 ms of queue on", marks),
        ("policer at 50 Mbit/s, 100 kB", policed),
        ("no more than 20 Mbit/s to send", limited),
        ("jitter up to 20 ms", jitter),
        ("keys in the second third", typing),
        ("cubic in the second third", crossed),
    ]
}

fn over_time(course: &Course, flow: usize, name: &str) -> Curve {
    let points = course.received[flow].chunks(10).enumerate().map(|(second, slots)| {
        let span = SLOT.as_secs_f64() * slots.len() as f64;
        (second as f64, slots.iter().sum::<u64>() as f64 * 8.0 / span / 1e6)
    });
    Curve::solid(name, points)
}

fn lost(course: &Course, flow: usize) -> Value {
    let (sent, lost) = course.packets[flow];
    tenths(lost as f64 * 100.0 / sent.max(1) as f64)
}
