//! Asks sessions by their control sockets.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::os::clock::Clock;
use crate::os::local_socket::is_own_peer;
use crate::sessions::line::{LINE_BYTES_MAX, Request, Session};
use crate::sessions::name::{Name, SessionId};

/// How long a session is waited for that was asked for something.
const ANSWER_WAIT: Duration = Duration::from_secs(5);

/// How long all sessions together are waited for that are asked what they are. One that stands still is left out.
const LIST_WAIT: Duration = Duration::from_secs(1);

/// The same where somebody waits for a prompt.
pub(crate) const NOTICE_WAIT: Duration = Duration::from_millis(200);

/// The place of one session.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Entry {
    pub(crate) id: SessionId,
    pub(crate) name: Name,
    pub(crate) path: PathBuf,
}

/// Whether somebody listens at a socket.
pub(crate) fn is_alive(path: &Path) -> io::Result<bool> {
    match connect(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(false),
        // It is there, and has more to do than there is room for.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
        Err(error) => Err(error),
    }
}

/// Puts a request to a session and waits for the answer.
///
/// # Errors
/// The system's; `TimedOut` if the session stands still.
pub(crate) fn ask(path: &Path, request: &Request) -> io::Result<String> {
    ask_within(path, request, ANSWER_WAIT)
}

/// The same, within another time.
pub(super) fn ask_within(path: &Path, request: &Request, wait: Duration) -> io::Result<String> {
    let mut session = connect(path)?;
    send(&mut session, request)?;
    receive(&mut session, Clock::start(), wait)
}

/// Asks a session for a way to one of its clients, over which frames go from then on.
///
/// # Errors
/// The system's, and a session that does not grant it.
pub(crate) fn carry(path: &Path, request: &Request) -> io::Result<UnixStream> {
    let mut session = connect(path)?;
    send(&mut session, request)?;
    // Nothing but the line comes before something is said.
    let answer = receive(&mut session, Clock::start(), ANSWER_WAIT)?;
    session.set_nonblocking(false)?;
    if answer == "OK" { Ok(session) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

/// What all these sessions say of themselves. Those that say nothing in time are left out.
pub(crate) fn list(entries: &[Entry]) -> Vec<Session> {
    list_within(entries, LIST_WAIT)
}

/// The same, within another time.
pub(crate) fn list_within(entries: &[Entry], wait: Duration) -> Vec<Session> {
    let clock = Clock::start();
    // All are asked before the first is waited for.
    let asked: Vec<_> = entries
        .iter()
        .filter_map(|entry| {
            let mut session = connect(&entry.path).ok()?;
            send(&mut session, &Request::List).ok()?;
            Some((entry, session))
        })
        .collect();
    let heard = asked.into_iter().filter_map(|(entry, mut session)| {
        let line = receive(&mut session, clock, wait).ok()?;
        Session::parse(&line).filter(|session| session.id == entry.id)
    });
    heard.collect()
}

/// A connection to a session of this user that does not block.
fn connect(path: &Path) -> io::Result<UnixStream> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.connect(&SockAddr::unix(path)?)?;
    match is_own_peer(&socket) {
        true => Ok(socket.into()),
        false => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

fn send(session: &mut UnixStream, request: &Request) -> io::Result<()> {
    // A line fits into the buffer of a fresh connection.
    session.write_all(format!("{request}\n").as_bytes())
}

/// The answer, without its end.
fn receive(session: &mut UnixStream, clock: Clock, wait: Duration) -> io::Result<String> {
    let by = rove_ssp::Time::ZERO + wait;
    let mut line = Vec::new();
    let mut buffer = [0; 1024];
    loop {
        match session.read(&mut buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                let part = &buffer[..count];
                let end = part.iter().position(|octet| *octet == b'\n');
                line.extend_from_slice(&part[..end.unwrap_or(count)]);
                if line.len() >= LINE_BYTES_MAX {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                if end.is_some() {
                    return String::from_utf8(line).map_err(|_| io::ErrorKind::InvalidData.into());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let left = by.since(clock.now());
                if left.is_zero() {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                let limit = Timespec {
                    tv_sec: left.as_secs().cast_signed(),
                    tv_nsec: left.subsec_nanos().into(),
                };
                let mut wanted = [PollFd::new(session, PollFlags::IN)];
                // Cut short, it is looked at again.
                let _ = rustix::event::poll(&mut wanted, Some(&limit));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
