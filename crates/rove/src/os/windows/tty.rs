//! The user's console: raw mode and the way back from it, the window's size, reads and writes that never block.
//!
//! It does not interpret the bytes. However the program ends, short of being killed, it gives the console back as it
//! found it: on purpose, or after a panic.

use std::io::{self, IsTerminal, Read, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rove_term::probe::{DeviceReports, Listener};
use rove_term::{Dialect, Size};

use crate::os::modes;
use crate::os::windows::console::{self, Keys, Shown};

/// The window of a terminal that does not know its size.
pub(crate) const SIZE_UNKNOWN: (u16, u16) = (24, 80);

/// What a terminal is that `TERM` does not name: the console of Windows 10 and later speaks as xterm does.
pub(crate) const TERM_UNNAMED: &str = "xterm-256color";

/// How long to wait for a console that takes nothing to take the closing sequences.
const CLOSE_WAIT: Duration = Duration::from_millis(500);

/// How long a terminal is waited for that has not answered all questions.
const ANSWER_WAIT: Duration = Duration::from_millis(1000);

/// Octets of an answer that are read.
const ANSWER_BYTES_MAX: u64 = 256;

/// Ends a sequence that was cut short, so that the terminal understands the closing ones.
const CANCEL: u8 = 0x18;

/// The state to restore; there is one console and one way back.
static BORROWED: Mutex<Option<Borrowed>> = Mutex::new(None);

#[derive(Clone, Debug)]
struct Borrowed {
    modes: console::Modes,
    closing: Vec<u8>,
}

fn lock() -> MutexGuard<'static, Option<Borrowed>> {
    BORROWED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The first of standard input and output that is not a terminal, if one is not.
pub(crate) fn missing_stream() -> Option<&'static str> {
    match (io::stdin().is_terminal(), io::stdout().is_terminal()) {
        (false, _) => Some("input"),
        (true, false) => Some("output"),
        (true, true) => None,
    }
}

/// Whether a line can be written to standard error without a wait for somebody to read: the system cannot tell.
pub(crate) fn takes_line() -> bool {
    true
}

/// Asks the user a question and reads the answer's line. Keys typed before the question do not answer it.
///
/// # Errors
/// If the input ends, or cannot be read, before the line does.
pub(crate) fn ask(question: &str) -> io::Result<String> {
    console::forget_typed();
    io::stderr().write_all(question.as_bytes())?;
    let mut line = String::new();
    io::BufRead::read_line(&mut io::stdin().lock().take(ANSWER_BYTES_MAX), &mut line)?;
    match line.trim_end_matches(['\r', '\n']) {
        "" if line.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
        answer => Ok(answer.to_owned()),
    }
}

/// Asks the terminal what it is. Keys typed meanwhile are thrown away.
///
/// # Errors
/// If it is no console.
pub(crate) fn question(dialect: &Dialect) -> io::Result<DeviceReports> {
    let raw = Raw::take()?;
    let mut listener = Listener::new(dialect);
    let (mut questions, mut keys, mut buffer) = (Vec::new(), Vec::new(), [0; 1024]);
    listener.take_questions(&mut questions);
    console::write(&questions)?;
    while listener.is_expecting() {
        match Keys::of_console()?.queue().take_within(ANSWER_WAIT, &mut buffer) {
            0 => break,
            len => listener.read(&buffer[..len], &mut keys),
        }
    }
    drop(raw);
    Ok(listener.told().clone())
}

/// Whether the console is taken and not given back yet.
pub(crate) fn is_borrowed() -> bool {
    lock().is_some()
}

/// Panic messages while the screen was the session's.
static HELD: Mutex<String> = Mutex::new(String::new());

/// Octets of that; messages that begin beyond are dropped.
const HELD_BYTES_MAX: usize = 16 << 10;

/// Holds panic messages until the console is given back.
pub(crate) fn hold_panics() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if cfg!(panic = "abort") {
            restore();
        }
        // A lock that this very thread holds is held over the console, too.
        if BORROWED.try_lock().is_ok_and(|borrowed| borrowed.is_none()) {
            return print(panic);
        }
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        if held.len() < HELD_BYTES_MAX {
            held.push_str(&format!("{panic}\n"));
        }
    }));
}

/// Prints the held messages.
fn say_held() {
    let held = std::mem::take(&mut *HELD.lock().unwrap_or_else(PoisonError::into_inner));
    // Nobody is left to be told when standard error is closed.
    let _ = io::stderr().write_all(held.as_bytes());
}

/// The console. Dropping it gives it back.
#[derive(Debug)]
pub struct Tty {
    keys: &'static Keys,
    shown: Shown,
    /// Bytes on their way to the console, from `written` on.
    pending: Vec<u8>,
    written: usize,
}

impl Tty {
    /// Looks at the console; nothing changes yet.
    ///
    /// # Errors
    /// If there is none: the windows of MSYS and Cygwin are pipes.
    pub fn open() -> io::Result<Tty> {
        console::modes().map_err(|error| {
            io::Error::other(format!(
                "it is no console of Windows ({error}); in a window of MSYS or Cygwin run it by winpty"
            ))
        })?;
        let (keys, shown) = (Keys::of_console()?, Shown::new()?);
        Ok(Tty { keys, shown, pending: Vec::new(), written: 0 })
    }

    /// Switches to raw mode and queues `opening`; `closing` undoes it.
    pub fn borrow(&mut self, opening: &[u8], closing: Vec<u8>) -> io::Result<()> {
        make_raw(closing)?;
        self.pending.extend_from_slice(opening);
        Ok(())
    }

    /// Undoes the session with `closing` if the program ends without giving the console back.
    pub fn close_with(&mut self, closing: Vec<u8>) {
        if let Some(borrowed) = &mut *lock() {
            borrowed.closing = closing;
        }
    }

    /// Gives the console back, with `closing` in place of the earlier one. Drops octets that it has not
    /// taken yet.
    pub fn give_back(&mut self, closing: &[u8]) {
        let is_whole = self.is_flushed() && self.shown.queue().written_within(CLOSE_WAIT);
        self.shown.queue().clear();
        if let Some(borrowed) = &mut *lock() {
            borrowed.closing = match is_whole {
                true => closing.to_vec(),
                false => [&[CANCEL], closing].concat(),
            };
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
        ready!(self.keys.queue().poll_filled(cx));
        match self.keys.queue().take(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
            taken => Poll::Ready(taken),
        }
    }

    /// Blocks this long for typed octets; 0 if none came.
    pub fn read_within(&mut self, wait: Duration, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(self.keys.queue().take_within(wait, buffer))
    }

    /// Writes the queued octets. Ready once all of them are written, or dropped: a console that is gone shows nothing.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.written < self.pending.len() {
            ready!(self.shown.queue().poll_room(cx));
            match self.shown.queue().offer(&self.pending[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_gone) => break,
            }
        }
        ready!(self.shown.queue().poll_written(cx));
        self.pending.clear();
        self.written = 0;
        Poll::Ready(())
    }

    /// Whether the console has taken everything.
    pub fn is_flushed(&self) -> bool {
        self.pending.is_empty()
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        restore();
    }
}

/// The console in raw mode, for a program that leaves the screen alone. Dropping it gives it back.
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
        Keys::of_console()?;
        make_raw(Vec::new())
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

/// Switches to raw mode, from the modes before the first call, if there was one. `closing` undoes the session.
fn make_raw(closing: Vec<u8>) -> io::Result<()> {
    let mut borrowed = lock();
    let modes = match borrowed.take() {
        Some(Borrowed { modes, .. }) => modes,
        None => console::modes()?,
    };
    *borrowed = Some(Borrowed { modes, closing });
    drop(borrowed);
    modes.raw().set().map_err(|error| {
        io::Error::other(format!(
            "it takes no control sequences, as Windows 10 1809 has them: {error}"
        ))
    })?;
    Keys::of_console()?.want(true);
    Ok(())
}

/// Restores the console.
fn restore() {
    let Some(Borrowed { modes, closing }) = lock().take() else {
        return;
    };
    if let Ok(keys) = Keys::of_console() {
        keys.want(false);
    }
    // Nothing is left to be told if the console is gone.
    let _ = console::write(&closing);
    let _ = modes.set();
    say_held();
}

/// Restores the console in a crash, in which memory cannot be asked for, nor a lock be waited for.
pub(crate) fn restore_in_crash() {
    let Ok(mut borrowed) = BORROWED.try_lock() else { return };
    if let Some(Borrowed { modes, closing }) = &*borrowed {
        console::write_in_crash(closing);
        let _ = modes.set();
    }
    // What it holds is not given back to a heap that may be broken.
    std::mem::forget(borrowed.take());
}

/// Restores the console as the program is ended.
pub(crate) fn restore_at_end() {
    restore();
}

/// The window's rows and columns; `None` if the console does not know them.
pub(crate) fn window() -> Option<Size> {
    console::size().map(|(rows, cols)| Size::clamped(rows, cols))
}

/// The modes of the terminal on standard input: a console has none that a host knows.
pub(crate) fn modes() -> modes::Modes {
    modes::Modes::default()
}
