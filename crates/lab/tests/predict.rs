//! Tests local echo over recorded sessions, in virtual time.

mod common;
#[path = "predict/judge.rs"]
mod judge;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use clap::ValueEnum as _;
use common::check_golden;
use rove_lab::testing::predict::PathWord;
use rove_lab::testing::predict::judge::{Tally, deeds};
use rove_lab::testing::predict::replay::{Replayed, Scenario, replay};
use rove_lab::testing::predict::trace::Trace;
use rove_session::predict::{Display, Settings};

/// Replays a recorded session on this path; returns the tally by program.
fn tallies(file: &Path, scenario: &Scenario, settings: Settings) -> BTreeMap<String, Tally> {
    let trace = Trace::load(file).expect("the recording is there");
    let deeds = deeds(&trace);
    let Replayed { judge, end, .. } =
        replay(&trace, &deeds, scenario, settings.with_display(Display::Always))
            .expect("nothing happens that must not");
    judge.finish(end).0
}

fn sum(tallies: &BTreeMap<String, Tally>) -> Tally {
    let mut all = Tally::default();
    tallies.values().for_each(|tally| all.add(tally));
    all
}

/// Replays one of the recorded sessions at a round trip of 500 ms; returns the tallies of all programs together,
/// and of password prompts alone.
fn verdict(name: &str, settings: Settings) -> (Tally, Tally) {
    let file = format!("{}/traces/keystrokes/{name}.cast", env!("CARGO_MANIFEST_DIR"));
    let tallies = tallies(Path::new(&file), &PathWord::Rtt500.scenario(), settings);
    (sum(&tallies), tallies.get("password").cloned().unwrap_or_default())
}

#[test]
fn ours_shows_more_than_stock_and_errs_less() {
    let [mut stock, mut ours] = [(); 2].map(|()| Tally::default());
    for name in ["ops", "writer"] {
        stock.add(&verdict(name, Settings::STOCK).0);
        let (all, password) = verdict(name, Settings::ROVE);
        assert!(password.keys > 0, "{name} has a password prompt");
        assert_eq!(password.wrong, 0, "{name}: a password was shown");
        ours.add(&all);
    }
    let share = |count: u64| 100.0 * count as f64 / ours.effects as f64;
    let more = share(ours.at_once) - share(stock.at_once);
    assert!(more >= 10.0, "{more} points more than stock");
    assert!(ours.wrong <= stock.wrong && share(ours.wrong) <= 0.5, "{} wrong", ours.wrong);
}

/// In tmux with several panes no path sees more than 1 % of the keys of a recording wrong.
#[test]
fn what_is_typed_in_panes_is_seldom_wrong() {
    for path in PathWord::value_variants() {
        let scenario = path.scenario();
        for name in ["tmux-aside", "tmux-stack", "tmux-three", "tmux-vim"] {
            let file = format!("{}/traces/own/{name}.cast", env!("CARGO_MANIFEST_DIR"));
            let ours = sum(&tallies(Path::new(&file), &scenario, Settings::ROVE));
            let wrong = ours.percent(ours.wrong);
            assert!(ours.effects > 400, "{name}: {} keys with an effect", ours.effects);
            assert!(wrong <= 1.0, "{name}, {}: {wrong:.2} % wrong", scenario.name);
            assert!(ours.at_once > 0, "{name}, {}: nothing is shown at once", scenario.name);
        }
    }
}

/// A change of the rules is recorded with `RECORD=1 cargo test -p rove-lab --test predict`, in the same commit.
#[test]
fn replays_are_as_recorded() {
    let mut found = String::from("recording rules keys effects at_once wrong latencies_us\n");
    for name in ["coder", "ops", "tmuxer", "writer"] {
        for (rules, settings) in [("stock", Settings::STOCK), ("rove", Settings::ROVE)] {
            let (all, _) = verdict(name, settings);
            let sum: Duration = all.latencies.iter().sum();
            let Tally { keys, effects, at_once, wrong, .. } = all;
            let us = sum.as_micros();
            writeln!(found, "{name} {rules} {keys} {effects} {at_once} {wrong} {us}")
                .expect("a String takes all");
        }
    }
    check_golden("predict", &found);
}

#[test]
fn a_replay_is_the_same_each_time() {
    let runs = [(); 2].map(|()| verdict("reader", Settings::ROVE).0.latencies);
    assert_eq!(runs[0], runs[1]);
}
