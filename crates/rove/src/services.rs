//! The requests that open channels, at either end.
//!
//! A request is one octet that names the service, and a body. A client may send every [`Request`];
//! a server only a [`Call`], which names something that the client has asked for before. So a
//! server cannot make a client open a listening socket, a connection or a program that it did not
//! want.

pub(crate) mod calls;
pub(crate) mod exec;
pub(crate) mod forward;
pub(crate) mod pump;

pub(crate) mod silence;
pub(crate) mod status;

use std::ffi::OsString;
use std::path::PathBuf;

use rove_term::Size;

use crate::os::ffi::{OsStrExt, OsStringExt};
use crate::os::modes::Modes;
use crate::services::forward::spec::{Bind, Endpoint, HOST_BYTES_MAX, Listen};

/// Longest path in a request (PATH_MAX).
const PATH_BYTES_MAX: usize = 4096;

/// A client's number for one of its requests; the server names it when it calls back.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Id(pub u32);

/// The purpose of a client's channel.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Request {
    /// 1: to run a command. The channel is its standard input and output; the server calls back
    /// with one for the rest (`services::exec::frame`).
    Exec(Exec),
    /// 2: to copy files, by an encoded order ([`crate::copy::order::Order`]).
    Copy(Vec<u8>),
    /// 3: to reach a TCP port from the server. The channel is the connection, after one octet: 0, or 1 and
    /// the reason of the failure.
    Connect(Endpoint),
    /// 4: to listen at the server while the channel is open. The server sends 0 and the port, or 1 and the
    /// reason, and calls back with each connection. Later it may send 2: another session of the user listens
    /// there, since this client was away; and 3: connections wait, since it serves its maximum.
    Listen(Id, Listen),
    /// 6: to reach a Unix socket at the server; as for TCP.
    ConnectUnix(PathBuf),
}

/// The purpose of a server's channel.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Call {
    /// 5: the continuation of the client's request of this number: an incoming connection, or a command's
    /// errors and end.
    Back(Id),
    /// 7: one message for the user's agent, and its answer.
    Agent,
}

/// A command to run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Exec {
    /// For the call back.
    pub id: Id,
    /// What to run.
    pub run: Run,
    /// The terminal to run it on; `None`: it has three pipes.
    pub terminal: Option<Terminal>,
}

/// What a command is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Run {
    /// A line for the user's login shell; empty for a login shell itself.
    Line(OsString),
    /// The subsystem of this name.
    Subsystem(OsString),
}

/// A terminal for a command.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Terminal {
    /// How large it is.
    pub size: Size,
    /// The value of `TERM`.
    pub term: String,
    /// Its first modes; empty if the server may choose.
    pub modes: Modes,
}

impl Terminal {
    /// Whether a terminal's name can be sent.
    pub fn takes(term: &str) -> bool {
        term.len() <= TERM_BYTES_MAX && term.bytes().all(|octet| octet.is_ascii_graphic())
    }
}

/// Longest name of a terminal.
const TERM_BYTES_MAX: usize = 64;

/// What stands before a subsystem's name. Servers that know no subsystems refuse the request, since no line has it.
const SUBSYSTEM: u8 = 0;

const EXEC: u8 = 1;
const COPY: u8 = 2;
const CONNECT: u8 = 3;
const LISTEN: u8 = 4;
const BACK: u8 = 5;
const CONNECT_UNIX: u8 = 6;
const AGENT: u8 = 7;

impl Request {
    /// The octets that open the channel.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Request::Exec(exec) => {
                out.push(EXEC);
                out.extend(exec.id.0.to_be_bytes());
                match &exec.terminal {
                    None => out.push(0),
                    Some(terminal) => {
                        out.push(1);
                        out.extend(terminal.size.rows.to_be_bytes());
                        out.extend(terminal.size.cols.to_be_bytes());
                        put_text(&mut out, terminal.term.as_bytes());
                        put_modes(&mut out, &terminal.modes);
                    }
                }
                match &exec.run {
                    Run::Line(line) => out.extend(line.as_bytes()),
                    Run::Subsystem(name) => {
                        out.push(SUBSYSTEM);
                        out.extend(name.as_bytes());
                    }
                }
            }
            Request::Copy(order) => {
                out.push(COPY);
                out.extend(order);
            }
            Request::Connect(to) => {
                out.push(CONNECT);
                put_text(&mut out, to.host.as_bytes());
                out.extend(to.port.to_be_bytes());
            }
            Request::Listen(id, listen) => {
                out.push(LISTEN);
                out.extend(id.0.to_be_bytes());
                put_listen(&mut out, listen);
            }
            Request::ConnectUnix(path) => {
                out.push(CONNECT_UNIX);
                out.extend(path.as_os_str().as_bytes());
            }
        }
        out
    }

    /// Reads them. `None`: not a request, or one of a newer version.
    pub fn decode(octets: &[u8]) -> Option<Request> {
        let (service, body) = octets.split_first()?;
        let mut body = Body(body);
        let request = match *service {
            EXEC => Request::Exec(Exec {
                id: Id(u32::from_be_bytes(body.take()?)),
                terminal: match body.take()? {
                    [0] => None,
                    [1] => Some(body.terminal()?),
                    _ => return None,
                },
                run: body.run()?,
            }),
            COPY => Request::Copy(std::mem::take(&mut body.0).to_vec()),
            CONNECT => {
                let host = body.host()?;
                let port = u16::from_be_bytes(body.take()?);
                Request::Connect(Endpoint { host, port: (port != 0).then_some(port)? })
            }
            LISTEN => Request::Listen(Id(u32::from_be_bytes(body.take()?)), body.listen()?),
            CONNECT_UNIX => Request::ConnectUnix(body.path()?),
            _ => return None,
        };
        body.0.is_empty().then_some(request)
    }
}

impl Call {
    /// The octets that open the channel.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Call::Back(Id(id)) => [&[BACK][..], &id.to_be_bytes()].concat(),
            Call::Agent => vec![AGENT],
        }
    }

    /// Reads them. `None`: not a call, or one of a newer version.
    pub fn decode(octets: &[u8]) -> Option<Call> {
        match *octets {
            [BACK, a, b, c, d] => Some(Call::Back(Id(u32::from_be_bytes([a, b, c, d])))),
            [AGENT] => Some(Call::Agent),
            _ => None,
        }
    }
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    // Longer ones are never made: hosts and terminals' names are limited.
    let length = u8::try_from(text.len()).expect("a name has at most 255 octets");
    out.push(length);
    out.extend(text);
}

fn put_modes(out: &mut Vec<u8>, modes: &Modes) {
    let pairs = modes.pairs();
    out.push(u8::try_from(pairs.len()).expect("at most 255 modes are sent"));
    out.extend(pairs.iter().flat_map(|&(number, value)| [number, value]));
}

fn put_listen(out: &mut Vec<u8>, listen: &Listen) {
    match listen {
        Listen::Tcp { bind, port } => {
            match bind {
                Bind::Unsaid | Bind::Loopback => out.push(0),
                Bind::Any => out.push(1),
                Bind::Host(host) => {
                    out.push(2);
                    put_text(out, host.as_bytes());
                }
            }
            out.extend(port.to_be_bytes());
        }
        Listen::Unix(path) => {
            out.push(3);
            out.extend(path.as_os_str().as_bytes());
        }
    }
}

/// The unread rest of a request's body.
struct Body<'a>(&'a [u8]);

impl<'a> Body<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn text(&mut self) -> Option<&'a str> {
        let [length] = self.take()?;
        let (text, rest) = self.0.split_at_checked(length.into())?;
        self.0 = rest;
        str::from_utf8(text).ok()
    }

    fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    fn host(&mut self) -> Option<String> {
        let host = self.text()?;
        let valid = !host.is_empty() && host.len() <= HOST_BYTES_MAX && !host.contains('\0');
        valid.then(|| host.to_owned())
    }

    fn path(&mut self) -> Option<PathBuf> {
        let path = self.rest();
        let valid = !path.is_empty() && path.len() <= PATH_BYTES_MAX && !path.contains(&0);
        valid.then(|| OsString::from_vec(path.to_vec()).into())
    }

    /// Neither a program's words nor a shell's line can hold a NUL.
    fn run(&mut self) -> Option<Run> {
        let words = self.rest();
        let name = words.strip_prefix(&[SUBSYSTEM]);
        let text = OsString::from_vec(name.unwrap_or(words).to_vec());
        match name {
            _ if text.as_bytes().contains(&0) => None,
            None => Some(Run::Line(text)),
            Some(name) => (!name.is_empty()).then_some(Run::Subsystem(text)),
        }
    }

    fn terminal(&mut self) -> Option<Terminal> {
        let (rows, cols) = (u16::from_be_bytes(self.take()?), u16::from_be_bytes(self.take()?));
        let term = self.text()?;
        let modes = self.modes()?;
        let valid = Terminal::takes(term);
        let size = Size::clamped(rows, cols);
        (valid && (size.rows, size.cols) == (rows, cols)).then(|| Terminal {
            size,
            term: term.to_owned(),
            modes,
        })
    }

    fn modes(&mut self) -> Option<Modes> {
        let [count] = self.take()?;
        let (pairs, rest) = self.0.split_at_checked(2 * usize::from(count))?;
        self.0 = rest;
        let (pairs, []) = pairs.as_chunks::<2>() else { return None };
        Some(Modes::from_pairs(pairs.iter().map(|&[number, value]| (number, value))))
    }

    fn listen(&mut self) -> Option<Listen> {
        let bind = match self.take()? {
            [0] => Bind::Loopback,
            [1] => Bind::Any,
            [2] => Bind::Host(self.host()?),
            [3] => return self.path().map(Listen::Unix),
            _ => return None,
        };
        Some(Listen::Tcp { bind, port: u16::from_be_bytes(self.take()?) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_back() {
        let endpoint = Endpoint { host: "::1".into(), port: 22 };
        let modes = Modes::from_pairs([(3, 127), (53, 1), (0, 0)]);
        let terminal = Terminal { size: Size::clamped(24, 80), term: "xterm".into(), modes };
        let exec = |command: &str, terminal| {
            Request::Exec(Exec { id: Id(7), run: Run::Line(command.into()), terminal })
        };
        let subsystem = |terminal| {
            Request::Exec(Exec { id: Id(7), run: Run::Subsystem("sftp".into()), terminal })
        };
        for request in [
            exec("ls -l", None),
            exec("", Some(terminal.clone())),
            subsystem(None),
            subsystem(Some(terminal)),
            Request::Copy(b"\x01\0".to_vec()),
            Request::Connect(endpoint),
            Request::Listen(Id(1), Listen::Tcp { bind: Bind::Loopback, port: 0 }),
            Request::Listen(Id(1), Listen::Tcp { bind: Bind::Any, port: 1 }),
            Request::Listen(Id(1), Listen::Tcp { bind: Bind::Host("h".into()), port: 65_535 }),
            Request::Listen(Id(u32::MAX), Listen::Unix("/tmp/x".into())),
            Request::ConnectUnix("/tmp/x".into()),
        ] {
            let octets = request.encode();
            assert_eq!(Request::decode(&octets), Some(request.clone()));
            for length in 0..octets.len() {
                let cut = Request::decode(&octets[..length]);
                assert_ne!(cut, Some(request.clone()), "{length} of {octets:?}");
            }
        }
        for call in [Call::Back(Id(9)), Call::Agent] {
            assert_eq!(Call::decode(&call.encode()), Some(call));
        }
    }

    #[test]
    fn what_is_no_request() {
        for octets in [
            &b""[..],
            b"\x00",
            b"\x05\x00\x00\x00\x01",
            b"\x07",
            b"\x03\x00\x00\x50",
            b"\x03\x01h\x00\x00",
            b"\x03\x01\xff\x00\x50",
            b"\x03\x01h\x00\x50x",
            b"\x04\x00\x00\x00\x01\x04\x00\x50",
            b"\x06",
            b"\x06/a\0b",
            b"\x01\x00\x00\x00\x01\x00a\0",
            b"\x01\x00\x00\x00\x01\x00\0",
            b"\x01\x00\x00\x00\x01\x00\0sftp\0",
            b"\x01\x00\x00\x00\x01\x01\x00\x00\x00\x50\x01x\x00",
            b"\x01\x00\x00\x00\x01\x01\x00\x18\x00\x50\x01x\x02\x03\x7f\x35",
        ] {
            assert_eq!(Request::decode(octets), None, "{octets:?}");
        }
        for octets in [&b""[..], b"\x05", b"\x05\x00\x00\x00\x01x", b"\x07x", b"\x01", b"\x04"] {
            assert_eq!(Call::decode(octets), None, "{octets:?}");
        }
    }
}
