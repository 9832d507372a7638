//! What begins the streams of a session, said by who may know nothing: only the head of a datagram counts, and who
//! has the secret of one session begins nothing in another.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rove_streams::SecretMemory;
use rove_streams::server::Dormant;

/// First octet, version, length of the id, and the id.
const HEAD: usize = 1 + 4 + 1 + 16;

fuzz_target!(|octets: &[u8]| {
    let Some((secret, datagram)) = octets.split_first_chunk::<32>() else { return };
    let idle = Dormant::new(secret, SecretMemory::ORDINARY);
    let asked = idle.is_asked_for(datagram);
    let head = &datagram[..datagram.len().min(HEAD)];
    assert_eq!(idle.is_asked_for(head), asked, "what follows does not count");
    if asked {
        assert!(head.len() == HEAD && head[0] & 0x80 != 0 && head[1..6] == [0, 0, 0, 1, 16]);
        let mut other = *secret;
        other[0] ^= 1;
        assert!(!Dormant::new(&other, SecretMemory::ORDINARY).is_asked_for(datagram));
        for at in 1..HEAD {
            let mut forged = head.to_vec();
            forged[at] ^= 1;
            assert!(!idle.is_asked_for(&forged), "octet {at}");
        }
    }
});
