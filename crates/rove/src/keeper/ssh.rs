//! The keeper's work: it runs ssh as the client did, and asks the host for the session.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rove_streams::clock;
use tokio::io::{AsyncReadExt, Interest};
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStderr};
use tokio::task::JoinHandle;

use super::backoff::Backoff;
use super::message::{Reply, Whereabouts, Wish};
use crate::bootstrap::{self, Goal, Reader};
use crate::os::clock::Clock;
use crate::os::handover::send_with;
use crate::sessions::ask::is_alive;
use crate::ssh::report::control_path;
use crate::ssh::{Conversation, Login};

/// How long one ssh may take.
const SSH_WAIT: Duration = Duration::from_secs(30);

/// Octets that are kept of what ssh says in its own name, the last ones, and how long its end is waited for.
const SAID_BYTES_MAX: usize = 4096;
const SAID_WAIT: Duration = Duration::from_millis(200);

/// Said to OpenSSH besides, so that it never waits for its user, nor long for a host, and is no other ssh's master: it
/// may be killed. They come first, and so count.
const OPTIONS: [&str; 6] =
    ["-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ControlMaster=no"];

/// How long a master is given for the first word from the host. One over a connection that is dead never answers.
pub(super) const MASTER_WAIT: Duration = Duration::from_secs(5);

/// Against the master.
const NO_MASTER: [&str; 2] = ["-o", "ControlPath=none"];

/// Words of an ssh that has reached sshd and did not get in (its messages are not translated).
const REFUSALS: [&str; 4] = [
    "Permission denied (",
    "Host key verification failed",
    "Too many authentication failures",
    "No more authentication methods",
];

/// Words of an ssh that has reached nobody.
const UNREACHED: [&str; 2] = ["ssh: connect to host ", "ssh: Could not resolve hostname "];

/// Answers wishes, the first one first, until the client is gone. A wish that comes while ssh runs takes the place of the
/// one before, which has no answer: the network is another, and that ssh may stand still.
pub(super) async fn serve(
    client: UnixStream,
    first: [u8; Wish::BYTES],
    login: Login,
    mut waits: Waits,
) -> io::Result<()> {
    let clock = Clock::start();
    let mut octets = first;
    let mut master = Master { wait: waits.master, has_failed: false };
    loop {
        let wish = Wish::decode(&octets).ok_or(io::ErrorKind::InvalidData)?;
        let (reply, way) = match waits.backoff.begin(clock.now()) {
            Err(wait) => (Reply::Later(seconds(wait)), None),
            Ok(()) => tokio::select! {
                found = find(&login, wish, &mut master) => {
                    let found = found.unwrap_or((Reply::Nothing, None));
                    waits.backoff.ended(&found.0);
                    found
                }
                next = next_wish(&client) => {
                    octets = next?;
                    // It stood still, or was of a network that is gone.
                    waits.backoff.ended(&Reply::Unreached);
                    continue;
                }
            },
        };
        send(&client, &reply, way.as_ref()).await?;
        // The client's alone from here on: what it closes is closed.
        drop(way);
        octets = next_wish(&client).await?;
    }
}

/// No fewer whole seconds than this.
fn seconds(wait: Duration) -> u16 {
    u16::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(u16::MAX)
}

/// How long a keeper waits, and for what.
pub(super) struct Waits {
    /// From one ssh to the next.
    pub(super) backoff: Backoff,
    /// For the first word over a master's connection.
    pub(super) master: Duration,
}

/// ssh's output and input.
type Way = (OwnedFd, OwnedFd);

async fn send(client: &UnixStream, reply: &Reply, way: Option<&Way>) -> io::Result<()> {
    let octets = reply.encode();
    // What is too long for a way is encoded as another reply.
    let way = way.filter(|_| matches!(Reply::decode(&octets), Ok(Some(Reply::Way(_)))));
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

/// The user's own master.
struct Master {
    /// How long it is given for the first word from the host.
    wait: Duration,
    /// The last ssh over its connection found nothing, though the host spoke. The next does without it.
    has_failed: bool,
}

/// Runs ssh, once more where the user's own master does not answer.
async fn find(login: &Login, wish: Wish, master: &mut Master) -> io::Result<(Reply, Option<Way>)> {
    let mut login = login.again().map_err(io::Error::other)?;
    login.request.key = None;
    login.request.command = Vec::new();
    login.request.goal = Goal::Ask(format!("--join={}:{}", wish.conn, wish.port));
    login.options.splice(0..0, OPTIONS.map(OsString::from));
    let report = login.config().await.unwrap_or_default().to_owned();
    let is_there = control_path(&report).is_some_and(|path| matches!(is_alive(path), Ok(true)));
    let goes_first = is_there && !std::mem::take(&mut master.has_failed);
    if goes_first && let Some(found) = run(&login, &report, Some(master.wait)).await? {
        master.has_failed = found.0 == Reply::Nothing;
        return Ok(found);
    }
    login.options.splice(0..0, NO_MASTER.map(OsString::from));
    let found = run(&login, &report, None).await?.unwrap_or((Reply::Nothing, None));
    // A master that is slow today may be the only one that needs nobody.
    let is_refused = is_there && found.0 == Reply::NeedsUser;
    Ok(if is_refused { (Reply::Nothing, None) } else { found })
}

/// Runs ssh once. `None` if it has not begun to run the command within this time.
async fn run(
    login: &Login,
    report: &str,
    begin_wait: Option<Duration>,
) -> io::Result<Option<(Reply, Option<Way>)>> {
    let mut command = login.remote(&login.request.remote_command(), report);
    // Before 8.4 a jump host's ssh without a terminal runs the second.
    command.env("SSH_ASKPASS_REQUIRE", "never").env("SSH_ASKPASS", "/bin/false");
    command.kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let input = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let mut said = Said::read(child.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?);
    let mut reader = Reader::new(login.request.nonce.clone());
    let mut conversation = Conversation { child, output, reader: &mut reader };
    if let Some(wait) = begin_wait
        && clock::within(wait, conversation.listen(Reader::begun)).await.is_err()
    {
        return Ok(None);
    }
    let listened = conversation.listen(|reader| reader.carried().is_some());
    let heard = clock::within(SSH_WAIT, listened).await;
    let Conversation { child, output, .. } = conversation;
    if !matches!(heard, Ok(Ok(_))) {
        return Ok(Some((Reply::Nothing, None)));
    }
    if reader.carried().is_some() {
        let way = (output.into_owned_fd()?, input.into_owned_fd()?);
        tokio::spawn(wait_for(child));
        return Ok(Some((Reply::Way(reader.take_rest()), Some(way))));
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
        _ => said.reply().await,
    };
    Ok(Some((reply, None)))
}

/// It ends once both files are closed everywhere.
async fn wait_for(mut child: Child) {
    let _ = child.wait().await;
}

/// What ssh says in its own name.
struct Said {
    kept: Arc<Mutex<Vec<u8>>>,
    reading: JoinHandle<()>,
}

impl Said {
    /// Reads all of it: an ssh that stays must not find that nobody does.
    fn read(mut from: ChildStderr) -> Said {
        let kept: Arc<Mutex<Vec<u8>>> = Arc::default();
        let own = Arc::clone(&kept);
        let reading = tokio::spawn(async move {
            let mut piece = [0; 1024];
            while let Ok(count @ 1..) = from.read(&mut piece).await {
                let mut kept = own.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(&piece[..count]);
                let surplus = kept.len().saturating_sub(SAID_BYTES_MAX);
                kept.drain(..surplus);
            }
        });
        Said { kept, reading }
    }

    /// Why ssh, which has ended, was not let in.
    async fn reply(&mut self) -> Reply {
        // What it has left behind may keep its end open.
        let _ = clock::within(SAID_WAIT, &mut self.reading).await;
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let said = String::from_utf8_lossy(&kept);
        let says = |all: &[&str]| all.iter().any(|words| said.contains(words));
        match (says(&REFUSALS), says(&UNREACHED)) {
            (true, _) => Reply::NeedsUser,
            (false, true) => Reply::Unreached,
            (false, false) => Reply::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use rove_ssp::ConnId;
    use tokio::io::AsyncWriteExt;
    use tokio::process::Command;

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
                keep: None,
                goal: Goal::Any,
                host: String::new(),
                command: Vec::new(),
            },
        }
    }

    /// Nothing is waited for, and a master for a moment.
    fn waits() -> Waits {
        let master = Duration::from_millis(300);
        Waits { backoff: Backoff::new(Duration::ZERO), master }
    }

    /// A directory of its own.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let name = format!("rove-keeper-{name}-{}", std::process::id());
            let directory = std::env::temp_dir().join(name);
            let _ = std::fs::remove_dir_all(&directory);
            std::fs::create_dir(&directory).unwrap();
            Scratch(directory)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
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
        let keeper = tokio::spawn(serve(own, wish, login(HOST), waits()));
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

    #[tokio::test]
    async fn another_wish_ends_an_ssh_that_stands_still() {
        let scratch = Scratch::new("wish");
        // The first one stands still, and the second answers.
        let first = scratch.0.join("first");
        let host =
            format!("if mkdir {} 2>/dev/null; then exec sleep 100; fi; {HOST}", first.display());
        let (mut client, own) = UnixStream::pair().unwrap();
        let wish = Wish { conn: ConnId::new(7), port: 60_001 }.encode();
        let keeper = tokio::spawn(serve(own, wish, login(&host), waits()));
        let begun = async {
            while !first.exists() {
                clock::sleep(Duration::from_millis(1)).await;
            }
        };
        clock::within(LIMIT, begun).await.unwrap();
        client.write_all(&wish).await.unwrap();
        assert!(matches!(reply(&mut client).await, Reply::Gone(_)));
        drop(client);
        assert!(clock::within(LIMIT, keeper).await.is_ok());
    }

    #[tokio::test]
    async fn a_wish_that_is_too_early_has_a_time() {
        let (mut client, own) = UnixStream::pair().unwrap();
        let wish = Wish { conn: ConnId::new(7), port: 60_001 }.encode();
        let waits = Waits { backoff: Backoff::new(LIMIT), ..waits() };
        let keeper = tokio::spawn(serve(own, wish, login(HOST), waits));
        assert!(matches!(reply(&mut client).await, Reply::Gone(_)));
        client.write_all(&wish).await.unwrap();
        assert!(matches!(reply(&mut client).await, Reply::Later(1..=60)));
        drop(client);
        assert!(clock::within(LIMIT, keeper).await.is_ok());
    }

    #[tokio::test]
    async fn a_master_that_does_not_answer_is_left() {
        let scratch = Scratch::new("master");
        let [control, program, script] =
            ["control", "ssh", "script"].map(|name| scratch.0.join(name));
        // Called ssh, it is a shell that runs this.
        std::os::unix::fs::symlink("/bin/sh", &program).unwrap();
        let text = format!(
            "case \"$*\" in\n\
             -G*) echo controlpath {};;\n\
             *ControlPath=none*) for last; do :; done; exec sh -c \"$last\";;\n\
             *) exec sleep 100;;\n\
             esac\n",
            control.display()
        );
        std::fs::write(&script, text).unwrap();
        let via = Via::Ssh(vec![program.into(), script.into()]);
        let login = Login { via, ..login(HOST) };
        let wish = Wish { conn: ConnId::new(7), port: 60_001 };
        let _master = std::os::unix::net::UnixListener::bind(&control).unwrap();
        for has_failed in [false, true] {
            let mut master = Master { wait: Duration::from_millis(300), has_failed };
            let found = find(&login, wish, &mut master);
            let (reply, _) = clock::within(LIMIT, found).await.unwrap().unwrap();
            assert!(matches!(reply, Reply::Gone(_)), "{reply:?}");
        }
    }

    #[tokio::test]
    async fn a_refusal_is_seen_while_something_keeps_the_end_open() {
        let denied = "u@h: Permission denied (publickey).";
        let says = |words: &str| format!("echo '{words}' >&2");
        for (script, expected) in [
            (format!("echo '{denied}' >&2; exec sleep 100"), Reply::NeedsUser),
            (format!("printf '%05000d\n{denied}\n' 0 >&2; exec sleep 100"), Reply::NeedsUser),
            (says(denied), Reply::NeedsUser),
            (says("ssh: connect to host h port 22: No route to host"), Reply::Unreached),
            (says("ssh: connect to host h port 22: Permission denied"), Reply::Unreached),
            (says("ssh: Could not resolve hostname h: Try again"), Reply::Unreached),
            (says("Connection closed by 192.0.2.1 port 22"), Reply::Nothing),
        ] {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", &script]).stderr(Stdio::piped()).kill_on_drop(true);
            let mut child = command.spawn().unwrap();
            let mut said = Said::read(child.stderr.take().unwrap());
            if expected == Reply::NeedsUser {
                let is_there = async {
                    while !said.kept.lock().unwrap().ends_with(b".\n") {
                        clock::sleep(Duration::from_millis(1)).await;
                    }
                };
                clock::within(LIMIT, is_there).await.unwrap();
            }
            assert_eq!(said.reply().await, expected, "{script}");
        }
    }
}
