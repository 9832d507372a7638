//! Replays a recorded session in virtual time through the machines of a mobile shell.
//!
//! At the near end a person types the recorded keys; at the far end a program waits for each of them and then
//! writes the recorded output after the recorded delay. An emulator reads the client's output to the terminal and
//! holds what the user sees.

use std::time::Duration;

use rove_session::Server;
use rove_session::predict::Settings;
use rove_ssp::{Machine, StateNum, Time};
use rove_term::{Screen, Size};

use crate::address::NodeId;
use crate::ends::End;
use crate::link::{Jitter, Profile};
use crate::world::{Fault, Node, World};

use super::judge::{Deed, ECHO_WAIT, Effect, Judge};
use super::script::{Act, Script};
use super::seat::{self, Seat};
use super::trace::Trace;

/// How a person types.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Typist {
    /// At the recorded times, regardless of the screen.
    TypesOn,
    /// Waits for the screen after each key that is not simply echoed, then goes on as recorded.
    Patient,
}

/// A path and its typist.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name in tables.
    pub name: &'static str,
    /// From the person to the program.
    pub up: Profile,
    /// From the program to the person.
    pub down: Profile,
    /// The typist.
    pub typist: Typist,
    /// 0 is the path as it is. Every other number is another run over it, with a jitter of up to `JITTER`. Whether
    /// a frame falls before or after a slow echo decides the outcome of a whole line, so that several runs together
    /// are more reliable than one.
    pub run: u64,
}

impl Scenario {
    fn way(&self, profile: &Profile) -> Profile {
        let mut profile = profile.clone();
        if self.run > 0 {
            profile.jitter = Jitter::Uniform(JITTER);
        }
        profile
    }
}

/// How long the session is up before the recording begins: a user does not type before the prompt is there.
pub(crate) const LEAD: Duration = Duration::from_secs(12);
/// The session goes on for this long after the last key.
pub(crate) const TAIL: Duration = Duration::from_secs(15);

/// The longest time from a state to its acknowledgment: stock's may wait 100 ms (mosh-protocol.md §4.4).
const ACK_SOON: Duration = Duration::from_millis(150);

/// The jitter of timers and wake-ups on real machines.
pub(crate) const JITTER: Duration = Duration::from_millis(4);

/// Keys recorded closer than this were not typed one by one: the user did not wait between them.
const BURST: Duration = Duration::from_millis(10);

/// The result of a replay.
#[derive(Debug)]
pub struct Replayed<'a> {
    /// The judge.
    pub judge: Judge<'a>,
    /// When it was over.
    pub end: Time,
    /// The server's acknowledgments.
    pub acks: Acks,
}

/// Acknowledgments of the server.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Acks {
    /// Client states that arrived: as many can be acknowledged, each for itself.
    pub arrivals: u64,
    /// Instructions that carried an acknowledgment and nothing else.
    pub alone: u64,
}

/// Replays `trace`, whose keys do these `deeds`.
///
/// # Errors
/// A broken invariant.
pub fn replay<'a>(
    trace: &Trace,
    deeds: &'a [Deed],
    scenario: &Scenario,
    settings: Settings,
) -> Result<Replayed<'a>, Fault> {
    let typed = typing(deeds, scenario);
    let end = typed.last().map_or(Time::ZERO, |last| *last + TAIL);
    let mut world = World::new(1 + scenario.run);
    let server_id = world.join(End::Host(Box::new(Stage::new(trace))));
    let person = Typing::new(trace.size, deeds, typed, settings, world.address(server_id));
    let person_id = world.join(End::Person(Box::new(person)));
    world.connect(person_id, server_id, scenario.way(&scenario.up));
    world.connect(server_id, person_id, scenario.way(&scenario.down));
    world.run_until(end)?;
    let host = world.node_mut(server_id).host_mut();
    let (held, delivered) = (std::mem::take(&mut host.held), std::mem::take(&mut host.delivered));
    let acks = Acks { arrivals: host.server.endpoint().stats().states_received, ..host.acks };
    let mut judge =
        std::mem::replace(&mut world.node_mut(person_id).person_mut().judge, Judge::new(&[]));
    held.iter().for_each(|(at, screen)| judge.held(*at, screen));
    delivered.iter().for_each(|at| judge.delivered(*at));
    settled(&world, person_id, server_id, end)?;
    Ok(Replayed { judge, end, acks })
}

/// Both ends of a replay.
type Ends<'a> = End<Typing<'a>, Stage>;

/// With all keys acknowledged, the user sees the server's screen.
fn settled(world: &World<Ends<'_>>, person: NodeId, host: NodeId, end: Time) -> Result<(), Fault> {
    let (person, host) = (world.node(person).person(), world.node(host).host());
    let (shown, real) = (person.seat.tty.screen(), host.server.screen());
    let at = |screen: &Screen| (screen.cursor().row, screen.cursor().col);
    if shown.text() != real.text() || at(shown) != at(real) {
        return Err(Fault::new(end, "the user's screen is not the server's"));
    }
    Ok(())
}

/// When each key is typed.
pub(crate) fn typing(deeds: &[Deed], scenario: &Scenario) -> Vec<Time> {
    let mut late = LEAD;
    let mut typed = Vec::with_capacity(deeds.len());
    let mut before: Option<&Deed> = None;
    for deed in deeds {
        let waits = |before: &Deed| {
            !matches!(before.effect, Effect::InPlace { .. }) && deed.at > before.at + BURST
        };
        if scenario.typist == Typist::Patient && before.is_some_and(waits) {
            late += scenario.up.delay + scenario.down.delay + ECHO_WAIT;
        }
        typed.push(Time::ZERO + deed.at + late);
        before = Some(deed);
    }
    typed
}

/// The near end: a keyboard, the client, and a terminal with someone before it.
struct Typing<'a> {
    seat: Seat,
    deeds: &'a [Deed],
    typed: Vec<Time>,
    next: usize,
    echo_ack: StateNum,
    seen: Option<Screen>,
    judge: Judge<'a>,
}

impl<'a> Typing<'a> {
    fn new(
        size: Size,
        deeds: &'a [Deed],
        typed: Vec<Time>,
        settings: Settings,
        server: std::net::SocketAddr,
    ) -> Self {
        let seat = Seat::new(size, settings, server);
        let judge = Judge::new(deeds);
        let (echo_ack, seen) = (StateNum::ZERO, None);
        Self { seat, deeds, typed, next: 0, echo_ack, seen, judge }
    }

    fn notice_frame(&mut self, now: Time) {
        let view = self.seat.client.view();
        let (echo_ack, screen) = (view.echo_ack(), view.screen());
        let old = |seen: &Screen| seen.shares_grid(screen) && seen.cursor() == screen.cursor();
        if self.echo_ack == echo_ack && self.seen.as_ref().is_some_and(old) {
            return;
        }
        self.judge.frame(now, echo_ack, screen);
        self.echo_ack = echo_ack;
        self.seen = Some(screen.clone());
    }

    fn paint(&mut self, now: Time) {
        self.seat.paint(now);
        self.judge.paint(now, self.seat.tty.screen());
    }
}

impl Node for Typing<'_> {
    fn machine(&mut self) -> &mut dyn Machine {
        &mut self.seat.client
    }

    fn turn(&mut self, now: Time) -> Result<(), Fault> {
        self.notice_frame(now);
        while self.typed.get(self.next).is_some_and(|at| *at <= now) {
            let state = self.seat.client.endpoint().sent_num().next();
            self.seat.client.handle_keys(now, &self.deeds[self.next].octets);
            self.judge.key(now, state);
            self.next += 1;
            self.paint(now);
        }
        Ok(())
    }

    fn settle(&mut self, now: Time) -> Result<(), Fault> {
        self.notice_frame(now);
        self.paint(now);
        Ok(())
    }

    fn wake(&self) -> Option<Time> {
        self.typed.get(self.next).copied()
    }
}

/// The far end: the server, and a program that follows the recording.
struct Stage {
    server: Server,
    script: Script,
    held: Vec<(Time, Screen)>,
    delivered: Vec<Time>,
    acks: Acks,
    /// Instructions without a diff counted so far, and client states, with the time of the last of these.
    bare: u64,
    states: (u64, Time),
}

impl Stage {
    fn new(trace: &Trace) -> Self {
        Self {
            server: seat::server(trace.size, None),
            script: Script::new(&trace.events),
            held: Vec::new(),
            delivered: Vec::new(),
            acks: Acks::default(),
            bare: 0,
            states: (0, Time::ZERO),
        }
    }
}

impl Node for Stage {
    fn machine(&mut self) -> &mut dyn Machine {
        &mut self.server
    }

    fn turn(&mut self, now: Time) -> Result<(), Fault> {
        let mut octets = Vec::new();
        while self.server.pending_input() > 0 {
            self.server.poll_input(&mut octets);
            self.script.arrived(octets.len());
        }
        // Keys count as delivered when they reach the program's terminal, read or not.
        self.delivered.resize(self.script.delivered(), now);
        while let Some(act) = self.script.next(now) {
            match act {
                Act::Write(output) => {
                    self.server.handle_output(now, &output);
                    self.held.push((now, self.server.screen().clone()));
                }
                Act::Line(mode) => self.server.handle_line(mode),
            }
        }
        Ok(())
    }

    /// Counts datagrams without a diff: one soon after a state acknowledges that, any other keeps the path alive.
    fn settle(&mut self, now: Time) -> Result<(), Fault> {
        let stats = self.server.endpoint().stats();
        if stats.states_received != self.states.0 {
            self.states = (stats.states_received, now);
        }
        if stats.acks_sent > self.bare && now.since(self.states.1) <= ACK_SOON {
            self.acks.alone += stats.acks_sent - self.bare;
        }
        self.bare = stats.acks_sent;
        Ok(())
    }

    fn wake(&self) -> Option<Time> {
        self.script.due()
    }
}
