//! Runs real programs on ptys: starts one, types at it, and reads its screen through rove's own emulator.
//!
//! Nothing here sleeps for a fixed time: a caller says what it waits for, and for how long at most.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use rove_term::{Dialect, Screen, Size, Terminal};
use rustix::event::{PollFd, PollFlags};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::clock::Clock;
use crate::process::{Owned, read_terminal, wait_ready};
use crate::sys::{set_window_size, spawn_on_pty};

/// A program that is killed after this many seconds: its status is 124 then, and 127 if there is no such program
/// (timeout(1), of Debian's coreutils).
pub fn limited(program: impl AsRef<OsStr>, seconds: u32) -> Command {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", &seconds.to_string()]).arg(program);
    // Links are emulated for UDP: over ssh a session would go round them.
    command.env("ROVE_WAY", "udp");
    command
}

/// A program on a pty, and the terminal that shows it. Killed when dropped.
#[derive(Debug)]
pub struct Program {
    child: Owned,
    master: OwnedFd,
    terminal: Terminal,
    /// Typed, and not yet taken by the pty. Held by the callers: they type lines, not files.
    outgoing: VecDeque<u8>,
    output_bytes: u64,
    closed: bool,
    status: Option<ExitStatus>,
}

/// The awaited condition did not come true.
#[derive(Clone, Debug)]
pub struct Missed {
    what: String,
    waited: Duration,
    screen: Vec<String>,
}

impl fmt::Display for Missed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "waited {:.1} s for {}; the screen:", self.waited.as_secs_f32(), self.what)?;
        for row in self.screen.iter().filter(|row| !row.is_empty()) {
            writeln!(out, "  |{row}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Missed {}

impl From<Missed> for io::Error {
    fn from(missed: Missed) -> io::Error {
        io::Error::new(io::ErrorKind::TimedOut, missed)
    }
}

impl Program {
    /// Starts it on a new terminal of this size.
    pub fn start(command: Command, size: Size) -> io::Result<Program> {
        Self::start_on(command, Terminal::new(size, Dialect::ROVE))
    }

    /// Starts it on this terminal.
    pub fn start_on(command: Command, terminal: Terminal) -> io::Result<Program> {
        let size = terminal.screen().size();
        let (child, master) = spawn_on_pty(command, size.rows, size.cols)?;
        Self::adopt(child, master, terminal)
    }

    /// One that was started on the terminal of this master.
    pub fn adopt(child: Child, master: OwnedFd, terminal: Terminal) -> io::Result<Program> {
        ioctl_fionbio(&master, true)?;
        Ok(Program {
            child: Owned(child),
            master,
            terminal,
            outgoing: VecDeque::new(),
            output_bytes: 0,
            closed: false,
            status: None,
        })
    }

    /// Types these octets.
    pub fn send(&mut self, keys: impl AsRef<[u8]>) {
        self.outgoing.extend(keys.as_ref());
    }

    /// Changes the size of the terminal.
    pub fn resize(&mut self, size: Size) -> io::Result<()> {
        self.terminal.resize(size);
        set_window_size(&self.master, size.rows, size.cols)
    }

    /// Waits for output at most this long; reads it and writes pending keys. Answers the program's queries as a
    /// terminal does.
    pub fn pump(&mut self, at_most: Duration) -> io::Result<()> {
        if self.status.is_none() {
            self.status = self.child.try_wait()?;
        }
        self.wait_ready(at_most)?;
        self.read_all()?;
        self.write_all()
    }

    /// Pumps until the condition holds.
    ///
    /// # Errors
    /// [`Missed`] if it does not within the limit.
    pub fn wait_for(
        &mut self,
        what: &str,
        limit: Duration,
        mut condition: impl FnMut(&Program) -> bool,
    ) -> io::Result<()> {
        let clock = Clock::start();
        loop {
            if condition(self) {
                return Ok(());
            }
            if clock.elapsed() > limit {
                return Err(self.missed(what, clock.elapsed()).into());
            }
            self.pump(PUMP)?;
        }
    }

    /// Pumps until it has ended and all it wrote is on the screen.
    ///
    /// # Errors
    /// [`Missed`] if it does not end within the limit.
    pub fn wait_exit(&mut self, limit: Duration) -> io::Result<ExitStatus> {
        self.wait_for("the program to end", limit, |program| program.has_ended())?;
        self.status.ok_or_else(|| io::Error::other("ended without a status"))
    }

    /// Kills it at once.
    pub fn kill(&mut self) -> io::Result<()> {
        self.child.kill()
    }

    /// Whether it has ended and its terminal is drained.
    pub fn has_ended(&self) -> bool {
        self.status.is_some() && self.closed
    }

    /// Its exit status, once it has ended.
    pub fn status(&self) -> Option<ExitStatus> {
        self.status
    }

    /// The terminal's screen.
    pub fn screen(&self) -> &Screen {
        self.terminal.screen()
    }

    /// Whether some row of the screen holds this text.
    pub fn shows(&self, text: &str) -> bool {
        shows(self.screen(), text)
    }

    /// The lines above the screen and those on it.
    pub fn lines(&self) -> Vec<String> {
        let history = self.terminal.history();
        let above = (0..history.len()).filter_map(|index| history.text(index));
        above.chain(self.screen().text()).collect()
    }

    /// Octets it has written so far.
    pub fn output_bytes(&self) -> u64 {
        self.output_bytes
    }

    /// Its process number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The error for a wait for `what` in vain.
    pub fn missed(&self, what: &str, waited: Duration) -> Missed {
        Missed { what: what.to_owned(), waited, screen: self.screen().text() }
    }

    fn wait_ready(&self, at_most: Duration) -> io::Result<()> {
        let mut wanted = PollFlags::IN;
        if !self.outgoing.is_empty() {
            wanted |= PollFlags::OUT;
        }
        // A closed terminal is always "ready"; its program's end is then all there is to wait for.
        let mut watched = [PollFd::new(&self.master, wanted)];
        let watched = if self.closed { &mut watched[..0] } else { &mut watched[..] };
        wait_ready(watched, Some(at_most))?;
        Ok(())
    }

    fn read_all(&mut self) -> io::Result<()> {
        let mut buffer = [0; 16 * 1_024];
        for _ in 0..PUMP_READS_MAX {
            let Some(length) = read_terminal(&self.master, &mut buffer)? else {
                self.closed = true;
                break;
            };
            if length == 0 {
                break;
            }
            self.output_bytes += length as u64;
            self.terminal.advance(&buffer[..length]);
            self.outgoing.extend(self.terminal.take_replies());
        }
        Ok(())
    }

    fn write_all(&mut self) -> io::Result<()> {
        while !self.outgoing.is_empty() {
            let (front, _) = self.outgoing.as_slices();
            match rustix::io::write(&self.master, front) {
                Ok(written) => drop(self.outgoing.drain(..written)),
                Err(Errno::AGAIN | Errno::IO) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Whether some row of a screen holds this text.
pub(crate) fn shows(screen: &Screen, text: &str) -> bool {
    (0..screen.size().rows).any(|row| screen.row_text(row).contains(text))
}

/// A process that is not our child, held so that its number cannot come to mean another one. Killed when
/// dropped.
#[derive(Debug)]
pub struct Stranger {
    pid: Pid,
    handle: OwnedFd,
}

impl Stranger {
    /// The process of this number.
    ///
    /// # Errors
    /// If there is none.
    pub fn open(pid: u32) -> io::Result<Stranger> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("no process has that number"))?;
        Ok(Stranger { pid, handle: pidfd_open(pid, PidfdFlags::empty())? })
    }

    /// Whether it runs.
    pub fn is_alive(&self) -> bool {
        let mut watched = [PollFd::from_borrowed_fd(self.handle.as_fd(), PollFlags::IN)];
        matches!(wait_ready(&mut watched, Some(Duration::ZERO)), Ok(0))
    }

    /// Asks it to end.
    pub fn terminate(&self) -> io::Result<()> {
        Ok(pidfd_send_signal(&self.handle, Signal::TERM)?)
    }

    /// Kills it at once.
    pub fn kill(&self) -> io::Result<()> {
        Ok(pidfd_send_signal(&self.handle, Signal::KILL)?)
    }

    /// Its process number.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.kill();
    }
}

/// Lets others run for a moment, for waits on what cannot be polled.
pub fn look_again_later() -> io::Result<()> {
    wait_ready(&mut [], Some(PUMP))?;
    Ok(())
}

/// How long a wait sleeps before it looks again at a condition that it cannot poll.
pub const PUMP: Duration = Duration::from_millis(10);

/// Reads in one pump: a program that floods does not keep its watcher from looking.
const PUMP_READS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    fn sh(script: &str) -> Program {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Program::start(command, Size::clamped(10, 40)).unwrap()
    }

    #[test]
    fn a_program_has_a_terminal_and_a_status() {
        let mut program = sh("test -t 0 && test -t 2 && stty size && exit 3");
        assert_eq!(program.wait_exit(LIMIT).unwrap().code(), Some(3));
        assert_eq!(program.screen().row_text(0), "10 40");
    }

    #[test]
    fn typing_and_resizing_reach_it() {
        let mut program = sh("read line; echo got $line; read line; stty size");
        program.send("words\n");
        program.wait_for("the line", LIMIT, |program| program.shows("got words")).unwrap();
        program.resize(Size::clamped(12, 50)).unwrap();
        program.send("\n");
        program.wait_for("the size", LIMIT, |program| program.shows("12 50")).unwrap();
    }

    #[test]
    fn queries_are_answered() {
        let mut program =
            sh(r"stty raw -echo; printf '\033[6n'; dd bs=1 count=6 2>&- | od -c | head -1");
        program
            .wait_for("the report", LIMIT, |program| program.shows("033   [   1   ;   1   R"))
            .unwrap();
    }

    #[test]
    fn a_miss_says_what_is_on_the_screen() {
        let mut program = sh("echo here it is; read line");
        let error =
            program.wait_for("the moon", Duration::from_millis(300), |_| false).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("for the moon") && text.contains("|here it is"), "{text}");
    }

    #[test]
    fn a_stranger_is_killed_when_dropped() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let stranger = Stranger::open(child.id()).unwrap();
        assert!(stranger.is_alive());
        drop(stranger);
        assert!(!child.wait().unwrap().success());
        assert!(Stranger::open(0).is_err());
    }
}
