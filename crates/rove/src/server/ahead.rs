//! Reads a program's output ahead while the session is at work on what came before.
//!
//! A terminal holds some 12 KiB, so a program that floods it stands still whenever nobody reads; and each
//! read waits for the kernel to carry octets over. A second thread does that waiting while the first one
//! emulates: on two processors a session then takes output as fast as a bare terminal gives it. The thread
//! starts with the first flood, and rests between floods: a keystroke never wakes it.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::pty::{self, Output, Pty};

/// Octets of one piece: what is read while another one is emulated. As much again delays the effect of a
/// Ctrl-C by what its emulation takes, less than 1 ms.
const PIECE_BYTES: usize = 64 << 10;

/// Output that was read together; the kernel gives at most 4 KiB at a time.
#[derive(Debug)]
pub struct Piece {
    buffer: Box<[u8]>,
    filled: usize,
    last: Output,
}

impl Piece {
    fn new() -> Piece {
        Piece { buffer: vec![0; PIECE_BYTES].into_boxed_slice(), filled: 0, last: Output::Nothing }
    }

    /// Reads anew, until there is nothing more or no more room.
    fn fill(&mut self, mut read: impl FnMut(&mut [u8]) -> Output) {
        self.filled = 0;
        while !self.is_full() {
            self.last = read(&mut self.buffer[self.filled..]);
            let Output::Bytes(count) = self.last else { return };
            self.filled += count;
        }
    }

    /// What was read.
    pub fn octets(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }

    /// There may be more.
    pub fn is_full(&self) -> bool {
        self.filled == self.buffer.len()
    }

    /// There will be no more: no program has the terminal open.
    pub fn hung_up(&self) -> bool {
        self.last == Output::HungUp
    }
}

/// Reads output in pieces, in a flood the next one while the owner has this one.
#[derive(Debug)]
pub struct Ahead {
    piece: Piece,
    /// The other piece, but while it is being read.
    spare: Option<Piece>,
    reader: Option<Reader>,
}

/// The thread that reads ahead. It ends when this is dropped.
#[derive(Debug)]
struct Reader {
    empty: SyncSender<Piece>,
    filled: Receiver<Piece>,
}

impl Ahead {
    /// A reader of output that has read nothing.
    pub fn new() -> Ahead {
        Ahead { piece: Piece::new(), spare: None, reader: None }
    }

    /// The last piece was full: call [`next`](Self::next) rather than sleep.
    pub fn has_more(&self) -> bool {
        self.piece.is_full()
    }

    /// The next piece: the one that was read ahead, or else what is there now. Waits for no program, but
    /// for the thread to have read what is there.
    pub fn next(&mut self, pty: &AsyncFd<Pty>) -> &Piece {
        let waiting = self.reader.as_ref().filter(|_| self.spare.is_none());
        match waiting.map(|reader| reader.filled.recv()) {
            Some(Ok(piece)) => self.spare = Some(std::mem::replace(&mut self.piece, piece)),
            waited => {
                // Its thread is gone, and the piece that it had.
                if waited.is_some() {
                    self.reader = None;
                }
                self.piece.fill(|room| read_ready(pty, room));
            }
        }
        if self.piece.is_full() {
            self.read_on(pty.get_ref());
        }
        &self.piece
    }

    /// Has the next piece read. Where the system refuses a thread, it is read when it is asked for.
    fn read_on(&mut self, pty: &Pty) {
        if self.reader.is_none() {
            self.reader = pty.try_clone().ok().and_then(Reader::start);
        }
        if let Some(reader) = &self.reader {
            let spare = self.spare.take().unwrap_or_else(Piece::new);
            if let Err(unsent) = reader.empty.send(spare) {
                self.spare = Some(unsent.0);
                self.reader = None;
            }
        }
    }
}

impl Reader {
    fn start(master: OwnedFd) -> Option<Reader> {
        let (empty, pieces) = sync_channel::<Piece>(1);
        let (done, filled) = sync_channel(1);
        let read = move || {
            for mut piece in pieces {
                // A terminal that cannot be read is gone.
                piece.fill(|room| pty::read(&master, room).unwrap_or(Output::HungUp));
                if done.send(piece).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name("output".into()).spawn(read).ok()?;
        Some(Reader { empty, filled })
    }
}

/// One read of the terminal if it is ready for that.
fn read_ready(pty: &AsyncFd<Pty>, room: &mut [u8]) -> Output {
    let read = pty.try_io(Interest::READABLE, |pty| match pty::read(pty, room)? {
        Output::Nothing => Err(io::ErrorKind::WouldBlock.into()),
        found => Ok(found),
    });
    match read {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Output::Nothing,
        Err(_) => Output::HungUp,
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rove_term::Size;

    use super::*;
    use crate::sys::{self, CoreLimit};

    /// What a session reads of a program's output, and its largest piece.
    fn output(script: &str) -> (Vec<u8>, usize) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let _context = runtime.enter();
        let mut pty = Pty::open(Size::clamped(24, 80)).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let mut child = pty.start(command, CoreLimit::current()).unwrap();
        pty.release();
        let pty = sys::watch(pty, Interest::READABLE | Interest::WRITABLE).unwrap();
        let (mut all, mut largest) = (Vec::new(), 0);
        let mut ahead = Ahead::new();
        runtime.block_on(async {
            loop {
                let piece = ahead.next(&pty);
                all.extend_from_slice(piece.octets());
                largest = largest.max(piece.octets().len());
                if piece.hung_up() {
                    break;
                }
                if !ahead.has_more() {
                    let _ = std::future::poll_fn(|cx| pty.poll_read_ready(cx)).await.unwrap();
                }
            }
        });
        assert!(child.wait().unwrap().success());
        (all, largest)
    }

    /// What was read before the thread ended is not read again.
    #[test]
    fn a_reader_that_ended_repeats_nothing() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let _context = runtime.enter();
        let pty = Pty::open(Size::clamped(24, 80)).unwrap();
        let pty = sys::watch(pty, Interest::READABLE | Interest::WRITABLE).unwrap();
        let gone = || {
            let ((empty, _), (_, filled)) = (sync_channel(1), sync_channel(1));
            Some(Reader { empty, filled })
        };
        let mut ahead = Ahead { piece: Piece::new(), spare: None, reader: gone() };
        ahead.piece.filled = PIECE_BYTES;
        assert_eq!(ahead.next(&pty).octets(), b"");
        ahead.reader = gone();
        ahead.read_on(pty.get_ref());
        assert!(ahead.reader.is_none() && ahead.spare.is_some());
    }

    #[test]
    fn output_comes_whole_and_in_order() {
        for (lines, last) in [(1, "1"), (200_000, "200000")] {
            let (all, largest) = output(&format!("seq {lines}"));
            let mut numbers = 0;
            for line in all.split_inclusive(|&octet| octet == b'\n') {
                numbers += 1;
                assert_eq!(line, format!("{numbers}\r\n").as_bytes());
            }
            assert_eq!(numbers.to_string(), last);
            assert!(largest <= PIECE_BYTES);
        }
    }
}
