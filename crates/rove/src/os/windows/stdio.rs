//! The standard streams of this program: pipes, files and consoles, read and written by threads that wait.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, Read, Write};
use std::mem::ManuallyDrop;
use std::os::windows::io::{AsRawHandle, FromRawHandle, RawHandle};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::{JoinHandle, spawn_blocking};

use crate::os::windows::console::{self, Keys};
use crate::os::windows::tty;

/// Octets moved at a time.
const PUMP_BYTES: usize = 64 << 10;

/// The standard streams of this program. Need a tokio runtime.
pub(crate) fn input() -> Input {
    Input::default()
}

/// See [`input`].
pub(crate) fn output() -> Output {
    Output { to: To::Output, rest: Vec::new(), writing: None }
}

/// See [`input`].
pub(crate) fn errors() -> Output {
    Output { to: To::Errors, rest: Vec::new(), writing: None }
}

/// Standard input.
#[derive(Debug, Default)]
pub(crate) struct Input {
    /// Read, and not yet taken from `taken` on.
    octets: Vec<u8>,
    taken: usize,
    reading: Option<JoinHandle<io::Result<Vec<u8>>>>,
}

#[derive(Clone, Copy, Debug)]
enum To {
    Output,
    Errors,
}

/// Standard output or error.
#[derive(Debug)]
pub(crate) struct Output {
    to: To,
    /// The beginning of a character that a console does not show without its end.
    rest: Vec<u8>,
    writing: Option<JoinHandle<io::Result<()>>>,
}

impl AsyncRead for Input {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        // Keys come one by one while the console is in raw mode.
        if tty::is_borrowed() && this.reading.is_none() && this.taken == this.octets.len() {
            let keys = Keys::of_console()?.queue();
            ready!(keys.poll_filled(cx));
            return match keys.take(out.initialize_unfilled()) {
                Ok(count) => {
                    out.advance(count);
                    Poll::Ready(Ok(()))
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
                Err(error) => Poll::Ready(Err(error)),
            };
        }
        if this.taken == this.octets.len() {
            (this.octets, this.taken) = (Vec::new(), 0);
            let reading = this.reading.get_or_insert_with(|| spawn_blocking(read));
            let read = ready!(Pin::new(reading).poll(cx));
            this.reading = None;
            this.octets = read.map_err(io::Error::other)??;
        }
        let rest = &this.octets[this.taken..];
        let count = rest.len().min(out.remaining());
        out.put_slice(&rest[..count]);
        this.taken += count;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Output {
    /// Takes as much as can be written at a time; the next call returns the result of the write.
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.as_mut().poll_flush(cx))?;
        let octets = &octets[..octets.len().min(PUMP_BYTES)];
        let to = self.to;
        match to.console() {
            Some(_) => {
                let mut text = std::mem::take(&mut self.rest);
                text.extend(octets);
                self.rest = text.split_off(text.len() - unfinished(&text));
                self.writing = Some(spawn_blocking(move || to.show(&text)));
            }
            None => {
                let octets = octets.to_vec();
                self.writing = Some(spawn_blocking(move || to.file().write_all(&octets)));
            }
        }
        Poll::Ready(Ok(octets.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(writing) = &mut self.writing else { return Poll::Ready(Ok(())) };
        let written = ready!(Pin::new(writing).poll(cx));
        self.writing = None;
        Poll::Ready(written.map_err(io::Error::other)?)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

/// How many octets at the end begin a character whose end is still to come.
fn unfinished(text: &[u8]) -> usize {
    let most = text.len().min(3);
    for count in 1..=most {
        let octet = text[text.len() - count];
        let length = match octet {
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf7 => 4,
            0x80..=0xbf => continue,
            _ => return 0,
        };
        return if count < length { count } else { 0 };
    }
    0
}

impl To {
    fn handle(self) -> RawHandle {
        match self {
            To::Output => io::stdout().as_raw_handle(),
            To::Errors => io::stderr().as_raw_handle(),
        }
    }

    /// It, if it is a console.
    fn console(self) -> Option<RawHandle> {
        console::is_console(self.handle()).then(|| self.handle())
    }

    fn show(self, text: &[u8]) -> io::Result<()> {
        console::write_to(self.handle(), text)
    }

    fn file(self) -> ManuallyDrop<File> {
        // SAFETY: the handle stays open for the life of the process, and nobody closes it here.
        ManuallyDrop::new(unsafe { File::from_raw_handle(self.handle()) })
    }
}

/// Waits for octets; none at the end.
fn read() -> io::Result<Vec<u8>> {
    let mut buffer = vec![0; PUMP_BYTES];
    match io::stdin().lock().read(&mut buffer) {
        Ok(count) => {
            buffer.truncate(count);
            Ok(buffer)
        }
        // Whoever wrote has gone.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
