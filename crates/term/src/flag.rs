//! Recognises tag characters (U+E0000 to U+E007F) and their one use: the flags of regions, which are a black flag, a
//! few tags and a cancel tag (UTS #51 §2.4). Elsewhere they could hide text, since no terminal shows them.

use alloc::string::String;
use core::ops::RangeInclusive;

const BLACK_FLAG: char = '\u{1f3f4}';
const CANCEL_TAG: char = '\u{e007f}';
/// Letters and digits of a flag: a region (two letters or three digits) and its subdivision (one to four).
const TAGS: RangeInclusive<usize> = 3..=7;
/// Octets of each in UTF-8.
const TAG_BYTES: usize = 4;

/// A tag character.
pub(crate) fn is_tag(c: char) -> bool {
    matches!(c, '\u{e0000}'..='\u{e007f}')
}

/// Whether `tag` makes a longer beginning of a flag out of `text`, or a flag.
pub(crate) fn continues(text: &str, tag: char) -> bool {
    let Some(tags) = text.strip_prefix(BLACK_FLAG) else { return false };
    let count = tags.len() / TAG_BYTES;
    tags.chars().all(is_letter)
        && match tag {
            CANCEL_TAG => TAGS.contains(&count),
            tag => is_letter(tag) && count < *TAGS.end(),
        }
}

/// The octets of the flag that `text` begins with; 0 if there is none.
fn len(text: &str) -> usize {
    let Some(tags) = text.strip_prefix(BLACK_FLAG) else { return 0 };
    let count = tags.chars().take(TAGS.end() + 1).take_while(|tag| is_letter(*tag)).count();
    let (letters, rest) = tags.split_at(count * TAG_BYTES);
    match TAGS.contains(&count) && rest.starts_with(CANCEL_TAG) {
        true => BLACK_FLAG.len_utf8() + letters.len() + TAG_BYTES,
        false => 0,
    }
}

/// The beginning of a cell's text, up to the first tag that belongs to no flag.
pub(crate) fn before_strays(text: &str) -> &str {
    let flag = len(text);
    let end = text[flag..].find(is_tag).map_or(text.len(), |at| flag + at);
    &text[..end]
}

/// The text without the tags that belong to no flag.
pub(crate) fn without_strays(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let flag = len(rest);
        let (piece, after) = rest.split_at(flag.max(c.len_utf8()));
        if flag > 0 || !is_tag(c) {
            kept.push_str(piece);
        }
        rest = after;
    }
    kept
}

fn is_letter(tag: char) -> bool {
    matches!(tag, '\u{e0030}'..='\u{e0039}' | '\u{e0061}'..='\u{e007a}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tags for the ASCII between braces; `}` is the cancel tag.
    fn tagged(text: &str) -> String {
        let mut inside = false;
        let mut out = String::new();
        for c in text.chars() {
            match c {
                '{' => inside = true,
                '}' => {
                    inside = false;
                    out.push(CANCEL_TAG);
                }
                '/' => inside = false,
                'F' if !inside => out.push(BLACK_FLAG),
                c if inside => out.extend(char::from_u32(0xe0000 + c as u32)),
                c => out.push(c),
            }
        }
        out
    }

    #[test]
    fn tags_stay_in_flags_alone() {
        for (text, kept) in [
            ("plain", "plain"),
            ("F{gbeng}", "F{gbeng}"),
            ("aF{gbsct}bF{840x}", "aF{gbsct}bF{840x}"),
            ("F", "F"),
            ("F{gbeng/", "F"),
            ("F{gb}", "F"),
            ("F{abcdefg}", "F{abcdefg}"),
            ("F{abcdefgh}", "F"),
            ("F{GBENG}", "F"),
            ("F{gb eng}", "F"),
            ("F{gbeng}{x/", "F{gbeng}"),
            ("{gbeng}", ""),
            ("a{rm -rf/b", "ab"),
            ("Fa{gbeng}", "Fa"),
            ("FF{gbeng}", "FF{gbeng}"),
            ("F{g F/F{gbeng}", "FF{gbeng}"),
        ] {
            let (text, kept) = (tagged(text), tagged(kept));
            assert_eq!(without_strays(&text), kept, "{text:?}");
            assert_eq!(without_strays(&kept), kept, "{text:?} a second time");
        }
    }

    #[test]
    fn a_cell_grows_into_a_flag_and_no_further() {
        for (text, kept, shown) in [
            ("F{gbeng}", "F{gbeng}", "F{gbeng}"),
            ("F{gbeng/", "F{gbeng/", "F"),
            ("F{gb}", "F{gb/", "F"),
            ("F{abcdefghij}", "F{abcdefg}", "F{abcdefg}"),
            ("a{x/", "a", "a"),
            ("F\u{301}{gbeng}", "F\u{301}", "F\u{301}"),
        ] {
            let mut cell = String::new();
            for c in tagged(text).chars() {
                if !is_tag(c) || continues(&cell, c) {
                    cell.push(c);
                }
            }
            assert_eq!(cell, tagged(kept), "{text}");
            assert_eq!(before_strays(&cell), tagged(shown), "{text}");
        }
    }
}
