//! Datagrams of the native wire: nothing that was not sealed here opens, what is sealed opens once and to
//! itself, and whatever an enemy with the key seals is read without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rove_ssp::{ConnId, Deflater, Envelope, NativeWire, Piece, Role, SessionSecrets, Wire};

fuzz_target!(|bytes: &[u8]| {
    let secrets = SessionSecrets::from_bytes([1; 32], [2; 32], [3; 32]);
    let end = |role| NativeWire::new(&secrets, ConnId::new(7), role);
    let (mut client, mut server) = (end(Role::Client), end(Role::Server));

    let mut forged = bytes.to_vec();
    assert!(server.open(&mut forged).is_err(), "a datagram out of nothing");
    assert_eq!(forged, bytes, "what does not open is left as it was");

    // An enemy with the key: heads, fragments and instructions as he likes.
    let payload = &bytes[..bytes.len().min(1800)];
    let mut datagram = Vec::new();
    client.seal_text(payload, &mut datagram).expect("a fresh key");
    if let Ok((header, range)) = server.open(&mut datagram) {
        let payload = datagram[range].to_vec();
        if let Ok(Piece::Fragment(fragment)) = server.decode_piece(&payload)
            && let Ok(message) = server.unpack(fragment.contents)
        {
            let mut packed = Vec::new();
            server.pack(&message, &mut Deflater::default(), &mut packed);
            assert_eq!(server.unpack(&packed), Ok(message));
        }
        // What the head said can be said again.
        let envelope = Envelope {
            stamps: header.stamps,
            report: header.report,
            flags: header.flags,
            control: header.control,
        };
        let mut again = Vec::new();
        let seq = client.seal(&envelope, &payload, &mut again).expect("a fresh key");
        if again.len() <= 2048 {
            let (read, range) = server.open(&mut again).expect("sealed by the other end");
            assert_eq!(read.seq, seq);
            assert_eq!((read.stamps, read.flags), (header.stamps, header.flags));
            assert_eq!(again[range], payload[..]);
        }
    }

    // A changed octet anywhere is noticed, and nothing opens twice.
    let mut sealed = Vec::new();
    client.seal(&Envelope::default(), payload, &mut sealed).expect("a fresh key");
    let mut flipped = sealed.clone();
    let sum = bytes.iter().fold(0_u32, |sum, &byte| sum.wrapping_mul(7) ^ u32::from(byte));
    let place = sum as usize % flipped.len();
    flipped[place] ^= 1 << (bytes.len() % 8);
    assert!(server.open(&mut flipped).is_err());
    let mut replayed = sealed.clone();
    server.open(&mut sealed).expect("sealed by the other end");
    assert!(server.open(&mut replayed).is_err());
});
