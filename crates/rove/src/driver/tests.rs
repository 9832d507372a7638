use std::cell::RefCell;
use std::time::Duration;

use rove_ssp::{Arrival, Machine, Outbox, Transmit};
use rustix::io::Errno;

use super::*;
use crate::net::memory::Memory;
use crate::os::clock::Clock;

const PEER: &str = "192.0.2.1:60001";

/// A session that records its calls, and an end that ends after some turns.
#[derive(Default)]
struct Notebook {
    told: Vec<String>,
    /// The lengths of the datagrams that it still sends.
    sends: Vec<usize>,
    turns: u32,
    turns_max: u32,
    deadline: Option<Time>,
    wants_port: bool,
    /// When the next datagram leaves.
    at: Option<fn(Time) -> Time>,
    /// It tells of each datagram that it makes.
    tells_sends: bool,
}

impl Notebook {
    fn tell(&mut self, what: impl Into<String>) {
        self.told.push(what.into());
    }
}

impl Machine for Notebook {
    fn handle_datagram(&mut self, _: Time, _: Arrival, octets: &mut [u8]) -> Result<(), Reject> {
        match &*octets {
            b"forged" => Err(Reject::Forged),
            octets => {
                self.tell(format!("took {}", octets.len()));
                Ok(())
            }
        }
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Outbox) -> Option<Transmit> {
        let length = self.sends.pop()?;
        out.datagram.clear();
        out.datagram.resize(length, 7);
        if self.tells_sends {
            self.tell(format!("made {length}"));
        }
        let new_port = std::mem::take(&mut self.wants_port);
        Some(Transmit {
            to: PEER.parse::<std::net::SocketAddr>().unwrap().into(),
            new_port,
            at: self.at.take().map(|at| at(now)),
        })
    }

    fn poll_timeout(&self) -> Option<Time> {
        None
    }
}

impl Session for Notebook {
    fn peer(&self) -> Option<rove_ssp::Remote> {
        PEER.parse::<std::net::SocketAddr>().ok().map(Into::into)
    }

    fn network_changed(&mut self, _: Time) {
        self.tell("network changed");
    }

    fn datagram_too_big(&mut self) {
        self.tell("too big");
        self.sends.push(500);
    }

    fn send_failed(&mut self, _: Time, why: &str) {
        self.tell(why);
    }
}

impl End for Notebook {
    fn session(&mut self) -> &mut dyn Session {
        self
    }

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }

    fn before(&mut self, turn: Turn) -> io::Result<()> {
        if turn.network != Network::Same {
            self.tell(format!("{:?}", turn.network));
        }
        Ok(())
    }

    fn budget(&self) -> usize {
        2
    }

    fn heard(&mut self, _: Time, heard: &Heard) {
        self.tell(format!("heard {}", heard.from));
    }

    fn refused(&mut self, reject: Reject) {
        self.tell(format!("refused: {reject}"));
    }

    fn settle(&mut self, _: Time, _: &mut Carrier) -> io::Result<Flow> {
        self.turns += 1;
        self.tell("settled");
        Ok(if self.turns >= self.turns_max { Flow::Over } else { Flow::Sleep })
    }

    fn deadline(&self, now: Time) -> Option<Time> {
        self.deadline.or(Some(now))
    }
}

/// Runs an end over this network; returns the events of the end, the notes for the user, and the network.
fn drive(mut end: Notebook, memory: Memory) -> (Vec<String>, Vec<String>, Memory) {
    let notes = RefCell::new(Vec::new());
    let note = |what: std::fmt::Arguments<'_>| notes.borrow_mut().push(what.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let memory = runtime.block_on(async {
        // The clock began 10 s ago, so an alarm set for its start is 10 s late.
        let clock = Clock::started_ago(Duration::from_secs(10));
        let mut port = Port::new(clock, Carrier::Memory(memory), None, &note).unwrap();
        run(&mut port, &mut end).await.unwrap();
        match std::mem::replace(port.carrier(), Carrier::Memory(Memory::default())) {
            Carrier::Memory(memory) => memory,
            other => panic!("another carrier: {other:?}"),
        }
    });
    (end.told, notes.into_inner(), memory)
}

#[test]
fn an_alarm_that_comes_late_shows_that_the_machine_slept() {
    let end = Notebook { turns_max: 2, deadline: Some(Time::ZERO), ..Notebook::default() };
    let (told, _, memory) = drive(end, Memory::default());
    assert_eq!(told, ["settled", "network changed", "Slept", "settled"]);
    assert_eq!(memory.ports, 1, "it goes on from a fresh port");
    let end = Notebook { turns_max: 2, ..Notebook::default() };
    assert_eq!(drive(end, Memory::default()).0, ["settled", "settled"], "one that is on time");
}

#[test]
fn a_datagram_too_big_is_sent_again_in_the_same_turn() {
    let end = Notebook { turns_max: 1, sends: vec![1200], ..Notebook::default() };
    let memory = Memory { refuses: [Errno::MSGSIZE].into(), ..Memory::default() };
    let (told, notes, memory) = drive(end, memory);
    assert_eq!(told, ["too big", "settled"]);
    assert_eq!(notes, ["smaller datagrams from now on"]);
    assert_eq!(memory.sent, [vec![7; 500]]);
}

/// Nothing else is asked for before it has left, and the next turn begins with it.
#[test]
fn a_datagram_waits_for_its_time() {
    let end = |at: fn(Time) -> Time| Notebook {
        turns_max: 2,
        sends: vec![30, 20],
        at: Some(at),
        tells_sends: true,
        ..Notebook::default()
    };
    let (told, _, memory) = drive(end(|now| now + Duration::from_millis(1)), Memory::default());
    assert_eq!(told, ["made 20", "settled", "made 30", "settled"]);
    assert_eq!(memory.sent, [vec![7; 20], vec![7; 30]]);
    // One of a machine that slept is not sent.
    let (told, _, memory) = drive(end(|now| now - Duration::from_millis(26)), Memory::default());
    assert_eq!(told, ["made 20", "made 30", "settled", "settled"]);
    assert_eq!(memory.sent, [vec![7; 30]]);
}

/// One that waits is of the network before, once that changes.
#[test]
fn a_datagram_that_waits_is_dropped_with_its_network() {
    let end = Notebook {
        turns_max: 2,
        sends: vec![30, 20],
        at: Some(|_| Time::ZERO + Duration::from_secs(3600)),
        ..Notebook::default()
    };
    let notes = RefCell::new(Vec::new());
    let note = |what: std::fmt::Arguments<'_>| notes.borrow_mut().push(what.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let clock = Clock::started_ago(Duration::from_secs(10));
        let carrier = Carrier::Memory(Memory::default());
        let mut port = Port::new(clock, carrier, None, &note).unwrap();
        let mut end = end;
        port.send_all(clock.now(), &mut end);
        assert_eq!(end.sends, [30], "the other waits");
        port.drop_held();
        port.send_all(clock.now(), &mut end);
        let Carrier::Memory(memory) = port.carrier() else { panic!("another carrier") };
        assert_eq!(memory.sent, [vec![7; 30]]);
    });
}

#[test]
fn a_network_that_is_gone_is_told_and_ends_nothing() {
    let end = Notebook { turns_max: 2, sends: vec![30, 20], ..Notebook::default() };
    let memory = Memory { refuses: [Errno::NETUNREACH].into(), ..Memory::default() };
    let (told, notes, memory) = drive(end, memory);
    assert_eq!(told, ["No network here", "settled", "settled"]);
    assert_eq!(notes, [format!("cannot send: {}", std::io::Error::from(Errno::NETUNREACH))]);
    assert_eq!(memory.sent, [vec![7; 30]]);
}

#[test]
fn a_session_that_hears_nothing_gets_a_fresh_port() {
    let end = Notebook { turns_max: 1, sends: vec![30], wants_port: true, ..Notebook::default() };
    let (_, notes, memory) = drive(end, Memory::default());
    assert_eq!((memory.ports, memory.sent.len()), (1, 1));
    assert_eq!(notes, ["nothing heard: trying another port of ours"]);
}

#[test]
fn a_turn_takes_no_more_datagrams_than_its_budget() {
    let from = PEER.parse().unwrap();
    let arriving = [&b"one"[..], b"forged", b"three"].map(|octets| (from, octets.to_vec()));
    let memory = Memory { arriving: arriving.into(), ..Memory::default() };
    let end = Notebook { turns_max: 2, ..Notebook::default() };
    let (told, ..) = drive(end, memory);
    let heard = format!("heard {PEER}");
    let refused = format!("refused: {}", Reject::Forged);
    assert_eq!(told, ["took 3", &heard, &refused, "settled", "took 5", &heard, "settled"]);
}
