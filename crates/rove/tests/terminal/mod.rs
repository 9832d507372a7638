//! A terminal for tests: runs a program on a pty of its own, types, and reads what it shows, within
//! time limits.
#![allow(dead_code)] // Each test program uses a part of it.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use rove_term::{Dialect, Size, Terminal as Emulator};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

/// How often a silent program is looked at, and how many times: 45 s in all.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
const SILENCE_TICKS_MAX: usize = 45 * 50;

/// A person's pause between what they paste and what they type.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 300_000_000 };

/// What a session switches on, and how that is undone.
const ON_AND_OFF: [(&str, &str); 3] =
    [("\x1b[?1049h", "\x1b[?1049l"), ("\x1b[?25l", "\x1b[?25h"), ("\x1b[?1h", "\x1b[?1l")];

/// The program under test.
pub const ROVE: &str = env!("CARGO_BIN_EXE_rove");

/// A terminal with one program on it.
pub struct Terminal {
    master: File,
    slave: OwnedFd,
    modes: Termios,
    child: Child,
    shown: Vec<u8>,
    /// How much of that was expected already.
    expected: usize,
    /// What a person sees.
    screen: Emulator,
    manners: Manners,
}

/// Whether the terminal answers queries.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Manners {
    Silent,
    Answers,
}

impl Terminal {
    /// Runs `program` with `words` on a terminal of 80 by 24, with `set` in an environment that is
    /// otherwise the test's own without what rove and mosh look at. An empty value unsets.
    pub fn run<W: AsRef<OsStr>>(program: &str, words: &[W], set: &[(&str, &str)]) -> Terminal {
        Terminal::sized(80, 24, program, words, set)
    }

    /// The same with another window.
    pub fn sized<W: AsRef<OsStr>>(
        cols: u16,
        rows: u16,
        program: &str,
        words: &[W],
        set: &[(&str, &str)],
    ) -> Terminal {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        fcntl_setfd(&master, FdFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let mut slave = OpenOptions::new();
        slave.read(true).write(true).custom_flags(OFlags::NOCTTY.bits() as i32);
        let slave = OwnedFd::from(slave.open(name).unwrap());
        tcsetwinsize(&slave, winsize(cols, rows)).unwrap();
        let modes = tcgetattr(&slave).unwrap();
        let stream = || Stdio::from(slave.try_clone().unwrap());
        let mut command = Command::new("setsid");
        command.args(["-c", program]).args(words);
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if ["ROVE_", "MOSH_", "LC_"].iter().any(|prefix| text.starts_with(prefix)) {
                command.env_remove(&name);
            }
        }
        for name in ["TERMINFO", "TERMINFO_DIRS", "COLORTERM"] {
            command.env_remove(name);
        }
        command.env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
        // Servers run as whoever tests, who is not to find them for a day.
        command.env("ROVE_SERVER_ORPHAN_TMOUT", "60");
        // What happens to UDP is tested here, and ssh would help out.
        command.env("ROVE_WAY", "udp");
        // Nothing is remembered there, nor configured, whoever runs the tests.
        command.env("XDG_STATE_HOME", "/dev/null").env("XDG_CONFIG_HOME", "/dev/null");
        for (name, value) in set {
            match *value {
                "" => command.env_remove(name),
                value => command.env(name, value),
            };
        }
        let child = command.stdin(stream()).stdout(stream()).stderr(stream()).spawn().unwrap();
        Terminal {
            master: File::from(master),
            slave,
            modes,
            child,
            shown: Vec::new(),
            expected: 0,
            screen: Emulator::new(Size::clamped(rows, cols), Dialect::ROVE),
            manners: Manners::Silent,
        }
    }

    /// Has the terminal answer queries, as our emulator does.
    pub fn answering(mut self) -> Terminal {
        self.manners = Manners::Answers;
        self
    }

    /// What a person sees, and the lines above it.
    pub fn screen(&self) -> &Emulator {
        &self.screen
    }

    /// Reads until what a person sees is as wanted.
    pub fn expect_screen(&mut self, what: &str, wanted: impl Fn(&Emulator) -> bool) {
        while !wanted(&self.screen) {
            let ended = self.read();
            let seen = self.screen.screen().text();
            assert!(ended.is_none() || wanted(&self.screen), "not seen: {what}\n{seen:#?}");
        }
    }

    /// Types.
    pub fn type_keys(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    /// Types nothing for a moment, so that earlier keys do not join later ones into a sequence.
    pub fn pause(&self) {
        poll(&mut [], Some(&PAUSE)).unwrap();
    }

    /// Changes the window's size.
    pub fn resize(&mut self, cols: u16, rows: u16) {
        self.screen.resize(Size::clamped(rows, cols));
        tcsetwinsize(&self.master, winsize(cols, rows)).unwrap();
    }

    /// Reads until `text` is shown.
    pub fn expect(&mut self, text: &str) {
        loop {
            let new = &self.shown[self.expected..];
            if let Some(at) = new.windows(text.len()).position(|part| part == text.as_bytes()) {
                self.expected += at + text.len();
                return;
            }
            let ended = self.read();
            assert_eq!(ended, None, "{text:?} is not in {}", self.text());
        }
    }

    /// Reads to the end and returns the exit status; 128 and more for a signal.
    pub fn finish(&mut self) -> i32 {
        loop {
            if let Some(status) = self.read() {
                return status;
            }
        }
    }

    /// Waits for the end without reading what is shown.
    pub fn finish_unread(&mut self) -> i32 {
        for _tick in 0..SILENCE_TICKS_MAX {
            if let Some(status) = self.child.try_wait().unwrap() {
                return code(status);
            }
            poll(&mut [], Some(&TICK)).unwrap();
        }
        panic!("hangs");
    }

    /// Takes the terminal away and waits for the end.
    pub fn hang_up(mut self) -> i32 {
        self.slave = File::open("/dev/null").unwrap().into();
        self.master = File::open("/dev/null").unwrap();
        self.finish_unread()
    }

    /// The process that was started.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The output so far, as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.shown).replace('\r', "")
    }

    /// Fails unless the terminal is as it was found: its modes, its screen, its cursor.
    pub fn assert_given_back(&self) {
        self.assert_modes_given_back();
        let text = self.text();
        for (on, off) in ON_AND_OFF {
            assert!(text.rfind(on) <= text.rfind(off), "{on:?} is not undone in {text:?}");
        }
    }

    /// Fails unless the terminal's modes are as they were found.
    pub fn assert_modes_given_back(&self) {
        let of = |modes: &Termios| {
            (modes.input_modes, modes.output_modes, modes.control_modes, modes.local_modes)
        };
        assert_eq!(of(&tcgetattr(&self.slave).unwrap()), of(&self.modes));
    }

    /// Reads what is shown next; the exit status once the program has ended and all is read.
    fn read(&mut self) -> Option<i32> {
        let mut buffer = [0; 65_536];
        for _tick in 0..SILENCE_TICKS_MAX {
            // Our own copy of the slave keeps the master from reporting the end: the child does. It
            // is asked first, since what it showed before it ended is there by then.
            let ended = self.child.try_wait().unwrap();
            if poll(&mut [PollFd::new(&self.master, PollFlags::IN)], Some(&TICK)).unwrap() > 0 {
                let len = self.master.read(&mut buffer).unwrap();
                self.shown.extend_from_slice(&buffer[..len]);
                self.screen.advance(&buffer[..len]);
                let answers = self.screen.take_replies();
                if self.manners == Manners::Answers {
                    self.master.write_all(&answers).unwrap();
                }
                return None;
            }
            if let Some(status) = ended {
                return Some(code(status));
            }
        }
        panic!("hangs after {}", self.text());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn winsize(cols: u16, rows: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 }
}

fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap())
}

/// A directory that goes away with the test.
pub struct Directory(PathBuf);

impl Directory {
    /// A new one.
    pub fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("rove-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    /// Where it is.
    pub fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }

    /// Puts another name for a program into it.
    pub fn link(&self, name: &str, program: &str) -> String {
        let path = self.0.join(name);
        symlink(program, &path).unwrap();
        path.into_os_string().into_string().unwrap()
    }

    /// Puts a shell script into it.
    pub fn script(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path.into_os_string().into_string().unwrap()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
