//! The control socket of a session: takes the requests of this user's other processes, one line each, and hands them to
//! the session, which answers with a line. Who asks is known by the socket's credentials; nothing that is said is
//! believed beyond what the user may do anyway (threats row 25).

use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::task::{Context, Poll};
use std::time::Duration;

use rove_ssp::Time;
use tokio::net::{UnixListener, UnixStream};

use crate::os::local_socket::is_own_peer;
use crate::os::socket_file::SocketFile;
use crate::sessions::directory::{Claim, Denied, Places};
use crate::sessions::line::{LINE_BYTES_MAX, Request, refusal};
use crate::sessions::name::{Name, SessionId};

/// Askers at a time. Further ones wait for a place.
const ASKERS_MAX: usize = 16;

/// How long an asker may take for its line.
const ASKER_WAIT: Duration = Duration::from_secs(5);

/// A session's control socket.
#[derive(Debug)]
pub(super) struct Control {
    id: SessionId,
    name: Name,
    places: Places,
    file: SocketFile,
    listener: UnixListener,
    askers: Vec<Waiting>,
}

/// Somebody who has not said a whole line.
#[derive(Debug)]
struct Waiting {
    stream: UnixStream,
    line: Vec<u8>,
    /// When it came, once a turn has seen it.
    since: Option<Time>,
}

/// Somebody who has asked for something.
#[derive(Debug)]
pub(super) struct Asker(UnixStream);

impl Control {
    /// A place that was taken in `places`. Needs a tokio runtime with I/O.
    pub(super) fn new(claim: Claim, places: Places) -> io::Result<Control> {
        let Claim { id, name, listener, file } = claim;
        let listener = UnixListener::from_std(listener)?;
        Ok(Control { id, name, places, file, listener, askers: Vec::new() })
    }

    /// Takes the session's place again if its file is gone: somebody may have cleared /tmp. Returns whether that was
    /// needed.
    pub(super) fn restore(&mut self) -> Result<bool, Denied> {
        if self.file.is_there() {
            return Ok(false);
        }
        let claim = self.places.to_begin()?.claim_again(self.id, &self.name)?;
        let failed = |error| Denied::System(claim.file.path.clone(), error);
        self.listener = UnixListener::from_std(claim.listener).map_err(failed)?;
        self.file = claim.file;
        Ok(true)
    }

    /// The session's id.
    pub(super) fn id(&self) -> SessionId {
        self.id
    }

    /// The session's name.
    pub(super) fn name(&self) -> &Name {
        &self.name
    }

    /// Ready when there may be something to [`take`](Self::take).
    pub(super) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut is_ready = false;
        while self.askers.len() < ASKERS_MAX
            && let Poll::Ready(accepted) = self.listener.poll_accept(cx)
        {
            // Without a place for its file the next turn tries again.
            let Ok((stream, _)) = accepted else { break };
            if is_own_peer(&stream) {
                self.askers.push(Waiting { stream, line: Vec::new(), since: None });
                is_ready = true;
            }
        }
        for asker in &self.askers {
            is_ready |= asker.stream.poll_read_ready(cx).is_ready();
        }
        if is_ready { Poll::Ready(()) } else { Poll::Pending }
    }

    /// The next request. One that nobody understands is answered here.
    pub(super) fn take(&mut self, now: Time) -> Option<(Asker, Request)> {
        let mut index = 0;
        while let Some(asker) = self.askers.get_mut(index) {
            let since = *asker.since.get_or_insert(now);
            match asker.read() {
                Read::Nothing if now < since + ASKER_WAIT => index += 1,
                Read::Nothing | Read::Ended => drop(self.askers.swap_remove(index)),
                Read::Line => {
                    let Waiting { stream, line, .. } = self.askers.swap_remove(index);
                    let asker = Asker(stream);
                    match Request::parse(&line) {
                        Ok(request) => return Some((asker, request)),
                        Err(unknown) => asker.answer(&refusal(unknown)),
                    }
                }
            }
        }
        None
    }

    /// When an asker is given up that says nothing.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.askers.iter().filter_map(|asker| Some(asker.since? + ASKER_WAIT)).min()
    }
}

enum Read {
    Nothing,
    /// The line is whole, and stands without its end.
    Line,
    /// No line will come.
    Ended,
}

impl Waiting {
    fn read(&mut self) -> Read {
        let mut buffer = [0; 1024];
        loop {
            match self.stream.try_read(&mut buffer) {
                Ok(0) => return Read::Ended,
                Ok(count) => {
                    let part = &buffer[..count];
                    let end = part.iter().position(|octet| *octet == b'\n');
                    self.line.extend_from_slice(&part[..end.unwrap_or(count)]);
                    // What follows a line waits for its answer elsewhere.
                    match end {
                        Some(_) => return Read::Line,
                        None if self.line.len() >= LINE_BYTES_MAX => return Read::Ended,
                        None => {}
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Read::Nothing,
                Err(_) => return Read::Ended,
            }
        }
    }
}

impl Asker {
    /// Grants a way: frames follow the line.
    pub(super) fn carry(self) -> io::Result<OwnedFd> {
        let mut socket = self.0.into_std()?;
        socket.write_all(b"OK\n")?;
        Ok(socket.into())
    }

    /// Answers with a line. An asker that is gone is told nothing.
    pub(super) fn answer(self, line: &str) {
        // It fits into the buffer of a connection on which nothing was said.
        let _ = self.0.try_write(format!("{line}\n").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::io::Read as _;
    use std::path::PathBuf;

    use super::*;

    /// A control socket, and a runtime for it.
    fn scene(name: &str) -> (PathBuf, Control) {
        let base = std::env::temp_dir().join(format!("rove-control-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&base);
        std::fs::create_dir(&base).unwrap();
        let places =
            Places::of_user(Some(base.clone().into()), Some(base.join("state").into()), None);
        let claim = places.to_begin().unwrap().claim(None).unwrap();
        let control = Control::new(claim, places).unwrap();
        (base, control)
    }

    async fn next(control: &mut Control) -> (Asker, Request) {
        loop {
            if let Some(found) = control.take(Time::ZERO) {
                return found;
            }
            poll_fn(|cx| control.poll_ready(cx)).await;
        }
    }

    #[tokio::test]
    async fn requests_have_answers() {
        let (base, mut control) = scene("answers");
        let connect = || std::os::unix::net::UnixStream::connect(&control.file.path).unwrap();
        let [mut slow, mut odd, mut whole] = [connect(), connect(), connect()];
        slow.write_all(b"LIS").unwrap();
        odd.write_all(b"DANCE 1\n").unwrap();
        whole.write_all(b"KILL 1\n").unwrap();
        let (asker, request) = next(&mut control).await;
        assert_eq!(request, Request::Kill);
        asker.answer("OK");
        let mut said = String::new();
        whole.read_to_string(&mut said).unwrap();
        assert_eq!(said, "OK\n");
        slow.write_all(b"T 1\n").unwrap();
        assert_eq!(next(&mut control).await.1, Request::List);
        said.clear();
        odd.read_to_string(&mut said).unwrap();
        assert_eq!(said, "NO this session speaks version 1 of that\n");
        drop(control);
        std::fs::remove_dir_all(base).unwrap();
    }

    #[tokio::test]
    async fn a_file_that_is_gone_is_made_again() {
        let (base, mut control) = scene("restore");
        assert!(!control.restore().unwrap());
        let path = control.file.path.clone();
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
        assert!(control.restore().unwrap());
        let mut asker = std::os::unix::net::UnixStream::connect(&path).unwrap();
        asker.write_all(b"LIST 1\n").unwrap();
        assert_eq!(next(&mut control).await.1, Request::List);
        drop(control);
        std::fs::remove_dir_all(base).unwrap();
    }

    #[tokio::test]
    async fn nobody_keeps_a_place_by_silence_or_length() {
        let (base, mut control) = scene("limits");
        let path = control.file.path.clone();
        let connect = || std::os::unix::net::UnixStream::connect(&path).unwrap();
        let mut silent: Vec<_> = (0..ASKERS_MAX).map(|_| connect()).collect();
        let mut last = connect();
        last.write_all(b"LIST 1\n").unwrap();
        poll_fn(|cx| control.poll_ready(cx)).await;
        assert!(control.take(Time::ZERO).is_none());
        assert_eq!(control.askers.len(), ASKERS_MAX);
        assert_eq!(control.deadline(), Some(Time::ZERO + ASKER_WAIT));
        // One says too much, and all the others nothing.
        silent[0].write_all(&[b'x'; LINE_BYTES_MAX]).unwrap();
        poll_fn(|cx| control.poll_ready(cx)).await;
        assert!(control.take(Time::ZERO).is_none());
        assert_eq!(control.askers.len(), ASKERS_MAX - 1);
        assert!(control.take(Time::ZERO + ASKER_WAIT).is_none());
        assert!(control.askers.is_empty() && control.deadline().is_none());
        assert_eq!(next(&mut control).await.1, Request::List);
        drop(control);
        std::fs::remove_dir_all(base).unwrap();
    }
}
