//! How a session ends: with its clients or its program, and who is told.

use std::time::Duration;

use rove_session::client::Cause;
use rove_session::server::{Others, Rights};
use rove_ssp::Machine as _;

use crate::common::{ms, size};
use crate::room::Room;

#[test]
fn a_session_without_a_name_ends_with_its_client() {
    for (name, keys, over) in [
        (None, b"\x1e.".as_slice(), true),
        (None, b"\x1ed", false),
        (Some("1"), b"\x1e.", true),
        (Some("1"), b"\x1ed", false),
    ] {
        let mut room = Room::new(name);
        room.type_keys(1, keys);
        room.run(ms(500));
        assert_eq!(room.exit.is_some(), over, "{name:?} {keys:?}");
        // Where nothing is kept, the key is none, and the bar says why.
        let left = room.seat(1).exit.is_some();
        assert_eq!(left, name.is_some() || over, "{name:?} {keys:?}");
        if !left {
            assert!(room.bar(1).contains("cannot keep a session"), "{}", room.bar(1));
        }
    }
}

#[test]
fn a_closed_window_ends_what_nobody_else_needs() {
    for (name, others, goes_on) in [("1", false, false), ("1", true, true), ("work", false, true)] {
        let mut room = Room::new(Some(name));
        if others {
            room.join(2, size(24, 80), Rights::Type, Others::Stay).unwrap();
            room.run(ms(500));
        }
        let now = room.now;
        room.seat(1).client.handle_hangup(now, Cause::Signal);
        room.run(ms(500));
        assert!(room.seat(1).exit.is_some_and(|exit| exit.clean), "{name}");
        assert_eq!(room.exit.is_none(), goes_on, "{name} {others}");
    }
}

/// Its client sleeps when the program ends, and is told how when it wakes up.
#[test]
fn the_end_of_the_program_waits_for_a_client_that_sleeps() {
    let mut room = Room::new(Some("1"));
    room.seat(1).is_cut = true;
    room.run(Duration::from_secs(60));
    room.server.handle_output(room.now, b"the last words");
    room.server.child_exited(room.now, 7);
    room.run(Duration::from_secs(3600));
    assert_eq!((room.exit, room.seat(1).exit), (None, None));
    room.seat(1).is_cut = false;
    room.run(Duration::from_secs(20));
    assert_eq!(room.seat(1).exit.map(|exit| (exit.clean, exit.status)), Some((true, Some(7))));
    assert!(room.seat(1).client.view().screen().row_text(0).starts_with("the last words"));
    assert!(room.exit.is_some_and(|exit| exit.clean));
}

/// Another client is told meanwhile. Only one that may type has seen the end for the user.
#[test]
fn an_end_is_seen_by_a_client_that_may_type() {
    for (rights, is_seen) in [(Rights::Look, false), (Rights::Type, true)] {
        let mut room = Room::new(Some("1"));
        room.join(2, size(24, 80), rights, Others::Stay).unwrap();
        room.run(ms(500));
        room.seat(1).is_cut = true;
        room.run(Duration::from_secs(60));
        room.server.child_exited(room.now, 7);
        assert!(!room.server.is_end_seen());
        room.run(Duration::from_secs(20));
        assert_eq!(room.seat(2).exit.and_then(|exit| exit.status), Some(7));
        assert_eq!((room.server.is_end_seen(), room.exit), (is_seen, None), "{rights:?}");
    }
}

/// It falls asleep just before or after the program's end: the server has begun to tell it.
#[test]
fn a_client_that_falls_asleep_as_the_program_ends_is_told_when_it_wakes() {
    for (before, after) in [(ms(5_000), ms(0)), (ms(0), ms(0)), (ms(0), ms(10))] {
        let mut room = Room::new(Some("1"));
        room.run(ms(500));
        room.seat(1).is_cut = after.is_zero();
        room.run(before);
        room.server.handle_output(room.now, b"the last words");
        room.server.child_exited(room.now, 7);
        room.run(after);
        // What flies arrives at the server alone.
        room.seat(1).is_cut = true;
        room.flying.retain(|it| it.to.is_none());
        let said = room.said;
        room.run(Duration::from_secs(3600));
        let said = room.said - said;
        assert!(said <= 30, "{said} datagrams to a client that sleeps");
        assert_eq!((room.exit, room.seat(1).exit), (None, None));
        room.seat(1).is_cut = false;
        room.run(Duration::from_secs(20));
        let exit = room.seat(1).exit.map(|exit| (exit.clean, exit.status));
        assert_eq!(exit, Some((true, Some(7))));
        assert!(room.seat(1).client.view().screen().row_text(0).starts_with("the last words"));
        assert!(room.exit.is_some_and(|exit| exit.clean));
    }
    // The owner of the session decides when nobody is waited for any more.
    let mut room = Room::new(Some("1"));
    room.run(ms(500));
    room.seat(1).is_cut = true;
    room.server.child_exited(room.now, 7);
    room.run(Duration::from_secs(3600));
    room.server.close(room.now);
    room.run(ms(1));
    assert_eq!(room.exit.map(|exit| exit.clean), Some(false));
}

/// Who bounds a client's silence bounds it at the end of the program, too: whether the client was away before or fell silent
/// in that moment, and it may come back until then.
#[test]
fn the_end_of_a_program_waits_for_a_silent_client_no_longer_than_was_said() {
    for (away, back) in [(ms(0), false), (ms(0), true), (ms(20_000), false), (ms(20_000), true)] {
        let mut room = Room::bounded(Some("build"), Some(Duration::from_secs(300)));
        room.run(ms(2_000));
        room.seat(1).is_cut = true;
        room.flying.retain(|it| it.to.is_none());
        room.run(away);
        room.server.child_exited(room.now, 3);
        room.run(Duration::from_secs(260));
        assert_eq!(room.exit, None, "away for {away:?}");
        room.seat(1).is_cut = !back;
        room.run(Duration::from_secs(60));
        let exit = room.exit.map(|exit| (exit.cause, exit.clean));
        let expected = if back { (Cause::Closed, true) } else { (Cause::Silence, false) };
        assert_eq!(exit, Some(expected), "away for {away:?}, back: {back}");
        let status = room.seat(1).exit.and_then(|exit| exit.status);
        assert_eq!(status, back.then_some(3));
    }
}

/// One client's silence is no other's: who went to sleep a moment before the end is told.
#[test]
fn a_silent_client_does_not_take_the_status_from_another() {
    let mut room = Room::bounded(Some("build"), Some(Duration::from_secs(300)));
    room.join(2, size(24, 80), Rights::Type, Others::Stay).unwrap();
    room.run(ms(2_000));
    room.seat(1).is_cut = true;
    room.run(Duration::from_secs(200));
    room.seat(2).is_cut = true;
    room.run(Duration::from_secs(60));
    room.server.child_exited(room.now, 3);
    room.run(Duration::from_secs(100));
    assert_eq!(room.exit, None);
    room.seat(2).is_cut = false;
    room.run(Duration::from_secs(20));
    assert_eq!(room.seat(2).exit.and_then(|exit| exit.status), Some(3));
    assert!(room.exit.is_some());
}

#[test]
fn the_status_of_a_program_that_ended_alone_is_there_for_the_next_client() {
    let mut room = Room::new(Some("build"));
    room.type_keys(1, b"\x1ed");
    room.run(ms(500));
    room.server.handle_output(room.now, b"done");
    room.server.child_exited(room.now, 3);
    room.run(Duration::from_secs(3600));
    assert_eq!(room.exit, None);
    room.join(2, size(24, 80), Rights::Type, Others::Stay).unwrap();
    room.run(Duration::from_secs(2));
    assert_eq!(room.seat(2).exit.and_then(|exit| exit.status), Some(3));
    assert!(room.seat(2).client.view().screen().row_text(0).starts_with("done"));
    assert!(room.exit.is_some());
}

/// A client says four times that it knows how the program ended, while its user has the terminal back: then the session is
/// over. It waits for nobody.
#[test]
fn the_answer_to_the_end_of_a_program_may_be_lost() {
    for lost in 0..=4 {
        let mut room = Room::new(Some("build"));
        room.run(ms(2000));
        room.seat(1).last_lost = lost;
        room.server.child_exited(room.now, 3);
        // A moment for more output, and half a round trip.
        room.run(ms(100));
        let exit = room.seat(1).exit.unwrap();
        assert_eq!((exit.cause, exit.clean, exit.status), (Cause::PeerLeft, true, Some(3)));
        room.run(Duration::from_secs(3));
        assert_eq!(room.seat(1).client.poll_timeout(), None);
        assert_eq!((room.seat(1).last_lost, room.exit.is_some()), (0, lost < 4), "{lost} lost");
    }
}

/// The session is over once all who stay are told, also where another has begun to leave just before the program ended.
#[test]
fn a_program_may_end_while_a_client_leaves() {
    for after in (0..300).step_by(10) {
        let mut room = Room::new(Some("build"));
        room.join(2, size(24, 80), Rights::Type, Others::Stay).unwrap();
        room.run(ms(500));
        room.type_keys(1, b"\x1ed");
        room.run(ms(after));
        room.server.child_exited(room.now, 3);
        room.run(Duration::from_secs(20));
        assert_eq!(room.seat(2).exit.and_then(|exit| exit.status), Some(3), "{after} ms");
        assert!(room.exit.is_some(), "{after} ms");
    }
}

/// A user who has quit is not kept by a client of theirs that was killed before.
#[test]
fn a_client_that_is_gone_keeps_nothing() {
    let mut room = Room::new(Some("1"));
    room.seat(1).is_cut = true;
    room.run(Duration::from_secs(60));
    room.join(2, size(24, 80), Rights::Type, Others::Stay).unwrap();
    room.run(ms(500));
    room.type_keys(2, b"\x1e.");
    room.run(ms(500));
    assert!(room.exit.is_some());
}

/// A command ends while its client sleeps for an hour: the client wakes to all lines, the last screen and the status.
#[test]
fn the_end_of_a_command_waits_for_a_client_that_sleeps() {
    for (hours, name) in [(1, "1"), (23, "work")] {
        let mut room = Room::new(Some(name));
        let lines = |from: u32, to: u32| -> String {
            (from..=to).map(|number| format!("{number}\r\n")).collect()
        };
        room.server.handle_output(room.now, lines(1, 5).as_bytes());
        room.run(ms(500));
        room.seat(1).is_cut = true;
        room.run(Duration::from_secs(60));
        room.server.handle_output(room.now, lines(6, 300).as_bytes());
        room.server.child_exited(room.now, 3);
        room.run(Duration::from_secs(3600 * hours));
        assert_eq!((room.exit, room.seat(1).exit), (None, None), "{hours} h");
        room.seat(1).is_cut = false;
        room.run(Duration::from_secs(60));
        let exit = room.seat(1).exit.expect("the client was told");
        assert_eq!((exit.clean, exit.status), (true, Some(3)), "{hours} h");
        let view = room.seat(1).client.view().screen().text();
        assert!(view.iter().any(|row| row.trim_end() == "300"), "{view:#?}");
        assert!(room.exit.is_some_and(|exit| exit.clean), "{hours} h");
    }
}
