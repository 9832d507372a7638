//! What a server tells a client of the session that both are in: its name, who else is there, and why it ends for
//! this client alone (host extension 21).

use alloc::format;
use alloc::string::String;

use rove_ssp::Remote;

/// The longest name of a session, in octets.
pub const NAME_OCTETS_MAX: usize = 32;

/// The longest name of another client, in octets: an IPv6 address with its zone.
const WHO_OCTETS_MAX: usize = 64;

/// What a client knows of its session.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SessionInfo {
    /// The session's name.
    pub name: String,
    /// The session goes on if the client says that it only leaves.
    pub can_detach: bool,
    /// The server drops the keys of this client.
    pub view_only: bool,
    /// How many other clients there are.
    pub others: u64,
    /// Why the session ends for this client, though it goes on for others.
    pub ended: Option<LetGo>,
    /// The address of the client that came, left or took the session over last.
    pub who: String,
}

/// Why a session ends for one of its clients.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LetGo {
    /// Another client has taken it over.
    TakenOver,
    /// Room was needed for another client; or, if none is named, this one was away for too long.
    Replaced,
}

/// The same on the wire.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SessionFields<'a> {
    /// The name.
    pub name: &'a [u8],
    /// Bits: 1 can be detached from, 2 view only.
    pub flags: u64,
    /// Other clients.
    pub others: u64,
    /// 1 taken over, 2 replaced; 0 and any other: it has not ended.
    pub ended: u64,
    /// Who came, left or took over.
    pub who: &'a [u8],
}

/// What others are told of a client that is there.
pub(crate) fn name_of(peer: Option<Remote>) -> String {
    match peer {
        Some(Remote::Udp(peer)) => format!("{}", peer.ip()),
        Some(Remote::Stream(_)) => "a client over ssh".into(),
        None => String::new(),
    }
}

const CAN_DETACH: u64 = 1 << 0;
const VIEW_ONLY: u64 = 1 << 1;

const TAKEN_OVER: u64 = 1;
const REPLACED: u64 = 2;

impl SessionInfo {
    /// Whether a user gave the name. Those that servers give are numbers.
    pub fn is_named(&self) -> bool {
        !self.name.bytes().all(|octet| octet.is_ascii_digit())
    }

    pub(crate) fn fields(&self) -> SessionFields<'_> {
        let flag = |is_set: bool, bit| if is_set { bit } else { 0 };
        SessionFields {
            name: self.name.as_bytes(),
            flags: flag(self.can_detach, CAN_DETACH) | flag(self.view_only, VIEW_ONLY),
            others: self.others,
            ended: match self.ended {
                None => 0,
                Some(LetGo::TakenOver) => TAKEN_OVER,
                Some(LetGo::Replaced) => REPLACED,
            },
            who: self.who.as_bytes(),
        }
    }
}

impl From<SessionFields<'_>> for SessionInfo {
    /// Both texts end up on the user's terminal: of a hostile server's nothing but plain characters is kept.
    fn from(fields: SessionFields<'_>) -> Self {
        let plain = |octets: &[u8], max| -> String {
            let printable = octets.iter().take(max).filter(|octet| matches!(octet, b' '..=b'~'));
            printable.map(|octet| char::from(*octet)).collect()
        };
        Self {
            name: plain(fields.name, NAME_OCTETS_MAX),
            can_detach: fields.flags & CAN_DETACH != 0,
            view_only: fields.flags & VIEW_ONLY != 0,
            others: fields.others,
            ended: match fields.ended {
                TAKEN_OVER => Some(LetGo::TakenOver),
                REPLACED => Some(LetGo::Replaced),
                _ => None,
            },
            who: plain(fields.who, WHO_OCTETS_MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_what_is_read() {
        for (ended, can_detach) in
            [(None, true), (Some(LetGo::TakenOver), false), (Some(LetGo::Replaced), true)]
        {
            let info = SessionInfo {
                name: "work".into(),
                can_detach,
                view_only: !can_detach,
                others: 3,
                ended,
                who: "a client over ssh".into(),
            };
            assert_eq!(SessionInfo::from(info.fields()), info);
        }
    }

    #[test]
    fn a_server_cannot_write_to_the_terminal_by_a_name() {
        let long = [b'x'; 1000];
        let hostile =
            SessionFields { name: b"a\x1b[2J\nb\x7fc\xff", who: &long, ..SessionFields::default() };
        let info = SessionInfo::from(hostile);
        assert_eq!(info.name, "a[2Jbc");
        assert_eq!(info.who.len(), WHO_OCTETS_MAX);
    }

    #[test]
    fn numbers_are_no_names_of_users() {
        for (name, is_named) in [("", false), ("12", false), ("w1", true), ("-", true)] {
            let info = SessionInfo { name: name.into(), ..SessionInfo::default() };
            assert_eq!(info.is_named(), is_named, "{name}");
        }
    }
}
