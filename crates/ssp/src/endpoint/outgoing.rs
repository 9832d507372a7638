//! What an endpoint sends, in order: the rest of a transfer that has begun, then new instructions,
//! lost fragments, and control. The sender decides when, and the path how much.

use alloc::vec::Vec;
use core::time::Duration;

use zeroize::{Zeroize, Zeroizing};

use super::{Endpoint, Event, Failure};
use crate::buggify::Point;
use crate::instruction::Instruction;
use crate::machine::{PathId, Remote, Transmit};
use crate::outbox::Outbox;
use crate::path::{Sealed, Sending};
use crate::recovery::sent_log::{Load, SentDatagram};
use crate::sender::core::Prepared;
use crate::sender::transfer::{self, Transfer};
use crate::state::State;
use crate::time::Time;
use crate::wire::deflate::Deflater;
use crate::wire::{Exhausted, Flags};

/// What an instruction takes beside keys: its own fields, chaff, and what turns octets into a message. More
/// in a part are resizes, of which a client holds few back.
const PART_SPARE: usize = 2048;
/// How often an instruction is packed to find the chaff that makes it as long as it should be.
const LENGTHEN_TRIES: u32 = 16;
/// A datagram is taken to be on its way for at least so long.
const EXPIRY_MIN: Duration = Duration::from_secs(1);

impl<L: State, R: State> Endpoint<L, R> {
    /// Starts the instruction that is due, if any, and if there is somewhere to send it.
    fn start(&mut self, now: Time, deflater: &mut Deflater) -> Option<Transfer> {
        let to = self.path.target(now, &self.timing)?;
        let part = transfer::BURST * self.path.payload_max(to) - PART_SPARE;
        let said = self.sender.poll(now, &self.path, part, &mut self.stats)?;
        Some(self.launch(now, to, said, deflater))
    }

    pub(super) fn launch(
        &mut self,
        now: Time,
        to: Remote,
        said: Prepared,
        deflater: &mut Deflater,
    ) -> Transfer {
        let Prepared { mut message, flags, follows } = said;
        message.ack = self.remote_num();
        // The peer may hold most fragments of what is sent again. A new transfer would send all of
        // them once more.
        let same = self.repairs.take_if(|transfer| flags.again && transfer.says(&message));
        let room = self.path.payload_max(to);
        if let Some(mut transfer) = same {
            let longest = transfer.contents_bytes(0);
            self.path.unanswered(now, longest);
            if self.path.payload_max(to) >= longest && transfer.on_timeout() {
                // The fragments carry the acknowledgment of when they were cut. The newer one goes
                // alone.
                if transfer.is_behind(&message) {
                    self.sender.schedule_at_once(now);
                }
                return transfer;
            }
        }
        message.announcement = self.extensions.say();
        let mut packed = Zeroizing::new(Vec::new());
        self.path.wire().pack(&message, deflater, &mut packed);
        if self.sender.hides() && !self.path.carries_reports() {
            self.lengthen(to, &mut message, deflater, &mut packed);
        }
        self.last_id = self.last_id.next();
        // A single datagram that is not answered may have been too long for the path.
        if flags.again && packed.len() <= room {
            self.path.unanswered(now, packed.len());
        }
        // Asked again: the silence may just have made datagrams shorter.
        let room = self.path.payload_max(to);
        let loss = self.sender.parity_loss().filter(|_| self.path.takes_parity());
        let mut transfer = Transfer::new(now, to, self.last_id, &message, packed, room, loss);
        transfer.flags = flags;
        if follows || self.path.is_stream_full() {
            transfer.wait_for_room();
        }
        if !flags.ack_only {
            // What does not build on it makes it superfluous.
            self.repairs.take_if(|repairs| message.old < repairs.new_num());
        }
        if transfer.is_long() && self.path.carries_reports() {
            self.path.mtud.want(now);
        }
        transfer
    }

    /// Makes a packed instruction as long as a step, where only its chaff can do that.
    fn lengthen(
        &mut self,
        to: Remote,
        message: &mut Instruction,
        deflater: &mut Deflater,
        packed: &mut Vec<u8>,
    ) {
        let wanted = self.path.packed_step(to, packed.len());
        let mut chaff = wanted - packed.len();
        // Deflated, random octets take about one each; which ones they are decides the last octet or two.
        for _ in 0..LENGTHEN_TRIES {
            self.sender.chaff(chaff.min(usize::from(u8::MAX)), &mut message.chaff);
            self.path.wire().pack(message, deflater, packed);
            if packed.len() == wanted {
                return;
            }
            chaff = (chaff + wanted).saturating_sub(packed.len());
        }
    }

    /// Seals the next part of an instruction on its way.
    pub(super) fn emit(
        &mut self,
        now: Time,
        mut transfer: Transfer,
        part: usize,
        out: &mut Outbox,
    ) -> Result<Transmit, Exhausted> {
        let Outbox { datagram, payload, .. } = out;
        // The peer may have moved since the instruction was started.
        // None while a server has forgotten a silent client: the rest still goes to where it was.
        let to = self.path.peer().unwrap_or(transfer.to);
        let flags = transfer.flags;
        if self.takes(Point::KeyPhaseEarly) {
            self.path.wire().end_key_phase();
        }
        payload.clear();
        transfer.encode(part, self.path.wire(), payload);
        let acked_sent_at = self.sender.history().first().last_sent;
        let (lengths, slot, ack_delay) = self.shape();
        let sending =
            Sending { payload, flags, acked_sent_at, ack_delay, probe: None, lengths, slot };
        let sent = self.path.send(now, to, sending, &self.timing, datagram);
        payload.zeroize();
        let sealed = sent?;
        let (transmit, seq) = (sealed.transmit, sealed.seq);
        self.stats.sent.add(datagram.len());
        self.stats.key_phases = self.path.wire().key_phase();
        self.stats.parity_sent += u64::from(transfer.is_parity(part));
        self.sender.count(&mut self.stats);
        let num = transfer.new_num();
        let ack_eliciting = !flags.ack_only && self.sender.on_datagram_sent(num);
        let load = match ack_eliciting {
            true => Load::State { num, fragment: transfer.fragment(part) },
            false => Load::Control,
        };
        if ack_eliciting {
            self.expire(now, &mut transfer);
        }
        self.follow(now, sealed, datagram.len(), load);
        self.stats.hops += u64::from(transmit.new_port);
        let was_out = transfer.is_out();
        transfer.on_sent(now, part, seq);
        if transfer.is_long() && self.path.carries_reports() {
            self.sender.said_more(now, num);
        }
        // The peer waits for this acknowledgment alone. Once it is out we may go, as nobody
        // acknowledges it.
        if transfer.is_final_ack && transfer.is_out() && !was_out {
            self.final_acks += 1;
            let late = self.final_acks.checked_sub(self.timing.final_acks);
            if let Some(late) = late {
                match late < self.sender.late_acks(&self.path) {
                    true => self.linger(),
                    false => self.finish(Event::Closed { clean: true }),
                }
                return Ok(transmit);
            }
        }
        if !transfer.is_out() {
            self.outgoing = Some(transfer);
        } else if transfer.is_long() && self.path.carries_reports() {
            self.repairs = Some(transfer);
        }
        Ok(transmit)
    }

    /// When the next part of an instruction may go out, if its address may be sent it at all.
    pub(super) fn emit_at(&self, transfer: &Transfer) -> Option<(Time, usize)> {
        let part = transfer.next()?;
        if !self.admits(transfer.contents_bytes(part)) {
            return None;
        }
        // The first fragments of a short instruction leave at once: a frame of few datagrams builds
        // no queue worth a pause.
        let waits = self.sender.paces()
            && self.path.carries_reports()
            && (transfer.is_out() || transfer.waits_for_room());
        if !waits {
            return Some((transfer.started, part));
        }
        let last = transfer.last_sent;
        let room = self.sender.room_at(last, &self.path).max(transfer.started);
        // Without reports it goes on, but slowly.
        let told = if transfer.is_far_ahead() { last + self.path.rtt.rto() } else { last };
        Some((room.max(told), part))
    }

    /// The parts that go out before anything new is said: of the instruction that was begun.
    pub(super) fn go_on(&mut self, now: Time) -> Option<(Transfer, usize)> {
        let transfer = self.outgoing.take()?;
        match self.emit_at(&transfer) {
            Some((at, part)) if at <= now => Some((transfer, part)),
            _ => {
                // Until there is room, or the address is proven, or the end.
                self.outgoing = self.path.target(now, &self.timing).map(|_| transfer);
                None
            }
        }
    }

    /// The acknowledgment that is due while the rest of an instruction waits.
    fn acknowledge_meanwhile(
        &mut self,
        now: Time,
        deflater: &mut Deflater,
    ) -> Option<(Transfer, usize)> {
        let to = self.path.target(now, &self.timing)?;
        let said = self.sender.poll_scheduled(now, &mut self.stats)?;
        let transfer = self.launch(now, to, said, deflater);
        self.admits(transfer.contents_bytes(0)).then_some((transfer, 0))
    }

    /// New states, or else lost fragments.
    pub(super) fn begin(
        &mut self,
        now: Time,
        deflater: &mut Deflater,
    ) -> Option<(Transfer, usize)> {
        if self.outgoing.is_some() {
            return self.acknowledge_meanwhile(now, deflater);
        }
        if let Some(transfer) = self.start(now, deflater) {
            let part = transfer.next().expect("it was just begun");
            if self.admits(transfer.contents_bytes(part)) {
                return Some((transfer, part));
            }
            self.outgoing = Some(transfer);
            // What was begun may be fragments of before, whose acknowledgment is an old one.
            return self.acknowledge_meanwhile(now, deflater);
        }
        // A server may just have forgotten where its client is.
        self.path.peer()?;
        let at = self.repairs.as_ref().and_then(|transfer| self.emit_at(transfer));
        let (_, part) = at.filter(|(at, _)| *at <= now)?;
        self.repairs.take().map(|transfer| (transfer, part))
    }

    /// Sends what is about the path and nothing else, if that is due.
    pub(super) fn poll_path(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        if let Some(to) = self.path.control_due(now) {
            return self.emit_control(now, to, None, out);
        }
        let (_, bytes) = self.path.probe().filter(|(at, _)| *at <= now)?;
        let to = self.path.peer()?;
        self.emit_control(now, to, Some(bytes), out)
    }

    /// Sends what is about the path and nothing else.
    fn emit_control(
        &mut self,
        now: Time,
        to: Remote,
        probe: Option<usize>,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        self.path.target(now, &self.timing)?;
        let is_try = to.path() != self.path.id();
        self.stats.udp_tries += u64::from(is_try);
        let acked_sent_at = self.sender.history().first().last_sent;
        let flags = Flags { ack_only: true, ..Flags::default() };
        let ack_delay = self.sender.ack_delay();
        let sending = Sending { flags, acked_sent_at, ack_delay, probe, ..Sending::default() };
        let sent = self.path.send(now, to, sending, &self.timing, out).map(|sealed| {
            let transmit = sealed.transmit;
            let load = match (is_try, probe) {
                (true, _) => Load::UdpTry,
                (false, Some(_)) => Load::Probe,
                (false, None) => Load::Control,
            };
            self.stats.sent.add(out.len());
            self.follow(now, sealed, out.len(), load);
            transmit
        });
        if probe.is_some() && self.takes(Point::ProbeLost) {
            // Nobody takes it for a datagram of ours.
            out.iter_mut().for_each(|octet| *octet = !*octet);
        }
        self.or_exhausted(sent)
    }

    /// Gives up datagrams that have had no answer for too long, before a part of this transfer goes out. There
    /// is no timer for it: a session that sends nothing need not wake up.
    fn expire(&mut self, now: Time, sending: &mut Transfer) {
        // What is in a stream comes, however late.
        if self.path.id() == PathId::STREAM {
            return;
        }
        // What has no answer after twice the timeout was lost, or its answer was.
        let expiry = (2 * self.sender.timeout(&self.path)).max(EXPIRY_MIN);
        let Endpoint { log, path, outgoing, repairs, .. } = self;
        log.expire(now - expiry, &mut |outcome| {
            path.on_outcome(now, outcome);
            let transfers = [Some(&mut *sending), outgoing.as_mut(), repairs.as_mut()];
            transfers.into_iter().flatten().for_each(|one| one.on_outcome(outcome));
        });
    }

    /// A datagram goes out: from here on the log follows it, if the peer can ever tell its outcome.
    fn follow(&mut self, now: Time, sealed: Sealed, bytes: usize, load: Load) {
        let Sealed { seq, path: path_id, nth, .. } = sealed;
        let Endpoint { log, path, .. } = self;
        let bytes = u16::try_from(bytes).unwrap_or(u16::MAX);
        let sent = SentDatagram { seq, path: path_id, nth, at: now, bytes, load };
        if sent.is_ack_eliciting() || path.carries_reports() {
            log.on_sent(sent, &mut |outcome| path.on_outcome(now, outcome));
        }
        if sent.is_ack_eliciting() {
            path.on_ack_eliciting_sent(now, path_id, nth, usize::from(bytes));
        }
    }

    pub(super) fn or_exhausted(&mut self, sent: Result<Transmit, Exhausted>) -> Option<Transmit> {
        if sent.is_err() {
            self.finish(Event::Failed(Failure::Exhausted));
        }
        sent.ok()
    }
}
