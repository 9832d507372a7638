//! The host's end of a session: a [`Host`] and its [`Viewer`]s, driven as one machine
//! (`mosh-protocol.md` §4.4, 4.5, 5.3, 7).
//!
//! A session begins with one client. If it is [kept](Server::keep) it outlives that client, and others can
//! [join](Server::join) it. All share a port: the clear octets of a datagram tell which client sent it.

mod room;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use rove_ssp::{
    Arrival, Endpoint, Machine, Outbox, Reject, Remote, Session, StreamId, Time, Timing, Transmit,
    Wire,
};
use rove_term::{Checksums, History, Screen, Size};

use crate::connection::Patience;
use crate::events::Events;
use crate::host::{self, Host, SizePolicy, ViewerId};
use crate::input::Input;
use crate::line_mode::LineReport;
use crate::session_info::{SessionInfo, name_of};
use crate::view::{Peer, View};
use crate::viewer::{self, Viewer};

pub use crate::exit::{Cause, Exit};
pub use crate::viewer::{Rights, SCREEN_RATE};

/// The parts and settings of a new server.
pub struct Config {
    /// The envelope, with its key.
    pub wire: Box<dyn Wire>,
    /// When to send what.
    pub timing: Timing,
    /// Which program the client is.
    pub peer: Peer,
    /// The pty's size until the client says its own.
    pub size: Size,
    /// How long to wait for the client's first state: [`CLAIM_WAIT`] by default.
    pub claim_wait: Duration,
    /// Silence of the first client (no new state) after which the session ends, also where its program has ended and the
    /// client was not told. `None`: it waits for ever.
    pub network_timeout: Option<Duration>,
    /// How much of the path screens may use, in bits a second: [`SCREEN_RATE`] by default. `None` is no limit.
    pub screen_rate: Option<u64>,
    /// Seeds what is random on the wire without being secret.
    pub seed: u64,
}

/// A task for the driver.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The first state of the first client came: the program may start.
    FirstContact,
    /// Set the pty's size.
    Resize(Size),
    /// A client is at another address now.
    Roamed(Remote),
    /// The session is over. Nothing more is sent.
    Exited(Exit),
}

/// How long a server waits for its client's first state (`mosh-protocol.md` §1.3).
pub const CLAIM_WAIT: Duration = Duration::from_secs(60);

/// Clients of one session. Each costs a screen's worth of memory and a copy of each frame. As many more may be expected, and
/// as many that were let go are told so when they are heard again.
pub const VIEWERS_MAX: usize = 8;

/// How long after its last datagram a client counts as there: three heartbeats at rest.
pub const PRESENT_FOR: Duration = Duration::from_secs(30);

/// How long a client may be away while another is there. Then it is let go: a machine that was stolen asleep is not to come
/// back for ever. One that is away alone may come back for as long as the session lasts: nobody else holds its keys.
pub const AWAY_MAX: Duration = Duration::from_secs(24 * 3600);

/// A client that is to join a session.
pub struct Joining {
    /// The envelope, with its key.
    pub wire: Box<dyn Wire>,
    /// When to send what.
    pub timing: Timing,
    /// What it may do.
    pub rights: Rights,
    /// What becomes of the others once it is heard.
    pub others: Others,
    /// How the size of the terminal is chosen from now on; `None`: as before.
    pub size_policy: Option<SizePolicy>,
    /// How many of the lines above the screen it is to get at most; `None`: as many as it wants.
    pub fill: Option<u64>,
    /// How much of the path screens may use: as in [`Config`].
    pub screen_rate: Option<u64>,
    /// Seeds what is random on the wire without being secret.
    pub seed: u64,
}

/// What becomes of a session's clients when another is heard.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Others {
    /// They share the session.
    #[default]
    Stay,
    /// They are let go: those that are away hear of it when they come back.
    Leave,
}

/// A session has [as many clients as it may](VIEWERS_MAX), and all are there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Full;

/// The host's end of a session.
#[derive(Debug)]
pub struct Server {
    host: Host,
    /// Those who are there, or may come back, the first to come first.
    viewers: Vec<Attached>,
    /// Those that were let go and have not confirmed it, the last of them. They type nothing, and see nothing newer.
    dismissed: VecDeque<Viewer>,
    /// For the next one that joins.
    next_id: u32,
    /// The name of the session, if it outlives its clients.
    name: Option<String>,
    /// Some client was heard: the program runs.
    has_begun: bool,
    /// Some client was told how the program ended, and one that may type was.
    is_told: bool,
    is_end_seen: bool,
    /// The server ends the session.
    is_closing: bool,
    /// Whose datagram came last, and to whom the last one went.
    heard: ViewerId,
    sent: ViewerId,
    events: Events<Event>,
}

/// A client, and how it came.
#[derive(Debug)]
struct Attached {
    viewer: Viewer,
    others: Others,
    is_announced: bool,
}

impl Server {
    /// A server that waits for its client.
    pub fn new(now: Time, config: Config) -> Self {
        let host = Host::new(config.size, SizePolicy::Latest);
        let patience =
            Patience { first_contact: Some(config.claim_wait), silence: config.network_timeout };
        let viewer = viewer::Config {
            wire: config.wire,
            timing: config.timing,
            peer: config.peer,
            size: Some(config.size),
            patience,
            screen_rate: config.screen_rate,
            seed: config.seed,
        };
        let first = ViewerId::from(0);
        let viewer = Viewer::new(now, first, viewer);
        Self {
            host,
            viewers: [Attached { viewer, others: Others::Stay, is_announced: false }].into(),
            dismissed: VecDeque::new(),
            next_id: 1,
            name: None,
            has_begun: false,
            is_told: false,
            is_end_seen: false,
            is_closing: false,
            heard: first,
            sent: first,
            events: Events::new(),
        }
    }

    /// The session has a name from now on, outlives its clients, and others may join it. Its first client is told so if
    /// it has asked to be.
    pub fn keep(&mut self, name: &str, is_told: bool) {
        self.name = Some(name.into());
        if let Some(first) = self.viewers.first_mut().filter(|_| is_told) {
            first.viewer.describe(SessionInfo::default());
        }
        self.tell("");
    }

    /// Another client may come. It is waited for as long as the first was. Once it is heard, others make room for it: all if
    /// it takes the session over, else the one that was not heard for longest if there are too many.
    ///
    /// # Errors
    /// If there is no room for it, since all are there and stay.
    pub fn join(&mut self, now: Time, joining: Joining) -> Result<ViewerId, Full> {
        let there = self.viewers().filter(|viewer| viewer.was_heard(now, PRESENT_FOR)).count();
        if there >= VIEWERS_MAX && joining.others == Others::Stay {
            return Err(Full);
        }
        // Whoever asks for room again and again does not come: the last ones may.
        let expected = self.viewers.iter().filter(|attached| !attached.is_announced);
        if expected.count() >= VIEWERS_MAX
            && let Some(index) = self.viewers.iter().position(|attached| !attached.is_announced)
        {
            self.remove(index);
        }
        let id = ViewerId::from(self.next_id);
        self.next_id += 1;
        let config = viewer::Config {
            wire: joining.wire,
            timing: joining.timing,
            peer: Peer::Rove,
            size: None,
            patience: Patience { first_contact: Some(CLAIM_WAIT), silence: None },
            screen_rate: joining.screen_rate,
            seed: joining.seed,
        };
        let mut viewer = Viewer::new(now, id, config);
        viewer.allow(joining.rights);
        if let Some(lines) = joining.fill {
            viewer.fill(lines);
        }
        viewer.describe(SessionInfo::default());
        self.viewers.push(Attached { viewer, others: joining.others, is_announced: false });
        if let Some(policy) = joining.size_policy {
            self.host.set_size_policy(policy);
        }
        self.tell("");
        Ok(id)
    }

    /// See [`Host::set_checksums`].
    pub fn set_checksums(&mut self, checksums: Checksums) {
        self.host.set_checksums(checksums);
    }

    /// Takes output of the program, however much work it is. Ignored once the session is being ended.
    pub fn handle_output(&mut self, now: Time, octets: &[u8]) {
        if self.is_open() {
            self.host.handle_output(now, octets);
        }
    }

    /// The same, but no more than the work of a turn: see [`Host::handle_output_part`].
    #[must_use = "what is not taken is to be given again"]
    pub fn handle_output_part(&mut self, now: Time, octets: &[u8]) -> usize {
        if self.is_open() { self.host.handle_output_part(now, octets) } else { octets.len() }
    }

    /// Takes rare branches by this seed in what concerns the client that came last, in builds for tests: see
    /// [`Endpoint::buggify`].
    pub fn buggify(&mut self, seed: u64) {
        if let Some(attached) = self.viewers.last_mut() {
            attached.viewer.buggify(seed);
        }
    }

    /// Takes the mode of the program's terminal line: see [`Host::handle_line`].
    pub fn handle_line(&mut self, line: impl Into<LineReport>) {
        self.host.handle_line(line);
    }

    /// Whether some client sends in slots at present, so that nobody is to see when it types.
    pub fn is_in_run(&self, now: Time) -> bool {
        self.viewers().any(|viewer| viewer.endpoint().is_in_run(now))
    }

    /// Whether streams beside the session are to leave room, after a datagram has come: one with keys, or any in a run of
    /// slots.
    pub fn is_active(&self, now: Time) -> bool {
        self.pending_input() > 0 || self.is_in_run(now)
    }

    /// Whether [`handle_line`](Self::handle_line) is of use: some client can be told.
    pub fn reports_line(&self) -> bool {
        self.viewers().any(Viewer::reports_line)
    }

    /// The program ended with this status. The last screen goes out with the end of the session; if no
    /// client came yet, it waits for one as long as the program would have.
    pub fn child_exited(&mut self, now: Time, status: i32) {
        if self.is_open() {
            self.host.program_ended(status);
            self.advance(now);
        }
    }

    /// Ends the session: on SIGTERM, or when the pty has nobody at its other side. Gives up at once if the
    /// session is being ended already, or if no client came yet.
    pub fn close(&mut self, now: Time) {
        self.is_closing = true;
        for attached in &mut self.viewers {
            attached.viewer.close(now, &mut self.host);
        }
        self.collect(now);
        if self.viewers.is_empty() {
            self.exited(Exit { cause: Cause::Closed, clean: true });
        }
    }

    /// Clears `out` and puts the next octets for the program there: see [`Host::poll_input`].
    pub fn poll_input(&mut self, out: &mut Vec<u8>) {
        self.host.poll_input(out);
    }

    /// How many octets wait for the program, at most [`QUEUE_OCTETS_MAX`](host::QUEUE_OCTETS_MAX).
    pub fn pending_input(&self) -> usize {
        self.host.pending_input()
    }

    /// The next thing for the driver to do.
    pub fn poll_event(&mut self) -> Option<Event> {
        let resize = |host: &mut Host| {
            host.poll_event().map(|host::Event::Resize(size)| Event::Resize(size))
        };
        self.events.pop().or_else(|| resize(&mut self.host))
    }

    /// Why the session of the client that came first is being ended, once it is.
    pub fn cause(&self) -> Option<Cause> {
        self.viewers().next()?.connection().cause()
    }

    /// The screen as the program sees it.
    pub fn screen(&self) -> &Screen {
        self.host.screen()
    }

    /// The lines above the program's primary screen.
    pub fn history(&self) -> &History {
        self.host.history()
    }

    /// How the program ended; `None` while it runs, or has not begun.
    pub fn exit_status(&self) -> Option<i32> {
        self.host.exit_status()
    }

    /// Typed octets lost because the program left [`QUEUE_OCTETS_MAX`](host::QUEUE_OCTETS_MAX) unread.
    pub fn lost_keys(&self) -> u64 {
        self.host.lost_keys()
    }

    /// All clients of the session, the first to come first. In a session that is not [kept](Self::keep) there is always one.
    pub fn viewers(&self) -> impl Iterator<Item = &Viewer> {
        self.viewers.iter().map(|attached| &attached.viewer)
    }

    /// The client that was heard last, if it is still one.
    pub fn heard(&self) -> Option<&Viewer> {
        self.viewers().find(|viewer| viewer.id() == self.heard)
    }

    /// Whether a client is in the session, or is to be told that it was let go.
    pub fn knows(&self, client: ViewerId) -> bool {
        self.viewers().chain(&self.dismissed).any(|viewer| viewer.id() == client)
    }

    /// The name of the session, if it is [kept](Self::keep).
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Whether the program has ended and a client that may type has taken in how.
    pub fn is_end_seen(&self) -> bool {
        self.is_end_seen
    }

    /// Both objects of the client that came first, and all that is known of it and of the path.
    ///
    /// # Panics
    /// If nobody is there, which happens only in a session that is [kept](Self::keep).
    pub fn endpoint(&self) -> &Endpoint<View, Input> {
        self.viewers().next().expect("a session that is not kept has its client").endpoint()
    }

    /// Whether the session goes on: output still counts.
    fn is_open(&self) -> bool {
        let waits = self.viewers.is_empty() && !self.is_closing;
        waits || self.viewers().any(|viewer| viewer.connection().is_open())
    }

    fn advance(&mut self, now: Time) {
        self.host.advance(now);
        for attached in &mut self.viewers {
            attached.viewer.advance(now, &mut self.host);
        }
        self.collect(now);
    }

    /// Acts on the events of viewers. Returns whether any has something new to send because of another's.
    fn collect(&mut self, now: Time) -> bool {
        let mut changed = false;
        let mut index = 0;
        while let Some(attached) = self.viewers.get_mut(index) {
            let Some(event) = attached.viewer.poll_event() else {
                index += 1;
                continue;
            };
            match event {
                viewer::Event::FirstContact => {
                    if !core::mem::replace(&mut self.has_begun, true) {
                        self.events.push(Event::FirstContact);
                    }
                    changed |= self.welcome(now, index);
                    // Others may have gone.
                    index = 0;
                }
                viewer::Event::Roamed(address) => self.events.push(Event::Roamed(address)),
                viewer::Event::Exited(exit) if self.ends_with(now, index, exit) => {
                    self.exited(exit)
                }
                viewer::Event::Exited(_) => {
                    let gone = self.remove(index);
                    if gone.is_announced {
                        self.tell(&name_of(gone.viewer.endpoint().peer()));
                    }
                    changed = true;
                }
            }
        }
        self.dismissed.retain(|viewer| !viewer.connection().is_over());
        changed
    }

    /// The session is over, for those as well that have not heard that it is for them.
    fn exited(&mut self, exit: Exit) {
        self.dismissed.clear();
        self.events.push(Event::Exited(exit));
    }

    /// Whether the session is over now that this client's is.
    fn ends_with(&mut self, now: Time, index: usize, exit: Exit) -> bool {
        let viewer = &self.viewers[index].viewer;
        // One that leaves hears no more of it.
        let is_told = exit.clean && self.host.exit_status().is_some() && !viewer.is_leaving();
        self.is_told |= is_told;
        self.is_end_seen |= is_told && viewer.rights() == Rights::Type;
        let mut others = self.viewers.iter().enumerate().filter(|(other, _)| *other != index);
        if self.name.is_none() || self.is_closing {
            return others.next().is_none();
        }
        match exit.cause {
            // It was waited for as long as the server is to wait. Others have not been silent for so long.
            Cause::Silence if self.host.exit_status().is_some() => others.next().is_none(),
            // All are told how the program ended. If nobody could be told, somebody may come back for it.
            _ if self.host.exit_status().is_some() => self.is_told && others.next().is_none(),
            _ if viewer.is_leaving() => false,
            Cause::NoContact => !self.has_begun,
            // Somebody who is away is not to keep what the last one who is there has ended.
            _ => !others.any(|(_, other)| other.viewer.was_heard(now, PRESENT_FOR)),
        }
    }

    fn remove(&mut self, index: usize) -> Attached {
        let gone = self.viewers.remove(index);
        self.host.forget(gone.viewer.id());
        gone
    }

    /// All that are driven.
    fn driven(&mut self) -> impl Iterator<Item = &mut Viewer> {
        let viewers = self.viewers.iter_mut().map(|attached| &mut attached.viewer);
        viewers.chain(&mut self.dismissed)
    }
}

impl Machine for Server {
    fn handle_datagram(
        &mut self,
        now: Time,
        arrival: Arrival,
        datagram: &mut [u8],
    ) -> Result<(), Reject> {
        self.let_lost_go(now);
        let viewers = self.viewers.iter_mut().map(|attached| &mut attached.viewer);
        let mut viewers = viewers.chain(&mut self.dismissed);
        let viewer = match viewers.find(|viewer| viewer.endpoint().claims(datagram)) {
            Some(viewer) => Some(viewer),
            // What nobody claims is the first one's to count.
            None => self.viewers.first_mut().map(|attached| &mut attached.viewer),
        };
        let Some(viewer) = viewer else { return Err(Reject::Foreign) };
        let result = viewer.handle_datagram(now, arrival, datagram, &mut self.host);
        if result.is_ok() {
            self.heard = viewer.id();
        }
        self.collect(now);
        result
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Outbox) -> Option<Transmit> {
        if self.viewers.is_empty() {
            self.host.advance(now);
        }
        loop {
            let viewers = self.viewers.iter_mut().map(|attached| &mut attached.viewer);
            for viewer in viewers.chain(&mut self.dismissed) {
                let transmit = viewer.poll_transmit(now, &mut self.host, out);
                if transmit.is_some() {
                    self.sent = viewer.id();
                    self.collect(now);
                    return transmit;
                }
            }
            if !self.collect(now) {
                return None;
            }
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        let of_viewer = |viewer: &Viewer| {
            let is_over = viewer.connection().is_over();
            if is_over { None } else { viewer.poll_timeout(&self.host) }
        };
        // A session that is over needs nothing.
        let is_over =
            !self.viewers.is_empty() && self.viewers().all(|it| it.connection().is_over());
        let host = self.host.poll_timeout().filter(|_| !is_over);
        self.viewers().chain(&self.dismissed).filter_map(of_viewer).chain(host).min()
    }
}

impl Session for Server {
    /// The address of the client that was heard last, or of another if that has left.
    fn peer(&self) -> Option<Remote> {
        self.heard().into_iter().chain(self.viewers()).find_map(|viewer| viewer.endpoint().peer())
    }

    fn stream_closed(&mut self, now: Time, stream: StreamId) {
        self.driven().for_each(|viewer| viewer.stream_closed(now, stream));
        self.collect(now);
    }

    fn network_changed(&mut self, now: Time) {
        self.driven().for_each(|viewer| viewer.network_changed(now));
    }

    fn datagram_too_big(&mut self) {
        let sent = self.sent;
        if let Some(viewer) = self.driven().find(|viewer| viewer.id() == sent) {
            viewer.datagram_too_big();
        }
    }
}
