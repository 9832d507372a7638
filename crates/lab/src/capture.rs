//! Packet captures: writes them at a link's near end, and reads those of any program, pcap or pcapng.
//!
//! A capture file is untrusted input: every read is checked, and an error names the octet at which parsing failed.

pub(crate) mod decode;
pub(crate) mod summary;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use rove_ssp::Time;

/// A capture being written: pcap with whole IP packets, times since the link began.
pub(crate) struct Tape {
    out: BufWriter<File>,
    /// The first error; nothing is written after it.
    error: Option<io::Error>,
}

impl std::fmt::Debug for Tape {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Tape {{ error: {:?} }}", self.error)
    }
}

impl Tape {
    /// Begins a file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn create(path: &Path) -> io::Result<Tape> {
        let mut out = BufWriter::new(File::create(path)?);
        out.write_all(&header())?;
        Ok(Tape { out, error: None })
    }

    /// One packet.
    pub(crate) fn packet(&mut self, at: Time, packet: &[u8]) {
        if self.error.is_none() {
            let written = self.out.write_all(&record_head(at.since(Time::ZERO), packet.len()));
            self.error = written.and_then(|()| self.out.write_all(packet)).err();
        }
    }

    /// Writes what is still buffered.
    ///
    /// # Errors
    /// The first error so far.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        match self.error.take() {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }
}

/// The head of a pcap file of whole IP packets.
pub fn header() -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(MAGIC_MICROS.to_le_bytes());
    out.extend([2, 0, 4, 0]);
    out.extend([0; 8]);
    out.extend(SNAP_BYTES.to_le_bytes());
    out.extend(u32::from(LINKTYPE_RAW).to_le_bytes());
    out
}

/// The head of a packet in such a file.
pub fn record_head(at: Duration, length: usize) -> [u8; 16] {
    let mut head = [0; 16];
    head[..4].copy_from_slice(&(at.as_secs() as u32).to_le_bytes());
    head[4..8].copy_from_slice(&at.subsec_micros().to_le_bytes());
    head[8..12].copy_from_slice(&(length as u32).to_le_bytes());
    head[12..].copy_from_slice(&(length as u32).to_le_bytes());
    head
}

/// A packet of a capture.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Packet<'a> {
    /// As the file has it.
    pub at: Duration,
    /// The protocol of its first octets (tcpdump's LINKTYPE_ numbers).
    pub link: u16,
    /// As far as it was captured.
    pub octets: &'a [u8],
    /// How long it was on the wire.
    pub length: u32,
}

/// Why octets are no capture.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BadCapture {
    /// Where, from the start of the file.
    pub at: usize,
    /// The problem.
    pub what: &'static str,
}

impl std::fmt::Display for BadCapture {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} at octet {}", self.what, self.at)
    }
}

impl std::error::Error for BadCapture {}

/// The packets of a capture, in the order of the file. A file that ends within a packet, because its writer was
/// killed, ends before that packet.
///
/// # Errors
/// If it is neither pcap nor pcapng, or contradicts itself.
pub fn read(file: &[u8]) -> Result<Vec<Packet<'_>>, BadCapture> {
    let magic = file.get(..4).and_then(|magic| magic.try_into().ok());
    let magic = magic.ok_or(BadCapture { at: 0, what: "no capture: too short" })?;
    match u32::from_le_bytes(magic) {
        MAGIC_MICROS => pcap(file, Order::Little, 1_000),
        MAGIC_NANOS => pcap(file, Order::Little, 1),
        SECTION => pcapng(file),
        _ => match u32::from_be_bytes(magic) {
            MAGIC_MICROS => pcap(file, Order::Big, 1_000),
            MAGIC_NANOS => pcap(file, Order::Big, 1),
            _ => Err(BadCapture { at: 0, what: "neither pcap nor pcapng" }),
        },
    }
}

#[derive(Clone, Copy)]
enum Order {
    Little,
    Big,
}

impl Order {
    fn u32(self, octets: &[u8], at: usize) -> Option<u32> {
        let four = octets.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(match self {
            Order::Little => u32::from_le_bytes(four),
            Order::Big => u32::from_be_bytes(four),
        })
    }

    fn u16(self, octets: &[u8], at: usize) -> Option<u16> {
        let two = octets.get(at..at.checked_add(2)?)?.try_into().ok()?;
        Some(match self {
            Order::Little => u16::from_le_bytes(two),
            Order::Big => u16::from_be_bytes(two),
        })
    }
}

fn pcap(file: &[u8], order: Order, nanos: u32) -> Result<Vec<Packet<'_>>, BadCapture> {
    let link = order.u32(file, 20).ok_or(BadCapture { at: 0, what: "a cut header" })? as u16;
    let mut packets = Vec::new();
    let mut at = 24;
    loop {
        let head = (order.u32(file, at), order.u32(file, at + 4), order.u32(file, at + 8));
        let (Some(seconds), Some(part), Some(captured)) = head else { return Ok(packets) };
        let Some(length) = order.u32(file, at + 12) else { return Ok(packets) };
        if captured > SNAP_BYTES_MAX {
            return Err(BadCapture { at, what: "a packet longer than 256 KiB" });
        }
        let begin = at + 16;
        let Some(octets) = file.get(begin..begin + captured as usize) else { return Ok(packets) };
        let since = Duration::from_nanos(u64::from(part) * u64::from(nanos));
        let when = Duration::from_secs(u64::from(seconds)) + since;
        packets.push(Packet { at: when, link, octets, length });
        at = begin + captured as usize;
    }
}

/// A section's description of an interface: the link type of its packets, and ticks of its clock in a second.
#[derive(Clone, Copy)]
struct Interface {
    link: u16,
    ticks: u64,
}

fn pcapng(file: &[u8]) -> Result<Vec<Packet<'_>>, BadCapture> {
    let mut packets = Vec::new();
    let mut interfaces: Vec<Interface> = Vec::new();
    let mut order = Order::Little;
    let mut at = 0;
    while file.len() - at >= 12 {
        let bad = |what| BadCapture { at, what };
        if order.u32(file, at) == Some(SECTION) {
            order = match order_of_section(file, at) {
                Some(order) => order,
                None => return Err(bad("a section in no known order of octets")),
            };
            interfaces.clear();
        }
        let (Some(kind), Some(length)) = (order.u32(file, at), order.u32(file, at + 4)) else {
            break;
        };
        let length = length as usize;
        if length < 12 || !length.is_multiple_of(4) {
            return Err(bad("a block of an impossible length"));
        }
        let Some(block) = file.get(at..).and_then(|rest| rest.get(..length)) else { break };
        if order.u32(block, length - 4) != Some(length as u32) {
            return Err(bad("a block that ends otherwise than it began"));
        }
        let body = &block[8..length - 4];
        match kind {
            INTERFACE if interfaces.len() >= INTERFACES_MAX => {
                return Err(bad("more than 4096 interfaces"));
            }
            INTERFACE => interfaces.push(interface(body, order).ok_or(bad("a cut interface"))?),
            ENHANCED => {
                let packet = enhanced(body, order, &interfaces);
                packets.push(packet.ok_or(bad("a packet that its block does not hold"))?);
            }
            SIMPLE => {
                let length = order.u32(body, 0).ok_or(bad("a cut packet"))?;
                let first = interfaces.first().ok_or(bad("a packet of no interface"))?;
                let octets = &body[4..body.len().min(4 + length as usize)];
                packets.push(Packet { at: Duration::ZERO, link: first.link, octets, length });
            }
            _ => {}
        }
        at += length;
    }
    Ok(packets)
}

fn order_of_section(file: &[u8], at: usize) -> Option<Order> {
    match Order::Little.u32(file, at + 8)? {
        SECTION_ORDER => Some(Order::Little),
        other if other.swap_bytes() == SECTION_ORDER => Some(Order::Big),
        _ => None,
    }
}

fn interface(body: &[u8], order: Order) -> Option<Interface> {
    let mut interface = Interface { link: order.u16(body, 0)?, ticks: 1_000_000 };
    order.u32(body, 4)?;
    let mut at = 8;
    while let (Some(code), Some(length)) = (order.u16(body, at), order.u16(body, at + 2)) {
        if code == END_OF_OPTIONS {
            break;
        }
        if code == TIME_RESOLUTION && length >= 1 {
            let exponent = *body.get(at + 4)?;
            let power = u32::from(exponent & 0x7f);
            let base: u64 = if exponent & 0x80 != 0 { 2 } else { 10 };
            interface.ticks = base.checked_pow(power)?;
        }
        at += 4 + usize::from(length).next_multiple_of(4);
    }
    Some(interface)
}

fn enhanced<'a>(body: &'a [u8], order: Order, interfaces: &[Interface]) -> Option<Packet<'a>> {
    let interface = interfaces.get(order.u32(body, 0)? as usize)?;
    let ticks = u64::from(order.u32(body, 4)?) << 32 | u64::from(order.u32(body, 8)?);
    let nanos = u128::from(ticks % interface.ticks) * 1_000_000_000 / u128::from(interface.ticks);
    let at = Duration::new(ticks / interface.ticks, nanos as u32);
    let captured = order.u32(body, 12)? as usize;
    let octets = body.get(20..)?.get(..captured)?;
    Some(Packet { at, link: interface.link, octets, length: order.u32(body, 16)? })
}

/// Of pcap files whose times end in microseconds, and in nanoseconds.
const MAGIC_MICROS: u32 = 0xa1b2_c3d4;
const MAGIC_NANOS: u32 = 0xa1b2_3c4d;
/// Blocks of pcapng (draft-ietf-opsawg-pcapng), and what tells a section's order of octets.
const SECTION: u32 = 0x0a0d_0d0a;
const SECTION_ORDER: u32 = 0x1a2b_3c4d;
const INTERFACE: u32 = 1;
const SIMPLE: u32 = 3;
const ENHANCED: u32 = 6;
const END_OF_OPTIONS: u16 = 0;
const TIME_RESOLUTION: u16 = 9;
/// Packets begin with their IP header.
pub(crate) const LINKTYPE_RAW: u16 = 101;
/// The longest part of a packet that we keep: all of it.
const SNAP_BYTES: u32 = 65_535;
/// The longest packet that is believed: tcpdump's largest snapshot.
const SNAP_BYTES_MAX: u32 = 256 << 10;
/// Interfaces of a section.
const INTERFACES_MAX: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    fn block(kind: u32, body: &[u8]) -> Vec<u8> {
        let length = (12 + body.len()) as u32;
        [&kind.to_le_bytes()[..], &length.to_le_bytes(), body, &length.to_le_bytes()].concat()
    }

    #[test]
    fn what_is_written_is_read() {
        let at = Duration::from_micros(3_000_007);
        let file =
            [&header()[..], &record_head(at, 3), b"abc", &record_head(at, 9), b"cut"].concat();
        let want = Packet { at, link: LINKTYPE_RAW, octets: b"abc", length: 3 };
        assert_eq!(read(&file), Ok(vec![want]));
        // The other order of octets.
        let mut swapped = file[..43].to_vec();
        swapped[..40].chunks_mut(4).for_each(<[u8]>::reverse);
        assert_eq!(read(&swapped), Ok(vec![want]));
    }

    #[test]
    fn pcapng() {
        let section = [&SECTION_ORDER.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat();
        // Ethernet, with a clock of 2^10 ticks.
        let interface = [1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, 0x8a, 0, 0, 0, 0, 0, 0, 0];
        let words = [0u32, 0, 1536, 2, 60].map(u32::to_le_bytes).concat();
        let packet = [&words[..], b"ab\0\0"].concat();
        let file = [
            block(SECTION, &section),
            block(INTERFACE, &interface),
            block(99, &[]),
            block(ENHANCED, &packet),
            block(SIMPLE, b"\x01\0\0\0x\0\0\0"),
        ]
        .concat();
        let first = Packet { at: Duration::from_millis(1500), link: 1, octets: b"ab", length: 60 };
        let second = Packet { at: Duration::ZERO, link: 1, octets: b"x", length: 1 };
        assert_eq!(read(&file), Ok(vec![first, second]));
        assert_eq!(read(&file[..file.len() - 1]), Ok(vec![first]), "a cut end");
        let lonely = [block(SECTION, &section), block(ENHANCED, &packet)].concat();
        assert!(read(&lonely).is_err());
    }

    #[test]
    fn what_is_no_capture_is_refused() {
        for file in [&b""[..], b"abc", b"some text", &MAGIC_MICROS.to_le_bytes()] {
            assert!(read(file).is_err(), "{file:?}");
        }
        let huge = [&header()[..], &[0xff; 16]].concat();
        assert_eq!(read(&huge).unwrap_err().at, 24);
    }
}
