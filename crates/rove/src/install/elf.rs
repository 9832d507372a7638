//! Which machine a program is for, and whether it needs anything of the system but the kernel: as much of ELF as says
//! that.

/// `e_ident`: 64 bits, the least significant octet first.
const IDENT: &[u8] = b"\x7fELF\x02\x01";

/// A program header of this type names the program that loads libraries.
const PT_INTERP: u32 = 3;

/// Machines, as `uname -m` names them and by their number.
const MACHINES: [(&str, u16); 3] = [("x86_64", 62), ("aarch64", 183), ("riscv64", 243)];

/// A program for a machine.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Elf {
    /// The machine, as `uname -m` names it.
    pub machine: &'static str,
    /// Whether it needs no libraries.
    pub is_static: bool,
}

impl Elf {
    /// Reads a program; `None` if it is none for a machine that is known.
    pub fn read(octets: &[u8]) -> Option<Elf> {
        let number = u16_at(octets, 18)?;
        let (machine, _) = MACHINES.iter().find(|(_, known)| *known == number)?;
        if !octets.starts_with(IDENT) {
            return None;
        }
        let begin =
            usize::try_from(u64::from(u32_at(octets, 32)?) | u64::from(u32_at(octets, 36)?) << 32);
        let (begin, size, count) = (begin.ok()?, u16_at(octets, 54)?, u16_at(octets, 56)?);
        let mut kinds = (0..usize::from(count))
            .map(|index| u32_at(octets, begin.checked_add(index * usize::from(size))?));
        let loads_libraries = kinds.any(|kind| kind.is_none_or(|kind| kind == PT_INTERP));
        Some(Elf { machine, is_static: !loads_libraries })
    }
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

    /// The head of a program with these program headers.
    fn elf(machine: u16, kinds: &[u32]) -> Vec<u8> {
        let mut octets = IDENT.to_vec();
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

    #[test]
    fn programs() {
        for (octets, expected) in [
            (elf(62, &[1, 2, 1]), Some(("x86_64", true))),
            (elf(183, &[6, 3, 1]), Some(("aarch64", false))),
            (elf(62, &[]), Some(("x86_64", true))),
            (elf(3, &[1]), None),
            (b"#!/bin/sh\necho this is no program at all".to_vec(), None),
            (elf(62, &[1, 1])[..100].to_vec(), Some(("x86_64", false))),
            (Vec::new(), None),
        ] {
            let found = Elf::read(&octets).map(|elf| (elf.machine, elf.is_static));
            assert_eq!(found, expected, "{octets:?}");
        }
        let own = std::fs::read("/proc/self/exe").expect("this program");
        assert_eq!(Elf::read(&own).map(|elf| elf.machine), Some(std::env::consts::ARCH));
    }
}
