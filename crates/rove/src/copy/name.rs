//! File names that the other end sends, and patterns for requested ones.

/// The suffix of files that are being written.
pub(crate) const PART_SUFFIX: &[u8] = b".rove-part";

/// The longest name on every file system that matters here, in octets.
const NAME_BYTES_MAX: usize = 255;

/// The name of a directory entry: one component that leads nowhere else.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Name(Vec<u8>);

impl Name {
    /// Accepts a name unless it is empty, `.` or `..`, longer than 255 octets, has a slash or a NUL in it,
    /// or is that of an unfinished copy, in small or capital letters: some file systems take them for one.
    pub fn new(name: &[u8]) -> Option<Name> {
        let leads_away =
            matches!(name, b"" | b"." | b"..") || name.iter().any(|c| b"/\0".contains(c));
        let ending = &name[name.len().saturating_sub(PART_SUFFIX.len())..];
        let is_part = ending.eq_ignore_ascii_case(PART_SUFFIX);
        let fits = name.len() <= NAME_BYTES_MAX && !is_part;
        (!leads_away && fits).then(|| Name(name.to_vec()))
    }

    /// Its octets.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The name under which a file is written until it is complete: `.NAME.rove-part`, or one made of a hash
    /// if that would be too long.
    pub fn part(&self) -> Vec<u8> {
        let mut part = vec![b'.'];
        if self.0.len() + PART_SUFFIX.len() < NAME_BYTES_MAX {
            part.extend_from_slice(&self.0);
        } else {
            part.extend_from_slice(blake3::hash(&self.0).to_hex().as_bytes());
        }
        part.extend_from_slice(PART_SUFFIX);
        part
    }
}

/// Whether a word has a special character of patterns.
pub(crate) fn is_pattern(word: &[u8]) -> bool {
    word.iter().any(|octet| b"*?[".contains(octet))
}

/// Whether a name fits a pattern of one component: `*`, `?`, `[a-z]`, `[!a-z]`, and a backslash before a
/// literal character. Only a dot matches a leading dot, as in the shell.
///
/// Time is at most the product of the two lengths.
pub fn fits(pattern: &[u8], name: &[u8]) -> bool {
    if name.first() == Some(&b'.') && pattern.first() != Some(&b'.') {
        return false;
    }
    let (mut p, mut n) = (0, 0);
    // Where to go on after the last star, and with one more octet taken by it.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match step(&pattern[p..], name[n]) {
            Step::Star => {
                p += 1;
                star = Some((p, n));
            }
            Step::Fits(taken) => {
                p += taken;
                n += 1;
            }
            Step::Differs => {
                let Some((after, from)) = star else {
                    return false;
                };
                p = after;
                n = from + 1;
                star = Some((after, n));
            }
        }
    }
    pattern[p..].iter().all(|&octet| octet == b'*')
}

/// The result of matching the front of a pattern against one octet.
enum Step {
    Star,
    /// This many octets of the pattern match it.
    Fits(usize),
    Differs,
}

fn step(pattern: &[u8], octet: u8) -> Step {
    let fits = |taken: usize, does: bool| if does { Step::Fits(taken) } else { Step::Differs };
    match pattern {
        [] => Step::Differs,
        [b'*', ..] => Step::Star,
        [b'?', ..] => Step::Fits(1),
        [b'\\', literal, ..] => fits(2, *literal == octet),
        [b'[', rest @ ..] => match class(rest, octet) {
            Some((taken, does)) => fits(taken + 1, does),
            // Nothing closes it, so it means itself.
            None => fits(1, octet == b'['),
        },
        [literal, ..] => fits(1, *literal == octet),
    }
}

/// The class that begins after a `[`: its length with the `]`, and whether it contains the octet.
fn class(pattern: &[u8], octet: u8) -> Option<(usize, bool)> {
    let negated = matches!(pattern.first(), Some(b'!' | b'^'));
    let start = usize::from(negated);
    let mut at = start;
    let mut has = false;
    loop {
        match pattern.get(at..)? {
            [] => return None,
            // The first may be a `]` itself.
            [b']', ..] if at > start => return Some((at + 1, has != negated)),
            [low, b'-', high, ..] if *high != b']' => {
                has |= (*low..=*high).contains(&octet);
                at += 3;
            }
            [one, ..] => {
                has |= *one == octet;
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_nowhere_else() {
        for name in ["a", "...", "-rf", "a b", ".bashrc", "\u{fc}", "\\", "a\nb", "~"] {
            assert!(Name::new(name.as_bytes()).is_some(), "{name:?}");
        }
        let (long, longest) = ("x".repeat(256), "x".repeat(255));
        for name in [
            "",
            ".",
            "..",
            "/",
            "a/b",
            "../x",
            "/etc",
            "a\0",
            "\0",
            ".x.rove-part",
            ".x.Rove-PART",
            &long,
        ] {
            assert!(Name::new(name.as_bytes()).is_none(), "{name:?}");
        }
        assert!(Name::new(longest.as_bytes()).is_some());
    }

    #[test]
    fn parts_have_names_that_fit() {
        for length in [1, 243, 244, 245, 255] {
            let name = Name::new("n".repeat(length).as_bytes()).expect("a name");
            assert!(name.part().len() <= NAME_BYTES_MAX, "{length}");
            assert!(Name::new(&name.part()).is_none(), "{length}");
        }
        assert_eq!(Name::new(b"a").expect("a name").part(), b".a.rove-part");
    }

    #[test]
    fn patterns() {
        for (pattern, name, expected) in [
            ("*.log", "a.log", true),
            ("*.log", ".log", false),
            (".*", ".log", true),
            ("*", ".x", false),
            ("*", "x", true),
            ("?", "", false),
            ("??", "ab", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[^a-c]x", "dx", true),
            ("[]a]", "]", true),
            ("[a-]", "-", true),
            ("[a", "[a", true),
            ("[a", "a", false),
            (r"\*", "*", true),
            (r"\*", "x", false),
            ("x", "x", true),
            ("", "", true),
            ("**", "abc", true),
        ] {
            assert_eq!(fits(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
        // A matcher that tried all ways would not come back.
        let (stars, long) = ("*a".repeat(120) + "b", "a".repeat(250));
        assert!(!fits(stars.as_bytes(), long.as_bytes()));
    }
}
