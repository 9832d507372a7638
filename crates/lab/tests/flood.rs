//! Tests that a program that floods costs its link no more than a screen may, and stops at once (threats row 33).

#![allow(clippy::unwrap_used, reason = "what is missing fails the test")]

mod common;

use std::time::Duration;

use common::say;
use rove_lab::testing::experiments::sender::Sender;
use rove_lab::testing::host::Kind;
use rove_lab::testing::link::Profile;
use rove_lab::testing::session::{Plan, Session, Typing, Usage};
use rove_session::{Peer, server};
use rove_ssp::Time;
use rove_term::Size;

const RTT: Duration = Duration::from_millis(100);

/// How long the flood lasts before it is measured, and how long it is: a screen that was quiet may begin with a burst.
const BURST: Duration = Duration::from_secs(10);
const FLOOD: Duration = Duration::from_secs(200);

#[test]
fn minutes_of_flood_stay_within_the_rate() {
    let size = Size::clamped(100, 200);
    let mut flood = flooded(Sender::stock(), size, 10 * server::SCREEN_RATE, BURST);
    let [server, client] = [flood.server_id, flood.client_id];
    let before = flood.world.link(server, client).unwrap().counters().delivered_bytes;
    flood.world.run_until(Time::ZERO + BURST + FLOOD).unwrap();
    let link = flood.world.link(server, client).unwrap().counters();
    let rate = (link.delivered_bytes - before) as f64 * 8.0 / FLOOD.as_secs_f64();
    let limit = server::SCREEN_RATE as f64;
    say(&format!("flood: {:.0} kbit/s over {} simulated seconds", rate / 1e3, FLOOD.as_secs()));
    // Keepalives are less than the hundredth part.
    assert!(rate <= 1.01 * limit, "{rate} bit/s");
    // Without the limit it would be more: 20 frames a second of 100 rows that do not compress.
    assert!(rate >= 0.5 * limit, "only {rate} bit/s");
    assert_eq!(link.overflowed, 0, "the flood fills the queue");
}

/// The time of Ctrl-C decides how much of a send interval (half a round trip) it and its answer wait for, so it is
/// typed at many times. Half of them are answered within 50 ms more than the round trip, all within both intervals,
/// plus the time of one frame and the one before on the wire (14 kB in the large window).
#[test]
fn ctrl_c_ends_a_flood_within_a_round_trip() {
    for (size, wire_ms) in [(Size::DEFAULT, 0), (Size::clamped(100, 200), 15)] {
        let wire = Duration::from_millis(wire_ms);
        for peer in [Peer::Stock, Peer::Rove] {
            let sender = Sender { peer, ..Sender::stock() };
            let times = ctrl_c_times(sender, size, 10 * server::SCREEN_RATE);
            let (median, most) = (times[7], times[14]);
            say(&format!(
                "flood: {} x {} for a {peer:?} peer, Ctrl-C shown after {} ms (median), {} ms (most)",
                size.cols,
                size.rows,
                median.as_millis(),
                most.as_millis()
            ));
            assert!(median <= RTT + Duration::from_millis(50) + wire, "{peer:?}: {times:?}");
            assert!(most <= 2 * RTT + wire, "{peer:?}: {times:?}");
        }
    }
}

/// Octets of one frame of the flood in the large window, as datagrams.
const LARGE_FRAME_BYTES: u32 = 11_000;

/// Half of the interrupts are answered within 50 ms more than the round trip, also over slow links, where a frame is
/// short for its link. In the large window every row has changed, so that the answer is a whole frame, and half of the
/// one that is on its way is ahead of it.
#[test]
fn ctrl_c_ends_a_flood_on_the_native_wire() {
    let large = Size::clamped(100, 200);
    let mut late = Vec::new();
    for (rate, size, halves) in [
        (256_000, Size::DEFAULT, 0),
        (1_000_000, Size::DEFAULT, 0),
        (10_000_000, Size::DEFAULT, 0),
        (256_000, large, 3),
        (1_000_000, large, 3),
        (10_000_000, large, 0),
    ] {
        let frame = Duration::from_secs(8) * LARGE_FRAME_BYTES / rate;
        let times = ctrl_c_times(Sender::native(), size, rate.into());
        let (median, most) = (times[7], times[14]);
        let text = format!(
            "flood: {} kbit/s, {} x {}, native: Ctrl-C shown after {} ms (median), {} ms (most)",
            rate / 1000,
            size.cols,
            size.rows,
            median.as_millis(),
            most.as_millis()
        );
        say(&text);
        if median > RTT + Duration::from_millis(50) + frame * halves / 2 {
            late.push(text);
        }
    }
    assert!(late.is_empty(), "{late:#?}");
}

/// How long each of fifteen interrupts takes, the shortest first.
fn ctrl_c_times(sender: Sender, size: Size, rate: u64) -> Vec<Duration> {
    let mut times: Vec<Duration> = (0..15)
        .map(|phase| {
            let span = Duration::from_secs(5) + Duration::from_millis(7) * phase;
            ctrl_c(flooded(sender.clone(), size, rate, span))
        })
        .collect();
    times.sort();
    times
}

/// How long after the key the user's terminal shows that the flood has ended.
fn ctrl_c(mut session: Session) -> Duration {
    let end = session.world.now();
    session.client_mut().client.handle_keys(end, b"\x03");
    session.world.poke(session.client_id).unwrap();
    until_shown(&mut session, end, "^C")
}

/// A session whose program has been flooding for this span, over a bottleneck of this many bits a second behind a
/// queue that holds about a second.
fn flooded(sender: Sender, size: Size, rate: u64, span: Duration) -> Session {
    let mut session = Session::new(&Plan {
        seed: 1,
        sender,
        kind: Kind::Endless,
        typing: Typing::Silent,
        size,
        path: Profile::delay(RTT / 2).rate(rate, rate as usize / 10),
        usage: Usage::PLAIN,
    });
    session.world.run_until(Time::ZERO + span).unwrap();
    session
}

/// The time until the user's terminal shows this text, to the millisecond.
fn until_shown(session: &mut Session, start: Time, text: &str) -> Duration {
    loop {
        let shown = session.client().tty.screen().text().iter().any(|row| row.contains(text));
        let took = session.world.now().since(start);
        if shown || took > Duration::from_secs(30) {
            return took;
        }
        session.world.run_until(start + took + Duration::from_millis(1)).unwrap();
    }
}
