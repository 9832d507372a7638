//! Records a program's exact output: a wrapper runs it on a pty, passes everything through, and keeps the octets
//! and the window sizes between them. Interop tests feed a record to an emulator and compare its screen with the
//! client's.
//!
//! A record is a sequence of entries, each a kind, a length (32 bits, little-endian) and that many octets.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::termios::{OptionalActions, tcgetattr, tcgetwinsize, tcsetattr};

use crate::process::{read_terminal, wait_ready};
use crate::sys::{set_window_size, spawn_on_pty};

/// One entry of a record.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Entry {
    /// The process that started the wrapper: the server under test.
    Parent(u32),
    /// The window size from here on, rows and columns.
    Size(u16, u16),
    /// The program's output.
    Output(Vec<u8>),
    /// The program ended with this status; the last entry.
    Exit(i32),
}

impl Entry {
    fn encode(&self) -> Vec<u8> {
        let (kind, payload) = match self {
            Entry::Parent(pid) => (b'P', pid.to_le_bytes().to_vec()),
            Entry::Size(rows, cols) => (b'S', [rows.to_le_bytes(), cols.to_le_bytes()].concat()),
            Entry::Output(octets) => (b'O', octets.clone()),
            Entry::Exit(status) => (b'X', status.to_le_bytes().to_vec()),
        };
        let mut out = vec![kind];
        out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        out.extend_from_slice(&payload);
        out
    }

    /// The first entry of `octets` and its length; `None` if it is not complete yet.
    ///
    /// # Errors
    /// If this is no record.
    pub(crate) fn decode(octets: &[u8]) -> Result<Option<(Entry, usize)>, BadEntry> {
        let Some((head, rest)) = octets.split_at_checked(5) else { return Ok(None) };
        let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let Some(payload) = rest.get(..length) else { return Ok(None) };
        let word = || payload.try_into().map(u32::from_le_bytes);
        let entry = match (head[0], payload) {
            (b'P', [..]) if length == 4 => word().map(Entry::Parent),
            (b'S', &[r0, r1, c0, c1]) => {
                Ok(Entry::Size(u16::from_le_bytes([r0, r1]), u16::from_le_bytes([c0, c1])))
            }
            (b'O', _) => Ok(Entry::Output(payload.to_vec())),
            (b'X', [..]) if length == 4 => word().map(|status| Entry::Exit(status as i32)),
            (kind, _) => return Err(BadEntry { kind, length }),
        };
        Ok(entry.ok().map(|entry| (entry, head.len() + length)))
    }
}

/// An entry's head that no record has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct BadEntry {
    kind: u8,
    length: usize,
}

impl std::fmt::Display for BadEntry {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let BadEntry { kind, length } = self;
        write!(out, "no entry of a record has kind {kind} and length {length}")
    }
}

impl std::error::Error for BadEntry {}

/// Reads a record while it is being written.
#[derive(Debug)]
pub(crate) struct Reader {
    file: Option<File>,
    path: std::path::PathBuf,
    pending: Vec<u8>,
}

impl Reader {
    /// Of the record at `path`, which need not exist yet.
    pub(crate) fn new(path: &Path) -> Reader {
        Reader { file: None, path: path.to_owned(), pending: Vec::new() }
    }

    /// The entries written since the last call.
    pub(crate) fn read(&mut self) -> io::Result<Vec<Entry>> {
        if self.file.is_none() {
            match File::open(&self.path) {
                Ok(file) => self.file = Some(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
                Err(error) => return Err(error),
            }
        }
        if let Some(file) = &mut self.file {
            file.read_to_end(&mut self.pending)?;
        }
        let mut entries = Vec::new();
        let mut start = 0;
        while let Some((entry, length)) =
            Entry::decode(&self.pending[start..]).map_err(io::Error::other)?
        {
            entries.push(entry);
            start += length;
        }
        self.pending.drain(..start);
        Ok(entries)
    }
}

/// Runs a program on a terminal of its own between this process's standard input and output, writing the
/// record to `path`. Returns the program's exit status, 128 more than the signal that killed it.
///
/// It begins by clearing the screen, so that what others wrote there before does not matter.
pub(crate) fn run(path: &Path, program: &[OsString]) -> io::Result<i32> {
    let (name, arguments) =
        program.split_first().ok_or_else(|| io::Error::other("no program to run"))?;
    let stdin = rustix::stdio::stdin();
    let size = tcgetwinsize(stdin)?;
    let mut modes = tcgetattr(stdin)?;
    modes.make_raw();
    tcsetattr(stdin, OptionalActions::Now, &modes)?;
    let mut command = Command::new(name);
    command.args(arguments);
    let (child, master) = spawn_on_pty(command, size.ws_row, size.ws_col)?;
    let parent = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get() as u32);
    let mut tee = Tee {
        record: File::create(path)?,
        child,
        master: master.into(),
        size: (size.ws_row, size.ws_col),
    };
    tee.write(Entry::Parent(parent))?;
    tee.write(Entry::Size(tee.size.0, tee.size.1))?;
    tee.pass_on(b"\x1b[0m\x1b[H\x1b[2J")?;
    tee.run()
}

struct Tee {
    record: File,
    child: Child,
    master: File,
    size: (u16, u16),
}

impl Tee {
    fn run(&mut self) -> io::Result<i32> {
        let mut stdin_open = true;
        let mut output_open = true;
        while output_open {
            let (input, output) = self.wait(stdin_open)?;
            self.follow_size()?;
            if input {
                stdin_open = self.pass_input()?;
            }
            if !stdin_open {
                // The terminal is gone: so is the program's, with the signal that goes with it.
                let _ = self.child.kill();
            }
            if output {
                output_open = self.pass_output()?;
            }
        }
        let status = self.child.wait()?;
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        self.write(Entry::Exit(code))?;
        Ok(code)
    }

    /// Which of input and output can be read. Comes back at least each `SIZE_POLL` to see the window size,
    /// so that no signal handler is needed.
    fn wait(&self, stdin_open: bool) -> io::Result<(bool, bool)> {
        let stdin = rustix::stdio::stdin();
        let wanted = if stdin_open { PollFlags::IN } else { PollFlags::empty() };
        let mut watched = [
            PollFd::from_borrowed_fd(self.master.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(stdin, wanted),
        ];
        wait_ready(&mut watched, Some(SIZE_POLL))?;
        let [output, input] = watched.map(|fd| !fd.revents().is_empty());
        Ok((input && stdin_open, output))
    }

    fn follow_size(&mut self) -> io::Result<()> {
        let Ok(size) = tcgetwinsize(rustix::stdio::stdin()) else { return Ok(()) };
        let size = (size.ws_row, size.ws_col);
        if size != self.size {
            self.size = size;
            self.write(Entry::Size(size.0, size.1))?;
            set_window_size(&self.master, size.0, size.1)?;
        }
        Ok(())
    }

    /// Whether there may be more.
    fn pass_input(&mut self) -> io::Result<bool> {
        let mut buffer = [0; CHUNK_BYTES];
        let length = read_terminal(rustix::stdio::stdin(), &mut buffer)?;
        self.master.write_all(&buffer[..length.unwrap_or(0)])?;
        Ok(length.is_some())
    }

    /// Whether there may be more.
    fn pass_output(&mut self) -> io::Result<bool> {
        let mut buffer = [0; CHUNK_BYTES];
        let length = read_terminal(&self.master, &mut buffer)?;
        if let Some(length @ 1..) = length {
            self.pass_on(&buffer[..length])?;
        }
        Ok(length.is_some())
    }

    /// The record first, so that output on the screen is always recorded.
    fn pass_on(&mut self, octets: &[u8]) -> io::Result<()> {
        self.write(Entry::Output(octets.to_vec()))?;
        let mut stdout = io::stdout().lock();
        stdout.write_all(octets)?;
        stdout.flush()
    }

    fn write(&mut self, entry: Entry) -> io::Result<()> {
        self.record.write_all(&entry.encode())
    }
}

/// How often the window size is looked at: every 10 ms, well below any wait of a test.
const SIZE_POLL: Duration = Duration::from_millis(10);

/// One read; a pty hands out at most 4 KiB at a time.
const CHUNK_BYTES: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back() {
        let entries = [
            Entry::Parent(77),
            Entry::Size(24, 80),
            Entry::Output(b"hello".to_vec()),
            Entry::Output(Vec::new()),
            Entry::Exit(-1),
        ];
        let octets: Vec<u8> = entries.iter().flat_map(Entry::encode).collect();
        let mut start = 0;
        for entry in &entries {
            let (found, length) = Entry::decode(&octets[start..]).unwrap().unwrap();
            assert_eq!(&found, entry);
            assert_eq!(Entry::decode(&octets[start..start + length - 1]), Ok(None));
            start += length;
        }
        assert_eq!(Entry::decode(&octets[start..]), Ok(None));
    }

    #[test]
    fn other_files_are_no_records() {
        for bad in [&b"Z\0\0\0\0"[..], b"S\x01\0\0\0x", b"P\0\0\0\0"] {
            assert!(Entry::decode(bad).is_err(), "{bad:?}");
        }
    }
}
