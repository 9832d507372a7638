//! Reads a compiled terminfo entry (term(5)) of the user's terminal, as far as frames use it.
//!
//! The file comes from a database that the user may have written: it is hostile, read within bounds, and
//! only ever compared with sequences that we know. Nothing in it is sent to the terminal.

use super::ability::{Ability, Colors};

/// The largest entry, in octets: ncurses' own limit for its newer format (term(5)).
pub const ENTRY_BYTES_MAX: usize = 32_768;

/// The first number of an entry with 16-bit numbers, and of one with 32-bit ones.
const MAGIC: u16 = 0o432;
const MAGIC_WIDE: u16 = 0o1036;

/// Indices in the tables of `<term.h>`.
const BACK_COLOR_ERASE: usize = 28;
const MAX_COLORS: usize = 13;

/// Strings that we would send, and what they must be for us to send them.
const STRINGS: [(usize, &[u8], Ability); 6] = [
    (26, b"\x1b[5m", Ability::Blink),
    (30, b"\x1b[2m", Ability::Faint),
    (32, b"\x1b[8m", Ability::Invisible),
    (37, b"\x1b[%p1%dX", Ability::EraseCharacters),
    (311, b"\x1b[3m", Ability::Italic),
    // enter_ca_mode: any, since a user who does not want the other screen takes it out.
    (28, b"\x1b", Ability::Alternate),
];

/// Names of the extended section, of which each shows an ability: tmux(1) and user_caps(5) list them.
const NAMES: [(&[u8], Ability); 9] = [
    (b"smxx", Ability::Strike),
    (b"Smol", Ability::Overline),
    (b"Smulx", Ability::UnderlineStyles),
    (b"Su", Ability::UnderlineStyles),
    (b"Setulc", Ability::UnderlineColor),
    (b"Ss", Ability::CursorShape),
    (b"Ms", Ability::Clipboard),
    (b"Sync", Ability::Synchronized),
    (b"XT", Ability::Titles),
];
const DIRECT_COLOR: [&[u8]; 2] = [b"RGB", b"Tc"];

/// A terminal's entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Terminfo {
    pub(crate) colors: Colors,
    /// Abilities that it has.
    pub(crate) has: u64,
    /// Abilities that it lacks. The entry does not describe others.
    pub(crate) lacks: u64,
}

impl Terminfo {
    /// Reads a compiled entry. `None`: it is none.
    pub fn parse(entry: &[u8]) -> Option<Terminfo> {
        let mut rest = Octets(entry.get(..entry.len().min(ENTRY_BYTES_MAX))?);
        let wide = match rest.number()? {
            MAGIC => Width::Two,
            MAGIC_WIDE => Width::Four,
            _ => return None,
        };
        let [names, bools, numbers, strings, table] = rest.counts()?;
        let names = rest.take(names)?;
        let bools = rest.take(bools)?;
        rest.pad(names.len() + bools.len())?;
        let numbers = rest.take(numbers.checked_mul(wide as usize)?)?;
        let offsets = rest.take(strings.checked_mul(2)?)?;
        let table = rest.take(table)?;

        let mut info = Terminfo { colors: Colors::Monochrome, has: 0, lacks: 0 };
        info.note(Ability::BackColorErase, bools.get(BACK_COLOR_ERASE) == Some(&1));
        for (index, wanted, ability) in STRINGS {
            let string = string_at(offsets, index, table).unwrap_or_default();
            info.note(ability, string.starts_with(wanted));
        }
        info.colors = colors(number_at(numbers, MAX_COLORS, wide));
        // Entries without extensions are complete, too.
        let _ = rest.pad(table.len()).and_then(|()| info.extend(&mut rest, wide));
        Some(info)
    }

    /// Reads the extended section.
    fn extend(&mut self, rest: &mut Octets<'_>, wide: Width) -> Option<()> {
        let [bools, numbers, strings, _used, table] = rest.counts()?;
        let flags = rest.take(bools)?;
        rest.pad(bools)?;
        let quantities = rest.take(numbers.checked_mul(wide as usize)?)?;
        let values = rest.take(strings.checked_mul(2)?)?;
        let count = bools.checked_add(numbers)?.checked_add(strings)?;
        let names = rest.take(count.checked_mul(2)?)?;
        let table = rest.take(table)?;
        // Names follow the last value.
        let values_end = |index| {
            let start = offset_at(values, index)?;
            Some(start + string_at(values, index, table)?.len() + 1)
        };
        let base = (0..strings).filter_map(values_end).max().unwrap_or(0);
        let table = table.get(base..)?;
        for index in 0..count {
            let Some(name) = string_at(names, index, table) else { continue };
            // A capability may be there to say that there is none (`Ms@`).
            let has = match (flags.get(index), index.saturating_sub(bools)) {
                (Some(flag), _) => *flag == 1,
                (None, index) if index < numbers => number_at(quantities, index, wide) >= 0,
                (None, index) => offset_at(values, index - numbers).is_some(),
            };
            for (_, ability) in NAMES.iter().filter(|(known, _)| *known == name) {
                self.note(*ability, has);
            }
            if DIRECT_COLOR.contains(&name) && has {
                self.colors = Colors::Direct;
            }
        }
        // Of two names for one ability the terminal needs one.
        self.lacks &= !self.has;
        Some(())
    }

    fn note(&mut self, ability: Ability, has: bool) {
        match has {
            true => self.has |= ability as u64,
            false => self.lacks |= ability as u64,
        }
    }
}

/// How wide numbers are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Width {
    Two = 2,
    Four = 4,
}

/// The colours of a terminal with this count. A negative count means none.
fn colors(count: i32) -> Colors {
    match count {
        ..8 => Colors::Monochrome,
        8..16 => Colors::Eight,
        16..256 => Colors::Sixteen,
        256..0x10_0000 => Colors::Indexed,
        0x10_0000.. => Colors::Direct,
    }
}

fn number_at(numbers: &[u8], index: usize, wide: Width) -> i32 {
    let start = index * wide as usize;
    match (wide, numbers.get(start..)) {
        (Width::Two, Some([a, b, ..])) => i16::from_le_bytes([*a, *b]).into(),
        (Width::Four, Some([a, b, c, d, ..])) => i32::from_le_bytes([*a, *b, *c, *d]),
        _ => -1,
    }
}

/// Where a string begins. `None`: the terminal has none.
fn offset_at(offsets: &[u8], index: usize) -> Option<usize> {
    usize::try_from(number_at(offsets, index, Width::Two)).ok()
}

fn string_at<'a>(offsets: &[u8], index: usize, table: &'a [u8]) -> Option<&'a [u8]> {
    let string = table.get(offset_at(offsets, index)?..)?;
    let end = string.iter().position(|&octet| octet == 0)?;
    Some(&string[..end])
}

/// The unread rest of an entry.
struct Octets<'a>(&'a [u8]);

impl<'a> Octets<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u16> {
        let octets = self.take(2)?;
        Some(u16::from_le_bytes([octets[0], octets[1]]))
    }

    /// Five counts; a negative one is none.
    fn counts(&mut self) -> Option<[usize; 5]> {
        let mut counts = [0; 5];
        for count in &mut counts {
            *count = self.number().filter(|&number| number <= i16::MAX as u16)?.into();
        }
        Some(counts)
    }

    /// Numbers stand at even places.
    fn pad(&mut self, before: usize) -> Option<()> {
        self.take(before % 2).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;

    /// An entry with these strings and, extended, these names, each with a value.
    fn entry(colors: i16, bce: u8, strings: &[(usize, &str)], names: &[&str]) -> Vec<u8> {
        let mut table = Vec::new();
        let mut offsets = [-1_i16; 320];
        for (index, string) in strings {
            offsets[*index] = table.len() as i16;
            table.extend_from_slice(string.as_bytes());
            table.push(0);
        }
        let shorts = |numbers: &[i16]| {
            numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>()
        };
        let mut out = shorts(&[0o432, 2, 29, 14, 320, table.len() as i16]);
        out.extend_from_slice(b"x\0");
        out.extend([0; 28]);
        out.extend([bce, 0]);
        out.extend(shorts(&[-1; 13]));
        out.extend(shorts(&[colors]));
        out.extend(shorts(&offsets));
        out.extend(&table);
        out.extend(&vec![0; table.len() % 2]);
        let values: Vec<i16> = (0..names.len()).map(|index| index as i16 * 2).collect();
        let text = names.join("\0") + "\0";
        let starts = names.iter().scan(0, |start, name| {
            let at = *start;
            *start += name.len() as i16 + 1;
            Some(at)
        });
        let starts: Vec<i16> = starts.collect();
        let size = 2 * names.len() + text.len();
        let count = names.len() as i16;
        out.extend(shorts(&[0, 0, count, 2 * count, size as i16]));
        out.extend(shorts(&values));
        out.extend(shorts(&starts));
        out.extend(b"v\0".repeat(names.len()));
        out.extend(text.as_bytes());
        out
    }

    #[test]
    fn entries() {
        let italic = [(311, "\x1b[3m"), (28, "\x1b[?1049h")];
        for (term, colorterm, entry, colors, has, lacks) in [
            (
                "",
                "",
                entry(256, 1, &italic, &["Smulx"]),
                Colors::Indexed,
                "italic bce alt curly",
                "ech",
            ),
            (
                "",
                "truecolor",
                entry(8, 0, &[], &[]),
                Colors::Direct,
                "",
                "italic bce alt curly ech",
            ),
            ("", "", entry(8, 0, &[], &["zz", "Tc"]), Colors::Direct, "", "curly"),
            ("xterm-mono", "", entry(-1, 1, &[], &[]), Colors::Monochrome, "bce", "italic"),
            (
                "xterm-256color",
                "",
                entry(88, 1, &[(37, "\x1b[%p1%dX")], &[]),
                Colors::Sixteen,
                "ech",
                "alt",
            ),
            ("xterm-kitty", "", entry(256, 1, &italic, &[]), Colors::Direct, "curly alt", ""),
            ("", "", entry(256, 1, &[(37, "\x1b[%p1%dY")], &[]), Colors::Indexed, "bce", "ech"),
        ] {
            let info = Terminfo::parse(&entry).unwrap();
            let dialect = Dialect::tty_described(term, colorterm, &info);
            assert_eq!(dialect.colors(), colors, "{term:?}");
            for (names, expected) in [(has, true), (lacks, false)] {
                for name in names.split_whitespace() {
                    let ability = match name {
                        "italic" => Ability::Italic,
                        "bce" => Ability::BackColorErase,
                        "alt" => Ability::Alternate,
                        "curly" => Ability::UnderlineStyles,
                        _ => Ability::EraseCharacters,
                    };
                    assert_eq!(dialect.can(ability), expected, "{term:?} {name}");
                }
            }
        }
    }

    /// `XT@`, `RGB@`, `U8#@` and `Ms@`, or the same with values.
    #[test]
    fn cancelled_capabilities() {
        let shorts = |numbers: &[i16]| {
            numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>()
        };
        let both = Ability::Titles as u64 | Ability::Clipboard as u64;
        for (flags, number, string, colors, has) in [
            ([1, 1], 7, 0, Colors::Direct, both),
            ([0xfe, 0xfe], -2, -2, Colors::Eight, 0),
            ([1, 0xfe], -2, -2, Colors::Eight, Ability::Titles as u64),
            ([0, 0], -1, 0, Colors::Eight, Ability::Clipboard as u64),
        ] {
            let mut entry = entry(8, 0, &[], &[]);
            entry.truncate(entry.len() - 11);
            let value: &[u8] = if string == 0 { b"v\0" } else { b"" };
            let names = b"XT\0RGB\0U8\0Ms\0";
            let size = (value.len() + names.len()) as i16;
            entry.extend(shorts(&[2, 1, 1, 5, size]));
            entry.extend(flags);
            entry.extend(shorts(&[number, string, 0, 3, 7, 10]));
            entry.extend(value);
            entry.extend(names);
            let info = Terminfo::parse(&entry).unwrap();
            assert_eq!(info.colors, colors, "{flags:?}");
            assert_eq!((info.has & both, info.lacks & both), (has, both & !has), "{flags:?}");
        }
    }

    #[test]
    fn what_is_no_entry() {
        let whole = entry(256, 1, &[(311, "\x1b[3m")], &["Smulx", "RGB"]);
        let info = Terminfo::parse(&whole).unwrap();
        assert!(info.has & Ability::UnderlineStyles as u64 != 0);
        for cut in 0..whole.len() {
            let cut = Terminfo::parse(&whole[..cut]);
            assert!(cut.is_none_or(|cut| cut != info), "cut at {cut:?}");
        }
        for (at, octet) in [(0, 0), (1, 0), (3, 0xff), (5, 0xff), (9, 0x7f), (11, 0xff)] {
            let mut broken = whole.clone();
            broken[at] = octet;
            assert_eq!(Terminfo::parse(&broken), None, "{at}");
        }
    }
}
