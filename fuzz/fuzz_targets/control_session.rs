//! What a session says of itself, as another version may say it: it is read to what is written as the same line, but for
//! words of later versions.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rove::testing::sessions::{Session, octets, word};

fuzz_target!(|line: &[u8]| {
    let Ok(line) = str::from_utf8(line) else { return };
    if let Some(octets) = octets(line) {
        assert_eq!(self::octets(&word(&octets)), Some(octets));
    }
    let Some(session) = Session::parse(line) else { return };
    let written = session.to_string();
    assert_eq!(Session::parse(&written), Some(session.clone()));
    assert_eq!(Session::parse(&format!("{written} later")), Some(session));
});
