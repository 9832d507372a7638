//! What a program says by SOCKS: how it is cut into pieces changes nothing, and nothing is read twice or
//! beyond what is there.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rove::testing::services::socks::{OCTETS_MAX, Reader, Step};

fuzz_target!(|octets: &[u8]| {
    let piece = octets.first().map_or(1, |&octet| usize::from(octet).max(1));
    assert_eq!(conversation(octets, octets.len().max(1)), conversation(octets, piece));
});

/// Every step but those that want more, and what is left over.
fn conversation(octets: &[u8], piece: usize) -> (Vec<Step>, Vec<u8>) {
    let (mut reader, mut steps, mut held) = (Reader::default(), Vec::new(), Vec::new());
    let mut pieces = octets.chunks(piece);
    loop {
        let (used, step) = reader.next(&held);
        assert!(used <= held.len());
        held.drain(..used);
        match step {
            Step::More => {
                assert!(held.len() <= OCTETS_MAX);
                match pieces.next() {
                    Some(more) => held.extend(more),
                    None => return (steps, held),
                }
            }
            Step::Say(_) => steps.push(step),
            Step::Connect { ref to, .. } => {
                assert!(!to.host.is_empty() && to.port != 0);
                steps.push(step);
                held.extend(pieces.flatten());
                return (steps, held);
            }
            // Too long in one piece or in several is the same, but not what is left of it.
            Step::Refuse(_) => {
                steps.push(step);
                return (steps, Vec::new());
            }
        }
    }
}
