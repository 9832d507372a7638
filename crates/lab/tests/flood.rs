//! A program that floods costs its link no more than a screen may, and is stopped at once (threats row 33).

#![allow(clippy::unwrap_used, reason = "what is missing fails the test")]

mod common;

use std::time::Duration;

use common::say;
use rove_lab::host::Kind;
use rove_lab::link::Profile;
use rove_lab::session::{Plan, Session, Typing};
use rove_session::{Peer, server};
use rove_ssp::Time;
use rove_term::Size;

const RTT: Duration = Duration::from_millis(100);

/// How long the flood lasts.
const FLOOD: Duration = Duration::from_secs(600);

#[test]
fn ten_minutes_of_flood_stay_within_the_rate_and_end_at_once() {
    for peer in [Peer::Stock, Peer::Rove] {
        // The bottleneck is twice what a screen may cost, behind a queue that would hold it back for seconds.
        let mut session = Session::new(&Plan {
            seed: 1,
            peer,
            kind: Kind::Endless,
            typing: Typing::Silent,
            size: Size::clamped(100, 200),
            path: Profile::delay(RTT / 2).rate(2 * server::SCREEN_RATE, 1_000_000),
        });
        let end = Time::ZERO + FLOOD;
        session.world.run_until(end).unwrap();
        let link = *session.world.link(session.server_id, session.client_id).unwrap().counters();
        let rate = link.delivered_bytes as f64 * 8.0 / FLOOD.as_secs_f64();
        // Keepalives, and the burst with which a quiet screen may begin, are the hundredth part.
        assert!(rate <= 1.01 * server::SCREEN_RATE as f64, "{peer:?}: {rate} bit/s");
        // Without the limit it would be more: 20 frames a second of 100 rows that do not compress.
        assert!(rate >= 0.5 * server::SCREEN_RATE as f64, "{peer:?}: only {rate} bit/s");
        assert_eq!(link.overflowed, 0, "{peer:?}: the flood fills the queue");

        session.client_mut().client_mut().handle_keys(end, b"\x03");
        session.world.poke(session.client_id).unwrap();
        let took = until_shown(&mut session, end, "^C");
        assert!(took <= RTT + Duration::from_millis(50), "{peer:?}: Ctrl-C took {took:?}");
        say(&format!(
            "flood for a {peer:?} peer: {:.0} kbit/s over {} simulated seconds; Ctrl-C shown after {} ms at \
             a round trip of {} ms",
            rate / 1e3,
            FLOOD.as_secs(),
            took.as_millis(),
            RTT.as_millis()
        ));
    }
}

/// The time until the user's terminal shows this text, to the millisecond.
fn until_shown(session: &mut Session, start: Time, text: &str) -> Duration {
    loop {
        let shown = session.client().tty().screen().text().iter().any(|row| row.contains(text));
        let took = session.world.now().since(start);
        if shown || took > Duration::from_secs(30) {
            return took;
        }
        session.world.run_until(start + took + Duration::from_millis(1)).unwrap();
    }
}
