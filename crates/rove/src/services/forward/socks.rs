//! SOCKS as a server speaks it (RFC 1928; also versions 4 and 4a): reads a connection's target, and
//! writes the result. Only CONNECT, without authentication. Pure octets.

use crate::services::forward::spec::{Endpoint, HOST_BYTES_MAX};

/// Longest conversation before the answer: a greeting with every method, and a request with the longest
/// name. Longer ones are not SOCKS.
pub const OCTETS_MAX: usize = 1024;

/// Which SOCKS a client speaks, and so how it is answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Version {
    /// 4, or 4a with a name.
    Four,
    /// 5.
    Five,
}

/// The step that the octets so far ask for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Step {
    /// More octets.
    More,
    /// Send this to the client, which then continues.
    Say(&'static [u8]),
    /// A connection. What follows the request is the connection's.
    Connect {
        /// Where to.
        to: Endpoint,
        /// How to answer.
        version: Version,
    },
    /// Send this, if anything, and close the connection: it asks for something that we lack.
    Refuse(&'static [u8]),
}

/// The result of a connection attempt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// It is there.
    Connected,
    /// It is not.
    Failed,
}

impl Outcome {
    /// What became of an attempt.
    pub fn of<T, E>(attempt: &Result<T, E>) -> Outcome {
        if attempt.is_ok() { Outcome::Connected } else { Outcome::Failed }
    }
}

/// Reads one conversation.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    greeted: bool,
}

/// "No authentication" in answer to a greeting (RFC 1928 §3).
const NO_AUTHENTICATION: &[u8] = &[5, 0];
/// None of the methods will do.
const NO_METHOD: &[u8] = &[5, 0xff];
/// A command other than CONNECT (§6), from the unspecified address.
const NO_SUCH_COMMAND: &[u8] = &[5, 7, 0, 1, 0, 0, 0, 0, 0, 0];
/// A kind of address that nobody knows.
const NO_SUCH_ADDRESS: &[u8] = &[5, 8, 0, 1, 0, 0, 0, 0, 0, 0];
/// Version 4's refusal.
const REFUSED_4: &[u8] = &[0, 91, 0, 0, 0, 0, 0, 0];

const CONNECT: u8 = 1;

impl Reader {
    /// Looks at the octets that have come and not been used, and says how many are used now, and
    /// what to do. Asking again with more octets after [`Step::More`] is how to go on.
    pub fn next(&mut self, octets: &[u8]) -> (usize, Step) {
        let read = match (self.greeted, &octets[..octets.len().min(OCTETS_MAX)]) {
            (_, []) => Some((0, Step::More)),
            (false, [4, rest @ ..]) => request_4(rest).map(|(used, step)| (1 + used, step)),
            (false, [5, rest @ ..]) => self.greeting(rest),
            (true, [5, rest @ ..]) => request_5(rest).map(|(used, step)| (1 + used, step)),
            _ => Some((0, Step::Refuse(&[]))),
        };
        match read {
            Some(read) => read,
            None if octets.len() > OCTETS_MAX => (0, Step::Refuse(&[])),
            None => (0, Step::More),
        }
    }

    /// RFC 1928 §3; `None`: more must come.
    fn greeting(&mut self, octets: &[u8]) -> Option<(usize, Step)> {
        let (count, rest) = octets.split_first()?;
        let methods = rest.get(..usize::from(*count))?;
        let used = 2 + methods.len();
        if !methods.contains(&0) {
            return Some((used, Step::Refuse(NO_METHOD)));
        }
        self.greeted = true;
        Some((used, Step::Say(NO_AUTHENTICATION)))
    }
}

impl Version {
    /// How the client is told the outcome (RFC 1928 §6).
    pub fn answer(self, outcome: Outcome) -> &'static [u8] {
        match (self, outcome) {
            (Version::Four, Outcome::Connected) => &[0, 90, 0, 0, 0, 0, 0, 0],
            (Version::Four, Outcome::Failed) => REFUSED_4,
            (Version::Five, Outcome::Connected) => &[5, 0, 0, 1, 0, 0, 0, 0, 0, 0],
            (Version::Five, Outcome::Failed) => &[5, 4, 0, 1, 0, 0, 0, 0, 0, 0],
        }
    }
}

/// Version 4 without its first octet: command, port, address, a user's name, and for 4a a host's.
fn request_4(octets: &[u8]) -> Option<(usize, Step)> {
    let (head, rest) = octets.split_first_chunk::<7>()?;
    let [command, port_high, port_low, address @ ..] = *head;
    let user = until_nul(rest)?;
    let mut used = head.len() + user.len() + 1;
    // 0.0.0.x says that a name follows.
    let host = match address {
        [0, 0, 0, 1..=255] => {
            let name = until_nul(&rest[user.len() + 1..])?;
            used += name.len() + 1;
            name_of(name)
        }
        _ => Some(std::net::Ipv4Addr::from(address).to_string()),
    };
    let port = u16::from_be_bytes([port_high, port_low]);
    Some((used, connect(command, host, port, Version::Four, REFUSED_4)))
}

/// A request of RFC 1928 §4 without its first octet.
fn request_5(octets: &[u8]) -> Option<(usize, Step)> {
    let (head, rest) = octets.split_first_chunk::<3>()?;
    let [command, _reserved, kind] = *head;
    let (host, length) = match kind {
        1 => {
            let address = rest.first_chunk::<4>()?;
            (Some(std::net::Ipv4Addr::from(*address).to_string()), 4)
        }
        4 => {
            let address = rest.first_chunk::<16>()?;
            (Some(std::net::Ipv6Addr::from(*address).to_string()), 16)
        }
        3 => {
            let (length, rest) = rest.split_first()?;
            let length = usize::from(*length);
            (name_of(rest.get(..length)?), 1 + length)
        }
        _ => return Some((head.len(), Step::Refuse(NO_SUCH_ADDRESS))),
    };
    let port = u16::from_be_bytes(*rest.get(length..)?.first_chunk::<2>()?);
    let used = head.len() + length + 2;
    Some((used, connect(command, host, port, Version::Five, NO_SUCH_COMMAND)))
}

fn connect(
    command: u8,
    host: Option<String>,
    port: u16,
    version: Version,
    refusal: &'static [u8],
) -> Step {
    match host {
        Some(host) if command == CONNECT && port != 0 => {
            Step::Connect { to: Endpoint { host, port }, version }
        }
        _ => Step::Refuse(refusal),
    }
}

fn until_nul(octets: &[u8]) -> Option<&[u8]> {
    let end = octets.iter().position(|&octet| octet == 0)?;
    Some(&octets[..end])
}

/// A host's name, if it is one that could be looked up.
fn name_of(octets: &[u8]) -> Option<String> {
    let name = str::from_utf8(octets).ok()?;
    let valid = !name.is_empty()
        && name.len() <= HOST_BYTES_MAX
        && !name.chars().any(|c| c.is_control() || c.is_whitespace());
    valid.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What all octets of a client lead to, and which are left over.
    fn outcome(octets: &[u8], greeted: bool) -> (String, usize) {
        let mut reader = Reader { greeted };
        let (used, step) = reader.next(octets);
        let shown = match step {
            Step::Connect { to, version } => format!("{to} {version:?}"),
            Step::More => "more".into(),
            Step::Say(octets) => format!("say {octets:?}"),
            Step::Refuse(octets) => format!("refuse {octets:?}"),
        };
        (shown, octets.len() - used)
    }

    #[test]
    fn conversations() {
        for (octets, greeted, shown, left) in [
            (&b"\x05\x01\x00"[..], false, "say [5, 0]", 0),
            (b"\x05\x02\x02\x00rest", false, "say [5, 0]", 4),
            (b"\x05\x01\x02", false, "refuse [5, 255]", 0),
            (b"\x05\x00", false, "refuse [5, 255]", 0),
            (b"\x05\x02\x00", false, "more", 3),
            (b"\x05\x01\x00\x03\x01h\x00\x50x", true, "[h]:80 Five", 1),
            (b"\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50", true, "[127.0.0.1]:80 Five", 0),
            (
                b"\x05\x01\x00\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x1f\x90",
                true,
                "[::1]:8080 Five",
                0,
            ),
            (b"\x05\x01\x00\x03\x02h", true, "more", 6),
            (b"\x05\x02\x00\x03\x01h\x00\x50", true, "refuse [5, 7, 0, 1, 0, 0, 0, 0, 0, 0]", 0),
            (b"\x05\x01\x00\x03\x00\x00\x50", true, "refuse [5, 7, 0, 1, 0, 0, 0, 0, 0, 0]", 0),
            (b"\x05\x01\x00\x09", true, "refuse [5, 8, 0, 1, 0, 0, 0, 0, 0, 0]", 0),
            (b"\x04\x01\x00\x50\x7f\x00\x00\x01me\x00x", false, "[127.0.0.1]:80 Four", 1),
            (b"\x04\x01\x00\x50\x00\x00\x00\x01\x00h\x00", false, "[h]:80 Four", 0),
            (b"\x04\x01\x00\x50\x00\x00\x00\x01\x00h", false, "more", 11 - 1),
            (b"\x04\x02\x00\x50\x7f\x00\x00\x01\x00", false, "refuse [0, 91, 0, 0, 0, 0, 0, 0]", 0),
            (b"GET / HTTP/1.1", false, "refuse []", 14),
            (b"\x04\x01", true, "refuse []", 2),
            (b"", false, "more", 0),
        ] {
            assert_eq!(outcome(octets, greeted), (shown.to_owned(), left), "{octets:?}");
        }
    }

    #[test]
    fn endless_requests_are_refused() {
        let mut octets = b"\x04\x01\x00\x50\x7f\x00\x00\x01".to_vec();
        octets.resize(OCTETS_MAX + 1, b'u');
        assert_eq!(Reader::default().next(&octets), (0, Step::Refuse(&[])));
    }
}
