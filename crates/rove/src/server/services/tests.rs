//! Both ends of every service, joined by memory.

mod commands;
mod forwardings;

use std::path::PathBuf;
use std::time::Duration;

use rove_session::Escape;
use rove_streams::clock;
use rove_term::Size;
use rustix::process::Signal;
use tokio::io::{AsyncWrite, DuplexStream, duplex};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::super::locale;
use super::super::login::Environment;
use super::super::options::{self, Request as Asked};
use super::*;
use crate::copy::receiver::Waits;
use crate::notice::{NOTICES_MAX, Notice};
use crate::os::modes::Modes;
use crate::os::process::CoreLimit;
use crate::server::agent::Socket;
use crate::server::login::Surroundings;
use crate::server::program::Program;
use crate::services::calls::Callbacks;
use crate::services::exec::frame::SignalName;
use crate::services::exec::{self as client, Command, End, Ends, Input};
use crate::services::forward::agent;
use crate::services::forward::spec::Spec;
use crate::services::forward::wishes::{ForwardRequests, Ready, Side};
use crate::services::{Run, Terminal};

/// A generous limit for events that happen soon or never.
const LIMIT: Duration = Duration::from_secs(60);

async fn soon<T>(what: impl Future<Output = T>) -> T {
    clock::within(LIMIT, what).await.expect("it happens in time")
}

pub(in super::super) fn config(agent: Option<Socket>) -> ServiceConfig {
    let cores = CoreLimit::current();
    ServiceConfig { surroundings: surroundings("/bin/sh"), cores, agent, waits: Waits::Silent }
}

fn surroundings(shell: &str) -> Surroundings {
    let Ok(Asked::Serve(options)) = options::parse(Program::Rove, &["--nonce=x".into()]) else {
        panic!("the words are right");
    };
    let inherited = sys_environment(shell);
    Surroundings::of(&options, &inherited, None, locale::codeset)
}

/// The least a shell needs: its login scripts are not read.
fn sys_environment(shell: &str) -> Environment {
    let pairs = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", "/"), ("SHELL", shell)];
    pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

/// A client whose server serves.
struct Joined {
    streams: Streams,
    server: Streams,
    calls: Callbacks,
    news: mpsc::Receiver<Notice>,
    _serving: [JoinHandle<()>; 2],
}

fn joined(config: ServiceConfig, ready: Ready) -> Joined {
    let (streams, server) = rove_streams::in_memory();
    let calls = Callbacks::default();
    let (tell, news) = mpsc::channel(NOTICES_MAX);
    let serving = [
        tokio::spawn(serve(server.clone(), config, Arc::default())),
        tokio::spawn(ready.serve(streams.clone(), calls.clone(), tell)),
    ];
    Joined { streams, server, calls, news, _serving: serving }
}

/// Forwardings; the system chooses the ports that listen here ([`Ready::ports`]), not the specification.
async fn ready(forwards: &[(Side, &str)], agent: Option<PathBuf>) -> Ready {
    let forwards = forwards.iter().map(|(side, text)| {
        let spec = match side {
            Side::Local => Spec::local(text).or_else(|_| Spec::dynamic(text)),
            Side::Remote => Spec::remote(text),
        };
        let mut spec = spec.unwrap();
        if let (Side::Local, Listen::Tcp { port, .. }) = (side, &mut spec.listen) {
            *port = 0;
        }
        (*side, spec)
    });
    ForwardRequests { forwards: forwards.collect(), agent, ..ForwardRequests::default() }
        .listen()
        .await
        .unwrap()
}

/// A command's end, its output and its errors.
async fn ran(line: &str, input: &[u8], terminal: Option<Terminal>) -> (End, Vec<u8>, String) {
    let joined = joined(config(None), ready(&[], None).await);
    let (output, mut shown) = duplex(1 << 16);
    let (errors, mut complaints) = duplex(1 << 16);
    let command = command(line, terminal);
    let ends = Ends { input, output, errors };
    let (mut out, mut err) = (Vec::new(), String::new());
    let (end, _, _) = soon(async {
        tokio::join!(
            client::run(&joined.streams, &joined.calls, command, ends),
            shown.read_to_end(&mut out),
            complaints.read_to_string(&mut err),
        )
    })
    .await;
    (end.unwrap(), out, err)
}

/// A terminal of this name, set as the server has it.
fn terminal_of(name: &str) -> Terminal {
    Terminal { size: Size::clamped(7, 30), term: name.into(), modes: Modes::default() }
}

fn command(line: &str, terminal: Option<Terminal>) -> Command {
    Command { run: Run::Line(line.into()), input: Input::Ours, terminal, escape: Escape::None }
}

#[tokio::test]
async fn requests_that_are_none_are_given_up() {
    let joined = joined(config(None), ready(&[], None).await);
    for request in [&b""[..], b"\xff", b"\x05\0\0\0\0", b"\x07"] {
        let mut channel = joined.streams.open(request).await.unwrap();
        let error = soon(channel.read_u8()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{request:?}");
    }
}

/// Commands and copies are kept for half a day, and forwardings for three, for a client that is silent.
#[test]
fn what_is_kept_for_a_silent_client() {
    let connect = Request::ConnectUnix("/socket".into());
    let copy = Request::Copy(Vec::new());
    for (requests, kept) in [
        (vec![], FORWARDINGS_KEPT),
        (vec![connect.clone()], FORWARDINGS_KEPT),
        (vec![copy.clone()], COMMAND_KEPT),
        (vec![copy, connect], COMMAND_KEPT),
    ] {
        let asked = super::Requested::default();
        requests.iter().for_each(|request| asked.note(request));
        assert_eq!(asked.kept(), kept, "{requests:?}");
    }
}
