//! What a client and its keeper say to each other: what is read is written the same, and a part of it is no other reply.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rove::testing::keeper::{Reply, Whereabouts, Wish};

fuzz_target!(|octets: &[u8]| {
    if let Some(wish) = octets.first_chunk::<{ Wish::BYTES }>()
        && let Some(read) = Wish::decode(wish)
    {
        assert_eq!(Wish::decode(&read.encode()), Some(read));
    }
    if let Ok(Some(reply)) = Reply::decode(octets) {
        let written = reply.encode();
        assert!(octets.starts_with(&written));
        assert_eq!(Reply::decode(&written[..written.len() - 1]), Ok(None));
    }
    if let Some(there) = str::from_utf8(octets).ok().and_then(Whereabouts::of_fact) {
        let written = Reply::Gone(there.clone()).encode();
        assert_eq!(Reply::decode(&written), Ok(Some(Reply::Gone(there))));
    }
});
