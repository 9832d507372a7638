//! Pipes to and from programs. A thread for each waits where the system cannot tell that a pipe is ready.

use std::io::{self, Read, Write};
use std::os::windows::io::OwnedHandle;
use std::process::Stdio;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;

use tokio::process::{ChildStdin, ChildStdout};

use crate::os::windows::queue::Queue;

pub(crate) use std::os::windows::io::OwnedHandle as File;

/// Octets that wait at most between a pipe and its user.
const QUEUE_BYTES: usize = 64 << 10;

/// Octets read at a time.
const PIECE_BYTES: usize = 16 << 10;

/// What a program writes.
#[derive(Debug)]
pub(crate) struct PipeReader(Arc<Queue>);

/// What a program reads.
#[derive(Debug)]
pub(crate) struct PipeWriter(Arc<Queue>);

/// The input of a program.
pub(crate) fn of_input(input: ChildStdin) -> io::Result<File> {
    input.into_owned_handle()
}

/// The output of a program.
pub(crate) fn of_output(output: ChildStdout) -> io::Result<File> {
    output.into_owned_handle()
}

/// A pipe for a program's errors: where they are read, and what the program gets.
pub(crate) fn for_errors() -> io::Result<(File, Stdio)> {
    let (reads, writes) = io::pipe()?;
    Ok((OwnedHandle::from(reads), writes.into()))
}

impl PipeReader {
    /// Begins to read.
    pub(crate) fn new(file: File) -> io::Result<PipeReader> {
        let queue = Arc::new(Queue::new(QUEUE_BYTES));
        let own = Arc::clone(&queue);
        let mut file = std::fs::File::from(file);
        let work = move || {
            let mut piece = vec![0; PIECE_BYTES];
            loop {
                match file.read(&mut piece) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Ok(0) | Err(_) => break,
                    Ok(count) if own.put(&piece[..count]) => {}
                    Ok(_) => break,
                }
            }
            own.end();
        };
        thread::Builder::new().name("pipe in".into()).spawn(work)?;
        Ok(PipeReader(queue))
    }

    /// Ready while there may be something to read.
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_filled(cx).map(Ok)
    }

    /// Reads what is there; 0 is the end, and `WouldBlock`: nothing is there.
    pub(crate) fn try_read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.0.take(room)
    }
}

impl Drop for PipeReader {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl PipeWriter {
    /// Begins to write.
    pub(crate) fn new(file: File) -> io::Result<PipeWriter> {
        let queue = Arc::new(Queue::new(QUEUE_BYTES));
        let own = Arc::clone(&queue);
        let mut file = std::fs::File::from(file);
        let work = move || {
            while let Some(octets) = own.next() {
                if file.write_all(&octets).is_err() {
                    break;
                }
            }
            own.close();
        };
        thread::Builder::new().name("pipe out".into()).spawn(work)?;
        Ok(PipeWriter(queue))
    }

    /// Ready while there may be room.
    pub(crate) fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_room(cx).map(Ok)
    }

    /// Writes as much as there is room for; `WouldBlock`: there is none.
    pub(crate) fn try_write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.0.offer(octets)
    }
}

impl Drop for PipeWriter {
    /// The program gets the queued octets, and then the end.
    fn drop(&mut self) {
        self.0.end();
    }
}
