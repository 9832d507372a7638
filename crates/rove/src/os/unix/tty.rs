//! The user's terminal: raw mode and the way back from it, the window's size, reads and writes that
//! never block.
//!
//! It does not interpret the bytes. However the program ends, short of SIGKILL, it gives the
//! terminal back as it found it: on purpose, after a panic or a crash.

pub(crate) mod modes;

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rove_term::probe::{DeviceReports, Listener};
use rove_term::{Dialect, Size};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{
    OptionalActions, QueueSelector, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::os::modes::Modes;
use crate::os::system::terminal;
use crate::os::unix::crash::{SHARED_WRITE_BYTES_MAX, give_back_on_crash, nothing_to_give_back};
use crate::os::unix::watch::watch;

/// The window of a terminal that does not know its size (0x0), as serial lines and some CI systems
/// have it.
pub(crate) const SIZE_UNKNOWN: (u16, u16) = (24, 80);

/// What a terminal is that `TERM` does not name.
pub(crate) const TERM_UNNAMED: &str = "";

/// How long to wait for a terminal that takes nothing to take the closing sequences.
const CLOSE_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };

/// Ends a sequence that was cut short, so that the terminal understands the closing ones.
const CANCEL: u8 = 0x18;

/// The state to restore; there is one terminal and one way back.
static BORROWED: Mutex<Option<Borrowed>> = Mutex::new(None);

#[derive(Clone)]
struct Borrowed {
    modes: Termios,
    closing: Vec<u8>,
}

/// The first of standard input and output that is not a terminal, if one is not.
pub(crate) fn missing_stream() -> Option<&'static str> {
    match (io::stdin().is_terminal(), io::stdout().is_terminal()) {
        (false, _) => Some("input"),
        (true, false) => Some("output"),
        (true, true) => None,
    }
}

/// Whether a line can be written to standard error without a wait for somebody to read: a terminal that takes nothing
/// is waited for briefly.
pub(crate) fn takes_line() -> bool {
    let errors = io::stderr();
    !errors.is_terminal()
        || poll(&mut [PollFd::new(&errors, PollFlags::OUT)], Some(&CLOSE_WAIT)) != Ok(0)
}

/// Asks the user a question and reads the answer's line. Keys typed before the question do not answer it and are
/// thrown away; keys typed after the line stay unread.
///
/// # Errors
/// If the input ends, or cannot be read, before the line does.
pub(crate) fn ask(question: &str) -> io::Result<String> {
    let input = io::stdin();
    rustix::termios::tcflush(&input, QueueSelector::IFlush)?;
    io::stderr().write_all(question.as_bytes())?;
    let mut line = Vec::new();
    let mut octet = [0];
    while line.len() < ANSWER_BYTES_MAX {
        match rustix::io::retry_on_intr(|| rustix::io::read(&input, &mut octet))? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            _ if octet == [b'\n'] => break,
            _ => line.push(octet[0]),
        }
    }
    String::from_utf8(line).map_err(io::Error::other)
}

/// Octets of an answer that are read.
const ANSWER_BYTES_MAX: usize = 256;

/// Asks the terminal what it is. Keys typed meanwhile are thrown away.
///
/// # Errors
/// If it is no terminal, or is gone.
pub(crate) fn question(dialect: &Dialect) -> io::Result<DeviceReports> {
    let raw = Raw::take()?;
    let mut listener = Listener::new(dialect);
    let (mut questions, mut keys, mut buffer) = (Vec::new(), Vec::new(), [0; 1024]);
    listener.take_questions(&mut questions);
    let mut rest = questions.as_slice();
    while !rest.is_empty() {
        let len = rustix::io::retry_on_intr(|| rustix::io::write(io::stdout(), rest))?;
        rest = &rest[len..];
    }
    // The last question is one that each terminal answers.
    while listener.is_expecting() {
        match read_within(ANSWER_WAIT, &mut buffer)? {
            0 => break,
            len => listener.read(&buffer[..len], &mut keys),
        }
    }
    drop(raw);
    Ok(listener.told().clone())
}

/// How long a terminal is waited for that has not answered all questions. The longest are far away.
const ANSWER_WAIT: Duration = Duration::from_millis(1000);

/// Whether the terminal is taken and not given back yet.
pub(crate) fn is_borrowed() -> bool {
    lock().is_some()
}

/// Panic messages while the screen was the session's, up to [`HELD_BYTES_MAX`]: the first matter most.
static HELD: Mutex<String> = Mutex::new(String::new());

/// Octets of that; messages that begin beyond are dropped.
const HELD_BYTES_MAX: usize = 16 << 10;

/// Holds panic messages until the terminal is given back. A panic that ends the session gives it back on its
/// way out, by dropping the [`Tty`]; one in a thread or a task beside the session leaves both as they are.
pub(crate) fn hold_panics() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if cfg!(panic = "abort") {
            restore();
        }
        // A lock that this very thread holds is held over the terminal, too.
        if BORROWED.try_lock().is_ok_and(|borrowed| borrowed.is_none()) {
            return print(panic);
        }
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        if held.len() < HELD_BYTES_MAX {
            held.push_str(&format!("{panic}\n"));
            let trace = Backtrace::capture();
            if trace.status() == BacktraceStatus::Captured {
                held.push_str(&trace.to_string());
            }
        }
    }));
}

/// Prints the held messages.
fn say_held() {
    let held = std::mem::take(&mut *HELD.lock().unwrap_or_else(PoisonError::into_inner));
    // Nobody is left to be told when standard error is closed.
    let _ = io::stderr().write_all(held.as_bytes());
}

/// The terminal on standard input and output. Dropping it gives the terminal back.
#[derive(Debug)]
pub struct Tty {
    input: AsyncFd<Open>,
    output: AsyncFd<Open>,
    /// Bytes on their way to the terminal, from `written` on.
    pending: Vec<u8>,
    written: usize,
}

/// The terminal, for reading or for writing.
#[derive(Debug)]
enum Open {
    /// Our own open file, set not to block: nobody else sees that it is.
    Own(OwnedFd),
    /// The file that the programs before and after us use as well; it must stay as it is.
    Shared(RawFd),
}

impl Tty {
    /// Looks at the terminal; nothing changes yet. Needs a tokio runtime with I/O.
    pub fn open() -> io::Result<Tty> {
        let input = match terminal::reopen_input() {
            Some(own) => Open::Own(own),
            None => Open::Shared(io::stdin().as_raw_fd()),
        };
        let input = watch(input, Interest::READABLE)?;
        // After `su` the terminal may belong to somebody who does not let us open it.
        let output = match terminal::reopen_output() {
            Ok(own) => Open::Own(own),
            Err(_denied) => Open::Shared(io::stdout().as_raw_fd()),
        };
        let output = watch(output, Interest::WRITABLE)?;
        Ok(Tty { input, output, pending: Vec::new(), written: 0 })
    }

    /// Switches to raw mode and queues `opening`; `closing` undoes it.
    pub fn borrow(&mut self, opening: &[u8], closing: Vec<u8>) -> io::Result<()> {
        let on_crash = cancelled(&closing);
        make_raw(closing, &on_crash)?;
        self.pending.extend_from_slice(opening);
        Ok(())
    }

    /// Undoes the session with `closing` if the program ends without giving the terminal back.
    pub fn close_with(&mut self, closing: Vec<u8>) {
        if let Some(borrowed) = &mut *lock() {
            give_back_on_crash(&cancelled(&closing));
            borrowed.closing = closing;
        }
    }

    /// Gives the terminal back, with `closing` in place of the earlier one. Drops octets that it has not
    /// taken yet.
    pub fn give_back(&mut self, closing: &[u8]) {
        if let Some(borrowed) = &mut *lock() {
            borrowed.closing =
                if self.is_flushed() { closing.to_vec() } else { cancelled(closing) };
        }
        self.pending.clear();
        self.written = 0;
        restore();
    }

    /// The buffer for output, which `poll_flush` writes. Use it only while `is_flushed`, so that it holds
    /// one frame at most.
    pub fn frame(&mut self) -> &mut Vec<u8> {
        &mut self.pending
    }

    /// Reads typed octets; 0 is the end of input. Pending while there are none.
    pub fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut guard = ready!(self.input.poll_read_ready_mut(cx))?;
            let read = guard.try_io(|input| input.get_ref().read(buffer));
            match read {
                Ok(Err(error)) if error.kind() == ErrorKind::Interrupted => {}
                // The terminal is gone.
                Ok(Err(error)) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => {
                    return Poll::Ready(Ok(0));
                }
                Ok(result) => return Poll::Ready(result),
                Err(_would_block) => {}
            }
        }
    }

    /// Blocks this long for typed octets; 0 if none came.
    pub fn read_within(&mut self, wait: Duration, buffer: &mut [u8]) -> io::Result<usize> {
        read_within(wait, buffer)
    }

    /// Writes the queued octets. Ready once all of them are written, or dropped: a terminal that is gone
    /// shows nothing, and reading from it returns the error.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.written < self.pending.len() {
            let rest = &self.pending[self.written..];
            let written = match ready!(self.output.poll_write_ready_mut(cx)) {
                Ok(mut guard) => guard.try_io(|output| output.get_ref().write(rest)),
                Err(error) => Ok(Err(error)),
            };
            match written {
                Ok(Ok(len)) => self.written += len,
                Ok(Err(error)) if error.kind() == ErrorKind::Interrupted => {}
                Ok(Err(_gone)) => break,
                Err(_would_block) => {}
            }
        }
        self.pending.clear();
        self.written = 0;
        Poll::Ready(())
    }

    /// Whether the terminal has taken everything.
    pub fn is_flushed(&self) -> bool {
        self.pending.is_empty()
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        restore();
    }
}

/// Standard input as a terminal in raw mode, for a program that leaves the screen alone. Dropping it gives the
/// terminal back.
#[derive(Debug)]
pub(crate) struct Raw(());

impl Raw {
    /// Switches to raw mode.
    pub(crate) fn take() -> io::Result<Raw> {
        let raw = Raw(());
        raw.take_again()?;
        Ok(raw)
    }

    /// Switches to raw mode once more, after [`Raw::give_back`].
    pub(crate) fn take_again(&self) -> io::Result<()> {
        make_raw(Vec::new(), &[])
    }

    /// Switches back for a while.
    pub(crate) fn give_back(&self) {
        restore();
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        restore();
    }
}

/// Switches to raw mode, from the modes before the first call, if there was one. `closing` undoes the session;
/// `on_crash` does in a crash.
fn make_raw(closing: Vec<u8>, on_crash: &[u8]) -> io::Result<()> {
    let stdin = io::stdin();
    let mut borrowed = lock();
    let modes = match borrowed.take() {
        Some(Borrowed { modes, .. }) => modes,
        None => tcgetattr(&stdin)?,
    };
    let mut raw = modes.clone();
    raw.make_raw();
    give_back_on_crash(on_crash);
    *borrowed = Some(Borrowed { modes, closing });
    drop(borrowed);
    Ok(tcsetattr(&stdin, OptionalActions::Now, &raw)?)
}

fn read_within(wait: Duration, buffer: &mut [u8]) -> io::Result<usize> {
    let stdin = io::stdin();
    let wait = Timespec::try_from(wait).map_err(|_| ErrorKind::InvalidInput)?;
    loop {
        match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&wait)) {
            Ok(0) => return Ok(0),
            Ok(_) => return Ok(rustix::io::read(&stdin, buffer)?),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The window's rows and columns; `None` if the terminal does not know them.
pub(crate) fn window() -> Option<Size> {
    let size = tcgetwinsize(io::stdin()).ok()?;
    match (size.ws_row, size.ws_col) {
        (0, _) | (_, 0) => None,
        (rows, cols) => Some(Size::clamped(rows, cols)),
    }
}

/// The modes of the terminal on standard input; none if it is no terminal.
pub(crate) fn modes() -> Modes {
    tcgetattr(io::stdin()).map(|modes| modes::of(&modes)).unwrap_or_default()
}

impl Open {
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Open::Own(file) => Ok(rustix::io::read(file, buffer)?),
            // The file may block: asked first, it cannot.
            Open::Shared(_) => match is_ready(PollFlags::IN)? {
                true => Ok(rustix::io::read(io::stdin(), buffer)?),
                false => Err(ErrorKind::WouldBlock.into()),
            },
        }
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Open::Own(file) => Ok(rustix::io::write(file, bytes)?),
            Open::Shared(_) => match is_ready(PollFlags::OUT)? {
                true => {
                    let len = bytes.len().min(SHARED_WRITE_BYTES_MAX);
                    Ok(rustix::io::write(io::stdout(), &bytes[..len])?)
                }
                false => Err(ErrorKind::WouldBlock.into()),
            },
        }
    }
}

impl AsRawFd for Open {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Open::Own(file) => file.as_raw_fd(),
            Open::Shared(file) => *file,
        }
    }
}

/// Whether standard input can be read, or standard output written, without blocking.
fn is_ready(direction: PollFlags) -> io::Result<bool> {
    let (stdin, stdout) = (io::stdin(), io::stdout());
    let file = match direction {
        PollFlags::IN => PollFd::new(&stdin, direction),
        _ => PollFd::new(&stdout, direction),
    };
    Ok(poll(&mut [file], Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? > 0)
}

/// Restores the terminal. One that takes nothing delays us only briefly.
fn restore() {
    let Some(Borrowed { modes, closing }) = lock().take() else {
        return;
    };
    let stdout = io::stdout();
    let mut rest = closing.as_slice();
    while !rest.is_empty() {
        match poll(&mut [PollFd::new(&stdout, PollFlags::OUT)], Some(&CLOSE_WAIT)) {
            Ok(0) => break,
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => break,
        }
        let len = rest.len().min(SHARED_WRITE_BYTES_MAX);
        match rustix::io::write(&stdout, &rest[..len]) {
            Ok(len) => rest = &rest[len..],
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => break,
        }
    }
    // Nothing is left to be told if the terminal is gone.
    let _ = tcsetattr(io::stdin(), OptionalActions::Now, &modes);
    nothing_to_give_back();
    say_held();
}

/// The closing sequence after one that may have been cut short.
fn cancelled(closing: &[u8]) -> Vec<u8> {
    [&[CANCEL], closing].concat()
}

fn lock() -> std::sync::MutexGuard<'static, Option<Borrowed>> {
    BORROWED.lock().unwrap_or_else(PoisonError::into_inner)
}
