//! The end of a session whose only purpose is to look what becomes of its datagrams.

use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};
use std::time::Duration;

use rove_session::client::Cause;
use rove_session::connection::{Event, Patience};
use rove_session::{Connection, Input, Peer, View};
use rove_ssp::{
    Arrival, Config, Machine, MoshWire, NativeWire, Outbox, Reject, Remote, Role, Session,
    StreamId, Time, Timing, Transmit, Wire,
};
use rove_streams::client::PathHints;
use rove_term::Size;

use crate::driver::{End, Flow};
use crate::net::carrier::{Carrier, Heard};
use crate::net::port::Turn;
use crate::os;
use crate::os::locked::within;
use crate::ssh::Secret;

/// Datagrams sent until the first answer, and how far apart: five seconds of them.
const TRIES: u32 = 20;
const TRY_EACH: Duration = Duration::from_millis(250);

/// Datagrams whose outcome is looked at, how far apart at least, and how long that may take.
const PROBES: u64 = 50;
const PROBE_EACH: Duration = Duration::from_millis(20);
const PROBES_WAIT: Duration = Duration::from_secs(10);

/// How long the search for longer datagrams may take, and how often something is said meanwhile, by which it learns what
/// arrives.
const LENGTH_WAIT: Duration = Duration::from_secs(5);
const LENGTH_EACH: Duration = Duration::from_millis(50);

/// Octets that do not fit one datagram, so that longer ones are of use.
const LONG_BYTES: usize = 4096;

/// The findings by one family of addresses.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Probed {
    /// The address that answered; before, the likeliest one.
    pub(super) at: SocketAddr,
    /// How long the first answer took.
    pub(super) answered: Option<Duration>,
    /// Datagrams sent until then.
    pub(super) sent: u64,
    /// Why they could not be sent.
    pub(super) failed: Option<String>,
    /// Whether the peer reports what it receives.
    pub(super) is_reported: bool,
    /// Datagrams of ours whose outcome was looked at.
    pub(super) probes: u64,
    /// The share of them that was lost, in parts of one.
    pub(super) lost_there: f64,
    /// The same of the server's.
    pub(super) lost_back: f64,
    pub(super) round_trips: Vec<Duration>,
    pub(super) datagram_bytes: Option<usize>,
}

impl Probed {
    pub(super) fn new(at: SocketAddr) -> Probed {
        Probed {
            at,
            answered: None,
            sent: 0,
            failed: None,
            is_reported: false,
            probes: 0,
            lost_there: 0.0,
            lost_back: 0.0,
            round_trips: Vec::new(),
            datagram_bytes: None,
        }
    }
}

/// A session, and why its datagrams could not be sent.
pub(super) struct Probing {
    connection: Connection<Input, View>,
    failed: Option<String>,
    /// How often its state was changed.
    changes: u64,
}

impl Probing {
    pub(super) fn new(
        now: Time,
        kind: Peer,
        secret: Secret,
        server: SocketAddr,
    ) -> io::Result<Probing> {
        let wire: Box<dyn Wire> = within(|| match &secret {
            Secret::Mosh(key) => Box::new(MoshWire::new(key.clone(), Role::Client)) as _,
            Secret::Native(secrets, conn) => {
                Box::new(NativeWire::new(secrets, *conn, Role::Client)) as _
            }
        });
        drop(secret);
        let config = Config {
            role: Role::Client,
            wire,
            timing: match kind {
                Peer::Rove => Timing::ROVE,
                Peer::Stock => Timing::ROVE_TO_STOCK,
            },
            peer: Some(server),
            local: Input::default(),
            remote: View::new(Size::DEFAULT, kind),
            seed: u64::from_ne_bytes(*os::random()?),
        };
        let connection = Connection::new(now, config, Patience::default());
        Ok(Probing { connection, failed: None, changes: 0 })
    }

    pub(super) fn session(&mut self) -> &mut dyn Session {
        self
    }

    /// Begins to end the session.
    pub(super) fn close(&mut self, now: Time, cause: Cause) {
        self.connection.close(now, cause);
    }

    /// Makes a state that does not fit one datagram.
    fn say_much(&mut self, now: Time) {
        // Random octets are as long when they are packed. Without any the search for longer datagrams does not begin.
        if let Ok(octets) = os::random::<LONG_BYTES>() {
            self.connection.update(now, |input| input.push_keys(octets.as_slice()));
        }
    }

    /// Makes a new state, so that a datagram goes out.
    fn touch(&mut self, now: Time) {
        self.changes += 1;
        let cols = 80 + (self.changes % 2) as u16;
        self.connection.update(now, |input| input.push_resize(Size::clamped(24, cols)));
    }
}

impl Machine for Probing {
    fn handle_datagram(
        &mut self,
        now: Time,
        arrival: Arrival,
        datagram: &mut [u8],
    ) -> Result<(), Reject> {
        self.connection.handle_datagram(now, arrival, datagram)
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Outbox) -> Option<Transmit> {
        self.connection.poll_transmit(now, out)
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.connection.poll_timeout()
    }
}

impl Session for Probing {
    fn peer(&self) -> Option<Remote> {
        self.connection.peer()
    }

    fn stream_opened(&mut self, now: Time, stream: StreamId) {
        self.connection.stream_opened(now, stream);
    }

    fn stream_closed(&mut self, now: Time, stream: StreamId) {
        self.connection.stream_closed(now, stream);
    }

    fn network_changed(&mut self, now: Time) {
        self.failed = None;
        self.connection.network_changed(now);
    }

    fn datagram_too_big(&mut self) {
        self.connection.datagram_too_big();
    }

    fn send_failed(&mut self, _now: Time, why: &str) {
        self.failed = Some(why.to_owned());
    }
}

/// The job of a prober.
pub(super) enum Job {
    /// Find out what the network does.
    Probe(Probed),
    /// Find out whether the server answers by the stream.
    Way {
        /// Until then at most.
        until: Time,
        /// Since when something goes by it: UDP that was in use is waited for before.
        asked: Option<Time>,
        /// How long an answer took.
        answered: Option<Duration>,
    },
    /// Keep in touch until nobody waits for this any more.
    Keep,
    /// Wait for the answer to the goodbye.
    Leave {
        /// Until then at most.
        until: Time,
    },
}

/// How far the probing is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    /// Nothing came yet; so often something was said.
    Contact(u32),
    Probes {
        until: Time,
    },
    Length {
        until: Time,
    },
    Over,
}

/// Drives a session for a job.
pub(super) struct Prober<'a> {
    probing: &'a mut Probing,
    link: Option<&'a PathHints>,
    job: Job,
    began: Time,
    stage: Stage,
    /// When something is to be said next.
    next: Time,
    /// Datagrams that had arrived, and those that were lost, when the stage began.
    outcomes: (u64, u64),
    sent: u64,
    samples: u64,
}

impl<'a> Prober<'a> {
    pub(super) fn new(
        probing: &'a mut Probing,
        now: Time,
        link: Option<&'a PathHints>,
        job: Job,
    ) -> Prober<'a> {
        let endpoint = probing.connection.endpoint();
        let path = endpoint.path_stats();
        let outcomes = (path.delivered, path.lost);
        let (sent, samples) = (endpoint.stats().sent.datagrams, endpoint.rtt().samples());
        let stage = Stage::Contact(0);
        Prober { probing, link, job, began: now, stage, next: now, outcomes, sent, samples }
    }

    /// The findings so far.
    pub(super) fn probed(self) -> Option<Probed> {
        let Job::Probe(probed) = self.job else { return None };
        Some(Probed { failed: self.probing.failed.clone(), ..probed })
    }

    /// How long an answer by the stream took.
    pub(super) fn answered(&self) -> Option<Duration> {
        match self.job {
            Job::Way { answered, .. } => answered,
            _ => None,
        }
    }

    /// Says the next thing and decides when to say another.
    fn go_on(&mut self, now: Time) {
        let endpoint = self.probing.connection.endpoint();
        let path = endpoint.path_stats();
        let known = path.delivered + path.lost - self.outcomes.0 - self.outcomes.1;
        let (wait, stage) = match self.stage {
            Stage::Contact(TRIES) => (Duration::ZERO, Stage::Over),
            Stage::Contact(tries) => (TRY_EACH, Stage::Contact(tries + 1)),
            Stage::Probes { until } if known >= PROBES || until <= now => {
                (LENGTH_EACH, Stage::Length { until: now + LENGTH_WAIT })
            }
            Stage::Probes { .. } => (endpoint.send_interval().max(PROBE_EACH), self.stage),
            Stage::Length { until } if !path.tries_longer || until <= now => {
                (Duration::ZERO, Stage::Over)
            }
            Stage::Length { .. } => (LENGTH_EACH, self.stage),
            Stage::Over => return,
        };
        self.next = now + wait;
        self.stage = stage;
        if stage != Stage::Over {
            self.probing.touch(now);
        }
    }

    /// Takes down what became of the datagrams.
    fn judge(&mut self) {
        let endpoint = self.probing.connection.endpoint();
        let (stats, path) = (endpoint.stats(), endpoint.path_stats());
        let Job::Probe(probed) = &mut self.job else { return };
        if probed.answered.is_none() {
            probed.sent = stats.sent.datagrams - self.sent;
            return;
        }
        let lost = path.lost.saturating_sub(self.outcomes.1);
        probed.probes = path.delivered.saturating_sub(self.outcomes.0) + lost;
        probed.is_reported = path.sent.is_some();
        probed.lost_there = lost as f64 / probed.probes.max(1) as f64;
        probed.lost_back = path.received.loss;
        probed.datagram_bytes = path.datagram_bytes_max;
    }
}

impl End for Prober<'_> {
    fn session(&mut self) -> &mut dyn Session {
        self.probing.session()
    }

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }

    fn before(&mut self, turn: Turn) -> io::Result<()> {
        match self.job {
            Job::Probe(_) if self.next <= turn.now => self.go_on(turn.now),
            Job::Way { .. } if self.next <= turn.now => {
                self.probing.touch(turn.now);
                self.next = turn.now + TRY_EACH;
            }
            _ => {}
        }
        Ok(())
    }

    fn heard(&mut self, now: Time, heard: &Heard) {
        if let Job::Way { asked: Some(asked), answered, .. } = &mut self.job
            && heard.from.is_stream()
        {
            answered.get_or_insert(now.since(*asked));
        }
        let Some(at) = heard.at else { return };
        if let Some(link) = self.link {
            link.heard(at);
        }
        let Job::Probe(probed) = &mut self.job else { return };
        let endpoint = self.probing.connection.endpoint();
        if endpoint.rtt().samples() > self.samples {
            self.samples = endpoint.rtt().samples();
            probed.round_trips.extend(endpoint.rtt().latest());
        }
        if let Stage::Contact(_) = self.stage {
            let (stats, path) = (endpoint.stats(), endpoint.path_stats());
            probed.at = at;
            probed.answered = Some(now.since(self.began));
            probed.sent = stats.sent.datagrams - self.sent;
            self.outcomes = (path.delivered, path.lost);
            self.sent = stats.sent.datagrams;
            self.stage = Stage::Probes { until: now + PROBES_WAIT };
            self.next = now;
            self.probing.say_much(now);
        }
    }

    fn stream_ended(&mut self, _: StreamId) {
        if let Job::Way { until, .. } = &mut self.job {
            *until = Time::ZERO;
        }
    }

    fn settle(&mut self, now: Time, _: &mut Carrier) -> io::Result<Flow> {
        let is_by_stream = self.probing.peer().is_some_and(Remote::is_stream);
        if let Job::Way { asked, .. } = &mut self.job
            && is_by_stream
        {
            // What was to be said has just been sent.
            asked.get_or_insert(now);
        }
        let mut is_over = match self.job {
            Job::Probe(_) => self.stage == Stage::Over,
            Job::Way { until, answered, .. } => answered.is_some() || until <= now,
            Job::Keep => false,
            Job::Leave { until } => until <= now,
        };
        while let Some(event) = self.probing.connection.poll_event() {
            is_over |= matches!(event, Event::BadRemote(_) | Event::Ended(_));
        }
        if is_over {
            self.judge();
        }
        Ok(if is_over { Flow::Over } else { Flow::Sleep })
    }

    fn deadline(&self, _: Time) -> Option<Time> {
        let own = match self.job {
            Job::Probe(_) => Some(self.next),
            Job::Way { until, .. } => Some(self.next.min(until)),
            Job::Keep => None,
            Job::Leave { until } => Some(until),
        };
        self.probing.connection.poll_timeout().into_iter().chain(own).min()
    }
}
