//! A process beside a session's client that can run the user's ssh again when UDP does not answer any more.
//!
//! It is split off before the session has keys and before anything was read from the network, and is not confined, so
//! that the client can be (threats row 38). It takes two numbers from the client, which connection and which port
//! are meant: an attacker who took the client over can have the user's own ssh run to the same host, as seldom as
//! `backoff` lets it, and nothing more. It ends with the client.

mod backoff;
pub(crate) mod message;
mod ssh;

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::task::{Context, Poll, ready};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use self::backoff::{Backoff, PAUSE};
use self::message::{Reply, Wish};
use self::ssh::{MASTER_WAIT, Waits};
use crate::failure::Failure;
use crate::os;
use crate::os::handover::receive_with;
use crate::os::process::Fork;
use crate::runtime::in_runtime;
use crate::ssh::Login;

/// Octets of replies read at a time.
const PIECE_BYTES: usize = 4096;

/// The client's end: asks its keeper.
#[derive(Debug)]
pub(crate) struct Keeper(UnixStream);

/// The same, waited for by the client's driver.
#[derive(Debug)]
pub(crate) struct Asked {
    socket: AsyncFd<OwnedFd>,
    unread: Vec<u8>,
    files: Vec<OwnedFd>,
}

/// What a keeper has answered.
#[derive(Debug)]
pub(crate) enum Answer {
    /// ssh's output and input, and the octets that came already.
    Way(OwnedFd, OwnedFd, Vec<u8>),
    /// Any other reply.
    Other(Reply),
}

impl Keeper {
    /// Splits off a keeper for sessions by this login. Only while this process has one thread.
    pub(crate) fn start(login: &Login) -> io::Result<Keeper> {
        let (client, own) = UnixStream::pair()?;
        // Else what is still to be written would be so twice.
        io::stdout().flush()?;
        // It is no child of the client, which waits for none: one that ends early would stay as a zombie.
        match os::process::detach()? {
            Fork::Parent { child } => {
                os::process::wait_for(child)?;
                Ok(Keeper(client))
            }
            Fork::Child => {
                drop(client);
                // Nobody is told of errors: the client sees that nobody answers.
                if let Ok(Fork::Child) = os::process::detach() {
                    let _ = keep(own, login.clone());
                }
                std::process::exit(0)
            }
        }
    }

    /// Needs a tokio runtime with I/O.
    pub(crate) fn watch(self) -> io::Result<Asked> {
        self.0.set_nonblocking(true)?;
        let socket = os::watch(self.0.into(), Interest::READABLE)?;
        Ok(Asked { socket, unread: Vec::new(), files: Vec::new() })
    }
}

impl Asked {
    /// Asks. A question before has no answer any more, if it has none yet.
    pub(crate) fn ask(&self, wish: Wish) -> io::Result<()> {
        rustix::io::write(self.socket.get_ref(), &wish.encode())?;
        Ok(())
    }

    /// Ready with the answer. An error: nobody will answer any more.
    pub(crate) fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Answer>> {
        loop {
            let decoded = Reply::decode(&self.unread);
            if let Some(reply) = decoded.map_err(|_| io::ErrorKind::InvalidData)? {
                // Where a question took the place of another, the answer to it may wait behind that to the other.
                self.unread.drain(..reply.encode().len());
                return Poll::Ready(self.answer(reply));
            }
            let mut guard = ready!(self.socket.poll_read_ready(cx))?;
            let mut piece = [0; PIECE_BYTES];
            match guard.try_io(|socket| receive_with(socket.get_ref(), &mut piece)) {
                Ok(Ok((0, _))) => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                Ok(Ok((count, files))) => {
                    self.unread.extend_from_slice(&piece[..count]);
                    self.files.extend(files);
                }
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(error)) => return Poll::Ready(Err(error)),
                Err(_would_block) => {}
            }
        }
    }

    fn answer(&mut self, reply: Reply) -> io::Result<Answer> {
        let Reply::Way(first) = reply else { return Ok(Answer::Other(reply)) };
        let mut files = self.files.drain(..self.files.len().min(2));
        match (files.next(), files.next()) {
            (Some(output), Some(input)) => Ok(Answer::Way(output, input, first)),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// Waits for wishes, and does what they ask for, until the client is gone.
fn keep(mut client: UnixStream, login: Login) -> io::Result<()> {
    leave_terminal()?;
    // Most sessions never ask: until one does, this process is no more than its copy of the client's memory.
    let mut first = [0; Wish::BYTES];
    client.read_exact(&mut first)?;
    client.set_nonblocking(true)?;
    let kept = in_runtime(async {
        let client = tokio::net::UnixStream::from_std(client).map_err(|_| ended())?;
        let waits = Waits { backoff: Backoff::new(PAUSE), master: MASTER_WAIT };
        ssh::serve(client, first, login, waits).await.map_err(|_| ended())
    });
    drop(kept);
    Ok(())
}

fn ended() -> Failure {
    Failure::new("the client is gone", "")
}

/// Its terminal stays the client's alone: a window that is closed is seen to be.
fn leave_terminal() -> io::Result<()> {
    let null = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::os::fd::AsFd as _;

    use super::*;
    use crate::os::handover::send_with;

    #[tokio::test]
    async fn answers_that_came_together_are_told_apart() {
        let (client, own) = UnixStream::pair().unwrap();
        let mut asked = Keeper(client).watch().unwrap();
        let later = Reply::Later(7).encode();
        send_with(&own, &later, &[]).unwrap();
        let (output, input) = UnixStream::pair().unwrap();
        let way = Reply::Way(b"first".to_vec()).encode();
        send_with(&own, &way, &[output.as_fd(), input.as_fd()]).unwrap();
        send_with(&own, &Reply::Nothing.encode(), &[]).unwrap();
        drop(own);
        let mut answers = Vec::new();
        while let Ok(answer) = poll_fn(|cx| asked.poll_answer(cx)).await {
            answers.push(answer);
        }
        let [
            Answer::Other(Reply::Later(7)),
            Answer::Way(_, _, first),
            Answer::Other(Reply::Nothing),
        ] = answers.as_slice()
        else {
            panic!("{answers:?}");
        };
        assert_eq!(first, b"first");
    }
}
