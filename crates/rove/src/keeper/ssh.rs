//! The keeper's work: it runs ssh as the client did, and asks the host for the session.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Stdio;
use std::time::Duration;

use rove_ssp::Time;
use rove_streams::clock;
use tokio::io::{AsyncReadExt, Interest};
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStderr};
use tokio::task::JoinHandle;

use super::message::{Reply, Whereabouts, Wish};
use crate::bootstrap::{self, Goal, Reader};
use crate::os::clock::Clock;
use crate::os::handover::send_with;
use crate::ssh::{Conversation, Login};

/// How long one ssh may take.
const SSH_WAIT: Duration = Duration::from_secs(30);

/// The least time from one ssh to the next. A client waits for as long by itself.
pub(super) const SSH_EACH: Duration = Duration::from_secs(9);

/// What ssh says in its own name that is kept, and how long it is waited for.
const SAID_BYTES_MAX: u64 = 4096;
const SAID_WAIT: Duration = Duration::from_millis(200);

/// Said to OpenSSH besides, so that it never waits for its user, nor long for a host. They come first, and so count.
const OPTIONS: [&str; 4] = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=10"];

/// Against a master over a connection that is dead: it would never answer.
const NO_MASTER: [&str; 2] = ["-o", "ControlPath=none"];

/// Words of an ssh that has reached sshd and did not get in (its messages are not translated).
const REFUSALS: [&str; 4] = [
    "Permission denied",
    "Host key verification failed",
    "Too many authentication failures",
    "No more authentication methods",
];

/// Answers wishes, the first one first, until the client is gone. ssh is run once in each `pause` at most.
pub(super) async fn serve(
    client: UnixStream,
    first: [u8; Wish::BYTES],
    login: Login,
    pause: Duration,
) -> io::Result<()> {
    let clock = Clock::start();
    let mut last: Option<Time> = None;
    let mut octets = first;
    for turn in 0_u32.. {
        let wish = Wish::decode(&octets).ok_or(io::ErrorKind::InvalidData)?;
        let is_early = last.is_some_and(|last| clock.now().since(last) < pause);
        let (reply, way) = match is_early {
            true => (Reply::Nothing, None),
            false => {
                last = Some(clock.now());
                tokio::select! {
                    found = find(&login, wish, turn) => found.unwrap_or((Reply::Nothing, None)),
                    // It waits for its answer, so that there is nothing to read but its end.
                    () = wait_readable(&client) => return Ok(()),
                }
            }
        };
        send(&client, &reply, way.as_ref()).await?;
        octets = next_wish(&client).await?;
    }
    Ok(())
}

/// ssh's output and input.
type Way = (OwnedFd, OwnedFd);

async fn send(client: &UnixStream, reply: &Reply, way: Option<&Way>) -> io::Result<()> {
    let octets = reply.encode();
    let files: Vec<_> =
        way.into_iter().flat_map(|(output, input)| [output.as_fd(), input.as_fd()]).collect();
    let mut sent = 0;
    while sent < octets.len() {
        let given = if sent == 0 { files.as_slice() } else { &[] };
        let step =
            client.async_io(Interest::WRITABLE, || send_with(client, &octets[sent..], given));
        sent += step.await?;
    }
    Ok(())
}

/// Waits for something to read, or the end. [`UnixStream::readable`] alone does not: it is ready after each read that did
/// not find the socket empty.
async fn wait_readable(client: &UnixStream) {
    while client.readable().await.is_ok() {
        match client.try_read(&mut [0]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            _ => return,
        }
    }
}

async fn next_wish(client: &UnixStream) -> io::Result<[u8; Wish::BYTES]> {
    let (mut octets, mut count) = ([0; Wish::BYTES], 0);
    while count < octets.len() {
        client.readable().await?;
        match client.try_read(&mut octets[count..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(more) => count += more,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(octets)
}

/// Runs ssh once.
async fn find(login: &Login, wish: Wish, turn: u32) -> io::Result<(Reply, Option<Way>)> {
    let mut login = login.again().map_err(io::Error::other)?;
    let master = if turn % 2 == 1 { &NO_MASTER[..] } else { &[] };
    let options = OPTIONS.iter().chain(master).map(OsString::from);
    login.options.splice(0..0, options);
    login.request.key = None;
    login.request.command = Vec::new();
    login.request.goal = Goal::Ask(format!("--join={}:{}", wish.conn, wish.port));
    let report = login.config().await.unwrap_or_default().to_owned();
    let mut command = login.remote(&login.request.remote_command(), &report);
    command.env("SSH_ASKPASS_REQUIRE", "never").kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let input = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let said = child.stderr.take().map(|said| tokio::spawn(read_said(said)));
    let mut reader = Reader::new(login.request.nonce.clone());
    let mut conversation = Conversation { child, output, reader: &mut reader };
    let listened = conversation.listen(|reader| reader.carried().is_some());
    let heard = clock::within(SSH_WAIT, listened).await;
    let Conversation { child, output, .. } = conversation;
    if !matches!(heard, Ok(Ok(_))) {
        return Ok((Reply::Nothing, None));
    }
    if reader.carried().is_some() {
        let way = (output.into_owned_fd()?, input.into_owned_fd()?);
        tokio::spawn(wait_for(child));
        return Ok((Reply::Way(reader.take_rest()), Some(way)));
    }
    let reply = match reader.finish() {
        Ok(Some(reply)) => match reply.answer {
            bootstrap::Answer::Denied(why) if why == "gone" => {
                let there = reply.facts.get("AT").and_then(Whereabouts::of_fact);
                there.map_or(Reply::Nothing, Reply::Gone)
            }
            _ => Reply::Nothing,
        },
        // It was let in.
        _ if reader.begun() => Reply::Nothing,
        _ => match is_refused(said).await {
            true => Reply::NeedsUser,
            false => Reply::Nothing,
        },
    };
    Ok((reply, None))
}

/// It ends once both files are closed everywhere, unless it serves others as their ControlMaster.
async fn wait_for(mut child: Child) {
    let _ = child.wait().await;
}

/// Reads all that ssh says, and keeps its beginning.
async fn read_said(mut said: ChildStderr) -> String {
    let mut kept = Vec::new();
    let _ = (&mut said).take(SAID_BYTES_MAX).read_to_end(&mut kept).await;
    // An ssh that stays must not find nobody who reads.
    tokio::spawn(async move { tokio::io::copy(&mut said, &mut tokio::io::sink()).await });
    String::from_utf8_lossy(&kept).into_owned()
}

async fn is_refused(said: Option<JoinHandle<String>>) -> bool {
    let Some(said) = said else { return false };
    let said = clock::within(SAID_WAIT, said).await.ok().and_then(Result::ok).unwrap_or_default();
    REFUSALS.iter().any(|words| said.contains(words))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rove_ssp::ConnId;
    use tokio::io::AsyncWriteExt;

    use super::*;
    use crate::bootstrap::nonce::Nonce;
    use crate::bootstrap::{Bind, CostProfile, Purpose, Request, Server};
    use crate::ssh::{Family, Via, Wires};

    /// How long anything may take on a busy machine.
    const LIMIT: Duration = Duration::from_secs(60);

    /// Says after a while that no session knows the client.
    const HOST: &str = "f() { sleep 0.2; n=${1#--nonce=}; \
        echo \"ROVE AT $n here 0123456789abcdef 5\"; echo \"ROVE NO $n gone\"; }; f";

    /// A login on this machine, where this line is the server.
    fn login(server: &str) -> Login {
        Login {
            via: Via::Local,
            options: Vec::new(),
            host: "here".into(),
            family: Family::Any,
            wires: Wires::Native,
            hosts: None,
            report: Arc::default(),
            is_ssh_alone: false,
            instead: None,
            meant: None,
            request: Request {
                nonce: Nonce::new([0; 16]),
                key: None,
                server: Server::Rove(server.into()),
                bind: Bind::default(),
                ports: None,
                colours: 0,
                locale: Vec::new(),
                purpose: Purpose::Shell,
                agent: false,
                tariff: CostProfile::Flat,
                carry: false,
                goal: Goal::Any,
                host: String::new(),
                command: Vec::new(),
            },
        }
    }

    async fn reply(client: &mut UnixStream) -> Reply {
        let mut octets = Vec::new();
        loop {
            if let Some(reply) = Reply::decode(&octets).unwrap() {
                return reply;
            }
            let read = clock::within(LIMIT, client.read_buf(&mut octets)).await;
            assert_ne!(read.unwrap().unwrap(), 0, "the keeper has ended");
        }
    }

    #[tokio::test]
    async fn each_question_is_answered_until_the_client_is_gone() {
        let (mut client, own) = UnixStream::pair().unwrap();
        let wish = Wish { conn: ConnId::new(7), port: 60_001 }.encode();
        let keeper = tokio::spawn(serve(own, wish, login(HOST), Duration::ZERO));
        let there = Whereabouts { machine: "0123456789abcdef".into(), uptime: 5 };
        assert_eq!(reply(&mut client).await, Reply::Gone(there.clone()));
        for _ in 0..2 {
            client.write_all(&wish).await.unwrap();
            assert_eq!(reply(&mut client).await, Reply::Gone(there.clone()));
        }
        // While it asks, too.
        client.write_all(&wish).await.unwrap();
        drop(client);
        let ended = clock::within(LIMIT, keeper).await;
        assert!(ended.is_ok(), "it ends with its client");
    }
}
