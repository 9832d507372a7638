//! Runs a [`Scenario`]: lets its session go through the hostile network, heals that, and checks what must be true then.

mod absence;
mod cleared;
mod divergence;
mod floor;
mod lines;
mod ways;

use std::time::Duration;

use rove_session::Peer;
use rove_ssp::{Session as _, Time};

use crate::attacker::Tally;
use crate::compare::are_same;
use crate::counters::{Counters, Rare};
use crate::experiments::sender::WireKind;
use crate::link::Profile;
use crate::obscured::Obscured;
use crate::scenario::{BUSY, CALM, Death, Ending, Scenario};
use crate::session::{Plan, Session, Typing};
use crate::trial::floor::echoed_floor;
use crate::trial::lines::LinesAlike;
use crate::world::{Fault, Notice};

/// The result of a session.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Outcome {
    /// Simulated time.
    pub simulated: Duration,
    /// Of that, how long nobody was there.
    pub away: Duration,
    /// Keys typed, and delivered once and in order.
    pub keys: u64,
    /// Frames the program wrote.
    pub frames: u64,
    /// Pictures compared with what the client meant to paint.
    pub paints: u64,
    /// Datagrams sent.
    pub datagrams: u64,
    /// Datagrams that arrived and were refused.
    pub refused: u64,
    /// Events in the heap.
    pub events: u64,
    /// Minutes in which nothing was cut, so that keys had to be echoed.
    pub minutes_judged: u64,
    /// The most turns that an end had in one second for no datagram and for no user.
    pub idle_turns_most: u32,
    /// The most turns that an end had in one second at times of its own.
    pub alarms_most: u32,
    /// The most datagrams that an end sent in one second.
    pub datagrams_most: u32,
    /// Names the run: equal for equal runs.
    pub hash: u64,
    /// The rare things that happened.
    pub counters: Counters,
    /// What became of slots and hidden lines.
    pub obscured: Obscured,
}

impl Scenario {
    /// Runs it: [`BUSY`] of typing and writing, then the link heals, all that is under way must arrive, nobody is there
    /// for minutes, wrong guesses must go, and the session ends. Where a process was killed, the other one must bear it.
    ///
    /// # Errors
    /// The first thing that must not happen.
    pub fn run(&self) -> Result<Outcome, Fault> {
        Trial::new(self).run()
    }
}

/// A session that is put to the test.
struct Trial<'a> {
    scenario: &'a Scenario,
    session: Session,
    counters: Counters,
    away: Duration,
    minutes_judged: u64,
    long_sleeps: u64,
    lines: LinesAlike,
}

impl<'a> Trial<'a> {
    /// Both ends, over a fair network.
    fn new(scenario: &'a Scenario) -> Trial<'a> {
        let session = Session::new(&Plan {
            seed: scenario.seed,
            sender: scenario.sender.clone(),
            kind: scenario.kind,
            typing: Typing::Busy { resizes: scenario.resizes },
            size: scenario.size,
            // Still fair, as it was a moment ago when ssh went over it.
            path: Profile::delay(scenario.up.delay),
            usage: scenario.usage,
        });
        let mut trial = Trial {
            scenario,
            session,
            counters: Counters::default(),
            away: Duration::ZERO,
            minutes_judged: 0,
            long_sleeps: 0,
            lines: LinesAlike::default(),
        };
        trial.open_stream();
        trial
    }

    fn run(mut self) -> Result<Outcome, Fault> {
        let Session { world, client_id, server_id } = &mut self.session;
        match self.scenario.death {
            Some(Death::Client(turn)) => world.kill_in_turn(*client_id, turn),
            Some(Death::Server(turn)) => world.kill_in_turn(*server_id, turn),
            None => {}
        }
        world.run_until(CALM)?;
        self.unleash();
        self.be_busy()?;
        self.measure_amplification()?;
        self.measure_stream()?;
        let Session { world, client_id, server_id } = &mut self.session;
        if world.is_dead(*client_id) {
            self.outlive_client()?;
        } else if world.is_dead(*server_id) {
            self.outlive_server()?;
        } else {
            world.spare(*client_id);
            world.spare(*server_id);
            self.heal()?;
            self.converge()?;
            self.be_away()?;
            self.converge()?;
            self.clear_screen()?;
            self.contradict()?;
            self.converge()?;
            self.end()?;
        }
        Ok(self.outcome())
    }

    /// From here on the network is the scenario's.
    fn unleash(&mut self) {
        let Session { world, client_id, server_id } = &mut self.session;
        let scenario = self.scenario;
        if let Some(ways) = &scenario.ways {
            world.set_stream_profile(&ways.stream);
            for (at, span) in &ways.cuts {
                world.close_streams_at(*at);
                world.open_stream_at(*at + *span, *client_id, *server_id);
            }
        }
        world.set_attacker(scenario.attacker);
        for (at, notice) in &scenario.roams {
            world.move_at(*at, *client_id, *notice);
        }
        if let Some(at) = scenario.server_moves {
            world.move_at(at, *server_id, Notice::None);
        }
        for (span, family) in &scenario.severed {
            world.sever_at(span.clone(), *server_id, *family);
        }
        for (node, sleeps) in
            [(client_id, &scenario.client_sleeps), (server_id, &scenario.server_sleeps)]
        {
            for (at, span) in sleeps {
                world.suspend_at(*at, *node, *span);
            }
        }
        self.set_paths([&scenario.up, &scenario.down]);
    }

    /// Lets users and programs be busy, and looks each minute how many keys the client knows to be echoed.
    fn be_busy(&mut self) -> Result<(), Fault> {
        let asleep: Duration = self.scenario.client_sleeps.iter().map(|(_, span)| *span).sum();
        let end = Time::ZERO + BUSY + asleep;
        let mut echoed = 0;
        while self.session.world.now() < end {
            let start = self.session.world.now();
            self.session.world.run_until((start + MINUTE).min(end))?;
            let now = self.session.world.now();
            let before = std::mem::replace(&mut echoed, self.session.client().octets_echoed());
            let is_whole = now.since(start) == MINUTE && self.all_live();
            if !is_whole || !self.scenario.is_calm(start..now) {
                continue;
            }
            self.minutes_judged += 1;
            let (count, floor) = (echoed - before, echoed_floor(self.scenario));
            if count < floor {
                let what = format!("{count} octets of keys echoed in a minute, {floor} at least");
                return Err(Fault::new(now, what));
            }
        }
        Ok(())
    }

    fn all_live(&self) -> bool {
        let Session { world, client_id, server_id } = &self.session;
        !world.is_dead(*client_id) && !world.is_dead(*server_id)
    }

    /// On the native wire, an address that is not the client's gets at most three times the octets that came from
    /// it (`docs/wire.md` §8).
    fn measure_amplification(&self) -> Result<(), Fault> {
        let Tally { spent, got } = self.session.world.tally();
        let wire = self.scenario.sender.wire;
        let is_bound = matches!(wire, WireKind::Native | WireKind::NativeInHaste);
        match is_bound && got > 3 * spent {
            true => self.fault(format!("a stranger got {got} octets for {spent}")),
            false => Ok(()),
        }
    }

    /// Heals the link, and stops the attacker, the user and the program.
    fn heal(&mut self) -> Result<(), Fault> {
        self.heal_link();
        let now = self.session.world.local_now(self.session.client_id);
        self.session.client_mut().user.stop();
        self.session.client_mut().hide_status(now);
        self.session.client_mut().end_held_line(now);
        self.session.server_mut().host.stop();
        self.session.world.poke(self.session.client_id)?;
        self.session.world.poke(self.session.server_id)
    }

    /// Waits until both ends hold the same, at most [`CONVERGE_MAX`].
    fn converge(&mut self) -> Result<(), Fault> {
        let end = self.session.world.now() + CONVERGE_MAX;
        loop {
            self.session.world.run_until(self.session.world.now() + SECOND)?;
            let Some(what) = self.divergence() else { return Ok(()) };
            if self.session.world.now() >= end {
                return self.fault(what);
            }
        }
    }

    /// Types to a program that writes another letter for one of those typed. Wrong guesses are gone one round trip
    /// after their answer.
    fn contradict(&mut self) -> Result<(), Fault> {
        // Whatever reads the keys, this ends it.
        self.type_keys(b"\rq\rvi\r")?;
        self.converge()?;
        for letter in *b"aaaabaaaabab" {
            self.type_keys(&[letter])?;
            let step = self.session.world.now() + STEP;
            self.session.world.run_until(step)?;
            let guess = self.unpainted_view().then(|| self.session.client().session().text());
            self.await_keys_read()?;
            self.await_answer()?;
            let answer = self.wanted().text();
            let is_wrong = guess.is_some_and(|guess| guess != answer);
            self.counters.count(Rare::WrongGuess, u64::from(is_wrong));
            self.session.world.run_until(self.session.world.now() + ROUND_TRIP)?;
            if let Some(difference) = self.unpainted() {
                return self.fault(format!("a wrong guess stays: {difference}"));
            }
        }
        Ok(())
    }

    fn await_keys_read(&mut self) -> Result<(), Fault> {
        let end = self.session.world.now() + CONVERGE_MAX;
        while self.session.server().host.typed().len() < self.session.client().user.typed().len() {
            if self.session.world.now() >= end {
                return self.fault("a key on a fair link does not arrive".to_owned());
            }
            self.session.world.run_until(self.session.world.now() + STEP)?;
        }
        Ok(())
    }

    /// Waits until the client holds the screen that answers all keys, and knows that it does. How soon that is depends
    /// on what the ends have learned of the link as it was before.
    fn await_answer(&mut self) -> Result<(), Fault> {
        let end = self.session.world.now() + CONVERGE_MAX;
        let is_metered = self.scenario.sender.is_metered();
        let (mut known, mut events, mut is_same) = (None, None, false);
        loop {
            let now = self.session.world.now();
            let view = self.session.client().client.view();
            // Screens change in turns only.
            let so_far = self.session.world.totals().events;
            if events.replace(so_far) != Some(so_far) {
                let wanted = self.session.server().server.screen();
                is_same = are_same(view.screen(), wanted);
            }
            if is_same {
                let known = *known.get_or_insert(now + ECHO_ACK_WAIT);
                // A newer state may have no keys, and a stock server says nothing of such.
                let client = self.session.client();
                let is_echoed = client.octets_echoed() >= client.client.typed();
                if is_echoed || is_metered && now >= known {
                    return Ok(());
                }
            }
            if now >= end {
                return self.fault("an answer on a fair link does not arrive".to_owned());
            }
            self.session.world.run_until(now + STEP)?;
        }
    }

    fn type_keys(&mut self, keys: &[u8]) -> Result<(), Fault> {
        let client_id = self.session.client_id;
        let now = self.session.world.local_now(client_id);
        self.session.client_mut().type_now(now, keys);
        self.session.world.poke(client_id)
    }

    /// Ends the session from one side or both; both must know.
    fn end(&mut self) -> Result<(), Fault> {
        let Scenario { ending, sender, .. } = self.scenario;
        if matches!(ending, Ending::Quit | Ending::Both) {
            self.quit()?;
        }
        if matches!(ending, Ending::Exit | Ending::Both) {
            self.exit_program()?;
        }
        self.session.world.run_until(self.session.world.now() + END_MAX)?;
        match (&self.session.client().exit, &self.session.server().exit) {
            (Some(at_client), Some(at_server)) if at_client.clean && at_server.clean => {
                let told = at_client.status;
                let wanted =
                    (*ending != Ending::Quit && sender.peer == Peer::Rove).then_some(EXIT_STATUS);
                let past = self.session.client().client.view().past();
                let is_behind = past.is_some_and(|past| past.told() < past.depth());
                if is_behind && *ending == Ending::Exit {
                    return self.fault("lines are missing at the end".to_owned());
                }
                match told == wanted || *ending == Ending::Both && told.is_none() {
                    true => Ok(()),
                    false => self.fault(format!("exit status {told:?}")),
                }
            }
            (at_client, at_server) => {
                self.fault(format!("after {ending:?}: client {at_client:?}, server {at_server:?}"))
            }
        }
    }

    fn quit(&mut self) -> Result<(), Fault> {
        let client_id = self.session.client_id;
        let now = self.session.world.local_now(client_id);
        self.session.client_mut().client.handle_keys(now, b"\x1e.");
        self.session.world.poke(client_id)
    }

    fn exit_program(&mut self) -> Result<(), Fault> {
        let server_id = self.session.server_id;
        let now = self.session.world.local_now(server_id);
        self.session.server_mut().server.child_exited(now, EXIT_STATUS);
        self.session.world.poke(server_id)
    }

    /// The client was killed: the server keeps the program, and is silent once it has forgotten the client's address.
    fn outlive_client(&mut self) -> Result<(), Fault> {
        self.counters.count(Rare::ClientDeath, 1);
        self.heal_link();
        self.session.world.run_until(self.session.world.now() + MINUTE)?;
        let sent = self.session.server().server.endpoint().stats().sent.datagrams;
        let frames = self.session.server().host.frames();
        self.session.world.run_until(self.session.world.now() + 2 * MINUTE)?;
        let end = self.session.server();
        let more = end.server.endpoint().stats().sent.datagrams - sent;
        if more > 0 || end.server.peer().is_some() {
            return self.fault(format!("{more} datagrams to a client that is dead"));
        }
        // A client that died before its first datagram has started nothing.
        let started = end.server.endpoint().last_new_state().is_some();
        if started && (end.exit.is_some() || end.host.frames() == frames) {
            return self.fault(format!("the program died with the client: {:?}", end.exit));
        }
        self.exit_program()?;
        self.session.world.run_until(self.session.world.now() + END_MAX)?;
        match &self.session.server().exit {
            Some(_) => Ok(()),
            None if !started => Ok(()),
            None => self.fault("the server outlives client and program".to_owned()),
        }
    }

    /// The server was killed: the client says so, keeps what was typed, and can be left.
    fn outlive_server(&mut self) -> Result<(), Fault> {
        self.counters.count(Rare::ServerDeath, 1);
        self.heal_link();
        self.session.world.run_until(self.session.world.now() + MINUTE / 2)?;
        self.session.client_mut().user.stop();
        self.session.world.poke(self.session.client_id)?;
        let sent = self.session.client().client.endpoint().stats().sent.datagrams;
        self.session.world.run_until(self.session.world.now() + MINUTE)?;
        let end = self.session.client();
        if end.exit.as_ref().is_some_and(|exit| !exit.contact) {
            return Ok(());
        }
        let more = end.client.endpoint().stats().sent.datagrams - sent;
        if more > ALONE_DATAGRAMS_MAX {
            return self.fault(format!("{more} datagrams in a minute to a server that is dead"));
        }
        // A narrow window cuts the bar.
        let screen = end.session();
        let columns = usize::from(screen.size().cols);
        let words = "rove: Last ";
        let bar = screen.row_text(0);
        if !bar.starts_with(words[..columns.min(words.len())].trim_end()) {
            return self.fault(format!("the bar does not say that the server is silent: {bar}"));
        }
        let (typed, read) = (end.user.typed().len(), self.session.server().host.typed().len());
        let held = end.client.endpoint().local().held() + end.client.keys_held() as u64;
        if held < (typed - read) as u64 {
            return self.fault(format!("{typed} octets typed, {read} read, {held} held"));
        }
        self.quit()?;
        self.session.world.run_until(self.session.world.now() + END_MAX)?;
        match &self.session.client().exit {
            Some(exit) if !exit.clean => Ok(()),
            exit => self.fault(format!("the client, left without a server: {exit:?}")),
        }
    }

    fn fault<T>(&self, what: String) -> Result<T, Fault> {
        Err(Fault::new(self.session.world.now(), what))
    }

    fn outcome(mut self) -> Outcome {
        self.count();
        let totals = self.session.world.totals();
        Outcome {
            simulated: self.session.world.now().since(Time::ZERO),
            away: self.away,
            keys: self.session.client().user.keys(),
            frames: self.session.server().host.frames(),
            paints: self.session.client().paints,
            datagrams: totals.sent,
            refused: totals.refused,
            events: totals.events,
            minutes_judged: self.minutes_judged,
            idle_turns_most: totals.idle_turns_most,
            alarms_most: totals.alarms_most,
            datagrams_most: totals.datagrams_most,
            hash: self.session.world.trace_hash(),
            counters: self.counters,
            obscured: self.session.client().obscured(),
        }
    }

    /// Counts what ends and links know of rare things.
    fn count(&mut self) {
        let Session { world, client_id, server_id } = &self.session;
        let counters = &mut self.counters;
        for (from, to) in [(*client_id, *server_id), (*server_id, *client_id)] {
            if let Some(link) = world.link(from, to) {
                counters.count(Rare::QueueDrop, link.counters().overflowed);
                counters.count(Rare::OversizedDatagram, link.counters().oversized);
                counters.count(Rare::Hold, link.counters().held);
                counters.count(Rare::Bursts, link.counters().burst);
            }
        }
        let (client, server) = (self.session.client(), self.session.server());
        counters.count_stats(client.client.endpoint().stats());
        counters.count_stats(server.server.endpoint().stats());
        counters.count(Rare::AddressChange, client.choices.saturating_sub(1));
        counters.count(Rare::GuessReset, client.client.dropped_guesses());
        counters.count(Rare::SecretLetter, client.user.secrets());
        counters.count(Rare::ScreenSaved, server.screens_saved());
        counters.count(Rare::TerminalAnswer, u64::from(client.tty.has_answered()));
        counters.count(Rare::LateSize, client.user.told_late());
        let totals = world.totals();
        counters.count(Rare::SecondCopy, totals.copies_refused);
        counters.count(Rare::Replay, totals.replays_refused);
        counters.count(Rare::OneWayOutage, totals.one_way_cuts);
        counters.count(Rare::StreamCut, totals.streams_cut);
        counters.count(Rare::ServerMove, world.moves(*server_id));
        counters.count(Rare::LongSleep, self.long_sleeps);
        let sleeps = world.sleeps(*client_id) + world.sleeps(*server_id);
        counters.count(Rare::Sleep, sleeps - self.long_sleeps);
    }
}

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// How often the world is looked at while something is awaited.
const STEP: Duration = Duration::from_millis(5);

/// How long a metered server may take to say which keys its screen answers. It says so with its next screen, which may
/// never come.
const ECHO_ACK_WAIT: Duration = Duration::from_secs(5);

/// The round trip of the healed link.
const ROUND_TRIP: Duration = Duration::from_millis(100);

/// Datagrams of a client in a minute without a server: what waits is said each second, in a few copies where many
/// were lost.
const ALONE_DATAGRAMS_MAX: u64 = 300;

/// How long a healed session may take until both ends are equal. The slowest queue (256 kB at 64 kbit/s) needs
/// 32 s to drain, and after 10 s of silence stock timing tries again each 3 s only.
const CONVERGE_MAX: Duration = Duration::from_secs(90);

/// How long the end of a session may take: stock's 10 s (`mosh-protocol.md` §4.4) and a second.
const END_MAX: Duration = Duration::from_secs(11);

const EXIT_STATUS: i32 = 7;
