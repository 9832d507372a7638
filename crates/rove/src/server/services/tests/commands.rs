//! Commands over channels: what they print, how they end, and what a peer can do to them.

use super::*;

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

/// Asked for a subsystem, a server that knows none gives up the channel, as one does with all that is no request of its
/// own; that is told from a session that broke off.
#[tokio::test]
async fn a_server_older_than_subsystems() {
    let (streams, server) = rove_streams::in_memory();
    let calls = Callbacks::default();
    let (tell, _news) = mpsc::channel(NOTICES_MAX);
    tokio::spawn(calls.clone().answer(streams.clone(), None, tell));
    let serving = async {
        let (request, channel) = server.accept().await.unwrap();
        // An older rove reads a line here, which has no such octet.
        assert_eq!(request, b"\x01\0\0\0\0\0\0sftp");
        drop(channel);
        server
    };
    let asking = async {
        let ends = Ends { input: &b""[..], output: Vec::new(), errors: tokio::io::sink() };
        let sftp = Command { run: Run::Subsystem("sftp".into()), ..command("", None) };
        client::run(&streams, &calls, sftp, ends).await
    };
    let (_server, end) = soon(async { tokio::join!(serving, asking) }).await;
    assert!(end.unwrap_err().is_refused());
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
