//! One end of a session, with a terminal or without: an [`Endpoint`], and when and why the session
//! begins and ends.
//!
//! It does not know what the two states are. [`Client`](crate::Client) and [`Viewer`](crate::Viewer) hold
//! one; a session that only keeps in touch with its peer is one.

mod goodbye;

use core::fmt;
use core::time::Duration;

use rove_ssp::{
    Arrival, BadDiff, Config, Endpoint, Event as EndpointEvent, Machine, Outbox, Point, Reject,
    Remote, Session, State, StateNum, StreamId, Time, Transmit,
};

use crate::connection::goodbye::Goodbye;
use crate::events::Events;
use crate::exit::{Cause, Exit};

/// How long the peer is waited for. `None` waits for ever.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Patience {
    /// Until its first state comes.
    pub first_contact: Option<Duration>,
    /// From its newest state to the next.
    pub silence: Option<Duration>,
}

/// What happened, in order. Of each kind only the newest waits to be polled.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The peer's first state came.
    FirstContact,
    /// The peer's object has a new newest version.
    NewRemote(StateNum),
    /// The peer sends from here now, and is answered there.
    Roamed(Remote),
    /// The peer has begun to end the session: its object is final.
    PeerClosing,
    /// The peer sent a diff that cannot be read, and nothing more of its object is taken: end the session,
    /// with [`close`](Connection::close) if the peer is to learn of it.
    BadRemote(BadDiff),
    /// The session is over. Nothing more is sent, but for the answer to the peer's end, which a client that is still
    /// driven [repeats](Connection::lingers).
    Ended(Exit),
}

/// One end of a session.
pub struct Connection<L: State, R: State> {
    endpoint: Endpoint<L, R>,
    first_contact_by: Option<Time>,
    silence_max: Option<Duration>,
    /// Why it is being closed, once it is.
    cause: Option<Cause>,
    goodbye: Option<Goodbye>,
    phase: Phase,
    /// Its end waits for a peer that is away.
    waits: bool,
    /// It is over, and says so again.
    lingers: bool,
    events: Events<Event>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    /// No state of the peer came yet.
    Waiting,
    Running,
    /// The last state is on its way to the peer.
    Closing,
    Over,
}

impl<L: State, R: State> Connection<L, R> {
    /// A session that begins now.
    pub fn new(now: Time, config: Config<L, R>, patience: Patience) -> Self {
        Self {
            endpoint: Endpoint::new(now, config),
            first_contact_by: patience.first_contact.map(|span| now + span),
            silence_max: patience.silence,
            cause: None,
            goodbye: None,
            phase: Phase::Waiting,
            waits: false,
            lingers: false,
            events: Events::new(),
        }
    }

    /// Changes the local object, unless the session is being ended.
    pub fn update(&mut self, now: Time, change: impl FnOnce(&mut L)) {
        if self.is_open() {
            self.endpoint.update(now, change);
        }
    }

    /// The same for a change that must not show by its length: see [`Endpoint::update_hidden`].
    pub fn update_hidden(&mut self, now: Time, change: impl FnOnce(&mut L)) {
        if self.is_open() {
            self.endpoint.update_hidden(now, change);
        }
    }

    /// Somebody types, or has typed a key that is kept: see [`Endpoint::typed`].
    pub fn typed(&mut self, now: Time) {
        if self.is_open() {
            self.endpoint.typed(now);
        }
    }

    /// The mouse has moved: see [`Endpoint::mouse_moved`].
    pub fn mouse_moved(&mut self, now: Time) {
        if self.is_open() {
            self.endpoint.mouse_moved(now);
        }
    }

    /// The typed keys are longer than a slot carries: see [`Endpoint::pasted`].
    pub fn pasted(&mut self) {
        self.endpoint.pasted();
    }

    /// Ends the session: the local object as it is now goes to the peer as the last. A second call does not
    /// wait for the peer's answer.
    pub fn close(&mut self, now: Time, cause: Cause) {
        match self.phase {
            Phase::Waiting | Phase::Running => {
                self.cause = Some(cause);
                self.phase = Phase::Closing;
                self.endpoint.close(now);
                self.drain();
            }
            Phase::Closing => self.give_up(self.cause.unwrap_or(cause)),
            Phase::Over => {}
        }
    }

    /// Ends the session as [`close`](Self::close) does, and waits for the peer's answer as long as for a peer that is silent
    /// before ([`Patience::silence`]), also while the peer is away: it is told when it is heard again.
    pub fn close_and_wait(&mut self, cause: Cause) {
        if self.is_open() {
            self.cause = Some(cause);
            self.phase = Phase::Closing;
            self.waits = true;
            self.endpoint.close_and_wait();
        }
    }

    /// Ends the session as [`close`](Self::close) does, and does not wait for the peer's answer: the last datagram
    /// goes out a few times within 30 ms, and then the session is over.
    pub fn leave(&mut self, now: Time, cause: Cause) {
        if self.is_open() {
            self.close(now, cause);
            self.goodbye = Some(Goodbye::new(now));
        }
    }

    /// Ends the session without a word to the peer.
    pub fn give_up(&mut self, cause: Cause) {
        self.lingers = false;
        self.end(Exit { cause, clean: false });
    }

    /// The next thing that happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// See [`Endpoint::buggify`].
    pub fn buggify(&mut self, seed: u64) {
        self.endpoint.buggify(seed);
    }

    /// See [`Endpoint::takes`].
    pub(crate) fn takes(&mut self, point: Point) -> bool {
        self.endpoint.takes(point)
    }

    /// From now on a datagram's diff is applied in turns: see [`Endpoint::apply_in_parts`].
    pub fn apply_in_parts(&mut self) {
        self.endpoint.apply_in_parts();
    }

    /// Goes on with the last datagram's diff, for a turn.
    pub fn apply_part(&mut self, now: Time) {
        self.endpoint.apply_part(now);
        self.drain();
    }

    /// Both objects, and all that is known of the peer and of the path.
    pub fn endpoint(&self) -> &Endpoint<L, R> {
        &self.endpoint
    }

    /// Why the session is being ended, once it is.
    pub fn cause(&self) -> Option<Cause> {
        self.cause
    }

    /// Whether this end has not begun to end the session.
    pub fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Waiting | Phase::Running)
    }

    /// Whether a state of the peer ever came.
    pub fn has_contact(&self) -> bool {
        self.endpoint.last_new_state().is_some()
    }

    /// Whether the session has ended.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Whether the session has ended, and the peer is told a few times more that this is known here: drive it for as
    /// long, or the peer may wait in vain. See [`Endpoint::lingers`].
    pub fn lingers(&self) -> bool {
        self.lingers && self.endpoint.lingers()
    }

    /// Why the session is to be ended now, if the peer was waited for as long as it should be.
    ///
    /// An owner that has a last state for the peer asks before [`poll_transmit`](Machine::poll_transmit), which
    /// gives up for this cause, and closes.
    pub fn overdue(&self, now: Time) -> Option<Cause> {
        let (time, cause) = self.deadline()?;
        (time <= now).then_some(cause)
    }

    /// Until when the peer is waited for, and why the session ends then.
    fn deadline(&self) -> Option<(Time, Cause)> {
        match self.phase {
            Phase::Waiting => Some((self.first_contact_by?, Cause::NoContact)),
            Phase::Closing if !self.waits => None,
            Phase::Running | Phase::Closing => {
                Some((self.endpoint.last_new_state()? + self.silence_max?, Cause::Silence))
            }
            Phase::Over => None,
        }
    }

    /// Keeps the datagram that says goodbye, or says it again, if it is to be said without waiting for the answer.
    fn say_goodbye(
        &mut self,
        now: Time,
        sent: Option<Transmit>,
        out: &mut Outbox,
    ) -> Option<Transmit> {
        let Some(goodbye) = &mut self.goodbye else { return sent };
        let Some(transmit) = sent else {
            let again = goodbye.poll_transmit(now, out);
            if again.is_none() && goodbye.is_done() {
                self.give_up(self.cause.unwrap_or(Cause::Closed));
            }
            return again;
        };
        if self.endpoint.sent_num() == StateNum::SHUTDOWN {
            goodbye.keep(now, transmit, &out.datagram);
        }
        Some(transmit)
    }

    /// Takes note of what the endpoint has to tell.
    fn drain(&mut self) {
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                EndpointEvent::NewRemote { num } => {
                    if self.phase == Phase::Waiting {
                        self.phase = Phase::Running;
                        self.events.push(Event::FirstContact);
                    }
                    self.events.push(Event::NewRemote(num));
                }
                EndpointEvent::PeerRoamed(address) => self.events.push(Event::Roamed(address)),
                EndpointEvent::PeerClosing => {
                    self.cause.get_or_insert(Cause::PeerLeft);
                    self.events.push(Event::PeerClosing);
                }
                EndpointEvent::BadRemote(bad) => self.events.push(Event::BadRemote(bad)),
                EndpointEvent::Closed { clean } => {
                    let cause = self.cause.unwrap_or(Cause::PeerLeft);
                    self.lingers = self.endpoint.lingers();
                    self.end(Exit { cause, clean });
                }
                EndpointEvent::Failed(failure) => self.give_up(Cause::Failed(failure)),
            }
        }
    }

    fn end(&mut self, exit: Exit) {
        if self.phase != Phase::Over {
            self.phase = Phase::Over;
            self.events.push(Event::Ended(exit));
        }
    }
}

impl<L: State, R: State> Machine for Connection<L, R> {
    fn handle_datagram(
        &mut self,
        now: Time,
        arrival: Arrival,
        datagram: &mut [u8],
    ) -> Result<(), Reject> {
        if self.is_over() {
            return Err(Reject::Ended);
        }
        let result = self.endpoint.handle_datagram(now, arrival, datagram);
        self.drain();
        result
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Outbox) -> Option<Transmit> {
        if let Some(cause) = self.overdue(now) {
            self.give_up(cause);
        }
        if self.lingers() {
            return self.endpoint.poll_transmit(now, out);
        }
        if self.is_over() {
            return None;
        }
        let transmit = self.endpoint.poll_transmit(now, out);
        let transmit = self.say_goodbye(now, transmit, out);
        self.drain();
        transmit
    }

    fn poll_timeout(&self) -> Option<Time> {
        if self.lingers() {
            return self.endpoint.poll_timeout();
        }
        if self.is_over() {
            return None;
        }
        let deadline = self.deadline().map(|(time, _)| time);
        let goodbye = self.goodbye.as_ref().and_then(Goodbye::due);
        [deadline, goodbye, self.endpoint.poll_timeout()].into_iter().flatten().min()
    }
}

impl<L: State, R: State> Session for Connection<L, R> {
    fn peer(&self) -> Option<Remote> {
        self.endpoint.peer()
    }

    fn stream_opened(&mut self, now: Time, stream: StreamId) {
        self.endpoint.stream_opened(now, stream);
    }

    fn stream_closed(&mut self, now: Time, stream: StreamId) {
        self.endpoint.stream_closed(now, stream);
        self.drain();
    }

    fn network_changed(&mut self, now: Time) {
        self.endpoint.network_changed(now);
    }

    fn datagram_too_big(&mut self) {
        self.endpoint.datagram_too_big();
    }
}

impl<L: State, R: State> fmt::Debug for Connection<L, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("phase", &self.phase)
            .field("cause", &self.cause)
            .field("peer", &self.endpoint.peer())
            .finish_non_exhaustive()
    }
}
