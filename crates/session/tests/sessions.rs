//! Laws of a session that outlives its clients: those that join, leave, take over or are gone.
//!
//! `SEED=17 cargo test -p rove-session --test sessions` runs that seed alone.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::net::SocketAddr;
use std::time::Duration;

use common::{client_config, echo, ms, server_address, size};
use rove_session::client::{self, Cause};
use rove_session::host::{QUEUE_OCTETS_MAX, SizePolicy};
use rove_session::server::{self, Config, Full, Joining, Others, Rights, VIEWERS_MAX};
use rove_session::{Client, Host, LetGo, Peer, Server, ViewerId};
use rove_ssp::{
    Arrival, ConnId, Machine, NativeWire, Outbox, Reject, Role, Session as _, SessionSecrets, Time,
    Timing,
};
use rove_term::{Dialect, Size, same};

const DELAY: Duration = ms(20);

/// A client, and what it has painted and heard.
struct Seat {
    client: Client,
    number: u32,
    exit: Option<client::Exit>,
    /// Datagrams do not pass.
    is_cut: bool,
    /// How many of the client's datagrams are lost once it knows of the end.
    last_lost: u32,
}

/// A datagram on its way.
struct Flying {
    at: Time,
    number: u64,
    /// The client; `None`: the server.
    to: Option<u32>,
    from: SocketAddr,
    octets: Vec<u8>,
}

/// A session, and all who ever were in it.
struct Room {
    now: Time,
    server: Server,
    seats: Vec<Seat>,
    flying: Vec<Flying>,
    read: Vec<u8>,
    exit: Option<server::Exit>,
    sent: u64,
    /// Those of the server.
    said: u64,
}

fn wire(number: u32, role: Role) -> Box<NativeWire> {
    let octet = number as u8;
    let secrets = SessionSecrets::from_bytes([octet; 32], [octet + 100; 32], [3; 32]);
    Box::new(NativeWire::new(&secrets, ConnId::new(number + 7), role))
}

fn address_of(number: u32) -> SocketAddr {
    format!("198.51.100.{number}:40000").parse().unwrap()
}

impl Room {
    /// A session with its first client, number 1.
    fn new(name: Option<&str>) -> Room {
        Room::bounded(name, None)
    }

    /// The same, whose client may be silent for this long.
    fn bounded(name: Option<&str>, network_timeout: Option<Duration>) -> Room {
        let config = Config {
            wire: wire(1, Role::Server),
            timing: Timing { final_acks: 4, ..Timing::ROVE },
            peer: Peer::Rove,
            size: Size::DEFAULT,
            claim_wait: server::CLAIM_WAIT,
            network_timeout,
            screen_rate: Some(server::SCREEN_RATE),
            seed: 2,
        };
        let mut server = Server::new(Time::ZERO, config);
        if let Some(name) = name {
            server.keep(name, true);
        }
        let mut room = Room {
            now: Time::ZERO,
            server,
            seats: Vec::new(),
            flying: Vec::new(),
            read: Vec::new(),
            exit: None,
            sent: 0,
            said: 0,
        };
        room.sit(1, size(24, 80));
        room.run(ms(500));
        room
    }

    fn sit(&mut self, number: u32, size: Size) {
        let config = client::Config {
            wire: wire(number, Role::Client),
            timing: Timing::ROVE,
            size,
            ..client_config(Peer::Rove)
        };
        let client = Client::new(self.now, config);
        self.seats.push(Seat { client, number, exit: None, is_cut: false, last_lost: 0 });
    }

    fn join(
        &mut self,
        number: u32,
        size: Size,
        rights: Rights,
        others: Others,
    ) -> Result<ViewerId, Full> {
        let joining = Joining {
            wire: wire(number, Role::Server),
            timing: Timing { final_acks: 4, ..Timing::ROVE },
            rights,
            others,
            size_policy: None,
            fill: None,
            screen_rate: Some(server::SCREEN_RATE),
            seed: number.into(),
        };
        let joined = self.server.join(self.now, joining)?;
        self.sit(number, size);
        Ok(joined)
    }

    fn seat(&mut self, number: u32) -> &mut Seat {
        self.seats.iter_mut().find(|seat| seat.number == number).unwrap()
    }

    fn type_keys(&mut self, number: u32, keys: &[u8]) {
        let now = self.now;
        self.seat(number).client.handle_keys(now, keys);
    }

    /// The text of the bar that a client shows, if it shows one.
    fn bar(&mut self, number: u32) -> String {
        self.seat(number).client.shown().unwrap().row_text(0).trim_end().to_owned()
    }

    /// Why the session has ended for a client alone, and because of whom.
    fn let_go(&mut self, number: u32) -> (Option<LetGo>, String) {
        let seat = self.seat(number);
        assert!(seat.exit.is_some_and(|exit| exit.clean), "client {number}: {:?}", seat.exit);
        let session = seat.client.view().session().unwrap();
        (session.ended, session.who.clone())
    }

    fn run(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            self.turn();
            let arrivals = self.flying.iter().map(|it| it.at);
            let clients = self.seats.iter().filter_map(|seat| seat.client.poll_timeout());
            let next = arrivals.chain(clients).chain(self.server.poll_timeout()).min();
            let Some(next) = next.filter(|&next| next <= end) else { break };
            self.now = next.max(self.now);
            self.arrive();
        }
        self.now = end;
        self.turn();
    }

    fn turn(&mut self) {
        let mut out = Outbox::default();
        let mut typed = Vec::new();
        loop {
            self.server.poll_input(&mut typed);
            if typed.is_empty() {
                break;
            }
            self.read.extend(&typed);
            self.server.handle_output(self.now, &echo(&typed));
        }
        while let Some(transmit) = self.server.poll_transmit(self.now, &mut out) {
            self.sent += 1;
            self.said += 1;
            let to = self.seats.iter().find(|seat| transmit.to == address_of(seat.number));
            if let Some(seat) = to.filter(|seat| !seat.is_cut) {
                let at = self.now + DELAY;
                let datagram = out.datagram.to_vec();
                let (number, to, from) = (self.sent, Some(seat.number), server_address());
                self.flying.push(Flying { at, number, to, from, octets: datagram });
            }
        }
        let due = self.server.poll_timeout();
        assert!(due.is_none_or(|due| due > self.now), "drained, and due at {due:?}");
        while let Some(event) = self.server.poll_event() {
            if let server::Event::Exited(exit) = event {
                assert_eq!(self.exit.replace(exit), None, "a session ends once");
            }
        }
        for seat in &mut self.seats {
            while seat.client.poll_transmit(self.now, &mut out).is_some() {
                self.sent += 1;
                if seat.last_lost > 0 && seat.client.endpoint().closing() {
                    seat.last_lost -= 1;
                } else if !seat.is_cut {
                    let (at, from) = (self.now + DELAY, address_of(seat.number));
                    let octets = out.datagram.to_vec();
                    self.flying.push(Flying { at, number: self.sent, to: None, from, octets });
                }
            }
            seat.client.poll_paint(self.now, &mut Vec::new());
            while let Some(event) = seat.client.poll_event() {
                if let client::Event::Exited(exit) = event {
                    seat.exit = Some(exit);
                }
            }
        }
    }

    fn arrive(&mut self) {
        self.flying.sort_by_key(|it| (it.at, it.number));
        while self.flying.first().is_some_and(|it| it.at <= self.now) {
            let Flying { to, from, octets: mut datagram, .. } = self.flying.remove(0);
            let arrival = Arrival { from: from.into(), congested: false };
            let taken = match to {
                None => self.server.handle_datagram(self.now, arrival, &mut datagram),
                Some(number) => {
                    let now = self.now;
                    self.seat(number).client.handle_datagram(now, arrival, &mut datagram)
                }
            };
            assert!(matches!(taken, Ok(()) | Err(Reject::Foreign | Reject::Ended)), "{taken:?}");
        }
    }

    fn check_screens(&self, numbers: &[u32]) {
        for seat in self.seats.iter().filter(|seat| numbers.contains(&seat.number)) {
            let (shown, wanted) = (seat.client.view().screen(), self.server.screen());
            let equal = same(shown, wanted, &Dialect::ROVE);
            assert!(equal, "client {}\n{:#?}\n{:#?}", seat.number, shown.text(), wanted.text());
        }
    }
}

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
