//! One end of a session: keeps an object of ours in step at the peer and holds the newest of the peer's
//! (`mosh-protocol.md` §4). It must not know what the objects are, nor what a socket is.

mod chosen;
mod ending;
mod outgoing;
mod reports;
mod session;
mod slots;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::fmt;
use core::net::SocketAddr;
use core::time::Duration;

use crate::buggify::{Buggify, Point};
use crate::instruction::Instruction;
use crate::instruction::assembly::Assembler;
use crate::instruction::extensions::Extensions;
use crate::instruction::fragment::FragmentId;
use crate::machine::{Arrival, Machine, Remote, Transmit};
use crate::outbox::Outbox;
use crate::path::{Freshness, Opened, Path};
use crate::receiver::{Accepted, Receiver};
use crate::recovery::rtt::RttEstimator;
use crate::recovery::sent_log::SentLog;
use crate::reject::Reject;
use crate::sender::Sender;
use crate::sender::acks::Fragmented;
use crate::sender::transfer::Transfer;
use crate::slots::{Answers, Grid, Jitter, Runs};
use crate::state::{BadDiff, State, StateNum};
use crate::stats::{PathStats, Stats, Usage};
use crate::time::Time;
use crate::timing::Timing;
use crate::wire::{Exhausted, Flags, Role, Wire};

/// Sets the grid's randomness apart from the chaff's.
const GRID_SEED: u64 = 0x5107_5107_5107_5107;
/// The same of answers'.
const ANSWERS_SEED: u64 = 0xa75e_a75e_a75e_a75e;

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
    PeerRoamed(Remote),
    /// The peer has begun to shut down: the remote object is final.
    PeerClosing,
    /// The peer sent a diff that cannot be read, and nothing more of its object is taken. The session cannot go
    /// on; with [`close`](Endpoint::close) the local object tells the peer why.
    BadRemote(BadDiff),
    /// The session is over. A client whose server has ended it [lingers](Endpoint::lingers) for a moment.
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

/// An instruction of the peer's without its diff.
#[derive(Clone, Copy, Debug)]
struct Applying {
    new: StateNum,
    /// Whether there is a diff.
    changes: bool,
    datagrams: Fragmented,
    flags: Flags,
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
    /// The datagrams sent, until their outcome is known.
    log: SentLog,
    sender: Sender<L>,
    receiver: Receiver<R>,
    extensions: Extensions,
    /// The peer sent a diff that cannot be read.
    remote_is_bad: bool,
    /// The instruction being sent, until its last fragment is.
    outgoing: Option<Transfer>,
    /// The last one of several datagrams, until its state is acknowledged or of no more use: of it only
    /// what is lost is sent again. `None` where nobody tells what arrives.
    repairs: Option<Transfer>,
    last_id: FragmentId,
    /// At most one of each kind.
    events: VecDeque<Event>,
    /// How often the peer's last state was acknowledged.
    final_acks: u32,
    /// The owner was told that the session is over, and that is acknowledged once more.
    lingers: bool,
    over: bool,
    /// Long diffs are applied in parts, between which the driver does other things.
    in_parts: bool,
    /// The instruction whose diff is being applied, without that diff.
    applying: Option<Applying>,
    stats: Stats,
    buggify: Buggify,
    role: Role,
    runs: Runs,
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
        let slots = timing.slots.clone().filter(|_| role == Role::Client);
        let grid = slots.map(|slots| Grid::new(slots, timing.slot_jitter, seed ^ GRID_SEED));
        let answers = Answers::new(Jitter::new(seed ^ ANSWERS_SEED, timing.slot_jitter));
        let runs = Runs { grid, answers, ..Runs::default() };
        Endpoint {
            assembler: Assembler::new(wire.assemblies_max()),
            log: SentLog::default(),
            path: Path::new(now, role, wire, &timing, peer),
            sender: Sender::new(now, role, timing.clone(), local, seed),
            receiver: Receiver::new(remote),
            extensions: Extensions::default(),
            timing,
            remote_is_bad: false,
            outgoing: None,
            repairs: None,
            last_id: FragmentId::default(),
            events: VecDeque::new(),
            final_acks: 0,
            lingers: false,
            over: false,
            in_parts: false,
            applying: None,
            stats: Stats::default(),
            buggify: Buggify::default(),
            role,
            runs,
        }
    }

    /// From now on [`handle_datagram`](Machine::handle_datagram) does no more of a long diff than fits into a turn.
    /// Hand over no other datagram, and look at all else that is urgent, as long as there is
    /// [more](Self::is_applying) to [do](Self::apply_part).
    pub fn apply_in_parts(&mut self) {
        self.in_parts = true;
    }

    /// Whether a diff is applied in part.
    pub fn is_applying(&self) -> bool {
        self.applying.is_some()
    }

    /// Goes on with it, for a turn.
    pub fn apply_part(&mut self, now: Time) {
        if let Some(applying) = self.applying.take() {
            let accepted = self.receiver.go_on(now, &self.timing);
            self.settle(now, applying, accepted);
        }
    }

    /// Changes the local object. Ignored once the session is closing: the object must not change then.
    pub fn update(&mut self, now: Time, change: impl FnOnce(&mut L)) {
        let since = if self.takes(Point::CollectionCut) { Time::ZERO } else { now };
        self.sender.update(since, change);
    }

    /// The same for a change that must not show by its length, as a password: until the peer has it, all datagrams
    /// that may hold a part of it are of a few lengths (`docs/wire.md` §9).
    pub fn update_hidden(&mut self, now: Time, change: impl FnOnce(&mut L)) {
        self.sender.update_hidden(now, change);
    }

    /// Starts to shut down: the local object as it is now is the last (§4.4). Without a peer to tell,
    /// the session is over at once.
    pub fn close(&mut self, now: Time) {
        self.sender.close(now);
        if self.path.peer().is_none() {
            self.finish(Event::Closed { clean: false });
        }
    }

    /// The same for a peer that may be away: it is told when it is heard again, however long that takes, and wherever it
    /// is then. For as long as the owner of the session waits.
    pub fn close_and_wait(&mut self) {
        self.sender.close_and_wait();
    }

    /// What happened since the last call, one at a time.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The local object.
    pub fn local(&self) -> &L {
        self.sender.history().current()
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
        self.sender.history().last().num
    }

    /// Whether that is the local object as it is. Asked when it has just been sent, this tells whether it
    /// is all of it, or a part that others follow.
    pub fn is_told(&self) -> bool {
        self.sender.is_told()
    }

    /// Whether a datagram claims to be of this session: see [`Wire::claims`](crate::Wire::claims).
    pub fn claims(&self, datagram: &[u8]) -> bool {
        self.path.claims(datagram)
    }

    /// The newest state the peer is known to hold.
    pub fn acked(&self) -> StateNum {
        self.sender.acked()
    }

    /// When that state was (last) sent. The session's start for state 0.
    pub fn acked_sent_at(&self) -> Time {
        self.sender.history().first().last_sent
    }

    /// The round-trip estimate.
    pub fn rtt(&self) -> &RttEstimator {
        &self.path.rtt
    }

    /// The shortest time between two data sends on this path.
    pub fn send_interval(&self) -> Duration {
        self.sender.send_interval(&self.path.rtt)
    }

    /// When the last authentic datagram came that was newer than any before.
    pub fn last_heard(&self) -> Option<Time> {
        self.path.last_heard()
    }

    /// Since when something that asks for an answer has had none. Where nobody reports what comes, an answer is
    /// always awaited.
    pub fn awaits_since(&self) -> Option<Time> {
        self.path.awaits_since()
    }

    /// When the peer's newest state came.
    pub fn last_new_state(&self) -> Option<Time> {
        self.receiver.last_new()
    }

    /// Whether either end has begun to shut down.
    pub fn closing(&self) -> bool {
        self.sender.is_closing() || self.remote_num() == StateNum::SHUTDOWN
    }

    /// Whether both ends have announced that they understand extensions: from then on states may hold
    /// what stock does not know. It stays so. Not known before the peer's first answer, and never true
    /// with a stock peer.
    pub fn extensions_agreed(&self) -> bool {
        self.extensions.is_mutual()
    }

    /// Counts of all that it has sent, received and dropped.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// What the path does to datagrams at present.
    pub fn path_stats(&self) -> PathStats {
        self.path.stats()
    }

    /// How much it holds now, for a comparison with the limits.
    pub fn held(&self) -> Usage {
        Usage {
            sent_states: self.sender.history().held(),
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
        let octets = datagram.len();
        let opened = self.path.receive(now, arrival, datagram, &self.timing, &mut self.stats);
        self.heed_switch();
        let opened = opened?;
        if let Some(address) = opened.roamed {
            self.stats.roams += 1;
            self.report(Event::PeerRoamed(address));
            // The new path may carry less than what was cut for the old one.
            self.shorten(address);
        }
        let Opened { header, freshness, .. } = opened;
        // A datagram that was overtaken describes the path as it was. Its report is older than one
        // that was read already, and its delay would count as jitter.
        if freshness == Freshness::Newest {
            self.path.congestion.on_datagram(now, &self.path.rtt);
            self.on_control(now, &header.control, octets);
            let feedback = header.report.as_ref().map(|report| self.on_report(now, report));
            // The peer's loss stands in for ours where no report says how much of ours is lost.
            // Of what comes by a stream nothing is lost.
            let on_stream = self.path.is_on_stream();
            let loss = if on_stream { 0.0 } else { self.path.arrivals.loss() };
            self.sender.on_datagram(now, &self.path, loss, feedback);
        }
        let payload = datagram.get(opened.payload).expect("the payload lies in its datagram");
        if payload.is_empty() && self.path.carries_reports() {
            // It was about the path.
            return Ok(());
        }
        let piece = self.path.wire().decode_piece(payload)?;
        let datagrams = if piece.is_whole() { Fragmented::No } else { Fragmented::Yes };
        // Asked before the piece is taken: the last piece of an instruction makes it done.
        let was_done = self.assembler.is_done(piece.id());
        let Some(packed) = self.assembler.take(piece)? else {
            if was_done {
                // Parity, or what was late: no answer but to what asks for one. Flags travel wherever
                // anything is known to be done.
                if header.flags.again {
                    self.sender.repeated(now, &self.path.rtt, header.flags);
                }
            } else {
                self.sender.schedule_report(now, &self.path.rtt);
            }
            return Ok(());
        };
        let message = self.path.wire().unpack(&packed)?;
        // We would forget the base before the diff is applied to it.
        if message.throwaway > message.old {
            return Err(Reject::Throwaway {
                throwaway: message.throwaway.get(),
                old: message.old.get(),
            });
        }
        self.extensions.hear(message.announcement);
        self.process(now, message, datagrams, header.flags);
        Ok(())
    }

    fn process(&mut self, now: Time, message: Instruction, datagrams: Fragmented, flags: Flags) {
        // Of a driver that did not wait.
        self.apply_rest(now);
        if self.sender.acknowledge(now, message.ack) && !self.path.carries_reports() {
            let Endpoint { log, path, .. } = self;
            log.on_state_acked(message.ack, &mut |outcome| path.on_outcome(now, outcome));
            path.congestion.adapt(now, &path.rtt);
        }
        self.end_paste();
        let acked = self.sender.acked();
        // The peer holds the state, so nobody waits for its fragments any more.
        self.repairs.take_if(|transfer| transfer.new_num() <= acked);
        // The peer goes on from the state that we could not make, so its later diffs mean nothing
        // here. Its acknowledgments still do: we may have to say why the session ends.
        if !self.remote_is_bad {
            let changes = !message.diff.is_empty();
            let applying = Applying { new: message.new, changes, datagrams, flags };
            let accepted = match self.takes(Point::StateRefused) {
                true => Ok(Accepted::Quenched),
                false => self.receiver.accept(now, message, &self.timing),
            };
            if accepted == Ok(Accepted::Older) && self.takes(Point::BaseDropped) {
                self.receiver.drop_older(applying.new);
            }
            self.settle(now, applying, accepted);
            if !self.in_parts {
                self.apply_rest(now);
            }
        }
        if self.sender.acked() == StateNum::SHUTDOWN {
            self.finish(Event::Closed { clean: true });
        }
    }

    fn apply_rest(&mut self, now: Time) {
        while self.is_applying() {
            self.apply_part(now);
        }
    }

    /// Draws the conclusions of what an instruction did.
    fn settle(&mut self, now: Time, done: Applying, accepted: Result<Accepted, BadDiff>) {
        let accepted = match accepted {
            Ok(accepted) => accepted,
            Err(bad) => {
                self.remote_is_bad = true;
                return self.report(Event::BadRemote(bad));
            }
        };
        let Applying { new, changes, datagrams, flags } = done;
        match accepted {
            Accepted::Part => {
                self.applying = Some(done);
                return;
            }
            Accepted::Stale => {
                self.stats.stale += 1;
                self.stats.baseless += u64::from(new > self.remote_num());
                // A repeat of an older state tells nothing: the peer sent it before it heard of the
                // newer one. A repeat of the newest may mean that our acknowledgment was lost.
                if new == self.remote_num() && changes {
                    self.sender.repeated(now, &self.path.rtt, flags);
                }
            }
            Accepted::Quenched => self.stats.quenched += 1,
            Accepted::Older => self.stats.states_received += 1,
            Accepted::NewestEqual | Accepted::Newest => {
                self.stats.states_received += 1;
                self.sender.on_state(now);
                match accepted {
                    // A state without a diff is itself an acknowledgment. Two ends that
                    // acknowledged those would never be silent.
                    Accepted::Newest => self.sender.schedule_ack(now, &self.path.rtt, datagrams),
                    _ => self.sender.on_empty_state(now),
                }
                self.report(Event::NewRemote { num: new });
            }
        }
        let closing = self.sender.is_closing();
        if self.remote_num() == StateNum::SHUTDOWN && self.sender.peer_closes(now) {
            self.stats.shutdowns_raced += u64::from(closing);
            if self.sender.only_leaves() {
                (self.outgoing, self.repairs) = (None, None);
            }
            self.report(Event::PeerClosing);
        }
    }

    /// Queues an event; the newest of a kind stands for those before it.
    fn report(&mut self, event: Event) {
        let kind = core::mem::discriminant(&event);
        // A driver that does not poll must not make the queue grow.
        self.events.retain(|queued| core::mem::discriminant(queued) != kind);
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
        let (window, roams) = (self.path.congestion.size(), self.stats.roams);
        let received = self.receive(now, arrival, datagram);
        let shrunk = self.path.congestion.size() < window && self.stats.roams == roams;
        self.stats.window_shrunk += u64::from(shrunk);
        self.stats.repaired = self.assembler.repaired();
        if self.takes(Point::SpuriousTimeout) {
            self.sender.refuse();
        }
        if let Err(reject) = &received {
            self.stats.rejected.count(reject);
        }
        received
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Outbox) -> Option<Transmit> {
        out.datagram.clear();
        self.path.advance(now);
        self.heed_switch();
        if self.over {
            return None;
        }
        self.runs.answers.advance(now);
        if self.is_in_run(now) {
            let sent = self.poll_run(now, out);
            // A machine that slept amid a run finds it over, and what waited for its slots is due.
            if sent.is_some() || self.is_in_run(now) {
                return sent;
            }
        }
        self.sender.set_run(false);
        let due = self.go_on(now).or_else(|| self.begin(now, &mut out.deflater));
        if let Some((transfer, part)) = due {
            let sent = self.emit(now, transfer, part, out);
            return self.or_exhausted(sent);
        }
        let transmit = self.poll_path(now, &mut out.datagram);
        if transmit.is_none() {
            self.end_if_due(now);
        }
        transmit
    }

    fn poll_timeout(&self) -> Option<Time> {
        if self.over {
            return None;
        }
        if self.is_on_by_timers() {
            return self.run_wake();
        }
        let probe = self.path.probe().map(|(at, _)| at);
        // While a transfer is under way the sender is not asked, so its deadlines would wake us in
        // vain.
        let path = self
            .path
            .wake()
            .into_iter()
            .chain(probe)
            .chain(self.sender.close_deadline(&self.path.rtt));
        if let Some(transfer) = &self.outgoing {
            let part = self.emit_at(transfer).map(|(at, _)| at);
            return path.chain(part).chain(self.sender.scheduled_at()).min();
        }
        self.path.peer()?;
        let repair = self.repairs.as_ref().and_then(|transfer| self.emit_at(transfer));
        let wake = self.sender.wake(&self.path);
        path.chain(wake).chain(repair.map(|(at, _)| at)).min()
    }
}
