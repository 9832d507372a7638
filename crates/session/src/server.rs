//! The host's end: a terminal emulator between a program's pty and the network (`mosh-protocol.md`
//! §4.4, 4.5, 5.3, 7).
//!
//! It owns the emulator, and decides what the program reads and when a new screen is worth a frame.
//! [`Endpoint`] sends the screen; the driver owns the pty.

mod budget;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::vec::Vec;
use core::fmt;
use core::mem::discriminant;
use core::net::SocketAddr;
use core::time::Duration;

use rove_ssp::{
    Arrival, BadDiff, Config as EndpointConfig, Endpoint, Event as EndpointEvent, Failure, Machine,
    Outbox, Reject, Role, RttEstimator, Session, StateNum, Stats, Time, Timing, Transmit, Usage,
    Wire,
};
use rove_term::screen::Buffer;
use rove_term::{Checksums, Dialect, Screen, Size, Terminal};

use crate::input::{Event as Typed, Input};
use crate::line_mode::LineMode;
use crate::pty::{CursorKeys, PtyInput};
use crate::server::budget::{ANSWER_LAST, ANSWER_WAIT, EchoHistory, FrameBudget};
use crate::view::{Peer, View};
use crate::work::{LINK_OCTETS_MAX, TURN_CELLS};

pub use crate::exit::{Cause, Exit};
pub use crate::server::budget::SCREEN_RATE;

/// What a server is made of.
pub struct Config {
    /// The envelope, with its key.
    pub wire: Box<dyn Wire>,
    /// When to send what.
    pub timing: Timing,
    /// What the client understands.
    pub peer: Peer,
    /// The pty's size until the client says its own.
    pub size: Size,
    /// How long to wait for the client's first state: [`CLAIM_WAIT`] by default.
    pub claim_wait: Duration,
    /// Silence of the client (no new state) after which the session ends. `None`: it waits for ever.
    pub network_timeout: Option<Duration>,
    /// What screens may cost, in bits a second: [`SCREEN_RATE`] by default. `None` is no limit.
    pub screen_rate: Option<u64>,
    /// Seeds what is random on the wire without being secret.
    pub seed: u64,
}

/// What the driver is to do.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The first state of a client came: the program may start.
    FirstContact,
    /// Set the pty's size.
    Resize(Size),
    /// The client is at another address now.
    Roamed(SocketAddr),
    /// The session is over. Nothing more is sent.
    Exited(Exit),
}

/// How long a server waits for its client's first state (`mosh-protocol.md` §1.3).
pub const CLAIM_WAIT: Duration = Duration::from_secs(60);

/// The shortest time between two changes of the pty's size (threats row 9: at most 20 a second). Of
/// those that come sooner the latest counts.
const RESIZE_INTERVAL: Duration = Duration::from_millis(50);

/// How long a program's update (mode 2026) is not shown before it is whole. A program that was stopped
/// in the middle must not freeze the screen.
const UPDATE_MAX: Duration = Duration::from_millis(150);

/// The host's end of a session.
pub struct Server {
    endpoint: Endpoint<View, Input>,
    peer: Peer,
    terminal: Terminal,
    /// The emulator has shown something since the last frame was taken.
    dirty: bool,
    /// The update that the program has begun and not ended.
    update: Option<Update>,
    pace: FrameBudget,
    /// When the first frame that answers the last keys is to be taken, if the screen is ahead of its pace.
    answer: Option<Time>,
    history: EchoHistory,
    /// What the terminal line did with keys when it was last looked at.
    line: Option<LineMode>,
    /// `Timing::echo_ack_lazy`.
    echo_ack_lazy: Duration,
    pty: PtyInput,
    /// Where in the user stream the program is.
    consumed: u64,
    resize: Resize,
    /// When a server that no client came to ends.
    unclaimed_ends: Time,
    network_timeout: Option<Duration>,
    child: Child,
    /// Why it is being closed, once it is.
    cause: Option<Cause>,
    events: VecDeque<Event>,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    /// No client yet.
    Unclaimed,
    Running,
    /// The last screen is on its way.
    Closing,
    Over,
}

/// An update of the screen that the program brackets (mode 2026).
#[derive(Clone, Copy, Debug)]
struct Update {
    since: Time,
    before: Before,
}

/// The picture before an update, which the emulator keeps.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Before {
    /// It may be news.
    New,
    /// It was handed to the network.
    Taken,
}

/// The program at the pty's other side.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Child {
    /// Or has not begun.
    Runs,
    Gone,
}

/// Sizes on their way to the pty.
#[derive(Debug, Default)]
struct Resize {
    wanted: Option<Size>,
    applied: Option<Time>,
}

impl Resize {
    fn due(&self) -> Option<Time> {
        self.wanted?;
        Some(self.applied.map_or(Time::ZERO, |applied| applied + RESIZE_INTERVAL))
    }
}

impl Server {
    /// A server that waits for its client.
    pub fn new(now: Time, config: Config) -> Self {
        let echo_ack_lazy = config.timing.echo_ack_lazy;
        let endpoint = EndpointConfig {
            role: Role::Server,
            wire: config.wire,
            timing: config.timing,
            peer: None,
            local: View::new(config.size, config.peer),
            remote: Input::default(),
            seed: config.seed,
        };
        Self {
            endpoint: Endpoint::new(now, endpoint),
            peer: config.peer,
            // What programs write goes through the full emulator, whoever looks at it.
            terminal: Terminal::new(config.size, Dialect::ROVE),
            dirty: false,
            update: None,
            pace: FrameBudget::new(config.screen_rate),
            answer: None,
            history: EchoHistory::default(),
            line: None,
            echo_ack_lazy,
            pty: PtyInput::default(),
            consumed: 0,
            resize: Resize::default(),
            unclaimed_ends: now + config.claim_wait,
            network_timeout: config.network_timeout,
            child: Child::Runs,
            cause: None,
            events: VecDeque::new(),
            phase: Phase::Unclaimed,
        }
    }

    /// Decides whether programs may ask for checksums of the screen (DECRQCRA): by default not, since one of
    /// a single cell tells what stands there.
    pub fn set_checksums(&mut self, checksums: Checksums) {
        self.terminal.set_checksums(checksums);
    }

    /// Takes what the program wrote, whatever work that is. Once the session is being closed it is too late for
    /// output.
    pub fn handle_output(&mut self, now: Time, octets: &[u8]) {
        let mut taken = self.handle_output_part(now, octets);
        while taken < octets.len() {
            taken += self.handle_output_part(now, &octets[taken..]);
        }
    }

    /// The same, but no more than the work of a turn ([`TURN_CELLS`]). Returns how many octets were taken, at least
    /// one unless there is none. Give the rest again after a look at keys and datagrams.
    #[must_use = "what is not taken is to be given again"]
    pub fn handle_output_part(&mut self, now: Time, octets: &[u8]) -> usize {
        if !self.is_open() {
            return octets.len();
        }
        self.history.wrote(now);
        let begun = self.terminal.updates_begun();
        let taken = self.terminal.advance_within(octets, TURN_CELLS);
        self.pty.reply(&self.terminal.take_replies());
        if !self.dirty {
            // What comes this late answers no key.
            self.answer = self.answer.filter(|&answer| now < answer + ANSWER_LAST);
        }
        self.dirty = true;
        if !self.terminal.screen().modes().synchronized {
            self.update = None;
        } else if self.update.is_none() || self.terminal.updates_begun() != begun {
            self.update = Some(Update { since: now, before: Before::New });
        }
        taken
    }

    /// Takes what the program's terminal line does with keys now. Look after each batch of output, before
    /// it is handed over, and whenever the program may have changed it: what a frame says is believed of
    /// all that its echo ack covers.
    pub fn handle_line(&mut self, mode: LineMode) {
        self.line = Some(mode);
    }

    /// Whether [`handle_line`](Self::handle_line) is of use: the client can be told.
    pub fn reports_line(&self) -> bool {
        self.is_open() && self.endpoint.extensions_agreed()
    }

    /// The program ended with this status. The last screen goes out with the end of the session; if no
    /// client came yet, it waits for one as long as the program would have.
    pub fn child_exited(&mut self, now: Time, status: i32) {
        if !self.is_open() {
            return;
        }
        if self.peer == Peer::Rove {
            self.endpoint.update(now, |view| view.end(status));
        }
        self.child = Child::Gone;
        self.tick(now);
    }

    /// Ends the session: on SIGTERM, or when the pty has nobody at its other side. A second call, or one
    /// before any client came, gives up at once.
    pub fn close(&mut self, now: Time) {
        match self.phase {
            Phase::Running => self.begin_close(now, Cause::Closed),
            Phase::Unclaimed | Phase::Closing => self.end(Cause::Closed, false),
            Phase::Over => {}
        }
    }

    /// Clears `out` and puts the next octets for the program there, at most
    /// [`CHUNK_OCTETS_MAX`](crate::pty::CHUNK_OCTETS_MAX). None: nothing waits. Call when the pty takes
    /// octets; what it does not take is the caller's to keep.
    pub fn poll_input(&mut self, out: &mut Vec<u8>) {
        out.clear();
        self.pty.take(out);
    }

    /// Whether octets wait for the program.
    pub fn has_input(&self) -> bool {
        self.pending_input() > 0
    }

    /// How many octets wait for the program, at most
    /// [`QUEUE_OCTETS_MAX`](crate::pty::QUEUE_OCTETS_MAX).
    pub fn pending_input(&self) -> usize {
        self.pty.len()
    }

    /// The next thing for the driver to do.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Why the session is being ended, once it is.
    pub fn cause(&self) -> Option<Cause> {
        self.cause
    }

    /// The screen as the program sees it.
    pub fn screen(&self) -> &Screen {
        self.terminal.screen()
    }

    /// The screen as it was last handed to the network.
    pub fn view(&self) -> &View {
        self.endpoint.local()
    }

    /// The number of the last state sent: [`view`](Self::view) or an earlier screen.
    pub fn sent_num(&self) -> StateNum {
        self.endpoint.sent_num()
    }

    /// When a datagram of the client last came in order.
    pub fn last_heard(&self) -> Option<Time> {
        self.endpoint.last_heard()
    }

    /// When the client's newest state came. What SIGUSR1 and timeouts go by.
    pub fn last_new_state(&self) -> Option<Time> {
        self.endpoint.last_new_state()
    }

    /// What is known of the path.
    pub fn rtt(&self) -> &RttEstimator {
        self.endpoint.rtt()
    }

    /// States and fragments held at present, against their limits.
    pub fn held(&self) -> Usage {
        self.endpoint.held()
    }

    /// Datagrams and octets, sent, received and refused.
    pub fn stats(&self) -> &Stats {
        self.endpoint.stats()
    }

    /// Typed octets lost because the program left
    /// [`QUEUE_OCTETS_MAX`](crate::pty::QUEUE_OCTETS_MAX) unread.
    pub fn lost_keys(&self) -> u64 {
        self.pty.lost()
    }

    fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Unclaimed | Phase::Running)
    }

    /// Does what has become due by itself.
    fn tick(&mut self, now: Time) {
        if self.phase == Phase::Unclaimed && self.unclaimed_ends <= now {
            self.end(Cause::NoContact, false);
        }
        if self.resize.due().is_some_and(|time| time <= now) {
            self.apply_resize(now);
        }
        if self.phase == Phase::Running && self.child == Child::Gone {
            self.begin_close(now, Cause::Closed);
        }
        if self.phase == Phase::Running && self.silence_ends().is_some_and(|time| time <= now) {
            self.begin_close(now, Cause::Silence);
        }
        self.pty.expire(now);
        if self.is_open() && self.frame_due().is_some_and(|time| time <= now) {
            self.take_frame(now);
        }
    }

    /// When the client will have been silent for too long.
    fn silence_ends(&self) -> Option<Time> {
        Some(self.endpoint.last_new_state()? + self.network_timeout?)
    }

    /// From when on there is something new to put on the wire, and leave to do so.
    ///
    /// Screen and echo ack go together: a screen that says it answers a key must hold the answer.
    fn frame_due(&self) -> Option<Time> {
        let turned = self.line_news().is_some();
        let changed = match self.update {
            _ if !self.dirty && !turned => None,
            Some(Update { since, before: Before::Taken }) => Some(since + UPDATE_MAX),
            Some(Update { before: Before::New, .. }) | None => Some(Time::ZERO),
        };
        let changed = match (changed, self.history.timeout(self.echo_ack_lazy)) {
            // While a frame is held, so are the echo acks.
            (Some(frame), _) => frame,
            (None, echo) => echo?,
        };
        let leave = match self.answer {
            Some(answer) => answer.max(self.pace.free_for_answer_at()),
            None => self.pace.free_at(),
        };
        Some(changed.max(leave))
    }

    /// Hands the screen to the network: as it is now, or as it was before an update that is not whole.
    fn take_frame(&mut self, now: Time) {
        let line = self.line_news();
        let (screen, written) = match &mut self.update {
            Some(update) if now < update.since + UPDATE_MAX => {
                update.before = Before::Taken;
                (self.terminal.before_update(), update.since)
            }
            _ => {
                let dirty = core::mem::take(&mut self.dirty);
                (dirty.then(|| self.terminal.screen().clone()), now)
            }
        };
        let echo = self.history.mature(written);
        self.answer = self.answer.filter(|&answer| now < answer + ANSWER_LAST);
        self.endpoint.update(now, |view| {
            if let Some(mut screen) = screen {
                screen.bound_links(LINK_OCTETS_MAX);
                view.show(screen);
            }
            if let Some(newest) = echo {
                view.acknowledge_echo(newest);
            }
            if let Some(mode) = line {
                view.report_line(mode);
            }
        });
    }

    /// The terminal line's mode, if the client can be told and was not.
    fn line_news(&self) -> Option<LineMode> {
        self.line.filter(|_| self.reports_line()).filter(|mode| self.view().line() != Some(*mode))
    }

    fn begin_close(&mut self, now: Time, cause: Cause) {
        // The state must not change once it is the last (`mosh-protocol.md` §4.4): no pace now, and nothing
        // is waited for.
        self.update = None;
        self.take_frame(now);
        self.cause = Some(cause);
        self.phase = Phase::Closing;
        self.endpoint.close(now);
        self.drain(now);
    }

    /// Ends the session because of what the client sent. The last screen says so, on the primary grid, which
    /// stays with the user.
    fn refuse_client(&mut self, now: Time, bad: BadDiff) {
        if !self.is_open() {
            return;
        }
        if self.terminal.screen().buffer() == Buffer::Alternate {
            self.terminal.advance(b"\x1b[?1049l");
        }
        // What a program has set of colours and margins is not for this line.
        let fresh = if self.terminal.screen().cursor().col == 0 { "" } else { "\r\n" };
        let line = format!("\x1b[!p{fresh}rove server: bad data from the client: {}\r\n", bad.0);
        self.terminal.advance(line.as_bytes());
        self.dirty = true;
        self.begin_close(now, Cause::Failed(Failure::BadDiff(bad)));
    }

    fn end(&mut self, cause: Cause, clean: bool) {
        if self.phase != Phase::Over {
            self.phase = Phase::Over;
            self.report(Event::Exited(Exit { cause, clean }));
        }
    }

    /// Queues an event. Of each kind only the newest waits.
    fn report(&mut self, event: Event) {
        self.events.retain(|queued| discriminant(queued) != discriminant(&event));
        self.events.push_back(event);
    }

    /// Takes note of what the endpoint has to tell.
    fn drain(&mut self, now: Time) {
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                EndpointEvent::NewRemote { num } => self.consume(now, num),
                EndpointEvent::PeerRoamed(address) => {
                    self.report(Event::Roamed(address));
                }
                EndpointEvent::PeerClosing => {
                    self.cause.get_or_insert(Cause::PeerLeft);
                }
                EndpointEvent::BadRemote(bad) => self.refuse_client(now, bad),
                EndpointEvent::Closed { clean } => {
                    self.end(self.cause.unwrap_or(Cause::Closed), clean);
                }
                EndpointEvent::Failed(failure) => self.end(Cause::Failed(failure), false),
            }
        }
    }

    /// Gives the program what is new in the user stream.
    fn consume(&mut self, now: Time, num: StateNum) {
        if self.phase == Phase::Unclaimed {
            self.phase = Phase::Running;
            self.report(Event::FirstContact);
        }
        let form = if self.terminal.screen().modes().application_cursor {
            CursorKeys::Application
        } else {
            CursorKeys::Normal
        };
        let input = self.endpoint.remote();
        let mut carried = false;
        for event in input.since(self.consumed) {
            carried = true;
            match event {
                Typed::Keys(octets) => {
                    self.pty.keys(now, octets, form);
                    if self.pace.owes(now) && self.answer.is_none_or(|answer| answer <= now) {
                        self.answer = Some(now + ANSWER_WAIT);
                    }
                }
                // Of several the last counts; the pty's size is no queue.
                Typed::Resize(size) => self.resize.wanted = Some(size),
                Typed::TerminalProperties(around) => {
                    self.terminal.set_properties(*around);
                    self.pty.reply(&self.terminal.take_replies());
                }
            }
        }
        self.consumed = self.consumed.max(input.end());
        // The last state's number is no number to be raised to.
        if carried && num != StateNum::SHUTDOWN {
            self.history.push(num, now);
        }
    }

    fn apply_resize(&mut self, now: Time) {
        let Some(size) = self.resize.wanted.take() else { return };
        self.resize.applied = Some(now);
        if size != self.terminal.screen().size() && self.is_open() {
            self.terminal.resize(size);
            self.pty.reply(&self.terminal.take_replies());
            self.dirty = true;
            self.report(Event::Resize(size));
        }
    }
}

impl Machine for Server {
    fn handle_datagram(
        &mut self,
        now: Time,
        arrival: Arrival,
        datagram: &mut [u8],
    ) -> Result<(), Reject> {
        if self.phase == Phase::Over {
            return Err(Reject::Ended);
        }
        let result = self.endpoint.handle_datagram(now, arrival, datagram);
        self.drain(now);
        self.tick(now);
        result
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Outbox) -> Option<Transmit> {
        self.tick(now);
        let transmit = match self.phase {
            Phase::Over => None,
            _ => self.endpoint.poll_transmit(now, out),
        };
        self.drain(now);
        if transmit.is_some() {
            self.pace.sent(now, out.datagram.len());
        }
        transmit
    }

    fn poll_timeout(&self) -> Option<Time> {
        let own = match self.phase {
            Phase::Over => return None,
            Phase::Unclaimed => [Some(self.unclaimed_ends), self.frame_due()],
            Phase::Running => [self.silence_ends(), self.frame_due()],
            Phase::Closing => [None, None],
        };
        let timers = [self.endpoint.poll_timeout(), self.resize.due(), self.pty.timeout()];
        own.into_iter().chain(timers).flatten().min()
    }
}

impl Session for Server {
    fn peer(&self) -> Option<SocketAddr> {
        self.endpoint.peer()
    }

    fn network_changed(&mut self, now: Time) {
        self.endpoint.network_changed(now);
    }

    fn datagram_too_big(&mut self) {
        self.endpoint.datagram_too_big();
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("phase", &self.phase)
            .field("size", &self.terminal.screen().size())
            .field("peer", &self.endpoint.peer())
            .finish_non_exhaustive()
    }
}
