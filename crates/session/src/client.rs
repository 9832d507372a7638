//! The user's end of a session: sends typed keys, receives screens, and paints them
//! (`mosh-protocol.md` §4.4, 4.5, 8).
//!
//! [`Client`] joins the parts and decides which of them a key, a screen or a moment of silence concerns. It
//! does not know how octets travel, which is [`Connection`]'s work, nor what stands on the terminal, which
//! is the painter's.

mod backlog;
pub mod bar;
mod gauge;
mod held_line;
mod inline;
mod interface;
pub(crate) mod keys;
mod late_size;
mod notify;
mod others;
pub(crate) mod overlay;
mod paint;
mod panel;
mod partial;
mod picture;
mod queries;
mod scrollback;
mod secret_lines;
mod server_name;
mod session;
mod source;
mod status;
mod typed;
mod ways_out;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::net::SocketAddr;
use core::time::Duration;

use rove_ssp::{
    Arrival, Config as EndpointConfig, Endpoint, Failure, Machine, Outbox, Reject, Role, Time,
    Transmit,
};
use rove_term::{Dialect, Size, TerminalProperties};
use zeroize::Zeroizing;

use crate::client::bar::{Lifetime, MESSAGE_STAYS, NETWORK_ERROR_STAYS, StatusBar, WARNING_STAYS};
use crate::client::gauge::Gauge;
use crate::client::held_line::HeldLine;
use crate::client::keys::KeyInput;
use crate::client::others::Others;
use crate::client::paint::Painter;
use crate::client::partial::PartialStates;
use crate::client::queries::TerminalQueries;
use crate::client::server_name::ServerName;
use crate::connection::{self, Connection, Patience};
use crate::escape::Commands;
use crate::events::Events;
use crate::input::{Input, OCTETS_MAX, RESIZES_MAX};
use crate::predict::{Display, Predictor, Settings};
use crate::view::{Peer, View};

pub use crate::client::interface::{Config, Event, Exit, Obscure};
pub use crate::client::overlay::TtyScreen;
pub use crate::exit::Cause;

/// Without any contact for this long the session is given up (`mosh-protocol.md` §4.4).
pub const CONTACT_WAIT: Duration = Duration::from_secs(15);

/// The user's end of a session.
pub struct Client {
    connection: Connection<Input, View>,
    server: SocketAddr,
    typing: KeyInput,
    /// How many octets were sent.
    typed: u64,
    obscure: Obscure,
    held_line: HeldLine,
    /// It was found out whether the server can do what was asked for.
    told_of_obscuring: bool,
    /// Streams beside the session were not yet told that somebody types.
    is_active: bool,
    /// Keys were not [wanted](Client::wants_keys) at some time since the last that came.
    keys_unwanted: bool,
    bar: StatusBar,
    gauge: Gauge,
    /// The lines of the status panel, while it is shown. They are of the last sample.
    panel: Option<Vec<String>>,
    /// What its user is told of the server.
    server_name: ServerName,
    painter: Painter,
    /// What the terminal understands, by its name.
    named: Dialect,
    queries: TerminalQueries,
    peer: Peer,
    /// The terminal's properties, as the server knows them.
    announced: TerminalProperties,
    /// The server is told what becomes of a screen that is erased.
    saves_erased: bool,
    predictor: Predictor,
    parts: PartialStates,
    /// A size not sent yet because too many are on their way.
    held_size: Option<Size>,
    others: Others,
    /// Closing the window ends no session that can go on.
    detaches_on_close: bool,
    /// The last picture is the primary screen, since lines above it wait.
    leaves_alternate: bool,
    events: Events<Event>,
}

impl Client {
    /// A client that has not sent anything. Its first state says the window's size.
    pub fn new(now: Time, config: Config) -> Self {
        let endpoint = EndpointConfig {
            role: Role::Client,
            wire: config.wire,
            timing: config.timing,
            peer: Some(config.server),
            local: Input::default(),
            remote: View::new(config.size, config.peer),
            seed: config.seed,
        };
        let patience = Patience { first_contact: Some(CONTACT_WAIT), silence: None };
        let mut connection = Connection::new(now, endpoint, patience);
        connection.update(now, |input| {
            input.push_resize(config.size);
            // Elsewhere the session has a screen without a history.
            let keeps_lines = config.window != TtyScreen::Alternate;
            if config.history_lines > 0 && config.peer == Peer::Rove && keeps_lines {
                input.push_lines_wanted(config.history_lines);
            }
        });
        Self {
            connection,
            server: config.server,
            typing: KeyInput::new(config.escape, Commands::of(config.name)),
            typed: 0,
            obscure: config.obscure,
            held_line: HeldLine::new(),
            is_active: false,
            told_of_obscuring: false,
            keys_unwanted: false,
            bar: StatusBar::new(now, config.name, config.escape),
            gauge: Gauge::new(now),
            panel: None,
            server_name: ServerName::default(),
            painter: Painter::new(now, config.tty, config.window, config.size, config.title_prefix),
            named: config.tty,
            queries: TerminalQueries::new(&config.tty),
            peer: config.peer,
            announced: TerminalProperties::default(),
            saves_erased: false,
            predictor: Predictor::new(Settings::ROVE.with_display(Display::Never)),
            parts: PartialStates::default(),
            held_size: None,
            others: Others::default(),
            detaches_on_close: false,
            leaves_alternate: false,
            events: Events::new(),
        }
    }

    /// Predicts from now on what typed keys will do, and shows it before the server answers. A new client does
    /// not.
    pub fn predict(&mut self, settings: Settings) {
        self.predictor = Predictor::new(settings);
        self.painter.repaint_once();
    }

    /// Applies a datagram's diff in turns from now on: see [`Endpoint::apply_in_parts`]. A new client applies it
    /// at once.
    pub fn apply_in_parts(&mut self) {
        self.connection.apply_in_parts();
    }

    /// The server is called this and, if that is known, is of this version: `build7`, `rove 0.1.0`.
    pub fn name_server(&mut self, host: &str, version: Option<&str>) {
        self.server_name = ServerName::new(host, version);
    }

    /// Leaves the terminal's history as it is when a program erases the one on the host. A new client erases it.
    pub fn keep_history(&mut self) {
        self.painter.keep_history();
    }

    /// Has the server save the screen that a program erases, where the terminal itself does so. A new client does not;
    /// one whose terminal's history gets no lines must not.
    pub fn save_erased(&mut self) {
        self.saves_erased = true;
    }

    /// Takes the lines above the first screen that the server tells for all that were asked for. A new client says how
    /// many lines of the session are missing before them.
    pub fn want_fewer(&mut self) {
        self.painter.wants_fewer = true;
    }

    /// Takes rare branches by this seed, in builds for tests: see [`Endpoint::buggify`].
    pub fn buggify(&mut self, seed: u64) {
        self.connection.buggify(seed);
    }

    /// Whether a diff is applied in part: call [`apply_part`](Self::apply_part) before the next datagram.
    pub fn is_applying(&self) -> bool {
        self.endpoint().is_applying()
    }

    /// Goes on with the last datagram's diff, for a turn.
    pub fn apply_part(&mut self, now: Time) {
        self.connection.apply_part(now);
        self.drain(now);
    }

    /// Takes what the terminal sent in one read: what the user typed, and answers of the terminal itself.
    /// No key is lost before the session is being closed (see [`wants_keys`](Self::wants_keys)), but for those of a
    /// hidden line that ends by itself: they wait for its Enter here, and the bar says that they were not sent.
    pub fn handle_keys(&mut self, now: Time, octets: &[u8]) {
        if core::mem::take(&mut self.keys_unwanted) {
            self.was_put_off(now);
        }
        let before = self.queries.told().clone();
        let keys = Zeroizing::new(self.queries.read(now, octets));
        let told = self.queries.told();
        if *told != before {
            self.painter.set_dialect(self.named.told(told));
            self.events.push(Event::TerminalKnown);
        }
        self.handle_typed(now, &keys);
        self.send_properties(now);
        self.is_active |= !self.is_in_run(now);
    }

    /// Whether more keys may be handed over. While 1 MiB of them waits for the server they may not: leave them
    /// in the terminal. No key that was handed over is ever dropped.
    pub fn wants_keys(&self) -> bool {
        self.endpoint().local().held() < OCTETS_MAX
    }

    /// The terminal was not read between the last [`handle_keys`](Self::handle_keys) and now, although it may have
    /// sent something: this machine slept, or the process was stopped. Times while keys are not
    /// [wanted](Self::wants_keys) need not be told.
    pub fn was_put_off(&mut self, now: Time) {
        self.typing.was_put_off(now);
    }

    /// The user's window has a new size. The picture follows when the server's does.
    pub fn handle_resize(&mut self, now: Time, size: Size) {
        let changed = size != self.painter.size();
        self.painter.resized(now, size);
        if !changed {
            return;
        }
        self.predictor.reset();
        self.held_size = Some(size);
        self.send_size(now);
    }

    /// SIGTERM, SIGINT, SIGHUP or SIGPIPE came: ends the session. A second request to end it, of any kind,
    /// gives up at once.
    pub fn handle_signal(&mut self, now: Time) {
        self.close(now, Cause::Signal);
    }

    /// The program goes on after it was stopped: the terminal shows something else now.
    pub fn resumed(&mut self) {
        self.painter.resumed();
    }

    /// Shows a warning once the server was heard, long enough to be read.
    pub fn warn(&mut self, now: Time, warning: &str) {
        self.bar.warn(now, warning);
    }

    /// Shows in the bar, until the server is heard, why it may be silent.
    pub fn suspect(&mut self, why: &str) {
        self.bar.say(why, Lifetime::UntilContact);
    }

    /// Shows beside the server's silence which remedy is tried, or left to the user; `None`: none is.
    pub fn remedy(&mut self, remedy: Option<String>) {
        self.bar.remedy(remedy);
    }

    /// The next thing for the driver to do.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// Both objects, and all that is known of the server and of the path.
    pub fn endpoint(&self) -> &Endpoint<Input, View> {
        self.connection.endpoint()
    }

    /// The newest state of the server's screen.
    pub fn view(&self) -> &View {
        self.endpoint().remote()
    }

    /// How often guesses were dropped since a frame was none of those expected.
    pub fn dropped_guesses(&self) -> u64 {
        self.predictor.resets()
    }

    fn suspend(&mut self) {
        self.painter.suspends();
        self.events.push(Event::Suspend);
    }

    /// Tells a rove server of the terminal's properties, for programs that ask, once the terminal has answered.
    fn send_properties(&mut self, now: Time) {
        let mut properties = *self.queries.told().properties();
        if self.saves_erased {
            properties.saves_erased = self.painter.dialect().saves_erased();
        }
        let known = self.peer == Peer::Rove || self.endpoint().extensions_agreed();
        if self.connection.is_open()
            && properties != self.announced
            && known
            && !self.queries.is_expecting()
            && self.endpoint().local().resizes() < RESIZES_MAX
        {
            self.announced = properties;
            self.connection.update(now, |input| input.push_properties(properties));
        }
    }

    fn send_size(&mut self, now: Time) {
        if self.connection.is_open()
            && self.endpoint().local().resizes() < RESIZES_MAX
            && let Some(size) = self.held_size.take()
        {
            self.connection.update(now, |input| input.push_resize(size));
        }
    }

    fn close(&mut self, now: Time, cause: Cause) {
        self.held_line.wipe();
        if self.connection.is_open() {
            self.bar.ends(cause);
        }
        self.connection.close(now, cause);
        self.drain(now);
    }

    /// Does what has become due by itself.
    fn tick(&mut self, now: Time) {
        self.note_silence(now);
        self.take_sample(now);
        let typed = self.queries.tick(now);
        self.handle_typed(now, &typed);
        // An escape that was held as the beginning of an answer is not held again as that of a key.
        if !typed.is_empty() || self.typing.due().is_some_and(|time| time <= now) {
            let protocol = self.keyboard_protocol();
            self.typing.release(&protocol);
            self.take_typed(now);
        }
        self.send_properties(now);
        if let Some(cause) = self.connection.overdue(now) {
            self.close(now, cause);
        }
        if self.connection.is_open() && self.bar.contact_due().is_some_and(|time| time <= now) {
            let refused = self.endpoint().stats().rejected.total;
            self.bar.no_contact(self.server.port(), refused);
        }
    }

    /// Notes whether the last state sent holds all that was typed, for the predictor.
    fn note_sent(&mut self) {
        let endpoint = self.connection.endpoint();
        match endpoint.is_told() {
            true => {
                self.parts.sent_whole(endpoint.sent_num());
                self.held_line.on_sent(endpoint.sent_num());
            }
            false => self.parts.sent_part(endpoint.sent_num()),
        }
        self.parts.forget(endpoint.remote().echo_ack());
    }

    /// Takes the lines that the newest state tells of, once.
    fn take_lines(&mut self) {
        let endpoint = self.connection.endpoint();
        if let Some(past) = endpoint.remote().past() {
            self.painter.tell(endpoint.remote_num(), past);
        }
    }

    /// Acts on the connection's events.
    fn drain(&mut self, now: Time) {
        self.take_lines();
        while let Some(event) = self.connection.poll_event() {
            match event {
                connection::Event::NewRemote(_) => {
                    self.bar.heard(now);
                    self.look_at_line(now);
                    self.check_obscuring(now);
                    let session = self.connection.endpoint().remote().session();
                    if let Some(text) = self.others.news(session) {
                        self.bar.say(text, Lifetime::Until(now + WARNING_STAYS));
                    }
                }
                connection::Event::BadRemote(bad) => {
                    self.connection.give_up(Cause::Failed(Failure::BadDiff(bad)));
                }
                connection::Event::Ended(exit) => self.events.push(Event::Exited(Exit {
                    cause: exit.cause,
                    clean: exit.clean,
                    contact: self.connection.has_contact(),
                    server: self.server,
                    status: self.view().exit_status(),
                })),
                // A server says with its last screen why it ends the session.
                connection::Event::FirstContact
                | connection::Event::Roamed(_)
                | connection::Event::PeerClosing => {}
            }
        }
        let endpoint = self.connection.endpoint();
        self.bar.acked(endpoint.acked_sent_at());
        self.bar.awaits(endpoint.awaits_since());
        self.send_size(now);
        self.send_properties(now);
    }
}

impl Machine for Client {
    fn handle_datagram(
        &mut self,
        now: Time,
        arrival: Arrival,
        datagram: &mut [u8],
    ) -> Result<(), Reject> {
        let result = self.connection.handle_datagram(now, arrival, datagram);
        // Forged datagrams are counted and not shown: whoever sends them would like to be noticed. So is a version,
        // which nothing seals on the native wire, once the server is known to speak ours.
        if let Err(Reject::Version { version }) = result
            && !self.connection.has_contact()
        {
            let text =
                format!("The server speaks protocol version {version}, which is not known here.");
            self.bar.say(text, Lifetime::Until(now + 3 * MESSAGE_STAYS));
        }
        self.drain(now);
        result
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Outbox) -> Option<Transmit> {
        if self.connection.lingers() {
            return self.connection.poll_transmit(now, out);
        }
        self.tick(now);
        self.keys_unwanted |= !self.wants_keys();
        let transmit = self.connection.poll_transmit(now, out);
        self.is_active |= transmit.is_some() && self.is_in_run(now);
        self.note_sent();
        self.drain(now);
        transmit
    }

    fn poll_timeout(&self) -> Option<Time> {
        if self.connection.is_over() {
            return self.connection.poll_timeout();
        }
        let contact = self.bar.contact_due().filter(|_| self.connection.is_open());
        let paint = self.bar.next_change(self.painter.painted_at());
        let guesses = self.predictor.poll_timeout();
        let sample = self.panel.as_ref().map(|_| self.gauge.due());
        let painter = self.painter.due().filter(|_| self.cursor_due().is_none());
        let terminal = [self.queries.due(), self.typing.due(), painter];
        [contact, paint, guesses, sample]
            .into_iter()
            .chain(terminal)
            .chain([self.connection.poll_timeout()])
            .flatten()
            .min()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("connection", &self.connection)
            .field("size", &self.painter.size())
            .finish_non_exhaustive()
    }
}
