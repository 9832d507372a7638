//! `rove-lab pcap`: summarizes the capture of an interactive session. It counts packets by size, data packets
//! against acknowledgments, and packets a second; with the number of keys typed, also packets for each key.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::decode::{Segment, Transport, segment};
use super::{Packet, read};
use crate::files::read_octets;

/// Sums up a capture (pcap or pcapng): packets by size, data against acks, a second, and a keystroke
#[derive(Args, Clone, Debug)]
pub(crate) struct PcapFlags {
    /// The capture
    file: PathBuf,
    /// Keys that were typed in it
    #[arg(long, value_name = "N")]
    keys: Option<u64>,
    /// Only packets from or to this port
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
}

/// Prints the summary of a capture.
///
/// # Errors
/// If the file cannot be read, or is no capture.
pub(crate) fn run(flags: &PcapFlags) -> io::Result<i32> {
    let octets = read_octets(&flags.file, FILE_BYTES_MAX)?;
    let packets = read(&octets).map_err(|error| {
        let what = format!("{}: {error}", flags.file.display());
        io::Error::new(io::ErrorKind::InvalidData, what)
    })?;
    print!("{}", Summary::of(&packets, flags.port).to_text(flags.keys));
    Ok(0)
}

/// The summary of a capture.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// By direction: sender and receiver.
    pub flows: BTreeMap<(SocketAddr, SocketAddr, Transport), Flow>,
    /// Packets that are neither TCP nor UDP.
    pub others: u64,
    /// From the first packet to the last.
    pub lasts: Duration,
}

/// One direction of one conversation.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    /// Packets with payload.
    pub data: u64,
    /// Packets without: acknowledgments of TCP.
    pub bare: u64,
    /// Octets from the IP header on.
    pub octets: u64,
    /// Packets with payload by its length; at most `SIZES_MAX` lengths, the rest under the longest.
    pub sizes: BTreeMap<usize, u64>,
}

impl Summary {
    /// Of these packets.
    pub fn of(packets: &[Packet<'_>], port: Option<u16>) -> Summary {
        let mut summary = Summary::default();
        let (mut first, mut last) = (None::<Duration>, Duration::ZERO);
        for packet in packets {
            let found = segment(packet);
            let wanted = |found: &Segment| {
                port.is_none_or(|port| found.from.port() == port || found.to.port() == port)
            };
            match found {
                Some(found) if wanted(&found) => summary.add(&found),
                None if port.is_none() => summary.others += 1,
                _ => continue,
            }
            first = Some(first.map_or(packet.at, |first| first.min(packet.at)));
            last = last.max(packet.at);
        }
        summary.lasts = last.saturating_sub(first.unwrap_or(last));
        summary
    }

    fn add(&mut self, found: &Segment) {
        let flow = self.flows.entry((found.from, found.to, found.transport)).or_default();
        flow.octets += found.whole as u64;
        if found.payload == 0 {
            flow.bare += 1;
            return;
        }
        flow.data += 1;
        let full = flow.sizes.len() >= SIZES_MAX && !flow.sizes.contains_key(&found.payload);
        *flow.sizes.entry(if full { usize::MAX } else { found.payload }).or_default() += 1;
    }

    /// For a person.
    pub fn to_text(&self, keys: Option<u64>) -> String {
        let mut out = String::new();
        let sum = |count: fn(&Flow) -> u64| self.flows.values().map(count).sum::<u64>();
        let (data, bare, octets) =
            (sum(|flow| flow.data), sum(|flow| flow.bare), sum(|flow| flow.octets));
        let packets = data + bare + self.others;
        let seconds = self.lasts.as_secs_f64();
        let _ = write!(out, "{packets} packets, {octets} octets of TCP and UDP in {seconds:.2} s");
        if seconds > 0.0 {
            let each = packets as f64 / seconds;
            let _ = write!(
                out,
                ": {each:.1} packets and {:.0} octets a second",
                octets as f64 / seconds
            );
        }
        let _ =
            writeln!(out, "\ndata {data}, without payload (acks) {bare}, others {}", self.others);
        if let Some(keys) = keys.filter(|keys| *keys > 0) {
            let each = |count: u64| count as f64 / keys as f64;
            let _ = writeln!(
                out,
                "for each of {keys} keys: {:.2} packets, {:.0} octets",
                each(data + bare),
                each(octets)
            );
        }
        for ((from, to, transport), flow) in self.flows.iter().take(FLOWS_SHOWN) {
            let name = match transport {
                Transport::Tcp => "TCP",
                Transport::Udp => "UDP",
            };
            let _ = writeln!(
                out,
                "\n{name} {from} -> {to}: {} with data, {} without, {} octets",
                flow.data, flow.bare, flow.octets
            );
            let mut sizes: Vec<(usize, u64)> =
                flow.sizes.iter().map(|(size, count)| (*size, *count)).collect();
            sizes.sort_by_key(|(size, count)| (std::cmp::Reverse(*count), *size));
            for (size, count) in sizes.iter().take(SIZES_SHOWN) {
                let share = 100.0 * *count as f64 / flow.data as f64;
                let size = if *size == usize::MAX { "other".to_owned() } else { size.to_string() };
                let _ = writeln!(out, "  {count:>7} x {size:>5} octets of payload ({share:.1} %)");
            }
            if sizes.len() > SIZES_SHOWN {
                let rest: u64 = sizes[SIZES_SHOWN..].iter().map(|(_, count)| count).sum();
                let _ = writeln!(out, "  {rest:>7} of {} other lengths", sizes.len() - SIZES_SHOWN);
            }
        }
        if self.flows.len() > FLOWS_SHOWN {
            let _ = writeln!(out, "\nand {} more", self.flows.len() - FLOWS_SHOWN);
        }
        out
    }
}

/// The longest file that is read: 1 GiB.
const FILE_BYTES_MAX: u64 = 1 << 30;
/// The number of different lengths printed for one direction.
const SIZES_MAX: usize = 2_048;
/// Lengths printed for one direction, the most frequent ones.
const SIZES_SHOWN: usize = 8;
/// Directions printed.
const FLOWS_SHOWN: usize = 32;

#[cfg(test)]
mod tests {
    use super::super::LINKTYPE_RAW;
    use super::*;

    fn udp(from: u8, payload: usize) -> Vec<u8> {
        let whole = (28 + payload) as u16;
        let mut ip = vec![0x45, 0, (whole >> 8) as u8, whole as u8, 0, 0, 0, 0, 64, 17, 0, 0];
        ip.extend([10, 0, 0, from, 10, 0, 0, 3 - from]);
        ip.extend([0xea, 0x61 + from, 0xea, 0x64 - from, 0, 8, 0, 0]);
        ip.resize(usize::from(whole), 0);
        ip
    }

    #[test]
    fn counts() {
        let kinds = [udp(1, 36), udp(2, 36), udp(1, 36), udp(1, 80), vec![0x45; 20]];
        let packet =
            |(n, octets): (usize, &'_ Vec<u8>)| (Duration::from_secs(n as u64), octets.clone());
        let owned: Vec<(Duration, Vec<u8>)> = kinds.iter().enumerate().map(packet).collect();
        let packets: Vec<Packet<'_>> = owned
            .iter()
            .map(|(at, octets)| Packet {
                at: *at,
                link: LINKTYPE_RAW,
                octets,
                length: octets.len() as u32,
            })
            .collect();
        let text = Summary::of(&packets, None).to_text(Some(2));
        for want in [
            "5 packets, 300 octets of TCP and UDP in 4.00 s: 1.2 packets",
            "data 4, without payload (acks) 0, others 1",
            "for each of 2 keys: 2.00 packets, 150 octets",
            "UDP 10.0.0.1:60002 -> 10.0.0.2:60003: 3 with data",
            "2 x    36 octets of payload (66.7 %)",
        ] {
            assert!(text.contains(want), "{want}\n{text}");
        }
        let one = Summary::of(&packets, Some(9)).to_text(None);
        assert!(one.starts_with("0 packets"), "{one}");
    }
}
