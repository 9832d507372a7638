//! The way from ssh to the session: the process that ssh has started passes on what comes by its standard input and
//! output, until either side ends (`docs/wire.md` §11). What it passes on is sealed, and it has no keys.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use crate::os::threads;

/// Octets at a time. A session's window is no larger.
const PIECE_BYTES: usize = 16 << 10;

/// Both ends of the way between the relay and the session, before they part.
pub(super) struct Relay {
    relay: UnixStream,
    session: UnixStream,
}

impl Relay {
    /// `None` if it is not wanted, or not to be had: the session does without.
    pub(super) fn pair(is_wanted: bool) -> Option<Relay> {
        let (relay, session) = UnixStream::pair().ok().filter(|_| is_wanted)?;
        Some(Relay { relay, session })
    }

    /// The session's end; the other is closed.
    pub(super) fn into_session(self) -> OwnedFd {
        self.session.into()
    }

    /// Passes on octets until ssh or the session has ended. Nobody is told of errors: the stream is gone, which both
    /// ends see.
    pub(super) fn run(self) -> io::Result<()> {
        let Relay { relay, session } = self;
        drop(session);
        pass_on(relay)
    }
}

/// Passes on octets between ssh and this socket of a session's, until either ends.
pub(super) fn pass_on(session: UnixStream) -> io::Result<()> {
    let (mut from_ssh, mut to_ssh) = (session.try_clone()?, session);
    let up = move || {
        let _ = pass(&mut io::stdin().lock(), &mut from_ssh);
        let _ = from_ssh.shutdown(Shutdown::Both);
    };
    threads::spawn("relay", up)?;
    let _ = pass(&mut to_ssh, &mut io::stdout().lock());
    // The other thread waits for ssh, and ends with the process.
    Ok(())
}

fn pass(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut piece = [0; PIECE_BYTES];
    loop {
        match from.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                to.write_all(&piece[..count])?;
                to.flush()?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_pass_until_an_end() {
        let (mut near, mut relayed) = UnixStream::pair().unwrap();
        near.write_all(&[7; 100_000]).unwrap();
        near.shutdown(Shutdown::Write).unwrap();
        let mut out = Vec::new();
        pass(&mut relayed, &mut out).unwrap();
        assert_eq!(out, [7; 100_000]);
    }

    #[test]
    fn there_is_none_unless_it_is_wanted() {
        assert!(Relay::pair(false).is_none());
        let Relay { mut relay, session } = Relay::pair(true).unwrap();
        drop(session);
        assert_eq!(relay.read(&mut [0; 1]).unwrap(), 0, "the session has ended");
    }
}
