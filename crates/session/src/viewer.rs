//! One client of a host: its connection, the picture that it has been sent, and the echo acks that its keys
//! are owed (`mosh-protocol.md` §4.4, 4.5).
//!
//! A [`Viewer`] passes its user's keys to the [`Host`] and decides when a new picture is worth a frame to
//! this client. It never touches the terminal. It holds no screens but its endpoint's states, which share
//! their rows with the host's terminal, so a viewer more costs little memory.

mod budget;
mod echo;
mod lines;

use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;

use rove_ssp::{
    Arrival, BadDiff, Config as EndpointConfig, Endpoint, Failure, Machine, Outbox, Point, Reject,
    Remote, Role, Session, StateNum, StreamId, Time, Timing, Transmit, Wire,
};
use rove_term::screen::Buffer;
use rove_term::{Dialect, Screen, Size, Terminal};

use crate::connection::{self, Connection, Patience};
use crate::events::Events;
use crate::exit::{Cause, Exit};
use crate::host::{Host, Picture, Version, ViewerId};
use crate::input::{Event as Typed, Input};
use crate::line_mode::LineReport;
use crate::session_info::{LetGo, SessionInfo};
use crate::view::{Peer, View};
use crate::viewer::budget::FrameBudget;
use crate::viewer::echo::EchoHistory;
use crate::viewer::lines::{Frame, LineTelling, is_path_poor};
use crate::work::LINK_OCTETS_MAX;

pub use crate::viewer::budget::SCREEN_RATE;

/// The parts and settings of a new viewer.
pub struct Config {
    /// The envelope, with its key.
    pub wire: Box<dyn Wire>,
    /// When to send what.
    pub timing: Timing,
    /// Which program the client is.
    pub peer: Peer,
    /// The size of the host's blank screen, if the host takes the size of the client's window before it shows
    /// anything. `None` if others decide on the size as well: then the first frame says it.
    pub size: Option<Size>,
    /// How long the client is waited for. A client that never comes is given up without a word; one that
    /// falls silent is sent the last screen.
    pub patience: Patience,
    /// How much of the path screens may use, in bits a second: [`SCREEN_RATE`] by default. `None` is no limit.
    pub screen_rate: Option<u64>,
    /// Seeds what is random on the wire without being secret.
    pub seed: u64,
}

/// What the budget is charged where a simulation spends it: more than it may be ahead.
const REFUSED_BYTES: usize = 60_000;

/// How long a client may be silent before the end of the program waits for it: it rests 10 s between two
/// datagrams at most.
const AWAY_AFTER: Duration = Duration::from_secs(12);

/// What a client may do in its session.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Rights {
    /// Type, and have a say in the size.
    #[default]
    Type,
    /// Only look. The server drops the client's keys and sizes.
    Look,
}

/// A task for the driver.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The client's first state came.
    FirstContact,
    /// The client is at another address now.
    Roamed(Remote),
    /// The client's session is over. Nothing more is sent.
    Exited(Exit),
}

/// One client of a [`Host`], which is handed to each call that needs it.
pub struct Viewer {
    connection: Connection<View, Input>,
    id: ViewerId,
    peer: Peer,
    budget: FrameBudget,
    echo: EchoHistory,
    /// `Timing::echo_ack_lazy`.
    echo_ack_lazy: Duration,
    /// Where in the user stream the host is.
    consumed: u64,
    /// The last picture that was taken; `None` before the first.
    seen: Option<Version>,
    /// The host was found to have changed since.
    behind: bool,
    rights: Rights,
    /// What the client is told of the session, if it asked.
    session: Option<Arc<SessionInfo>>,
    /// The client has said that it only leaves, or was told to.
    is_leaving: bool,
    /// The newest state whose keys the host holds back.
    held: Option<StateNum>,
    lines: LineTelling,
    /// When the program was found to have ended.
    ended: Option<Time>,
    /// When its client was heard after it had been away.
    back: Option<Time>,
    /// Until when the end of the session waits for lines.
    drains_until: Option<Time>,
    events: Events<Event>,
}

impl Viewer {
    /// A viewer that waits for its client. Its first picture is a whole one.
    pub fn new(now: Time, id: ViewerId, config: Config) -> Self {
        let echo_ack_lazy = config.timing.echo_ack_lazy;
        let close_tries_max = match config.peer {
            // It stays until it hears how the program ended.
            Peer::Rove => u32::MAX,
            Peer::Stock => config.timing.close_tries_max,
        };
        let lines = LineTelling::new(&config.timing);
        let endpoint = EndpointConfig {
            role: Role::Server,
            wire: config.wire,
            timing: Timing { close_tries_max, ..config.timing },
            peer: None,
            local: View::new(config.size.unwrap_or_else(size_of_no_window), config.peer),
            remote: Input::default(),
            seed: config.seed,
        };
        Self {
            connection: Connection::new(now, endpoint, config.patience),
            id,
            peer: config.peer,
            budget: FrameBudget::new(config.screen_rate),
            echo: EchoHistory::default(),
            echo_ack_lazy,
            consumed: 0,
            seen: config.size.map(|_| Version::default()),
            behind: false,
            rights: Rights::Type,
            session: None,
            is_leaving: false,
            held: None,
            lines,
            ended: None,
            back: None,
            drains_until: None,
            events: Events::new(),
        }
    }

    /// Allows the client this, and no more.
    pub fn allow(&mut self, rights: Rights) {
        self.rights = rights;
    }

    /// Of the lines above its first screen the client gets this number at most.
    pub fn fill(&mut self, lines: u64) {
        self.lines.fill(lines);
    }

    /// What the client may do.
    pub fn rights(&self) -> Rights {
        self.rights
    }

    /// Tells the client what its session is. Only for one that asked for it.
    pub fn describe(&mut self, session: SessionInfo) {
        if self.session.as_deref() != Some(&session) {
            self.session = Some(Arc::new(session));
        }
    }

    /// What the client is told of the session.
    pub fn session(&self) -> Option<&SessionInfo> {
        self.session.as_deref()
    }

    /// Ends the session for this client alone, because of another client. If it is away it is told when it is heard again.
    /// From now on it types nothing, and sees nothing newer.
    pub fn let_go(&mut self, now: Time, why: LetGo, other: &str) {
        self.is_leaving = true;
        self.rights = Rights::Look;
        if let Some(session) = &mut self.session {
            let told = Arc::make_mut(session);
            told.ended = Some(why);
            told.who = other.into();
            let told = Arc::clone(session);
            self.connection.update(now, |view| view.describe(told));
        }
        self.connection.close_and_wait(Cause::Closed);
    }

    /// Whether the end of this client's session is not meant to end the program's: it has said that it only leaves,
    /// or was told to.
    pub fn is_leaving(&self) -> bool {
        self.is_leaving
    }

    /// Whether its client was heard in this span.
    pub fn was_heard(&self, now: Time, span: Duration) -> bool {
        self.connection.endpoint().last_heard().is_some_and(|heard| now < heard + span)
    }

    /// Takes a datagram of the client and passes the keys in it to the host: see [`Machine::handle_datagram`].
    pub fn handle_datagram(
        &mut self,
        now: Time,
        arrival: Arrival,
        datagram: &mut [u8],
        host: &mut Host,
    ) -> Result<(), Reject> {
        let was_away = !self.was_heard(now, AWAY_AFTER);
        let result = self.connection.handle_datagram(now, arrival, datagram);
        if was_away && self.was_heard(now, AWAY_AFTER) {
            self.back = Some(now);
        }
        if self.connection.takes(Point::FrameRefused) {
            self.budget.sent(now, REFUSED_BYTES);
        }
        self.drain(now, host);
        self.advance(now, host);
        result
    }

    /// The next datagram for the client: see [`Machine::poll_transmit`].
    pub fn poll_transmit(
        &mut self,
        now: Time,
        host: &mut Host,
        out: &mut Outbox,
    ) -> Option<Transmit> {
        self.advance(now, host);
        let mut transmit = self.connection.poll_transmit(now, out);
        if transmit.is_none() && self.lines_due(host).is_some_and(|time| time <= now) {
            // What was new was no news to the client, so that lines may go.
            self.advance(now, host);
            transmit = self.connection.poll_transmit(now, out);
        }
        self.drain(now, host);
        if transmit.is_some() && !self.lines.is_alone() {
            self.budget.sent(now, out.datagram.len());
        }
        transmit
    }

    /// When to call [`poll_transmit`](Self::poll_transmit) again if nothing happens before, neither here nor
    /// [at the host](Host::poll_timeout): see [`Machine::poll_timeout`].
    pub fn poll_timeout(&self, host: &Host) -> Option<Time> {
        let own = [self.frame_due(host), self.lines_due(host), self.drains_until];
        let own = own.into_iter().flatten().filter(|_| self.connection.is_open());
        own.chain(self.connection.poll_timeout()).min()
    }

    /// The next thing for the driver to do.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// Ends the client's session with the screen as it is. Gives up at once if the session is being ended
    /// already, or if no client came yet.
    pub fn close(&mut self, now: Time, host: &mut Host) {
        if self.connection.is_open() && self.connection.has_contact() {
            self.begin_close(now, host, Cause::Closed);
        } else {
            self.connection.give_up(Cause::Closed);
        }
        self.drain(now, host);
    }

    /// See [`Endpoint::buggify`](rove_ssp::Endpoint::buggify).
    pub fn buggify(&mut self, seed: u64) {
        self.connection.buggify(seed);
    }

    /// See [`Session::network_changed`].
    pub fn network_changed(&mut self, now: Time) {
        self.connection.network_changed(now);
    }

    /// See [`Session::stream_closed`].
    pub fn stream_closed(&mut self, now: Time, stream: StreamId) {
        self.connection.stream_closed(now, stream);
    }

    /// See [`Session::datagram_too_big`].
    pub fn datagram_too_big(&mut self) {
        self.connection.datagram_too_big();
    }

    /// Whether the client can be told of the terminal line's mode: then [`Host::handle_line`] is of use.
    pub fn reports_line(&self) -> bool {
        self.connection.is_open() && self.connection.endpoint().extensions_agreed()
    }

    /// Which of its host's viewers it is.
    pub fn id(&self) -> ViewerId {
        self.id
    }

    /// The session with the client.
    pub fn connection(&self) -> &Connection<View, Input> {
        &self.connection
    }

    /// Both objects, and all that is known of the client and of the path.
    pub fn endpoint(&self) -> &Endpoint<View, Input> {
        self.connection.endpoint()
    }

    /// Does what has become due.
    pub(crate) fn advance(&mut self, now: Time, host: &mut Host) {
        host.advance(now);
        if !self.behind && self.seen != Some(host.version()) {
            self.behind = true;
            self.budget.expire_answer(now);
        }
        match self.connection.overdue(now) {
            Some(Cause::Silence) if self.connection.is_open() => {
                self.begin_close(now, host, Cause::Silence);
            }
            Some(cause) => self.connection.give_up(cause),
            None => {}
        }
        if let Some(num) = self.held.take_if(|_| !host.holds_keys(self.id)) {
            self.echo.push(num, now);
        }
        let has_ended = host.exit_status().is_some() && self.connection.has_contact();
        // A client that sleeps is waited for, if it knows how to come back to what has ended.
        let is_there = self.session.is_none() || self.was_heard(now, AWAY_AFTER);
        self.drains_until = None;
        if has_ended && is_there && self.connection.is_open() {
            self.end(now, host);
        }
        let is_paused = self.ended.is_none() && self.lines.pause(now, self.connection.endpoint());
        if is_paused && self.connection.is_open() {
            let lines = &mut self.lines;
            self.connection.update(now, |view| lines.take_back(view));
        }
        if self.connection.is_open() && self.frame_due(host).is_some_and(|time| time <= now) {
            self.show(now, host.picture(now), host);
        }
        if self.connection.is_open() && self.lines_due(host).is_some_and(|time| time <= now) {
            let lines = &mut self.lines;
            let limits = lines.limits(self.connection.endpoint());
            self.connection.update(now, |view| lines.tell_alone(now, limits, view, host.history()));
        }
        self.drain(now, host);
    }

    /// The program has ended. Its last screen goes at once, and the end follows the last of the lines above it.
    fn end(&mut self, now: Time, host: &Host) {
        if self.ended.is_none() {
            self.ended = Some(now);
            self.lines.end();
            self.show(now, host.last_picture(now), host);
        }
        let local = self.connection.endpoint().local();
        let since = self.ended.max(self.back).unwrap_or(now);
        self.drains_until = self.lines.drains_until(local, since);
        let is_gone = !self.was_heard(now, AWAY_AFTER);
        if is_gone || self.drains_until.is_none_or(|time| time <= now) {
            self.drains_until = None;
            self.show(now, host.last_picture(now), host);
            match &self.session {
                // It may fall asleep at any moment, and comes back for what it was not told.
                Some(_) => self.connection.close_and_wait(Cause::Closed),
                None => self.connection.close(now, Cause::Closed),
            }
        }
    }

    /// When lines are to be told that no frame takes along: not while a frame is.
    fn lines_due(&self, host: &Host) -> Option<Time> {
        let is_shown = self.seen == Some(host.version());
        self.lines.due(self.connection.endpoint()).filter(|_| is_shown)
    }

    /// When the next frame is to be taken: when there is something new for this client and its budget allows.
    ///
    /// Screen and echo ack travel together: a frame that claims to answer a key must show the answer.
    fn frame_due(&self, host: &Host) -> Option<Time> {
        let has_news = self.line_news(host).is_some()
            || self.session_news().is_some()
            || self.lines.is_news(self.connection.endpoint().local());
        let changed = if self.seen != Some(host.version()) || has_news {
            // While a frame is held, so are the echo acks.
            host.held_until(self.seen)
        } else {
            // Keys on a hidden line are kept once the echo ack covers those before.
            let is_kept = host.line().is_some_and(|line| line.may_be_kept);
            let lazy = if is_kept { Duration::ZERO } else { self.echo_ack_lazy };
            self.echo.timeout(host.written(), lazy)?
        };
        Some(changed.max(self.budget.free_at()))
    }

    /// Makes a picture the next state, with the echo acks of all keys that it answers.
    fn show(&mut self, now: Time, picture: Picture, host: &Host) {
        let line = self.line_news(host);
        let session = self.session_news();
        let status = host.exit_status().filter(|_| self.peer == Peer::Rove);
        let echo = self.echo.mature(picture.written);
        let screen = picture.screen.filter(|_| self.seen != Some(picture.version));
        self.seen = Some(picture.version);
        self.behind = picture.version != host.version();
        self.budget.expire_answer(now);
        // Once the program has ended nothing comes that would have to be short.
        let is_path_poor = self.ended.is_none() && is_path_poor(now, self.connection.endpoint());
        let is_ahead = self.budget.is_ahead(now);
        let lines = &mut self.lines;
        self.connection.update(now, |view| {
            let shown = view.screen().clone();
            let is_new = screen.is_some();
            if let Some(mut screen) = screen {
                screen.bound_links(LINK_OCTETS_MAX);
                view.show(screen);
            }
            view.acknowledge_echo(echo);
            view.report(line, status);
            if let Some(session) = session {
                view.describe(session);
            }
            let history = host.history();
            let frame = Frame { history, shown: &shown, is_new, is_ahead, is_path_poor };
            lines.add(now, view, &frame);
        });
    }

    /// The terminal line's mode, if the client can be told and was not.
    fn line_news(&self, host: &Host) -> Option<LineReport> {
        let told = self.connection.endpoint().local().line_report();
        host.line().filter(|_| self.reports_line()).filter(|line| told != Some(*line))
    }

    /// What the client is to be told of the session, if it was not.
    fn session_news(&self) -> Option<Arc<SessionInfo>> {
        let told = self.connection.endpoint().local().session();
        self.session.clone().filter(|session| told != Some(session))
    }

    /// Ends the session with the screen as it is: a state must not change once it is the last
    /// (`mosh-protocol.md` §4.4), so neither the budget nor an update that is not whole holds it back.
    fn begin_close(&mut self, now: Time, host: &Host, cause: Cause) {
        self.show(now, host.last_picture(now), host);
        self.connection.close(now, cause);
    }

    /// Ends the session because of what the client sent. Its last screen says so; the host's does not.
    fn refuse_client(&mut self, now: Time, host: &Host, bad: BadDiff) {
        if !self.connection.is_open() {
            return;
        }
        self.show(now, host.last_picture(now), host);
        self.connection.update(now, |view| view.show(last_words(view.screen(), bad)));
        self.connection.close(now, Cause::Failed(Failure::BadDiff(bad)));
    }

    /// Acts on the connection's events.
    fn drain(&mut self, now: Time, host: &mut Host) {
        while let Some(event) = self.connection.poll_event() {
            match event {
                connection::Event::FirstContact => self.events.push(Event::FirstContact),
                connection::Event::NewRemote(num) => self.consume(now, host, num),
                connection::Event::Roamed(address) => self.events.push(Event::Roamed(address)),
                connection::Event::PeerClosing => {}
                connection::Event::BadRemote(bad) => self.refuse_client(now, host, bad),
                connection::Event::Ended(exit) => self.events.push(Event::Exited(exit)),
            }
        }
    }

    /// Passes what is new in the user stream to the host.
    fn consume(&mut self, now: Time, host: &mut Host, num: StateNum) {
        let input = self.connection.endpoint().remote();
        let mut carried = false;
        for event in input.since(self.consumed) {
            carried = true;
            match event {
                Typed::Leaving => self.is_leaving = true,
                Typed::LinesWanted(wanted) => self.lines.want(wanted),
                _ if self.rights == Rights::Look => {}
                Typed::Keys(octets) => {
                    host.type_keys(now, self.id, octets);
                    self.budget.typed(now);
                    if self.ended.is_none() {
                        self.lines.typed(now);
                    }
                }
                Typed::Resize(size) => host.want_size(self.id, size),
                Typed::TerminalProperties(properties) => {
                    host.set_properties(self.id, *properties);
                }
            }
        }
        self.consumed = self.consumed.max(input.end());
        // The number of the last state is `u64::MAX`: an echo ack could not rise again.
        if carried && num != StateNum::SHUTDOWN {
            match host.holds_keys(self.id) {
                true => self.held = Some(num),
                false => self.echo.push(num, now),
            }
        }
    }
}

/// The size of state 0 at this end where that of the client's is not known: smaller than windows are, so that each
/// diff from it says the size of the screen. Without that the client would apply the diff to a screen of another
/// size.
fn size_of_no_window() -> Size {
    Size::clamped(1, 1)
}

/// The screen with a line below its text that says why the session ends, on the primary grid, which stays on the
/// user's terminal.
fn last_words(screen: &Screen, bad: BadDiff) -> Screen {
    let mut terminal = Terminal::resume(screen.clone(), Dialect::ROVE);
    if terminal.screen().buffer() == Buffer::Alternate {
        terminal.advance(b"\x1b[?1049l");
    }
    // What a program has set of colours and margins is not for this line.
    let fresh = if terminal.screen().cursor().col == 0 { "" } else { "\r\n" };
    let line = format!("\x1b[!p{fresh}rove server: bad data from the client: {}\r\n", bad.0);
    terminal.advance(line.as_bytes());
    terminal.into_screen()
}

impl fmt::Debug for Viewer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Viewer")
            .field("id", &self.id)
            .field("connection", &self.connection)
            .finish_non_exhaustive()
    }
}
