//! Pipes to and from programs, which do not block.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Stdio;
use std::task::{Context, Poll};

use rustix::fs::OFlags;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::process::{ChildStdin, ChildStdout};

use crate::os::unix::pty;
use crate::os::unix::watch::watch;

pub(crate) use std::os::fd::OwnedFd as File;

/// What a program writes.
#[derive(Debug)]
pub(crate) struct PipeReader(AsyncFd<OwnedFd>);

/// What a program reads.
#[derive(Debug)]
pub(crate) struct PipeWriter(AsyncFd<OwnedFd>);

/// The input of a program.
pub(crate) fn of_input(input: ChildStdin) -> io::Result<File> {
    input.into_owned_fd()
}

/// The output of a program.
pub(crate) fn of_output(output: ChildStdout) -> io::Result<File> {
    output.into_owned_fd()
}

/// A terminal of ours for a program's errors: where they are read, and what the program gets.
pub(crate) fn for_errors() -> io::Result<(File, Stdio)> {
    let (master, slave) = pty::plain()?;
    Ok((master, slave.into()))
}

impl PipeReader {
    /// Needs a tokio runtime with I/O.
    pub(crate) fn new(file: File) -> io::Result<PipeReader> {
        unblock(&file)?;
        Ok(PipeReader(watch(file, Interest::READABLE)?))
    }

    /// Ready while there may be something to read.
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_read_ready(cx).map(|ready| ready.map(drop))
    }

    /// Reads what is there; 0 is the end, and `WouldBlock`: nothing is there.
    pub(crate) fn try_read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.0.try_io(Interest::READABLE, |file| {
            rustix::io::read(file.as_fd(), room).map_err(io::Error::from)
        })
    }
}

impl PipeWriter {
    /// Needs a tokio runtime with I/O.
    pub(crate) fn new(file: File) -> io::Result<PipeWriter> {
        unblock(&file)?;
        Ok(PipeWriter(watch(file, Interest::WRITABLE)?))
    }

    /// Ready while there may be room.
    pub(crate) fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_write_ready(cx).map(|ready| ready.map(drop))
    }

    /// Writes as much as there is room for; `WouldBlock`: there is none.
    pub(crate) fn try_write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.0.try_io(Interest::WRITABLE, |file| {
            rustix::io::write(file.as_fd(), octets).map_err(io::Error::from)
        })
    }
}

fn unblock(file: &OwnedFd) -> io::Result<()> {
    let status = rustix::fs::fcntl_getfl(file)?;
    Ok(rustix::fs::fcntl_setfl(file, status | OFlags::NONBLOCK)?)
}
