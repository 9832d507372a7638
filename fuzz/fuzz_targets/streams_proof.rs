//! What a connection of the streams must show first: the number of its first packet, and the client's hello. Nothing
//! but the hello of this very connection is taken, and no answer is worth anything as a hello.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use rove_streams::SecretMemory;
use rove_streams::testing::keys::{InitialFilter, Keys};
use rove_streams::testing::proof::{HELLO, Proofs};

/// Octets of a client's first id.
const ID: usize = 16;

static OURS: LazyLock<Keys> = LazyLock::new(|| Keys::new(&[1; 32], SecretMemory::ORDINARY));
static THEIRS: LazyLock<Keys> = LazyLock::new(|| Keys::new(&[2; 32], SecretMemory::ORDINARY));

fuzz_target!(|octets: &[u8]| {
    let Some((number, rest)) = octets.split_first_chunk::<8>() else { return };
    let number = u64::from_be_bytes(*number);
    first_packet(number, rest);

    let ours = Proofs::new(OURS.clone(), &[7; 32]);
    let hello = ours.hello(number);
    let answer = ours.answer(number);
    let heard = changed(&hello, rest);
    assert_eq!(ours.read(&heard), (heard == hello).then_some(number));
    // The same on another connection, and of one who has another secret.
    for other in [Proofs::new(OURS.clone(), &[8; 32]), Proofs::new(THEIRS.clone(), &[7; 32])] {
        assert_eq!(other.read(&heard), None);
        assert_ne!(other.answer(number), answer);
    }
    // A client that sends an answer back, under any number, has proved nothing.
    let mut echoed = heard;
    echoed[HELLO - answer.len()..].copy_from_slice(&answer);
    assert_eq!(ours.read(&echoed), None);
});

/// A packet is let in for its id alone.
fn first_packet(number: u64, rest: &[u8]) {
    let id = OURS.first_id(number);
    let own: &[u8; ID] = id.first_chunk().expect("an id of that length");
    let named = changed(own, rest);
    let tail = rest.get(ID..).unwrap_or_default();
    let packet = [&[0xc0, 0, 0, 0, 1, ID as u8], named.as_slice(), tail].concat();
    let mut filter = InitialFilter::new(OURS.clone());
    assert_eq!(filter.admits(&packet), named == *own);
    assert!(!InitialFilter::new(THEIRS.clone()).admits(&packet));
    // In any other form it would have to have an id of the server's own.
    for at in 0..6 {
        let mut other = packet.clone();
        other[at] ^= 1 << (number % 8);
        let is_long = at == 0 && other[0] & 0x80 != 0;
        assert_eq!(filter.admits(&other), is_long && named == *own, "octet {at}");
    }
}

/// The octets with those of a mask turned over.
fn changed<const N: usize>(octets: &[u8; N], mask: &[u8]) -> [u8; N] {
    let mut changed = *octets;
    changed.iter_mut().zip(mask).for_each(|(octet, mask)| *octet ^= mask);
    changed
}
