//! Makes text from another host safe to show: errors, reasons, names and the output of login scripts.

/// One line of at most this many characters. A question mark replaces those that could steer the terminal or
/// reorder the text around them: control characters, bidirectional controls, line separators and tags.
pub(crate) fn printable(text: &[u8], chars_max: usize) -> String {
    let text = String::from_utf8_lossy(text);
    text.chars().map(|c| if is_hidden(c) { '?' } else { c }).take(chars_max).collect()
}

fn is_hidden(c: char) -> bool {
    let is_mark = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}');
    let reorders = is_mark || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || reorders || matches!(c, '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_the_terminal() {
        for (text, shown) in [
            (&b"a b"[..], "a b"),
            (b"a\x1b[2Jb\r\n\x9b\xff", "a?[2Jb??\u{fffd}\u{fffd}"),
            ("\u{9b}2J\u{85}\u{7f}".as_bytes(), "?2J??"),
            ("\u{202e}cod\u{2069}\u{200f}\u{61c}\u{2028}.".as_bytes(), "?cod????."),
            ("\u{e0041}\u{e007f}".as_bytes(), "??"),
            ("äöü漢".as_bytes(), "äöü漢"),
        ] {
            assert_eq!(printable(text, 100), shown, "{text:?}");
        }
        assert_eq!(printable(&[b'x'; 5000], 1000).len(), 1000);
    }
}
