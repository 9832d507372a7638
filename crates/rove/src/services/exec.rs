//! The user's end of `rove exec`: a command on the host with this program's standard streams, octet for
//! octet, and its end as the status.

pub(crate) mod frame;

use std::future::pending;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::task::Poll;
use std::time::Duration;

use rove_session::Escape;
use rove_session::escape::{Action, Commands, Filter};
use rove_streams::clock;
use rove_streams::{Channel, Reader, Streams, Writer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use self::frame::{Frame, SignalName};
use crate::failure::Failure;
use crate::os::signals::{CAN_SUSPEND, HANDED_ON, Signal, Signals, suspend};
use crate::os::stdio;
use crate::os::tty::{self, Raw};
use crate::printable::printable;
use crate::services::calls::Callbacks;
use crate::services::pump::PUMP_BYTES;
use crate::services::{Exec, Request, Run};

/// The command, its streams and its terminal.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    /// What to run.
    pub run: Run,
    /// Where its input comes from.
    pub input: Input,
    /// The terminal it runs on; `None`: it has three pipes.
    pub terminal: Option<crate::services::Terminal>,
    /// The key that begins a command to this program, where a person types at that terminal.
    pub escape: Escape,
}

/// Where a command's input comes from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Input {
    /// Standard input.
    Ours,
    /// There is none.
    Nothing,
}

/// This end's standard streams, or substitutes for tests.
#[derive(Debug)]
pub(crate) struct Ends<I, O, E> {
    /// What the command reads.
    pub input: I,
    /// Where its output goes.
    pub output: O,
    /// Where its errors go.
    pub errors: E,
}

/// The standard streams of this program.
pub(crate) fn ends() -> Ends<stdio::Input, stdio::Output, stdio::Output> {
    Ends { input: stdio::input(), output: stdio::output(), errors: stdio::errors() }
}

/// How a command ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum End {
    /// With this status.
    Exited(u8),
    /// By a signal.
    Killed(SignalName),
    /// It did not start.
    NotStarted(String),
    /// The user left it alone: by a second signal, or by the escape key.
    Left(Option<Signal>),
}

impl End {
    /// Whether nothing of the command is left on the host.
    pub(crate) fn is_whole(&self) -> bool {
        matches!(self, End::Exited(_) | End::Killed(_))
    }

    /// The status to end with: the command's own, or as shells have it for a signal.
    pub(crate) fn status(&self) -> Result<ExitCode, Failure> {
        match self {
            End::Exited(status) => Ok(ExitCode::from(*status)),
            End::Killed(SignalName(signal)) | End::Left(Some(signal)) => {
                Ok(ExitCode::from(128 + signal.as_raw() as u8))
            }
            End::Left(None) => Ok(ExitCode::from(crate::failure::FAILED)),
            End::NotStarted(why) => {
                Err(Failure::new(format!("the command did not start: {why}"), ""))
            }
        }
    }
}

/// Why a command or connection did not reach its end.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The session's end, or a server that does not do this.
    Session(io::Error),
    /// Our input cannot be read. Half of it must not look like the whole.
    Input(io::Error),
    /// Our output cannot be written.
    Output(io::Error),
}

impl Broken {
    /// Whether the server gave the channel up, since it does not know the request.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self, Broken::Session(error) if error.kind() == io::ErrorKind::ConnectionReset)
    }
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Broken {
        Broken::Session(error)
    }
}

/// Runs a command to its end.
///
/// # Errors
/// The session's end before the command's, a server that runs no commands, input that cannot be read, or output that
/// cannot be written.
pub(crate) async fn run(
    streams: &Streams,
    calls: &Callbacks,
    command: Command,
    ends: Ends<impl AsyncRead + Unpin, impl AsyncWrite + Unpin, impl AsyncWrite + Unpin>,
) -> Result<End, Broken> {
    let Ends { input: ours, output: shown, errors } = ends;
    let (id, mut back) = calls.expect();
    let request = Request::Exec(Exec { id, run: command.run, terminal: command.terminal.clone() });
    let channel = streams.open(&request.encode()).await.map_err(io::Error::other)?;
    let (reader, writer) = channel.split();
    let (tell, orders) = mpsc::unbounded_channel();
    let raw = match command.terminal {
        Some(_) if command.input == Input::Ours && io::stdin().is_terminal() => Some(Raw::take()?),
        _ => None,
    };
    let input = async {
        match (command.input, &raw) {
            (Input::Nothing, _) => end(writer).await,
            (Input::Ours, None) => feed(ours, writer).await,
            (Input::Ours, Some(raw)) => type_in(ours, writer, command.escape, raw, &tell).await,
        }
    };
    let news = async {
        let gone = || io::Error::from(io::ErrorKind::ConnectionAborted);
        let control = back.recv().await.ok_or_else(gone)?;
        Ok::<_, Broken>(listen(control, orders, errors).await?)
    };
    let signals = watch_signals(streams, &tell, command.terminal.is_some());
    tokio::select! {
        left = input => Ok(End::Left(left?)),
        left = signals => Ok(End::Left(Some(left?))),
        done = async { tokio::try_join!(news, show(reader, shown)) } => Ok(done?.0),
    }
}

/// Joins a channel with standard input and output until the other end has sent everything.
pub(crate) async fn join(
    channel: Channel,
    ends: Ends<impl AsyncRead + Unpin, impl AsyncWrite + Unpin, impl AsyncWrite + Unpin>,
) -> Result<(), Broken> {
    let Ends { output, input, .. } = ends;
    let (reader, writer) = channel.split();
    tokio::select! {
        joined = show(reader, output) => joined,
        never = feed(input, writer) => never.map(|_| ()),
    }
}

/// Writes the command's output to our standard output, to its end. A closed standard output is no failure:
/// dropping the channel closes the command's.
async fn show(mut channel: Reader, mut ours: impl AsyncWrite + Unpin) -> Result<(), Broken> {
    let mut buffer = vec![0; PUMP_BYTES];
    loop {
        let count = channel.read(&mut buffer).await?;
        let written = async {
            ours.write_all(&buffer[..count]).await?;
            ours.flush().await
        };
        match written.await {
            Ok(()) if count > 0 => {}
            Ok(()) => return Ok(()),
            Err(error) if is_unread(&error) => return Ok(()),
            Err(error) => return Err(Broken::Output(error)),
        }
    }
}

/// Whether the reader of our output has gone.
fn is_unread(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

/// Gives the command no input. It stays open for the signals, so this never ends.
async fn end(mut writer: Writer) -> Result<Option<Signal>, Broken> {
    // A command that reads no more needs no end of what it reads.
    let _ = writer.shutdown().await;
    pending().await
}

/// Gives the command our standard input.
async fn feed(
    mut ours: impl AsyncRead + Unpin,
    mut writer: Writer,
) -> Result<Option<Signal>, Broken> {
    let mut buffer = vec![0; PUMP_BYTES];
    loop {
        let count = ours.read(&mut buffer).await.map_err(Broken::Input)?;
        if count == 0 {
            return end(writer).await;
        }
        let written = async {
            writer.write_all(&buffer[..count]).await?;
            writer.flush().await
        };
        if written.await.is_err() {
            // The command reads no more; its end will tell the rest.
            return pending().await;
        }
    }
}

/// Gives the command the keys that a person types. Ends when that person leaves.
async fn type_in(
    mut ours: impl AsyncRead + Unpin,
    mut writer: Writer,
    escape: Escape,
    raw: &Raw,
    tell: &mpsc::UnboundedSender<Frame>,
) -> Result<Option<Signal>, Broken> {
    let mut filter = Filter::new(escape, Commands::Stock);
    let mut buffer = vec![0; PUMP_BYTES];
    let mut typed = Vec::new();
    loop {
        let count = ours.read(&mut buffer).await.map_err(Broken::Input)?;
        if count == 0 {
            return end(writer).await;
        }
        for &octet in &buffer[..count] {
            match filter.next(octet) {
                Action::Send => typed.push(octet),
                // There is no screen to show anything on.
                Action::Help | Action::HelpStuck | Action::ShowStatus | Action::HideStatus => {}
                Action::Quit => return Ok(None),
                Action::SendEscape(key) => typed.push(key),
                Action::SendBoth(key) | Action::Detach(key) => typed.extend([key, octet]),
                Action::Suspend if !CAN_SUSPEND => {}
                Action::Suspend => {
                    raw.give_back();
                    suspend()?;
                    raw.take_again()?;
                    tell_window(tell);
                }
            }
        }
        if writer.write_all(&typed).await.is_err() {
            return pending().await;
        }
        typed.clear();
    }
}

/// Reads the server's frames beside the output until one has the command's end, and sends ours.
async fn listen(
    control: Channel,
    mut orders: mpsc::UnboundedReceiver<Frame>,
    mut errors: impl AsyncWrite + Unpin,
) -> io::Result<End> {
    let (mut news, mut writer): (Reader, Writer) = control.split();
    let obedient = async {
        while let Some(order) = orders.recv().await {
            frame::write(&mut writer, &order).await?;
        }
        pending::<io::Result<End>>().await
    };
    let news = async {
        loop {
            match frame::read(&mut news).await? {
                Some(Frame::Stderr(octets)) => {
                    // With nobody to read them there is nobody to tell.
                    let _ = errors.write_all(&octets).await;
                    let _ = errors.flush().await;
                }
                Some(Frame::Exited(status)) => return Ok(End::Exited(status)),
                Some(Frame::Killed(signal)) => return Ok(End::Killed(signal)),
                Some(Frame::NotStarted(why)) => {
                    let why = printable(why.as_bytes(), REASON_CHARS_MAX);
                    return Ok(End::NotStarted(why));
                }
                // Of a newer server's.
                Some(_) => {}
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
    };
    tokio::select! {
        end = news => end,
        failed = obedient => failed,
    }
}

/// Characters shown of why a command did not start.
const REASON_CHARS_MAX: usize = 1000;

/// How long a command may take to end once it got a signal that ends programs. Then it is left alone,
/// and told to hang up.
const END_WAIT: Duration = Duration::from_secs(3);

/// Passes on signals and window sizes. Ends with the signal that ends this program: the second of a kind
/// that does, or the first if the command does not end by it, or if nobody would hear of it. Signals that
/// this program was started to ignore stay ignored.
async fn watch_signals(
    streams: &Streams,
    tell: &mpsc::UnboundedSender<Frame>,
    on_terminal: bool,
) -> io::Result<Signal> {
    let mut watched = Signals::heed(&HANDED_ON)?;
    let mut window = Signals::watch([Signal::WINCH])?;
    let mut asked = None;
    loop {
        let came = std::future::poll_fn(|cx| match watched.poll(cx) {
            Poll::Ready(came) => Poll::Ready(came),
            Poll::Pending => window.poll(cx),
        });
        let came = match asked {
            None => came.await,
            Some((signal, by)) => match clock::until(by, came).await {
                Ok(came) => came,
                Err(_elapsed) => return Ok(signal),
            },
        };
        match came {
            Signal::WINCH if on_terminal => tell_window(tell),
            Signal::WINCH => {}
            signal => {
                let insists = !matches!(signal, Signal::USR1 | Signal::USR2);
                let alone = signal == Signal::HUP || !streams.is_heard();
                if insists && (asked.is_some() || alone) {
                    return Ok(signal);
                }
                if insists {
                    asked = Some((signal, clock::now() + END_WAIT));
                }
                // Nobody takes it any more once the command has ended.
                let _ = tell.send(Frame::Signal(SignalName(signal)));
            }
        }
    }
}

fn tell_window(tell: &mpsc::UnboundedSender<Frame>) {
    if let Some(size) = tty::window() {
        let _ = tell.send(Frame::Window(size));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command left alone may still run.
    #[test]
    fn ends_that_leave_nothing() {
        let term = SignalName(Signal::TERM);
        for (end, is_whole) in [
            (End::Exited(0), true),
            (End::Exited(255), true),
            (End::Killed(term), true),
            (End::NotStarted("why".into()), false),
            (End::Left(Some(Signal::TERM)), false),
            (End::Left(None), false),
        ] {
            assert_eq!(end.is_whole(), is_whole, "{end:?}");
        }
    }
}
