//! Asks sessions by their control sockets.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rove_ssp::Time;
use rustix::event::{PollFd, PollFlags, Timespec};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::os::clock::Clock;
use crate::os::local_socket::is_own_peer;
use crate::sessions::line::{LINE_BYTES_MAX, Request, SESSIONS_MAX, Session};
use crate::sessions::name::{Name, SessionId};

/// How long a session is waited for that was asked for something.
const ANSWER_WAIT: Duration = Duration::from_secs(5);

/// How long all sessions together are waited for that are asked what they are. One that stands still is left out.
const LIST_WAIT: Duration = Duration::from_secs(1);

/// The same where somebody waits for a prompt.
pub(crate) const NOTICE_WAIT: Duration = Duration::from_millis(200);

/// Sessions that are asked for a way at the same time: as many as one directory has.
const ASKED_MAX: usize = SESSIONS_MAX;

/// A session's answer that grants what was asked for.
const OK: &str = "OK";

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
    Asked::ask(path, request)?.answer(Clock::start(), wait)
}

/// Asks a session for a way to one of its clients, over which frames go from then on.
///
/// # Errors
/// The system's, and a session that does not grant it.
pub(crate) fn carry(path: &Path, request: &Request) -> io::Result<UnixStream> {
    let mut asked = Asked::ask(path, request)?;
    match asked.answer(Clock::start(), ANSWER_WAIT)?.as_str() {
        OK => asked.into_way(),
        _ => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

/// What sessions have said of a way to a client.
#[derive(Debug)]
pub(crate) enum WayAnswer {
    /// One has the client.
    Way(UnixStream),
    /// All have said that they do not know it.
    No,
    /// One that may have it stands still, or cannot be asked.
    Unknown,
}

/// Asks all these sessions for a way to a client of one of them, as [`carry`] asks one. They are asked at the same time,
/// so that one that stands still costs its own wait and no other's.
pub(crate) fn carry_by_any(entries: &[Entry], request: &Request) -> WayAnswer {
    carry_within(entries, request, ANSWER_WAIT)
}

/// The same, within another time for each [`ASKED_MAX`] of them.
fn carry_within(entries: &[Entry], request: &Request, wait: Duration) -> WayAnswer {
    let mut is_sure = true;
    for entries in entries.chunks(ASKED_MAX) {
        let clock = Clock::start();
        let asked = entries.iter().map(|entry| Asked::ask(&entry.path, request));
        let mut asked: Vec<Asked> =
            asked.filter_map(|asked| asked.inspect_err(|_| is_sure = false).ok()).collect();
        loop {
            let mut waiting = Vec::with_capacity(asked.len());
            for mut session in asked {
                match session.read() {
                    Ok(None) => waiting.push(session),
                    Ok(Some(line)) if line == OK => {
                        return session.into_way().map_or(WayAnswer::Unknown, WayAnswer::Way);
                    }
                    Ok(Some(_no)) => {}
                    Err(_) => is_sure = false,
                }
            }
            asked = waiting;
            if asked.is_empty() {
                break;
            }
            if !wait_for(&asked, clock, wait) {
                is_sure = false;
                break;
            }
        }
    }
    if is_sure { WayAnswer::No } else { WayAnswer::Unknown }
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
        .filter_map(|entry| Some((entry, Asked::ask(&entry.path, &Request::List).ok()?)))
        .collect();
    let heard = asked.into_iter().filter_map(|(entry, mut session)| {
        let line = session.answer(clock, wait).ok()?;
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

/// A session that was asked for something, and the part of its answer that has come.
struct Asked {
    session: UnixStream,
    line: Vec<u8>,
}

impl Asked {
    fn ask(path: &Path, request: &Request) -> io::Result<Asked> {
        let mut session = connect(path)?;
        // A line fits into the buffer of a fresh connection.
        session.write_all(format!("{request}\n").as_bytes())?;
        Ok(Asked { session, line: Vec::new() })
    }

    /// Waits for the answer, which is without its end.
    fn answer(&mut self, clock: Clock, wait: Duration) -> io::Result<String> {
        loop {
            if let Some(line) = self.read()? {
                return Ok(line);
            }
            if !wait_for(std::slice::from_ref(self), clock, wait) {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }

    /// Reads what has come. The answer once it is whole, without its end; nothing is to be read behind it, since a peer of a
    /// way waits until something is said.
    fn read(&mut self) -> io::Result<Option<String>> {
        let mut buffer = [0; 1024];
        loop {
            match self.session.read(&mut buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    let part = &buffer[..count];
                    let end = part.iter().position(|octet| *octet == b'\n');
                    self.line.extend_from_slice(&part[..end.unwrap_or(count)]);
                    if self.line.len() >= LINE_BYTES_MAX {
                        return Err(io::ErrorKind::InvalidData.into());
                    }
                    if end.is_some() {
                        let line = String::from_utf8(std::mem::take(&mut self.line));
                        return line.map(Some).map_err(|_| io::ErrorKind::InvalidData.into());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// A way that was granted.
    fn into_way(self) -> io::Result<UnixStream> {
        self.session.set_nonblocking(false)?;
        Ok(self.session)
    }
}

/// Waits until one of these may have said something. Returns false if that took until `wait` was over on this clock.
fn wait_for(asked: &[Asked], clock: Clock, wait: Duration) -> bool {
    let left = (Time::ZERO + wait).since(clock.now());
    if left.is_zero() {
        return false;
    }
    let limit =
        Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
    let polled = asked.iter().map(|one| PollFd::new(&one.session, PollFlags::IN));
    let mut polled: Vec<_> = polled.collect();
    // Cut short, it is looked at again.
    let _ = rustix::event::poll(&mut polled, Some(&limit));
    true
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::thread::JoinHandle;

    use rove_ssp::ConnId;

    use super::*;
    use crate::os::threads::spawn;

    /// How long anything may take on a busy machine.
    const LIMIT: Duration = Duration::from_secs(60);

    /// Sockets in a directory of their own.
    struct Scene(PathBuf);

    impl Scene {
        fn new(name: &str) -> Scene {
            let name = format!("rove-ask-{name}-{}", std::process::id());
            let directory = std::env::temp_dir().join(name);
            let _ = std::fs::remove_dir_all(&directory);
            std::fs::create_dir(&directory).unwrap();
            Scene(directory)
        }

        fn entry(&self, number: u32) -> Entry {
            let name = Name::number(number);
            Entry { id: SessionId::new(number), name, path: self.0.join(number.to_string()) }
        }

        /// A socket that accepts connections and never answers.
        fn hung(&self, number: u32) -> (Entry, UnixListener) {
            let entry = self.entry(number);
            let listener = UnixListener::bind(&entry.path).unwrap();
            (entry, listener)
        }

        /// The first who asks there is told this.
        fn answering(&self, number: u32, answer: &'static str) -> (Entry, JoinHandle<()>) {
            let (entry, listener) = self.hung(number);
            let answers = spawn("answers", move || {
                let (mut asker, _) = listener.accept().unwrap();
                let mut octet = [0];
                while octet != *b"\n" {
                    asker.read_exact(&mut octet).unwrap();
                }
                // Who has another answer already does not wait for this one.
                let _ = asker.write_all(answer.as_bytes());
                if !answer.is_empty() {
                    // Until it has read that.
                    let _ = asker.read(&mut octet);
                }
            });
            (entry, answers.unwrap())
        }
    }

    impl Drop for Scene {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn request() -> Request {
        Request::Carry(ConnId::new(7), None)
    }

    #[test]
    fn a_way_is_found_beside_sessions_that_stand_still() {
        let scene = Scene::new("way");
        let hung: Vec<_> = (0..20).map(|number| scene.hung(number)).collect();
        let (other, says_no) = scene.answering(20, "NO there is no such client\n");
        let (own, says_ok) = scene.answering(21, "OK\n");
        let mut entries: Vec<Entry> = hung.iter().map(|(entry, _)| entry.clone()).collect();
        entries.extend([other, own]);
        let clock = Clock::start();
        let said = carry_within(&entries, &request(), 2 * LIMIT);
        assert!(matches!(said, WayAnswer::Way(_)), "{said:?}");
        // None of the others was waited for.
        assert!(clock.now().since(Time::ZERO) < LIMIT);
        drop(said);
        says_ok.join().unwrap();
        says_no.join().unwrap();
    }

    #[test]
    fn all_that_stand_still_cost_one_wait() {
        let scene = Scene::new("still");
        let wait = Duration::from_millis(300);
        let hung: Vec<_> = (0..ASKED_MAX as u32).map(|number| scene.hung(number)).collect();
        let entries: Vec<Entry> = hung.iter().map(|(entry, _)| entry.clone()).collect();
        let clock = Clock::start();
        assert!(matches!(carry_within(&entries, &request(), wait), WayAnswer::Unknown));
        let took = clock.now().since(Time::ZERO);
        assert!(took >= wait && took < wait * (ASKED_MAX as u32) / 2, "{took:?}");
    }

    #[test]
    fn no_session_has_a_client_only_if_all_say_so() {
        let scene = Scene::new("no");
        let wait = Duration::from_millis(50);
        let (first, says_no) = scene.answering(1, "NO there is no such client\n");
        assert!(matches!(carry_within(&[first], &request(), LIMIT), WayAnswer::No));
        says_no.join().unwrap();
        assert!(matches!(carry_within(&[], &request(), LIMIT), WayAnswer::No));
        // Nobody listens at this one, and the next ends without a word.
        assert!(matches!(carry_within(&[scene.entry(2)], &request(), wait), WayAnswer::Unknown));
        let (third, ends) = scene.answering(3, "");
        let (fourth, says_no) = scene.answering(4, "NO there is no such client\n");
        assert!(matches!(carry_within(&[third, fourth], &request(), wait), WayAnswer::Unknown));
        ends.join().unwrap();
        says_no.join().unwrap();
    }
}
