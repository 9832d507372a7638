//! Virtual time: a heap of (time, number, event) and machines that have their turns, with their clocks, their sleep and
//! what their drivers hold. Where datagrams fly stands in `network`.
//!
//! It drains machines exactly as the real driver does, and knows nothing of their protocol. One seed makes one run:
//! all visible collections are ordered, all randomness comes from [`Rng`], and a hash over all events proves two
//! runs equal.

mod network;
mod node;
mod streams;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use rove::testing::HELD_LATE_MAX;
use rove_ssp::{Outbox, Time, Transmit};

use crate::address::{Family, NodeId};
use crate::byte_stream::{ByteStream, StreamProfile};
use crate::internet::{Datagram, Internet};
use crate::local_clock::LocalClock;
use crate::rng::Rng;
use crate::trace_hash::Trace;
pub(crate) use crate::world::node::{Fault, Network, Node, Notice};

/// Machines, the network between them, and pending events.
#[derive(Debug)]
pub struct World<N> {
    now: Time,
    number: u64,
    events: BinaryHeap<Reverse<Scheduled>>,
    hosts: Vec<Host<N>>,
    internet: Internet,
    /// Streams, by their numbers.
    streams: Vec<ByteStream>,
    /// For the chances of streams, so that they change no other's.
    stream_rng: Rng,
    stream_profile: StreamProfile,
    trace: Trace,
    totals: Totals,
    /// What all machines write to, one after the other.
    out: Outbox,
}

/// The counts of a world.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Totals {
    /// Events taken from the heap.
    pub events: u64,
    /// Datagrams sent by machines.
    pub sent: u64,
    /// Datagrams handed to machines.
    pub received: u64,
    /// Of those, the ones they refused.
    pub refused: u64,
    /// Replays of an attacker's that were refused as such, and other datagrams that came a second time.
    pub replays_refused: u64,
    /// The latter.
    pub copies_refused: u64,
    /// Datagrams that an outage cut while the way back was open.
    pub one_way_cuts: u64,
    /// Streams that ended though both ends lived.
    pub streams_cut: u64,
    /// The most turns that a node had in one second for no datagram and for no user.
    pub idle_turns_most: u32,
    /// The most turns that a node had in one second at times of its own.
    pub alarms_most: u32,
    /// The most datagrams that a node sent in one second.
    pub datagrams_most: u32,
}

#[derive(Debug)]
struct Host<N> {
    node: N,
    asleep_until: Option<Time>,
    /// The number of the wake-up that counts; earlier ones were replaced.
    alarm: u64,
    clock: LocalClock,
    /// For how late its alarms are.
    rng: Rng,
    /// The datagram that leaves next, if it may not leave yet.
    held: Option<Held>,
    life: Life,
    /// Turns so far.
    turns: u64,
    second: Second,
    sleeps: u64,
    moves: u64,
}

/// The work of a node in one second.
#[derive(Clone, Copy, Debug, Default)]
struct Second {
    number: u64,
    /// Turns at times of its own, or of its users.
    alarms: u32,
    /// Of those, the ones that moved no datagram and served no user.
    idle_turns: u32,
    datagrams: u32,
}

/// A datagram that leaves later than it is made: its node holds it until then, as a driver does.
#[derive(Debug)]
struct Held {
    at: Time,
    /// When the node wakes for it, in the world's time.
    wake: Time,
    transmit: Transmit,
    octets: Vec<u8>,
}

/// Whether a node's process runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Life {
    Running,
    /// It will be killed in this turn, after its users have acted and before it sends.
    DiesIn(u64),
    Dead,
}

#[derive(Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Scheduled {
    at: Time,
    number: u64,
    event: Event,
}

#[derive(Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Event {
    Alarm { node: NodeId },
    Datagram(Datagram),
    Roam { node: NodeId, notice: Notice },
    Sever { node: NodeId, family: Option<Family> },
    Suspend { node: NodeId, until: Time },
    Open { ends: [NodeId; 2] },
    Carried { stream: usize, to: NodeId, octets: Vec<u8> },
    Close { stream: usize, node: NodeId },
    CloseBetween { ends: [NodeId; 2] },
    CloseAll,
}

impl<N: Node> World<N> {
    /// An empty world at time zero.
    pub fn new(seed: u64) -> World<N> {
        World {
            now: Time::ZERO,
            number: 0,
            events: BinaryHeap::new(),
            hosts: Vec::new(),
            internet: Internet::new(Rng::new(seed)),
            streams: Vec::new(),
            stream_rng: Rng::new(!seed),
            stream_profile: StreamProfile::delay(Duration::ZERO),
            trace: Trace::new(),
            totals: Totals::default(),
            out: Outbox::default(),
        }
    }

    /// Adds a node; its first turn is at the present time.
    pub fn join(&mut self, node: N) -> NodeId {
        self.join_with(node, LocalClock::EXACT, Rng::new(0))
    }

    /// The same for a node with a clock of its own.
    pub fn join_with(&mut self, node: N, clock: LocalClock, rng: Rng) -> NodeId {
        let id = NodeId(self.hosts.len());
        self.hosts.push(Host {
            node,
            asleep_until: None,
            alarm: 0,
            clock,
            rng,
            held: None,
            life: Life::Running,
            turns: 0,
            second: Second::default(),
            sleeps: 0,
            moves: 0,
        });
        self.internet.open_socket(id);
        self.file_alarm(id, self.now);
        id
    }

    /// Kills the node's process in this turn of it, counted from the first: its users have acted, and what it would
    /// send is lost.
    pub fn kill_in_turn(&mut self, node: NodeId, turn: u64) {
        self.hosts[node.0].life = Life::DiesIn(turn);
    }

    /// Kills the node's process in its next turn.
    pub fn kill_next(&mut self, node: NodeId) {
        let next = self.hosts[node.0].turns + 1;
        self.kill_in_turn(node, next);
    }

    /// The node's process is not to be killed any more.
    pub fn spare(&mut self, node: NodeId) {
        self.hosts[node.0].life = Life::Running;
    }

    /// Whether the node's process was killed.
    pub fn is_dead(&self, node: NodeId) -> bool {
        self.hosts[node.0].life == Life::Dead
    }

    /// How often the node's machine has slept while its process ran.
    pub fn sleeps(&self, node: NodeId) -> u64 {
        self.hosts[node.0].sleeps
    }

    /// How often the node has got another address while its process ran.
    pub fn moves(&self, node: NodeId) -> u64 {
        self.hosts[node.0].moves
    }

    /// What the node's own clock shows.
    pub fn local_now(&self, node: NodeId) -> Time {
        self.hosts[node.0].clock.local(self.now)
    }

    /// The node sleeps in this span: it is not woken, and datagrams that arrive are lost.
    pub fn suspend_at(&mut self, at: Time, node: NodeId, span: Duration) {
        self.schedule(at, Event::Suspend { node, until: at + span });
    }

    /// Runs until nothing is due before `end`, which is the time then.
    ///
    /// # Errors
    /// The first fault.
    pub fn run_until(&mut self, end: Time) -> Result<(), Fault> {
        while self.events.peek().is_some_and(|Reverse(next)| next.at < end) {
            self.step()?;
        }
        self.now = self.now.max(end);
        Ok(())
    }

    /// Something outside acted on this node: it has its turn at the present time.
    ///
    /// # Errors
    /// A fault of the turn.
    pub fn poke(&mut self, node: NodeId) -> Result<(), Fault> {
        self.turn(node, Cause::Event)
    }

    /// A node.
    pub fn node(&self, id: NodeId) -> &N {
        &self.hosts[id.0].node
    }

    /// A node, to act on; [`World::poke`] must follow.
    pub fn node_mut(&mut self, id: NodeId) -> &mut N {
        &mut self.hosts[id.0].node
    }

    /// The present time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The events so far, in numbers.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// A hash over every event and every datagram so far: equal for equal runs.
    pub fn trace_hash(&self) -> u64 {
        self.trace.hash()
    }

    fn step(&mut self) -> Result<(), Fault> {
        let Some(Reverse(Scheduled { at, number, event })) = self.events.pop() else {
            return Ok(());
        };
        self.now = self.now.max(at);
        self.totals.events += 1;
        match event {
            Event::Alarm { node } => {
                if self.hosts[node.0].alarm == number {
                    return self.turn(node, Cause::Alarm);
                }
            }
            Event::Datagram(datagram) => return self.arrive(datagram),
            Event::Roam { node, notice } => return self.roam(node, notice),
            Event::Sever { node, family } => self.internet.sever(node, family),
            Event::Suspend { node, until } => {
                self.trace.add(b"S");
                let host = &mut self.hosts[node.0];
                host.asleep_until = Some(until);
                host.sleeps += u64::from(host.life != Life::Dead);
                self.file_alarm(node, until);
            }
            Event::Open { ends } => return self.reopen_stream(ends),
            Event::Carried { stream, to, octets } => return self.arrive_by(stream, to, octets),
            Event::Close { stream, node } => return self.close_stream(stream, node),
            Event::CloseBetween { ends } => self.cut_streams(|stream| stream.ends == ends),
            Event::CloseAll => self.cut_streams(|_| true),
        }
        Ok(())
    }

    /// One turn of a driver: users, then datagrams, then sleep until the next time something is due. A fault is told
    /// in the world's time.
    fn turn(&mut self, id: NodeId, cause: Cause) -> Result<(), Fault> {
        let world = self.now;
        if !self.hosts[id.0].is_awake(world) {
            return Ok(());
        }
        self.take_turn(id, cause).map_err(|fault| Fault { at: world, ..fault })
    }

    fn take_turn(&mut self, id: NodeId, cause: Cause) -> Result<(), Fault> {
        let host = &mut self.hosts[id.0];
        let now = host.wake(self.now);
        host.turns += 1;
        let is_for_users = host.node.wake().is_some_and(|wake| wake <= now);
        let sent_before = self.totals.sent;
        self.send_held(id, now)?;
        let host = &mut self.hosts[id.0];
        host.node.turn(now)?;
        if host.life == Life::DiesIn(host.turns) {
            host.life = Life::Dead;
            // Its system ends what it had open.
            let own = |stream: &usize| self.streams[*stream].ends.contains(&id);
            let own: Vec<usize> = (0..self.streams.len()).filter(own).collect();
            own.into_iter().for_each(|stream| self.end_stream(stream));
            return Ok(());
        }
        self.send_all(id, now)?;
        let sent = (self.totals.sent - sent_before) as u32;
        let is_idle = sent == 0 && !is_for_users && self.hosts[id.0].held.is_none();
        self.count_turn(id, cause, is_idle, sent)?;
        let host = &mut self.hosts[id.0];
        host.node.settle(now)?;
        let held = host.held.as_ref().map(|held| held.at);
        // It is not drained while it holds a datagram back, and nothing goes before that.
        let timeout = held.or_else(|| host.node.machine().poll_timeout());
        if timeout.is_some_and(|timeout| timeout <= now) {
            let what =
                format!("node {} is drained, yet its timeout {timeout:?} is not ahead", id.0);
            return Err(Fault::new(now, what));
        }
        let wake = host.node.wake();
        if wake.is_some_and(|wake| wake <= now) {
            return Err(Fault::new(now, format!("the users of node {} never rest", id.0)));
        }
        let wake = wake.filter(|_| held.is_none());
        if let Some(next) = timeout.into_iter().chain(wake).min() {
            let late = match host.clock.lateness {
                Duration::ZERO => Duration::ZERO,
                most => host.rng.span_below(most),
            };
            let at = host.clock.world(next) + late;
            if let Some(held) = &mut host.held {
                held.wake = at;
            }
            self.file_alarm(id, at);
        }
        Ok(())
    }

    /// Sends all that the machine has to send now, as a driver does: what leaves later is held, and it is asked for no
    /// other until then.
    fn send_all(&mut self, id: NodeId, now: Time) -> Result<(), Fault> {
        let mut out = std::mem::take(&mut self.out);
        for count in 0.. {
            let host = &mut self.hosts[id.0];
            if host.held.is_some() {
                break;
            }
            let Some(transmit) = host.node.machine().poll_transmit(now, &mut out) else { break };
            if count >= DRAIN_DATAGRAMS_MAX {
                return Err(Fault::new(now, format!("node {} sends without end", id.0)));
            }
            match transmit.at.filter(|at| *at > now) {
                Some(at) => {
                    let octets = out.datagram.clone();
                    host.held = Some(Held { at, wake: self.now, transmit, octets });
                }
                None => self.depart(id, now, transmit, &out.datagram)?,
            }
        }
        self.out = out;
        Ok(())
    }

    /// Sends the datagram that is held, if its time has come. One that is far too late is lost.
    fn send_held(&mut self, id: NodeId, now: Time) -> Result<(), Fault> {
        let held = self.hosts[id.0].held.take_if(|held| held.at <= now);
        match held {
            Some(Held { at, transmit, octets, .. }) if now.since(at) <= HELD_LATE_MAX => {
                self.depart(id, now, transmit, &octets)
            }
            _ => Ok(()),
        }
    }

    fn depart(
        &mut self,
        id: NodeId,
        now: Time,
        transmit: Transmit,
        octets: &[u8],
    ) -> Result<(), Fault> {
        self.hosts[id.0].node.sent(now, transmit.to, octets.len())?;
        self.send(id, transmit, octets);
        Ok(())
    }

    /// A machine whose timeouts crawl ahead microsecond by microsecond spins as well, whether it sends or not. The links
    /// bound what it sends, its users are few, and turns for nothing have a bound of their own.
    fn count_turn(
        &mut self,
        id: NodeId,
        cause: Cause,
        is_idle: bool,
        sent: u32,
    ) -> Result<(), Fault> {
        let number = self.now.as_micros() / 1_000_000;
        let second = &mut self.hosts[id.0].second;
        if second.number != number {
            *second = Second { number, ..Second::default() };
        }
        if cause == Cause::Alarm {
            second.alarms += 1;
            second.idle_turns += u32::from(is_idle);
        }
        second.datagrams += sent;
        let Second { alarms, idle_turns, datagrams, .. } = *second;
        let totals = &mut self.totals;
        totals.idle_turns_most = totals.idle_turns_most.max(idle_turns);
        totals.alarms_most = totals.alarms_most.max(alarms);
        totals.datagrams_most = totals.datagrams_most.max(datagrams);
        let carried = if sent > 0 { self.datagrams_max(id) } else { u32::MAX };
        for (what, have, most) in [
            ("woke for nothing", idle_turns, IDLE_TURNS_PER_SECOND_MAX),
            ("woke", alarms, ALARMS_PER_SECOND_MAX),
            ("sent", datagrams, carried),
        ] {
            if have > most {
                let what =
                    format!("node {} {what} {have} times in a second, {most} is the most", id.0);
                return Err(Fault::new(self.now, what));
            }
        }
        Ok(())
    }

    /// The most datagrams that a node may send in a second. Where each of its links has a bound, and there is no stream beside
    /// them, these are a few times as many as the links carry and their queues take.
    fn datagrams_max(&self, id: NodeId) -> u32 {
        let has_stream =
            self.streams.iter().any(|stream| stream.is_open && stream.ends.contains(&id));
        let carried = self.internet.capacity(id).filter(|_| !has_stream);
        let most = carried.map_or(u32::MAX, |most| most.saturating_mul(OFFERED_TIMES_MAX));
        most.min(DATAGRAMS_PER_SECOND_MAX)
    }

    fn file_alarm(&mut self, node: NodeId, at: Time) {
        self.hosts[node.0].alarm = self.schedule(at, Event::Alarm { node });
    }

    fn schedule(&mut self, at: Time, event: Event) -> u64 {
        self.number += 1;
        self.events.push(Reverse(Scheduled { at, number: self.number, event }));
        self.number
    }
}

impl<N: Node> Host<N> {
    fn is_awake(&self, world: Time) -> bool {
        self.life != Life::Dead && self.asleep_until.is_none_or(|until| until <= world)
    }

    /// Until when it waits to send what it holds. What it held before it slept is gone.
    fn holds_until(&self, world: Time) -> Option<Time> {
        let held = self.held.as_ref().filter(|_| self.asleep_until.is_none())?;
        Some(held.wake).filter(|wake| *wake > world)
    }

    /// What its clock shows. If it has slept until now, its driver notices that.
    fn wake(&mut self, world: Time) -> Time {
        let local = self.clock.local(world);
        if self.asleep_until.take().is_some() {
            // It is of the network before.
            self.held = None;
            self.node.network_changed(local, Network::Slept);
        }
        local
    }
}

/// Why a node has a turn.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Cause {
    /// Its own timeout, or its users'.
    Alarm,
    /// A datagram, or something outside.
    Event,
}

/// Datagrams in one drain: a message of 4 MiB in the smallest fragments (462 octets) needs 9 079.
const DRAIN_DATAGRAMS_MAX: u32 = 16_384;

/// Turns of a node in one second that moved no datagram and served no user. Some timeouts turn out to be early: guesses
/// are looked at each 50 ms, a frame interval is 20 ms, and the sender has several clocks.
const IDLE_TURNS_PER_SECOND_MAX: u32 = 250;

/// All turns of a node in one second that nothing outside caused.
const ALARMS_PER_SECOND_MAX: u32 = 5_000;

/// How many times what a link carries a node may offer it: stock's policy heeds no bottleneck.
const OFFERED_TIMES_MAX: u32 = 4;

/// Datagrams of a node in one second where nothing bounds them.
const DATAGRAMS_PER_SECOND_MAX: u32 = 5_000;

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use rove_ssp::{Arrival, Machine, Reject, Remote};

    use super::*;
    use crate::link::Profile;
    use crate::rng::Chance;

    /// Sends one datagram in each pause, 10 ms, and counts what comes.
    pub(super) struct Ticker {
        peer: SocketAddr,
        pause: Duration,
        next: Time,
        pub(super) got: Vec<(Time, Remote)>,
        pub(super) hop: Option<Time>,
    }

    impl Machine for Ticker {
        fn handle_datagram(
            &mut self,
            now: Time,
            arrival: Arrival,
            _: &mut [u8],
        ) -> Result<(), Reject> {
            self.got.push((now, arrival.from));
            Ok(())
        }

        fn poll_transmit(&mut self, now: Time, out: &mut Outbox) -> Option<Transmit> {
            if now < self.next {
                return None;
            }
            out.datagram.clear();
            out.datagram.extend_from_slice(&now.as_micros().to_be_bytes());
            self.next = now + self.pause;
            let new_port = self.hop.take_if(|hop| *hop <= now).is_some();
            Some(Transmit { to: self.peer.into(), new_port, at: None })
        }

        fn poll_timeout(&self) -> Option<Time> {
            Some(self.next)
        }
    }

    impl Node for Ticker {
        fn machine(&mut self) -> &mut dyn Machine {
            self
        }

        fn turn(&mut self, _: Time) -> Result<(), Fault> {
            Ok(())
        }

        fn wake(&self) -> Option<Time> {
            None
        }
    }

    fn ticker(peer: SocketAddr) -> Ticker {
        Ticker {
            peer,
            pause: Duration::from_millis(10),
            next: Time::ZERO,
            got: Vec::new(),
            hop: None,
        }
    }

    pub(super) fn pair(seed: u64, profile: Profile) -> (World<Ticker>, NodeId, NodeId) {
        let mut world = World::new(seed);
        let a = world.join(ticker(NodeId(1).address(0, Family::V4)));
        let b = world.join(ticker(NodeId(0).address(0, Family::V4)));
        world.connect(a, b, profile.clone());
        world.connect(b, a, profile);
        (world, a, b)
    }

    #[test]
    fn a_seed_is_a_run() {
        let hash = |seed| {
            let profile = Profile::delay(Duration::from_millis(5)).loss(Chance::percent(20));
            let (mut world, ..) = pair(seed, profile);
            world.set_attacker(Chance::percent(5));
            world.run_until(Time::from_millis(2_000)).unwrap();
            (world.trace_hash(), *world.totals())
        };
        assert_eq!(hash(1), hash(1));
        assert_ne!(hash(1), hash(2));
    }

    #[test]
    fn a_sleeper_neither_acts_nor_hears() {
        let (mut world, a, b) = pair(1, Profile::default());
        world.suspend_at(Time::from_millis(100), a, Duration::from_millis(100));
        world.run_until(Time::from_millis(300)).unwrap();
        for id in [a, b] {
            let asleep = Time::from_millis(101)..Time::from_millis(200);
            assert!(world.node(id).got.iter().all(|(at, _)| !asleep.contains(at)), "{id:?}");
            assert!(world.node(id).got.len() >= 19);
        }
    }

    /// An end that sends without rest is a fault: at once where the link is slow, and else before long.
    #[test]
    fn sending_without_rest_is_a_fault() {
        for (profile, what, most) in [
            (Profile::default(), "woke", ALARMS_PER_SECOND_MAX),
            (Profile::default().rate(64_000, 8_000), "sent", 4 * 307),
            (Profile::default().policer(64_000, 3_000), "sent", 4 * 211),
        ] {
            let (mut world, a, _) = pair(1, profile);
            world.node_mut(a).pause = Duration::from_micros(20);
            let fault = world.run_until(Time::from_millis(900)).unwrap_err();
            assert_eq!(
                fault.what,
                format!("node 0 {what} {} times in a second, {most} is the most", most + 1)
            );
        }
        let (mut world, a, _) = pair(1, Profile::default());
        world.node_mut(a).pause = Duration::from_millis(1);
        world.run_until(Time::from_millis(2_000)).unwrap();
        assert_eq!(world.totals().datagrams_most, 1_000);
    }

    /// One that is due at once, for ever.
    #[test]
    fn a_busy_loop_is_a_fault() {
        struct Busy;
        impl Machine for Busy {
            fn handle_datagram(&mut self, _: Time, _: Arrival, _: &mut [u8]) -> Result<(), Reject> {
                Ok(())
            }
            fn poll_transmit(&mut self, _: Time, _: &mut Outbox) -> Option<Transmit> {
                None
            }
            fn poll_timeout(&self) -> Option<Time> {
                Some(Time::ZERO)
            }
        }
        impl Node for Busy {
            fn machine(&mut self) -> &mut dyn Machine {
                self
            }
            fn turn(&mut self, _: Time) -> Result<(), Fault> {
                Ok(())
            }
            fn wake(&self) -> Option<Time> {
                None
            }
        }
        let mut world = World::new(1);
        world.join(Busy);
        let fault = world.run_until(Time::from_millis(1)).unwrap_err();
        assert!(fault.what.contains("timeout"), "{fault}");
    }
}
