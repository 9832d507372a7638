//! The standard streams of this program, which it shares with its parent: they may block or not, and that
//! may change at any time (rsync starts its ssh with streams that do not block). So this file leaves their
//! flags alone, a thread polls before it reads or writes, and "not now" is never an error.

use std::io::{self, IsTerminal};
use std::os::fd::BorrowedFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::{JoinHandle, spawn_blocking};

/// Octets moved at a time.
const PUMP_BYTES: usize = 64 << 10;

/// The standard streams of this program. Need a tokio runtime.
pub(crate) fn input() -> Input {
    Input::of(rustix::stdio::stdin())
}

/// See [`input`].
pub(crate) fn output() -> Output {
    Output::of(rustix::stdio::stdout())
}

/// See [`input`].
pub(crate) fn errors() -> Output {
    Output::of(rustix::stdio::stderr())
}

/// Standard input.
#[derive(Debug)]
pub(crate) struct Input {
    file: BorrowedFd<'static>,
    /// Read, and not yet taken from `taken` on.
    octets: Vec<u8>,
    taken: usize,
    reading: Option<JoinHandle<io::Result<Vec<u8>>>>,
}

/// Standard output or error.
#[derive(Debug)]
pub(crate) struct Output {
    file: BorrowedFd<'static>,
    writing: Option<JoinHandle<io::Result<()>>>,
}

impl Input {
    /// Reads this file. Needs a tokio runtime.
    pub(crate) fn of(file: BorrowedFd<'static>) -> Input {
        Input { file, octets: Vec::new(), taken: 0, reading: None }
    }
}

impl Output {
    /// Writes this file. Needs a tokio runtime.
    pub(crate) fn of(file: BorrowedFd<'static>) -> Output {
        Output { file, writing: None }
    }
}

impl AsyncRead for Input {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.taken == this.octets.len() {
            (this.octets, this.taken) = (Vec::new(), 0);
            let file = this.file;
            let reading = this.reading.get_or_insert_with(|| spawn_blocking(move || read(file)));
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
        let (file, octets) = (self.file, octets[..octets.len().min(PUMP_BYTES)].to_vec());
        let count = octets.len();
        self.writing = Some(spawn_blocking(move || write(file, &octets)));
        Poll::Ready(Ok(count))
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

/// Waits for octets; none at the end.
fn read(file: BorrowedFd<'_>) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0; PUMP_BYTES];
    loop {
        match rustix::io::read(file, &mut buffer) {
            Ok(count) => {
                buffer.truncate(count);
                return Ok(buffer);
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => wait(file, PollFlags::IN)?,
            // Nobody types: nohup leaves a file that cannot be read in the place of the terminal, and a
            // program in the background that its shell has left gets this of the terminal itself.
            Err(Errno::BADF) => return Ok(Vec::new()),
            Err(Errno::IO) if file.is_terminal() => return Ok(Vec::new()),
            // Whoever is at the other end of a socket has gone with something of ours unread. What it sent came
            // before this.
            Err(Errno::CONNRESET) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        }
    }
}

fn write(file: BorrowedFd<'_>, mut octets: &[u8]) -> io::Result<()> {
    while !octets.is_empty() {
        match rustix::io::write(file, octets) {
            Ok(count) => octets = &octets[count..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => wait(file, PollFlags::OUT)?,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn wait(file: BorrowedFd<'_>, what: PollFlags) -> io::Result<()> {
    match poll(&mut [PollFd::from_borrowed_fd(file, what)], None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// A file of this program for as long as it runs.
    fn lasting(stream: UnixStream) -> BorrowedFd<'static> {
        stream.set_nonblocking(true).unwrap();
        let stream: &'static UnixStream = Box::leak(Box::new(stream));
        stream.as_fd()
    }

    #[tokio::test]
    async fn streams_that_do_not_block_lose_nothing() {
        let (here, there) = UnixStream::pair().unwrap();
        let (mut input, mut output) = (Input::of(lasting(there)), Output::of(lasting(here)));
        // Much more than a socket holds.
        let octets: Vec<u8> = (0..5_000_000_u32).map(|n| (n % 251) as u8).collect();
        let sending = async {
            output.write_all(&octets).await.unwrap();
            output.flush().await.unwrap();
        };
        let mut came = vec![0; octets.len()];
        let (_, read) = tokio::join!(sending, input.read_exact(&mut came));
        read.unwrap();
        assert!(came == octets);
    }

    #[tokio::test]
    async fn ends_and_errors_are_told() {
        let (here, there) = UnixStream::pair().unwrap();
        let mut input = Input::of(lasting(there));
        drop(here);
        assert_eq!(input.read(&mut [0; 8]).await.unwrap(), 0);
        // The same of one that has gone without reading all that it was told.
        let (here, there) = UnixStream::pair().unwrap();
        (&there).write_all(b"unread").unwrap();
        (&here).write_all(b"last").unwrap();
        drop(here);
        let mut said = Vec::new();
        Input::of(lasting(there)).read_to_end(&mut said).await.unwrap();
        assert_eq!(said, b"last");
        // What nohup leaves in a terminal's place has nothing to read; a directory has, and it cannot be.
        for (path, writes, expected) in
            [("/dev/null", true, Ok(0)), ("/", false, Err(Errno::ISDIR))]
        {
            let file = std::fs::File::options().read(!writes).write(writes).open(path).unwrap();
            let file: &'static std::fs::File = Box::leak(Box::new(file));
            let mut input = Input::of(file.as_fd());
            let read = input.read(&mut [0; 8]).await;
            let read = read.map_err(|error| Errno::from_io_error(&error).unwrap());
            assert_eq!(read, expected, "{path}");
        }
        let (here, there) = UnixStream::pair().unwrap();
        let mut output = Output::of(lasting(here));
        drop(there);
        output.write_all(b"x").await.unwrap();
        assert_eq!(output.flush().await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
