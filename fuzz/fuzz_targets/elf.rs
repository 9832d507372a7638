//! The head of a program, as a package or a user's file may have it: what is read of it does not depend on what follows
//! the program, and a program that is cut off before its headers end is none that needs no libraries.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rove::testing::install::Elf;

fuzz_target!(|octets: &[u8]| {
    let found = Elf::read(octets);
    assert_eq!(Elf::read(octets), found);
    let Some(elf) = found else { return };
    assert!(octets.starts_with(b"\x7fELF"));
    if elf.is_static {
        let longer = [octets, b"more than the program"].concat();
        assert_eq!(Elf::read(&longer), Some(elf));
    }
    let head = &octets[..octets.len().min(63)];
    assert_eq!(
        Elf::read(head).map(|elf| elf.machine),
        Some(elf.machine).filter(|_| head.len() > 57)
    );
});
