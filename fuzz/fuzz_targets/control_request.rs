//! A line that another process says to a session: it is read to what is written as the same line, and no word is passed
//! over that could change what it means.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rove::testing::sessions::{Request, octets, word};

fuzz_target!(|line: &[u8]| {
    assert_eq!(octets(&word(line)).as_deref(), Some(line));
    let Ok(request) = Request::parse(line) else { return };
    let written = request.to_string();
    assert_eq!(Request::parse(written.as_bytes()), Ok(request));
    let words = |line: &[u8]| line.split(|octet| *octet == b' ').count();
    // A word that is said twice counts once.
    assert!(words(written.as_bytes()) <= words(line));
    assert!(Request::parse(&[line, b" unknown"].concat()).is_err());
});
