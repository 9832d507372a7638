//! Terminals: their other side, the same one opened once more, and numbers that systems choose for themselves.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

pub(crate) use libc::TIOCSIG;
use rustix::fs::{Mode, OFlags};
use rustix::pty::OpenptFlags;
use rustix::termios::InputModes;

use crate::os::unix::slave;

/// The value of a special character that is switched off (`_POSIX_VDISABLE`).
pub(crate) const DISABLED: u8 = libc::_POSIX_VDISABLE;

/// Input is UTF-8: erasing takes whole characters. FreeBSD has the same number since 14, and drops it before.
pub(crate) const IUTF8: InputModes = InputModes::from_bits_retain(0x4000);

/// How the master side of a new terminal is opened: macOS knows no more.
pub(crate) const MASTER: OpenptFlags = OpenptFlags::RDWR.union(OpenptFlags::NOCTTY);

/// What a program sent has this code or a higher one (`SI_USER`).
const SENT: i32 = 0x10001;

/// Whether a signal with this code comes from a fault of the process's own (sigaction(2), `si_code`).
pub(crate) const fn is_fault(code: i32) -> bool {
    code > 0 && code < SENT
}

/// Opens the other side of a master.
pub(crate) fn open_slave(master: impl AsFd) -> io::Result<OwnedFd> {
    slave::open_named(master)
}

/// Opens the terminal on standard input once more: kqueue does not take `/dev/tty`, which may be its name there.
pub(crate) fn reopen_input() -> Option<OwnedFd> {
    reopen(io::stdin(), OFlags::RDONLY).ok()
}

/// Opens the terminal on standard output once more, as an open file of its own. What `/dev/fd` has is the same open
/// file.
pub(crate) fn reopen_output() -> io::Result<OwnedFd> {
    reopen(io::stdout(), OFlags::WRONLY)
}

fn reopen(terminal: impl AsFd, access: OFlags) -> io::Result<OwnedFd> {
    let name = rustix::termios::ttyname(terminal, Vec::new())?;
    let flags = access | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(name, flags, Mode::empty())?)
}
