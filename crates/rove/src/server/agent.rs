//! The socket by which programs here reach the remote user's agent. Its path stays the same for the
//! session's life; while no client is heard every question fails at once.

use std::io;
use std::os::unix::net;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rove_streams::Streams;
use rove_streams::clock;
use rustix::fs::Mode;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::os;
use crate::os::local_socket::bind_unix;
use crate::os::socket_file::SocketFile;
use crate::services::Call;
use crate::services::forward::agent::{FAILURE, Question, read, write};

/// Interval of checks whether the client is still heard, while it owes an answer.
const HEARD_LOOK: Duration = Duration::from_millis(200);

/// How long a question may take to reach the client: one heard a moment ago may have gone.
const ARRIVAL_WAIT: Duration = Duration::from_secs(5);

/// The most programs connected at a time, most of which ask nothing for long; more wait.
const PROGRAMS_MAX: usize = 256;

/// The most questions at a time; more wait.
const QUESTIONS_MAX: usize = 16;

/// The pause after a failed accept, mostly for lack of files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A listening socket in a directory that only the user can enter.
#[derive(Debug)]
pub(super) struct Socket {
    listener: net::UnixListener,
    directory: PathBuf,
    path: PathBuf,
    /// Remove both, in the process that stays.
    guards: Option<(SocketFile, Directory)>,
}

impl Socket {
    /// Makes one below the directory for temporary files: the one for a login's files may vanish
    /// with the login, which the session outlives.
    pub(super) fn open() -> io::Result<Socket> {
        let random = u128::from_ne_bytes(*os::random()?);
        let directory = PathBuf::from(format!("/tmp/rove-{random:032x}"));
        rustix::fs::mkdir(&directory, Mode::RWXU)?;
        let path = directory.join("agent");
        let listener = bind_unix(&path)?;
        Ok(Socket { listener, directory, path, guards: None })
    }

    /// Makes this process the one to remove the socket: call it after the fork.
    pub(super) fn own(&mut self) -> io::Result<()> {
        self.guards = Some((SocketFile::of(&self.path)?, Directory(self.directory.clone())));
        Ok(())
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Answers programs until the future is dropped; then the socket goes.
    pub(super) async fn serve(self, streams: Streams) -> io::Result<()> {
        let _guards = self.guards;
        let listener = UnixListener::from_std(self.listener)?;
        let asking = Arc::new(Semaphore::new(QUESTIONS_MAX));
        let mut tasks = JoinSet::new();
        loop {
            while tasks.try_join_next().is_some() {}
            if tasks.len() >= PROGRAMS_MAX {
                tasks.join_next().await;
            }
            match listener.accept().await {
                Ok((program, _)) => {
                    tasks.spawn(converse(program, streams.clone(), Arc::clone(&asking)));
                }
                Err(_busy) => clock::sleep(ACCEPT_PAUSE).await,
            }
        }
    }
}

/// A directory of ours, removed when this is dropped if nothing else is in it.
#[derive(Debug)]
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = rustix::fs::rmdir(&self.0);
    }
}

/// Answers one program's questions.
async fn converse(
    mut program: UnixStream,
    streams: Streams,
    asking: Arc<Semaphore>,
) -> io::Result<()> {
    while let Some(message) = read(&mut program).await? {
        let answer = match Question::of(&message) {
            Some(question) => {
                // Given up before the answer is written: a program that does not read it keeps nobody.
                let _turn = asking.acquire().await.map_err(io::Error::other)?;
                ask(&streams, question, &message).await
            }
            None => None,
        };
        write(&mut program, answer.as_deref().unwrap_or(FAILURE)).await?;
    }
    Ok(())
}

/// Passes a question to the user's agent. `None` without an answer, or if the client is not heard.
async fn ask(streams: &Streams, question: Question, message: &[u8]) -> Option<Vec<u8>> {
    let by = clock::now() + ARRIVAL_WAIT;
    let exchange = async {
        let begun = async {
            let request = Call::Agent.encode();
            let channel = streams.open(&request).await.map_err(io::Error::other)?;
            let (reader, mut writer) = channel.split();
            write(&mut writer, message).await?;
            io::Result::Ok((reader, writer))
        };
        // The writer is kept and not shut down: whoever is told no gives the question up with it, wherever it is. Its
        // end would arrive, however late, and the user be asked on behalf of a program that is long gone.
        let (mut reader, mut writer) = clock::until(by, begun).await??;
        let answer = read(&mut reader);
        tokio::pin!(answer);
        tokio::select! {
            biased;
            answer = &mut answer => return answer,
            // That it is refused is to say that there is an answer.
            arrived = clock::until(by, writer.arrived()) => drop(arrived?),
        }
        answer.await
    };
    let silence = async {
        while streams.is_heard() {
            clock::sleep(HEARD_LOOK).await;
        }
    };
    let answer = tokio::select! {
        biased;
        () = silence => return None,
        answer = exchange => answer.ok()??,
    };
    question.is_answered_by(&answer).then_some(answer)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::services::forward::agent::MESSAGE_BYTES_MAX;

    /// Generous: machines that run tests are slow.
    const LIMIT: Duration = Duration::from_secs(60);

    /// A socket at which each question is answered with this many octets.
    fn answered(octets: usize) -> PathBuf {
        let mut socket = Socket::open().unwrap();
        socket.own().unwrap();
        let path = socket.path().to_owned();
        let (client, server) = rove_streams::in_memory();
        tokio::spawn(socket.serve(server));
        tokio::spawn(async move {
            let mut answer = vec![0; octets];
            answer[0] = 12;
            while let Some((_, mut channel)) = client.accept().await {
                read(&mut channel).await.unwrap();
                write(&mut channel, &answer).await.unwrap();
                channel.shutdown().await.unwrap();
            }
        });
        path
    }

    /// Asks for the keys.
    async fn ask_at(program: &mut UnixStream) {
        write(program, &[11]).await.unwrap();
    }

    async fn is_answered(path: &Path, octets: usize) {
        let mut program = UnixStream::connect(path).await.unwrap();
        ask_at(&mut program).await;
        let answer =
            clock::within(LIMIT, read(&mut program)).await.expect("it is answered in time");
        assert_eq!(answer.unwrap().unwrap().len(), octets);
    }

    /// A refused question is given up: its end must not arrive, or the client would take it as asked.
    #[tokio::test]
    async fn what_is_told_no_is_not_asked() {
        let (client, server) = rove_streams::in_memory();
        let asking = ask(&server, Question::Identities, &[11]);
        let hearing = async {
            let (_, mut channel) = client.accept().await.unwrap();
            assert_eq!(read(&mut channel).await.unwrap().unwrap(), [11]);
            channel
        };
        // As where the client falls silent, the future is dropped.
        let mut channel = tokio::select! {
            answer = asking => panic!("{answer:?}"),
            channel = hearing => channel,
        };
        let end = clock::within(LIMIT, channel.read(&mut [0])).await.expect("it is given up");
        assert_eq!(end.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    }

    #[tokio::test]
    async fn who_asks_nothing_keeps_nobody() {
        let path = answered(5);
        let mut idle = Vec::new();
        for _ in 0..2 * QUESTIONS_MAX {
            idle.push(UnixStream::connect(&path).await.unwrap());
        }
        is_answered(&path, 5).await;
    }

    #[tokio::test]
    async fn who_reads_no_answer_keeps_nobody() {
        let path = answered(MESSAGE_BYTES_MAX);
        let mut unread = Vec::new();
        for _ in 0..QUESTIONS_MAX {
            let mut program = UnixStream::connect(&path).await.unwrap();
            // More than a socket holds, whatever it holds.
            for _ in 0..64 {
                ask_at(&mut program).await;
            }
            unread.push(program);
        }
        is_answered(&path, MESSAGE_BYTES_MAX).await;
    }
}
