//! A session without a terminal: two connections whose states never change.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::time::Duration;

use common::{client_address, ms, server_address};
use rove_session::connection::{Connection, Event, Patience};
use rove_session::exit::{Cause, Exit};
use rove_session::{Input, Peer, View};
use rove_ssp::{
    Arrival, Config, ConnId, Machine, NativeWire, Outbox, Role, Session, SessionSecrets, State,
    StateNum, Time, Timing,
};
use rove_term::Size;

const PATIENCE: Patience =
    Patience { first_contact: Some(Duration::from_secs(15)), silence: Some(SILENCE) };
const SILENCE: Duration = Duration::from_secs(60);

/// A client's and a server's end, and whether datagrams get from one to the other.
struct Ends {
    now: Time,
    client: Connection<Input, View>,
    server: Connection<View, Input>,
    reaches: bool,
    client_events: Vec<Event>,
    server_events: Vec<Event>,
}

fn end<L: State, R: State>(role: Role, local: L, remote: R) -> Connection<L, R> {
    let secrets = SessionSecrets::from_bytes([1; 32], [2; 32], [3; 32]);
    let config = Config {
        role,
        wire: Box::new(NativeWire::new(&secrets, ConnId::new(7), role)),
        timing: Timing::ROVE,
        peer: (role == Role::Client).then(server_address),
        local,
        remote,
        seed: 1,
    };
    Connection::new(Time::ZERO, config, PATIENCE)
}

impl Ends {
    fn new() -> Self {
        let view = || View::new(Size::DEFAULT, Peer::Rove);
        let mut client = end(Role::Client, Input::default(), view());
        // A first state, by which the server knows that it is claimed.
        client.update(Time::ZERO, |input| input.push_resize(Size::DEFAULT));
        Self {
            now: Time::ZERO,
            client,
            server: end(Role::Server, view(), Input::default()),
            reaches: true,
            client_events: Vec::new(),
            server_events: Vec::new(),
        }
    }

    fn run(&mut self, span: Duration) {
        let end = self.now + span;
        let mut out = Outbox::default();
        while self.now < end {
            while let Some(transmit) = self.client.poll_transmit(self.now, &mut out) {
                assert_eq!(transmit.to, server_address());
                if self.reaches {
                    let arrival = Arrival { from: client_address().into(), congested: false };
                    let _ = self.server.handle_datagram(self.now, arrival, &mut out.datagram);
                }
            }
            while self.server.poll_transmit(self.now, &mut out).is_some() {
                if self.reaches {
                    let arrival = Arrival { from: server_address().into(), congested: false };
                    let _ = self.client.handle_datagram(self.now, arrival, &mut out.datagram);
                }
            }
            self.client_events.extend(std::iter::from_fn(|| self.client.poll_event()));
            self.server_events.extend(std::iter::from_fn(|| self.server.poll_event()));
            self.now = self.now + ms(1);
        }
    }
}

fn exit(events: &[Event]) -> Option<Exit> {
    events.iter().find_map(|event| match event {
        Event::Ended(exit) => Some(*exit),
        _ => None,
    })
}

#[test]
fn contact_is_made_and_kept_without_a_change() {
    let mut ends = Ends::new();
    assert!(!ends.server.has_contact() && ends.server.peer().is_none());
    ends.run(ms(100));
    assert!(ends.client.has_contact() && ends.server.has_contact());
    assert_eq!(ends.server.peer(), Some(client_address().into()));
    assert_eq!(ends.server_events[0], Event::FirstContact);
    assert_eq!(ends.client_events[0], Event::FirstContact);
    // Both say that they are there before the other gives up.
    ends.run(Duration::from_secs(600));
    assert!(ends.client.is_open() && ends.server.is_open());
    let firsts = ends.client_events.iter().filter(|event| **event == Event::FirstContact);
    assert_eq!(firsts.count(), 1);
}

#[test]
fn an_end_closes_and_the_other_knows() {
    let mut ends = Ends::new();
    ends.run(ms(100));
    ends.client.close(ends.now, Cause::Closed);
    ends.client.update(ends.now, |input| input.push_keys(b"too late"));
    assert!(!ends.client.is_open() && !ends.client.is_over());
    ends.run(Duration::from_secs(2));
    assert_eq!(exit(&ends.client_events), Some(Exit { cause: Cause::Closed, clean: true }));
    assert_eq!(exit(&ends.server_events), Some(Exit { cause: Cause::PeerLeft, clean: true }));
    assert_eq!(ends.server.endpoint().remote_num(), StateNum::SHUTDOWN);
    assert_eq!(ends.server.endpoint().remote().end(), 1, "the size alone");
    assert_eq!((ends.client.poll_timeout(), ends.server.poll_timeout()), (None, None));
}

#[test]
fn an_end_that_waits_for_nobody_gives_up() {
    // Nobody ever came.
    let mut ends = Ends::new();
    ends.reaches = false;
    ends.run(Duration::from_secs(15));
    assert!(ends.client.is_open() && ends.client.overdue(ends.now) == Some(Cause::NoContact));
    ends.run(ms(1));
    let exit_of_both = [exit(&ends.client_events), exit(&ends.server_events)];
    assert_eq!(exit_of_both, [Some(Exit { cause: Cause::NoContact, clean: false }); 2]);
    // Somebody was there, and is not any more.
    let mut ends = Ends::new();
    ends.run(ms(100));
    ends.reaches = false;
    ends.run(SILENCE - ms(100));
    assert!(ends.client.is_open() && ends.server.is_open());
    ends.run(ms(200));
    let exit_of_both = [exit(&ends.client_events), exit(&ends.server_events)];
    assert_eq!(exit_of_both, [Some(Exit { cause: Cause::Silence, clean: false }); 2]);
    // A goodbye is not waited for by who says it twice.
    let mut ends = Ends::new();
    ends.run(ms(100));
    ends.reaches = false;
    ends.client.close(ends.now, Cause::Signal);
    ends.client.close(ends.now, Cause::Closed);
    ends.run(ms(1));
    assert_eq!(exit(&ends.client_events), Some(Exit { cause: Cause::Signal, clean: false }));
}

/// It says so a few times in a row instead, so that one of them is heard.
#[test]
fn an_end_that_leaves_does_not_wait_for_the_answer() {
    let mut ends = Ends::new();
    ends.run(ms(100));
    ends.reaches = false;
    ends.client.leave(ends.now, Cause::Closed);
    ends.run(ms(25));
    ends.reaches = true;
    ends.run(ms(10));
    assert_eq!(exit(&ends.client_events), Some(Exit { cause: Cause::Closed, clean: false }));
    assert_eq!(ends.server.endpoint().remote_num(), StateNum::SHUTDOWN, "the last one came");
}
