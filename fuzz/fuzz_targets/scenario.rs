//! Scenario files of the lab, and recorded bottlenecks. A scenario that parses has a step for every time, and
//! each of its links can be passed.
#![no_main]

use std::io;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use rove_lab::testing::link::Link;
use rove_lab::testing::net::scenario::Scenario;
use rove_lab::testing::opportunities::{Cursor, Opportunities};
use rove_lab::testing::rng::Rng;
use rove_ssp::Time;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(trace) = Opportunities::parse(text) {
        let (mut cursor, mut last) = (Cursor::default(), Duration::ZERO);
        for octets in [0, 1, 1_500, 5_000] {
            let at = trace.departure(&mut cursor, last, octets);
            assert!(at >= last, "a packet leaves before it may start");
            last = at;
        }
    }
    let mut traces = |_: &str| Opportunities::parse("1\n5\n").map_err(io::Error::other);
    let Ok(scenario) = Scenario::parse(text, &mut traces) else { return };
    assert!(scenario.events.is_sorted_by_key(|event| event.at));
    for course in [&scenario.up, &scenario.down] {
        for at in [0, 1, 1_000_000, u64::MAX / 2].map(Duration::from_micros) {
            let (step, began, ends) = course.at(at);
            assert!(began <= at && ends.is_none_or(|ends| ends > at), "{at:?}: {began:?} {ends:?}");
            let mut out = Vec::new();
            Link::new(step.profile.clone(), Rng::new(scenario.seed)).pass(
                Time::ZERO + at,
                b"x",
                &mut out,
            );
            assert!(out.len() <= 2 && out.iter().all(|delivery| delivery.at >= Time::ZERO + at));
        }
    }
});
