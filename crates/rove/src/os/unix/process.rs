//! Processes: the detaching fork, how a program is put on its own terminal, and what ours allows others.
#![allow(unsafe_code)]

use std::ffi::OsStr;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, WaitOptions};

use crate::os::locked;
use crate::os::system;
pub(crate) use crate::os::system::memory::{give_back_freed_memory, keep_freed_memory};
pub(crate) use crate::os::system::process::{
    command_line, has_children, is_single_threaded, own_program, program_name,
};
use crate::os::unix::fs::bits;

/// The soft limit on core files before [`harden`], for the programs that we start.
#[derive(Clone, Copy, Debug)]
pub struct CoreLimit(Option<u64>);

impl CoreLimit {
    /// The limit as it is now.
    pub fn current() -> CoreLimit {
        CoreLimit(rustix::process::getrlimit(Resource::Core).current)
    }

    /// Sets the soft limit of this process back. Async-signal-safe: one system call.
    pub fn restore(self) -> io::Result<()> {
        let now = rustix::process::getrlimit(Resource::Core);
        let limit = Rlimit { current: self.0, maximum: now.maximum };
        Ok(rustix::process::setrlimit(Resource::Core, limit)?)
    }
}

/// Keeps this process's memory from others of the same user: no core files (a soft limit of 0), and no tracing.
pub fn harden() -> io::Result<CoreLimit> {
    let was = CoreLimit::current();
    let maximum = rustix::process::getrlimit(Resource::Core).maximum;
    let none = Rlimit { current: Some(0), maximum };
    rustix::process::setrlimit(Resource::Core, none)?;
    system::process::refuse_tracing()?;
    Ok(was)
}

/// The shell that runs lines on this machine; `None` if there is none.
pub(crate) const SHELL: Option<&str> = Some("/bin/sh");

/// What a program does before it has threads.
pub(crate) fn prepare() {
    umask();
    super::signal_frames::prepare();
}

/// The file of a program that a user has named: the system looks for it along `PATH`.
pub(crate) fn program_file(named: &OsStr) -> PathBuf {
    named.into()
}

/// The permissions that new files of this process do not get. Finding out takes setting them, and another thread could
/// make a file meanwhile: programs call this at their start.
pub(crate) fn umask() -> u32 {
    static UMASK: OnceLock<u32> = OnceLock::new();
    *UMASK.get_or_init(|| {
        let was = rustix::process::umask(Mode::RWXG | Mode::RWXO);
        rustix::process::umask(was);
        bits(was)
    })
}

/// Becomes another program; returns only on failure.
pub(crate) fn become_program(command: &mut Command) -> io::Error {
    command.exec()
}

/// Whether a path is that of a program of this name.
pub(crate) fn is_called(program: &Path, name: &str) -> bool {
    program.file_name() == Some(OsStr::new(name))
}

/// The process that [`detach`] returned in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fork {
    /// The process that called it.
    Parent {
        /// The new process.
        child: u32,
    },
    /// The new one, in a terminal session of its own.
    Child,
}

/// Splits off a process that outlives this one: a copy that leads a new session, without a terminal.
///
/// # Errors
/// The system's, and `Other` in a process with more than one thread: the copy would have only this one,
/// and locks held by the others for good.
pub(crate) fn detach() -> io::Result<Fork> {
    if !is_single_threaded() {
        return Err(io::Error::other("only a process with one thread can detach"));
    }
    // SAFETY: with one thread the copy is whole, so it may do whatever this process may.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // It fails only for the leader of a process group, which a new process never is.
            let _ = rustix::process::setsid();
            super::signal_frames::lock_again();
            locked::lock_again();
            Ok(Fork::Child)
        }
        child => Ok(Fork::Parent { child: child.unsigned_abs() }),
    }
}

/// Waits until a process that [`detach`] has split off is gone.
pub(crate) fn wait_for(child: u32) -> io::Result<()> {
    let child = Pid::from_raw(child.cast_signed());
    loop {
        match rustix::process::waitpid(child, WaitOptions::empty()) {
            Err(Errno::INTR) => {}
            // The system has done so, where SIGCHLD is ignored.
            Ok(_) | Err(Errno::CHILD) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Closes every open file but the standard streams: a login script's `exec 3>&1` would
/// otherwise keep ssh waiting for as long as we live.
///
/// For the start of the program, before it has opened anything itself; hence not public.
pub(crate) fn close_inherited() {
    system::process::close_from(3);
}

/// Makes `command`, whose standard input is a terminal, the leader of a session that this terminal
/// controls, with every signal at its default and core files as they were.
///
/// A session of its own keeps the program from pushing input (TIOCSTI) into any terminal but its own.
pub(crate) fn lead_terminal_session(command: &mut Command, cores: CoreLimit) {
    let prepare = move || {
        lead(cores)?;
        // SAFETY: descriptor 0 is open: the command's standard input was put there before.
        let stdin = unsafe { BorrowedFd::borrow_raw(libc::STDIN_FILENO) };
        Ok(rustix::process::ioctl_tiocsctty(stdin)?)
    };
    // SAFETY: `prepare` only makes system calls: no allocation, no locks.
    unsafe { command.pre_exec(prepare) };
}

/// Makes `command` the leader of a session without a terminal, with every signal at its default and core
/// files as they were.
pub(crate) fn lead_session(command: &mut Command, cores: CoreLimit) {
    // SAFETY: `lead` only makes system calls: no allocation, no locks.
    unsafe { command.pre_exec(move || lead(cores)) };
}

/// Makes `command` run without a terminal, and so all that it starts: ssh to a jump host, which options of ssh do not
/// reach, asks nobody.
pub(crate) fn without_terminal(command: &mut Command) {
    let prepare = || {
        super::signal_frames::unmask();
        Ok(rustix::process::setsid().map(|_| ())?)
    };
    // SAFETY: what runs makes system calls alone: no allocation, no locks.
    unsafe { command.pre_exec(prepare) };
}

/// Starts a session in a new process. Async-signal-safe: system calls only.
fn lead(cores: CoreLimit) -> io::Result<()> {
    // What the ignoring parent or a shell's `&` had us ignore must not be ignored by a login shell.
    // SIGKILL and SIGSTOP refuse, rightly.
    for signal in 1..=SIGNAL_LAST {
        // SAFETY: `SIG_DFL` runs no code of ours; async-signal-safe.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // No handler of ours is left that what waits for this could run.
    super::signal_frames::unmask();
    rustix::process::setsid()?;
    cores.restore()
}

/// The highest of the classic signals; the real-time ones are never ignored by accident.
const SIGNAL_LAST: i32 = 31;

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::process::Stdio;

    use super::*;

    #[test]
    fn a_process_has_a_name_words_and_children() {
        // It has no child until a line comes, and then one that answers the next line.
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo up; read -r line; cat; :", "a name"]);
        let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(shell.stdout.take().unwrap());
        let mut answer = String::new();
        said.read_line(&mut answer).unwrap();
        let pid = shell.id();
        assert_eq!(program_name(pid), b"sh");
        let words = b"sh\0-c\0echo up; read -r line; cat; :\0a name\0";
        assert_eq!(command_line(pid, 100), words);
        assert_eq!(command_line(pid, 10), words[..10]);
        assert!(!has_children(pid));

        let mut keys = shell.stdin.take().unwrap();
        keys.write_all(b"one\ntwo\n").unwrap();
        said.read_line(&mut answer).unwrap();
        assert_eq!(answer, "up\ntwo\n");
        assert!(has_children(pid));
        drop(keys);
        shell.wait().unwrap();
        assert_eq!((program_name(pid), command_line(pid, 100)), (vec![], vec![]));
    }

    #[test]
    fn a_process_with_threads_does_not_detach() {
        // The test harness runs this on a thread of its own.
        assert_eq!(detach().unwrap_err().kind(), io::ErrorKind::Other);
    }
}
