//! The user stream's diff: what is read is written and read again, and whatever a client sends keeps the
//! laws of the stream and the limits of sizes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rove_session::Input;
use rove_session::input::Event;
use rove_session::messages::{EVENTS_MAX, read_user, write_user};
use rove_ssp::state::{State, laws};

fuzz_target!(|bytes: &[u8]| {
    let mut base = Input::default();
    base.push_keys(b"typed before");
    let mut input = base.clone();
    let Ok(events) = read_user(bytes) else {
        assert!(input.apply(bytes).is_err());
        return;
    };
    assert!(events.len() <= EVENTS_MAX);
    let mut written = Vec::new();
    events.iter().for_each(|&event| write_user(event, &mut written));
    assert_eq!(read_user(&written).as_ref(), Ok(&events));

    input.apply(bytes).expect("it was read above");
    laws(&base, &input);
    for event in input.since(base.end()) {
        match event {
            Event::Keys(octets) => assert!(!octets.is_empty()),
            Event::Resize(size) => {
                assert!((1..=1000).contains(&size.rows) && (1..=1000).contains(&size.cols));
                assert!(u32::from(size.rows) * u32::from(size.cols) <= 200_000);
            }
            Event::Leaving | Event::LinesWanted(_) => {}
            Event::TerminalProperties(around) => {
                assert!(around.cell.is_none_or(|(width, height)| width > 0 && height > 0));
            }
        }
    }
});
