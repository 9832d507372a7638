//! The host's end of a session with one client: a [`Host`] and its [`Viewer`], driven as one machine
//! (`mosh-protocol.md` §4.4, 4.5, 5.3, 7).

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::time::Duration;

use rove_ssp::{Arrival, Endpoint, Machine, Outbox, Reject, Session, Time, Timing, Transmit, Wire};
use rove_term::{Checksums, Screen, Size};

use crate::connection::Patience;
use crate::host::{self, Host, SizePolicy, ViewerId};
use crate::input::Input;
use crate::line_mode::LineMode;
use crate::view::{Peer, View};
use crate::viewer::{self, Viewer};

pub use crate::exit::{Cause, Exit};
pub use crate::viewer::SCREEN_RATE;

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
    /// Silence of the client (no new state) after which the session ends. `None`: it waits for ever.
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

/// The host's end of a session.
#[derive(Debug)]
pub struct Server {
    host: Host,
    viewer: Viewer,
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
        let viewer = Viewer::new(now, ViewerId::from(0), viewer);
        Self { host, viewer }
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

    /// Takes rare branches by this seed, in builds for tests: see [`Endpoint::buggify`].
    pub fn buggify(&mut self, seed: u64) {
        self.viewer.buggify(seed);
    }

    /// Takes the mode of the program's terminal line: see [`Host::handle_line`].
    pub fn handle_line(&mut self, mode: LineMode) {
        self.host.handle_line(mode);
    }

    /// Whether [`handle_line`](Self::handle_line) is of use: the client can be told.
    pub fn reports_line(&self) -> bool {
        self.viewer.reports_line()
    }

    /// The program ended with this status. The last screen goes out with the end of the session; if no
    /// client came yet, it waits for one as long as the program would have.
    pub fn child_exited(&mut self, now: Time, status: i32) {
        if self.is_open() {
            self.host.program_ended(status);
            self.viewer.advance(now, &mut self.host);
        }
    }

    /// Ends the session: on SIGTERM, or when the pty has nobody at its other side. Gives up at once if the
    /// session is being ended already, or if no client came yet.
    pub fn close(&mut self, now: Time) {
        self.viewer.close(now, &mut self.host);
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
        match self.viewer.poll_event() {
            Some(viewer::Event::FirstContact) => Some(Event::FirstContact),
            Some(viewer::Event::Roamed(address)) => Some(Event::Roamed(address)),
            Some(viewer::Event::Exited(exit)) => Some(Event::Exited(exit)),
            None => self.host.poll_event().map(|host::Event::Resize(size)| Event::Resize(size)),
        }
    }

    /// Why the session is being ended, once it is.
    pub fn cause(&self) -> Option<Cause> {
        self.viewer.connection().cause()
    }

    /// The screen as the program sees it.
    pub fn screen(&self) -> &Screen {
        self.host.screen()
    }

    /// Typed octets lost because the program left [`QUEUE_OCTETS_MAX`](host::QUEUE_OCTETS_MAX) unread.
    pub fn lost_keys(&self) -> u64 {
        self.host.lost_keys()
    }

    /// Both objects, and all that is known of the client and of the path.
    pub fn endpoint(&self) -> &Endpoint<View, Input> {
        self.viewer.connection().endpoint()
    }

    fn is_open(&self) -> bool {
        self.viewer.connection().is_open()
    }
}

impl Machine for Server {
    fn handle_datagram(
        &mut self,
        now: Time,
        arrival: Arrival,
        datagram: &mut [u8],
    ) -> Result<(), Reject> {
        self.viewer.handle_datagram(now, arrival, datagram, &mut self.host)
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Outbox) -> Option<Transmit> {
        self.viewer.poll_transmit(now, &mut self.host, out)
    }

    fn poll_timeout(&self) -> Option<Time> {
        if self.viewer.connection().is_over() {
            return None;
        }
        let viewer = self.viewer.poll_timeout(&self.host);
        viewer.into_iter().chain(self.host.poll_timeout()).min()
    }
}

impl Session for Server {
    fn peer(&self) -> Option<SocketAddr> {
        self.endpoint().peer()
    }

    fn network_changed(&mut self, now: Time) {
        self.viewer.network_changed(now);
    }

    fn datagram_too_big(&mut self) {
        self.viewer.datagram_too_big();
    }
}
