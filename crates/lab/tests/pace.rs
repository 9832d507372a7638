//! Tests the congestion controller of bulk streams in virtual time: the throughput that it must reach, and the
//! queue that it must not exceed. `rove-lab pace` runs the same cases for longer.

#![allow(clippy::unwrap_used, reason = "what is missing fails the test")]

mod common;

use std::fmt::Write as _;
use std::time::Duration;

use common::check_golden;
use rove_lab::testing::experiments::pace::{Long, beside, cases};
use rove_lab::testing::experiments::quantile;
use rove_lab::testing::quic::{Control, Course, Flow, Hosts, Plan};
use rove_lab::testing::rng::Chance;
use rove_ssp::Time;

const SEC: Duration = Duration::from_secs(1);

/// One connection over a long path for 8 s: its goodput after the first three, and all pings.
fn check_alone(long: Long, queue_percent: u64, loss_ppm: u32, mbit_min: f64) {
    let plan = Plan { span: 8 * SEC, ..long.plan(queue_percent, Chance::per_million(loss_ppm)) };
    let course = plan.run();
    let goodput = course.goodput_mbit(0, 3 * SEC, 8 * SEC);
    let what = format!("{long:?}, queue {queue_percent} %, loss {loss_ppm} ppm");
    assert!(goodput >= mbit_min, "{what}: {goodput:.1} Mbit/s");
    let most = long.round_trip.as_secs_f64() * 1e3 + 20.0;
    let median = quantile(&course.pings_ms(Duration::ZERO, 8 * SEC), 0.5);
    assert!(median <= most, "{what}: ping {median:.1} ms");
}

/// Nine seconds of each path that changes, marks or polices, and three of our controller alone, packet by packet. CUBIC
/// and BBR are left out: quinn takes cube roots from the system's library, which need not be the same everywhere, and
/// draws where BBR's cycle begins. A change of the controller is recorded with
/// `RECORD=1 cargo test -p rove-lab --test pace`, in the same commit.
#[test]
fn courses_are_as_recorded() {
    let mut found =
        String::from("path | octets | sent | taken for lost | pings | sum of pings, us\n");
    let mut all: Vec<(String, Plan)> =
        cases(9 * SEC).into_iter().map(|(name, plan)| (name.to_owned(), plan)).collect();
    for (queue, loss) in [(100, 0), (100, 10_000), (10, 0), (10, 10_000)] {
        let plan = Long::ALL[0].plan(queue, Chance::per_million(loss));
        let name = format!("alone, queue {queue} %, loss {loss} ppm");
        all.push((name, Plan { span: 3 * SEC, ..plan }));
    }
    for (name, plan) in all {
        if plan.flows.iter().any(|flow| flow.control == Control::Cubic) {
            continue;
        }
        let course = plan.run();
        let octets: u64 = course.received[0].iter().sum();
        let (sent, lost) = course.packets[0];
        let pings: Duration = course.pings.iter().map(|(_, trip)| *trip).sum();
        let (count, us) = (course.pings.len(), pings.as_micros());
        writeln!(found, "{name} | {octets} | {sent} | {lost} | {count} | {us}").unwrap();
    }
    check_golden("pace", &found);
}

#[test]
fn fills_200_mbit_at_100_ms_whatever_is_lost() {
    for queue_percent in [100, 10] {
        for (loss_ppm, mbit_min) in [(0, 175.0), (1_000, 165.0), (10_000, 160.0), (50_000, 145.0)] {
            check_alone(Long::ALL[0], queue_percent, loss_ppm, mbit_min);
        }
    }
}

#[test]
fn fills_400_mbit_at_60_ms() {
    for (loss_ppm, mbit_min) in [(0, 330.0), (10_000, 300.0)] {
        check_alone(Long::ALL[1], 100, loss_ppm, mbit_min);
    }
}

/// Timers that come up to two milliseconds late, and packets that are read in batches, do not lower that.
#[test]
fn fills_it_as_processes_are_woken() {
    for (long, loss_ppm, mbit_min) in [
        (Long::ALL[0], 0, 185.0),
        (Long::ALL[0], 10_000, 175.0),
        (Long::ALL[0], 50_000, 165.0),
        (Long::ALL[1], 0, 380.0),
        (Long::ALL[1], 10_000, 360.0),
    ] {
        let plan = long.plan(100, Chance::per_million(loss_ppm));
        let course = Plan { span: 8 * SEC, hosts: Hosts::Usual, ..plan }.run();
        let goodput = course.goodput_mbit(0, 2 * SEC, 8 * SEC);
        assert!(goodput >= mbit_min, "{long:?}, loss {loss_ppm} ppm: {goodput:.1} Mbit/s");
        let most = long.round_trip.as_secs_f64() * 1e3 + 20.0;
        let median = quantile(&course.pings_ms(Duration::ZERO, 8 * SEC), 0.5);
        assert!(median <= most, "{long:?}, loss {loss_ppm} ppm: ping {median:.1} ms");
    }
}

/// After a blackout of a minute a new connection takes the place of the old one: it need not begin as on an unknown
/// path.
#[test]
fn goes_on_after_a_blackout_where_it_was() {
    let back = 64 * SEC;
    let run = |is_one_session| {
        let mut plan = Plan { span: back + 2 * SEC, ..Long::ALL[0].plan(100, Chance::NEVER) };
        plan.flows =
            vec![Flow::of(Control::Pace).until(4 * SEC), Flow::of(Control::Pace).from(back)];
        plan.is_one_session = is_one_session;
        plan.run()
    };
    let [known, unknown] = [true, false].map(run);
    let first = |course: &Course| course.goodput_mbit(1, back, back + SEC);
    assert!(first(&known) >= 110.0, "{:.1} Mbit/s in the first second", first(&known));
    assert!(first(&known) >= 1.3 * first(&unknown), "{:.1} where unknown", first(&unknown));
    assert!(known.goodput_mbit(1, back + SEC, back + 2 * SEC) >= 175.0);
}

/// A stream over 100 ms whose own window begins with ten packets and doubles each round trip, up to this rate. It keeps
/// what comes faster, and loses nothing.
fn stream(control: Control, mbit: u64) -> Plan {
    let round_trip = Duration::from_millis(100);
    let mut plan = Plan::bottleneck(1_200_000, round_trip, 64 << 20);
    let rates = std::iter::successors(Some(2_400_000), |rate| Some(rate * 2));
    let grows = rates.take_while(|rate| *rate < mbit * 1_000_000);
    for (trip, rate) in (1..).zip(grows.chain([mbit * 1_000_000])) {
        let profile = plan.up.clone().rate(rate, 64 << 20);
        plan.changes.push((Time::ZERO + round_trip * trip, profile));
    }
    Plan { flows: vec![Flow::of(control)], ..plan }
}

/// The slow start of a stream is no queue of a full path.
#[test]
fn fills_a_stream_as_it_grows() {
    for (mbit, least) in [(150, 45.0), (20, 10.0)] {
        let plan = Plan { span: 4 * SEC, ..stream(Control::Stream, mbit) };
        let (course, datagrams) =
            (plan.run(), Plan { flows: vec![Flow::of(Control::Pace)], ..plan }.run());
        let first = |course: &Course| course.goodput_mbit(0, Duration::ZERO, 2 * SEC);
        assert!(first(&course) >= least, "{:.1} of {mbit} Mbit/s", first(&course));
        assert!(first(&course) >= first(&datagrams), "{:.1} by datagrams", first(&datagrams));
        let (then, pings) =
            (course.goodput_mbit(0, 2 * SEC, 4 * SEC), course.pings_ms(2 * SEC, 4 * SEC));
        assert!(then >= 0.9 * mbit as f64, "{then:.1} of {mbit} Mbit/s");
        let longest = quantile(&pings, 1.0);
        assert!(longest <= 260.0, "no more waits than is on its way: {longest:.1} ms");
    }
}

/// A key does not wait behind a stream's own queue, and the stream goes on.
#[test]
fn a_stream_yields_to_keys() {
    let typing = Some((Time::ZERO + 2 * SEC, Time::ZERO + 8 * SEC));
    let plan = Plan { span: 10 * SEC, typing, ..stream(Control::Stream, 20) };
    let course = plan.run();
    let ping = quantile(&course.pings_ms(4 * SEC, 10 * SEC), 0.5);
    assert!(ping <= 125.0, "{ping:.1} ms");
    let goodput = course.goodput_mbit(0, 4 * SEC, 10 * SEC);
    assert!(goodput >= 15.0, "{goodput:.1} Mbit/s");
}

#[test]
fn a_seed_is_a_run() {
    let run = |seed| {
        let plan = Plan { span: 2 * SEC, seed, ..Long::ALL[0].plan(100, Chance::percent(1)) };
        plan.run()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

/// A case of the experiment for 18 s: goodput and median ping in each third.
fn thirds(name: &str) -> (Course, [f64; 3], [f64; 3]) {
    thirds_of(&case(name))
}

fn case(name: &str) -> Plan {
    let (_, plan) =
        cases(18 * SEC).into_iter().find(|(case, _)| case.contains(name)).expect("a case");
    plan
}

fn thirds_of(plan: &Plan) -> (Course, [f64; 3], [f64; 3]) {
    let course = plan.run();
    let goodput = [0, 1, 2].map(|n| course.goodput_mbit(0, 6 * SEC * n, 6 * SEC * (n + 1)));
    let ping = [0, 1, 2].map(|n| quantile(&course.pings_ms(6 * SEC * n, 6 * SEC * (n + 1)), 0.5));
    (course, goodput, ping)
}

#[test]
fn follows_a_path_that_becomes_slower_and_faster() {
    let (_, goodput, ping) = thirds("then 25");
    assert!(goodput[1] >= 22.0 && goodput[2] >= 80.0, "{goodput:?}");
    assert!(ping.iter().all(|ping| *ping <= 70.0), "{ping:?}");
}

#[test]
fn heeds_marks_of_a_short_queue() {
    let (course, goodput, ping) = thirds("marks");
    assert!(goodput[2] >= 70.0, "{goodput:?}");
    assert!(ping.iter().all(|ping| *ping <= 55.0), "{ping:?}");
    let (sent, lost) = course.packets[0];
    // The start is over by the time of the first mark, a round trip late.
    assert!(lost * 500 < sent, "{lost} of {sent} were lost before a queue that marks");
}

#[test]
fn holds_to_a_policer() {
    let (course, goodput, _) = thirds("policer");
    assert!(goodput[2] >= 43.0, "{goodput:?}");
    let (sent, lost) = course.packets[0];
    assert!(lost * 8 < sent, "{lost} of {sent} were lost");
}

#[test]
fn is_at_rest_where_the_application_is_slower() {
    let (course, goodput, ping) = thirds("no more than");
    assert!(goodput.iter().all(|goodput| *goodput >= 19.0), "{goodput:?}");
    assert!(ping.iter().all(|ping| *ping <= 52.0), "{ping:?}");
    // 20 Mbit/s times 50 ms are 125 kB: a window that was never used grows for two rounds, and no more.
    let most = course.windows[0].iter().max().unwrap();
    assert!(*most <= 2_250_000, "window {most}");
}

#[test]
fn yields_to_keys() {
    let (_, goodput, ping) = thirds("keys");
    assert!(ping[1] <= 53.0 && ping[1] < ping[0], "{ping:?}");
    assert!(goodput[1] >= 80.0, "{goodput:?}");
}

#[test]
fn bears_jitter() {
    let (_, goodput, _) = thirds("jitter");
    assert!(goodput[2] >= 85.0, "{goodput:?}");
}

/// Independent of the first packets' round trips, and though no later packet may be as quick.
#[test]
fn bears_jitter_as_processes_are_woken() {
    for seed in 1..=4 {
        let (_, goodput, ping) = thirds_of(&Plan { hosts: Hosts::Usual, seed, ..case("jitter") });
        assert!(goodput[1] >= 65.0 && goodput[2] >= 85.0, "seed {seed}: {goodput:?}");
        // 50 ms and up to 20 of jitter are the path's.
        assert!(ping.iter().all(|ping| *ping <= 90.0), "seed {seed}: {ping:?}");
    }
}

/// That the harness finds what real links show (a collapse to a few Mbit/s at 1 %).
#[test]
fn quinns_cubic_falls_with_loss_where_ours_does_not() {
    let plan = Plan { span: 4 * SEC, ..Long::ALL[0].plan(100, Chance::percent(1)) };
    let cubic = Plan { flows: vec![Flow::of(Control::Cubic)], ..plan.clone() };
    let [ours, cubic] = [plan, cubic].map(|plan| plan.run().goodput_mbit(0, 2 * SEC, 4 * SEC));
    assert!(ours > 20.0 * cubic, "{ours:.1} and {cubic:.1} Mbit/s");
}

/// The flow of two on one path that was there first, after 5 s.
#[derive(Clone, Copy, Debug)]
enum First {
    Ours,
    Theirs,
}

/// Beside another flow for 40 s over 100 Mbit/s and 40 ms, with each of three seeds: the least that each gets in
/// the second half.
fn check_shares(first: First, other: Control, queue_percent: u64, least: f64, hosts: Hosts) {
    for seed in 1..=3 {
        let mut plan = Plan { hosts, seed, ..beside(other, queue_percent, 40 * SEC) };
        if matches!(first, First::Ours) {
            plan.flows = vec![Flow::of(Control::Pace), Flow::of(other).from(5 * SEC)];
        }
        let course = plan.run();
        let mut got = [0, 1].map(|flow| course.goodput_mbit(flow, 20 * SEC, 40 * SEC));
        if matches!(first, First::Theirs) {
            got.reverse();
        }
        let [ours, theirs] = got;
        let what = format!(
            "seed {seed}, queue {queue_percent} %, first {first:?}: {ours:.1} beside {other:?} with {theirs:.1} Mbit/s"
        );
        assert!(ours >= least && theirs >= least, "{what}");
    }
}

#[test]
fn shares_with_itself() {
    check_shares(First::Theirs, Control::Pace, 100, 35.0, Hosts::Prompt);
}

/// In either order, neither starves the other.
#[test]
fn shares_with_cubic() {
    for first in [First::Theirs, First::Ours] {
        for queue_percent in [100, 400] {
            check_shares(first, Control::Cubic, queue_percent, 20.0, Hosts::Usual);
        }
    }
}

#[test]
fn shares_with_bbr() {
    for first in [First::Theirs, First::Ours] {
        for queue_percent in [100, 400] {
            check_shares(first, Control::Bbr, queue_percent, 20.0, Hosts::Usual);
        }
    }
}
