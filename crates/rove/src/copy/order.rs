//! The client's order to the server for one copy: the body of the request that opens its channel.

use clap::ValueEnum;

use crate::copy::message::{Fields, Malformed};

/// The version of orders and messages; another is refused.
const VERSION: u8 = 2;

/// The most sources in one order.
const SOURCES_MAX: usize = 4096;

/// The longest order: a channel's request, less its first octet.
pub(crate) const ORDER_BYTES_MAX: usize = 65_535;

/// The system's longest path, in octets.
const PATH_BYTES_MAX: usize = 4096;

/// The order for the server.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Order {
    /// Send the files that these patterns of paths name.
    Send {
        /// Directories too.
        recursive: bool,
        /// Limit in octets a second; 0 for none.
        limit: u64,
        /// The patterns, relative to the home directory.
        sources: Vec<Vec<u8>>,
    },
    /// Receive, and write to the target.
    Receive {
        /// The options.
        receive: Receive,
        /// The path, relative to the home directory.
        target: Vec<u8>,
        /// The sources as the user wrote them: the receiver takes only names that they match. Empty if the
        /// user's own end sends.
        sources: Vec<Vec<u8>>,
    },
}

/// How to write the received files.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Receive {
    /// Directories are accepted.
    pub recursive: bool,
    /// Directories and files keep their times.
    pub preserve: bool,
    /// There are several sources, so the target must be a directory.
    pub several: bool,
    /// Which symbolic links below a directory to make.
    pub links: Links,
}

/// Which symbolic links of a tree to make at the destination.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum Links {
    /// Those that cannot lead out of the directory that is copied.
    #[default]
    Inside,
    /// All, also absolute ones and those that climb above it.
    All,
}

mod flag {
    pub(super) const RECURSIVE: u8 = 1;
    pub(super) const PRESERVE: u8 = 2;
    pub(super) const SEVERAL: u8 = 4;
    pub(super) const ALL_LINKS: u8 = 8;
    pub(super) const RECEIVE: u8 = 128;
}

impl Order {
    /// The order as octets; `None` if it is too long.
    pub fn encode(&self) -> Option<Vec<u8>> {
        let mut out = vec![VERSION];
        let set = |condition: bool, flag: u8| if condition { flag } else { 0 };
        let (target, sources) = match self {
            Order::Send { recursive, limit, sources } => {
                out.push(set(*recursive, flag::RECURSIVE));
                out.extend_from_slice(&limit.to_le_bytes());
                if sources.is_empty() {
                    return None;
                }
                (None, sources)
            }
            Order::Receive { receive, target, sources } => {
                let flags = set(receive.recursive, flag::RECURSIVE)
                    | set(receive.preserve, flag::PRESERVE)
                    | set(receive.several, flag::SEVERAL)
                    | set(receive.links == Links::All, flag::ALL_LINKS);
                out.push(flag::RECEIVE | flags);
                (Some(target), sources)
            }
        };
        if sources.len() > SOURCES_MAX {
            return None;
        }
        for path in target.into_iter().chain(sources) {
            let length = u16::try_from(path.len()).ok()?;
            if path.len() > PATH_BYTES_MAX || path.contains(&0) {
                return None;
            }
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(path);
        }
        (out.len() <= ORDER_BYTES_MAX).then_some(out)
    }

    /// Reads the octets of [`Order::encode`].
    pub fn decode(bytes: &[u8]) -> Result<Order, Malformed> {
        if bytes.len() > ORDER_BYTES_MAX {
            return Err(Malformed);
        }
        let mut fields = Fields(bytes);
        if fields.u8()? != VERSION {
            return Err(Malformed);
        }
        let flags = fields.u8()?;
        let recursive = flags & flag::RECURSIVE != 0;
        if flags & flag::RECEIVE != 0 {
            let known =
                flag::RECEIVE | flag::RECURSIVE | flag::PRESERVE | flag::SEVERAL | flag::ALL_LINKS;
            let links = match flags & flag::ALL_LINKS {
                0 => Links::Inside,
                _ => Links::All,
            };
            let receive = Receive {
                recursive,
                preserve: flags & flag::PRESERVE != 0,
                several: flags & flag::SEVERAL != 0,
                links,
            };
            let target = path(&mut fields)?;
            let sources = paths(&mut fields)?;
            return match flags & !known {
                0 => Ok(Order::Receive { receive, target, sources }),
                _ => Err(Malformed),
            };
        }
        if flags & !flag::RECURSIVE != 0 {
            return Err(Malformed);
        }
        let limit = fields.u64()?;
        let sources = paths(&mut fields)?;
        match sources.is_empty() {
            false => Ok(Order::Send { recursive, limit, sources }),
            true => Err(Malformed),
        }
    }
}

/// Reads the remaining paths.
fn paths(fields: &mut Fields<'_>) -> Result<Vec<Vec<u8>>, Malformed> {
    let mut paths = Vec::new();
    while !fields.0.is_empty() {
        if paths.len() == SOURCES_MAX {
            return Err(Malformed);
        }
        paths.push(path(fields)?);
    }
    Ok(paths)
}

fn path(fields: &mut Fields<'_>) -> Result<Vec<u8>, Malformed> {
    let path = fields.text()?;
    match path.contains(&0) {
        false => Ok(path.to_vec()),
        true => Err(Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let links = Links::All;
        let receive = Receive { recursive: true, preserve: false, several: true, links };
        for order in [
            Order::Send { recursive: true, limit: 5, sources: vec![b"*.log".into(), vec![]] },
            Order::Receive { receive, target: b"~/x".to_vec(), sources: vec![] },
            Order::Receive { receive, target: b"y".to_vec(), sources: vec![b"a/*".to_vec()] },
        ] {
            let bytes = order.encode().expect("short enough");
            assert_eq!(Order::decode(&bytes), Ok(order.clone()));
            for length in 0..bytes.len() {
                assert_ne!(Order::decode(&bytes[..length]), Ok(order.clone()), "{length}");
            }
        }
    }

    #[test]
    fn what_is_too_much_is_not_written() {
        let send = |sources| Order::Send { recursive: false, limit: 0, sources };
        assert_eq!(send(vec![]).encode(), None);
        assert_eq!(send(vec![vec![b'x'; 4097]]).encode(), None);
        assert_eq!(send(vec![vec![b'x'; 4000]; 17]).encode(), None);
        assert_eq!(send(vec![b"a\0b".to_vec()]).encode(), None);
    }

    #[test]
    fn what_breaks_a_rule_is_refused() {
        for bytes in [
            &b""[..],
            b"\x01\0\0\0\0\0\0\0\0\0\0\0",
            b"\x02\x02\0\0\0\0\0\0\0\0\0\0",
            b"\x02\xf0\0\0",
            b"\x02\x80\x01\0\0",
            b"\x02\x80\0\0x",
            b"\x02\0\0\0\0\0\0\0\0\0",
        ] {
            assert_eq!(Order::decode(bytes), Err(Malformed), "{bytes:?}");
        }
    }
}
