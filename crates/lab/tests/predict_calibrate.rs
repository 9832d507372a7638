//! Compares stock's rules in our engine with the real stock client on a short piece of one recorded session, in
//! real time. `rove-lab calibrate` does so for whole sessions.

#![allow(clippy::unwrap_used, reason = "what is missing fails the test")]

mod common;

use std::path::Path;
use std::time::Duration;

use common::{lab_program, retried, say};
use rove_lab::testing::link::Profile;
use rove_lab::testing::predict::calibrate::both;
use rove_lab::testing::predict::judge::Tally;
use rove_lab::testing::predict::replay::{Scenario, Typist};

/// The first seconds of a session: one miss more or less is a line of some twenty keys there.
const SPAN_SECONDS: f64 = 30.0;

/// How far the shares may lie apart, in points. Wide, for a busy machine's client is late; an engine that
/// takes another's rules for stock's is farther off.
const APART_MAX: f64 = 30.0;

fn share(tally: &Tally, count: u64) -> f64 {
    100.0 * count as f64 / tally.effects as f64
}

/// The disagreement, if there is any.
fn disagreement() -> Option<String> {
    let trace = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/traces/keystrokes/writer.cast"));
    let way = Profile::delay(Duration::from_millis(136));
    let scenario =
        Scenario { name: "272 ms", up: way.clone(), down: way, typist: Typist::TypesOn, run: 0 };
    let (real, model) = match both(&lab_program(), trace, SPAN_SECONDS, &scenario) {
        Ok(both) => both,
        Err(error) => return Some(error.to_string()),
    };
    let [shown, ours] = [&real, &model].map(|tally| share(tally, tally.at_once));
    let [wrong, ours_wrong] = [&real, &model].map(|tally| share(tally, tally.wrong));
    let text = format!(
        "at once: {shown:.1} % by the real client, {ours:.1} % by the model; wrong: {wrong:.1} % and \
         {ours_wrong:.1} %"
    );
    say(&text);
    let agree = (shown - ours).abs() <= APART_MAX && (wrong - ours_wrong).abs() <= 5.0;
    (real.keys != model.keys || real.effects < 50 || real.at_once == 0 || !agree).then_some(text)
}

#[test]
fn stocks_rules_are_the_real_clients() {
    if let Some(first) = disagreement() {
        assert_eq!(disagreement(), None, "and before: {first}");
        retried("stocks_rules_are_the_real_clients", first);
    }
}
