//! A mobile shell in virtual time: the two machines of rove-session, a person who types and a scripted program,
//! joined by a [`World`](crate::world::World). After every turn it checks the invariants.

use std::time::Duration;

use rove_session::{Client, Server, client, host, input, server};
use rove_ssp::{ASSEMBLY_BYTES_MAX, Machine, Session, StateNum, Time, Usage};
use rove_term::{Dialect, Size, Terminal, project};

use crate::attacker::ATTACKER;
use crate::compare::differences;
use crate::experiments::sender::Limits;
use crate::host::Host;
use crate::rng::{Chance, Rng};
use crate::world::{Fault, Node};

/// A person at a keyboard: types on and on, and now and then changes the size of the window.
#[derive(Debug)]
pub struct User {
    rng: Rng,
    next_key: Option<Time>,
    next_resize: Option<Time>,
    resizes: Chance,
    typed: Vec<u8>,
    keys: u64,
}

impl User {
    /// A user who begins to type at once. Before each key the size changes with this chance.
    pub fn new(rng: Rng, resizes: Chance) -> User {
        User {
            rng,
            next_key: Some(Time::from_millis(1)),
            next_resize: None,
            resizes,
            typed: Vec::new(),
            keys: 0,
        }
    }

    /// A user who waits for commands.
    pub fn silent() -> User {
        User { next_key: None, ..User::new(Rng::new(0), Chance::NEVER) }
    }

    /// Stops typing.
    pub fn stop(&mut self) {
        self.next_key = None;
        self.next_resize = None;
    }

    /// All that was typed.
    pub fn typed(&self) -> &[u8] {
        &self.typed
    }

    /// Keys typed; one may be several octets.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    fn next(&self) -> Option<Time> {
        self.next_key.into_iter().chain(self.next_resize).min()
    }

    fn act(&mut self, now: Time, client: &mut Client, tty: &mut Terminal) {
        if self.next_resize.is_some_and(|at| at <= now) {
            self.next_resize = None;
            let size =
                Size::clamped(self.rng.within(5, 50) as i64, self.rng.within(10, 140) as i64);
            tty.resize(size);
            client.handle_resize(now, size);
        }
        if self.next_key.is_some_and(|at| at <= now) {
            let key = self.rng.pick(&KEYS);
            self.typed.extend_from_slice(key.as_bytes());
            self.keys += 1;
            client.handle_keys(now, key.as_bytes());
            let pause = self.rng.span_within(KEY_PAUSE.0, KEY_PAUSE.1);
            self.next_key = Some(now + pause);
            if self.next_resize.is_none() && self.rng.happens(self.resizes) {
                self.next_resize = Some(now + self.rng.span_within(MS, pause));
            }
        }
    }
}

/// The person's end, with the terminal it paints on.
#[derive(Debug)]
pub struct ClientEnd {
    /// The machine.
    pub client: Client,
    /// The person.
    pub user: User,
    /// The terminal as painted so far.
    pub tty: Terminal,
    /// The dialect that the client assumes for the terminal.
    pub dialect: Dialect,
    paint: Vec<u8>,
    paints: u64,
    asked: Asked,
    echo_ack: StateNum,
    /// How the session ended here, once it has.
    pub exit: Option<client::Exit>,
    limits: Limits,
}

/// Whether the terminal was asked for its identity.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Asked {
    No,
    Yes,
}

impl ClientEnd {
    /// A client and its user, whose terminal has this size and is taken to understand this dialect. (The terminal
    /// understands all; sequences that the client withholds show in its `dialect`.)
    pub fn new(
        client: Client,
        user: User,
        size: Size,
        dialect: Dialect,
        limits: Limits,
    ) -> ClientEnd {
        let mut tty = Terminal::new(size, Dialect::ROVE);
        tty.advance(&client.tty_open());
        ClientEnd {
            client,
            user,
            tty,
            dialect,
            paint: Vec::new(),
            paints: 0,
            asked: Asked::No,
            echo_ack: StateNum::ZERO,
            exit: None,
            limits,
        }
    }
}

impl Node for ClientEnd {
    fn machine(&mut self) -> &mut dyn Machine {
        &mut self.client
    }

    fn turn(&mut self, now: Time) -> Result<(), Fault> {
        self.user.act(now, &mut self.client, &mut self.tty);
        self.check(now)
    }

    fn settle(&mut self, now: Time) -> Result<(), Fault> {
        self.paint.clear();
        if self.client.poll_paint(now, &mut self.paint) {
            self.paints += 1;
            self.tty.advance(&self.paint);
            // It is asked once for its identity and does not answer: the assumed dialect must stay.
            let replies = self.tty.take_replies();
            if !replies.is_empty() && std::mem::replace(&mut self.asked, Asked::Yes) == Asked::Yes {
                return Err(Fault::new(now, format!("the client's paint asks again: {replies:?}")));
            }
            self.check_terminal(now)?;
        }
        if self.client.poll_paint(now, &mut self.paint) {
            return Err(Fault::new(now, "painting twice in one turn paints twice"));
        }
        while let Some(event) = self.client.poll_event() {
            match event {
                client::Event::Exited(exit) => self.exit = Some(exit),
                other => return Err(Fault::new(now, format!("unexpected {other:?}"))),
            }
        }
        Ok(())
    }

    fn wake(&self) -> Option<Time> {
        self.user.next()
    }

    fn datagram_too_big(&mut self) {
        self.client.datagram_too_big();
    }
}

impl ClientEnd {
    /// Looks at one picture in [`PAINTS_A_LOOK`], so that a wrong frame is named soon after, not by its effect at
    /// the end.
    fn check_terminal(&self, now: Time) -> Result<(), Fault> {
        let Some(shown) = self.client.shown().filter(|_| self.paints.is_multiple_of(PAINTS_A_LOOK))
        else {
            return Ok(());
        };
        match differences(self.tty.screen(), &project(shown, &self.dialect)).first() {
            Some(difference) => {
                Err(Fault::new(now, format!("painted otherwise than meant: {difference}")))
            }
            None => Ok(()),
        }
    }

    fn check(&mut self, now: Time) -> Result<(), Fault> {
        let echo_ack = self.client.view().echo_ack();
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
    input: Vec<u8>,
    output: Vec<u8>,
    echo_ack: StateNum,
    /// How the session ended here, once it has.
    pub exit: Option<server::Exit>,
    limits: Limits,
}

impl ServerEnd {
    /// A server and its program.
    pub fn new(server: Server, host: Host, limits: Limits) -> ServerEnd {
        ServerEnd {
            server,
            host,
            input: Vec::new(),
            output: Vec::new(),
            echo_ack: StateNum::ZERO,
            exit: None,
            limits,
        }
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
            self.server.handle_output(now, &self.output);
            self.output.clear();
        }
        self.check(now)
    }

    fn settle(&mut self, now: Time) -> Result<(), Fault> {
        self.events(now);
        Ok(())
    }

    fn wake(&self) -> Option<Time> {
        self.host.next_frame()
    }

    fn datagram_too_big(&mut self) {
        self.server.datagram_too_big();
    }
}

impl ServerEnd {
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
        let echo_ack = self.server.endpoint().local().echo_ack();
        if echo_ack < self.echo_ack {
            let what = format!("echo ack fell from {:?} to {echo_ack:?}", self.echo_ack);
            return Err(Fault::new(now, what));
        }
        self.echo_ack = echo_ack;
        if self.server.peer() == Some(ATTACKER) {
            return Err(Fault::new(now, "a replayed datagram moved the client's address"));
        }
        if self.server.lost_keys() > 0 {
            return Err(Fault::new(now, "keys were lost though the program reads them"));
        }
        let pending = self.server.pending_input();
        within(now, "octets for the program", pending as u64, host::QUEUE_OCTETS_MAX as u64)?;
        held_within_limits(now, self.server.endpoint().held(), self.limits)
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

/// Looking costs more than painting.
const PAINTS_A_LOOK: u64 = 16;

/// One of each kind (see [`Usage`]).
const ENDPOINT_EVENTS_MAX: usize = 5;

const MS: Duration = Duration::from_millis(1);

/// Five keys a second, at the pace of a person.
const KEY_PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(350));

/// Typed text: no key that the client interprets (Ctrl-^) or that the server rewrites (arrow keys), so that the
/// program must read exactly this.
const KEYS: [&str; 20] = [
    "a", "b", "q", "z", "A", "7", " ", " ", "-", "/", "\r", "\r", "\x7f", "\x03", "\x0c", "\t",
    "é", "漢", "😀", "ls -la\r",
];

/// The longest of them, in octets; a driver that obeys `wants_keys` exceeds the limit by no more.
const KEY_OCTETS_MAX: u64 = 8;
