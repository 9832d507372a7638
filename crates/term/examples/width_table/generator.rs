//! Derives the width table from the public behaviour of unicode-width and unicode-segmentation: widths
//! are asked for, grapheme-break classes are found by probing which neighbours a character joins.

use std::collections::HashMap;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

const BLOCK: usize = 256;
const EMOJI: char = '\u{1F600}';
const ZWJ: char = '\u{200D}';
const MARK: char = '\u{301}';
const REGIONAL: char = '\u{1F1E6}';
const CONSONANT: char = '\u{915}';
const VIRAMA: char = '\u{94D}';
const LEADING: char = '\u{1100}';
const VOWEL: char = '\u{1161}';
const TRAILING: char = '\u{11A8}';
const PRESENTATION: char = '\u{FE0F}';

/// The last character continues the cluster of those before it.
fn joins(chars: &[char]) -> bool {
    let text: String = chars.iter().collect();
    let last = chars.last().map_or(0, |c| c.len_utf8());
    text.graphemes(true).next_back().is_some_and(|cluster| cluster.len() > last)
}

/// The class of a character, as `width::Class` numbers them.
fn class(c: char) -> u8 {
    if joins(&['a', c]) {
        return extending_class(c);
    }
    if !joins(&[c, MARK]) {
        return 1; // Control
    }
    if joins(&[c, 'a']) {
        return 7; // Prepend
    }
    if joins(&[REGIONAL, c]) {
        return 6; // Regional
    }
    if joins(&[c, ZWJ, EMOJI]) {
        return 14; // Pictographic
    }
    if joins(&[CONSONANT, VIRAMA, c]) {
        return 15; // Consonant
    }
    match (joins(&[LEADING, c]), joins(&[c, VOWEL]), joins(&[c, TRAILING])) {
        (true, true, false) => 9,                              // Leading
        (true, true, true) if joins(&['\u{AC00}', c]) => 10,   // Vowel
        (true, true, true) => 12,                              // LeadingVowel
        (true, false, true) => 13,                             // LeadingVowelTrailing
        (false, false, true) if joins(&['\u{AC01}', c]) => 11, // Trailing
        _ => 0,
    }
}

fn extending_class(c: char) -> u8 {
    if joins(&[EMOJI, c, EMOJI]) {
        return 5; // Zwj
    }
    if !joins(&[EMOJI, c, ZWJ, EMOJI]) {
        return 8; // SpacingMark
    }
    if joins(&[CONSONANT, c, CONSONANT]) {
        return 4; // Linker
    }
    if joins(&[CONSONANT, c, VIRAMA, CONSONANT]) { 3 } else { 2 } // ExtendIndic, Extend
}

fn entry(c: char) -> u8 {
    let width = c.width().unwrap_or(0).min(2) as u8;
    let text: String = [c, PRESENTATION].iter().collect();
    let grows = u8::from(width == 1 && text.width() == 2);
    width | class(c) << 2 | grows << 6
}

/// The table's octets: block numbers for every 256 code points, then the blocks' entries.
pub fn table() -> Vec<u8> {
    let mut blocks: Vec<Vec<u8>> = Vec::new();
    let mut known: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut stages = Vec::new();
    for start in (0..0x11_0000).step_by(BLOCK) {
        let block: Vec<u8> = (start..start + BLOCK as u32)
            .map(|code| char::from_u32(code).map_or(1, entry))
            .collect();
        let number = *known.entry(block.clone()).or_insert_with(|| {
            blocks.push(block);
            blocks.len() - 1
        });
        stages.push(number as u8);
        assert!(number < 256, "block numbers fit a byte");
    }
    [stages, blocks.concat()].concat()
}
