//! One end of a session: keeps an object of ours in step at the peer and holds the newest of the peer's
//! (`mosh-protocol.md` §4). It must not know what the objects are, nor what a socket is.

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use crate::announce::Acquaintance;
use crate::datagram::{Freshness, Opened, Path, Sending};
use crate::fragment::{self, Assembler, FragmentId};
use crate::instruction::Instruction;
use crate::machine::{Arrival, Machine, Reject, Transmit};
use crate::receiver::{Accepted, Receiver};
use crate::rtt::Rtt;
use crate::sender::{Datagrams, Said, Sender};
use crate::state::{BadDiff, State, StateNum};
use crate::stats::{Held, Stats};
use crate::time::Time;
use crate::timing::Timing;
use crate::wire::{Exhausted, Flags, Role, Wire};

/// What an [`Endpoint`] starts from.
pub struct Config<L, R> {
    /// Which end this is.
    pub role: Role,
    /// The envelope, keyed.
    pub wire: Box<dyn Wire>,
    /// The protocol's constants.
    pub timing: Timing,
    /// Where the peer is. A client must know; a server may learn it.
    pub peer: Option<SocketAddr>,
    /// State 0 of the object we own.
    pub local: L,
    /// State 0 of the object the peer owns.
    pub remote: R,
    /// Seeds the chaff. Take it from the system's randomness, or from the simulation's seed.
    pub seed: u64,
}

/// What happened, in order.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Event {
    /// The peer's object has a new newest version, held by [`Endpoint::remote`]. Versions between may
    /// have been skipped.
    NewRemote {
        /// Its number.
        num: StateNum,
    },
    /// The peer now sends from here, and is answered there. Not reported for its first address.
    PeerRoamed(SocketAddr),
    /// The peer has begun to shut down: the remote object is final.
    PeerClosing,
    /// The session is over.
    Closed {
        /// One end's last state was acknowledged; otherwise the peer may not know.
        clean: bool,
    },
    /// The session is over because it cannot go on.
    Failed(Failure),
}

/// Why a session cannot go on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Failure {
    /// The peer sent a diff that cannot be read.
    BadDiff(BadDiff),
    /// The key has encrypted all it may.
    Exhausted,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::BadDiff(bad) => bad.fmt(f),
            Failure::Exhausted => Exhausted.fmt(f),
        }
    }
}

/// One end of a session.
///
/// It owns one object and changes it with [`update`](Endpoint::update); the peer's object appears in
/// [`remote`](Endpoint::remote). What to send is computed when asked, from the newest state, so nothing
/// but the fragments of one instruction ever waits. All else it holds is bounded by its [`Timing`]:
/// states sent and received, one event of each kind; and fragment assemblies by its wire.
pub struct Endpoint<L: State, R: State> {
    timing: Timing,
    path: Path,
    assembler: Assembler,
    sender: Sender<L>,
    receiver: Receiver<R>,
    acquaintance: Acquaintance,
    /// The instruction being sent, until its last fragment is.
    outgoing: Option<Outgoing>,
    last_id: FragmentId,
    /// At most one of each kind.
    events: VecDeque<Event>,
    /// How often the peer's last state was acknowledged.
    goodbyes: u32,
    over: bool,
    stats: Stats,
    /// A fragment being encoded; kept for its room.
    payload: Vec<u8>,
}

/// An instruction on its way into datagrams.
struct Outgoing {
    started: Time,
    flags: Flags,
    to: SocketAddr,
    id: FragmentId,
    packed: Vec<u8>,
    room: usize,
    /// The next fragment.
    number: u16,
    /// It acknowledges the peer's last state.
    says_goodbye: bool,
}

impl<L: State, R: State> Endpoint<L, R> {
    /// A session that starts now.
    ///
    /// # Panics
    /// If the timing makes no sense: intervals of zero, fewer than two states, over 255 octets of chaff.
    pub fn new(now: Time, config: Config<L, R>) -> Endpoint<L, R> {
        let Config { role, wire, timing, peer, local, remote, seed } = config;
        assert!(!timing.send_interval_min.is_zero(), "a send interval of zero spins");
        assert!(!timing.ack_interval.is_zero(), "an ack interval of zero spins");
        assert!(!timing.rto_min.is_zero(), "a retransmission timeout of zero spins");
        assert!(timing.sent_states_max >= 2, "the base and the newest state are kept");
        assert!(timing.received_states_max >= 2, "the base and the newest state are kept");
        assert!(timing.chaff_bytes_max <= usize::from(u8::MAX), "chaff leaves room for diffs");
        Endpoint {
            assembler: Assembler::new(wire.assemblies_max()),
            path: Path::new(now, role, wire, &timing, peer),
            sender: Sender::new(now, role, timing.clone(), local, seed),
            receiver: Receiver::new(remote),
            acquaintance: Acquaintance::default(),
            timing,
            outgoing: None,
            last_id: FragmentId::default(),
            events: VecDeque::new(),
            goodbyes: 0,
            over: false,
            stats: Stats::default(),
            payload: Vec::new(),
        }
    }

    /// Changes the local object. Ignored once the session is closing: the object must not change then.
    pub fn update(&mut self, now: Time, change: impl FnOnce(&mut L)) {
        self.sender.update(now, change);
    }

    /// Starts to shut down: the local object as it is now is the last (§4.4). Without a peer to tell,
    /// the session is over at once.
    pub fn close(&mut self, now: Time) {
        self.sender.close(now);
        if self.path.peer().is_none() {
            self.finish(Event::Closed { clean: false });
        }
    }

    /// A datagram was refused as too big for the path: use small ones from now on (§2.3), and send
    /// again what did not fit.
    pub fn datagram_too_big(&mut self) {
        if self.path.shrink() {
            self.outgoing = None;
            self.sender.refuse();
        }
    }

    /// The network on this side is another than before, or this side has slept: what is unanswered is said
    /// again at once, from the state the peer is known to hold, and if nothing is, that we are there.
    pub fn moved(&mut self, now: Time) {
        self.outgoing = None;
        self.path.moved(now);
        self.sender.moved(now);
        self.sender.refuse();
    }

    /// What happened since the last call, one at a time.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The local object.
    pub fn local(&self) -> &L {
        self.sender.current()
    }

    /// The newest version of the peer's object.
    pub fn remote(&self) -> &R {
        self.receiver.newest()
    }

    /// Its number.
    pub fn remote_num(&self) -> StateNum {
        self.receiver.newest_num()
    }

    /// The number of the last state sent.
    pub fn sent_num(&self) -> StateNum {
        self.sender.last_num()
    }

    /// The newest state the peer is known to hold.
    pub fn acked(&self) -> StateNum {
        self.sender.acked()
    }

    /// When that state was (last) sent. The session's start for state 0.
    pub fn acked_sent_at(&self) -> Time {
        self.sender.acked_sent_at()
    }

    /// The round-trip estimate.
    pub fn rtt(&self) -> &Rtt {
        self.path.rtt()
    }

    /// The shortest time between two data sends on this path.
    pub fn send_interval(&self) -> Duration {
        self.sender.send_interval(self.path.rtt())
    }

    /// When the last authentic datagram came that was newer than any before.
    pub fn last_heard(&self) -> Option<Time> {
        self.path.last_heard()
    }

    /// When the peer's newest state came.
    pub fn last_new_state(&self) -> Option<Time> {
        self.receiver.last_new()
    }

    /// Where datagrams go. `None`: a server that has not heard its client, or not for long.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.path.peer()
    }

    /// Whether either end has begun to shut down.
    pub fn closing(&self) -> bool {
        self.sender.is_closing() || self.remote_num() == StateNum::SHUTDOWN
    }

    /// Whether both ends have announced that they understand extensions: from then on states may hold
    /// what stock does not know. It stays so. Not known before the peer's first answer, and never true
    /// with a stock peer.
    pub fn is_acquainted(&self) -> bool {
        self.acquaintance.is_mutual()
    }

    /// What was sent, received and dropped.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// What is held now, against its limits.
    pub fn held(&self) -> Held {
        Held {
            sent_states: self.sender.held(),
            received_states: self.receiver.held(),
            received_bytes: self.receiver.held_bytes(),
            assembly_bytes: self.assembler.held_bytes(),
            events: self.events.len(),
        }
    }

    fn receive(&mut self, now: Time, arrival: Arrival, datagram: &mut [u8]) -> Result<(), Reject> {
        if self.over {
            return Err(Reject::Ended);
        }
        let opened = self.path.receive(now, arrival, datagram, &self.timing, &mut self.stats)?;
        if let Some(address) = opened.roamed {
            self.stats.roams += 1;
            self.report(Event::PeerRoamed(address));
            self.sender.moved(now);
        }
        let Opened { header, freshness, .. } = opened;
        if freshness == Freshness::Newest {
            let loss = self.path.meter().loss();
            self.sender.hear_datagram(now, self.path.rtt(), loss, header.report.as_ref());
        }
        let payload = datagram.get(opened.payload).expect("the payload lies in its datagram");
        if payload.is_empty() && self.path.wire().carries_reports() {
            // It was about the path.
            return Ok(());
        }
        let fragment = self.path.wire().decode_fragment(payload)?;
        let datagrams = match fragment.number {
            0 if fragment.last => Datagrams::One,
            _ => Datagrams::Several,
        };
        let Some(packed) = self.assembler.add(fragment)? else {
            // What came of it is worth a report: the rest may never come.
            if self.path.wire().carries_reports() {
                self.sender.owe_ack(now, self.path.rtt(), Datagrams::Several);
            }
            return Ok(());
        };
        let message = self.path.wire().unpack(&packed)?;
        if message.throwaway > message.old {
            return Err(Reject::Throwaway {
                throwaway: message.throwaway.get(),
                old: message.old.get(),
            });
        }
        self.acquaintance.hear(message.announcement);
        self.process(now, &message, datagrams, header.flags);
        Ok(())
    }

    fn process(&mut self, now: Time, message: &Instruction, datagrams: Datagrams, flags: Flags) {
        self.sender.acknowledge(now, self.path.rtt(), message.ack);
        let accepted = match self.receiver.accept(now, message, &self.timing) {
            Ok(accepted) => accepted,
            Err(bad) => return self.finish(Event::Failed(Failure::BadDiff(bad))),
        };
        match accepted {
            Accepted::Stale => {
                self.stats.stale += 1;
                self.stats.baseless += u64::from(message.new > self.remote_num());
                if message.new == self.remote_num() && !message.diff.is_empty() {
                    self.sender.repeated(now, self.path.rtt(), flags);
                }
            }
            Accepted::Quenched => self.stats.quenched += 1,
            Accepted::Older => self.stats.states_received += 1,
            Accepted::NewestEqual | Accepted::Newest => {
                self.stats.states_received += 1;
                self.sender.hear(now);
                if accepted == Accepted::Newest {
                    self.sender.owe_ack(now, self.path.rtt(), datagrams);
                }
                self.report(Event::NewRemote { num: message.new });
            }
        }
        if self.remote_num() == StateNum::SHUTDOWN && self.sender.peer_closes() {
            self.report(Event::PeerClosing);
        }
        if self.sender.acked() == StateNum::SHUTDOWN {
            self.finish(Event::Closed { clean: true });
        }
    }

    /// Starts the instruction that is due, if any, and if there is somewhere to send it.
    fn start(&mut self, now: Time) -> Option<Outgoing> {
        let to = self.path.target(now, &self.timing)?;
        let Said { mut message, flags } =
            self.sender.poll(now, self.path.rtt(), &mut self.stats)?;
        message.ack = self.remote_num();
        message.announcement = self.acquaintance.say();
        let mut packed = Vec::new();
        self.path.wire().pack(&message, &mut packed);
        self.last_id = self.last_id.next();
        Some(Outgoing {
            started: now,
            flags,
            to,
            id: self.last_id,
            packed,
            room: self.path.room(to),
            number: 0,
            says_goodbye: message.ack == StateNum::SHUTDOWN,
        })
    }

    /// Seals the next fragment of the instruction on its way.
    fn emit(
        &mut self,
        now: Time,
        mut outgoing: Outgoing,
        out: &mut Vec<u8>,
    ) -> Result<Transmit, Exhausted> {
        let Outgoing { id, room, number, flags, .. } = outgoing;
        // The peer may have moved since the instruction was started.
        let to = self.path.peer().unwrap_or(outgoing.to);
        let fragment = fragment::fragment(id, &outgoing.packed, room, number);
        self.payload.clear();
        self.path.wire().encode_fragment(&fragment, &mut self.payload);
        let acked_sent_at = self.sender.acked_sent_at();
        let last = fragment.last;
        let ack_delay = self.sender.ack_delay();
        let sending = Sending { payload: &self.payload, flags, acked_sent_at, ack_delay };
        let (transmit, seq) = self.path.send(now, to, sending, &self.timing, out)?;
        self.stats.sent.add(out.len());
        if !flags.ack_only {
            self.sender.sent_datagram(now, seq, out.len(), self.path.rtt());
        }
        self.stats.hops += u64::from(transmit.new_socket);
        if !last {
            outgoing.number += 1;
            self.outgoing = Some(outgoing);
        } else if outgoing.says_goodbye {
            self.goodbyes += 1;
            if self.goodbyes >= self.timing.goodbyes {
                self.finish(Event::Closed { clean: true });
            }
        }
        Ok(transmit)
    }

    /// Whether the next fragment may go to the peer's address.
    fn may_emit(&self, outgoing: &Outgoing) -> bool {
        let rest =
            outgoing.packed.len().saturating_sub(usize::from(outgoing.number) * outgoing.room);
        self.path.admits(rest.min(outgoing.room))
    }

    /// Sends what is about the path and nothing else.
    fn emit_control(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        let to = self.path.target(now, &self.timing)?;
        let acked_sent_at = self.sender.acked_sent_at();
        let flags = Flags { ack_only: true, ..Flags::default() };
        let sending = Sending { flags, acked_sent_at, ..Sending::default() };
        let sent = self.path.send(now, to, sending, &self.timing, out);
        let sent = sent.map(|(transmit, _)| transmit);
        if sent.is_ok() {
            self.stats.sent.add(out.len());
        }
        self.or_exhausted(sent)
    }

    fn or_exhausted(&mut self, sent: Result<Transmit, Exhausted>) -> Option<Transmit> {
        if sent.is_err() {
            self.finish(Event::Failed(Failure::Exhausted));
        }
        sent.ok()
    }

    fn close_deadline(&self) -> Option<Time> {
        self.sender.close_deadline(self.path.rtt())
    }

    /// Ends a shutdown that has waited long enough, or that nobody can be told of.
    fn end_if_due(&mut self, now: Time) {
        let unreachable = self.sender.is_closing() && self.path.peer().is_none();
        if unreachable || self.close_deadline().is_some_and(|at| at <= now) {
            self.finish(Event::Closed { clean: false });
        }
    }

    fn finish(&mut self, event: Event) {
        if !self.over {
            self.over = true;
            self.outgoing = None;
            self.report(event);
        }
    }

    /// Queues an event; the newest of a kind stands for those before it.
    fn report(&mut self, event: Event) {
        let kind = std::mem::discriminant(&event);
        self.events.retain(|queued| std::mem::discriminant(queued) != kind);
        self.events.push_back(event);
    }
}

impl<L: State, R: State> Machine for Endpoint<L, R> {
    fn handle_datagram(
        &mut self,
        now: Time,
        arrival: Arrival,
        datagram: &mut [u8],
    ) -> Result<(), Reject> {
        let received = self.receive(now, arrival, datagram);
        if let Err(reject) = &received {
            self.stats.rejected.count(reject);
        }
        received
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        out.clear();
        self.path.advance(now);
        if self.over {
            return None;
        }
        let outgoing = match self.outgoing.take() {
            Some(outgoing) => outgoing,
            None => match self.start(now) {
                Some(outgoing) => outgoing,
                None if self.path.is_control_due(now) => return self.emit_control(now, out),
                None => {
                    self.end_if_due(now);
                    return None;
                }
            },
        };
        if !self.may_emit(&outgoing) {
            // Until the address is proven, or the end.
            if self.path.target(now, &self.timing).is_some() {
                self.outgoing = Some(outgoing);
            }
            if self.path.is_control_due(now) {
                return self.emit_control(now, out);
            }
            self.end_if_due(now);
            return None;
        }
        let sent = self.emit(now, outgoing, out);
        self.or_exhausted(sent)
    }

    fn poll_timeout(&self) -> Option<Time> {
        if self.over {
            return None;
        }
        if let Some(outgoing) = &self.outgoing {
            return match self.may_emit(outgoing) {
                true => Some(outgoing.started),
                false => self.path.wake().into_iter().chain(self.close_deadline()).min(),
            };
        }
        self.path.peer()?;
        let wake = self.sender.wake(self.path.rtt());
        wake.into_iter().chain(self.close_deadline()).chain(self.path.wake()).min()
    }
}
