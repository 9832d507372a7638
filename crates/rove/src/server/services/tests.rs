//! Both ends of every service, joined by memory.

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
use crate::notice::{NOTICES_MAX, Notice};
use crate::os::CoreLimit;
use crate::os::tty::modes::Modes;
use crate::server::agent::Socket;
use crate::server::login::Surroundings;
use crate::server::program::Program;
use crate::services::Terminal;
use crate::services::calls::Callbacks;
use crate::services::exec::frame::SignalName;
use crate::services::exec::{self as client, Command, End, Ends, Input};
use crate::services::forward::agent;
use crate::services::forward::spec::Spec;
use crate::services::forward::wishes::{ForwardRequests, Ready, Side};

/// A generous limit for events that happen soon or never.
const LIMIT: Duration = Duration::from_secs(60);

async fn soon<T>(what: impl Future<Output = T>) -> T {
    clock::within(LIMIT, what).await.expect("it happens in time")
}

pub(in super::super) fn config(agent: Option<Socket>) -> ServiceConfig {
    ServiceConfig { surroundings: surroundings("/bin/sh"), cores: CoreLimit::current(), agent }
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
        tokio::spawn(serve(server.clone(), config)),
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
    Command { line: line.into(), input: Input::Ours, terminal, escape: Escape::None }
}

#[tokio::test]
async fn commands_and_their_ends() {
    let killed = |signal| End::Killed(SignalName(signal));
    for (line, end, out, err) in [
        ("tr a-z A-Z; echo oh >&2; exit 7", End::Exited(7), "INPUT", "oh\n"),
        ("true", End::Exited(0), "", ""),
        ("kill -TERM $$", killed(Signal::TERM), "", ""),
        ("kill -KILL $$", killed(Signal::KILL), "", ""),
        ("exec 1>&-; cat >&2", End::Exited(0), "", "input"),
        ("echo \"$TERM.$COLORTERM.$SSH_AUTH_SOCK.\"", End::Exited(0), "...\n", ""),
        ("echo a b  c", End::Exited(0), "a b c\n", ""),
    ] {
        let (ended, output, errors) = ran(line, b"input", None).await;
        let output = String::from_utf8(output).unwrap();
        assert_eq!((ended, output.as_str(), errors.as_str()), (end, out, err), "{line}");
    }
}

/// Without a command it is a login shell that reads the input.
#[tokio::test]
async fn a_shell_without_a_command() {
    let (end, output, _) = ran("", b"echo $((20 + 22)); exit 6", None).await;
    assert_eq!((end, output.as_slice()), (End::Exited(6), b"42\n".as_slice()));
}

/// The end of input does not end a command that closed its input.
#[tokio::test]
async fn input_that_nobody_reads() {
    let joined = joined(config(None), ready(&[], None).await);
    let (input, mut writer) = duplex(1 << 16);
    let (output, mut shown) = duplex(1 << 16);
    let ends = Ends { input, output, errors: tokio::io::sink() };
    let line = "exec </dev/null; echo gone; sleep 0.3; echo hi; exit 4";
    let typing = async {
        let mut gone = [0; 5];
        shown.read_exact(&mut gone).await.unwrap();
        // The command's pipe is closed: these meet nobody, and then they end.
        writer.write_all(&[b'x'; 100_000]).await.unwrap();
        drop(writer);
        let mut rest = String::new();
        shown.read_to_string(&mut rest).await.unwrap();
        rest
    };
    let run = client::run(&joined.streams, &joined.calls, command(line, None), ends);
    let (end, rest) = soon(async { tokio::join!(run, typing) }).await;
    assert_eq!((end.unwrap(), rest.as_str()), (End::Exited(4), "hi\n"));
}

#[tokio::test]
async fn a_command_that_does_not_start() {
    for terminal in [None, Some(terminal_of("xterm"))] {
        let mut config = config(None);
        config.surroundings = surroundings("/no/such/shell");
        let joined = joined(config, ready(&[], None).await);
        let ends = Ends { input: &b""[..], output: Vec::new(), errors: tokio::io::sink() };
        let run = client::run(&joined.streams, &joined.calls, command("true", terminal), ends);
        match soon(run).await.unwrap() {
            End::NotStarted(why) => assert!(why.contains("No such file"), "{why}"),
            end => panic!("{end:?}"),
        }
    }
}

/// The end of a command on a terminal loses none of its output to a slow reader.
#[tokio::test]
async fn a_terminal_shows_all_to_its_end() {
    let terminal = terminal_of("xterm");
    let joined = joined(config(None), ready(&[], None).await);
    let (output, mut shown) = duplex(64);
    let ends = Ends { input: &b""[..], output, errors: tokio::io::sink() };
    let line = command("stty -opost; seq 1 600000", Some(terminal));
    let run = client::run(&joined.streams, &joined.calls, line, ends);
    let mut said = String::new();
    let (end, read) = soon(async { tokio::join!(run, shown.read_to_string(&mut said)) }).await;
    read.unwrap();
    assert_eq!(end.unwrap(), End::Exited(0));
    let wanted: String = (1..=600_000).map(|n| format!("{n}\n")).collect();
    assert!(said == wanted, "{} of {} octets", said.len(), wanted.len());
}

/// An answer that was read arrives, though its sender then breaks the connection off.
#[tokio::test]
async fn a_reset_loses_nothing_that_was_read() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let there = listener.local_addr().unwrap().port();
    let forward = format!("127.0.0.1:1:127.0.0.1:{there}");
    let ready = ready(&[(Side::Local, &forward)], None).await;
    let here = ready.ports()[0];
    let _joined = joined(config(None), ready);
    let mut client = TcpStream::connect(("127.0.0.1", here)).await.unwrap();
    client.write_all(&[b'u'; 1000]).await.unwrap();
    let (mut server, _) = soon(listener.accept()).await.unwrap();
    server.write_all(b"413").await.unwrap();
    // With the upload unread, closing resets.
    soon(server.readable()).await.unwrap();
    drop(server);
    let mut answer = Vec::new();
    let _ = soon(client.read_to_end(&mut answer)).await;
    assert_eq!(answer, b"413");
}

#[tokio::test]
async fn every_octet_passes() {
    let mut seed = 1_u32;
    let octets: Vec<u8> = std::iter::repeat_with(|| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 24) as u8
    })
    .take(5 << 20)
    .collect();
    let (end, output, errors) = ran("cat", &octets, None).await;
    assert_eq!((end, errors.as_str()), (End::Exited(0), ""));
    assert!(output == octets);
}

#[tokio::test]
async fn a_terminal_of_ones_own() {
    let terminal = terminal_of("vt220");
    let line = "stty size; echo $TERM; tty; ps -o sid= -p $$ | grep -qw $$ && echo leads; exit 3";
    let (end, output, _) = ran(line, b"", Some(terminal)).await;
    let output = String::from_utf8(output).unwrap();
    let lines: Vec<&str> = output.lines().map(str::trim).collect();
    assert_eq!(end, End::Exited(3), "{output}");
    assert_eq!((lines[0], lines[1], lines[3]), ("7 30", "vt220", "leads"), "{output}");
    assert!(lines[2].starts_with("/dev/pts/"), "{output}");
}

#[tokio::test]
async fn a_terminal_as_the_users() {
    let modes = Modes::from_pairs([(3, 8), (1, 24), (38, 0), (53, 0), (1, 255)]);
    let terminal = Terminal { modes, ..terminal_of("xterm") };
    let (end, output, _) = ran("stty -a", b"", Some(terminal)).await;
    let output = String::from_utf8(output).unwrap();
    assert_eq!(end, End::Exited(0), "{output}");
    for key in ["erase = ^H", "intr = <undef>"] {
        assert!(output.split(';').any(|part| part.trim() == key), "{key} in {output}");
    }
    for mode in ["-ixon", "-echo", "iutf8"] {
        assert!(output.split_whitespace().any(|word| word == mode), "{mode} in {output}");
    }
}

#[tokio::test]
async fn what_is_typed_at_a_terminal_interrupts() {
    let terminal = terminal_of("xterm");
    let joined = joined(config(None), ready(&[], None).await);
    let (input, mut typist) = duplex(64);
    let (output, mut shown) = duplex(1 << 16);
    let ends = Ends { input, output, errors: tokio::io::sink() };
    let command = command("stty -echo; echo ready; exec sleep 1000", Some(terminal));
    let typing = async {
        let mut ready = [0; 7];
        shown.read_exact(&mut ready).await.unwrap();
        assert_eq!(&ready, b"ready\r\n");
        typist.write_all(b"\x03").await.unwrap();
        pending_read(&mut shown).await;
    };
    let run = client::run(&joined.streams, &joined.calls, command, ends);
    let (end, ()) = soon(async { tokio::join!(run, typing) }).await;
    assert_eq!(end.unwrap(), End::Killed(SignalName(Signal::INT)));
}

async fn pending_read(shown: &mut DuplexStream) {
    let mut rest = Vec::new();
    let _ = shown.read_to_end(&mut rest).await;
}

/// A file that rejects writes, as a pipe whose reader has gone.
struct Closed;

impl AsyncWrite for Closed {
    fn poll_write(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        _: &[u8],
    ) -> std::task::Poll<io::Result<usize>> {
        std::task::Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
    }
    fn poll_flush(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        std::task::Poll::Ready(Ok(()))
    }
    fn poll_shutdown(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        std::task::Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn output_that_nobody_reads_ends_the_command() {
    let joined = joined(config(None), ready(&[], None).await);
    let ends = Ends { input: &b""[..], output: Closed, errors: tokio::io::sink() };
    let run = client::run(&joined.streams, &joined.calls, command("exec yes", None), ends);
    assert_eq!(soon(run).await.unwrap(), End::Killed(SignalName(Signal::PIPE)));
}

#[tokio::test]
async fn a_command_left_alone_is_told_to_hang_up() {
    let joined = joined(config(None), ready(&[], None).await);
    let mark = std::env::temp_dir().join(format!("rove-hangup-{}", std::process::id()));
    let _ = std::fs::remove_file(&mark);
    let line = format!(
        "exec 2>&-; trap 'echo hup >{} ; exit' HUP; echo ready; while :; do sleep 0.1; done",
        mark.display()
    );
    let (output, mut shown) = duplex(64);
    let (input, _open) = duplex(64);
    let ends = Ends { input, output, errors: tokio::io::sink() };
    let command = command(&line, None);
    {
        let run = client::run(&joined.streams, &joined.calls, command, ends);
        let mut said = [0; 6];
        soon(async {
            tokio::select! {
                end = run => panic!("it ended by itself: {end:?}"),
                read = shown.read_exact(&mut said) => read.unwrap(),
            }
        })
        .await;
        // The run is dropped here, as when the program is gone.
    }
    soon(async {
        while !std::fs::read_to_string(&mark).is_ok_and(|text| text == "hup\n") {
            clock::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    std::fs::remove_file(&mark).unwrap();
}

/// The third word of /proc/PID/stat: how far a process is; `None` for a number that is nobody's.
fn state_of(process: &str) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.chars().next()
}

/// A command that has ended may leave its output to a daemon. Signals still go to its group, so its number must not
/// become another process's.
#[tokio::test]
async fn the_number_of_a_command_stays_its_own() {
    let joined = joined(config(None), ready(&[], None).await);
    let (output, mut shown) = duplex(1 << 16);
    let (input, _open) = duplex(64);
    let ends = Ends { input, output, errors: tokio::io::sink() };
    let line = "setsid sh -c 'echo $$; exec sleep 1000' & echo $$; exit 0";
    let run = client::run(&joined.streams, &joined.calls, command(line, None), ends);
    let looking = async {
        let mut said = String::new();
        while said.lines().count() < 2 || !said.ends_with('\n') {
            said.push(char::from(shown.read_u8().await.unwrap()));
        }
        let find = |is_asleep: bool| {
            said.lines().find(|process| {
                let words = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
                words.starts_with(b"sleep\0") == is_asleep
            })
        };
        while find(true).is_none() {
            clock::sleep(Duration::from_millis(10)).await;
        }
        let (daemon, leader) = (find(true).unwrap().to_owned(), find(false).unwrap().to_owned());
        while matches!(state_of(&leader), Some(state) if state != 'Z') {
            clock::sleep(Duration::from_millis(10)).await;
        }
        // Whoever takes note of the ends of processes has done so once another command's is known.
        assert_eq!(ran("true", b"", None).await.0, End::Exited(0));
        let state = state_of(&leader);
        let daemon = rustix::process::Pid::from_raw(daemon.parse().unwrap()).unwrap();
        rustix::process::kill_process(daemon, Signal::KILL).unwrap();
        state
    };
    let (end, state) = soon(async { tokio::join!(run, looking) }).await;
    assert_eq!((end.unwrap(), state), (End::Exited(0), Some('Z')));
}

/// A server's reason for a failure is shown, and cannot steer the terminal.
#[tokio::test]
async fn the_words_of_a_hostile_server_are_only_words() {
    let hostile = "\x1b]0;mine\x07\u{9b}2J\r\nno\u{202e}lles\u{2028}\u{e0041}";
    let said = "?]0;mine??2J??no?lles??";
    let (streams, server) = rove_streams::in_memory();
    let calls = Callbacks::default();
    let (tell, _news) = mpsc::channel(NOTICES_MAX);
    tokio::spawn(calls.clone().answer(streams.clone(), None, tell));
    let serving = async {
        let (request, mut channel) = server.accept().await.unwrap();
        assert!(matches!(Request::decode(&request), Some(Request::Connect(_))));
        channel.write_all(&[FAILED]).await.unwrap();
        channel.write_all(hostile.as_bytes()).await.unwrap();
        channel.shutdown().await.unwrap();
        let (request, mut channel) = server.accept().await.unwrap();
        let Some(Request::Exec(exec)) = Request::decode(&request) else { panic!("{request:?}") };
        let mut control = server.open(&Call::Back(exec.id).encode()).await.unwrap();
        let why = crate::services::exec::frame::Frame::NotStarted(hostile.into());
        crate::services::exec::frame::write(&mut control, &why).await.unwrap();
        control.shutdown().await.unwrap();
        channel.shutdown().await.unwrap();
        channel
    };
    let asking = async {
        let to = "localhost:1".parse().unwrap();
        let refused =
            crate::services::forward::reach(&streams, Request::Connect(to)).await.unwrap_err();
        assert_eq!(refused.to_string(), said);
        let ends = Ends { input: &b""[..], output: Vec::new(), errors: tokio::io::sink() };
        let input = Command { input: Input::Nothing, ..command("true", None) };
        client::run(&streams, &calls, input, ends).await.unwrap()
    };
    let (_channel, end) = soon(async { tokio::join!(serving, asking) }).await;
    assert_eq!(end, End::NotStarted(said.into()));
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

/// A server that echoes.
async fn echo() -> (u16, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let task = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = stream.split();
                let _ = tokio::io::copy(&mut read, &mut write).await;
            });
        }
    });
    (port, task)
}

async fn is_echoed(mut connection: impl Duplex) {
    connection.write_all(b"hello").await.unwrap();
    connection.shutdown().await.unwrap();
    let mut said = String::new();
    soon(connection.read_to_string(&mut said)).await.unwrap();
    assert_eq!(said, "hello");
}

/// A port where nobody listens as long as this is held.
fn refusing() -> (u16, socket2::Socket) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    (address.port(), socket)
}

fn path(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("rove-services-{name}-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

#[tokio::test]
async fn local_forwardings() {
    let (there, _echo) = echo().await;
    let socket = path("local");
    let (refused, _held) = refusing();
    let forwards = [
        (Side::Local, format!("127.0.0.1:1:localhost:{there}")),
        (Side::Local, format!("127.0.0.1:2:127.0.0.1:{refused}")),
        (Side::Local, "127.0.0.1:3".to_owned()),
        (Side::Local, format!("{}:127.0.0.1:{there}", socket.display())),
    ];
    let forwards: Vec<_> = forwards.iter().map(|(side, text)| (*side, text.as_str())).collect();
    let ready = ready(&forwards, None).await;
    let [here, nowhere, socks, _] = ready.ports()[..] else { panic!("four listen") };
    let mut joined = joined(config(None), ready);
    is_echoed(TcpStream::connect(("127.0.0.1", here)).await.unwrap()).await;
    is_echoed(UnixStream::connect(&socket).await.unwrap()).await;
    let mut closed = TcpStream::connect(("127.0.0.1", nowhere)).await.unwrap();
    assert!(soon(closed.read_u8()).await.is_err());
    assert_eq!(soon(joined.news.recv()).await, Some(Notice::Settled));
    let told = format!("the host cannot reach [127.0.0.1]:{refused}: connection refused");
    assert_eq!(soon(joined.news.recv()).await, Some(Notice::Warning(told)));

    for (early, answers) in [(
        &b"\x05\x01\x00\x05\x01\x00\x03\x09localhost"[..],
        &b"\x05\x00\x05\x00\x00\x01\0\0\0\0\0\0"[..],
    )] {
        let mut connection = TcpStream::connect(("127.0.0.1", socks)).await.unwrap();
        connection.write_all(early).await.unwrap();
        connection.write_u16(there).await.unwrap();
        let mut answered = vec![0; answers.len()];
        soon(connection.read_exact(&mut answered)).await.unwrap();
        assert_eq!(answered, answers);
        is_echoed(connection).await;
    }
    let mut connection = TcpStream::connect(("127.0.0.1", socks)).await.unwrap();
    connection.write_all(b"\x04\x01").await.unwrap();
    connection.write_u16(refused).await.unwrap();
    connection.write_all(b"\x7f\0\0\x01me\0").await.unwrap();
    let mut answered = Vec::new();
    soon(connection.read_to_end(&mut answered)).await.unwrap();
    assert_eq!(answered, b"\0\x5b\0\0\0\0\0\0");
}

#[tokio::test]
async fn remote_forwardings() {
    let (here, _echo) = echo().await;
    let socket = path("remote");
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let taken = taken.local_addr().map(|at| (at.port(), taken)).unwrap();
    let (refused, _held) = refusing();
    let forwards = [
        (Side::Remote, format!("0:localhost:{here}")),
        (Side::Remote, format!("0:127.0.0.1:{refused}")),
        (Side::Remote, format!("{}:127.0.0.1:{here}", socket.display())),
        (Side::Remote, format!("127.0.0.1:{}:127.0.0.1:{here}", taken.0)),
        (Side::Remote, "0".to_owned()),
    ];
    let forwards: Vec<_> = forwards.iter().map(|(side, text)| (*side, text.as_str())).collect();
    let mut joined = joined(config(None), ready(&forwards, None).await);
    let (mut failed, mut ports) = (Vec::new(), Vec::new());
    loop {
        match soon(joined.news.recv()).await.unwrap() {
            Notice::Settled => break,
            Notice::Failed(text) => failed.push(text),
            Notice::Warning(text) => {
                let port: Option<u16> = text.split(' ').find_map(|word| word.parse().ok());
                ports.push((text, port.expect("the port that the host chose is told")));
            }
            Notice::Note(_) | Notice::Step(_) => {}
        }
    }
    assert_eq!(failed, [format!("the host cannot listen on [127.0.0.1]:{}: it is taken", taken.0)]);
    let port_for = |what: &str| {
        let told = ports.iter().find(|(text, _)| text.ends_with(what));
        told.unwrap_or_else(|| panic!("{what} in {ports:?}")).1
    };
    let there = port_for(&format!("[localhost]:{here}"));
    let nowhere = port_for(&format!("[127.0.0.1]:{refused}"));
    let socks = port_for("where SOCKS says");
    let mut closed = TcpStream::connect(("127.0.0.1", nowhere)).await.unwrap();
    assert!(soon(closed.read_u8()).await.is_err());
    let told = format!("cannot reach [127.0.0.1]:{refused} for the host: connection refused");
    assert_eq!(soon(joined.news.recv()).await, Some(Notice::Warning(told)));
    is_echoed(TcpStream::connect(("127.0.0.1", there)).await.unwrap()).await;
    is_echoed(UnixStream::connect(&socket).await.unwrap()).await;
    let mut connection = TcpStream::connect(("127.0.0.1", socks)).await.unwrap();
    connection.write_all(b"\x05\x01\x00\x05\x01\x00\x01\x7f\0\0\x01").await.unwrap();
    connection.write_u16(here).await.unwrap();
    soon(connection.read_exact(&mut [0; 12])).await.unwrap();
    is_echoed(connection).await;
}

/// A port that another session has got meanwhile is a forwarding that failed, with all that follows from that.
#[tokio::test]
async fn a_lost_port_has_failed() {
    let (streams, server) = rove_streams::in_memory();
    let (tell, mut news) = mpsc::channel(NOTICES_MAX);
    let ready = ready(&[(Side::Remote, "1080")], None).await;
    let _serving = tokio::spawn(ready.serve(streams, Callbacks::default(), tell));
    let (_, mut control) = soon(server.accept()).await.unwrap();
    control.write_all(&[CONNECTED, 0, 0, GIVEN_UP]).await.unwrap();
    let failed = async {
        loop {
            match news.recv().await.unwrap() {
                Notice::Failed(text) => return text,
                Notice::Settled | Notice::Step(_) => {}
                other => panic!("{other:?}"),
            }
        }
    };
    assert_eq!(soon(failed).await, "another session of yours listens on 1080 of the host now");
}

/// The user learns that connections have to wait for others.
#[tokio::test]
async fn a_host_that_serves_no_more_says_so() {
    let (streams, server) = rove_streams::in_memory();
    let (tell, mut news) = mpsc::channel(NOTICES_MAX);
    let ready = ready(&[(Side::Remote, "0")], None).await;
    let _serving = tokio::spawn(ready.serve(streams, Callbacks::default(), tell));
    let (request, control) = soon(server.accept()).await.unwrap();
    let Some(Request::Listen(id, listen)) = Request::decode(&request) else {
        panic!("{request:?}")
    };
    let served = Arc::new(Semaphore::new(1));
    let _listening =
        tokio::spawn(async move { listen_for(id, &listen, control, server, &served).await });
    let mut two: Option<(u16, [TcpStream; 2])> = None;
    loop {
        let Notice::Warning(text) = soon(news.recv()).await.unwrap() else { continue };
        let Some((port, _connections)) = &two else {
            let port: u16 = text.split(' ').find_map(|word| word.parse().ok()).unwrap();
            let connect = async || TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            two = Some((port, [connect().await, connect().await]));
            continue;
        };
        let wanted = format!("192 connections are forwarded at a time; more to {port} wait");
        assert_eq!(text, format!("on the host, {wanted}"));
        return;
    }
}

/// However many sockets listen, only connections take places.
#[tokio::test]
async fn sockets_that_listen_take_no_places() {
    let (client, server) = rove_streams::in_memory();
    let served = Arc::new(Semaphore::new(1));
    let (mut ports, mut controls) = (Vec::new(), Vec::new());
    for number in 0..2 {
        let listen = Spec::remote("0").unwrap().listen;
        let mut control = client.open(b"").await.unwrap();
        let (_, channel) = server.accept().await.unwrap();
        let (server, served) = (server.clone(), Arc::clone(&served));
        tokio::spawn(
            async move { listen_for(Id(number), &listen, channel, server, &served).await },
        );
        assert_eq!(soon(control.read_u8()).await.unwrap(), CONNECTED);
        ports.push(control.read_u16().await.unwrap());
        controls.push(control);
    }
    let _connection = TcpStream::connect(("127.0.0.1", ports[1])).await.unwrap();
    let (request, _channel) = soon(client.accept()).await.unwrap();
    assert_eq!(Call::decode(&request), Some(Call::Back(Id(1))));
}

/// A server may call back only under a number that was given to it, and reach no agent that was not
/// offered.
#[tokio::test]
async fn a_hostile_server_gets_nothing() {
    let joined = joined(config(None), ready(&[], None).await);
    for call in [Call::Back(Id(0)), Call::Back(Id(77)), Call::Agent] {
        let mut channel = joined.server.open(&call.encode()).await.unwrap();
        let error = soon(channel.read_u8()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{call:?}");
    }
    for request in [
        Request::Connect(crate::services::forward::spec::Endpoint {
            host: "localhost".into(),
            port: 22,
        }),
        Request::Listen(Id(1), Listen::Unix("/tmp/never".into())),
        Request::ConnectUnix("/tmp/never".into()),
    ] {
        let mut channel = joined.server.open(&request.encode()).await.unwrap();
        assert!(soon(channel.read_u8()).await.is_err(), "{request:?}");
    }
    assert!(!std::path::Path::new("/tmp/never").exists());
}

/// An agent that answers listing with no keys, signing with a signature of nothing, and adding with
/// success.
async fn agent_at(path: &std::path::Path) -> JoinHandle<()> {
    let listener = UnixListener::bind(path).unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            while let Ok(Some(message)) = agent::read(&mut stream).await {
                let answer: &[u8] = match message[0] {
                    11 => &[12, 0, 0, 0, 0],
                    13 => &[14, 0, 0, 0, 0],
                    _ => &[6],
                };
                agent::write(&mut stream, answer).await.unwrap();
            }
        }
    })
}

#[tokio::test]
async fn the_agent_lists_and_signs_and_no_more() {
    let path = path("agent");
    let _agent = agent_at(&path).await;
    let mut socket = Socket::open().unwrap();
    socket.own().unwrap();
    let there = socket.path().to_owned();
    let mut joined = joined(config(Some(socket)), ready(&[], Some(path)).await);
    let mut program = UnixStream::connect(&there).await.unwrap();
    for (question, answer) in [
        (&[11][..], &[12, 0, 0, 0, 0][..]),
        (&[13, 1, 2, 3], &[14, 0, 0, 0, 0]),
        (&[17, 0], agent::FAILURE),
        (&[20, 0], agent::FAILURE),
        (&[27, 0], agent::FAILURE),
        (&[11], &[12, 0, 0, 0, 0]),
    ] {
        agent::write(&mut program, question).await.unwrap();
        let answered = soon(agent::read(&mut program)).await.unwrap();
        assert_eq!(answered.as_deref(), Some(answer), "{question:?}");
    }
    // Past the server's own check, the client does not take its word either.
    for question in [&[17, 0][..], &[20, 0], &[27, 0], &[19]] {
        let mut channel = joined.server.open(&Call::Agent.encode()).await.unwrap();
        agent::write(&mut channel, question).await.unwrap();
        let answered = soon(agent::read(&mut channel)).await.unwrap();
        assert_eq!(answered.as_deref(), Some(agent::FAILURE), "{question:?}");
    }
    let mut told = Vec::new();
    while let Ok(news) = joined.news.try_recv() {
        told.push(news);
    }
    let signed = Notice::Note("a program on the host uses your agent".into());
    assert!(told.contains(&signed), "{told:?}");

    // A length beyond the limit ends the conversation, and costs nothing.
    program.write_all(&[0, 4, 0, 1, 11]).await.unwrap();
    assert!(soon(program.read_u8()).await.is_err());
    joined.streams.close();
    soon(async {
        while there.exists() {
            clock::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}
