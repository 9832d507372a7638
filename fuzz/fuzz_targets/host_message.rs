//! The screen's diff: what is read is written and read again; whatever a server sends, as a message or
//! as octets for the emulator, leaves a screen within its limits from which diffs go on.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rove_session::messages::{EVENTS_MAX, HostEvent, read_host, write_host};
use rove_session::{Peer, View};
use rove_ssp::state::State;
use rove_term::Size;

fuzz_target!(|bytes: &[u8]| {
    let mut octets = Vec::new();
    write_host(HostEvent::Bytes(bytes), &mut octets);
    for peer in [Peer::Stock, Peer::Rove] {
        check(View::new(Size::DEFAULT, peer), &octets);
    }
    let Ok(events) = read_host(bytes) else {
        assert!(View::new(Size::DEFAULT, Peer::Stock).apply(bytes).is_err());
        return;
    };
    assert!(events.len() <= EVENTS_MAX);
    let mut written = Vec::new();
    events.iter().for_each(|&event| write_host(event, &mut written));
    assert_eq!(read_host(&written).as_ref(), Ok(&events));
    check(View::new(Size::DEFAULT, Peer::Rove), bytes);
});

/// Applies a diff, unless it resizes twice or takes too much work, and then one from a server that takes the
/// client to be there still.
fn check(start: View, diff: &[u8]) {
    let mut view = start.clone();
    if view.apply(diff).is_err() {
        return;
    }
    assert!(view.echo_ack() >= start.echo_ack());
    let size = view.screen().size();
    assert!((1..=1000).contains(&size.rows) && (1..=1000).contains(&size.cols));
    assert!(u32::from(size.rows) * u32::from(size.cols) <= 200_000);

    let mut nothing = Vec::new();
    view.diff_from(&view, &mut nothing);
    assert_eq!(nothing, []);
    let mut back = Vec::new();
    start.diff_from(&view, &mut back);
    view.apply(&back).expect("it was made here");
    assert_eq!(view.screen().size(), start.screen().size());
}
