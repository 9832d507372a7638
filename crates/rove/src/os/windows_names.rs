//! Names of files that Windows takes for something else, or for one. It stands beside `os/windows` so that tests on any
//! system judge it.

/// Names of devices, in every directory and with any ending.
const DEVICES: [&str; 6] = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"];

/// Devices of which there are several: a digit follows.
const NUMBERED: [&str; 2] = ["COM", "LPT"];

/// Why a file cannot have a name here; `None` if it can.
///
/// A name in an open directory is none of the Win32 layer's, which knows devices and takes dots away from the end; but
/// any other program would meet those, and could not open the file, or open another.
pub(crate) fn fault(name: &[u8]) -> Option<&'static str> {
    let Ok(name) = str::from_utf8(name) else {
        return Some("its name is no UTF-8, as names on Windows are");
    };
    if name.contains(|c: char| c < ' ' || "\"*:<>?|\\/".contains(c)) {
        return Some("its name has a character that names on Windows do not have");
    }
    if name.ends_with(['.', ' ']) {
        return Some("its name ends in a dot or a space, which Windows takes away");
    }
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_uppercase();
    let is_numbered = NUMBERED.iter().any(|device| {
        let digit = stem.strip_prefix(device).and_then(|rest| rest.chars().next().zip(Some(rest)));
        digit.is_some_and(|(digit, rest)| {
            rest.chars().count() == 1 && (digit.is_ascii_digit() || "¹²³".contains(digit))
        })
    });
    if DEVICES.contains(&stem.as_str()) || is_numbered {
        return Some("its name is that of a device on Windows");
    }
    if is_short(name) {
        return Some("its name may be the short one of another file on Windows");
    }
    None
}

/// Whether a name has the form of those of 8 and 3 characters that the system makes for longer ones: `PROGRA~1.EXT`.
fn is_short(name: &str) -> bool {
    let (stem, ending) = name.split_once('.').unwrap_or((name, ""));
    let Some((before, digits)) = stem.rsplit_once('~') else { return false };
    let fits = stem.chars().count() <= 8 && ending.chars().count() <= 3 && !ending.contains('.');
    fits && !before.is_empty()
        && !digits.is_empty()
        && digits.bytes().all(|octet| octet.is_ascii_digit())
}

/// A name as the system compares it, if it tells some apart that look alike; `None` where names differ by their octets.
pub(crate) fn folded(name: &[u8]) -> Option<Vec<u8>> {
    let upper = |c: char| {
        let mut upper = c.to_uppercase();
        match (upper.next(), upper.next()) {
            (Some(one), None) => one,
            _ => c,
        }
    };
    let name: String = String::from_utf8_lossy(name).chars().map(upper).collect();
    Some(name.into_bytes())
}

/// Whether a path begins with the letter of a disk.
pub(crate) fn has_disk(path: &[u8]) -> bool {
    matches!(path, [letter, b':', ..] if letter.is_ascii_alphabetic())
}

/// Whether a word with a colon is a path: it has a disk's letter, or begins with a backslash as `\\?\C:\x` does. A host
/// does neither; in `DOMAIN\user@host:x` the backslash comes later.
pub(crate) fn is_path(word: &[u8]) -> bool {
    has_disk(word) || word.starts_with(b"\\")
}

/// A path with slashes, and without the prefix that keeps Win32 from reading `\\?\C:\x` and `\\?\UNC\server\share\x` in its
/// own way: the standard library adds it where a path is long. It stays where that way
/// would lead to another file.
pub(crate) fn slashed(path: &str) -> String {
    let whole = path.replace('\\', "/");
    let Some(rest) = whole.strip_prefix("//?/") else { return whole };
    let is_odd = |name: &str| matches!(name, "." | "..") || fault(name.as_bytes()).is_some();
    if rest.split('/').skip(1).any(|name| !name.is_empty() && is_odd(name)) {
        return whole;
    }
    match (rest.as_bytes(), rest.strip_prefix("UNC/")) {
        ([letter, b':', b'/', ..], _) if letter.is_ascii_alphabetic() => rest.to_owned(),
        (_, Some(share)) => format!("//{share}"),
        _ => whole,
    }
}

/// How many octets of a path with slashes are its root, which has no name in it: `/`, `C:/` or `//server/share/`.
pub(crate) fn root_bytes(path: &[u8]) -> usize {
    let behind = |slashes: usize| {
        let all = path.iter().enumerate().filter(|(_, octet)| **octet == b'/');
        all.map(|(at, _)| at + 1).nth(slashes - 1).unwrap_or(path.len())
    };
    match path {
        [b'/', b'/', ..] => behind(4),
        [b'/', ..] => 1,
        [letter, b':', b'/', ..] if letter.is_ascii_alphabetic() => 3,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_have_no_name_in_them() {
        for (path, root) in [
            ("C:/*", "C:/"),
            ("c:*", ""),
            ("a/*", ""),
            ("/a/*", "/"),
            ("//server/share/a/*", "//server/share/"),
            ("//server/share", "//server/share"),
            ("//?/C:/*", "//?/C:/"),
        ] {
            assert_eq!(&path[..root_bytes(path.as_bytes())], root, "{path}");
        }
    }

    #[test]
    fn words_that_are_paths() {
        for (word, expected) in [
            (r"C:\x", true),
            ("c:x", true),
            (r"\\?\C:\x", true),
            (r"\\server\share:x", true),
            ("host:x", false),
            (r"host:d\x", false),
            (r"DOMAIN\user@host:x", false),
            ("1:x", false),
        ] {
            assert_eq!(is_path(word.as_bytes()), expected, "{word}");
        }
    }

    #[test]
    fn paths_with_slashes() {
        for (path, expected) in [
            (r"a\b/c", "a/b/c"),
            (r"C:\x", "C:/x"),
            (r"\\server\share\x", "//server/share/x"),
            (r"\\?\C:\x", "C:/x"),
            (r"\\?\UNC\server\share\x", "//server/share/x"),
            (r"\\?\Volume{1}\x", "//?/Volume{1}/x"),
            (r"\\?\C:\a\x.", "//?/C:/a/x."),
            (r"\\?\C:\a\..\nul", "//?/C:/a/../nul"),
            (r"\\.\C:\x", "//./C:/x"),
        ] {
            assert_eq!(slashed(path), expected, "{path}");
        }
    }

    #[test]
    fn names_that_windows_takes_for_something_else() {
        let good = [
            "a",
            "a.b",
            ".bashrc",
            "CONSOLE",
            "com",
            "COM10",
            "lpt",
            "nul-l",
            "a~b",
            "~",
            "~1",
            "a~1b",
            "averylong~1",
            "a~1.long",
            "a~1.b.c",
            "gr\u{fc}n",
            "a b",
            "...a",
            " a",
            "x.rove-part",
        ];
        for name in good {
            assert_eq!(fault(name.as_bytes()), None, "{name:?}");
        }
        let bad = [
            "a:b",
            "a\\b",
            "..\\a",
            "a\"",
            "a*",
            "a?",
            "a<",
            "a>",
            "a|",
            "a\n",
            "a\0",
            "a/b",
            "a.",
            "a ",
            "...",
            "CON",
            "con",
            "Nul.txt",
            "aux.tar.gz",
            "CON .txt",
            "prn",
            "COM1",
            "com9.x",
            "LPT0",
            "com\u{b9}",
            "conin$",
            "PROGRA~1",
            "a~1",
            "longna~1.ext",
            "A~12.B",
            "file::$DATA",
        ];
        for name in bad {
            assert!(fault(name.as_bytes()).is_some(), "{name:?}");
        }
        assert!(fault(b"a\xff").is_some());
    }

    #[test]
    fn names_that_are_one() {
        let is_one = |one: &str, other: &str| folded(one.as_bytes()) == folded(other.as_bytes());
        for (one, other, expected) in [
            ("Makefile", "makefile", true),
            ("GR\u{dc}N", "gr\u{fc}n", true),
            ("a", "b", false),
            ("stra\u{df}e", "STRASSE", false),
        ] {
            assert_eq!(is_one(one, other), expected, "{one} {other}");
        }
    }
}
