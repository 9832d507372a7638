//! Captures of packets, pcap and pcapng, down to the summary of what is in them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rove_lab::testing::capture::summary::Summary;
use rove_lab::testing::capture::{decode, header, read, record_head};

fuzz_target!(|bytes: &[u8]| {
    let Ok(packets) = read(bytes) else { return };
    let mut again = header();
    for packet in &packets {
        if let Some(segment) = decode::segment(packet) {
            assert!(segment.payload < segment.whole);
        }
        again.extend(record_head(packet.at, packet.octets.len()));
        again.extend(packet.octets);
    }
    assert!(!Summary::of(&packets, None).to_text(Some(1)).is_empty());
    let octets = |packets: &[rove_lab::testing::capture::Packet<'_>]| {
        packets.iter().map(|packet| packet.octets.to_vec()).collect::<Vec<_>>()
    };
    if packets.iter().all(|packet| packet.octets.len() < 65_535) {
        assert_eq!(read(&again).map(|packets| octets(&packets)), Ok(octets(&packets)));
    }
});
