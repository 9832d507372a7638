//! Which kind of machine a program is for, and whether it runs on all of that kind: as much of ELF and Mach-O as says
//! that.

/// A kind of machine that servers are made for.
#[derive(Debug, Eq, PartialEq)]
pub struct Kind {
    /// What `uname -sm` says there.
    pub uname: &'static str,
    /// The file of a package that has the program.
    pub file: &'static str,
    head: Head,
}

/// How a program for it begins.
#[derive(Debug, Eq, PartialEq)]
enum Head {
    /// By its class, system and machine.
    Elf(Class, System, u16),
    /// By its processor.
    MachO(u32),
}

/// How wide the numbers of an ELF file are (`EI_CLASS`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Class {
    Bits32,
    Bits64,
}

/// The system that an ELF file is for (`EI_OSABI`). Programs for Linux have 0 there, or 3.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum System {
    Linux,
    FreeBsd,
}

use Class::{Bits32, Bits64};
use System::{FreeBsd, Linux};

/// All kinds. A 32-bit system under a 64-bit kernel calls itself 64-bit: what needs no libraries runs there all the same.
const KINDS: [Kind; 7] = [
    kind("Linux x86_64", "rove-linux-x86_64", Head::Elf(Bits64, Linux, 62)),
    kind("Linux aarch64", "rove-linux-aarch64", Head::Elf(Bits64, Linux, 183)),
    kind("Linux armv7l", "rove-linux-armv7", Head::Elf(Bits32, Linux, 40)),
    kind("Linux riscv64", "rove-linux-riscv64", Head::Elf(Bits64, Linux, 243)),
    kind("Darwin arm64", "rove-macos-aarch64", Head::MachO(0x0100_000c)),
    kind("Darwin x86_64", "rove-macos-x86_64", Head::MachO(0x0100_0007)),
    kind("FreeBSD amd64", "rove-freebsd-x86_64", Head::Elf(Bits64, FreeBsd, 62)),
];

const fn kind(uname: &'static str, file: &'static str, head: Head) -> Kind {
    Kind { uname, file, head }
}

/// A program header of this type names the program that loads libraries.
const PT_INTERP: u32 = 3;

/// The head of a Mach-O file of 64 bits, and its type that is a program.
const MACH_O: &[u8] = b"\xcf\xfa\xed\xfe";
const MH_EXECUTE: u32 = 2;

/// A program for a kind of machine.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Executable {
    /// The kind of machine.
    pub kind: &'static Kind,
    /// Whether it runs on all of that kind. A program for Linux that loads libraries does not; macOS and FreeBSD have
    /// the C library's everywhere.
    pub is_portable: bool,
}

impl Kind {
    /// The kind of machine on which `uname -sm` says this.
    pub fn of(uname: &str) -> Option<&'static Kind> {
        KINDS.iter().find(|kind| kind.uname == uname)
    }
}

impl Executable {
    /// Reads a program; `None` if it is none for a known kind of machine.
    pub fn read(octets: &[u8]) -> Option<Executable> {
        let (head, is_portable) = if octets.starts_with(MACH_O) {
            (u32_at(octets, 12)? == MH_EXECUTE).then_some(())?;
            (Head::MachO(u32_at(octets, 4)?), true)
        } else {
            read_elf(octets)?
        };
        let kind = KINDS.iter().find(|kind| kind.head == head)?;
        Some(Executable { kind, is_portable })
    }
}

/// The head of an ELF file, the least significant octet of numbers first, and whether it runs on all machines like that.
fn read_elf(octets: &[u8]) -> Option<(Head, bool)> {
    let class = match octets.get(..6)? {
        b"\x7fELF\x01\x01" => Bits32,
        b"\x7fELF\x02\x01" => Bits64,
        _ => return None,
    };
    let system = match octets.get(7)? {
        0 | 3 => Linux,
        9 => FreeBsd,
        _ => return None,
    };
    let machine = u16_at(octets, 18)?;
    let (begin, size, count) = match class {
        Bits32 => (u64::from(u32_at(octets, 28)?), u16_at(octets, 42)?, u16_at(octets, 44)?),
        Bits64 => {
            let begin = u64::from(u32_at(octets, 32)?) | u64::from(u32_at(octets, 36)?) << 32;
            (begin, u16_at(octets, 54)?, u16_at(octets, 56)?)
        }
    };
    let begin = usize::try_from(begin).ok()?;
    let mut kinds = (0..usize::from(count))
        .map(|index| u32_at(octets, begin.checked_add(index * usize::from(size))?));
    let loads_libraries = kinds.any(|kind| kind.is_none_or(|kind| kind == PT_INTERP));
    Some((Head::Elf(class, system, machine), system == FreeBsd || !loads_libraries))
}

fn u16_at(octets: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*octets.get(at..)?.first_chunk()?))
}

fn u32_at(octets: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*octets.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The head of a program of 64 bits with these program headers.
    fn elf(system: u8, machine: u16, kinds: &[u32]) -> Vec<u8> {
        let mut octets = b"\x7fELF\x02\x01\x01".to_vec();
        octets.push(system);
        octets.resize(64, 0);
        octets[18..20].copy_from_slice(&machine.to_le_bytes());
        octets[32] = 64;
        octets[54] = 56;
        octets[56] = kinds.len() as u8;
        for kind in kinds {
            octets.extend_from_slice(&kind.to_le_bytes());
            octets.extend([0; 52]);
        }
        octets
    }

    /// The same of 32 bits.
    fn elf32(machine: u16, kinds: &[u32]) -> Vec<u8> {
        let mut octets = b"\x7fELF\x01\x01\x01".to_vec();
        octets.resize(52, 0);
        octets[18..20].copy_from_slice(&machine.to_le_bytes());
        octets[28] = 52;
        octets[42] = 32;
        octets[44] = kinds.len() as u8;
        for kind in kinds {
            octets.extend_from_slice(&kind.to_le_bytes());
            octets.extend([0; 28]);
        }
        octets
    }

    /// The head of a Mach-O file.
    fn mach_o(processor: u32, file_type: u32) -> Vec<u8> {
        let numbers = [processor, 0, file_type, 0, 0, 0, 0].map(u32::to_le_bytes);
        [MACH_O, &numbers.concat()].concat()
    }

    #[test]
    fn programs() {
        for (octets, expected) in [
            (elf(0, 62, &[1, 2, 1]), Some(("Linux x86_64", true))),
            (elf(3, 62, &[1, 2, 1]), Some(("Linux x86_64", true))),
            (elf(0, 183, &[6, 3, 1]), Some(("Linux aarch64", false))),
            (elf(0, 62, &[]), Some(("Linux x86_64", true))),
            (elf(0, 243, &[1]), Some(("Linux riscv64", true))),
            (elf32(40, &[1, 1]), Some(("Linux armv7l", true))),
            (elf32(40, &[1, 3]), Some(("Linux armv7l", false))),
            (elf(9, 62, &[1, 3]), Some(("FreeBSD amd64", true))),
            (mach_o(0x0100_000c, 2), Some(("Darwin arm64", true))),
            (mach_o(0x0100_0007, 2), Some(("Darwin x86_64", true))),
            // A library, and a processor that nothing is made for.
            (mach_o(0x0100_000c, 6), None),
            (mach_o(7, 2), None),
            (elf(0, 3, &[1]), None),
            (elf(0, 40, &[1]), None),
            (elf(9, 183, &[1]), None),
            (elf(12, 62, &[1]), None),
            (b"#!/bin/sh\necho this is no program at all".to_vec(), None),
            (elf(0, 62, &[1, 1])[..100].to_vec(), Some(("Linux x86_64", false))),
            (elf(0, 62, &[1])[..50].to_vec(), None),
            (mach_o(0x0100_000c, 2)[..14].to_vec(), None),
            (Vec::new(), None),
        ] {
            let found = Executable::read(&octets);
            let found = found.map(|program| (program.kind.uname, program.is_portable));
            assert_eq!(found, expected, "{octets:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn this_program_is_for_this_machine() {
        let own = crate::os::process::own_program().expect("a path");
        let own = Executable::read(&std::fs::read(own).expect("this program"));
        let system = rustix::system::uname();
        let uname = format!(
            "{} {}",
            system.sysname().to_string_lossy(),
            system.machine().to_string_lossy()
        );
        assert_eq!(own.map(|own| own.kind), Kind::of(&uname));
    }

    #[test]
    fn each_kind_has_its_own_names() {
        for (at, kind) in KINDS.iter().enumerate() {
            assert_eq!(Kind::of(kind.uname), Some(kind));
            assert!(KINDS[..at].iter().all(|other| other.file != kind.file));
        }
        assert_eq!(Kind::of("Linux mips"), None);
    }
}
