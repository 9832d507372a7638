//! A mobile shell in virtual time: the two machines of rove-session, a person who types and a scripted program,
//! joined by a [`World`](crate::world::World). After every turn it checks the invariants.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use rove::testing::LinePoller;
use rove::testing::net::AddressChoice;
use rove_session::{Client, LineMode, Server, ViewerId, client, host, input, server};
use rove_ssp::{ASSEMBLY_BYTES_MAX, Machine, Remote, Session, StateNum, StreamId, Time, Usage};
use rove_term::Screen;

use crate::attacker::ATTACKER;
use crate::erasures::{Cleared, Erasures};
use crate::experiments::sender::Limits;
use crate::host::{Host, SECRET_LETTERS};
use crate::obscured::{Obscured, Watch};
use crate::person::{KEY_OCTETS_MAX, User};
use crate::tty::Tty;
use crate::world::{Fault, Network, Node};

/// The person's end, with the terminal it paints on.
#[derive(Debug)]
pub struct ClientEnd {
    /// The machine.
    pub client: Client,
    /// The person.
    pub user: User,
    /// The terminal as painted so far.
    pub tty: Tty,
    /// How often an address of the server was chosen.
    pub choices: u64,
    /// Paints so far.
    pub paints: u64,
    /// How the session ended here, once it has.
    pub exit: Option<client::Exit>,
    choice: AddressChoice,
    paint: Vec<u8>,
    echo_ack: StateNum,
    limits: Limits,
    watch: Watch,
    /// States whose keys are not known to be echoed, and how many octets had been typed with each. As many as keys wait.
    unechoed: VecDeque<(StateNum, u64)>,
    octets_echoed: u64,
    /// Lines of the terminal's history before this one were painted by another dialect than that of now.
    looks_from: u64,
}

impl ClientEnd {
    /// A client and its user, at this terminal, and the addresses that the client knows of its server.
    pub fn new(
        client: Client,
        user: User,
        mut tty: Tty,
        choice: AddressChoice,
        limits: Limits,
    ) -> ClientEnd {
        let watch = Watch::new(None, Duration::ZERO);
        tty.open(&client.tty_open());
        ClientEnd {
            client,
            user,
            tty,
            choice,
            choices: 0,
            paint: Vec::new(),
            paints: 0,
            echo_ack: StateNum::ZERO,
            exit: None,
            limits,
            watch,
            unechoed: VecDeque::new(),
            octets_echoed: 0,
            looks_from: 0,
        }
    }

    /// Lines of the terminal's history from this one on were painted as the client paints now.
    pub(crate) fn looks_from(&self) -> u64 {
        self.looks_from
    }

    /// Octets of keys whose effect the client knows to be in its view.
    pub(crate) fn octets_echoed(&self) -> u64 {
        self.octets_echoed
    }

    /// What it sends is watched as a listener does.
    pub(crate) fn watched_by(self, watch: Watch) -> ClientEnd {
        ClientEnd { watch, ..self }
    }

    /// What became of slots and hidden lines here.
    pub fn obscured(&self) -> Obscured {
        self.watch.seen()
    }

    /// The session's part of the terminal's screen.
    pub fn session(&self) -> Screen {
        self.tty.session(self.client.rows_above())
    }

    /// The user looks at the server's screen alone.
    pub fn hide_status(&mut self, now: Time) {
        self.user.hide_status(now, &mut self.client, &mut self.tty);
    }

    /// The user ends a hidden line whose keys are held.
    pub fn end_held_line(&mut self, now: Time) {
        if self.client.keys_held() > 0 {
            self.type_now(now, b"\r");
        }
    }

    /// The user types this.
    pub fn type_now(&mut self, now: Time, keys: &[u8]) {
        self.user.type_now(now, &mut self.client, &mut self.tty, keys);
    }
}

impl Node for ClientEnd {
    fn machine(&mut self) -> &mut dyn Machine {
        &mut self.client
    }

    fn turn(&mut self, now: Time) -> Result<(), Fault> {
        let lost = self.watch.after_datagrams(&self.client);
        self.user.forget(self.client.typed(), lost);
        self.tty.speak(now, &mut self.client);
        self.user.act(now, &mut self.client, &mut self.tty);
        self.watch.after_keys(now, &self.client);
        self.check(now)
    }

    fn settle(&mut self, now: Time) -> Result<(), Fault> {
        self.note_sent();
        self.paint.clear();
        if self.client.poll_paint(now, &mut self.paint) {
            self.paints += 1;
            self.tty.take(now, &self.paint).map_err(|what| Fault::new(now, what))?;
            self.check_paint(now)?;
        }
        if self.client.poll_paint(now, &mut self.paint) {
            return Err(Fault::new(now, "painting twice in one turn paints twice"));
        }
        while let Some(event) = self.client.poll_event() {
            match event {
                // Nothing that its own server says may end it so.
                client::Event::Exited(client::Exit {
                    cause: client::Cause::Failed(failure),
                    ..
                }) => {
                    return Err(Fault::new(now, format!("the client fails: {failure:?}")));
                }
                client::Event::Exited(exit) => self.exit = Some(exit),
                client::Event::TerminalKnown => self.looks_from = self.tty.history().end(),
                other => return Err(Fault::new(now, format!("unexpected {other:?}"))),
            }
        }
        Ok(())
    }

    fn wake(&self) -> Option<Time> {
        self.user.next().into_iter().chain(self.tty.next_read()).min()
    }

    fn datagram_too_big(&mut self) {
        self.client.datagram_too_big();
    }

    fn network_changed(&mut self, now: Time, network: Network) {
        if network == Network::Slept {
            self.client.was_put_off(now);
        }
        self.client.network_changed(now);
        self.choice.start_over();
    }

    fn sent(&mut self, now: Time, to: Remote, octets: usize) -> Result<(), Fault> {
        self.watch.sent(now, &self.client, to, octets).map_err(|what| Fault::new(now, what))
    }

    fn stream_opened(&mut self, now: Time, stream: StreamId) {
        self.client.stream_opened(now, stream);
    }

    fn stream_closed(&mut self, now: Time, stream: StreamId) {
        self.client.stream_closed(now, stream);
    }

    fn targets(&mut self, now: Time, _: SocketAddr) -> Vec<SocketAddr> {
        self.choice.targets(now)
    }

    fn heard(&mut self, now: Time, from: SocketAddr) {
        self.choices += u64::from(self.choice.heard(now, from).is_some());
    }
}

impl ClientEnd {
    /// Compares the terminal with the picture that the client meant, and looks for letters of passwords.
    fn check_paint(&mut self, now: Time) -> Result<(), Fault> {
        let Some(meant) = self.client.shown() else { return Ok(()) };
        let hidden = if self.user.secrets() > 0 { SECRET_LETTERS } else { "" };
        self.tty
            .compare(meant, self.client.rows_above(), &self.client.dialect(), hidden)
            .map_err(|what| Fault::new(now, format!("painted otherwise than meant: {what}")))
    }

    /// Notes which keys the newest state has, if it was sent as a whole.
    fn note_sent(&mut self) {
        let endpoint = self.client.endpoint();
        let state = endpoint.sent_num();
        if endpoint.is_told() && self.unechoed.back().is_none_or(|(last, _)| *last < state) {
            self.unechoed.push_back((state, self.client.typed()));
        }
    }

    fn check(&mut self, now: Time) -> Result<(), Fault> {
        let echo_ack = self.client.view().echo_ack();
        while let Some((_, octets)) = self.unechoed.pop_front_if(|(state, _)| *state <= echo_ack) {
            self.octets_echoed = octets;
        }
        if echo_ack < self.echo_ack {
            let what = format!("echo ack fell from {:?} to {echo_ack:?}", self.echo_ack);
            return Err(Fault::new(now, what));
        }
        self.echo_ack = echo_ack;
        let input = self.client.endpoint().local();
        within(now, "octets of input", input.held(), input::OCTETS_MAX + KEY_OCTETS_MAX)?;
        within(now, "resizes", input.resizes() as u64, input::RESIZES_MAX as u64)?;
        held_within_limits(now, self.client.endpoint().held(), self.limits)
    }
}

/// The program's end.
#[derive(Debug)]
pub struct ServerEnd {
    /// The machine.
    pub server: Server,
    /// The program.
    pub host: Host,
    /// How the session ended here, once it has.
    pub exit: Option<server::Exit>,
    termios: Termios,
    poller: LinePoller,
    input: Vec<u8>,
    output: Vec<u8>,
    echo_acks: BTreeMap<ViewerId, StateNum>,
    limits: Limits,
    erasures: Erasures,
}

/// Whether the server looks at the mode of its program's line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Termios {
    /// Never, as a stock server.
    Ignored,
    /// With every key and output.
    Reported,
    /// At the times at which ours does, so that keys of a hidden line may be kept.
    Polled,
}

impl ServerEnd {
    /// A server and its program.
    pub fn new(server: Server, host: Host, termios: Termios, limits: Limits) -> ServerEnd {
        ServerEnd {
            server,
            host,
            termios,
            poller: LinePoller::new(),
            input: Vec::new(),
            output: Vec::new(),
            echo_acks: BTreeMap::new(),
            exit: None,
            limits,
            erasures: Erasures::new(Cleared::Lost),
        }
    }

    /// The same for a session whose terminal does this with a screen that is cleared.
    pub(crate) fn cleared(self, cleared: Cleared) -> ServerEnd {
        ServerEnd { erasures: Erasures::new(cleared), ..self }
    }

    /// How many screens went into the history as the program erased them.
    pub(crate) fn screens_saved(&self) -> u64 {
        self.erasures.saved()
    }

    /// The program writes this in the next turn.
    pub(crate) fn say(&mut self, octets: &[u8]) {
        self.output.extend_from_slice(octets);
    }
}

impl Node for ServerEnd {
    fn machine(&mut self) -> &mut dyn Machine {
        &mut self.server
    }

    fn turn(&mut self, now: Time) -> Result<(), Fault> {
        self.events(now);
        self.host.tick(now, &mut self.output);
        loop {
            self.server.poll_input(&mut self.input);
            if self.input.is_empty() && self.output.is_empty() {
                break;
            }
            self.host.input(&self.input, &mut self.output);
            self.look_at_line(now);
            let written = self.erasures.write(now, &mut self.server, &self.output);
            written.map_err(|what| Fault::new(now, what))?;
            self.output.clear();
        }
        if self.termios == Termios::Polled && self.poller.next().is_some_and(|next| next <= now) {
            self.poll_line(now);
        }
        self.check(now)
    }

    fn settle(&mut self, now: Time) -> Result<(), Fault> {
        self.events(now);
        Ok(())
    }

    fn wake(&self) -> Option<Time> {
        // The mode changes in turns alone: of a line that is not hidden, looks between them say nothing new.
        let looks = self.termios == Termios::Polled && self.host.line() == LineMode::Hidden;
        self.host.next_frame().into_iter().chain(self.poller.next().filter(|_| looks)).min()
    }

    fn datagram_too_big(&mut self) {
        self.server.datagram_too_big();
    }

    fn network_changed(&mut self, now: Time, _: Network) {
        self.server.network_changed(now);
    }

    fn stream_closed(&mut self, now: Time, stream: StreamId) {
        self.server.stream_closed(now, stream);
    }
}

impl ServerEnd {
    /// The program has read keys, or written.
    fn look_at_line(&mut self, now: Time) {
        match self.termios {
            Termios::Ignored => {}
            Termios::Reported if self.server.reports_line() => {
                self.server.handle_line(self.host.line());
            }
            Termios::Reported => {}
            Termios::Polled => {
                if !self.input.is_empty() {
                    self.poller.on_keys(now, &self.input);
                }
                if !self.output.is_empty() {
                    self.poller.on_output(now);
                }
                self.poll_line(now);
            }
        }
    }

    fn poll_line(&mut self, now: Time) {
        let report = self.poller.looked(now, self.host.line());
        if self.server.reports_line() {
            self.server.handle_line(report);
        }
    }

    fn events(&mut self, now: Time) {
        while let Some(event) = self.server.poll_event() {
            match event {
                server::Event::FirstContact => {
                    let size = self.server.screen().size();
                    self.host.start(now, size, &mut self.output);
                }
                server::Event::Resize(size) => self.host.resize(size),
                server::Event::Exited(exit) => self.exit = Some(exit),
                // Where the client is, the checks see for themselves.
                _ => {}
            }
        }
    }

    fn check(&mut self, now: Time) -> Result<(), Fault> {
        for viewer in self.server.viewers() {
            let echo_ack = viewer.endpoint().local().echo_ack();
            let before = self.echo_acks.insert(viewer.id(), echo_ack);
            if let Some(before) = before.filter(|before| echo_ack < *before) {
                let what = format!("echo ack fell from {before:?} to {echo_ack:?}");
                return Err(Fault::new(now, what));
            }
            held_within_limits(now, viewer.endpoint().held(), self.limits)?;
        }
        if self.server.peer() == Some(ATTACKER.into()) {
            return Err(Fault::new(now, "a replayed datagram moved the client's address"));
        }
        if self.server.lost_keys() > 0 {
            return Err(Fault::new(now, "keys were lost though the program reads them"));
        }
        let pending = self.server.pending_input();
        within(now, "octets for the program", pending as u64, host::QUEUE_OCTETS_MAX as u64)
    }
}

/// Every queue of an endpoint against its limit.
fn held_within_limits(now: Time, held: Usage, limits: Limits) -> Result<(), Fault> {
    for (what, have, max) in [
        ("sent states", held.sent_states, limits.sent_states),
        ("received states", held.received_states, limits.received_states + 1),
        ("octets of received states", held.received_bytes, 2 * limits.received_bytes),
        ("octets of fragments", held.assembly_bytes, limits.assemblies * ASSEMBLY_BYTES_MAX),
        ("events", held.events, ENDPOINT_EVENTS_MAX),
    ] {
        within(now, what, have as u64, max as u64)?;
    }
    Ok(())
}

fn within(now: Time, what: &str, have: u64, max: u64) -> Result<(), Fault> {
    if have > max {
        return Err(Fault::new(now, format!("{have} {what} are held, {max} is the limit")));
    }
    Ok(())
}

/// One of each kind (see [`Usage`]).
const ENDPOINT_EVENTS_MAX: usize = 5;
