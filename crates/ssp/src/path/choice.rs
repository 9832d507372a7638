//! Which way a path takes: where a server follows its client to, and when either end goes to the stream or back to UDP
//! (`docs/wire.md` §11).

use super::{Path, announce};
use crate::machine::{Arrival, PathId, Remote, StreamId};
use crate::recovery::attribution::LossAttribution;
use crate::stats::Stats;
use crate::time::Time;
use crate::wire::{Control, Report, Role};

impl Path {
    /// Which of our paths is in use.
    pub(crate) fn id(&self) -> PathId {
        self.peer.map_or(PathId::UDP, Remote::path)
    }

    /// Whether a stream is in use.
    pub(crate) fn is_on_stream(&self) -> bool {
        self.peer.is_some_and(Remote::is_stream)
    }

    /// There is a stream to the peer. It is used at once where UDP has not shown that it works.
    pub(crate) fn stream_opened(&mut self, now: Time, stream: StreamId) {
        self.ways.open(stream);
        let is_heard = self.last_heard.is_some() && !self.is_on_stream();
        let is_late = self.falls_back_at().is_some_and(|at| at <= now);
        if self.role == Role::Client && (!is_heard || is_late) {
            self.take(now, Remote::Stream(stream));
        }
    }

    /// The stream has ended. A server has no address then until its client is heard.
    pub(crate) fn stream_closed(&mut self, now: Time, stream: StreamId) {
        if self.ways.close(stream) && self.peer == Some(Remote::Stream(stream)) {
            self.peer = self.server.map(Remote::Udp);
            self.switch(now);
        }
    }

    /// Whether another way has come into use since this was asked.
    pub(crate) fn take_switch(&mut self) -> bool {
        core::mem::take(&mut self.switched)
    }

    /// The client's newest datagram came from here. Where it moved the client to, if it was elsewhere before.
    pub(super) fn follow_newest(
        &mut self,
        now: Time,
        from: Remote,
        bytes: usize,
    ) -> Option<Remote> {
        match (from, &mut self.validation) {
            // It may work one way only, and the stream works.
            (Remote::Udp(from), Some(validation)) if self.peer.is_some_and(Remote::is_stream) => {
                validation.on_datagram_beside(now, from, bytes);
                return None;
            }
            (Remote::Udp(from), Some(validation)) => validation.on_datagram(now, from, bytes),
            (Remote::Stream(_), Some(validation)) => validation.rest(),
            (_, None) => {}
        }
        self.follow(now, from)
    }

    /// Believed at once, since a client that roams waits for its screen. Validation limits what is sent there until
    /// the address has answered.
    pub(super) fn follow(&mut self, now: Time, from: Remote) -> Option<Remote> {
        if let Remote::Stream(stream) = from {
            self.ways.open(stream);
        }
        let before = self.id();
        self.peer = Some(from);
        let roamed = self.seen.replace(from).filter(|&before| before != from).map(|_| from);
        if self.id() != before {
            self.switch(now);
        } else if roamed.is_some() {
            self.forget(now);
        }
        roamed
    }

    /// A client chooses by what the server's datagram shows: UDP works if it brings the report of a datagram that went
    /// by UDP. And a server that stays with the stream does so because we do not hear it by UDP, or it us.
    pub(super) fn choose(
        &mut self,
        now: Time,
        from: Remote,
        is_newest: bool,
        report: Option<&Report>,
    ) {
        match (from, self.peer, self.server) {
            (Remote::Udp(_), Some(Remote::Stream(_)), Some(server))
                if report.is_some_and(|report| self.ways.has_arrived(report)) =>
            {
                self.take(now, Remote::Udp(server));
            }
            (Remote::Stream(stream), Some(Remote::Udp(_)), _)
                if is_newest
                    && self.ways.stream() == Some(stream)
                    && self.ways.has_settled(now) =>
            {
                self.take(now, from);
            }
            _ => {}
        }
    }

    /// Goes to the stream where UDP has not answered for long.
    pub(super) fn fall_back(&mut self, now: Time) {
        if let Some(stream) = self.ways.stream()
            && self.falls_back_at().is_some_and(|at| at <= now)
        {
            if let Some(validation) = &mut self.validation {
                validation.rest();
            }
            self.take(now, Remote::Stream(stream));
        }
    }

    /// Where the other way is to be tried, or a question by it is to be answered.
    pub(super) fn try_due(&self, now: Time) -> Option<Remote> {
        if let Some(server) = self.server {
            let is_asked = self.owed.is_some_and(|(_, at)| !at.is_stream());
            let is_due = is_asked || self.ways.try_at() <= now;
            return is_due.then_some(Remote::Udp(server));
        }
        let validation = self.validation.as_ref()?;
        let is_due = validation.wake().is_some_and(|at| at <= now);
        validation.asked().filter(|_| is_due).map(Remote::Udp)
    }

    /// When [`advance`](Path::advance) goes to the stream, or UDP is tried.
    pub(super) fn ways_wake(&self) -> Option<Time> {
        match self.is_on_stream() {
            true => self.server.map(|_| self.ways.try_at()),
            false => self.falls_back_at(),
        }
    }

    /// Takes an answer to one of our questions, in a late datagram as well: that it was overtaken does not make it less
    /// true. Whether it proves that UDP works both ways while a stream is in use.
    pub(super) fn is_proof(
        &mut self,
        arrival: Arrival,
        response: Option<u64>,
        stats: &mut Stats,
    ) -> bool {
        let (Some(validation), Some(token), Some(from)) =
            (&mut self.validation, response, arrival.from.udp())
        else {
            return false;
        };
        let Some(is_another) = validation.on_response(from, token) else { return false };
        stats.addresses_proven += u64::from(is_another);
        self.is_on_stream()
    }

    /// Where a question that came so is answered.
    pub(super) fn answered_at(&self, arrival: Arrival) -> Remote {
        match (arrival.from, self.server) {
            (Remote::Udp(_), Some(server)) => Remote::Udp(server),
            (from, _) => from,
        }
    }

    /// What a datagram says of the path that goes by a stream, or tries UDP beside one.
    pub(super) fn control_of_ways(&mut self, to: Remote) -> Control {
        // Each address is asked and answered where it is.
        let is_there = self.owed.is_some_and(|(_, at)| at.is_stream() == to.is_stream());
        let response = self.owed.take_if(|_| is_there).map(|(token, _)| token);
        let asks = self.validation.as_ref().filter(|_| !to.is_stream());
        // A server was always heard before; its word rides along until the client is known to hear it.
        let unknown =
            self.last_heard.is_none() || self.answers_slots && self.answered == Time::ZERO;
        Control {
            challenge: asks.and_then(|validation| validation.challenge()),
            response,
            announce: unknown.then(|| announce(self.answers_slots)),
            slot: None,
            padding: 0,
        }
    }

    fn falls_back_at(&self) -> Option<Time> {
        let is_udp = self.peer.is_some_and(|peer| !peer.is_stream());
        self.ways.falls_back_at(self.awaits.filter(|_| is_udp), self.rtt.rto())
    }

    fn take(&mut self, now: Time, to: Remote) {
        self.peer = Some(to);
        if self.role == Role::Server {
            self.seen = Some(to);
        }
        self.switch(now);
    }

    /// Datagrams go by the other way from now on, of which nothing is known.
    fn switch(&mut self, now: Time) {
        let id = self.id();
        let window = self.is_on_stream().then_some(self.ways.timing().window_bytes);
        self.forget(now);
        self.congestion.switch(now, self.sent[id.index()], window);
        self.attribution = LossAttribution::default();
        self.arrivals.forget_losses();
        let (least, most) = self.ways.rto(id);
        self.rtt.bound(least, most);
        (self.held, self.awaits) = (None, None);
        self.ways.switch(now);
        self.switched = true;
    }
}
