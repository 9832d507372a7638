//! Runs the experiments in virtual time in a small setting. Their numbers must be those of `tests/golden/`, octet by
//! octet, and meet the bars that documents claim.
//!
//! A change of policy is recorded with `RECORD=1 cargo test -p rove-lab --test experiments`, in the same commit; the
//! message says which numbers differ and why.

#![allow(clippy::unwrap_used, reason = "what is missing fails the test")]

mod common;

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use common::check_golden;
use rove_lab::testing::experiments::probe::{Plan, sessions};
use rove_lab::testing::experiments::report::{Report, Table};
use rove_lab::testing::experiments::sender::Sender;
use rove_lab::testing::experiments::{Scale, collection, flood, loss, reference, roam, scrollback};
use rove_lab::testing::host::Load;
use rove_lab::testing::link::Profile;
use rove_lab::testing::predict::trace::{Kind, Trace};
use rove_term::{Dialect, Terminal, frame};
use serde_json::{Value, json};

/// Compares the tables of a small run with those of `tests/golden/`, octet by octet, and their columns and rows with
/// those of `results/`.
fn check_report(report: &Report) {
    let tables: Vec<String> = report.tables.iter().map(Table::to_markdown).collect();
    check_golden(report.name, &tables.join("\n"));
    let file = format!("../../results/{}.json", report.name);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let recorded: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let tables: Vec<Value> = report.tables.iter().map(Table::to_json).collect();
    assert_eq!(outline(&recorded["tables"]), outline(&json!(tables)), "{}", report.name);
}

/// Of each table its columns and the names of its rows.
fn outline(tables: &Value) -> Vec<(Value, Vec<Vec<Value>>)> {
    let of = |table: &Value| {
        let keys = table["keys"].as_u64().unwrap() as usize;
        let rows = table["rows"].as_array().unwrap();
        let names = rows.iter().map(|row| row.as_array().unwrap()[..keys].to_vec());
        (table["columns"].clone(), names.collect())
    };
    tables.as_array().unwrap().iter().map(of).collect()
}

#[test]
fn keys_over_lossy_paths() {
    let report = loss::report(Scale::Small).unwrap();
    check_report(&report);
    let number = |loss: u32, policy: &str, column: &str| {
        report.tables[0].number(&[json!(loss), json!(policy)], column).unwrap()
    };
    // Loss in percent; mean, 99th percentile, and datagrams per key, at most.
    for (loss, mean, p99, datagrams) in [
        (0, 107.0, 180.0, 3.3),
        (1, 109.0, 220.0, 4.8),
        (5, 110.0, 220.0, 5.7),
        (29, 118.0, 240.0, 9.6),
        (50, 135.0, 360.0, 15.0),
    ] {
        let policy = "rove native";
        assert!(number(loss, policy, "mean") <= mean, "mean at {loss} %");
        assert!(number(loss, policy, "p99") <= p99, "99th percentile at {loss} %");
        assert!(number(loss, policy, "both/key") <= datagrams, "datagrams at {loss} %");
        assert!(number(loss, policy, "mean") < number(loss, "stock", "mean"), "{loss} %");
    }
    assert!(number(29, "rove native", "median") <= 108.0);
    assert!(number(0, "rove native", "both/key") <= number(0, "stock", "both/key"));
    // Where octets cost, it sends fewer than stock, and answers sooner there.
    for loss in [0, 1, 5, 10, 29, 50] {
        let octets = |policy| number(loss, policy, "B up/key") + number(loss, policy, "B down/key");
        assert!(octets("metered") < octets("stock"), "octets at {loss} %");
        assert!(number(loss, "metered", "mean") < number(loss, "stock", "mean"), "{loss} %");
    }
    // The published measurements of stock's policy, and those of real mosh.
    assert!((150.0..=175.0).contains(&number(29, "stock", "median")));
    assert!((185.0..=225.0).contains(&number(29, "stock", "mean")));
    other_paths(&report.tables[1]);
    typed_letters(&report.tables[2]);
    stock_peers(&report.tables[3]);
}

/// The octets with which our differ follows a recording, from what each output leaves on the screen to the next: to a stock
/// client, and to ours. How many frames stock's server makes of it is a matter of real time, so that `rove-lab frames`
/// compares each run with one of stock.
#[test]
fn frames_of_a_recording() {
    let file = format!("{}/traces/own/less.cast", env!("CARGO_MANIFEST_DIR"));
    let trace = Trace::load(Path::new(&file)).unwrap();
    let dialects = [Dialect::MOSH, Dialect::ROVE];
    let mut terminal = Terminal::new(trace.size, Dialect::ROVE);
    let mut found = String::from("output | octets to a stock client | to ours\n");
    let mut sums = [0; 2];
    for (number, event) in trace.events.iter().enumerate() {
        let Kind::Output(octets) = &event.kind else { continue };
        let before = terminal.screen().clone();
        terminal.advance(octets);
        let lengths = dialects.map(|dialect| {
            let mut out = Vec::new();
            frame(&before, terminal.screen(), &dialect, &mut out);
            out.len()
        });
        sums = [0, 1].map(|at| sums[at] + lengths[at]);
        writeln!(found, "{number} | {} | {}", lengths[0], lengths[1]).unwrap();
    }
    writeln!(found, "all | {} | {}", sums[0], sums[1]).unwrap();
    check_golden("frames", &found);
}

fn other_paths(table: &Table) {
    let number = |path: &str, policy: &str, column: &str| {
        table.number(&[json!(path), json!(policy)], column).unwrap()
    };
    for row in &table.rows {
        let (path, policy) = (row[0].as_str().unwrap(), row[1].as_str().unwrap());
        assert!(number(path, policy, "mean") <= number(path, "stock", "mean"), "{path}, {policy}");
    }
    for (path, p99) in [("RTT 1000 ms, 75 %", 2_300.0), ("RTT 2000 ms, 75 %", 3_800.0)] {
        assert!(number(path, "rove native", "p99") <= p99, "{path}");
    }
    assert!(number("RTT 2000 ms, 75 %", "rove native", "mean") <= 2_250.0);
    assert!(number("RTT 1000 ms, 75 %", "rove native", "mean") <= 1_200.0);
}

/// No more datagrams than stock's up to a round trip of 300 ms, and each letter sooner.
fn typed_letters(table: &Table) {
    for rtt_ms in [20, 100, 200, 300] {
        for policy in ["rove", "rove native"] {
            let number = |policy: &str, column: &str| {
                table.number(&[json!(rtt_ms), json!(policy)], column).unwrap()
            };
            let [ours, stocks] = [policy, "stock"].map(|policy| number(policy, "both/key"));
            assert!(ours <= stocks, "{policy}, {rtt_ms} ms: {ours}, stock {stocks}");
            assert!(number(policy, "mean") < number("stock", "mean"), "{policy}, {rtt_ms} ms");
        }
    }
}

/// A stock peer is no worse off for ours at the other end, and is sent no more than twice as much.
fn stock_peers(table: &Table) {
    for row in &table.rows {
        let number = |policy: &Value, column: &str| {
            table.number(&[row[0].clone(), policy.clone()], column).unwrap()
        };
        let stock = json!("stock");
        assert!(number(&row[1], "mean") <= number(&stock, "mean") * 1.02, "{row:?}");
        assert!(number(&row[1], "both/key") <= number(&stock, "both/key") * 2.0, "{row:?}");
    }
}

/// Half a round trip of 100 ms between two frames (`mosh-protocol.md` §4.1).
#[test]
fn stock_sends_twenty_frames_a_second() {
    let path = Profile::delay(Duration::from_millis(50));
    let plan = Plan {
        seed: 0,
        sender: Sender::stock(),
        load: Load::Flood,
        size: Load::Flood.size(),
        up: path.clone(),
        down: path,
    };
    let times = (Duration::from_secs(10), Duration::from_secs(60));
    let runs = sessions(&plan, 1, times).unwrap();
    let frames = runs[0].down_stats.instructions;
    assert!((60 * 19..=60 * 20).contains(&frames), "{frames} frames in a minute");
}

#[test]
fn keys_during_a_flood() {
    let report = flood::report(Scale::Small).unwrap();
    check_report(&report);
    let number = |policy: &str, column: &str| {
        let path = json!("2: 256 kbit/s, 32 kB, RTT 100");
        report.tables[0].number(&[path, json!("60x200"), json!(policy)], column).unwrap()
    };
    for policy in ["rove", "rove native"] {
        assert!(number(policy, "p99") <= 500.0, "{policy}");
        assert!(number(policy, "queue ms") <= 75.0, "{policy}");
    }
    let policed =
        [json!("7: policer 64 kbit/s, 8 kB, RTT 100"), json!("60x200"), json!("rove native")];
    assert!(report.tables[0].number(&policed, "mean").unwrap() <= 1_000.0);
}

/// Bars: 3 s for all lines; 250 ms more than a round trip for the newest screen, in the median where datagrams are lost;
/// 8 octets for an Enter.
#[test]
fn lines_that_were_missed() {
    let report = scrollback::report(Scale::Small).unwrap();
    check_report(&report);
    for loss in [0, 5, 29] {
        let number = |column: &str| report.tables[0].number(&[json!(loss)], column).unwrap();
        assert!(number("all most") <= 3_000.0, "{loss} %");
        assert!(number("newest median") <= if loss < 29 { 350.0 } else { 550.0 }, "{loss} %");
    }
    for loss in [0, 5] {
        let number =
            |lines: &str| report.tables[1].number(&[json!(loss), json!(lines)], "median").unwrap();
        assert!(number("10,000 missing") <= number("none") + 2.0, "{loss} %");
    }
    let octets = |session: &str| report.tables[2].number(&[json!(session)], "octets").unwrap();
    assert!(octets("with lines") <= octets("without lines") + 8.0);
}

#[test]
fn ages_of_what_is_shown() {
    let report = reference::report(Scale::Small).unwrap();
    check_report(&report);
    let number = |rtt_ms: u32, loss: u32, base: &str, column: &str| {
        let keys = [json!(rtt_ms), json!(loss), json!(base)];
        report.tables[0].number(&keys, column).unwrap()
    };
    // Starting from the known state is never worse, but for chance.
    for rtt_ms in [20, 100, 500] {
        for loss in [5, 10, 29] {
            let [assumed, known] = ["λ 0", "λ 1"].map(|base| number(rtt_ms, loss, base, "mean"));
            assert!(known <= assumed * 1.05, "{rtt_ms} ms, {loss} %: {known}, not {assumed}");
        }
    }
    let study = &report.tables[1];
    let ours = |column: &str| study.number(&[json!("ours"), json!("rove native")], column).unwrap();
    assert!(ours("median") <= 1_055.0 && ours("mean") <= 1_130.0);
    // Where λ decides next to nothing it can change nothing.
    for base in ["λ 0", "λ .25", "λ .5", "λ .75", "λ 1"] {
        let keys = [json!("1 s, as mosh"), json!(base)];
        assert!(study.number(&keys, "not from known %").unwrap() <= 3.0, "{base}");
    }
}

#[test]
fn gathering_what_programs_write() {
    check_report(&collection::report(Scale::Small).unwrap());
}

#[test]
fn back_after_interruptions() {
    let report = roam::report(Scale::Small).unwrap();
    check_report(&report);
    // With a key pending under 60 s a round trip and 250 ms; for longer, a round trip and a second.
    for row in &report.tables[0].rows {
        let (case, policy) = (row[0].as_str().unwrap(), row[1].as_str().unwrap());
        let bound = if case.starts_with("10:") { 1_100.0 } else { 350.0 };
        let worst = row.last().and_then(Value::as_f64).unwrap();
        assert!(policy == "stock" || worst <= bound, "{case}, {policy}: {worst} ms");
    }
}
