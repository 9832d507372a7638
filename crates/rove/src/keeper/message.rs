//! What a client and its keeper say to each other. Neither trusts the other further than this: a keeper takes two
//! numbers and nothing else.

use rove_ssp::ConnId;

/// What a client asks for: a way to its session, or word that the session is gone.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Wish {
    /// The session's client.
    pub conn: ConnId,
    /// The UDP port that the session listens on.
    pub port: u16,
}

/// The answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Reply {
    /// ssh has got there: two files come along, to read from and to write to, and these octets were read already.
    Way(Vec<u8>),
    /// The session is not there.
    Gone(Whereabouts),
    /// ssh got there and was not let in: it would have to ask its user.
    NeedsUser,
    /// ssh did not get to the host.
    Unreached,
    /// ssh has found neither, as far as can be told: nobody there may know of such requests.
    Nothing,
    /// ssh was not run: its pause lasts this many seconds more.
    Later(u16),
}

/// Where a session was looked for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Whereabouts {
    /// The machine, by the word of its `ROVE AT` and `ROVE CARRY`.
    pub machine: String,
    /// For how many seconds it has been up.
    pub uptime: u64,
}

/// It is no reply.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NoReply;

/// Octets before a reply's content: its kind, and the length in two.
const HEAD_BYTES: usize = 3;

/// The most octets of content: what one read of ssh's output has behind the last line.
pub(super) const CONTENT_BYTES_MAX: usize = 8192;

/// Octets of a machine's word.
const MACHINE_BYTES: usize = 16;

const WAY: u8 = 1;
const GONE: u8 = 2;
const NEEDS_USER: u8 = 3;
const NOTHING: u8 = 4;
const UNREACHED: u8 = 5;
const LATER: u8 = 6;

impl Wish {
    /// The octets of one.
    pub const BYTES: usize = 10;

    /// Writes it.
    pub fn encode(self) -> [u8; Wish::BYTES] {
        let text = self.conn.to_string();
        let mut octets = [0; Wish::BYTES];
        octets[..8].copy_from_slice(text.as_bytes());
        octets[8..].copy_from_slice(&self.port.to_be_bytes());
        octets
    }

    /// Reads it.
    pub fn decode(octets: &[u8; Wish::BYTES]) -> Option<Wish> {
        let (conn, port) = octets.split_last_chunk::<2>()?;
        let conn = ConnId::parse(str::from_utf8(conn).ok()?)?;
        Some(Wish { conn, port: u16::from_be_bytes(*port) })
    }
}

impl Reply {
    /// Writes it. What has more content than fits is none.
    pub fn encode(&self) -> Vec<u8> {
        let (kind, content) = match self {
            Reply::Way(first) if first.len() > CONTENT_BYTES_MAX => return Reply::Nothing.encode(),
            Reply::Way(first) => (WAY, first.clone()),
            Reply::Gone(Whereabouts { machine, uptime }) => {
                let mut content = machine.as_bytes().to_vec();
                content.extend(uptime.to_be_bytes());
                (GONE, content)
            }
            Reply::NeedsUser => (NEEDS_USER, Vec::new()),
            Reply::Nothing => (NOTHING, Vec::new()),
            Reply::Unreached => (UNREACHED, Vec::new()),
            Reply::Later(seconds) => (LATER, seconds.to_be_bytes().to_vec()),
        };
        let length = u16::try_from(content.len()).expect("content is at most 8 KiB");
        let mut octets = vec![kind];
        octets.extend(length.to_be_bytes());
        octets.extend(content);
        octets
    }

    /// Reads the first reply of these octets, if it is whole.
    ///
    /// # Errors
    /// Of what begins no reply.
    pub fn decode(octets: &[u8]) -> Result<Option<Reply>, NoReply> {
        let Some((head, rest)) = octets.split_first_chunk::<HEAD_BYTES>() else { return Ok(None) };
        let length = usize::from(u16::from_be_bytes([head[1], head[2]]));
        if length > CONTENT_BYTES_MAX {
            return Err(NoReply);
        }
        let Some(content) = rest.get(..length) else { return Ok(None) };
        Ok(Some(match head[0] {
            WAY => Reply::Way(content.to_vec()),
            GONE => Reply::Gone(Whereabouts::decode(content).ok_or(NoReply)?),
            NEEDS_USER if content.is_empty() => Reply::NeedsUser,
            NOTHING if content.is_empty() => Reply::Nothing,
            UNREACHED if content.is_empty() => Reply::Unreached,
            LATER => Reply::Later(u16::from_be_bytes(content.try_into().map_err(|_| NoReply)?)),
            _ => return Err(NoReply),
        }))
    }
}

impl Whereabouts {
    /// From the text of a `ROVE AT` line: name, machine, seconds.
    pub fn of_fact(fact: &str) -> Option<Whereabouts> {
        let mut words = fact.split(' ').skip(1);
        let machine = words.next().filter(|word| is_machine(word.as_bytes()))?;
        Some(Whereabouts { machine: machine.to_owned(), uptime: words.next()?.parse().ok()? })
    }

    fn decode(content: &[u8]) -> Option<Whereabouts> {
        let (machine, uptime) = content.split_last_chunk::<8>()?;
        let machine = Some(machine).filter(|machine| is_machine(machine))?;
        Some(Whereabouts {
            machine: str::from_utf8(machine).ok()?.to_owned(),
            uptime: u64::from_be_bytes(*uptime),
        })
    }
}

fn is_machine(word: &[u8]) -> bool {
    word.len() == MACHINE_BYTES && word.iter().all(u8::is_ascii_hexdigit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let wish = Wish { conn: ConnId::new(0xdead_0042), port: 60_001 };
        assert_eq!(Wish::decode(&wish.encode()), Some(wish));
        assert_eq!(Wish::decode(b"0000-042\xea\x61"), None);
        let there = Whereabouts::of_fact("build7 0123456789abcdef 240").unwrap();
        assert_eq!(there, Whereabouts { machine: "0123456789abcdef".into(), uptime: 240 });
        for reply in [
            Reply::Way(Vec::new()),
            Reply::Way(b"\0\0\x01x".to_vec()),
            Reply::Gone(there),
            Reply::NeedsUser,
            Reply::Nothing,
            Reply::Unreached,
            Reply::Later(300),
        ] {
            let octets = reply.encode();
            assert_eq!(Reply::decode(&octets), Ok(Some(reply)));
            for cut in 0..octets.len() {
                assert_eq!(Reply::decode(&octets[..cut]), Ok(None));
            }
        }
    }

    #[test]
    fn other_octets_are_refused() {
        for octets in [
            &b"\0\0\0"[..],
            b"\x07\0\0",
            b"\x01\xff\xff",
            b"\x03\0\x01x",
            b"\x02\0\x02ab",
            b"\x06\0\x01a",
        ] {
            assert_eq!(Reply::decode(octets), Err(NoReply), "{octets:?}");
        }
        for fact in ["build7", "build7 0123456789abcdef", "build7 0123 9", "b 0123456789abcdeX 9"] {
            assert_eq!(Whereabouts::of_fact(fact), None, "{fact}");
        }
    }
}
