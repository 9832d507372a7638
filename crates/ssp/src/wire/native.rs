//! The envelope between two roves, specified in `docs/wire.md`: AES-128-GCM datagrams under keys that
//! move on, a report of what was received, small instructions. It must not know what the instructions
//! are about.

mod header;
mod kex;
mod key_phase;
mod layout;
mod message;
mod ratchet;
mod replay;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;
use core::time::Duration;

use zeroize::{Zeroize, Zeroizing};

use crate::instruction::Instruction;
use crate::instruction::fragment::{Fragment, Parity, Piece};
use crate::reject::Reject;
use crate::time::Time;
use crate::wire::deflate::Deflater;
use crate::wire::{Envelope, Exhausted, Header, Role, Seq, Wire};

pub use kex::{ConnId, Context, KeyPair, PublicKeyOctets, SessionSecrets, WeakKey};
use key_phase::{PHASE_DATAGRAMS_MAX, Receiving, Sending};
use layout::{CLEAR, MARK, MARK_MASK, VERSION, VERSION_MASK, VERSION_SHIFT};
use ratchet::{Chain, TAG};
use replay::Window;

/// Octets a datagram is longer than its payload, at most and without padding.
const OVERHEAD: usize = CLEAR + header::HEAD + header::ITEMS + TAG;
/// The longest datagram taken.
const DATAGRAM_BYTES_MAX: usize = 2048;

/// How many instructions are put together at a time.
const ASSEMBLIES_MAX: usize = 64;

/// The native wire's sealing state for one end of one session. It is not `Clone`: no second value can
/// use the same sequence numbers.
pub struct NativeWire {
    conn: [u8; 4],
    path_secret: Option<Box<Zeroizing<[u8; 32]>>>,
    send: Sending,
    receive: Receiving,
    window: Window,
    /// As last told.
    now: Time,
}

impl NativeWire {
    /// A fresh session's envelope. `secrets` must start one session, once at each end.
    pub fn new(secrets: &SessionSecrets, conn: ConnId, role: Role) -> NativeWire {
        let (ours, theirs) = match role {
            Role::Client => (&secrets.client, &secrets.server),
            Role::Server => (&secrets.server, &secrets.client),
        };
        NativeWire {
            conn: conn.to_bytes(),
            path_secret: Some(secrets.path.0.clone()),
            send: Sending::new(Chain::new(ours.clone())),
            receive: Receiving::new(Chain::new(theirs.clone())),
            window: Window::default(),
            now: Time::ZERO,
        }
    }

    /// The same with shorter phases: for experiments that have no minutes to wait.
    pub fn with_phases_of(mut self, age: Duration) -> NativeWire {
        self.send.age_max = age;
        self
    }

    /// The same after `sealed` sealed and `opened` opened datagrams: for tests of high numbers.
    pub fn after(mut self, sealed: u64, opened: u64) -> NativeWire {
        self.send.next = Some(Seq::new(sealed));
        if let Some(newest) = opened.checked_sub(1) {
            self.window.note(Seq::new(newest));
        }
        self
    }

    /// The phases of sending and of receiving.
    pub fn phases(&self) -> (u64, u64) {
        (self.send.phase, self.receive.phase)
    }

    /// Seals octets as they are, head and all: for tests that play an enemy who has the key.
    pub fn seal_text(&mut self, text: &[u8], out: &mut Vec<u8>) -> Result<Seq, Exhausted> {
        let seq = self.begin(out)?;
        out.extend_from_slice(text);
        self.finish(seq, out);
        Ok(seq)
    }

    /// Replaces `out` with what stands in the clear.
    fn begin(&mut self, out: &mut Vec<u8>) -> Result<Seq, Exhausted> {
        out.clear();
        let seq = self.send.take_seq(self.now)?;
        let phase = (self.send.phase & 1) as u8;
        out.push(MARK | VERSION << VERSION_SHIFT | phase);
        out.extend_from_slice(&self.conn);
        out.extend_from_slice(&(seq.get() as u32).to_be_bytes());
        Ok(seq)
    }

    /// Seals what follows that.
    fn finish(&self, seq: Seq, out: &mut Vec<u8>) {
        let (clear, text) = out.split_at_mut(CLEAR);
        let tag = self.send.key.seal(seq, clear, text);
        out.extend_from_slice(&tag);
    }
}

impl Wire for NativeWire {
    fn overhead(&self) -> usize {
        OVERHEAD
    }

    fn fragment_overhead(&self) -> usize {
        message::FRAGMENT
    }

    fn assemblies_max(&self) -> usize {
        ASSEMBLIES_MAX
    }

    fn carries_reports(&self) -> bool {
        true
    }

    fn take_path_secret(&mut self) -> Option<Box<Zeroizing<[u8; 32]>>> {
        self.path_secret.take()
    }

    fn claims(&self, datagram: &[u8]) -> bool {
        matches!(datagram, [mark, conn @ ..]
            if mark & MARK_MASK == MARK && conn.starts_with(&self.conn))
    }

    fn advance(&mut self, now: Time, timeout: Duration) {
        self.now = now;
        self.receive.advance(now, timeout);
        // The peer has opened something of this phase, so it holds the key of the next; that it sends in
        // this phase itself would not show that. And nothing of the phase before is still on its way, so
        // that the phase bit stays clear.
        if self.send.reported && self.receive.old.is_none() && self.send.is_worn(now) {
            self.send.move_on();
        }
    }

    fn wake(&self) -> Option<Time> {
        self.receive.wake()
    }

    fn key_phase(&self) -> u64 {
        self.send.phase
    }

    fn end_key_phase(&mut self) {
        self.send.sealed = self.send.sealed.max(PHASE_DATAGRAMS_MAX);
    }

    fn seal(
        &mut self,
        envelope: &Envelope,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Seq, Exhausted> {
        let seq = self.begin(out)?;
        header::encode(envelope, out);
        out.extend_from_slice(payload);
        self.finish(seq, out);
        Ok(seq)
    }

    fn open(&mut self, datagram: &mut [u8]) -> Result<(Header, Range<usize>), Reject> {
        let have = datagram.len();
        if have > DATAGRAM_BYTES_MAX {
            return Err(Reject::Oversized { have, max: DATAGRAM_BYTES_MAX });
        }
        let truncated = Reject::Truncated { have, need: CLEAR + TAG };
        let (clear, sealed) = datagram.split_first_chunk_mut::<CLEAR>().ok_or(truncated)?;
        let (text, tag) = sealed.split_last_chunk_mut::<TAG>().ok_or(truncated)?;
        let [mark, c0, c1, c2, c3, s0, s1, s2, s3] = *clear;
        // Streams share the port, and so may other sessions: this is cheaper than a failing cipher.
        if mark & MARK_MASK != MARK || [c0, c1, c2, c3] != self.conn {
            return Err(Reject::Foreign);
        }
        let version = mark >> VERSION_SHIFT & VERSION_MASK;
        if version != VERSION {
            return Err(Reject::Version { version: version.into() });
        }
        // Half of the number travels. The other half follows from what was opened before.
        let seq = whole(u32::from_be_bytes([s0, s1, s2, s3]), self.window.end());
        // Before the cipher: a replay costs an attacker nothing and would cost us a decryption.
        if !self.window.admits(seq) {
            return Err(Reject::Replayed { seq: seq.get() });
        }
        self.receive.open(self.now, seq, clear, text, tag)?;
        // Only an authentic number counts: a forger could else close the window for numbers to come.
        self.window.note(seq);
        // The peer has moved on, and so has heard us in this phase: we follow, and the old key goes.
        if self.send.phase < self.receive.phase {
            self.send.move_on();
        }
        match header::decode(text, self.send.end()) {
            Ok((envelope, payload)) => {
                if let Some(report) = envelope.report {
                    self.send.on_report(report.newest);
                }
                let start = have - TAG - payload.len();
                Ok((Header::new(seq, envelope), start..have - TAG))
            }
            Err(reject) => {
                // What was decrypted of a refused datagram must not stay in the driver's buffer.
                text.zeroize();
                Err(reject)
            }
        }
    }

    fn sealed_bytes(&self, envelope: &Envelope) -> usize {
        let mut head = Vec::new();
        header::encode(envelope, &mut head);
        CLEAR + head.len() + TAG
    }

    fn encode_fragment(&self, fragment: &Fragment<'_>, out: &mut Vec<u8>) {
        message::encode_fragment(fragment, out);
    }

    fn encode_parity(&self, parity: &Parity<'_>, out: &mut Vec<u8>) {
        message::encode_parity(parity, out);
    }

    fn decode_piece<'a>(&self, payload: &'a [u8]) -> Result<Piece<'a>, Reject> {
        message::decode_piece(payload)
    }

    fn pack(&self, message: &Instruction, deflater: &mut Deflater, out: &mut Vec<u8>) {
        message::pack(message, deflater, out);
    }

    fn unpack(&self, bytes: &[u8]) -> Result<Instruction, Reject> {
        message::unpack(bytes)
    }
}

/// The number with these low 32 bits that is nearest to the next one expected.
fn whole(low: u32, expected: u64) -> Seq {
    const HALF: u64 = 1 << 31;
    let base = expected & !u64::from(u32::MAX);
    let number = base | u64::from(low);
    Seq::new(if number + HALF <= expected {
        number.saturating_add(2 * HALF)
    } else if number > expected.saturating_add(HALF) && number >= 2 * HALF {
        number - 2 * HALF
    } else {
        number
    })
}

#[cfg(test)]
mod tests {
    use super::key_phase::PHASE_DATAGRAMS_END;
    use super::*;
    use crate::rng::Rng;
    use crate::time::Stamp;
    use crate::wire::{Report, Stamps};

    const CONN: ConnId = ConnId::new(0x0a0b_0c0d);
    const RTO: Duration = Duration::from_millis(300);

    fn secrets() -> SessionSecrets {
        SessionSecrets::from_bytes([1; 32], [2; 32], [3; 32])
    }

    fn ends() -> (NativeWire, NativeWire) {
        let secrets = secrets();
        let end = |role| NativeWire::new(&secrets, CONN, role);
        (end(Role::Client), end(Role::Server))
    }

    /// Both ends once each has heard the other.
    fn acquainted() -> (NativeWire, NativeWire) {
        let (mut client, mut server) = ends();
        let hello = sealed(&mut client, at(0));
        open(&mut server, at(0), &hello).unwrap();
        let answer = sealed(&mut server, at(0));
        open(&mut client, at(0), &answer).unwrap();
        (client, server)
    }

    fn at(seconds: u64) -> Time {
        Time::from_millis(seconds * 1000)
    }

    fn sealed(wire: &mut NativeWire, now: Time) -> Vec<u8> {
        let mut out = Vec::new();
        wire.advance(now, RTO);
        let report = wire.window.end().checked_sub(1).map(|newest| Report {
            newest: Seq::new(newest),
            received: u128::MAX,
            ..Report::default()
        });
        wire.seal(&Envelope { report, ..Envelope::default() }, b"payload", &mut out).unwrap();
        out
    }

    fn open(wire: &mut NativeWire, now: Time, datagram: &[u8]) -> Result<u64, Reject> {
        wire.advance(now, RTO);
        let mut datagram = datagram.to_vec();
        let (header, payload) = wire.open(&mut datagram)?;
        assert_eq!(&datagram[payload], b"payload");
        Ok(header.seq.get())
    }

    #[test]
    fn a_datagram_opens_once_at_the_other_end() {
        let (mut client, mut server) = ends();
        let datagram = sealed(&mut client, at(0));
        assert_eq!(datagram.len(), CLEAR + 3 + 7 + TAG);
        assert_eq!(datagram[..CLEAR], *b"\x20\x0a\x0b\x0c\x0d\0\0\0\0");
        assert_eq!(open(&mut client, at(0), &datagram), Err(Reject::Forged), "reflected");
        assert_eq!(open(&mut server, at(0), &datagram), Ok(0));
        assert_eq!(open(&mut server, at(0), &datagram), Err(Reject::Replayed { seq: 0 }));
    }

    #[test]
    fn shapes_are_refused_before_the_cipher_runs() {
        let (mut client, mut server) = ends();
        let datagram = sealed(&mut client, at(0));
        let mut elsewhere = NativeWire::new(&secrets(), ConnId::new(7), Role::Client);
        let change = |place: usize, octet: u8| {
            let mut datagram = datagram.clone();
            datagram[place] = octet;
            datagram
        };
        for (datagram, reject) in [
            (vec![], Reject::Truncated { have: 0, need: 25 }),
            (datagram[..24].to_vec(), Reject::Truncated { have: 24, need: 25 }),
            (datagram[..25].to_vec(), Reject::Forged),
            (vec![0x20; 2049], Reject::Oversized { have: 2049, max: 2048 }),
            (change(0, 0x00), Reject::Foreign),
            (change(0, 0x40), Reject::Foreign),
            (change(0, 0x80), Reject::Foreign),
            (change(0, 0x24), Reject::Version { version: 1 }),
            (change(0, 0x3f), Reject::Version { version: 7 }),
            (change(0, 0x22), Reject::Forged),
            (change(4, 0xff), Reject::Foreign),
            (sealed(&mut elsewhere, at(0)), Reject::Foreign),
        ] {
            assert_eq!(open(&mut server, at(0), &datagram), Err(reject));
        }
        assert_eq!(open(&mut server, at(0), &datagram), Ok(0));
    }

    #[test]
    fn numbers_are_told_from_their_low_half() {
        const TURN: u64 = 1 << 32;
        for (expected, number) in [
            (0, 0),
            (0, (1 << 31) - 1),
            (1, 0),
            (TURN - 1, TURN + 5),
            (TURN, TURN - 1),
            (TURN + 3, TURN - 1000),
            (5 * TURN + 9, 5 * TURN + 9),
            (5 * TURN - 1, 5 * TURN + (1 << 30)),
            (5 * TURN + 1, 5 * TURN - (1 << 30)),
            (Seq::MAX.get() + 1, Seq::MAX.get()),
        ] {
            assert_eq!(whole(number as u32, expected).get(), number, "{expected}");
        }
    }

    /// Lets both ends talk until both are in `phase`.
    fn reach(client: &mut NativeWire, server: &mut NativeWire, phase: u64) -> Time {
        let mut now = client.now.max(server.now);
        while client.phases() != (phase, phase) || server.phases() != (phase, phase) {
            now = now + Duration::from_secs(5);
            let datagram = sealed(client, now);
            open(server, now, &datagram).unwrap();
            let datagram = sealed(server, now);
            open(client, now, &datagram).unwrap();
        }
        now
    }

    #[test]
    fn phases_follow_each_other() {
        let (mut client, mut server) = ends();
        let mut last = 0;
        for phase in 1..6 {
            let now = reach(&mut client, &mut server, phase).as_millis() / 1000;
            assert!((120..=140).contains(&(now - last)), "phase {phase} after {} s", now - last);
            last = now;
        }
    }

    #[test]
    fn nobody_moves_on_unheard() {
        let (mut client, mut server) = ends();
        // An hour in which nothing gets through: all of it opens once it does.
        let unheard: Vec<Vec<u8>> =
            (0..720).map(|turn| sealed(&mut client, at(turn * 5))).collect();
        assert_eq!(client.phases().0, 0);
        for (seq, datagram) in unheard.iter().enumerate() {
            assert_eq!(open(&mut server, at(3600), datagram), Ok(seq as u64));
        }
        // The server reports that, and then the client may move on.
        let answer = sealed(&mut server, at(3600));
        assert_eq!(open(&mut client, at(3600), &answer), Ok(0));
        let moved = sealed(&mut client, at(3601));
        assert_eq!(client.phases(), (1, 0));
        assert_eq!(open(&mut server, at(3601), &moved), Ok(720));
        assert_eq!(server.phases(), (1, 1));
        // The server has not reported anything of the new phase, and the client stays in it.
        (0..100).for_each(|turn| drop(sealed(&mut client, at(3601 + turn * 60))));
        assert_eq!(client.phases(), (1, 0));
    }

    #[test]
    fn stragglers_open_while_the_old_key_lives() {
        for (after_ms, opens) in [(0, true), (999, true), (1000, false), (60_000, false)] {
            let (mut client, mut server) = acquainted();
            let straggler = sealed(&mut client, at(0));
            let moved = sealed(&mut client, at(130));
            assert_eq!(open(&mut server, at(130), &moved), Ok(2));
            assert_eq!(server.wake(), Some(at(131)));
            let now = at(130) + Duration::from_millis(after_ms);
            assert_eq!(open(&mut server, now, &straggler).is_ok(), opens, "{after_ms} ms");
        }
    }

    #[test]
    fn both_may_move_on_at_once() {
        let (mut client, mut server) = ends();
        for now in [at(0), at(1)] {
            let (ours, theirs) = (sealed(&mut client, now), sealed(&mut server, now));
            open(&mut server, now, &ours).unwrap();
            open(&mut client, now, &theirs).unwrap();
        }
        let (ours, theirs) = (sealed(&mut client, at(125)), sealed(&mut server, at(125)));
        assert_eq!((client.phases(), server.phases()), ((1, 0), (1, 0)));
        open(&mut server, at(125), &ours).unwrap();
        open(&mut client, at(125), &theirs).unwrap();
        assert_eq!((client.phases(), server.phases()), ((1, 1), (1, 1)));
    }

    /// A path that works one way only: the end that is heard never gets two phases ahead of what the other
    /// holds, however long that lasts.
    #[test]
    fn one_deaf_end_is_not_left_behind() {
        let (mut client, mut server) = acquainted();
        for turn in 0..1000 {
            let ours = sealed(&mut client, at(turn * 5));
            open(&mut server, at(turn * 5), &ours).unwrap();
            sealed(&mut server, at(turn * 5));
        }
        assert_eq!((client.phases(), server.phases()), ((1, 0), (1, 1)));
        let heard = sealed(&mut server, at(5000));
        open(&mut client, at(5000), &heard).unwrap();
        assert_eq!(client.phases(), (1, 1));
    }

    #[test]
    fn a_phase_ends_with_its_datagrams() {
        let (mut client, _) = acquainted();
        client.send.sealed = PHASE_DATAGRAMS_MAX - 1;
        sealed(&mut client, at(0));
        assert_eq!(client.phases().0, 0);
        sealed(&mut client, at(0));
        assert_eq!(client.phases().0, 1);
    }

    /// Reports have 24 bits: one of a number from before the phase must not pass for one of its own.
    #[test]
    fn an_ambiguous_report_moves_nobody_on() {
        for (sealed_in_phase, moves) in [((1 << 24) - 1, true), (1 << 24, false), (1 << 25, false)]
        {
            let (mut client, mut server) = acquainted();
            sealed(&mut client, at(125));
            assert_eq!(client.phases().0, 1);
            // The server has opened nothing of that phase. Its report of number 0 reads as 2^24 or 2^25.
            client.send.next = Some(Seq::new(client.send.first + sealed_in_phase));
            let answer = match moves {
                // Here the last number of the phase is reported instead.
                true => {
                    let newest = client.send.end() - 1;
                    let report = Report { newest: Seq::new(newest), ..Report::default() };
                    let envelope = Envelope { report: Some(report), ..Envelope::default() };
                    let mut out = Vec::new();
                    server.seal(&envelope, b"payload", &mut out).unwrap();
                    out
                }
                false => sealed(&mut server, at(125)),
            };
            open(&mut client, at(125), &answer).unwrap();
            assert_eq!(client.send.reported, moves, "{sealed_in_phase}");
        }
    }

    #[test]
    fn a_key_that_cannot_move_on_ends() {
        let (mut client, _) = ends();
        let mut out = Vec::new();
        client.send.sealed = PHASE_DATAGRAMS_END - 1;
        client.seal(&Envelope::default(), b"", &mut out).unwrap();
        for _ in 0..3 {
            assert_eq!(client.seal(&Envelope::default(), b"", &mut out), Err(Exhausted));
            assert!(out.is_empty());
        }
        let (mut client, _) = ends();
        client.send.next = Some(Seq::MAX);
        assert_eq!(client.seal(&Envelope::default(), b"", &mut out), Ok(Seq::MAX));
        assert_eq!(client.seal(&Envelope::default(), b"", &mut out), Err(Exhausted));
    }

    /// Forward secrecy: an enemy who takes the memory of both ends opens nothing from before the phase
    /// that they are in.
    #[test]
    fn a_thief_of_both_memories_opens_nothing_earlier() {
        let (mut client, mut server) = ends();
        let mut recorded = Vec::new();
        for turn in 0..40 {
            let now = at(turn * 5);
            let ours = sealed(&mut client, now);
            open(&mut server, now, &ours).unwrap();
            let theirs = sealed(&mut server, now);
            open(&mut client, now, &theirs).unwrap();
            recorded.push((client.phases(), ours, theirs));
        }
        assert!(client.receive.old.is_none() && server.receive.old.is_none());
        let earlier = |phases: (u64, u64)| phases.0 == 0 && phases.1 == 0;
        let (mut tried, mut opened) = (0, 0);
        for stolen in [client, server] {
            let NativeWire { send, receive, .. } = stolen;
            let mut keys = vec![send.key, receive.key, receive.following];
            // And all that follows from what the chains hold.
            for mut chain in [send.chain, receive.chain] {
                keys.extend((0..8).map(|_| chain.take()));
            }
            for (phases, ours, theirs) in &recorded {
                for datagram in [ours, theirs] {
                    for key in &keys {
                        let mut datagram = datagram.clone();
                        let (clear, sealed) = datagram.split_first_chunk_mut::<CLEAR>().unwrap();
                        let (text, tag) = sealed.split_last_chunk_mut::<TAG>().unwrap();
                        let seq = Seq::new(
                            u32::from_be_bytes([clear[5], clear[6], clear[7], clear[8]]).into(),
                        );
                        let got = key.open(seq, clear, text, tag).is_ok();
                        assert!(!(got && earlier(*phases)), "an earlier datagram opened");
                        tried += u32::from(earlier(*phases));
                        opened += u32::from(got);
                    }
                }
            }
        }
        // The thief's tools work: what is sealed in the present phase opens.
        assert!(tried > 1000 && opened > 10, "{tried} tried, {opened} opened");
    }

    #[test]
    fn no_number_is_used_twice_and_no_octet_is_left() {
        let mut rng = Rng::new(3);
        let (mut client, mut server) = ends();
        let mut seen = std::collections::BTreeSet::new();
        for turn in 0..5000 {
            let now = at(turn);
            let datagram = sealed(&mut client, now);
            assert!(seen.insert(open(&mut server, now, &datagram).unwrap()));
            if rng.below(3) == 0 {
                let answer = sealed(&mut server, now);
                open(&mut client, now, &answer).unwrap();
            }
        }
        assert!(client.phases().0 > 30);
        // Authentic, and yet no datagram: nothing that was decrypted stays.
        let mut datagram = Vec::new();
        client.seal_text(b"\x08\x01\x02\x03", &mut datagram).unwrap();
        assert_eq!(server.open(&mut datagram), Err(Reject::Malformed));
        assert!(datagram[CLEAR..datagram.len() - TAG].iter().all(|&octet| octet == 0));
    }

    #[test]
    fn what_is_said_beside_the_payload_arrives() {
        let (mut client, mut server) = ends();
        let (mut out, mut sent) = (Vec::new(), Envelope::default());
        sent.stamps = Stamps { sent: Stamp::from_wire(5), reply: Stamp::from_wire(6) };
        sent.control.padding = 300;
        client.seal(&sent, b"payload", &mut out).unwrap();
        assert_eq!(out.len(), CLEAR + 5 + 2 + 300 + 7 + TAG);
        let (header, payload) = server.open(&mut out).unwrap();
        assert_eq!(header, Header::new(Seq::ZERO, sent));
        assert_eq!(&out[payload], b"payload");
    }
}
