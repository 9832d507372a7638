//! A real xterm as the reference for control functions. It runs on a display of its own; tests write to it through
//! a pty and read it back by its checksums of single cells.
//!
//! One xterm serves many cases, since a reset costs a millisecond and a start half a second. It is set up as a
//! VT520 that allows everything, as conformance suites expect.

use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::pty::ptsname;
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use crate::clock::Clock;
use crate::process::Owned;
use crate::scratch::Scratch;
use crate::sys::open_pty;

/// How long an xterm may take to start or to answer.
const LIMIT: Duration = Duration::from_secs(60);
/// xterm's answer to XTVERSION, the last query: once it is here, all has been read.
const DONE: &[u8] = b"\x1bP>|XTerm(";
const END: &[u8] = b"\x1b\\";
/// Octets written before answers are read again: less than a pty holds.
const WRITE_BYTES: usize = 512;

/// X resources: a VT520 that answers and obeys, without preferences of a user.
const RESOURCES: &str = include_str!("xterm/resources");

/// Everything back to the start, on both screens, also what RIS leaves.
const RESET: &str = "\x18\x1b\\\x1bc\x1b[65;1\"p\x1b[?41l\x1b[?95l\x1b[?45l\x1b[?40l\x1b[?47h\x1b[2J\x1b[H\
                     \x1b7\x1b[?47l\x1b[2J\x1b[H";

/// An X server without a screen. Killed when dropped.
#[derive(Debug)]
struct Display {
    _child: Owned,
    number: u32,
    _scratch: Scratch,
}

impl Display {
    fn start() -> io::Result<Display> {
        let scratch = Scratch::new()?;
        let child = Command::new("Xvfb")
            .args([
                "-displayfd",
                "1",
                "-screen",
                "0",
                "1600x1200x24",
                "-nolisten",
                "tcp",
                "-noreset",
            ])
            .current_dir(scratch.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut child = Owned(child);
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut line)?;
        }
        let number = line.trim().parse();
        let number = number
            .map_err(|_| io::Error::other(format!("Xvfb says {line:?} instead of its display")))?;
        Ok(Display { _child: child, number, _scratch: scratch })
    }
}

/// Checksums as plain code points, without attributes.
const PLAIN_SUMS: u32 = 23;
/// The same with attributes.
const DRESSED_SUMS: u32 = 21;

/// The value that a cell's attributes add to its checksum.
pub const INVISIBLE: u32 = 0x08;
/// As [`INVISIBLE`].
pub const UNDERLINE: u32 = 0x10;
/// As [`INVISIBLE`].
pub const INVERSE: u32 = 0x20;
/// As [`INVISIBLE`].
pub const BLINK: u32 = 0x40;
/// As [`INVISIBLE`].
pub const BOLD: u32 = 0x80;

/// The screen of an xterm.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Look {
    /// Rows from top to bottom, trailing blanks cut; the right half of a wide cell gives nothing.
    pub rows: Vec<String>,
    /// Row and column on the screen, from 0.
    pub cursor: (u16, u16),
}

/// An xterm. Killed when dropped.
#[derive(Debug)]
pub struct Xterm {
    child: Owned,
    slave: OwnedFd,
    unread: Vec<u8>,
    _display: Display,
}

impl Xterm {
    /// Starts one on a display of its own.
    ///
    /// # Errors
    /// If xterm or Xvfb is missing or does not start.
    pub fn start() -> io::Result<Xterm> {
        let display = Display::start()?;
        let (master, slave) = open_pty(24, 80)?;
        ioctl_fionbio(&slave, true)?;
        let name = ptsname(&master, Vec::new())?;
        let mut raw = tcgetattr(&slave)?;
        raw.make_raw();
        tcsetattr(&slave, OptionalActions::Now, &raw)?;
        let name = name.to_string_lossy().replace("/dev/", "");
        let mut command = Command::new("xterm");
        for resource in RESOURCES.lines() {
            command.args([
                "-xrm",
                &format!("*VT100*{resource}"),
                "-xrm",
                &format!("XTerm*{resource}"),
            ]);
        }
        // It shows output to this pty, whose master is its standard input.
        let child = command
            .arg(format!("-S{name}/0"))
            .env("DISPLAY", format!(":{}", display.number))
            .env("LC_ALL", "C.UTF-8")
            .stdin(master)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut xterm = Xterm { child: Owned(child), slave, unread: Vec::new(), _display: display };
        // First it tells the number of its window.
        xterm.read_until(|unread| unread.contains(&b'\n'))?;
        xterm.unread.clear();
        xterm.write(b"")?;
        Ok(xterm)
    }

    /// Back to the start, at this size.
    pub fn reset(&mut self, rows: u16, cols: u16) -> io::Result<()> {
        self.write(format!("{RESET}\x1b[8;{rows};{cols}t").as_bytes())?;
        // A window is resized by way of the X server.
        let wanted = format!("\x1b[8;{rows};{cols}t").into_bytes();
        let clock = Clock::start();
        while self.write(b"\x1b[18t")? != wanted {
            if clock.elapsed() > LIMIT {
                return Err(io::Error::other(format!("xterm does not become {rows}x{cols}")));
            }
        }
        Ok(())
    }

    /// Writes to it and returns its answers.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let ready = self.wait(PollFlags::IN | PollFlags::OUT)?;
            if ready.contains(PollFlags::IN) {
                self.read()?;
            }
            if ready.contains(PollFlags::OUT) {
                let piece = &rest[..rest.len().min(WRITE_BYTES)];
                match rustix::io::write(&self.slave, piece) {
                    Ok(written) => rest = &rest[written..],
                    Err(Errno::AGAIN | Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        rustix::io::write(&self.slave, b"\x1b[>q")?;
        self.read_until(|unread| done(unread).is_some())?;
        let Some(place) = done(&self.unread) else { return Ok(Vec::new()) };
        let mut answered = std::mem::take(&mut self.unread);
        answered.truncate(place);
        Ok(answered)
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Reads its screen, every cell of it.
    pub fn look(&mut self) -> io::Result<Look> {
        let size = self.numbers(b"\x1b[18t")?;
        let cursor = self.numbers(b"\x1b[?6n")?;
        let origin = self.numbers(b"\x1b[?6$p")?;
        let [_, rows, cols] = size[..] else { return Err(unreadable("size")) };
        let [row, col, ..] = cursor[..] else { return Err(unreadable("cursor")) };
        let (mut top, mut left) = (1, 1);
        if origin.get(1) == Some(&1) {
            top = *self.numbers(b"\x1bP$qr\x1b\\")?.get(1).ok_or_else(|| unreadable("margins"))?;
            left = *self.numbers(b"\x1bP$qs\x1b\\")?.get(1).ok_or_else(|| unreadable("margins"))?;
        }
        let sums = self.sums(PLAIN_SUMS, rows, cols)?;
        let rows = sums.chunks(cols as usize).map(text).collect();
        Ok(Look { rows, cursor: ((row + top - 2) as u16, (col + left - 2) as u16) })
    }

    /// Reads the attributes of every cell, row by row: [`BOLD`] and the like, added.
    pub fn attributes(&mut self) -> io::Result<Vec<Vec<u32>>> {
        let [_, rows, cols] = self.numbers(b"\x1b[18t")?[..] else {
            return Err(unreadable("size"));
        };
        let plain = self.sums(PLAIN_SUMS, rows, cols)?;
        let dressed = self.sums(DRESSED_SUMS, rows, cols)?;
        let pairs = dressed.iter().zip(&plain);
        let attributes: Vec<u32> = pairs.map(|(sum, code)| sum.wrapping_sub(*code)).collect();
        Ok(attributes.chunks(cols as usize).map(<[u32]>::to_vec).collect())
    }

    /// The checksum of every cell.
    fn sums(&mut self, kind: u32, rows: u32, cols: u32) -> io::Result<Vec<u32>> {
        let mut ask = format!("\x18\x1b[65;1\"p\x1b[{kind}#y");
        for row in 1..=rows {
            for col in 1..=cols {
                ask.push_str(&format!("\x1b[1;0;{row};{col};{row};{col}*y"));
            }
        }
        ask.push_str("\x1b[0#y");
        let answered = self.write(ask.as_bytes())?;
        let sums: Vec<u32> = String::from_utf8_lossy(&answered)
            .split("!~")
            .skip(1)
            .filter_map(|part| u32::from_str_radix(part.get(..4)?, 16).ok())
            .collect();
        if sums.len() != (rows * cols) as usize {
            return Err(unreadable("cells"));
        }
        Ok(sums)
    }

    /// The numbers of the answer to a query.
    fn numbers(&mut self, query: &[u8]) -> io::Result<Vec<u32>> {
        let answered = self.write(query)?;
        let text = String::from_utf8_lossy(&answered);
        let words = text.split(|c: char| !c.is_ascii_digit());
        Ok(words.filter_map(|word| word.parse().ok()).collect())
    }

    fn read_until(&mut self, done: impl Fn(&[u8]) -> bool) -> io::Result<()> {
        let clock = Clock::start();
        while !done(&self.unread) {
            if clock.elapsed() > LIMIT {
                return Err(silent());
            }
            self.wait(PollFlags::IN)?;
            self.read()?;
        }
        Ok(())
    }

    fn read(&mut self) -> io::Result<()> {
        let mut buffer = [0; 4096];
        match rustix::io::read(&self.slave, &mut buffer) {
            Ok(0) => return Err(gone()),
            Ok(length) => self.unread.extend_from_slice(&buffer[..length]),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn wait(&self, wanted: PollFlags) -> io::Result<PollFlags> {
        let limit = Timespec { tv_sec: LIMIT.as_secs() as i64, tv_nsec: 0 };
        let mut watched = [PollFd::new(&self.slave, wanted)];
        match poll(&mut watched, Some(&limit)) {
            Ok(0) => Err(silent()),
            Ok(_) => match watched[0].revents() {
                ready if ready.contains(PollFlags::HUP) && !ready.contains(PollFlags::IN) => {
                    Err(gone())
                }
                ready => Ok(ready),
            },
            Err(Errno::INTR) => Ok(PollFlags::empty()),
            Err(error) => Err(error.into()),
        }
    }
}

/// An xterm that runs a program, as a user's does. It is killed when dropped.
#[derive(Debug)]
pub struct Window {
    _child: Owned,
    _display: Display,
    scratch: Scratch,
}

impl Window {
    /// Starts one, with a line for bash. [`PRINT`] makes it print what it holds.
    ///
    /// # Errors
    /// If xterm or Xvfb is missing or does not start.
    pub fn start(line: &str, settle: impl FnOnce(&mut Command)) -> io::Result<Window> {
        let (display, scratch) = (Display::start()?, Scratch::new()?);
        let printed = scratch.join(PRINTED);
        let resources = [
            format!("printerCommand: cat > {}", printed.display()),
            "printerAutoClose: true".into(),
            "printAttributes: 0".into(),
            format!("saveLines: {SAVED_LINES}"),
            "allowWindowOps: true".into(),
            "utf8: 2".into(),
            "font: fixed".into(),
        ];
        let mut command = Command::new("xterm");
        for resource in resources {
            command.args(["-xrm", &format!("*VT100*{resource}")]);
        }
        settle(&mut command);
        let child = command
            .args(["-geometry", "80x24", "-e", "bash", "--norc", "-c", line])
            .env("DISPLAY", format!(":{}", display.number))
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Window { _child: Owned(child), _display: display, scratch })
    }

    /// Its saved lines and its screen as they were last printed, without blanks at their ends; `None` if they were not.
    pub fn printed(&self) -> Option<Vec<String>> {
        let text = fs::read_to_string(self.scratch.join(PRINTED)).ok()?;
        Some(text.lines().map(|line| line.trim_end().to_owned()).collect())
    }
}

/// Octets, as printf(1) writes them, at which a [`Window`] prints all of its lines. Smooth scrolling first, since lines that
/// its jump scrolling has not drawn yet are missing otherwise.
pub const PRINT: &str = "\\e[?4h\\e[?11i";

/// The file for what it prints.
const PRINTED: &str = "printed";

/// Lines above its screen that it keeps.
const SAVED_LINES: u32 = 50_000;

fn silent() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "xterm does not answer")
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "xterm has ended")
}

fn unreadable(what: &str) -> io::Error {
    io::Error::other(format!("xterm did not tell its {what}"))
}

/// Where the answer to XTVERSION begins, once it is complete.
fn done(unread: &[u8]) -> Option<usize> {
    let place = unread.windows(DONE.len()).rposition(|window| window == DONE)?;
    let after = &unread[place + DONE.len()..];
    after.windows(END.len()).any(|window| window == END).then_some(place)
}

/// The text of a row of sums: an untouched cell is blank, the right half of a wide one is all ones.
fn text(sums: &[u32]) -> String {
    let chars = sums.iter().filter(|sum| **sum != 0xffff).map(|sum| match sum {
        0 => ' ',
        code => char::from_u32(*code).unwrap_or(char::REPLACEMENT_CHARACTER),
    });
    let text: String = chars.collect();
    text.trim_end_matches(' ').to_owned()
}
