//! Tests single decisions of a controller; `lab/tests/pace.rs` tests what they add up to.

use std::time::Duration;

use super::limits::LIMITS;
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
        let mut controller = BulkController::new(
            activity.clone(),
            PathCache::default(),
            Carrier::Datagrams,
            began,
            1200,
        );
        controller.advance(began, least, None);
        controller.cruise();
        // So little arrived in each round that the model asks for next to nothing.
        controller.note_only(1000.0);
        controller.advance(began, least + Duration::from_millis(40), None);
        assert_eq!(controller.window, floor, "{least:?}");
        activity.mark_interactive();
        controller.advance(began, least + Duration::from_millis(40), None);
        assert_eq!(controller.window, LIMITS.packets_min * 1200, "keys come first");
    }
}
