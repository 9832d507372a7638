//! The terminal a session's program runs on. Nothing here ever waits: the master side does not block,
//! neither for a program that does not read nor for one that does not write.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::process::{Child, Command, Stdio};

use rove_session::line_mode::{LineLook, LineMode, Mode, is_part_of_line};
use rove_term::Size;
use rustix::fs::OFlags;
use rustix::io::{Errno, FdFlags};
use rustix::process::{Pid, Signal};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, Winsize,
};

use crate::os::modes::Modes;
use crate::os::system::terminal::{DISABLED, IUTF8, MASTER, open_slave};
use crate::os::unix::process::{CoreLimit, lead_terminal_session};
use crate::os::unix::signals::signal_foreground;

/// The master side of a terminal; the slave side too until its program has ended.
#[derive(Debug)]
pub(crate) struct Pty {
    master: OwnedFd,
    /// Held so that the terminal is not seen as hung up before its program runs, nor while it runs with
    /// its streams pointed elsewhere (`make >log 2>&1 </dev/null`).
    slave: Option<OwnedFd>,
}

/// What a read found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Output {
    /// This many octets.
    Bytes(usize),
    /// Nothing yet.
    Nothing,
    /// No program has the terminal open any more.
    HungUp,
}

/// A terminal that passes on octets as they are: its master, which does not block, and its slave.
pub(crate) fn plain() -> io::Result<(OwnedFd, OwnedFd)> {
    open_pair(|modes| modes.make_raw())
}

fn open_pair(change: impl FnOnce(&mut Termios)) -> io::Result<(OwnedFd, OwnedFd)> {
    let master = rustix::pty::openpt(MASTER)?;
    rustix::io::fcntl_setfd(&master, FdFlags::CLOEXEC)?;
    rustix::pty::grantpt(&master)?;
    rustix::pty::unlockpt(&master)?;
    let slave = open_slave(&master)?;
    let mut modes = rustix::termios::tcgetattr(&slave)?;
    change(&mut modes);
    rustix::termios::tcsetattr(&slave, OptionalActions::Now, &modes)?;
    let status = rustix::fs::fcntl_getfl(&master)?;
    rustix::fs::fcntl_setfl(&master, status | OFlags::NONBLOCK)?;
    Ok((master, slave))
}

impl Pty {
    /// Opens a terminal of this size that takes UTF-8 (`IUTF8`: erasing takes whole characters).
    pub(crate) fn open(size: Size) -> io::Result<Pty> {
        let (master, slave) = open_pair(|modes| modes.input_modes |= IUTF8)?;
        let pty = Pty { master, slave: Some(slave) };
        pty.resize(size)?;
        Ok(pty)
    }

    /// Its number below `/dev/pts`.
    pub(crate) fn number(&self) -> Option<u32> {
        let name = rustix::pty::ptsname(&self.master, Vec::new()).ok()?;
        name.to_str().ok()?.strip_prefix("/dev/pts/")?.parse().ok()
    }

    /// Sets it as its user's terminal is.
    pub(crate) fn set(&self, wanted: &Modes) -> io::Result<()> {
        let mut modes = rustix::termios::tcgetattr(&self.master)?;
        crate::os::unix::tty::modes::apply(wanted, &mut modes);
        Ok(rustix::termios::tcsetattr(&self.master, OptionalActions::Now, &modes)?)
    }

    /// Starts `command` as the leader of a session on this terminal.
    ///
    /// # Errors
    /// The system's, also when the program cannot be executed.
    ///
    /// # Panics
    /// After [`Pty::release`].
    pub(crate) fn start(&self, mut command: Command, cores: CoreLimit) -> io::Result<Child> {
        self.prepare(&mut command, cores)?;
        command.spawn()
    }

    /// Makes `command` start as the leader of a session on this terminal.
    ///
    /// # Panics
    /// After [`Pty::release`].
    pub(crate) fn prepare(&self, command: &mut Command, cores: CoreLimit) -> io::Result<()> {
        // One program a terminal, and only its end releases it.
        let slave = self.slave.as_ref().expect("the terminal is held until its program has ended");
        command.stdin(Stdio::from(slave.try_clone()?));
        command.stdout(Stdio::from(slave.try_clone()?));
        command.stderr(Stdio::from(slave.try_clone()?));
        lead_terminal_session(command, cores);
        Ok(())
    }

    /// Closes the slave: the terminal is hung up once no program has it open. Call it when the program has
    /// ended, or could not be started.
    pub(crate) fn release(&mut self) {
        self.slave = None;
    }

    /// The process group that the terminal's keys go to.
    pub(crate) fn foreground(&self) -> Option<Pid> {
        rustix::termios::tcgetpgrp(&self.master).ok()
    }

    /// Tells the programs on the terminal its new size (SIGWINCH).
    pub(crate) fn resize(&self, size: Size) -> io::Result<()> {
        let size = Winsize { ws_row: size.rows, ws_col: size.cols, ws_xpixel: 0, ws_ypixel: 0 };
        Ok(rustix::termios::tcsetwinsize(&self.master, size)?)
    }

    /// The master side once more, to be read by another thread.
    pub(crate) fn try_clone(&self) -> io::Result<OwnedFd> {
        self.master.try_clone()
    }

    /// Types `bytes`; returns how many the terminal took, 0 when its program does not read.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            return match rustix::io::write(&self.master, bytes) {
                Ok(count) => Ok(count),
                Err(Errno::AGAIN) => Ok(0),
                Err(Errno::INTR) => continue,
                Err(error) => Err(error.into()),
            };
        }
    }
}

/// Reads what programs wrote, from the master side of their terminal.
pub(crate) fn read(master: impl AsFd, buffer: &mut [u8]) -> io::Result<Output> {
    loop {
        return match rustix::io::read(&master, &mut *buffer) {
            Ok(0) | Err(Errno::IO) => Ok(Output::HungUp),
            Ok(count) => Ok(Output::Bytes(count)),
            Err(Errno::AGAIN) => Ok(Output::Nothing),
            Err(Errno::INTR) => continue,
            Err(error) => Err(error.into()),
        };
    }
}

/// The keys that are for the terminal rather than the program, as it is set now (termios(3), `ISIG`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Interrupts {
    keys: [(u8, Signal); 3],
    /// Which octets such a key makes the terminal forget (`NOFLSH`).
    forget: Forgotten,
}

/// Octets typed before an interrupting key and not read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Forgotten {
    /// They are still to be read.
    Nothing,
    /// They are gone.
    All,
}

impl Interrupts {
    /// The usual keys.
    #[cfg(test)]
    pub(crate) fn usual(forget: Forgotten) -> Interrupts {
        Interrupts { keys: [(3, Signal::INT), (28, Signal::QUIT), (26, Signal::TSTP)], forget }
    }

    /// Which octets such a key makes the terminal forget.
    pub(crate) fn forgets(&self) -> Forgotten {
        self.forget
    }

    /// The signal that this octet would send; `None` if it is only input.
    pub(crate) fn signal(&self, octet: u8) -> Option<Signal> {
        let key = self.keys.iter().find(|&&(key, _)| key == octet && key != DISABLED);
        key.map(|&(_, signal)| signal)
    }
}

impl Pty {
    /// The keys that interrupt, none if the program takes all as input.
    pub(crate) fn interrupts(&self) -> io::Result<Interrupts> {
        let modes = rustix::termios::tcgetattr(&self.master)?;
        let key = |code| match modes.local_modes.contains(LocalModes::ISIG) {
            true => modes.special_codes[code],
            false => DISABLED,
        };
        Ok(Interrupts {
            keys: [
                (key(SpecialCodeIndex::VINTR), Signal::INT),
                (key(SpecialCodeIndex::VQUIT), Signal::QUIT),
                (key(SpecialCodeIndex::VSUSP), Signal::TSTP),
            ],
            forget: match modes.local_modes.contains(LocalModes::NOFLSH) {
                true => Forgotten::Nothing,
                false => Forgotten::All,
            },
        })
    }

    /// How the line handles keys.
    pub(crate) fn look_at_line(&self) -> io::Result<LineLook> {
        look_at_line(&self.master)
    }

    /// Does at once what such a key would do at the terminal, which cannot read that far while the program
    /// leaves its input full.
    pub(crate) fn interrupt(&self, interrupts: Interrupts, signal: Signal) -> io::Result<()> {
        if interrupts.forget == Forgotten::All {
            // Input can only be flushed from the slave's side.
            let slave = open_slave(&self.master)?;
            rustix::termios::tcflush(&slave, QueueSelector::IFlush)?;
        }
        signal_foreground(self.master.as_fd(), signal)
    }
}

/// How a terminal's line handles keys.
///
/// # Errors
/// If the terminal is gone.
pub fn look_at_line(terminal: impl AsFd) -> io::Result<LineLook> {
    let modes = rustix::termios::tcgetattr(terminal)?;
    let mode = |bit| if modes.local_modes.contains(bit) { Mode::On } else { Mode::Off };
    let key = |code| modes.special_codes[code];
    let ends = [SpecialCodeIndex::VEOF, SpecialCodeIndex::VEOL, SpecialCodeIndex::VEOL2].map(key);
    let signals = [SpecialCodeIndex::VINTR, SpecialCodeIndex::VQUIT, SpecialCodeIndex::VSUSP];
    let signals = match modes.local_modes.contains(LocalModes::ISIG) {
        true => signals.map(key),
        false => [DISABLED; 3],
    };
    let mut special = ends.into_iter().chain(signals);
    // Without their top bits octets become others, and with EXTPROC no line is gathered.
    let maps = modes.input_modes.contains(InputModes::ISTRIP);
    let gathers = !modes.local_modes.contains(LocalModes::EXTPROC);
    Ok(LineLook {
        mode: LineMode::of(mode(LocalModes::ICANON), mode(LocalModes::ECHO)),
        is_usual: gathers && !maps && !special.any(|key| key != DISABLED && is_part_of_line(key)),
    })
}

impl AsFd for Pty {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.master.as_fd()
    }
}

impl AsRawFd for Pty {
    fn as_raw_fd(&self) -> RawFd {
        self.master.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, Timespec};

    use super::*;

    fn started(script: &str) -> (Pty, Child) {
        let mut pty = Pty::open(Size::clamped(7, 30)).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let cores = CoreLimit::current();
        let child = pty.start(command, cores).unwrap();
        pty.release();
        (pty, child)
    }

    /// Everything that is written until the terminal is hung up.
    fn output(pty: &Pty) -> String {
        let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
        loop {
            match read(pty, &mut buffer).unwrap() {
                Output::Bytes(count) => all.extend(&buffer[..count]),
                Output::HungUp => return String::from_utf8(all).unwrap(),
                Output::Nothing => {
                    let limit = Timespec { tv_sec: 20, tv_nsec: 0 };
                    let mut fds = [PollFd::new(pty, PollFlags::IN)];
                    assert_eq!(rustix::event::poll(&mut fds, Some(&limit)), Ok(1));
                }
            }
        }
    }

    #[test]
    fn a_program_has_a_terminal_of_its_own() {
        let (pty, mut child) = started("stty size; stty -a | grep -o iutf8; ps -o sid= -p $$; tty");
        let text = output(&pty);
        let mut lines = text.lines().map(str::trim);
        assert_eq!(lines.next(), Some("7 30"));
        assert_eq!(lines.next(), Some("iutf8"));
        assert_eq!(lines.next(), Some(child.id().to_string().as_str()));
        assert!(lines.next().unwrap().starts_with("/dev/pts/"));
        assert!(child.wait().unwrap().success());
    }

    #[test]
    fn writing_never_waits() {
        let (pty, mut child) = started("stty raw; echo ready; exec sleep 1000");
        let mut taken = 0;
        loop {
            match pty.write(&[b'x'; 4096]).unwrap() {
                0 => break,
                count => taken += count,
            }
            assert!(taken < 1 << 24, "a terminal without end");
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// `stty` with these words leaves special characters that belong to no line, or does not.
    #[test]
    fn special_characters() {
        for (words, is_usual) in [
            ("sane", true),
            ("eol ^X", true),
            ("intr ^?", false),
            ("eol x", false),
            ("eol2 x", false),
            ("eof x", false),
            ("susp x", false),
            ("susp x -isig", true),
            ("quit ^W", false),
            ("kill x", true),
            ("lnext undef", true),
            ("istrip", false),
            ("extproc", false),
        ] {
            let pty = Pty::open(Size::clamped(7, 30)).unwrap();
            let terminal = format!("/dev/pts/{}", pty.number().unwrap());
            let mut stty = Command::new("stty");
            stty.args(["-F", &terminal]).args(words.split(' '));
            assert!(stty.status().unwrap().success(), "{words}");
            assert_eq!(pty.look_at_line().unwrap().is_usual, is_usual, "{words}");
        }
    }

    #[test]
    fn line_modes() {
        let script = "for mode in echo -echo raw; do stty $mode; printf :; read x; done";
        let (pty, mut child) = started(script);
        for mode in [LineMode::Cooked, LineMode::Hidden, LineMode::Raw] {
            let mut said = Vec::new();
            while !said.contains(&b':') {
                let limit = Timespec { tv_sec: 20, tv_nsec: 0 };
                let mut fds = [PollFd::new(&pty, PollFlags::IN)];
                assert_eq!(rustix::event::poll(&mut fds, Some(&limit)), Ok(1), "{mode:?}");
                let mut buffer = [0; 64];
                if let Output::Bytes(count) = read(&pty, &mut buffer).unwrap() {
                    said.extend(&buffer[..count]);
                }
            }
            assert_eq!(pty.look_at_line().unwrap(), LineLook { mode, is_usual: true });
            pty.write(b"\n").unwrap();
        }
        assert!(child.wait().unwrap().success());
    }

    #[test]
    fn interrupt_keys() {
        let (pty, mut child) = started("stty quit undef; echo; exec sleep 1000");
        let limit = Timespec { tv_sec: 20, tv_nsec: 0 };
        rustix::event::poll(&mut [PollFd::new(&pty, PollFlags::IN)], Some(&limit)).unwrap();
        let interrupts = pty.interrupts().unwrap();
        for (octet, signal) in
            [(3, Some(Signal::INT)), (26, Some(Signal::TSTP)), (28, None), (0, None), (b'c', None)]
        {
            assert_eq!(interrupts.signal(octet), signal, "{octet}");
        }
        assert_eq!(interrupts.forgets(), Forgotten::All);
        pty.interrupt(interrupts, Signal::INT).unwrap();
        let status = std::os::unix::process::ExitStatusExt::signal(&child.wait().unwrap());
        assert_eq!(status, Some(2));
    }
}
