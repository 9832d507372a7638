//! Diffs that are applied in parts, between which a driver does what is more urgent.
#![allow(clippy::unwrap_used)] // A failure is a failed test.

mod common;

use common::{Hand, Log, drain, message, mosh_wire, ms, run_until, server_address};
use rove_ssp::{Applied, BadDiff, Config, Endpoint, Event, Role, State, StateNum, Time, Timing};

/// A text that takes one octet of a diff in each part.
#[derive(Clone, Debug, Default)]
struct Slow {
    text: Vec<u8>,
    at: usize,
}

impl PartialEq for Slow {
    fn eq(&self, other: &Slow) -> bool {
        self.text == other.text
    }
}

impl State for Slow {
    fn diff_from(&self, base: &Slow, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.text[base.text.len()..]);
    }

    fn apply(&mut self, diff: &[u8]) -> Result<(), BadDiff> {
        while self.apply_part(diff)? == Applied::Part {}
        Ok(())
    }

    fn apply_part(&mut self, diff: &[u8]) -> Result<Applied, BadDiff> {
        let octet = diff[self.at];
        self.text.push(octet);
        self.at += 1;
        if octet == b'!' {
            return Err(BadDiff("no text"));
        }
        if self.at < diff.len() {
            return Ok(Applied::Part);
        }
        self.at = 0;
        Ok(Applied::Whole)
    }

    fn weight(&self) -> usize {
        self.text.len()
    }
}

fn client() -> Endpoint<Log, Slow> {
    Endpoint::new(
        Time::ZERO,
        Config {
            role: Role::Client,
            wire: Box::new(mosh_wire(Role::Client)),
            timing: Timing::MOSH,
            peer: Some(server_address()),
            local: Log::default(),
            remote: Slow::default(),
            seed: 1,
        },
    )
}

fn told(client: &mut Endpoint<Log, Slow>) -> Vec<Event> {
    std::iter::from_fn(|| client.poll_event()).collect()
}

#[test]
fn a_state_is_the_newest_once_its_diff_is_applied() {
    let (mut client, mut hand) = (client(), Hand::new(Role::Server));
    client.apply_in_parts();
    hand.send(ms(1), &mut client, &message(0, 1, 0, b"abc")).unwrap();
    for part in 1..=2 {
        assert!(client.is_applying());
        assert_eq!((client.remote_num(), &client.remote().text[..]), (StateNum::ZERO, &b""[..]));
        // What is sent meanwhile acknowledges nothing of it.
        client.update(ms(part * 1000), |log| log.push(b"k"));
        let sent = run_until(ms(part * 1000 + 500), &mut client);
        assert!(!sent.is_empty());
        sent.iter().for_each(|(.., sent)| assert_eq!(hand.read(sent).ack, StateNum::ZERO));
        assert_eq!(told(&mut client), []);
        client.apply_part(ms(part * 1000 + 600));
    }
    assert!(!client.is_applying());
    assert_eq!(told(&mut client), [Event::NewRemote { num: 1.into() }]);
    assert_eq!(client.remote().text, b"abc");
    let sent = run_until(ms(6000), &mut client);
    assert_eq!(hand.read(&sent[0].2).ack, 1.into());
    client.apply_part(ms(6000));
    assert_eq!(told(&mut client), []);
}

#[test]
fn a_driver_that_does_not_wait_gets_all() {
    for in_parts in [false, true] {
        let (mut client, mut hand) = (client(), Hand::new(Role::Server));
        if in_parts {
            client.apply_in_parts();
        }
        hand.send(ms(1), &mut client, &message(0, 1, 0, b"ab")).unwrap();
        assert_eq!(client.is_applying(), in_parts);
        hand.send(ms(2), &mut client, &message(1, 2, 0, b"c")).unwrap();
        assert!(!client.is_applying());
        assert_eq!(told(&mut client), [Event::NewRemote { num: 2.into() }]);
        assert_eq!(client.remote().text, b"abc");
    }
}

#[test]
fn the_last_state_closes_once_it_is_whole() {
    let (mut client, mut hand) = (client(), Hand::new(Role::Server));
    client.apply_in_parts();
    hand.send(ms(1), &mut client, &message(0, u64::MAX, 0, b"end")).unwrap();
    client.apply_part(ms(2));
    assert_eq!((told(&mut client), client.closing()), (vec![], false));
    client.apply_part(ms(3));
    let last = Event::NewRemote { num: StateNum::SHUTDOWN };
    assert_eq!(told(&mut client), [last, Event::PeerClosing]);
    let sent = drain(ms(300), &mut client);
    assert_eq!(hand.read(&sent[0].1).ack, StateNum::SHUTDOWN);
}

#[test]
fn a_part_that_cannot_be_read_is_told_and_nothing_follows() {
    let (mut client, mut hand) = (client(), Hand::new(Role::Server));
    client.apply_in_parts();
    hand.send(ms(1), &mut client, &message(0, 1, 0, b"a!c")).unwrap();
    client.apply_part(ms(2));
    assert!(!client.is_applying());
    let failed = Event::BadRemote(BadDiff("no text"));
    assert_eq!(told(&mut client), [failed]);
    hand.send(ms(3), &mut client, &message(0, 2, 0, b"abc")).unwrap();
    assert_eq!((told(&mut client), client.remote_num()), (vec![], StateNum::default()));
}
