//! One measured session in virtual time: the two machines of rove-session under a [`Load`]. It notes when the user
//! sees the answer to each key, and when each state of the screen.

use std::collections::VecDeque;
use std::time::Duration;

use rove_session::client::TtyScreen;
use rove_session::{Client, Server, server};
use rove_ssp::{Machine, Session, StateNum, Time};
use rove_term::{Dialect, Size, same};

use super::many;
use super::sender::{Desk, Sender};
use crate::address::NodeId;
use crate::ends::End;
use crate::host::{Load, Program, Typist};
use crate::link::{Counters, Profile};
use crate::rng::Rng;
use crate::world::{Fault, Node, World};

/// The plan of a session.
#[derive(Clone, Debug)]
pub struct Plan {
    /// For all chances.
    pub seed: u64,
    /// The send policy.
    pub sender: Sender,
    /// The keys typed and the program that answers them.
    pub load: Load,
    /// The window.
    pub size: Size,
    /// From client to server.
    pub up: Profile,
    /// From server to client.
    pub down: Profile,
}

impl Plan {
    /// A load in its window over one path both ways, before it has a seed.
    pub fn alike(sender: &Sender, load: Load, path: Profile) -> Plan {
        let (sender, size) = (sender.clone(), load.size());
        Plan { seed: 0, sender, load, size, up: path.clone(), down: path }
    }
}

/// The measurements of a session.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// From each key to its answer on the client's screen, in ms.
    pub keys_ms: Vec<f64>,
    /// Keys without an answer at the end.
    pub unanswered: u64,
    /// For each state of the screen, in ms, how long until the client held it or a later one. Those that
    /// it never held are not in it.
    pub ages_ms: Vec<f64>,
    /// Counters of both links.
    pub up: Counters,
    /// The same for the other direction.
    pub down: Counters,
    /// Counters of the server's endpoint, and those of the client's on its datagrams.
    pub down_stats: Counts,
    /// Simulated time.
    pub span: Duration,
}

/// Instructions from the server.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// Sent.
    pub instructions: u64,
    /// Of those, the ones that start from a state that was only assumed to be there.
    pub from_assumed: u64,
    /// Received whole.
    pub received: u64,
    /// Of those, the ones whose base was missing.
    pub unusable: u64,
}

impl Measured {
    /// All runs as one.
    pub fn sum(runs: &[Measured]) -> Measured {
        let mut all = Measured::default();
        runs.iter().for_each(|run| all.add(run.clone()));
        all
    }

    /// Adds another run.
    pub fn add(&mut self, other: Measured) {
        self.keys_ms.extend(other.keys_ms);
        self.unanswered += other.unanswered;
        self.ages_ms.extend(other.ages_ms);
        self.up.add(&other.up);
        self.down.add(&other.down);
        self.down_stats = Counts {
            instructions: self.down_stats.instructions + other.down_stats.instructions,
            from_assumed: self.down_stats.from_assumed + other.down_stats.from_assumed,
            received: self.down_stats.received + other.down_stats.received,
            unusable: self.down_stats.unusable + other.down_stats.unusable,
        };
        self.span += other.span;
    }
}

/// Sessions of a plan, each with a seed of its own, after some time to settle.
///
/// # Errors
/// If a session breaks an invariant.
pub fn sessions(
    plan: &Plan,
    count: u64,
    (settle, span): (Duration, Duration),
) -> Result<Vec<Measured>, Fault> {
    let seeds: Vec<u64> = (1..=count).collect();
    many(&seeds, |&seed| {
        let mut probe = Probe::start(&Plan { seed, ..plan.clone() })?;
        probe.settle(settle)?;
        probe.measure(span)
    })
}

/// A running session.
pub(crate) struct Probe {
    /// Where it runs.
    pub world: World<End<Person, Host>>,
    /// The client's place.
    pub client: NodeId,
    /// The server's.
    pub server: NodeId,
    began: Began,
}

/// The counters at the start.
#[derive(Clone, Copy, Default)]
struct Began {
    at: Time,
    up: Counters,
    down: Counters,
    counts: Counts,
}

/// A client and its user.
pub(crate) struct Person {
    client: Client,
    typist: Option<Typist>,
    next: Option<(Time, u8)>,
    /// When each key was typed, in order, until the server has got it.
    typed: VecDeque<Time>,
    /// How many keys were answered.
    answered: u64,
    /// When each new state was first held.
    held: VecDeque<(StateNum, Time)>,
    newest: StateNum,
}

/// A server and its program.
pub(crate) struct Host {
    server: Server,
    load: Load,
    rng: Rng,
    program: Option<Program>,
    input: Vec<u8>,
    output: Vec<u8>,
    /// Keys the program has read.
    read: u64,
    /// Versions of the screen that the network has not taken: when each was made, and how many keys the
    /// program had read by then.
    fresh: VecDeque<(Time, u64)>,
    /// How many of those the network has taken, but not sent.
    taken: usize,
    /// The same, with the number of the state they first went out with.
    sent: VecDeque<(StateNum, Time, u64)>,
    last: StateNum,
}

impl Probe {
    /// Both ends, in contact, with the load running and nothing measured yet.
    ///
    /// # Errors
    /// What must not happen.
    pub(crate) fn start(plan: &Plan) -> Result<Probe, Fault> {
        let mut rng = Rng::new(plan.seed);
        let [client_wire, server_wire] = plan.sender.wires(&mut rng);
        let mut world = World::new(rng.next_u64());
        let address = world.next_address();
        let server = plan.sender.server(Time::ZERO, server_wire, rng.next_u64());
        let host = Host {
            server,
            load: plan.load,
            rng: rng.fork(),
            program: None,
            input: Vec::new(),
            output: Vec::new(),
            read: 0,
            fresh: VecDeque::new(),
            taken: 0,
            sent: VecDeque::new(),
            last: StateNum::ZERO,
        };
        let server_id = world.join(End::Host(Box::new(host)));
        let tty = Dialect::tty("xterm-256color", "truecolor");
        let window = TtyScreen::Alternate;
        let desk = Desk { size: plan.size, tty, window, title_prefix: "" };
        let client = plan.sender.client(Time::ZERO, client_wire, address, desk, rng.next_u64());
        let person = Person {
            client,
            typist: None,
            next: None,
            typed: VecDeque::new(),
            answered: 0,
            held: VecDeque::new(),
            newest: StateNum::ZERO,
        };
        let client_id = world.join(End::Person(Box::new(person)));
        // ssh went over this path a moment ago: it works.
        world.connect(client_id, server_id, Profile::delay(plan.up.delay));
        world.connect(server_id, client_id, Profile::delay(plan.down.delay));
        world.run_until(Time::ZERO + MEET + 4 * (plan.up.delay + plan.down.delay))?;
        world.set_profile(client_id, server_id, plan.up.clone());
        world.set_profile(server_id, client_id, plan.down.clone());
        let mut probe =
            Probe { world, client: client_id, server: server_id, began: Began::default() };
        probe.person().typist = Some(Typist::new(plan.load, rng.fork()));
        let now = probe.world.now();
        probe.person().schedule(now);
        probe.world.poke(client_id)?;
        Ok(probe)
    }

    /// Runs until `span` from now without measuring, while estimates settle.
    ///
    /// # Errors
    /// If a session breaks an invariant.
    pub(crate) fn settle(&mut self, span: Duration) -> Result<(), Fault> {
        self.world.run_until(self.world.now() + span)?;
        self.take();
        Ok(())
    }

    /// Measures for this span, then lets pending datagrams arrive. Datagrams are those of the span alone.
    ///
    /// # Errors
    /// If a session breaks an invariant.
    pub(crate) fn measure(&mut self, span: Duration) -> Result<Measured, Fault> {
        self.world.run_until(self.world.now() + span)?;
        let mut measured = self.take();
        self.stop()?;
        let late = self.take();
        measured.keys_ms.extend(late.keys_ms);
        measured.ages_ms.extend(late.ages_ms);
        measured.unanswered = late.unanswered;
        Ok(measured)
    }

    /// Stops typing, and gives datagrams on their way half a minute to arrive.
    ///
    /// # Errors
    /// If a session breaks an invariant.
    pub(crate) fn stop(&mut self) -> Result<(), Fault> {
        self.person().typist = None;
        self.person().next = None;
        if let Some(program) = &mut self.host().program {
            program.stop();
        }
        self.world.run_until(self.world.now() + CALM)
    }

    /// The measurements since the last call.
    pub(crate) fn take(&mut self) -> Measured {
        let up = *self.world.link(self.client, self.server).expect("connected").counters();
        let down = *self.world.link(self.server, self.client).expect("connected").counters();
        let now = self.world.now();
        let counts = self.counts();
        let before = std::mem::replace(&mut self.began, Began { at: now, up, down, counts });
        let mut measured = Measured {
            up: up.since(&before.up),
            down: down.since(&before.down),
            down_stats: Counts {
                instructions: counts.instructions - before.counts.instructions,
                from_assumed: counts.from_assumed - before.counts.from_assumed,
                received: counts.received - before.counts.received,
                unusable: counts.unusable - before.counts.unusable,
            },
            span: now.since(before.at),
            ..Measured::default()
        };
        let held = std::mem::take(&mut self.person().held);
        let sent = std::mem::take(&mut self.host().sent);
        let mut rest = sent.into_iter().peekable();
        for (num, at) in held {
            while let Some((_, made, read)) = rest.next_if(|(sent, _, _)| *sent <= num) {
                measured.ages_ms.push(millis(at.since(made)));
                let person = self.person();
                while person.answered < read {
                    person.answered += 1;
                    let typed = person.typed.pop_front().expect("only typed keys are read");
                    measured.keys_ms.push(millis(at.since(typed)));
                }
            }
        }
        self.host().sent = rest.collect();
        measured.unanswered = self.person().typed.len() as u64;
        measured
    }

    /// A key is typed now.
    ///
    /// # Errors
    /// What must not happen.
    pub(crate) fn press(&mut self, key: u8) -> Result<(), Fault> {
        let now = self.world.now();
        let person = self.person();
        person.client.handle_keys(now, &[key]);
        person.typed.push_back(now);
        self.world.poke(self.client)
    }

    /// The client's system says that its network is another now.
    ///
    /// # Errors
    /// What must not happen.
    pub(crate) fn tell_of_move(&mut self) -> Result<(), Fault> {
        let now = self.world.now();
        self.person().client.network_changed(now);
        self.world.poke(self.client)
    }

    /// Changes what both directions do from now on.
    pub(crate) fn set_paths(&mut self, profile: &Profile) {
        self.world.set_profile(self.client, self.server, profile.clone());
        self.world.set_profile(self.server, self.client, profile.clone());
    }

    fn counts(&mut self) -> Counts {
        let server = self.host().server.endpoint().stats();
        let (sent, from_assumed) = (server.states_sent + server.resends, server.from_assumed);
        let client = self.person().client.endpoint().stats();
        Counts {
            instructions: sent,
            from_assumed,
            received: client.states_received + client.stale,
            unusable: client.baseless,
        }
    }

    fn person(&mut self) -> &mut Person {
        self.world.node_mut(self.client).person_mut()
    }

    fn host(&mut self) -> &mut Host {
        self.world.node_mut(self.server).host_mut()
    }
}

impl Person {
    fn schedule(&mut self, now: Time) {
        let next = self.typist.as_mut().and_then(Typist::next_key);
        self.next = next.map(|(pause, key)| (now + pause, key));
    }
}

impl Node for Person {
    fn machine(&mut self) -> &mut dyn Machine {
        &mut self.client
    }

    fn turn(&mut self, now: Time) -> Result<(), Fault> {
        if let Some((at, key)) = self.next.filter(|(at, _)| *at <= now) {
            self.client.handle_keys(now, &[key]);
            self.typed.push_back(now);
            self.schedule(at);
        }
        let newest = self.client.endpoint().remote_num();
        if newest > self.newest {
            self.newest = newest;
            self.held.push_back((newest, now));
        }
        Ok(())
    }

    fn settle(&mut self, now: Time) -> Result<(), Fault> {
        // There is no user to look, and nothing else in a client waits for it.
        self.client.poll_paint(now, &mut Vec::new());
        Ok(())
    }

    fn wake(&self) -> Option<Time> {
        self.next.map(|(at, _)| at)
    }

    fn datagram_too_big(&mut self) {
        self.client.datagram_too_big();
    }
}

impl Node for Host {
    fn machine(&mut self) -> &mut dyn Machine {
        &mut self.server
    }

    fn turn(&mut self, now: Time) -> Result<(), Fault> {
        while let Some(event) = self.server.poll_event() {
            if event == server::Event::FirstContact {
                let size = self.server.screen().size();
                let rng = self.rng.fork();
                let program = Program::start(self.load, now, size, rng, &mut self.output);
                self.program = Some(program);
            }
        }
        let Some(program) = &mut self.program else { return Ok(()) };
        program.tick(now, &mut self.output);
        loop {
            self.server.poll_input(&mut self.input);
            for &key in &self.input {
                program.key(now, key, &mut self.output);
                self.read += 1;
            }
            if self.output.is_empty() {
                break;
            }
            self.server.handle_output(now, &self.output);
            self.output.clear();
            self.fresh.push_back((now, self.read));
        }
        Ok(())
    }

    /// After all was sent: notes which versions went out.
    fn settle(&mut self, _: Time) -> Result<(), Fault> {
        let shown = self.server.endpoint().local().screen();
        if same(shown, self.server.screen(), &Dialect::ROVE) {
            self.taken = self.fresh.len();
        }
        let last = self.server.endpoint().sent_num();
        if last > self.last {
            self.last = last;
            let went = self.fresh.drain(..self.taken);
            self.sent.extend(went.map(|(made, read)| (last, made, read)));
            self.taken = 0;
        }
        Ok(())
    }

    fn wake(&self) -> Option<Time> {
        self.program.as_ref().and_then(Program::next_write)
    }

    fn datagram_too_big(&mut self) {
        self.server.datagram_too_big();
    }
}

fn millis(span: Duration) -> f64 {
    span.as_micros() as f64 / 1e3
}

/// How long the ends have to meet, beside four round trips.
const MEET: Duration = Duration::from_secs(2);

/// How long datagrams on their way have to arrive at the end.
const CALM: Duration = Duration::from_secs(60);
