//! Local echo over recorded sessions, in virtual time.

use std::path::Path;
use std::time::Duration;

use rove_lab::link::Profile;
use rove_lab::predict::judge::{Tally, deeds};
use rove_lab::predict::replay::{Replayed, Scenario, Typist, replay};
use rove_lab::predict::trace::Trace;
use rove_session::predict::{Display, Settings};

/// Replays one of the recorded sessions at a round trip of 500 ms, and adds up what was seen in all
/// programs, and at password prompts alone.
fn judge(name: &str, settings: Settings) -> (Tally, Tally) {
    let file = format!("{}/traces/keystrokes/{name}.cast", env!("CARGO_MANIFEST_DIR"));
    let trace = Trace::load(Path::new(&file)).expect("the recording is there");
    let deeds = deeds(&trace);
    let way = Profile::delay(Duration::from_millis(250));
    let scenario =
        Scenario { name: "500 ms", up: way.clone(), down: way, typist: Typist::TypesOn, run: 0 };
    let Replayed { judge, end, .. } =
        replay(&trace, &deeds, &scenario, settings.with_display(Display::Always))
            .expect("nothing happens that must not");
    let (tallies, _) = judge.finish(end);
    let mut all = Tally::default();
    tallies.values().for_each(|tally| all.add(tally));
    (all, tallies.get("password").cloned().unwrap_or_default())
}

#[test]
fn ours_shows_more_than_stock_and_errs_less() {
    let [mut stock, mut ours] = [(); 2].map(|()| Tally::default());
    for name in ["ops", "writer"] {
        stock.add(&judge(name, Settings::STOCK).0);
        let (all, password) = judge(name, Settings::ROVE);
        assert!(password.keys > 0, "{name} has a password prompt");
        assert_eq!(password.wrong, 0, "{name}: a password was shown");
        ours.add(&all);
    }
    let share = |count: u64| 100.0 * count as f64 / ours.effects as f64;
    let more = share(ours.at_once) - share(stock.at_once);
    assert!(more >= 10.0, "{more} points more than stock");
    assert!(ours.wrong <= stock.wrong && share(ours.wrong) <= 0.5, "{} wrong", ours.wrong);
}

#[test]
fn a_replay_is_the_same_each_time() {
    let runs = [(); 2].map(|()| judge("reader", Settings::ROVE).0.latencies);
    assert_eq!(runs[0], runs[1]);
}
