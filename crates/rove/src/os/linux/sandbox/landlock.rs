//! Removes a thread's access to files and TCP for good (landlock(7)).
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::ptr;

use rustix::fs::{Mode, OFlags};

/// The access that `landlock` has removed.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Landlocked {
    /// Nothing: the caller asked for nothing, or Linux is older than 5.13 or without Landlock.
    Nothing,
    /// Files and programs: Linux before 6.7.
    Files,
    /// Files, programs and TCP: Linux before 6.12.
    FilesAndTcp,
    /// Files, programs, TCP and abstract Unix sockets of other processes.
    FilesAndSockets,
}

/// The access that [`landlock`] leaves. Missing directories are left out.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Left {
    /// Directories whose files, and those below, may be read.
    pub read: Vec<PathBuf>,
    /// Directories from which files may be removed.
    pub remove: Vec<PathBuf>,
    /// The TCP ports that may be connected to; `None` is all.
    pub connect: Option<Vec<u16>>,
}

impl Default for Left {
    /// Nothing.
    fn default() -> Left {
        Left { read: Vec::new(), remove: Vec::new(), connect: Some(Vec::new()) }
    }
}

/// Landlock's rights (linux/landlock.h): of files, of TCP, and the scope that keeps abstract Unix sockets of
/// other processes away.
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const REMOVE_FILE: u64 = 1 << 5;
const BIND_TCP: u64 = 1;
const CONNECT_TCP: u64 = 1 << 1;
const ABSTRACT_SOCKETS: u64 = 1;

/// Removes access from this thread and all that it starts (landlock(7)): except as `left` allows, it opens
/// no file, runs no program, binds and connects no TCP socket, and from Linux 6.12 on connects to no
/// abstract Unix socket of another process. Open files stay open; other threads, and Unix sockets with a
/// path, are not affected.
pub(crate) fn landlock(left: &Left) -> io::Result<Landlocked> {
    let none = 0_u32;
    // SAFETY: asked for the version alone (1), the call reads no memory.
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, ptr::null::<u64>(), 0_usize, 1_u32)
    };
    // All rights to files that a version knows, and how many words it takes: it may not be given more.
    let (rights, words, locked) = match version {
        ..1 => return Ok(Landlocked::Nothing),
        1 => (13, 1, Landlocked::Files),
        2 => (14, 1, Landlocked::Files),
        3 => (15, 1, Landlocked::Files),
        4 => (15, 2, Landlocked::FilesAndTcp),
        5 => (16, 2, Landlocked::FilesAndTcp),
        6.. => (16, 3, Landlocked::FilesAndSockets),
    };
    let tcp = BIND_TCP | if left.connect.is_some() { CONNECT_TCP } else { 0 };
    let handled = [(1_u64 << rights) - 1, tcp, ABSTRACT_SOCKETS];
    let known = &handled[..words];
    // SAFETY: the call reads as many octets as `known` has, and what it opens is owned here.
    let ruleset = unsafe {
        let made = libc::syscall(
            libc::SYS_landlock_create_ruleset,
            known.as_ptr(),
            size_of_val(known),
            none,
        );
        if made == -1 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(made as i32)
    };
    for (directories, rights) in [(&left.read, READ_FILE | READ_DIR), (&left.remove, REMOVE_FILE)] {
        for directory in directories {
            allow_beneath(&ruleset, directory, rights)?;
        }
    }
    if locked >= Landlocked::FilesAndTcp {
        for port in left.connect.iter().flatten() {
            // struct landlock_net_port_attr: rights, and the port.
            allow(
                &ruleset,
                2,
                &[CONNECT_TCP.to_ne_bytes(), u64::from(*port).to_ne_bytes()].concat(),
            )?;
        }
    }
    let (no, yes): (libc::c_ulong, libc::c_ulong) = (0, 1);
    // SAFETY: the calls take numbers.
    unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, yes, no, no, no) == -1
            || libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), none) == -1
        {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(locked)
}

/// Adds these rights to all below a directory, if it is there.
fn allow_beneath(ruleset: &OwnedFd, directory: &Path, rights: u64) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(directory) = rustix::fs::open(directory, flags, Mode::empty()) else { return Ok(()) };
    // struct landlock_path_beneath_attr, which has no padding: rights, and the open directory.
    let number = directory.as_raw_fd().to_ne_bytes();
    allow(ruleset, 1, &[&rights.to_ne_bytes()[..], &number].concat())
}

/// Adds a rule of this kind.
fn allow(ruleset: &OwnedFd, kind: u32, rule: &[u8]) -> io::Result<()> {
    // SAFETY: the kernel reads as many octets as the rules of this kind have, which the callers give.
    let added = unsafe {
        libc::syscall(libc::SYS_landlock_add_rule, ruleset.as_raw_fd(), kind, rule.as_ptr(), 0_u32)
    };
    if added == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
