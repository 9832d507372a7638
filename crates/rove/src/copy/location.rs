//! Parses a word of `rove cp`: a local path or `[user@]host:path`.

use std::ffi::{OsStr, OsString};

use crate::os::ffi::{OsStrExt, OsStringExt};
use crate::os::file_names;

/// The place that a word of the command line names.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Location {
    /// A path on this machine.
    Local(OsString),
    /// A path on another.
    Remote {
        /// `[user@]host`, as ssh takes it.
        host: String,
        /// The path there; empty for the home directory.
        path: OsString,
    },
}

/// Why a word names no place.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum BadLocation {
    /// The word is empty.
    Empty,
    /// The part before the colon cannot be a host.
    Host,
    /// The word is one of scp's `scp://host/path`, or another URL.
    Url,
}

impl Location {
    /// Reads a word as scp does: the part before the first colon is a host, unless a slash comes earlier.
    /// `[::1]:path` is a host with colons of its own. On Windows one letter before the colon is a disk, and a word that
    /// begins with a backslash is a path.
    pub(crate) fn parse(word: &OsStr) -> Result<Location, BadLocation> {
        let bytes = word.as_bytes();
        if bytes.is_empty() {
            return Err(BadLocation::Empty);
        }
        if [&b"scp://"[..], b"sftp://", b"ssh://"].iter().any(|kind| bytes.starts_with(kind)) {
            return Err(BadLocation::Url);
        }
        let colon = host_end(bytes).filter(|_| !file_names::is_path(bytes));
        let Some(colon) = colon else {
            return Ok(Location::Local(file_names::path(word)));
        };
        let host = std::str::from_utf8(&bytes[..colon]).map_err(|_| BadLocation::Host)?;
        let host = bare(host);
        let (user, name) = host.rsplit_once('@').unwrap_or(("-", &host));
        let is_odd = |c: char| c.is_control() || c.is_whitespace();
        if name.is_empty() || user.is_empty() || host.starts_with('-') || host.contains(is_odd) {
            return Err(BadLocation::Host);
        }
        let path = OsString::from_vec(bytes[colon + 1..].to_vec());
        Ok(Location::Remote { host, path })
    }
}

/// The position of the colon after a host.
fn host_end(word: &[u8]) -> Option<usize> {
    let host = word.iter().position(|&octet| octet == b'@').map_or(0, |at| at + 1);
    let before_slash = word.iter().position(|&octet| octet == b'/').unwrap_or(word.len());
    if host < before_slash && word.get(host) == Some(&b'[') {
        let close = word.windows(2).position(|two| two == b"]:")?;
        return (close < before_slash).then_some(close + 1);
    }
    word[..before_slash].iter().position(|&octet| octet == b':')
}

/// The host without the brackets around an address.
fn bare(host: &str) -> String {
    let (user, name) = match host.rsplit_once('@') {
        Some((user, name)) => (Some(user), name),
        None => (None, host),
    };
    let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    user.map_or(name.to_owned(), |user| format!("{user}@{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn words() {
        for (word, host, path) in [
            ("a", None, "a"),
            ("./a:b", None, "./a:b"),
            ("/a:b", None, "/a:b"),
            ("d/a:b", None, "d/a:b"),
            ("h:", Some("h"), ""),
            ("h:x", Some("h"), "x"),
            ("h:/x:y", Some("h"), "/x:y"),
            ("u@h:x", Some("u@h"), "x"),
            ("u@h", None, "u@h"),
            ("[::1]:x", Some("::1"), "x"),
            ("u@[fe80::1%eth0]:x", Some("u@fe80::1%eth0"), "x"),
            ("[h]:x", Some("h"), "x"),
            ("[::1]", None, "[::1]"),
            ("[a", None, "[a"),
            ("h:*.log", Some("h"), "*.log"),
            ("h:~/x y", Some("h"), "~/x y"),
            ("-", None, "-"),
        ] {
            let expected = match host {
                Some(host) => Location::Remote { host: host.into(), path: path.into() },
                None => Location::Local(path.into()),
            };
            assert_eq!(Location::parse(OsStr::new(word)), Ok(expected), "{word}");
        }
        assert_eq!(Location::parse(OsStr::new("")), Err(BadLocation::Empty));
        assert_eq!(Location::parse(OsStr::new("scp://h:22/x")), Err(BadLocation::Url));
        for word in [":x", "@h:x", "u@:x", "-oProxyCommand=x:y", "a b:x", "[]:x"] {
            assert_eq!(Location::parse(OsStr::new(word)), Err(BadLocation::Host), "{word}");
        }
    }
}
