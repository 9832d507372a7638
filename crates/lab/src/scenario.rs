//! Makes a hostile network from a seed, and a session that must come through it whole.

use std::fmt;
use std::time::Duration;

use rove_session::Peer;
use rove_ssp::Time;
use rove_term::{Size, project};

use crate::attacker::Tally;
use crate::compare::differences;
use crate::experiments::sender::{Sender, WireKind};
use crate::host::Kind;
use crate::link::{Jitter, Loss, Order, Oversize, Profile, Rate};
use crate::rng::{Chance, Rng};
use crate::session::{Plan, Session, Typing};
use crate::world::Fault;

/// The network and the events that a session has to come through.
#[derive(Clone, Debug)]
pub struct Scenario {
    seed: u64,
    sender: Sender,
    kind: Kind,
    size: Size,
    resizes: Chance,
    up: Profile,
    down: Profile,
    attacker: Chance,
    roams: Vec<Time>,
    client_sleeps: Vec<(Time, Duration)>,
    server_sleeps: Vec<(Time, Duration)>,
    ending: Ending,
}

/// The end that closes the session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Ending {
    Quit,
    Exit,
}

/// The result of a session.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Outcome {
    /// Simulated time.
    pub simulated: Duration,
    /// Keys typed, and delivered once and in order.
    pub keys: u64,
    /// Frames the program wrote.
    pub frames: u64,
    /// Datagrams sent.
    pub datagrams: u64,
    /// Datagrams that arrived and were refused.
    pub refused: u64,
    /// Events in the heap.
    pub events: u64,
    /// Names the run: equal for equal runs.
    pub hash: u64,
}

impl fmt::Display for Scenario {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{:?}, sent as {}, {} roams, {} + {} sleeps, up {:?}, down {:?}",
            self.kind,
            self.sender.name,
            self.roams.len(),
            self.client_sleeps.len(),
            self.server_sleeps.len(),
            self.up,
            self.down
        )
    }
}

impl Scenario {
    /// The hostile network of this seed: delays up to 2 s, loss up to half of all datagrams, in bursts or not,
    /// duplication, reordering, corruption, slow bottlenecks with deep queues, outages, roaming, sleeps at both
    /// ends, small MTUs without an error message, and an attacker on the path that replays, overtakes, changes
    /// source addresses and reflects.
    pub fn hostile(seed: u64) -> Scenario {
        let mut rng = Rng::new(seed);
        let outages = some(&mut rng, 30, 3, |rng| {
            let start = moment(rng);
            start..start + rng.span_within(SECOND, 20 * SECOND)
        });
        let sender = senders()[rng.below(senders().len() as u64) as usize].clone();
        let mut up = hostile_profile(&mut rng);
        let mut down = hostile_profile(&mut rng);
        // Stock never discovers the MTU, and its datagrams are cut on the way.
        let searches = matches!(sender.wire, WireKind::Native | WireKind::NativeInHaste);
        if searches && rng.happens(Chance::percent(50)) {
            (up.oversize, down.oversize) = (Oversize::Silent, Oversize::Silent);
        }
        up.outages = outages.clone();
        down.outages = outages;
        let sleep = |rng: &mut Rng| (moment(rng), rng.span_within(SECOND, 30 * SECOND));
        Scenario {
            seed: rng.next_u64(),
            sender,
            kind: rng.pick(&Kind::ALL),
            size: rng.pick(&[Size::DEFAULT, Size::clamped(40, 132), Size::clamped(10, 30)]),
            resizes: rng.pick(&[Chance::NEVER, Chance::percent(1), Chance::percent(10)]),
            up,
            down,
            attacker: rng.pick(&[Chance::NEVER, Chance::percent(2)]),
            roams: some(&mut rng, 50, 12, moment),
            client_sleeps: some(&mut rng, 20, 2, sleep),
            server_sleeps: some(&mut rng, 10, 1, sleep),
            ending: rng.pick(&[Ending::Quit, Ending::Exit]),
        }
    }

    /// Runs it: [`BUSY`] of typing and writing, then the link heals, all that is under way must arrive, and
    /// the session ends.
    ///
    /// # Errors
    /// The first thing that must not happen.
    pub fn run(&self) -> Result<Outcome, Fault> {
        let mut trial = Trial(Session::new(&Plan {
            seed: self.seed,
            sender: self.sender.clone(),
            kind: self.kind,
            typing: Typing::Busy { resizes: self.resizes },
            size: self.size,
            // Still fair, as it was a moment ago when ssh went over it.
            path: Profile::delay(self.up.delay),
        }));
        trial.0.world.run_until(CALM)?;
        trial.unleash(self);
        let asleep = self.client_sleeps.iter().map(|(_, span)| *span).sum();
        trial.0.world.run_until(Time::ZERO + BUSY + asleep)?;
        trial.measure_amplification(&self.sender)?;
        trial.heal()?;
        trial.converge()?;
        trial.end(self.ending, self.sender.peer)?;
        Ok(trial.outcome())
    }
}

/// All that two ends may be to each other.
fn senders() -> [Sender; 8] {
    [
        Sender::stock(),
        Sender { name: "stock between two roves", peer: Peer::Rove, ..Sender::stock() },
        Sender::for_stock_client(),
        Sender::for_stock_server(),
        Sender::rove(),
        Sender::native(),
        Sender { wire: WireKind::NativeInHaste, ..Sender::native() },
        Sender { wire: WireKind::NativeInHaste, ..Sender::metered() },
    ]
}

/// A session that is put to the test.
struct Trial(Session);

impl Trial {
    /// From here on the network is the scenario's.
    fn unleash(&mut self, scenario: &Scenario) {
        let Session { world, client_id, server_id } = &mut self.0;
        world.set_profile(*client_id, *server_id, scenario.up.clone());
        world.set_profile(*server_id, *client_id, scenario.down.clone());
        world.set_attacker(scenario.attacker);
        for at in &scenario.roams {
            world.roam_at(*at, *client_id);
        }
        for (node, sleeps) in
            [(client_id, &scenario.client_sleeps), (server_id, &scenario.server_sleeps)]
        {
            for (at, span) in sleeps {
                world.suspend_at(*at, *node, *span);
            }
        }
    }

    /// On the native wire, an address that is not the client's gets at most three times the octets that came from
    /// it (`docs/wire.md` §8).
    fn measure_amplification(&self, sender: &Sender) -> Result<(), Fault> {
        let Tally { spent, got } = self.0.world.tally();
        let is_bound = matches!(sender.wire, WireKind::Native | WireKind::NativeInHaste);
        match is_bound && got > 3 * spent {
            true => {
                let what = format!("a stranger got {got} octets for {spent}");
                Err(Fault::new(self.0.world.now(), what))
            }
            false => Ok(()),
        }
    }

    /// Heals the link, and stops the attacker, the user and the program.
    fn heal(&mut self) -> Result<(), Fault> {
        let fair = Profile::delay(50 * MS);
        self.0.world.set_profile(self.0.client_id, self.0.server_id, fair.clone());
        self.0.world.set_profile(self.0.server_id, self.0.client_id, fair);
        self.0.world.set_attacker(Chance::NEVER);
        self.0.client_mut().user.stop();
        self.0.server_mut().host.stop();
        self.0.world.poke(self.0.client_id)?;
        self.0.world.poke(self.0.server_id)
    }

    /// Waits until both ends hold the same, at most [`CONVERGE_MAX`].
    fn converge(&mut self) -> Result<(), Fault> {
        let end = self.0.world.now() + CONVERGE_MAX;
        loop {
            self.0.world.run_until(self.0.world.now() + SECOND)?;
            let Some(what) = self.divergence() else { return Ok(()) };
            if self.0.world.now() >= end {
                return Err(Fault::new(self.0.world.now(), what));
            }
        }
    }

    /// The differences that remain between the ends.
    fn divergence(&self) -> Option<String> {
        let (client, server) = (self.0.client(), self.0.server());
        let (typed, read) = (client.user.typed(), server.host.typed());
        if typed != read {
            let common = typed.iter().zip(read).take_while(|(a, b)| a == b).count();
            return Some(format!(
                "{} octets typed, {} read, the first {common} equal",
                typed.len(),
                read.len()
            ));
        }
        let wanted = server.server.screen();
        let in_tty = project(wanted, &client.dialect);
        let view = ("view", client.client.view().screen(), wanted);
        for (name, shown, wanted) in [view, ("terminal", client.tty.screen(), &in_tty)] {
            if let Some(difference) = differences(shown, wanted).first() {
                return Some(format!("the client's {name}: {difference}"));
            }
        }
        None
    }

    /// Ends the session from one side; the other must follow, and both must know.
    fn end(&mut self, ending: Ending, peer: Peer) -> Result<(), Fault> {
        let now = self.0.world.now();
        match ending {
            Ending::Quit => {
                self.0.client_mut().client.handle_keys(now, b"\x1e.");
                self.0.world.poke(self.0.client_id)?;
            }
            Ending::Exit => {
                self.0.server_mut().server.child_exited(now, EXIT_STATUS);
                self.0.world.poke(self.0.server_id)?;
            }
        }
        self.0.world.run_until(now + END_MAX)?;
        let fault = |what: String| Err(Fault::new(now + END_MAX, what));
        match (&self.0.client().exit, &self.0.server().exit) {
            (Some(at_client), Some(at_server)) if at_client.clean && at_server.clean => {
                let told = at_client.status;
                let wanted = (ending == Ending::Exit && peer == Peer::Rove).then_some(EXIT_STATUS);
                if told == wanted { Ok(()) } else { fault(format!("exit status {told:?}")) }
            }
            (at_client, at_server) => {
                fault(format!("after {ending:?}: client {at_client:?}, server {at_server:?}"))
            }
        }
    }

    fn outcome(&self) -> Outcome {
        let totals = self.0.world.totals();
        Outcome {
            simulated: self.0.world.now().since(Time::ZERO),
            keys: self.0.client().user.keys(),
            frames: self.0.server().host.frames(),
            datagrams: totals.sent,
            refused: totals.refused,
            events: totals.events,
            hash: self.0.world.trace_hash(),
        }
    }
}

fn hostile_profile(rng: &mut Rng) -> Profile {
    let percent =
        |rng: &mut Rng, most: u64| Chance::per_million(rng.below(most * 10_000 + 1) as u32);
    let delay = MS * rng.pick(&[0, 1, 5, 20, 50, 100, 250, 500, 2_000]);
    let jitter = match rng.below(3) {
        0 => Jitter::None,
        1 => Jitter::Uniform(delay + MS),
        _ => Jitter::Normal(delay / 4),
    };
    let loss = match rng.below(3) {
        0 => Loss::Independent(percent(rng, 5)),
        1 => Loss::Independent(percent(rng, 50)),
        _ => Loss::Bursts {
            enter: percent(rng, 5),
            leave: Chance::percent(rng.within(5, 50) as u32),
            good: percent(rng, 5),
            bad: Chance::percent(rng.within(50, 100) as u32),
        },
    };
    let rate = rng.happens(Chance::percent(33)).then(|| Rate {
        bits_per_second: rng.pick(&[64_000, 256_000, 1_000_000, 10_000_000]),
        queue_bytes_max: rng.pick(&[8_000, 64_000, 256_000]),
    });
    let mut seldom = |most| if rng.below(2) == 0 { Chance::NEVER } else { percent(rng, most) };
    Profile {
        delay,
        jitter,
        loss,
        rate,
        policer: None,
        duplicate: seldom(30),
        reorder: seldom(30),
        corrupt: seldom(5),
        mark: seldom(10),
        straggle: MS * rng.pick(&[1, 50, 1_000, 20_000]),
        order: rng.pick(&[Order::Kept, Order::Free]),
        outages: Vec::new(),
        holds: Vec::new(),
        mtu: rng.pick(&[548, 1_472, 1_472, 1_472]),
        oversize: Oversize::Told,
        ..Profile::default()
    }
}

/// With this chance in percent, between one and `most` of a thing.
fn some<T>(rng: &mut Rng, percent: u32, most: u64, mut make: impl FnMut(&mut Rng) -> T) -> Vec<T> {
    let count = if rng.happens(Chance::percent(percent)) { rng.within(1, most) } else { 0 };
    (0..count).map(|_| make(rng)).collect()
}

/// A time within the busy part.
fn moment(rng: &mut Rng) -> Time {
    CALM + rng.span_below(BUSY - 10 * SECOND)
}

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// How long keys are typed and frames written.
pub const BUSY: Duration = Duration::from_secs(165);

/// When a network becomes hostile. Before that the ends meet: a client that never hears its server gives up
/// after 15 s (`mosh-protocol.md` §4.4), which is another test.
const CALM: Time = Time::from_millis(5_000);

/// How long a healed session may take until both ends are equal. The slowest queue (256 kB at 64 kbit/s) needs
/// 32 s to drain, and after 10 s of silence stock timing tries again each 3 s only.
const CONVERGE_MAX: Duration = Duration::from_secs(90);

/// How long the end of a session may take: stock's 10 s (`mosh-protocol.md` §4.4) and a second.
const END_MAX: Duration = Duration::from_secs(11);

const EXIT_STATUS: i32 = 7;
