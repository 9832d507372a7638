//! Decisions of a governor by hand; what comes of them is in `lab/tests/pace.rs`.

use super::*;

#[test]
#[expect(clippy::disallowed_methods, reason = "quinn's instants begin at some now")]
fn busy_hosts_that_are_near_do_not_shrink_the_window_to_nothing() {
    let began = Instant::now();
    for (least, floor) in [
        (Duration::from_micros(50), LIMITS.near_bytes),
        (Duration::from_millis(5), LIMITS.packets_min * 1200),
    ] {
        let activity = Activity::default();
        let mut governor = Governor::new(&Pace::new(activity.clone()), began, 1200);
        governor.advance(began, least, None);
        governor.cruise();
        // So little arrived in each round that the model asks for next to nothing.
        governor.note_only(1000.0);
        governor.advance(began, least + Duration::from_millis(40), None);
        assert_eq!(governor.window, floor, "{least:?}");
        activity.stir();
        governor.advance(began, least + Duration::from_millis(40), None);
        assert_eq!(governor.window, LIMITS.packets_min * 1200, "keys come first");
    }
}
