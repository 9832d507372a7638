//! The head of a program, as a package or a user's file may have it: what is read of it does not depend on what follows
//! the program, and a program that is cut off before its headers end is none that needs no libraries.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rove::testing::install::Executable;

fuzz_target!(|octets: &[u8]| {
    let found = Executable::read(octets);
    assert_eq!(Executable::read(octets), found);
    let Some(program) = found else { return };
    assert!(octets.starts_with(b"\x7fELF") || octets.starts_with(b"\xcf\xfa\xed\xfe"));
    if program.is_portable {
        let longer = [octets, b"more than the program"].concat();
        assert_eq!(Executable::read(&longer), Some(program));
    }
    // Of what is shorter no more is known than of the whole.
    for length in 0..octets.len().min(64) {
        let head = Executable::read(&octets[..length]);
        assert!(head.is_none_or(|head| head.kind == program.kind));
        assert!(length >= 16 || head.is_none());
    }
});
