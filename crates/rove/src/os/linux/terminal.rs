//! Terminals: their other side, the same one opened once more, and numbers that systems choose for themselves.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

#[cfg(not(target_os = "android"))]
pub(crate) use libc::TIOCSIG;
use rustix::fs::{Mode, OFlags};
#[cfg(not(target_os = "android"))]
use rustix::io::Errno;
use rustix::pty::OpenptFlags;
use rustix::termios::InputModes;

use crate::os::unix::slave;

/// The value of a special character that is switched off (`_POSIX_VDISABLE`).
pub(crate) const DISABLED: u8 = 0;

/// Input is UTF-8: erasing takes whole characters.
pub(crate) const IUTF8: InputModes = InputModes::IUTF8;

/// The number on Linux. The libc crate does not name it for Android.
#[cfg(target_os = "android")]
pub(crate) const TIOCSIG: libc::c_int = 0x4004_5436;

/// How the master side of a new terminal is opened.
pub(crate) const MASTER: OpenptFlags =
    OpenptFlags::RDWR.union(OpenptFlags::NOCTTY).union(OpenptFlags::CLOEXEC);

/// Whether a signal with this code comes from a fault of the process's own (sigaction(2), `si_code`).
pub(crate) const fn is_fault(code: i32) -> bool {
    code > 0
}

/// Opens the other side of a master by its name: rustix has `TIOCGPTPEER` for Linux alone.
#[cfg(target_os = "android")]
pub(crate) fn open_slave(master: impl AsFd) -> io::Result<OwnedFd> {
    slave::open_named(master)
}

/// Opens the other side of a master.
#[cfg(not(target_os = "android"))]
pub(crate) fn open_slave(master: impl AsFd) -> io::Result<OwnedFd> {
    match rustix::pty::ioctl_tiocgptpeer(&master, MASTER) {
        // Linux before 4.13, and some containers: by its name, which another mount of /dev/pts may lack.
        Err(Errno::INVAL | Errno::NOTTY | Errno::NOSYS | Errno::PERM) => slave::open_named(master),
        opened => Ok(opened?),
    }
}

/// Input is read by the file that the programs before and after us use as well.
pub(crate) fn reopen_input() -> Option<OwnedFd> {
    None
}

/// Opens the terminal on standard output once more, as an open file of its own.
pub(crate) fn reopen_output() -> io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::open("/proc/self/fd/1", flags, Mode::empty())?)
}
