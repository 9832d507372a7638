//! Computes the columns of text and the borders between grapheme clusters.
//!
//! One generated table gives both, so the two ends of a session cannot disagree, even with different locales.
//! Clusters follow UAX #29.

use crate::flag;

/// The version of Unicode behind the widths.
pub const WIDTHS_VERSION: (u8, u8, u8) = (18, 0, 0);
/// The version of Unicode behind the grapheme-break classes.
pub const CLASSES_VERSION: (u64, u64, u64) = (17, 0, 0);

/// Written by `cargo run -p rove-term --example width_table`.
const TABLE: &[u8] = include_bytes!("width/table.bin");
/// Blocks of 256 code points.
const BLOCKS: usize = 0x11_0000 >> 8;
/// The number of each block's entries; equal blocks share theirs.
static STAGES: [u8; BLOCKS] = *TABLE.first_chunk().expect("the table begins with all blocks");
/// Width (2 bits), class (4 bits), grows with U+FE0F (1 bit).
static ENTRIES: [u8; TABLE.len() - BLOCKS] =
    *TABLE.last_chunk().expect("the entries are the rest of the table");

/// Code points of one cell (threats row 3). More are dropped.
pub const CLUSTER_CHARS_MAX: usize = 16;
/// UTF-8 bytes of one cell (threats row 3). More are dropped.
pub const CLUSTER_BYTES_MAX: usize = 64;

/// The emoji presentation selector: makes a narrow pictograph wide.
const EMOJI_PRESENTATION: char = '\u{FE0F}';
const SOFT_HYPHEN: char = '\u{AD}';
/// The base of marks that have none of their own (mosh-protocol.md §5.2).
pub(crate) const NO_BREAK_SPACE: &str = "\u{a0}";

/// Grapheme-cluster-break classes (UAX #29 §3.1), with Extend split by Indic_Conjunct_Break.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Class {
    /// Nothing special.
    Other,
    /// Controls, and format characters that stand alone.
    Control,
    /// Extend, of no part in Indic conjuncts.
    Extend,
    /// Extend within an Indic conjunct.
    ExtendIndic,
    /// An Indic linker (virama).
    Linker,
    /// Zero width joiner.
    Joiner,
    /// Regional indicator: two make a flag.
    Regional,
    /// Joins what follows.
    Prepend,
    /// Joins what precedes, with a width of its own.
    SpacingMark,
    /// Hangul L.
    Leading,
    /// Hangul V.
    Vowel,
    /// Hangul T.
    Trailing,
    /// Hangul LV.
    LeadingVowel,
    /// Hangul LVT.
    LeadingVowelTrailing,
    /// Extended pictographic.
    Pictographic,
    /// An Indic consonant.
    Consonant,
}

const CLASSES: [Class; 16] = [
    Class::Other,
    Class::Control,
    Class::Extend,
    Class::ExtendIndic,
    Class::Linker,
    Class::Joiner,
    Class::Regional,
    Class::Prepend,
    Class::SpacingMark,
    Class::Leading,
    Class::Vowel,
    Class::Trailing,
    Class::LeadingVowel,
    Class::LeadingVowelTrailing,
    Class::Pictographic,
    Class::Consonant,
];

/// The entries of U+0000 to U+07FF in one stage: alphabets come in long runs.
static LOW: [u8; 0x800] = low();

const fn low() -> [u8; 0x800] {
    let mut low = [0; 0x800];
    let mut code = 0;
    while code < low.len() {
        let block = STAGES[code >> 8] as usize;
        low[code] = ENTRIES[block << 8 | code & 0xff];
        code += 1;
    }
    low
}

/// A character's entry of the table.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Properties(u8);

impl Properties {
    /// The entry of a code point; anything above U+10FFFF reads as a plain narrow character.
    #[inline]
    pub fn of(c: char) -> Self {
        let code = c as usize;
        let block = STAGES.get(code >> 8).copied().unwrap_or(1);
        Self(ENTRIES.get(usize::from(block) << 8 | code & 0xff).copied().unwrap_or(1))
    }

    /// A character of an alphabet below U+0800 that is plain; of others this does not tell.
    #[inline]
    pub(crate) fn is_plain_letter(c: char) -> bool {
        LOW.get(c as usize).is_some_and(|entry| Self(*entry).is_plain())
    }

    /// 0, 1 or 2 columns when standing alone.
    #[inline]
    pub fn width(self) -> u8 {
        self.0 & 3
    }

    /// The grapheme-break class.
    #[inline]
    pub fn class(self) -> Class {
        CLASSES[usize::from(self.0 >> 2 & 15)]
    }

    /// Narrow and of class Other: what most text is made of.
    #[inline]
    pub(crate) fn is_plain(self) -> bool {
        self.0 == 1
    }

    /// Wide and of class Other: ideographs.
    #[inline]
    pub(crate) fn is_plain_wide(self) -> bool {
        self.0 == 2
    }

    /// The properties that writing the character needs.
    #[inline]
    pub(crate) fn traits(self) -> Traits {
        TRAITS[usize::from(self.0) % TRAITS.len()]
    }

    fn grows_with_presentation(self) -> bool {
        self.0 & 0x40 != 0
    }
}

/// The parts of an entry that writing a character needs, found in one lookup.
#[derive(Clone, Copy, Debug)]
#[repr(align(8))]
pub(crate) struct Traits {
    /// The bit of its class, or of Control if it has no width of its own: it needs the slow path too.
    class: u16,
    /// The classes that may continue the cell that it ends.
    pub joiners: Joiners,
    /// Takes two columns when standing alone.
    pub wide: bool,
}

impl Traits {
    /// May continue a cell that these may continue.
    #[inline]
    pub(crate) fn continues(self, joiners: Joiners) -> bool {
        self.class & joiners.0 != 0
    }
}

/// The classes that may continue a cell, and Control, which needs the slow path too: bit n is class n. A class
/// without its bit never continues the cell; for one with it, [`joins`] decides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Joiners(u16);

impl Joiners {
    /// There is no cell to continue.
    pub(crate) const NONE: Self = Self(1 << Class::Control as u16);
    /// The cell ends in a letter of no special class.
    pub(crate) const OTHER: Self = Self::after(Class::Other);

    const fn after(last: Class) -> Self {
        const EXTENDERS: u16 = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 8;
        let others = match last {
            Class::Regional => 1 << 6,
            Class::Leading => 1 << 9 | 1 << 10 | 1 << 12 | 1 << 13,
            Class::LeadingVowel | Class::Vowel => 1 << 10 | 1 << 11,
            Class::LeadingVowelTrailing | Class::Trailing => 1 << 11,
            // Within a conjunct or a joined emoji, what stands further back decides: look closely.
            Class::ExtendIndic | Class::Linker => 1 << 15,
            Class::Joiner => 1 << 14 | 1 << 15,
            _ => 0,
        };
        Self(EXTENDERS | others)
    }
}

/// By entry.
static TRAITS: [Traits; 128] = traits();

const fn traits() -> [Traits; 128] {
    let mut traits = [Traits { class: 0, joiners: Joiners::NONE, wide: false }; 128];
    let mut entry = 0;
    while entry < traits.len() {
        let (width, class) = (entry & 3, entry >> 2 & 15);
        traits[entry] = Traits {
            class: 1 << if width == 0 { Class::Control as usize } else { class },
            joiners: Joiners::after(CLASSES[class]),
            wide: width == 2,
        };
        entry += 1;
    }
    traits
}

/// The columns a character takes when standing alone: 0, 1 or 2. Controls take none.
pub fn of(c: char) -> u8 {
    // unicode-width calls the soft hyphen zero; terminals and wcwidth show it (xterm, glibc).
    if c == SOFT_HYPHEN { 1 } else { Properties::of(c).width() }
}

/// The columns of one grapheme cluster, 0 to 2: the sum of its characters', at most 2, and 2 where the
/// emoji presentation is asked for. Flags and joined emoji come out as 2.
pub fn cluster(text: &str) -> u8 {
    let mut chars = text.chars();
    let Some(first) = chars.next() else { return 0 };
    let mut width = of(first);
    for c in chars {
        if c == EMOJI_PRESENTATION && Properties::of(first).grows_with_presentation() {
            return 2;
        }
        width += of(c);
        if width >= 2 {
            return 2;
        }
    }
    width
}

/// Whether `next` continues the cluster `text` (UAX #29, GB3 to GB999). `text` must begin where a cluster
/// begins; an empty one is never continued.
pub fn joins(text: &str, next: char) -> bool {
    let Some(last) = text.chars().next_back() else { return false };
    let after = Properties::of(next).class();
    let before = Properties::of(last).class();
    if before == Class::Control || after == Class::Control {
        return false;
    }
    match after {
        Class::Extend | Class::ExtendIndic | Class::Linker | Class::Joiner | Class::SpacingMark => {
            return true;
        }
        Class::Regional if before == Class::Regional => return ends_in_half_flag(text),
        Class::Pictographic if before == Class::Joiner => return ends_in_joined_emoji(text),
        Class::Consonant if ends_in_conjunct(text) => return true,
        _ => {}
    }
    match before {
        Class::Prepend => true,
        Class::Leading => matches!(
            after,
            Class::Leading | Class::Vowel | Class::LeadingVowel | Class::LeadingVowelTrailing
        ),
        Class::LeadingVowel | Class::Vowel => matches!(after, Class::Vowel | Class::Trailing),
        Class::LeadingVowelTrailing | Class::Trailing => after == Class::Trailing,
        _ => false,
    }
}

/// Whether `c`, written right after a cell's `text`, continues its cluster.
///
/// A prefix keeps a cell of its own (no GB9b): a character's cell must not depend on the one before it, since most
/// text is written without a look at that.
pub(crate) fn continues(text: &str, c: char) -> bool {
    if flag::is_tag(c) {
        return flag::continues(text, c);
    }
    let last = text.chars().next_back().map(|last| Properties::of(last).class());
    let extends = matches!(
        Properties::of(c).class(),
        Class::Extend | Class::ExtendIndic | Class::Linker | Class::Joiner | Class::SpacingMark
    );
    (extends || last != Some(Class::Prepend)) && joins(text, c)
}

/// Goes into the cell before it even where it continues no cluster: it has no width of its own, and is
/// no selector, joiner or tag, which are nothing by themselves.
pub(crate) fn is_loose_mark(c: char) -> bool {
    let nothing_alone = matches!(c, '\u{fe0e}' | '\u{fe0f}' | '\u{200d}') || flag::is_tag(c);
    of(c) == 0 && !is_dropped(c) && !nothing_alone
}

/// How many octets of `text`, written after a motion, the full emulator puts into one cell. Marks without
/// a base are written on a no-break space; of them those count that leave it narrow.
pub(crate) fn sticking(text: &str) -> usize {
    let alone = text.chars().next().is_none_or(|c| of(c) == 0);
    let chars_max = CLUSTER_CHARS_MAX - usize::from(alone);
    for (count, (at, c)) in text.char_indices().enumerate() {
        let before = if at > 0 { &text[..at] } else { NO_BREAK_SPACE };
        let sticks = match alone {
            true => of(c) == 0 && !is_dropped(c) && (continues(before, c) || is_loose_mark(c)),
            false => at == 0 || continues(before, c) || is_loose_mark(c),
        };
        if count == chars_max || !sticks {
            return at;
        }
    }
    text.len()
}

/// GB12, GB13: an odd number of regional indicators at the end.
fn ends_in_half_flag(text: &str) -> bool {
    let regional = |c: &char| Properties::of(*c).class() == Class::Regional;
    text.chars().rev().take_while(regional).count() % 2 == 1
}

/// GB11: a pictograph, extenders, and the joiner last.
fn ends_in_joined_emoji(text: &str) -> bool {
    let mut classes = text.chars().rev().skip(1).map(|c| Properties::of(c).class());
    let extends =
        |class: &Class| matches!(class, Class::Extend | Class::ExtendIndic | Class::Linker);
    classes.find(|class| !extends(class)) == Some(Class::Pictographic)
}

/// GB9c: a consonant, then extenders and joiners with at least one linker among them.
fn ends_in_conjunct(text: &str) -> bool {
    let mut linked = false;
    for c in text.chars().rev() {
        match Properties::of(c).class() {
            Class::Linker => linked = true,
            Class::ExtendIndic | Class::Joiner => {}
            class => return linked && class == Class::Consonant,
        }
    }
    false
}

/// Widths that stock mosh gets from its C library (glibc 2.36, C.UTF-8) and that differ from the table: first and
/// last code point, columns. Code points that library does not know are left as the table has them, since later
/// releases of it do.
#[rustfmt::skip]
const STOCK_WIDTHS: [(u32, u32, u8); 64] = [
    (0x0605, 0x0605, 1), (0x070f, 0x070f, 1), (0x0890, 0x0891, 1), (0x08e2, 0x08e2, 1),
    (0x09be, 0x09be, 1), (0x09d7, 0x09d7, 1), (0x0b3e, 0x0b3e, 1), (0x0b57, 0x0b57, 1),
    (0x0bbe, 0x0bbe, 1), (0x0bd7, 0x0bd7, 1), (0x0cc0, 0x0cc0, 1), (0x0cc2, 0x0cc2, 1),
    (0x0cc7, 0x0cc8, 1), (0x0cca, 0x0ccb, 1), (0x0cd5, 0x0cd6, 1), (0x0d3e, 0x0d3e, 1),
    (0x0d4e, 0x0d4e, 1), (0x0d57, 0x0d57, 1), (0x0dcf, 0x0dcf, 1), (0x0ddf, 0x0ddf, 1),
    (0x1715, 0x1715, 1), (0x1734, 0x1734, 1), (0x17a4, 0x17a4, 1), (0x17d8, 0x17d8, 1),
    (0x1b35, 0x1b35, 1), (0x1b3b, 0x1b3b, 1), (0x1b3d, 0x1b3d, 1), (0x1b43, 0x1b44, 1),
    (0x1baa, 0x1baa, 1), (0x1bf2, 0x1bf3, 1), (0x2630, 0x2637, 1), (0x268a, 0x268f, 1),
    (0x2d7f, 0x2d7f, 0), (0x302e, 0x302f, 2), (0x3164, 0x3164, 2), (0x3248, 0x324f, 2),
    (0xa8fa, 0xa8fa, 1), (0xa953, 0xa953, 1), (0xa9c0, 0xa9c0, 1), (0xffa0, 0xffa0, 1),
    (0xfff9, 0xfffb, 0), (0x111c0, 0x111c0, 1), (0x111c2, 0x111c3, 1), (0x11235, 0x11235, 1),
    (0x1133e, 0x1133e, 1), (0x1134d, 0x1134d, 1), (0x11357, 0x11357, 1), (0x114b0, 0x114b0, 1),
    (0x114bd, 0x114bd, 1), (0x115af, 0x115af, 1), (0x116b6, 0x116b6, 1), (0x1171e, 0x1171e, 0),
    (0x11930, 0x11930, 1), (0x1193d, 0x1193d, 1), (0x1193f, 0x1193f, 1), (0x11941, 0x11941, 1),
    (0x11a84, 0x11a89, 1), (0x11d46, 0x11d46, 1), (0x13430, 0x13438, 0), (0x16ff0, 0x16ff1, 2),
    (0x1d165, 0x1d166, 1), (0x1d16d, 0x1d172, 1), (0x1d300, 0x1d356, 1), (0x1d360, 0x1d376, 1),
];

/// The full emulator drops the character: controls and format characters that stand alone, but not
/// the soft hyphen, which terminals show.
pub(crate) fn is_dropped(c: char) -> bool {
    c != SOFT_HYPHEN && Properties::of(c).class() == Class::Control
}

/// The columns stock mosh gives a character; `None` where it drops it.
pub fn stock(c: char) -> Option<u8> {
    let code = c as u32;
    if (0xa0..=0xff).contains(&code) {
        return Some(1);
    }
    let noncharacter = code & 0xfffe == 0xfffe || (0xfdd0..=0xfdef).contains(&code);
    if noncharacter || c.is_control() || matches!(code, 0x2028 | 0x2029) {
        return None;
    }
    let after = STOCK_WIDTHS.partition_point(|(_, last, _)| *last < code);
    match STOCK_WIDTHS.get(after) {
        Some((first, _, width)) if *first <= code => Some(*width),
        _ => Some(of(c)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters() {
        for (text, width) in [
            ("a", 1),
            ("\u{e9}", 1),
            ("e\u{301}", 1),
            ("\u{4e16}", 2),
            ("\u{ad}", 1),
            ("\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}", 2),
            ("\u{1f1e9}\u{1f1ea}", 2),
            ("\u{1f1e9}", 1),
            ("\u{2764}", 1),
            ("\u{2764}\u{fe0f}", 2),
            ("#\u{fe0f}\u{20e3}", 2),
            ("a\u{fe0f}", 1),
            ("\u{1f44d}\u{1f3fd}", 2),
            ("\u{1112}\u{1161}\u{11ab}", 2),
            ("\u{e01}\u{e33}", 2),
            ("", 0),
        ] {
            assert_eq!(cluster(text), width, "{text:?}");
        }
    }

    #[test]
    fn stock_widths() {
        for (c, width) in [
            ('a', Some(1)),
            ('\u{ad}', Some(1)),
            ('\u{4e16}', Some(2)),
            ('\u{301}', Some(0)),
            ('\u{10ffff}', None),
            ('\u{e0b0}', Some(1)),
            ('\u{268b}', Some(1)),
            ('\u{2690}', Some(1)),
        ] {
            assert_eq!(stock(c), width, "{c:?}");
        }
        assert!(STOCK_WIDTHS.is_sorted_by_key(|(first, ..)| *first));
    }
}
