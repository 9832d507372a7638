//! Files: opened through no symbolic link or beneath a directory, and written out early.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// Opens one component: never as controlling terminal, closed on exec, and without waiting for the other end
/// of a pipe.
pub(crate) fn open_at(
    at: BorrowedFd<'_>,
    name: &[u8],
    flags: OFlags,
    mode: Mode,
) -> io::Result<OwnedFd> {
    let always = OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    Ok(rustix::fs::openat(at, name, flags | always, mode)?)
}

/// Opens a path as the user wrote it, with its symbolic links, except the magic ones of `/proc`.
pub(crate) fn open_path(path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC;
    if !WITHOUT_OPENAT2.load(Ordering::Relaxed) {
        let resolve = ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(CWD, path, flags, Mode::empty(), resolve) {
            Err(Errno::NOSYS | Errno::PERM) => WITHOUT_OPENAT2.store(true, Ordering::Relaxed),
            opened => return Ok(opened?),
        }
    }
    Ok(rustix::fs::openat(CWD, path, flags, Mode::empty())?)
}

/// Opens a path beneath a directory, for reading: no component may be a symbolic link or lead out. An empty
/// path is the directory itself.
pub(crate) fn open_beneath(
    root: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
) -> io::Result<OwnedFd> {
    let path = if path.is_empty() { b"." } else { path };
    let always = OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
    if !WITHOUT_OPENAT2.load(Ordering::Relaxed) {
        for _ in 0..RACES_MAX {
            match rustix::fs::openat2(root, path, flags | always, Mode::empty(), resolve) {
                // Something was renamed meanwhile.
                Err(Errno::AGAIN) => {}
                // Linux before 5.6, or a container's filter of system calls from before then.
                Err(Errno::NOSYS | Errno::PERM) => {
                    WITHOUT_OPENAT2.store(true, Ordering::Relaxed);
                    break;
                }
                opened => return Ok(opened?),
            }
        }
    }
    let mut components = path.split(|&octet| octet == b'/').peekable();
    let mut at: Option<OwnedFd> = None;
    while let Some(name) = components.next() {
        if name == b".." || name.is_empty() {
            return Err(Errno::XDEV.into());
        }
        let flags = match components.peek() {
            Some(_) => OFlags::PATH | OFlags::DIRECTORY,
            None => flags,
        };
        let from = at.as_ref().map_or(root, |at| at.as_fd());
        at = Some(open_at(from, name, flags, Mode::empty())?);
    }
    at.ok_or_else(|| Errno::NOENT.into())
}

/// Set once the system has refused `openat2` as unknown.
static WITHOUT_OPENAT2: AtomicBool = AtomicBool::new(false);

/// How often to repeat an open after a rename raced with the walk of its path.
const RACES_MAX: u32 = 16;

/// Makes the system start writing a part of a file to its disk, without waiting, so that the final sync
/// waits less. The final sync reports failures.
pub(crate) fn begin_writing(file: BorrowedFd<'_>, offset: u64, length: u64) {
    let (Ok(offset), Ok(length)) = (offset.try_into(), length.try_into()) else { return };
    // SAFETY: the call takes an open file and numbers, no pointer.
    unsafe {
        libc::sync_file_range(file.as_raw_fd(), offset, length, libc::SYNC_FILE_RANGE_WRITE);
    }
}

/// The permissions that new files of this process do not get. If the system does not report them, all but
/// the owner's.
pub(crate) fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or(0o077)
}
