//! Who is in a session: clients that join, leave, take over or only look on, and what each of them types.

use std::time::Duration;

use rove_session::client::Cause;
use rove_session::host::{QUEUE_OCTETS_MAX, SizePolicy};
use rove_session::server::{Full, Others, Rights, VIEWERS_MAX};
use rove_session::{Host, LetGo, ViewerId};
use rove_ssp::{Session as _, Time};

use crate::common::{ms, size};
use crate::room::{Room, address_of};

#[test]
fn a_session_that_was_left_goes_on_and_the_next_client_sees_it() {
    let mut room = Room::new(Some("work"));
    room.type_keys(1, b"before ");
    room.run(ms(500));
    room.type_keys(1, b"\x1ed");
    room.run(ms(500));
    let exit = room.seat(1).exit.unwrap();
    assert_eq!((exit.cause, exit.clean), (Cause::Detached, true));
    assert_eq!((room.exit, room.server.viewers().count()), (None, 0));
    room.server.handle_output(room.now, b"meanwhile ");
    room.run(Duration::from_secs(3600));
    room.join(2, size(50, 100), Rights::Type, Others::Stay).unwrap();
    room.run(ms(500));
    room.type_keys(2, b"after");
    room.run(ms(500));
    assert_eq!(room.server.screen().row_text(0).trim_end(), "before meanwhile after");
    assert_eq!(room.server.screen().size(), size(50, 100));
    room.check_screens(&[2]);
    assert_eq!(room.read, b"before after");
}

#[test]
fn all_hear_who_came_and_who_left() {
    let mut room = Room::new(Some("work"));
    assert_eq!(room.bar(1), "");
    room.join(2, size(24, 80), Rights::Type, Others::Stay).unwrap();
    room.run(ms(500));
    assert_eq!(room.bar(1), "rove: 198.51.100.2 has attached too. [To quit: Ctrl-^ .]");
    assert_eq!(room.bar(2), "", "whoever comes knows");
    room.run(Duration::from_secs(11));
    assert_eq!(room.bar(1), "");
    room.type_keys(2, b"\x1e.");
    room.run(ms(500));
    assert_eq!(room.bar(1), "rove: 198.51.100.2 has left. [To quit: Ctrl-^ .]");
    assert_eq!(room.exit, None, "another is there");
    room.type_keys(1, b"\x1e.");
    room.run(ms(500));
    assert!(room.exit.is_some_and(|exit| exit.clean));
}

#[test]
fn a_session_is_taken_over_once_the_new_client_is_heard() {
    let mut room = Room::new(Some("work"));
    room.join(2, size(24, 80), Rights::Type, Others::Leave).unwrap();
    room.seat(2).is_cut = true;
    room.run(ms(2000));
    assert_eq!(room.seat(1).exit, None, "nobody has come yet");
    room.seat(2).is_cut = false;
    room.run(ms(5000));
    let exit = room.seat(1).exit.unwrap();
    assert_eq!((exit.cause, exit.status), (Cause::PeerLeft, None));
    let session = room.seat(1).client.view().session().unwrap();
    assert_eq!((session.ended, &*session.who), (Some(LetGo::TakenOver), "198.51.100.2"));
    room.type_keys(2, b"mine");
    room.run(ms(500));
    assert_eq!((room.read.as_slice(), room.exit), (b"mine".as_slice(), None));
    assert_eq!(room.server.viewers().count(), 1);
}

/// What it has typed meanwhile is not for the session that another has taken over.
#[test]
fn a_client_that_sleeps_hears_that_its_session_was_taken_over() {
    let mut room = Room::new(Some("work"));
    room.seat(1).is_cut = true;
    room.type_keys(1, b"late");
    room.run(Duration::from_secs(60));
    room.join(2, size(24, 80), Rights::Type, Others::Leave).unwrap();
    room.run(Duration::from_secs(3600));
    room.seat(1).is_cut = false;
    room.run(Duration::from_secs(30));
    assert_eq!(room.let_go(1), (Some(LetGo::TakenOver), "198.51.100.2".into()));
    assert_eq!((room.read.as_slice(), room.exit), (b"".as_slice(), None));
}

/// None of those that are there leaves for one that may not come.
#[test]
fn a_full_session_is_taken_over_once_the_new_client_is_heard() {
    let mut room = Room::new(Some("work"));
    let all = 1..=VIEWERS_MAX as u32;
    for number in 2..=VIEWERS_MAX as u32 {
        room.join(number, size(24, 80), Rights::Type, Others::Stay).unwrap();
    }
    room.run(ms(500));
    room.join(9, size(24, 80), Rights::Type, Others::Leave).unwrap();
    room.seat(9).is_cut = true;
    room.run(ms(5000));
    assert!(all.clone().all(|number| room.seat(number).exit.is_none()), "nobody has come yet");
    room.seat(9).is_cut = false;
    room.run(ms(5000));
    for number in all {
        let expected = (Some(LetGo::TakenOver), "198.51.100.9".into());
        assert_eq!(room.let_go(number), expected, "client {number}");
    }
    assert_eq!((room.server.viewers().count(), room.exit), (1, None));
}

/// Those who ask for room and never come keep nobody out, and do not add up.
#[test]
fn clients_that_never_come_take_no_room() {
    let mut room = Room::new(Some("work"));
    for number in 2..40 {
        room.join(number, size(24, 80), Rights::Type, Others::Stay).unwrap();
        room.seat(number).is_cut = true;
        assert!(room.server.viewers().count() <= 1 + VIEWERS_MAX);
    }
    room.join(40, size(24, 80), Rights::Type, Others::Stay).unwrap();
    room.run(ms(500));
    room.type_keys(40, b"here");
    room.run(ms(500));
    assert_eq!(room.read, b"here");
    assert_eq!(room.seat(1).exit, None);
}

#[test]
fn who_only_looks_neither_types_nor_decides_on_the_size() {
    let mut room = Room::new(Some("work"));
    room.join(2, size(50, 200), Rights::Look, Others::Stay).unwrap();
    room.run(ms(500));
    room.type_keys(2, b"let me");
    room.run(ms(500));
    room.type_keys(1, b"in charge");
    room.run(ms(500));
    assert_eq!(room.read, b"in charge");
    assert_eq!(room.server.screen().size(), size(24, 80));
    room.check_screens(&[1, 2]);
    // A client that does not heed what it is told, too.
    let mut room = Room::new(Some("work"));
    room.join(2, size(50, 200), Rights::Look, Others::Stay).unwrap();
    room.type_keys(2, b"before it is told");
    room.run(ms(500));
    assert_eq!(room.read, b"");
}

/// What one user types does not end up in what another pastes.
#[test]
fn a_paste_stays_whole() {
    let mut room = Room::new(Some("work"));
    room.join(2, size(24, 80), Rights::Type, Others::Stay).unwrap();
    room.run(ms(500));
    room.type_keys(1, b"\x1b[200~past");
    room.run(ms(300));
    room.type_keys(2, b"typed");
    room.run(ms(300));
    assert_eq!(room.read, b"\x1b[200~past");
    room.type_keys(1, b"ed\x1b[201~");
    room.run(ms(300));
    assert_eq!(room.read, b"\x1b[200~pasted\x1b[201~typed");
    // The end of this one never comes.
    room.type_keys(2, b"\x1b[200~lost");
    room.run(ms(300));
    room.type_keys(1, b"!");
    room.run(ms(900));
    assert!(room.read.ends_with(b"lost"));
    room.run(ms(300));
    assert!(room.read.ends_with(b"lost!"));
}

#[test]
fn a_ninth_client_takes_the_place_of_one_that_is_away() {
    let mut room = Room::new(Some("work"));
    for number in 2..=VIEWERS_MAX as u32 {
        room.join(number, size(24, 80), Rights::Type, Others::Stay).unwrap();
    }
    room.run(ms(500));
    assert_eq!(room.join(9, size(24, 80), Rights::Type, Others::Stay), Err(Full));
    room.seat(3).is_cut = true;
    room.run(Duration::from_secs(60));
    room.join(9, size(24, 80), Rights::Type, Others::Stay).unwrap();
    room.run(ms(500));
    room.seat(3).is_cut = false;
    room.type_keys(3, b"gone");
    room.type_keys(9, b"here");
    room.run(Duration::from_secs(20));
    assert_eq!(room.read, b"here");
    assert_eq!(room.let_go(3), (Some(LetGo::Replaced), "198.51.100.9".into()));
    room.check_screens(&[1, 2, 9]);
}

#[test]
fn a_client_that_never_comes_changes_nothing() {
    let mut room = Room::new(Some("work"));
    room.join(2, size(24, 80), Rights::Type, Others::Leave).unwrap();
    room.seat(2).is_cut = true;
    room.run(Duration::from_secs(70));
    assert_eq!(room.server.viewers().count(), 1);
    room.type_keys(1, b"\x1ed");
    room.run(ms(500));
    room.join(3, size(24, 80), Rights::Type, Others::Stay).unwrap();
    room.seat(3).is_cut = true;
    room.run(Duration::from_secs(70));
    assert_eq!((room.server.viewers().count(), room.exit), (0, None));
}

#[test]
fn a_client_that_was_away_for_a_day_is_forgotten_while_another_is_there() {
    let mut room = Room::new(Some("work"));
    room.join(2, size(24, 80), Rights::Type, Others::Stay).unwrap();
    room.run(ms(500));
    room.seat(1).is_cut = true;
    room.run(Duration::from_secs(23 * 3600));
    assert_eq!(room.server.viewers().count(), 2);
    room.run(Duration::from_secs(2 * 3600));
    assert_eq!(room.server.viewers().count(), 1);
    room.seat(1).is_cut = false;
    room.type_keys(1, b"stolen");
    room.run(Duration::from_secs(30));
    assert_eq!(room.let_go(1), (Some(LetGo::Replaced), String::new()));
    assert_eq!(room.read, b"");
    // Alone it could come back whenever it likes.
    room.seat(2).is_cut = true;
    room.run(Duration::from_secs(72 * 3600));
    room.seat(2).is_cut = false;
    room.type_keys(2, b"back");
    room.run(Duration::from_secs(30));
    assert_eq!(room.read, b"back");
    assert_eq!(room.server.peer(), Some(address_of(2).into()));
}

/// What waits for a paste is read before what is typed later, however the waiting ends.
#[test]
fn keys_that_waited_come_before_later_ones() {
    let (pasting, other) = (ViewerId::from(1), ViewerId::from(2));
    let begin = || {
        let mut host = Host::new(size(24, 80), SizePolicy::Latest);
        host.type_keys(Time::ZERO, pasting, b"\x1b[200~");
        host.type_keys(Time::ZERO, other, b"first");
        let mut read = Vec::new();
        host.poll_input(&mut read);
        assert_eq!(read, b"\x1b[200~");
        host
    };
    let read = |host: &mut Host| {
        let (mut all, mut read) = (Vec::new(), Vec::new());
        loop {
            host.poll_input(&mut read);
            if read.is_empty() {
                return all;
            }
            all.extend_from_slice(&read);
        }
    };
    let mut host = begin();
    host.forget(pasting);
    host.type_keys(Time::ZERO, other, b"second");
    assert_eq!(read(&mut host), b"firstsecond");
    // There is no room for more.
    let mut host = begin();
    let many = vec![b'x'; QUEUE_OCTETS_MAX];
    host.type_keys(Time::ZERO, other, &many);
    assert!(read(&mut host).starts_with(b"firstx"));
}
