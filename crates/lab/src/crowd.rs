//! A session whose clients come, leave and are killed, each on a hostile link of its own. Each user types
//! letters that no other has.

use std::time::Duration;

use rove::testing::net::AddressChoice;
use rove::testing::ssh::Candidates;
use rove_session::LetGo;
use rove_session::server::{Full, Joining, Others, PRESENT_FOR, Rights, VIEWERS_MAX};
use rove_ssp::{ConnId, NativeWire, Role, Session as _, SessionSecrets, Time};
use rove_term::{Size, project};

use crate::address::NodeId;
use crate::byte_stream::StreamProfile;
use crate::compare::differences;
use crate::ends::End;
use crate::experiments::sender::{Desk, Sender};
use crate::host::Kind;
use crate::link::{Bursts, Profile};
use crate::local_clock::LocalClock;
use crate::person::User;
use crate::rng::{Chance, Rng};
use crate::session::{Plan, Session, Typing, Usage};
use crate::shell::{ClientEnd, Termios};
use crate::tty::{Answers, Tty};
use crate::world::Fault;

/// The result of a session with several clients.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Outcome {
    /// Clients that joined after the first.
    pub joined: u64,
    /// Clients that left the session to go on.
    pub detached: u64,
    /// Clients that were killed.
    pub killed: u64,
    /// Clients that slept while others took their places, and heard of it.
    pub replaced: u64,
    /// Clients whose session was taken over, and that heard of it.
    pub taken_over: u64,
    /// Clients that slept when the program ended.
    pub slept: u64,
    /// Directions of links on which datagrams leave in bursts.
    pub in_bursts: u64,
    /// Streams that came into use beside UDP.
    pub to_stream: u64,
    /// Streams that ended though both ends lived.
    pub streams_cut: u64,
    /// Keys delivered.
    pub keys: u64,
    /// The most clients at a time.
    pub most: u64,
    /// How often nobody was there.
    pub alone: u64,
    /// Names the run.
    pub hash: u64,
}

/// What has become of a client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fate {
    There,
    Detached,
    Killed,
    /// The session has ended for it alone.
    LetGo,
}

/// One client of the crowd.
struct Member {
    node: NodeId,
    letters: [u8; LETTERS],
    fate: Fate,
}

/// Letters by which a user who types is known.
const LETTERS: usize = 7;

/// Users in one run: each has letters of its own, of those that are no command.
const COMERS_MAX: usize = 13;

/// How long the crowd comes and goes.
const BUSY: Duration = Duration::from_secs(40);

/// The pause between two things that happen, at most.
const PAUSE: Duration = Duration::from_millis(400);

/// How long a healed session may take until all screens are equal.
const CONVERGE: Duration = Duration::from_secs(40);

/// How long before the program's end clients fall asleep, at most: the server still takes them to be there. And how long
/// they sleep: their addresses are forgotten meanwhile.
const DROWSY: Duration = Duration::from_secs(9);
const ASLEEP: Duration = Duration::from_secs(200);

/// How long a client that wakes may take to hear that its session has ended.
const AWAKE: Duration = Duration::from_secs(30);

/// How long a client that comes has until datagrams wait for bursts.
const MEET: Duration = Duration::from_secs(5);

/// How the program ends.
const EXIT_STATUS: i32 = 41;

/// Runs the session of this seed.
///
/// # Errors
/// The first thing that must not happen.
pub fn run(seed: u64) -> Result<Outcome, Fault> {
    let mut rng = Rng::new(seed);
    let mut crowd = Crowd::new(seed, &mut rng);
    let end = Time::ZERO + BUSY;
    while crowd.session.world.now() < end {
        crowd.happen(&mut rng)?;
        let next = crowd.session.world.now() + rng.span_below(PAUSE);
        crowd.session.world.run_until(next)?;
    }
    crowd.converge(&mut rng)?;
    crowd.replace(&mut rng)?;
    if rng.below(2) == 0 {
        crowd.take_over(&mut rng)?;
    }
    crowd.end(&mut rng)?;
    crowd.count_streams();
    crowd.outcome.hash = crowd.session.world.trace_hash();
    Ok(crowd.outcome)
}

struct Crowd {
    session: Session,
    members: Vec<Member>,
    sender: Sender,
    outcome: Outcome,
}

impl Crowd {
    fn new(seed: u64, rng: &mut Rng) -> Crowd {
        let sender = Sender::native();
        let usage = Usage { termios: Termios::Reported, ..Usage::PLAIN };
        let mut session = Session::new(&Plan {
            seed,
            sender: sender.clone(),
            kind: rng.pick(&Kind::ALL),
            typing: Typing::Silent,
            size: window(rng),
            path: Profile::delay(Duration::from_millis(20)),
            usage,
        });
        session.server_mut().server.keep("crowd", true);
        session.world.set_stream_profile(&StreamProfile::delay(Duration::from_millis(50)));
        let first = Member { node: session.client_id, letters: letters(0), fate: Fate::There };
        Crowd { session, members: vec![first], sender, outcome: Outcome::default() }
    }

    fn there(&self) -> Vec<usize> {
        let there = self.members.iter().enumerate();
        there.filter(|(_, it)| it.fate == Fate::There).map(|(index, _)| index).collect()
    }

    fn happen(&mut self, rng: &mut Rng) -> Result<(), Fault> {
        let there = self.there();
        self.outcome.most = self.outcome.most.max(there.len() as u64);
        if there.is_empty() {
            self.outcome.alone += 1;
            return if self.members.len() < COMERS_MAX {
                self.join(Others::Stay, rng)
            } else {
                Ok(())
            };
        }
        let member = rng.pick(&there);
        match rng.below(60) {
            0 if self.members.len() < COMERS_MAX => self.join(Others::Stay, rng),
            1 => self.detach(member),
            2 => self.kill(member),
            3..6 => self.resize(member, window(rng)),
            _ => self.type_keys(member, rng),
        }
    }

    /// Another client comes, if there is room for it.
    fn join(&mut self, others: Others, rng: &mut Rng) -> Result<(), Fault> {
        let number = self.members.len();
        let secrets = SessionSecrets::from_bytes(
            [number as u8; 32],
            [number as u8 + 100; 32],
            [number as u8 + 200; 32],
        );
        let wire = |role| Box::new(NativeWire::new(&secrets, ConnId::new(number as u32 + 9), role));
        let world = &mut self.session.world;
        let (now, server_now) = (world.now(), world.local_now(self.session.server_id));
        let joining = Joining {
            wire: wire(Role::Server),
            timing: self.sender.server.clone(),
            rights: Rights::Type,
            others,
            size_policy: None,
            fill: None,
            screen_rate: Some(rove_session::server::SCREEN_RATE),
            seed: rng.next_u64(),
        };
        let server = &mut world.node_mut(self.session.server_id).host_mut().server;
        if server.join(server_now, joining) == Err(Full) {
            return Ok(());
        }
        let address = world.address(self.session.server_id);
        let size = window(rng);
        let tty = rove_term::Dialect::tty("xterm-256color", "truecolor");
        let desk = Desk { size, tty, window: Usage::PLAIN.window, title_prefix: "" };
        let (wire, seed) = (wire(Role::Client), rng.next_u64());
        let client = self.sender.client(now, wire, address, desk, seed);
        let end = ClientEnd::new(
            client,
            User::silent(),
            Tty::new(size, Answers::Never, rng.fork()),
            AddressChoice::new(now, Candidates { addresses: vec![address], named: 1 }),
            self.sender.limits(),
        );
        let node = world.join_with(End::Person(Box::new(end)), LocalClock::EXACT, rng.fork());
        let server_id = self.session.server_id;
        for (from, to) in [(node, server_id), (server_id, node)] {
            let delay = Duration::from_millis(1 + rng.below(200));
            let path = Profile::delay(delay).loss(Chance::percent(rng.below(35) as u32));
            let is_blocked = rng.happens(Chance::percent(20));
            let blocked = is_blocked.then_some(now..Time::ZERO + BUSY);
            let path = Profile { outages: blocked.into_iter().collect(), ..path };
            // A client that never hears its server gives up before long: at first nothing waits.
            let bursts = rng.happens(Chance::percent(10)).then(|| Bursts {
                span: now + MEET..Time::ZERO + BUSY,
                every: rng.span_within(Duration::from_secs(2), Duration::from_secs(9)),
            });
            self.outcome.in_bursts += u64::from(bursts.is_some() && now + MEET < Time::ZERO + BUSY);
            world.connect(from, to, Profile { bursts, ..path });
        }
        // The ssh that has asked for the client's keys, until it is let go or dies.
        let stream = world.open_stream(node, server_id);
        world.node_mut(node).person_mut().client.stream_opened(now, stream);
        world.close_stream_at(now + rng.span_within(MEET, BUSY), [node, server_id]);
        self.members.push(Member { node, letters: letters(number), fate: Fate::There });
        self.outcome.joined += 1;
        world.poke(server_id)
    }

    fn count_streams(&mut self) {
        let world = &self.session.world;
        self.outcome.streams_cut = world.totals().streams_cut;
        for member in &self.members {
            let stats = world.node(member.node).person().client.endpoint().stats();
            self.outcome.to_stream += stats.to_stream;
        }
    }

    fn client(&mut self, member: usize) -> &mut ClientEnd {
        let node = self.members[member].node;
        self.session.world.node_mut(node).person_mut()
    }

    fn type_keys(&mut self, member: usize, rng: &mut Rng) -> Result<(), Fault> {
        let (now, letters) = (self.session.world.now(), self.members[member].letters);
        let keys: Vec<u8> = (0..=rng.below(3)).map(|_| rng.pick(&letters)).collect();
        self.client(member).type_now(now, &keys);
        self.session.world.poke(self.members[member].node)
    }

    fn resize(&mut self, member: usize, size: Size) -> Result<(), Fault> {
        let now = self.session.world.now();
        let end = self.client(member);
        end.tty.resize(size);
        end.tty.tells_size();
        end.client.handle_resize(now, size);
        self.session.world.poke(self.members[member].node)
    }

    /// The escape key and `d`, if the client knows by now that the session goes on without it.
    fn detach(&mut self, member: usize) -> Result<(), Fault> {
        let now = self.session.world.now();
        if !self.client(member).client.can_detach() {
            return Ok(());
        }
        self.client(member).client.handle_keys(now, b"\x1ed");
        self.members[member].fate = Fate::Detached;
        self.outcome.detached += 1;
        self.session.world.poke(self.members[member].node)
    }

    fn kill(&mut self, member: usize) -> Result<(), Fault> {
        let node = self.members[member].node;
        self.members[member].fate = Fate::Killed;
        self.outcome.killed += 1;
        self.session.world.kill_next(node);
        self.session.world.poke(node)
    }

    /// Heals all links, and waits until all who are there see the same. One more client comes: it does, too.
    fn converge(&mut self, rng: &mut Rng) -> Result<(), Fault> {
        if self.members.len() < COMERS_MAX {
            self.join(Others::Stay, rng)?;
        }
        let server_id = self.session.server_id;
        for member in 0..self.members.len() {
            self.set_loss(member, 0);
        }
        self.session.server_mut().host.stop();
        self.session.world.poke(server_id)?;
        let end = self.session.world.now() + CONVERGE;
        self.session.world.run_until(end)?;
        self.check()
    }

    fn set_loss(&mut self, member: usize, percent: u32) {
        let (node, server_id) = (self.members[member].node, self.session.server_id);
        for (from, to) in [(node, server_id), (server_id, node)] {
            let profile = Profile::delay(Duration::from_millis(50)).loss(Chance::percent(percent));
            self.session.world.set_profile(from, to, profile);
        }
    }

    /// Clients fall asleep, and others come until all places are taken. Those that have lost theirs hear of it once they are
    /// reached again.
    fn replace(&mut self, rng: &mut Rng) -> Result<(), Fault> {
        let (sleeping, awake) = self.fall_asleep(rng);
        self.wait(PRESENT_FOR)?;
        let count = self.members.len() + VIEWERS_MAX - awake.len();
        for _ in self.members.len()..count {
            self.join(Others::Stay, rng)?;
            self.set_loss(self.members.len() - 1, 0);
            self.wait(MEET)?;
        }
        self.join(Others::Stay, rng)?;
        let viewers = self.session.server().server.viewers().count();
        if (viewers, self.members.len()) != (VIEWERS_MAX, count) {
            return Err(self.fault(format!("{viewers} clients are in a session that is full")));
        }
        self.outcome.replaced += sleeping.len() as u64;
        self.wake(&sleeping)?;
        self.check_let_go(&sleeping, LetGo::Replaced)
    }

    /// One more takes the session over from clients of which some sleep.
    fn take_over(&mut self, rng: &mut Rng) -> Result<(), Fault> {
        let all = self.there();
        let (sleeping, _) = self.fall_asleep(rng);
        self.wait(rng.span_below(ASLEEP))?;
        self.join(Others::Leave, rng)?;
        self.set_loss(self.members.len() - 1, 0);
        self.wait(AWAKE)?;
        self.outcome.taken_over += all.len() as u64;
        self.wake(&sleeping)?;
        self.check_let_go(&all, LetGo::TakenOver)
    }

    /// Nothing comes through any more to some of those who are there. Returns these, and the others.
    fn fall_asleep(&mut self, rng: &mut Rng) -> (Vec<usize>, Vec<usize>) {
        self.session.world.close_streams_at(self.session.world.now());
        let (sleeping, awake): (Vec<usize>, Vec<usize>) =
            self.there().into_iter().partition(|_| rng.below(2) == 0);
        for member in &sleeping {
            self.set_loss(*member, 100);
        }
        (sleeping, awake)
    }

    fn wake(&mut self, sleeping: &[usize]) -> Result<(), Fault> {
        for member in sleeping {
            self.set_loss(*member, 0);
        }
        self.wait(AWAKE)
    }

    /// The session has ended for these alone, for this reason.
    fn check_let_go(&mut self, members: &[usize], why: LetGo) -> Result<(), Fault> {
        for number in members {
            let end = self.session.world.node(self.members[*number].node).person();
            let told = end.client.view().session().and_then(|session| session.ended);
            if end.exit.is_none() || told != Some(why) {
                let what = format!("client {number} is told {told:?}: {:?}", end.exit);
                return Err(self.fault(what));
            }
            self.members[*number].fate = Fate::LetGo;
        }
        Ok(())
    }

    fn fault(&self, what: String) -> Fault {
        Fault::new(self.session.world.now(), what)
    }

    /// The program ends while nothing comes through to some of those who are there. All hear how it has ended, these once
    /// they are reached again.
    fn end(&mut self, rng: &mut Rng) -> Result<(), Fault> {
        let (sleeping, awake) = self.fall_asleep(rng);
        self.outcome.slept = sleeping.len() as u64;
        self.wait(rng.span_below(DROWSY))?;
        let server_id = self.session.server_id;
        let now = self.session.world.local_now(server_id);
        self.session.server_mut().server.child_exited(now, EXIT_STATUS);
        self.session.world.poke(server_id)?;
        self.wait(ASLEEP)?;
        self.check_told(&awake)?;
        self.wake(&sleeping)?;
        self.check_told(&sleeping)
    }

    fn wait(&mut self, span: Duration) -> Result<(), Fault> {
        let end = self.session.world.now() + span;
        self.session.world.run_until(end)
    }

    fn check_told(&self, members: &[usize]) -> Result<(), Fault> {
        for number in members {
            let end = self.session.world.node(self.members[*number].node).person();
            let status = end.exit.as_ref().and_then(|exit| exit.status);
            if status != Some(EXIT_STATUS) {
                let what = format!("client {number} is not told of the end: {:?}", end.exit);
                return Err(self.fault(what));
            }
        }
        Ok(())
    }

    fn check(&mut self) -> Result<(), Fault> {
        let fault = |what| Err(self.fault(what));
        let (read, wanted) = (self.session.server().host.typed(), self.session.server());
        for (number, member) in self.members.iter().enumerate() {
            let own: Vec<u8> =
                read.iter().copied().filter(|key| member.letters.contains(key)).collect();
            let end = self.session.world.node(member.node).person();
            let typed = end.user.typed();
            let has_ended = end.exit.is_some();
            // On a bad link the goodbye may stay unanswered, and nobody knows what else did not arrive.
            let all_arrived = match member.fate {
                Fate::Killed | Fate::LetGo => false,
                Fate::There => true,
                Fate::Detached => end.exit.as_ref().is_some_and(|exit| exit.clean),
            };
            let is_whole = if all_arrived { typed == own } else { typed.starts_with(&own) };
            if !is_whole {
                return fault(format!(
                    "of client {number}, {:?}, {} octets came of {}, or in another order",
                    member.fate,
                    own.len(),
                    typed.len()
                ));
            }
            if has_ended != (member.fate == Fate::Detached) {
                return fault(format!("client {number}, {:?}: {:?}", member.fate, end.exit));
            }
            if member.fate != Fate::There {
                continue;
            }
            let view = end.client.view().screen();
            if let Some(difference) = differences(view, wanted.server.screen()).first() {
                return fault(format!("client {number}: {difference}"));
            }
            // Whoever has a window of that size sees all of it.
            let screen = project(wanted.server.screen(), &end.client.dialect());
            let is_its_size = end.tty.screen().size() == screen.size();
            let difference = differences(end.tty.screen(), &screen);
            if let (true, Some(difference)) = (is_its_size, difference.first()) {
                return fault(format!("the terminal of client {number}: {difference}"));
            }
        }
        self.outcome.keys = read.len() as u64;
        Ok(())
    }
}

/// The letters of the user that came as this one.
fn letters(number: usize) -> [u8; LETTERS] {
    let first = b'!' + (number * LETTERS) as u8;
    std::array::from_fn(|index| first + index as u8)
}

fn window(rng: &mut Rng) -> Size {
    Size::clamped(10 + rng.below(40) as u16, 40 + rng.below(100) as u16)
}
