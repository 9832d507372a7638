//! Commands that run for a client over channels: with pipes, every octet as it is, or on a terminal.

use std::convert::Infallible;
use std::ffi::OsStr;
use std::future::pending;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use rove_streams::{Channel, Reader, Streams, Writer};
use rustix::process::{Pid, Signal};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, Interest};
use tokio::process::{Child, Command};

use crate::bootstrap::SFTP_SERVERS;
use crate::os;
use crate::os::pty::{self, Output, Pty};
use crate::printable::printable;
use crate::server::service_config::ServiceConfig;
use crate::services::exec::frame::{self, CONTENTS_BYTES_MAX, Frame, SignalName};
use crate::services::pump::PUMP_BYTES;
use crate::services::{Call, Exec, Run};

/// Runs a command to its end, or until the client gives it up.
pub(super) async fn serve(
    exec: Exec,
    channel: Channel,
    streams: &Streams,
    config: &ServiceConfig,
) -> io::Result<()> {
    let control = streams.open(&Call::Back(exec.id).encode()).await.map_err(io::Error::other)?;
    let (orders, mut news) = control.split();
    let ended = match start(&exec, config) {
        Ok(Started::Piped(child)) => piped(child, channel, orders, &mut news).await,
        Ok(Started::OnTerminal(child, pty)) => on_terminal(child, pty, channel, orders).await,
        Err(error) => {
            frame::write(&mut news, &Frame::NotStarted(error.to_string())).await?;
            news.shutdown().await?;
            // Not before: that the channel is given up must not be the first that the client hears.
            let (_input, mut output) = channel.split();
            return output.shutdown().await;
        }
    };
    match ended {
        Ended::Status(status) => {
            frame::write(&mut news, &last_word(status?)).await?;
            news.shutdown().await
        }
        Ended::GivenUp => Ok(()),
    }
}

/// A command that runs.
enum Started {
    /// With three pipes.
    Piped(Child),
    /// On a terminal.
    OnTerminal(Child, AsyncFd<Pty>),
}

fn start(exec: &Exec, config: &ServiceConfig) -> io::Result<Started> {
    let line = match &exec.run {
        Run::Line(line) => line.as_os_str(),
        Run::Subsystem(name) => OsStr::new(subsystem(name)?),
    };
    let Some(terminal) = &exec.terminal else {
        let mut command = config.surroundings.command(line, None);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        os::process::lead_session(&mut command, config.cores);
        return Ok(Started::Piped(Command::from(command).spawn()?));
    };
    let pty = Pty::open(terminal.size)?;
    pty.set(&terminal.modes)?;
    let mut command = config.surroundings.command(line, Some(&terminal.term));
    pty.prepare(&mut command, config.cores)?;
    let pty = os::watch(pty, Interest::READABLE | Interest::WRITABLE)?;
    Ok(Started::OnTerminal(Command::from(command).spawn()?, pty))
}

/// The line that runs a subsystem. sshd's own configuration is not read: a user need not be able to.
fn subsystem(name: &OsStr) -> io::Result<&'static str> {
    let name = printable(name.as_bytes(), NAME_CHARS_MAX);
    if name != "sftp" {
        return Err(io::Error::other(format!("no subsystem called {name}")));
    }
    let found = SFTP_SERVERS.into_iter().find(|path| Path::new(path).exists());
    found.ok_or_else(|| io::Error::other("no sftp-server is installed"))
}

/// Characters shown of a subsystem's name.
const NAME_CHARS_MAX: usize = 40;

/// How the work on a command ended.
enum Ended {
    /// It has ended.
    Status(io::Result<ExitStatus>),
    /// The client gave it up, or is gone.
    GivenUp,
}

/// How a command ended, for the client.
fn last_word(status: ExitStatus) -> Frame {
    match (status.code(), status.signal().and_then(SignalName::of)) {
        (Some(code), _) => Frame::Exited(u8::try_from(code).unwrap_or(u8::MAX)),
        (None, Some(signal)) => Frame::Killed(signal),
        (None, None) => Frame::Exited(u8::MAX),
    }
}

/// A program and all processes that have stayed in its process group. Gets SIGHUP when dropped.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Group {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Group(id.and_then(Pid::from_raw))
    }

    fn signal(&self, signal: Signal) {
        if let Some(leader) = self.0 {
            // It may have ended already.
            let _ = rustix::process::kill_process_group(leader, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::HUP);
    }
}

/// Sees a command with three pipes to its end.
async fn piped(mut child: Child, channel: Channel, orders: Reader, news: &mut Writer) -> Ended {
    let mut group = Group::of(&child);
    let stdin = child.stdin.take().expect("standard input is a pipe");
    let stdout = child.stdout.take().expect("standard output is a pipe");
    let stderr = child.stderr.take().expect("standard error is a pipe");
    let (input, output) = channel.split();
    let run = async {
        tokio::join!(send_output(stdout, output), send_errors(stderr, news));
        // Not before: a daemon may hold the output for days, and once the leader is waited for, its number, by which
        // the group is signalled, can be given to any other process.
        child.wait().await
    };
    let status = tokio::select! {
        status = run => status,
        never = feed(input, stdin) => match never {},
        () = obey(orders, |order| if let Frame::Signal(SignalName(signal)) = order { group.signal(signal) }) => {
            return Ended::GivenUp;
        }
    };
    group.0 = None;
    Ended::Status(status)
}

/// Gives a program its input, and an end only if the client has ended it: half of an input must not look
/// like the whole.
async fn feed(mut input: Reader, mut stdin: impl AsyncWrite + Unpin) -> Infallible {
    let fed = crate::services::pump::pump(&mut input, &mut stdin).await;
    if fed.is_ok() {
        drop(stdin);
        return pending().await;
    }
    // Either the program reads no more, or the client has gone, which is seen elsewhere. The program's
    // end of the pipe tells which, and nothing is to be done about either.
    let _stdin = stdin;
    drop(input);
    pending().await
}

/// Sends a program's output. When the client stops reading, closes the pipe, as it would be here.
async fn send_output(mut stdout: impl AsyncRead + Unpin, mut output: Writer) {
    if crate::services::pump::pump(&mut stdout, &mut output).await.is_ok() {
        let _ = output.shutdown().await;
    }
}

async fn send_errors(mut stderr: impl AsyncRead + Unpin, news: &mut Writer) {
    let mut buffer = vec![0; CONTENTS_BYTES_MAX];
    loop {
        match stderr.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(count) => {
                let errors = Frame::Stderr(buffer[..count].to_vec());
                if frame::write(news, &errors).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Carries out the client's orders until it has gone.
async fn obey(mut orders: Reader, mut act: impl FnMut(Frame)) {
    while let Ok(Some(order)) = frame::read(&mut orders).await {
        act(order);
    }
}

/// Sees a command on a terminal of its own to its end.
async fn on_terminal(
    mut child: Child,
    mut pty: AsyncFd<Pty>,
    channel: Channel,
    orders: Reader,
) -> Ended {
    let mut group = Group::of(&child);
    let mut unsent = Vec::new();
    let (input, mut output) = channel.split();
    let obeying = obey(orders, |order| match order {
        // A terminal that is gone needs neither.
        Frame::Window(size) => drop(pty.get_ref().resize(size)),
        Frame::Signal(SignalName(signal)) => match rustix::termios::tcgetpgrp(pty.get_ref()) {
            Ok(foreground) => drop(rustix::process::kill_process_group(foreground, signal)),
            Err(_) => group.signal(signal),
        },
        _ => {}
    });
    let status = tokio::select! {
        status = child.wait() => status,
        never = show(&pty, &mut output, &mut unsent) => match never {},
        never = type_in(input, &pty) => match never {},
        () = obeying => return Ended::GivenUp,
    };
    group.0 = None;
    // What was written before the end; programs left on the terminal do not keep it.
    pty.get_mut().release();
    let _ = output.write_all(&unsent).await;
    let mut buffer = vec![0; PUMP_BYTES];
    let mut shown = 0;
    while let Ok(Output::Bytes(count)) = pty::read(pty.get_ref(), &mut buffer)
        && shown < LAST_WORDS_BYTES_MAX
        && output.write_all(&buffer[..count]).await.is_ok()
    {
        shown += count;
    }
    // A client that is gone by now needs no end.
    let _ = output.shutdown().await;
    Ended::Status(status)
}

/// The most unread output of a terminal's program to show after its end: more than a terminal holds.
const LAST_WORDS_BYTES_MAX: usize = 1 << 20;

/// Sends the terminal's output. When dropped, octets read but not sent are in `unsent`.
async fn show(pty: &AsyncFd<Pty>, output: &mut Writer, unsent: &mut Vec<u8>) -> Infallible {
    let mut buffer = vec![0; PUMP_BYTES];
    loop {
        while !unsent.is_empty() {
            match output.write(unsent).await {
                Ok(count @ 1..) => drop(unsent.drain(..count)),
                Ok(0) | Err(_) => return pending().await,
            }
        }
        let Ok(mut ready) = pty.readable().await else { return pending().await };
        let read = ready.try_io(|pty| match pty::read(pty.get_ref(), &mut buffer)? {
            Output::Nothing => Err(io::ErrorKind::WouldBlock.into()),
            output => Ok(output),
        });
        match read {
            Ok(Ok(Output::Bytes(count))) => unsent.extend_from_slice(&buffer[..count]),
            Ok(_hung_up) => return pending().await,
            Err(_would_block) => {}
        }
    }
}

/// Types the client's octets.
async fn type_in(mut input: Reader, pty: &AsyncFd<Pty>) -> Infallible {
    let mut buffer = vec![0; TYPED_BYTES];
    while let Ok(count @ 1..) = input.read(&mut buffer).await {
        let mut rest = &buffer[..count];
        while !rest.is_empty() {
            let Ok(mut ready) = pty.writable().await else { return pending().await };
            let written = ready.try_io(|pty| match pty.get_ref().write(rest)? {
                0 => Err(io::ErrorKind::WouldBlock.into()),
                count => Ok(count),
            });
            match written {
                Ok(Ok(count)) => rest = &rest[count..],
                Ok(Err(_gone)) => return pending().await,
                Err(_would_block) => {}
            }
        }
    }
    // A terminal has no end of input but the key for it.
    pending().await
}

/// Octets typed at a time; a terminal's line holds as many.
const TYPED_BYTES: usize = 4096;
