//! Recordings of sessions (asciicast v2): whatever parses is in order, and its script comes to an end.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use rove_lab::testing::predict::script::Script;
use rove_lab::testing::predict::trace::Trace;
use rove_ssp::Time;

fuzz_target!(|octets: &[u8]| {
    let Ok(text) = std::str::from_utf8(octets) else { return };
    let Ok(trace) = Trace::parse(String::new(), text) else { return };
    assert!(trace.events.is_sorted_by_key(|event| event.at));
    assert!(trace.events.iter().all(|event| event.at <= Duration::from_secs(24 * 60 * 60)));
    assert_eq!(
        Trace::parse(String::new(), text).map(|again| again.events),
        Ok(trace.events.clone())
    );
    let inferred = trace.clone().with_inferred_lines();
    let mut script = Script::new(&inferred.events);
    script.arrived(inferred.events.iter().filter_map(|event| event.key_octets()).sum());
    let mut now = Time::ZERO;
    while !script.is_over() {
        while script.next(now).is_some() {}
        let Some(due) = script.due() else { break };
        assert!(due > now);
        now = due;
    }
    assert!(script.is_over(), "all keys came, and time went on");
});
