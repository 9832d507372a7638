//! Datagrams of the mosh wire: nothing that was not sealed here opens, what does not open is wiped, and
//! what is sealed opens to itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rove_ssp::{Key, MoshWire, Reject, Role, Stamp, Stamps, Wire};

fuzz_target!(|bytes: &[u8]| {
    let key = Key::from_bytes([7; Key::BYTES]);
    let mut client = MoshWire::new(key.clone(), Role::Client);
    let mut server = MoshWire::new(key, Role::Server);

    let mut forged = bytes.to_vec();
    match server.open(&mut forged) {
        Ok(_) => panic!("a datagram out of nothing"),
        Err(Reject::Forged) => {
            let text = &forged[8..forged.len() - 16];
            assert!(text.iter().all(|&byte| byte == 0), "decrypted octets are left behind");
        }
        Err(_) => assert_eq!(forged, bytes),
    }

    let (head, payload) = bytes.split_at(bytes.len().min(4));
    let payload = &payload[..payload.len().min(2000)];
    let octet = |index: usize| head.get(index).copied().unwrap_or(0);
    let word = |index: usize| u16::from_be_bytes([octet(index), octet(index + 1)]);
    let stamps = Stamps { sent: Stamp::from_wire(word(0)), reply: Stamp::from_wire(word(2)) };
    let mut datagram = Vec::new();
    let seq = client.seal(&stamps.into(), payload, &mut datagram).expect("a fresh key");
    assert_eq!(datagram.len(), payload.len() + client.overhead());

    let mut reflected = datagram.clone();
    assert_eq!(client.open(&mut reflected).map(|_| ()), Err(Reject::Reflected));
    let mut flipped = datagram.clone();
    let place = usize::from(word(0)) % flipped.len();
    flipped[place] ^= 1 << (word(2) % 8);
    assert!(server.open(&mut flipped).is_err());

    let (header, range) = server.open(&mut datagram).expect("sealed by the other end");
    assert_eq!((header.seq, header.stamps), (seq, stamps));
    assert_eq!(&datagram[range], payload);
});
