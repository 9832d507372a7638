//! What a native datagram says beside its payload, as octets (`docs/wire.md` §5). It must not know how
//! they are sealed.

use alloc::vec::Vec;
use core::time::Duration;

use crate::reject::Reject;
use crate::time::Stamp;
use crate::wire::{Announce, Control, Envelope, Flags, Report, Seq, Slot, Stamps};

/// Bits of the first octet.
const AGAIN: u8 = 1 << 0;
const ACK_ONLY: u8 = 1 << 1;
const REPLY: u8 = 1 << 2;
const REPORT: u8 = 1 << 3;
const MISSING: u8 = 1 << 4;
const CONTROL: u8 = 1 << 5;
const MEASURES: u8 = 1 << 6;

/// Octets of the map of missing datagrams at most. Nobody needs to know of older ones.
const MAP: usize = Report::SPAN as usize / 8;

/// How many numbers a report's 24 bits tell from each other.
pub(crate) const REPORT_SPAN: u64 = 1 << 24;

/// Kinds of control items. Unknown ones are skipped.
const PADDING: u8 = 0;
const CHALLENGE: u8 = 1;
const RESPONSE: u8 = 2;
const ANNOUNCE: u8 = 3;
const SLOT: u8 = 4;

/// The longest head without control items: bits, two stamps, newest number, map and measures.
pub(crate) const HEAD: usize = 1 + 2 + 2 + 3 + 1 + MAP + 3;
/// The longest list of control items but for padding and a slot: its length, two tokens, an announcement. Datagrams of
/// slots are short.
pub(crate) const ITEMS: usize = 2 + 2 * (2 + 8) + (2 + 5);
/// The longest list that its length can tell.
const LIST_MAX: usize = u16::MAX as usize;

/// Appends the head.
pub(crate) fn encode(envelope: &Envelope, out: &mut Vec<u8>) {
    let Envelope { stamps, report, flags, control } = envelope;
    let at = out.len();
    let mut bits = 0;
    bits |= if flags.again { AGAIN } else { 0 };
    bits |= if flags.ack_only { ACK_ONLY } else { 0 };
    out.push(0);
    out.extend_from_slice(&Stamp::to_wire(stamps.sent).to_be_bytes());
    if stamps.reply.is_some() {
        bits |= REPLY;
        out.extend_from_slice(&Stamp::to_wire(stamps.reply).to_be_bytes());
    }
    if let Some(report) = report {
        bits |= REPORT | encode_report(report, out);
    }
    if *control != Control::default() {
        bits |= CONTROL;
        encode_control(control, out);
    }
    // Written last, when it is known what follows.
    out[at] = bits;
}

fn encode_report(report: &Report, out: &mut Vec<u8>) -> u8 {
    let mut bits = 0;
    let [.., high, middle, low] = report.newest.get().to_be_bytes();
    out.extend_from_slice(&[high, middle, low]);
    // Numbers below 0 never existed, and are not missed.
    let existed = !u128::MAX.checked_shl(report.newest.get().min(128) as u32).unwrap_or(0);
    let missing = (!report.received & existed).to_le_bytes();
    let missing = &missing[..MAP];
    // Losses are rare and recent, so the map is cut after the last one.
    let len = missing.iter().rposition(|&octet| octet != 0).map_or(0, |last| last + 1);
    if len > 0 {
        bits |= MISSING;
        out.push(len as u8);
        out.extend_from_slice(&missing[..len]);
    }
    let measures = [
        report.loss,
        (report.queue.as_millis() / 2).min(255) as u8,
        report.ack_delay.as_millis().min(255) as u8,
    ];
    if measures != [0; 3] {
        bits |= MEASURES;
        out.extend_from_slice(&measures);
    }
    bits
}

fn encode_control(control: &Control, out: &mut Vec<u8>) {
    let at = out.len();
    out.extend_from_slice(&[0; 2]);
    for (kind, token) in [(CHALLENGE, control.challenge), (RESPONSE, control.response)] {
        if let Some(token) = token {
            out.extend_from_slice(&[kind, 8]);
            out.extend_from_slice(&token.to_be_bytes());
        }
    }
    if let Some(Announce { version_max, features }) = control.announce {
        out.extend_from_slice(&[ANNOUNCE, 5, version_max]);
        out.extend_from_slice(&features.to_be_bytes());
    }
    if let Some(Slot { slot_ms, hold_ms, answer_bytes }) = control.slot {
        out.extend_from_slice(&[SLOT, 4, slot_ms, hold_ms]);
        out.extend_from_slice(&answer_bytes.to_be_bytes());
    }
    // A kind of 0 ends the list: what follows is padding, whatever it holds.
    let padded = out.len() + control.padding;
    out.resize(padded.min(at + 2 + LIST_MAX), PADDING);
    let len = (out.len() - at - 2) as u16;
    out[at..at + 2].copy_from_slice(&len.to_be_bytes());
}

/// Takes a head off a text. `sent_end` is one past the newest number we have sent: the peer has seen none
/// beyond it.
pub(crate) fn decode(text: &[u8], sent_end: u64) -> Result<(Envelope, &[u8]), Reject> {
    let mut rest = Cursor(text);
    let [bits] = rest.take()?;
    let sent = Stamp::from_wire(u16::from_be_bytes(rest.take()?));
    let reply = match bits & REPLY {
        0 => None,
        _ => Stamp::from_wire(u16::from_be_bytes(rest.take()?)),
    };
    let report = match bits & REPORT {
        0 => None,
        _ => Some(decode_report(bits, &mut rest, sent_end)?),
    };
    let control = match bits & CONTROL {
        0 => Control::default(),
        _ => decode_control(&mut rest)?,
    };
    let flags = Flags { again: bits & AGAIN != 0, ack_only: bits & ACK_ONLY != 0 };
    Ok((Envelope { stamps: Stamps { sent, reply }, report, flags, control }, rest.0))
}

fn decode_report(bits: u8, rest: &mut Cursor<'_>, sent_end: u64) -> Result<Report, Reject> {
    let [high, middle, low] = rest.take()?;
    // The newest number with these low bits that was sent.
    let low = u64::from(u32::from_be_bytes([0, high, middle, low]));
    let newest = sent_end.checked_sub(1).ok_or(Reject::Malformed)?;
    let back = newest.wrapping_sub(low) % REPORT_SPAN;
    // A peer cannot have seen what was never sent.
    let newest = newest.checked_sub(back).ok_or(Reject::Malformed)?;
    let mut missing = [0; 16];
    if bits & MISSING != 0 {
        let [len] = rest.take()?;
        let map = rest.take_slice(len.into())?;
        missing[..MAP].get_mut(..map.len()).ok_or(Reject::Malformed)?.copy_from_slice(map);
    }
    let [loss, queue, ack_delay] = match bits & MEASURES {
        0 => [0; 3],
        _ => rest.take()?,
    };
    Ok(Report {
        newest: Seq::new(newest),
        received: !u128::from_le_bytes(missing),
        loss,
        queue: Duration::from_millis(u64::from(queue) * 2),
        ack_delay: Duration::from_millis(ack_delay.into()),
    })
}

fn decode_control(rest: &mut Cursor<'_>) -> Result<Control, Reject> {
    let len = u16::from_be_bytes(rest.take()?);
    let mut list = Cursor(rest.take_slice(len.into())?);
    let mut control = Control::default();
    while !list.0.is_empty() {
        let [kind] = list.take()?;
        if kind == PADDING {
            control.padding = list.0.len() + 1;
            break;
        }
        let [len] = list.take()?;
        let value = list.take_slice(len.into())?;
        let token = || value.try_into().map(u64::from_be_bytes).map_err(|_| Reject::Malformed);
        match kind {
            CHALLENGE => control.challenge = Some(token()?),
            RESPONSE => control.response = Some(token()?),
            ANNOUNCE => {
                // A later version may say more.
                let mut value = Cursor(value);
                let [version_max] = value.take()?;
                let features = u32::from_be_bytes(value.take()?);
                control.announce = Some(Announce { version_max, features });
            }
            SLOT => {
                let [slot_ms, hold_ms, high, low] =
                    value.try_into().map_err(|_| Reject::Malformed)?;
                let answer_bytes = u16::from_be_bytes([high, low]);
                control.slot = Some(Slot { slot_ms, hold_ms, answer_bytes });
            }
            // Later versions may say what we do not know.
            _ => {}
        }
    }
    Ok(control)
}

/// The octets that are left to read.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Reject> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Reject::Malformed)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn take_slice(&mut self, len: usize) -> Result<&'a [u8], Reject> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Reject::Malformed)?;
        self.0 = rest;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn random(rng: &mut Rng, sent_end: u64) -> Envelope {
        let mut some = |odds| rng.below(odds) == 0;
        let (reply, report, tokens, announce, pad) = (some(2), some(2), some(3), some(3), some(5));
        let some_slot = some(3);
        let stamp = |bits: u64| Stamp::from_wire(bits as u16);
        Envelope {
            stamps: Stamps {
                sent: stamp(rng.bits()),
                reply: Stamp::from_wire(rng.bits() as u16).filter(|_| reply),
            },
            report: report.then(|| Report {
                newest: Seq::new(sent_end - 1 - u64::from(rng.below(sent_end.min(1000) as u32))),
                received: !(u128::from(rng.bits()) << rng.below(128) >> rng.below(128)),
                loss: rng.bits() as u8,
                queue: Duration::from_millis(u64::from(rng.below(256)) * 2),
                ack_delay: Duration::from_millis(rng.below(256).into()),
            }),
            flags: Flags { again: rng.below(2) == 0, ack_only: rng.below(2) == 0 },
            control: Control {
                challenge: tokens.then(|| rng.bits()),
                response: tokens.then(|| rng.bits()),
                announce: announce.then(|| Announce {
                    version_max: rng.bits() as u8,
                    features: rng.bits() as u32,
                }),
                slot: some_slot.then(|| Slot {
                    slot_ms: rng.bits() as u8,
                    hold_ms: rng.bits() as u8,
                    answer_bytes: rng.bits() as u16,
                }),
                padding: if pad { rng.below(1200) as usize } else { 0 },
            },
        }
    }

    /// Octets of a slot.
    const SLOT_ITEM: usize = 2 + 4;

    #[test]
    fn nothing_is_reported_before_it_was_sent() {
        let report = Some(Report { received: u128::MAX, ..Report::default() });
        let mut text = Vec::new();
        encode(&Envelope { report, ..Envelope::default() }, &mut text);
        for (sent_end, taken) in [(0, false), (1, true), (2, true)] {
            assert_eq!(decode(&text, sent_end).is_ok(), taken, "{sent_end}");
        }
    }

    #[test]
    fn decodes_what_it_encoded() {
        let mut rng = Rng::new(5);
        for turn in 0..20_000_u64 {
            let sent_end = 1 + (rng.bits() >> (1 + turn % 63));
            let mut envelope = random(&mut rng, sent_end);
            let mut text = Vec::new();
            encode(&envelope, &mut text);
            if let Some(report) = &mut envelope.report {
                report.received |= u128::MAX << (8 * MAP);
                report.received |=
                    u128::MAX.checked_shl(report.newest.get().min(128) as u32).unwrap_or(0);
            }
            assert!(text.len() <= HEAD + ITEMS + SLOT_ITEM + envelope.control.padding);
            text.extend_from_slice(b"rest");
            assert_eq!(decode(&text, sent_end), Ok((envelope, &b"rest"[..])), "turn {turn}");
        }
    }

    #[test]
    fn an_undisturbed_path_costs_little() {
        let stamps = Stamps { sent: Stamp::from_wire(1), reply: Stamp::from_wire(2) };
        let report = Report {
            newest: Seq::new(70),
            received: u128::MAX,
            loss: 0,
            queue: Duration::ZERO,
            ack_delay: Duration::from_millis(60),
        };
        let envelope = Envelope { stamps, report: Some(report), ..Envelope::default() };
        let mut text = Vec::new();
        encode(&envelope, &mut text);
        assert_eq!(text.len(), 1 + 2 + 2 + 3 + 3);
    }

    #[test]
    fn what_is_not_known_is_skipped() {
        // An unknown kind, a longer announcement, padding that is not zeros; the bit that means nothing.
        let text =
            b"\xa0\x00\x05\x00\x12\x77\x02xx\x03\x07\x01\x00\x00\x00\x02zz\x00\x09\x08\x07\x06rest";
        let (envelope, rest) = decode(text, 1).unwrap();
        let announce = Announce { version_max: 1, features: 2 };
        assert_eq!(envelope.control.announce, Some(announce));
        assert_eq!((envelope.control.padding, rest), (5, &b"rest"[..]));
    }

    #[test]
    fn what_is_cut_short_is_refused() {
        for text in [
            &b""[..],
            b"\x00\x05",
            b"\x04\x00\x05\x01",
            b"\x08\x00\x05\x01\x02",
            // A map longer than there is, and one longer than a map can be.
            b"\x18\x00\x05\x00\x00\x00\x02x",
            b"\x18\x00\x05\x00\x00\x00\x10xxxxxxxxxxxxxxxxxxxx",
            b"\x48\x00\x05\x00\x00\x00\x02x",
            // A number not sent yet.
            b"\x08\x00\x05\x00\x00\x0a",
            // A list, an item, a token and an announcement.
            b"\x20\x00\x05\x00",
            b"\x20\x00\x05\x00\x02\x01",
            b"\x20\x00\x05\x00\x02\x07\x02",
            b"\x20\x00\x05\x00\x03\x01\x01x",
            b"\x20\x00\x05\x00\x06\x03\x04xxxx",
            b"\x20\x00\x05\x00\x05\x04\x03xxx",
        ] {
            assert_eq!(decode(text, 10), Err(Reject::Malformed), "{text:x?}");
        }
    }
}
