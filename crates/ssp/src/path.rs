//! One path to the peer: accepts datagrams newer than all before, takes round-trip samples from
//! their stamps, follows the peer's address, and limits the length and the amount of what we send
//! (`mosh-protocol.md` §2). It must not know what a payload holds.

mod arrivals;
mod choice;
pub(crate) mod lengths;
pub(crate) mod mtud;
mod pacing;
mod stream_flight;
mod validation;
mod ways;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::ops::Range;
use core::time::Duration;

use crate::machine::{Arrival, PathId, Remote, Transmit};
use crate::path::arrivals::Arrivals;
use crate::path::lengths::Lengths;
use crate::path::mtud::{MtuDiscovery, Probing, Purpose};
use crate::path::validation::AddressValidation;
use crate::path::ways::Ways;
use crate::recovery::attribution::LossAttribution;
use crate::recovery::congestion::CongestionWindow;
use crate::recovery::rtt::RttEstimator;
use crate::reject::Reject;
use crate::stats::{DirectionStats, PathStats, Stats};
use crate::time::{Stamp, Time};
use crate::timing::Timing;
use crate::wire::{
    Announce, Control, Envelope, Exhausted, Flags, Header, Role, Seq, Slot, Stamps, Wire,
};

/// What carries datagrams to the peer and back.
pub(crate) struct Path {
    role: Role,
    wire: Box<dyn Wire>,
    pub rtt: RttEstimator,
    /// How many octets may be on their way.
    pub congestion: CongestionWindow,
    /// Whether what is lost is lost because of them.
    pub attribution: LossAttribution,
    /// What the peer's datagrams went through.
    pub arrivals: Arrivals,
    /// What ours went through, as the peer last reported it.
    departures: Option<DirectionStats>,
    /// How many of ours arrived, and how many were lost.
    outcomes: (u64, u64),
    peer: Option<Remote>,
    /// Where the peer was last, also once that is forgotten as a target.
    seen: Option<Remote>,
    /// At a client: the server's address, whichever way is in use.
    server: Option<SocketAddr>,
    ways: Ways,
    /// Another way has come into use, and nobody was told.
    switched: bool,
    /// The lowest sequence number that is newer than all received. One past the last fits a `u64`.
    expected: u64,
    /// The peer's newest stamp and when it came, until it is answered.
    held: Option<(Stamp, Time)>,
    last_heard: Option<Time>,
    /// Whether the peer is where it seems to be. `None` where there is no way to ask.
    validation: Option<AddressValidation>,
    /// The peer's question that is to be answered, and where it was asked.
    owed: Option<(u64, Remote)>,
    /// When the local port was last chosen.
    port_chosen: Time,
    port: LocalPort,
    /// How long datagrams may be.
    pub mtud: MtuDiscovery,
    /// How many datagrams each of our paths was given.
    sent: [u64; PathId::COUNT],
    /// Datagrams that were padded since the peer was heard.
    padded: u32,
    /// Extensions that the peer has announced.
    peer_features: u32,
    /// This end answers slots.
    answers_slots: bool,
    /// Our newest datagram that the peer has reported, and when it did: it hears us at this port.
    reported: Seq,
    answered: Time,
    /// When the first datagram went out that asks for an answer, since the last that had one.
    awaits: Option<Time>,
}

/// Where we send from.
#[derive(Clone, Copy, PartialEq)]
enum LocalPort {
    /// From where the peer may have heard us.
    Seen,
    /// From elsewhere than the last datagram.
    Fresh,
}

/// What the first datagrams from an address are padded to, so that the answer may be three times as long
/// before the address is proven. With the longest head: a shorter one is not made up for.
const FIRST_BYTES: usize = 1200;

/// What this version could speak beside what it speaks.
fn announce(answers_slots: bool) -> Announce {
    let answers = if answers_slots { Announce::SLOTS } else { 0 };
    Announce { version_max: 0, features: Announce::PARITY | answers }
}

/// Long datagrams without an answer after which every other one is short: perhaps the path swallows long
/// ones.
const PADDED_MAX: u32 = 1;

/// A datagram to send, without its destination.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sending<'a> {
    pub payload: &'a [u8],
    pub flags: Flags,
    /// When the newest acknowledged state was sent.
    pub acked_sent_at: Time,
    /// How long an acknowledgment of ours may wait.
    pub ack_delay: Duration,
    /// The datagram carries nothing and is so long: it tries what the path takes.
    pub probe: Option<usize>,
    pub lengths: Lengths,
    /// It is one of a run of slots.
    pub slot: Option<Slot>,
}

/// A datagram that goes out.
pub(crate) struct Sealed {
    pub transmit: Transmit,
    pub seq: Seq,
    /// The path it takes, and its number there.
    pub path: PathId,
    pub nth: u64,
}

/// Whether what a datagram says of the path is news.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Freshness {
    /// It is newer than all before.
    Newest,
    /// A newer one came before it.
    Late,
}

/// An authentic datagram.
pub(crate) struct Opened {
    pub freshness: Freshness,
    /// Its number, its stamps, and what it says of ours.
    pub header: Header,
    /// Where its payload lies.
    pub payload: Range<usize>,
    /// Where it moved the peer to.
    pub roamed: Option<Remote>,
}

impl Path {
    pub(crate) fn new(
        now: Time,
        role: Role,
        mut wire: Box<dyn Wire>,
        timing: &Timing,
        peer: Option<SocketAddr>,
    ) -> Path {
        // A client sends only to the address that its user named, so nobody can point it at a
        // stranger.
        let secret = wire.take_path_secret().filter(|_| role == Role::Server);
        let search = if wire.carries_reports() { Probing::On } else { Probing::Off };
        Path {
            validation: secret.map(|secret| AddressValidation::new(secret, wire.overhead())),
            owed: None,
            role,
            wire,
            rtt: RttEstimator::new(timing),
            congestion: CongestionWindow::new(now),
            attribution: LossAttribution::default(),
            arrivals: Arrivals::default(),
            departures: None,
            outcomes: (0, 0),
            peer: peer.map(Remote::Udp),
            seen: peer.map(Remote::Udp),
            server: peer.filter(|_| role == Role::Client),
            ways: Ways::new(now, timing),
            switched: false,
            expected: 0,
            held: None,
            last_heard: None,
            port_chosen: now,
            port: LocalPort::Seen,
            mtud: MtuDiscovery::new(search),
            sent: [0; PathId::COUNT],
            padded: 0,
            peer_features: 0,
            answers_slots: role == Role::Server && timing.answers_slots,
            reported: Seq::new(0),
            answered: Time::ZERO,
            awaits: None,
        }
    }

    /// Opens a datagram. One that is late or replayed still gives its payload, but moves neither the
    /// address nor the estimates (§2.1).
    pub(crate) fn receive(
        &mut self,
        now: Time,
        arrival: Arrival,
        datagram: &mut [u8],
        timing: &Timing,
        stats: &mut Stats,
    ) -> Result<Opened, Reject> {
        self.advance(now);
        let (header, payload) = self.wire.open(datagram)?;
        stats.received.add(datagram.len());
        let way = arrival.from.path();
        // The other way has another length, and its stamps say nothing of this one.
        let is_in_use = way == self.id();
        self.arrivals.take(now, header.seq, header.stamps.sent.filter(|_| is_in_use));
        self.peer_features |= header.control.announce.map_or(0, |announce| announce.features);
        // Also of a late datagram: that it was overtaken does not make the answer less true.
        let is_proof = self.is_proof(arrival, header.control.response, stats);
        let challenge = header.control.challenge.map(|token| (token, self.answered_at(arrival)));
        if !self.ways.is_newest(way, header.seq) {
            stats.late += 1;
            // A question that was overtaken is answered, but not in place of a newer one.
            self.owed = self.owed.or(challenge);
            return Ok(Opened { freshness: Freshness::Late, header, payload, roamed: None });
        }
        self.owed = challenge.or(self.owed);
        // Whoever replays an old datagram from his own address must not move the peer there.
        let is_newest = header.seq.get() >= self.expected;
        self.expected = self.expected.max(header.seq.get() + 1);
        stats.overtaken += u64::from(!is_newest);
        self.last_heard = Some(now);
        self.padded = 0;
        if let Some(stamp) = header.stamps.sent.filter(|_| is_in_use) {
            // An older stamp looks like a longer round trip to the peer, who slows down. That is
            // the only way to tell a stock peer of congestion.
            let stamp = match arrival.congested {
                true => stamp.earlier(timing.congestion_penalty),
                false => stamp,
            };
            self.held = Some((stamp, now));
        }
        if let Some(reply) = header.stamps.reply.filter(|_| is_in_use) {
            self.rtt.sample(Stamp::at(now).since(reply));
        }
        // Only a number that was not reported before proves that the peer still hears us.
        if let Some(report) = header.report.filter(|report| report.newest > self.reported) {
            self.reported = report.newest;
            self.answered = now;
            self.awaits = None;
        }
        let roamed = match self.role {
            Role::Server if is_proof => self.follow(now, arrival.from),
            Role::Server if is_newest => self.follow_newest(now, arrival.from, datagram.len()),
            Role::Server => None,
            Role::Client => {
                self.choose(now, arrival.from, is_newest, header.report.as_ref());
                None
            }
        };
        Ok(Opened { freshness: Freshness::Newest, header, payload, roamed })
    }

    /// Seals a payload into `out` for the peer at `to`.
    ///
    /// A client whose states have not
    /// been acknowledged for long tries another port.
    pub(crate) fn send(
        &mut self,
        now: Time,
        to: Remote,
        sending: Sending<'_>,
        timing: &Timing,
        out: &mut Vec<u8>,
    ) -> Result<Sealed, Exhausted> {
        let Sending { payload, flags, acked_sent_at, ack_delay, probe, lengths, slot } = sending;
        let path = to.path();
        let is_in_use = path == self.id();
        let reply = if is_in_use { self.take_reply(now, timing) } else { None };
        let stamps = Stamps { sent: Some(Stamp::at(now)), reply };
        let report = match self.wire.carries_reports() {
            true => self.arrivals.report(ack_delay),
            false => None,
        };
        // The peer answers nothing to a bare acknowledgment, so silence after one means nothing. A slot is always
        // answered, with keys or without, so that they decide neither when a stream is taken nor when UDP is tried.
        if !flags.ack_only || slot.is_some() {
            self.awaits.get_or_insert(now);
        }
        if slot.is_some() {
            self.ways.note_use(now);
        }
        // A session at rest asks seldom: what counts is for how long it has had no answer.
        let waits = self.awaits_since().is_some_and(|since| now.since(since) > timing.rebind);
        let is_silent = match is_in_use {
            true => waits && now.since(acked_sent_at.max(self.answered)) > timing.rebind,
            false => self.ways.wants_port(),
        };
        let new_port = self.role == Role::Client
            && path == PathId::UDP
            && is_silent
            && now.since(self.port_chosen) > timing.rebind;
        let control = Control { slot, ..self.control(payload.len(), new_port, to) };
        let mut envelope = Envelope { stamps, report, flags, control };
        if let Some(bytes) = probe {
            // A list of items, if there was none, has a length, too.
            envelope.control.padding = 1;
            let rest = bytes.saturating_sub(self.wire.sealed_bytes(&envelope));
            envelope.control.padding += rest;
        } else if let Lengths::Stepped { least } = lengths
            && self.wire.carries_reports()
        {
            let bare = self.wire.sealed_bytes(&envelope) + payload.len();
            envelope.control.padding +=
                lengths::padding(&envelope.control, bare, least, self.datagram_max(to));
        }
        let bytes = self.wire.sealed_bytes(&envelope) + payload.len();
        if let Some(slot) = &mut envelope.control.slot
            && slot.answer_bytes > 0
        {
            // A short answer to a long datagram would show a paste twice.
            slot.answer_bytes = bytes.try_into().unwrap_or(u16::MAX);
        }
        // The wire may have to change keys before it seals.
        self.advance(now);
        let seq = self.wire.seal(&envelope, payload, out)?;
        let purpose = if probe.is_some() { Purpose::Probe } else { Purpose::Data };
        // Every datagram counts, also one without a state: it can overtake others all the same.
        let nth = self.sent[path.index()];
        self.sent[path.index()] += 1;
        if path == PathId::UDP {
            self.mtud.on_sent(now, nth, out.len(), purpose);
            if let Some(validation) = &mut self.validation {
                validation.sent(now, out.len(), self.rtt.rto());
            }
            self.ways.sent_beside(now, seq, is_in_use);
        }
        if new_port {
            self.port_chosen = now;
        }
        let transmit = Transmit { to, new_port, at: None };
        Ok(Sealed { transmit, seq, path, nth })
    }

    /// Where to send now. A server forgets a client it has not heard for long.
    pub(crate) fn target(&mut self, now: Time, timing: &Timing) -> Option<Remote> {
        let lost = |heard| now.since(heard) >= timing.address_lifetime;
        // The address may belong to somebody else by now. A stream cannot.
        let is_udp = !self.is_on_stream();
        if self.role == Role::Server && is_udp && self.last_heard.is_some_and(lost) {
            self.peer = None;
        }
        self.peer
    }

    /// Datagrams leave from another place now, from a port that was just chosen.
    pub(crate) fn moved(&mut self, now: Time) {
        self.port_chosen = now;
        self.port = LocalPort::Fresh;
        self.forget(now);
        self.padded = 0;
        self.ways.restart(now);
    }

    /// What becomes of datagrams, ours and the peer's.
    pub(crate) fn stats(&self) -> PathStats {
        let (delivered, lost) = self.outcomes;
        PathStats {
            sent: self.departures,
            received: self.arrivals.direction(),
            delivered,
            lost,
            datagram_bytes_max: self.peer.and_then(Remote::udp).map(|to| self.mtud.datagram(to)),
            tries_longer: self.probe().is_some(),
        }
    }

    /// Datagrams take another path: nothing that was learned of the last one holds for it.
    fn forget(&mut self, now: Time) {
        self.arrivals.forget_delays();
        self.departures = None;
        self.mtud.reset();
        self.congestion.reset(now);
        self.attribution.reset();
    }

    /// Octets of a fragment's contents that fit a datagram to this address.
    pub(crate) fn payload_max(&self, to: Remote) -> usize {
        self.datagram_max(to) - self.wire.overhead() - self.wire.fragment_overhead()
    }

    /// Octets of the longest datagram to this address.
    fn datagram_max(&self, to: Remote) -> usize {
        match to {
            Remote::Udp(to) => self.mtud.datagram(to),
            Remote::Stream(_) => self.ways.timing().datagram_bytes,
        }
    }

    /// Octets of a whole instruction in a datagram of a step's length to this address, where envelopes are not padded;
    /// `packed` of them at least.
    pub(crate) fn packed_step(&self, to: Remote, packed: usize) -> usize {
        let head = self.wire.overhead() + self.wire.fragment_overhead();
        lengths::step(packed + head, self.datagram_max(to)).saturating_sub(head).max(packed)
    }

    /// A datagram with this many octets of contents was not answered in time.
    pub(crate) fn unanswered(&mut self, now: Time, contents: usize) {
        if self.is_on_stream() {
            return;
        }
        let bytes = contents + self.wire.overhead() + self.wire.fragment_overhead();
        self.mtud.unanswered(now, bytes);
    }

    /// When a datagram is due that tries what the path takes, and how long it is. Only to where the peer is
    /// known to be, and not into a silence.
    pub(crate) fn probe(&self) -> Option<(Time, usize)> {
        let is_validated =
            self.validation.as_ref().is_none_or(|validation| validation.challenge().is_none());
        let is_heard = self.last_heard > self.mtud.silenced;
        let is_there = self.peer.is_some() && is_heard && is_validated && !self.is_on_stream();
        self.mtud.probe().filter(|_| is_there)
    }

    /// Whether the peer understands what replaces lost fragments.
    pub(crate) fn takes_parity(&self) -> bool {
        self.peer_features & Announce::PARITY != 0
    }

    /// Whether the peer answers slots. `None` before it was heard, and where it cannot say so.
    pub(crate) fn answers_slots(&self) -> Option<bool> {
        self.last_heard.map(|_| self.peer_features & Announce::SLOTS != 0)
    }

    /// The same as [`wake`](Path::wake) while a run of slots is on, in which questions and answers wait for slots. Beside
    /// a stream UDP is tried as ever: when, no key decides.
    pub(crate) fn wake_in_run(&self) -> Option<Time> {
        match self.is_on_stream() {
            true => self.wake(),
            false => self.wire.wake().into_iter().chain(self.ways_wake()).min(),
        }
    }

    /// What the next datagram says about the path.
    fn control(&mut self, payload_bytes: usize, new_port: bool, to: Remote) -> Control {
        if !self.wire.carries_reports() {
            return Control::default();
        }
        if self.is_on_stream() {
            return self.control_of_ways(to);
        }
        // Until the peer is heard it may not know us here: it gets room for its answer, and learns what
        // else we speak.
        let moved = core::mem::replace(&mut self.port, LocalPort::Seen) == LocalPort::Fresh;
        let first = self.last_heard.is_none() || new_port || moved;
        let padded = match (self.role, first) {
            (Role::Client, true) => {
                self.padded = self.padded.saturating_add(1);
                let short = self.padded > PADDED_MAX && self.padded.is_multiple_of(2);
                let most = to.udp().map_or(FIRST_BYTES, |to| self.mtud.datagram(to));
                if short { self.mtud.least() } else { FIRST_BYTES.min(most) }
            }
            (Role::Client, false) | (Role::Server, _) => 0,
        };
        let padding = padded.saturating_sub(self.wire.overhead() + payload_bytes);
        // It rides on every datagram until it is answered: any of them may be lost.
        let challenge = self.validation.as_ref().and_then(AddressValidation::challenge);
        let unknown = self.last_heard.is_none() || challenge.is_some();
        Control {
            challenge,
            response: self.owed.take().map(|(token, _)| token),
            announce: unknown.then(|| announce(self.answers_slots)),
            slot: None,
            padding,
        }
    }

    /// Does what is due without a datagram: forgets keys, and an address that does not prove itself.
    pub(crate) fn advance(&mut self, now: Time) {
        self.wire.advance(now, self.rtt.rto());
        self.mtud.advance(now);
        if let Some(validated) =
            self.validation.as_mut().and_then(|validation| validation.abandon(now))
        {
            // A client that was forgotten as a target stays forgotten: only its own datagram brings
            // it back.
            self.peer = self.peer.and(Some(Remote::Udp(validated)));
        }
        self.fall_back(now);
    }

    /// Where a datagram is due that is about the path alone.
    pub(crate) fn control_due(&self, now: Time) -> Option<Remote> {
        if self.is_on_stream() {
            return self.try_due(now);
        }
        let asks =
            self.validation.as_ref().and_then(AddressValidation::wake).is_some_and(|at| at <= now);
        let may_answer = |validation: &AddressValidation| validation.admits(self.wire.overhead());
        let answers = self.owed.is_some() && self.validation.as_ref().is_none_or(may_answer);
        self.peer.filter(|_| asks || answers)
    }

    /// Whether a datagram with these octets of a fragment, and of these lengths, may go to the peer now.
    pub(crate) fn admits(&self, contents: usize, lengths: Lengths) -> bool {
        let bare = contents + self.wire.fragment_overhead() + self.wire.overhead();
        let longest = self.peer.map_or(usize::MAX, |to| self.datagram_max(to));
        let bytes = lengths::padded_max(bare, lengths, longest);
        let may_be_sent = |validation: &AddressValidation| validation.admits(bytes);
        self.is_on_stream() || self.validation.as_ref().is_none_or(may_be_sent)
    }

    /// When [`advance`](Path::advance) has something to do, or a datagram about the path is due.
    pub(crate) fn wake(&self) -> Option<Time> {
        let validation = self
            .validation
            .as_ref()
            .and_then(AddressValidation::wake)
            .filter(|_| self.peer.is_some());
        self.wire.wake().into_iter().chain(validation).chain(self.ways_wake()).min()
    }

    /// Whether both ends tell what arrives.
    pub(crate) fn carries_reports(&self) -> bool {
        self.wire.carries_reports()
    }

    /// Since when something that asks for an answer has had none. Where nobody reports what comes, an answer is
    /// always awaited.
    pub(crate) fn awaits_since(&self) -> Option<Time> {
        if self.carries_reports() { self.awaits } else { Some(Time::ZERO) }
    }

    /// See [`Wire::claims`].
    pub(crate) fn claims(&self, datagram: &[u8]) -> bool {
        self.wire.claims(datagram)
    }

    pub(crate) fn wire(&mut self) -> &mut dyn Wire {
        &mut *self.wire
    }

    pub(crate) fn peer(&self) -> Option<Remote> {
        self.peer
    }

    pub(crate) fn last_heard(&self) -> Option<Time> {
        self.last_heard
    }

    fn take_reply(&mut self, now: Time, timing: &Timing) -> Option<Stamp> {
        // Each stamp is answered once: a second answer would measure our silence and not the path.
        let (stamp, received) = self.held?;
        if now.since(received) >= timing.stamp_hold_max {
            return None;
        }
        self.held = None;
        // The reply is aged by how long we held the stamp, so a delayed ack does not look like a slow
        // path. Whole milliseconds of both moments, as the stamps themselves are cut.
        let from = Time::from_millis(received.as_millis());
        Some(stamp.later(Time::from_millis(now.as_millis()).since(from)))
    }
}

#[cfg(test)]
mod tests;
