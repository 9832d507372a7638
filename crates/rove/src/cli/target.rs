//! How users name a session: `host:name`, `:name` on this machine, `[::1]:name` for addresses.

use crate::sessions::name::Name;

/// A host, and a session there if one is named.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Target {
    /// `[user@]host`; `None` is this machine.
    pub(super) host: Option<String>,
    pub(super) session: Option<Name>,
}

impl Target {
    /// Reads a word of the command line.
    pub(super) fn parse(word: &str) -> Result<Target, &'static str> {
        let (host, session) = Target::split(word)?;
        let session = match session {
            None => None,
            Some(name) => {
                Some(Name::parse(name).ok_or("a session's name has letters, digits, . _ and -")?)
            }
        };
        Ok(Target { host, session })
    }

    /// The host, and what stands for the session's name, if anything does: [`parse`](Self::parse) reads that too.
    pub(super) fn split(word: &str) -> Result<(Option<String>, Option<&str>), &'static str> {
        if word.starts_with('-') {
            return Err("a host cannot begin with a dash");
        }
        let (user, place) = match word.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, word),
        };
        let (host, session) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, "")) => (host, None),
            Some((host, rest)) => {
                (host, Some(rest.strip_prefix(':').ok_or("after ] stands : and a session's name")?))
            }
            // An address of IPv6 has several colons.
            None if place.matches(':').count() > 1 => (place, None),
            None => match place.split_once(':') {
                Some((host, session)) => (host, Some(session)),
                None => (place, None),
            },
        };
        let session = session.filter(|name| !name.is_empty());
        let host = match (user, host) {
            (None, "") if session.is_some() => None,
            (_, "") => return Err("the host is empty"),
            (None, host) if host.starts_with('-') => return Err("a host cannot begin with a dash"),
            (None, host) => Some(host.to_owned()),
            (Some(user), host) => Some(format!("{user}@{host}")),
        };
        Ok((host, session))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_sessions() {
        for (word, host, session) in [
            ("build7", Some("build7"), None),
            ("build7:work", Some("build7"), Some("work")),
            ("me@build7:2", Some("me@build7"), Some("2")),
            ("build7:", Some("build7"), None),
            (":work", None, Some("work")),
            ("::1", Some("::1"), None),
            ("[::1]", Some("::1"), None),
            ("[::1]:work", Some("::1"), Some("work")),
            ("me@[::1]:work", Some("me@::1"), Some("work")),
        ] {
            let session = session.and_then(Name::parse);
            let expected = Target { host: host.map(str::to_owned), session };
            assert_eq!(Target::parse(word), Ok(expected), "{word}");
        }
        for bad in ["", ":", "-x", "me@:work", "h:a/b", "[::1]work", "h:a b", "[-x]:work"] {
            assert!(Target::parse(bad).is_err(), "{bad}");
        }
    }
}
