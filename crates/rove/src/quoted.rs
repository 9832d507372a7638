//! Writes words as a shell reads them, for lines that the user may run.

use std::ffi::OsStr;

use crate::os::ffi::OsStrExt;

/// A word of a hint has at most this many characters: it may come from a script.
const WORD_CHARS_MAX: usize = 1000;

/// The words as one line, quoted where a shell would change them.
pub(crate) fn quoted<W: AsRef<OsStr>>(words: impl IntoIterator<Item = W>) -> String {
    let words = words.into_iter().map(|word| quoted_word(word.as_ref()));
    words.collect::<Vec<_>>().join(" ")
}

fn quoted_word(word: &OsStr) -> String {
    let shown = crate::printable::printable(word.as_bytes(), WORD_CHARS_MAX);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:=,@%+-~".contains(c);
    match !shown.is_empty() && !shown.starts_with('~') && shown.chars().all(is_plain) {
        true => shown,
        false => format!("'{}'", shown.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_as_a_shell_reads_them() {
        for (words, line) in [
            (&["rove", "-p", "2222", "u@h"][..], "rove -p 2222 u@h"),
            (&["a b", ""], "'a b' ''"),
            (&["it's", "$HOME", "~"], r"'it'\''s' '$HOME' '~'"),
            (&["a\x1bb"], "'a?b'"),
        ] {
            assert_eq!(quoted(words), line);
        }
    }
}
