//! The only unsafe code of the lab: giving a child its own session and controlling terminal.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Opens a pseudoterminal of this size and starts the command on it, as the leader of a session whose
/// controlling terminal it is. Returns the master side.
pub fn spawn_on_pty(mut command: Command, rows: u16, cols: u16) -> io::Result<(Child, OwnedFd)> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let name = ptsname(&master, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let slave = rustix::fs::open(name, flags, Mode::empty())?;
    set_window_size(&master, rows, cols)?;
    command.stdin(slave.try_clone()?).stdout(slave.try_clone()?).stderr(slave);
    lead_session_on_stdin(&mut command);
    let child = command.spawn()?;
    Ok((child, master))
}

/// Starts the command in a session of its own, without a terminal, so that no signal of ours reaches it.
pub fn spawn_apart(mut command: Command) -> io::Result<Child> {
    let lead = || rustix::process::setsid().map(drop).map_err(io::Error::from);
    // SAFETY: between fork and exec the closure makes one system call; it allocates nothing, takes no lock
    // and touches no memory but its own stack.
    unsafe { command.pre_exec(lead) };
    command.stdin(Stdio::null()).spawn()
}

/// Tells the programs on this terminal its new size.
pub fn set_window_size(terminal: impl AsFd, rows: u16, cols: u16) -> io::Result<()> {
    let size = Winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 };
    Ok(tcsetwinsize(terminal, size)?)
}

fn lead_session_on_stdin(command: &mut Command) {
    let lead = || {
        rustix::process::setsid()?;
        rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes two system calls; it allocates nothing, takes no lock
    // and touches no memory but its own stack.
    unsafe { command.pre_exec(lead) };
}
