//! Files: opened through no symbolic link or beneath a directory, named anew, and written out early.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno;

use crate::os::stat::Stat;
use crate::os::unix::fs::fstat;
pub(crate) use crate::os::unix::walk::open_at;
use crate::os::unix::walk::walk_beneath;

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
    walk_beneath(root, path, flags, OFlags::PATH)
}

/// Set once the system has refused `openat2` as unknown.
static WITHOUT_OPENAT2: AtomicBool = AtomicBool::new(false);

/// How often to repeat an open after a rename raced with the walk of its path.
const RACES_MAX: u32 = 16;

/// A file that a user's path leads to, open only to be named (O_PATH).
#[derive(Debug)]
pub(crate) struct Located {
    file: OwnedFd,
    /// What it is.
    pub stat: Stat,
}

impl Located {
    /// The file at this path, with its symbolic links.
    pub(crate) fn at(path: &[u8]) -> io::Result<Located> {
        Located::open(path, OFlags::empty())
    }

    /// The same; but a link that is the last component is the file itself.
    pub(crate) fn link_at(path: &[u8]) -> io::Result<Located> {
        Located::open(path, OFlags::NOFOLLOW)
    }

    fn open(path: &[u8], flags: OFlags) -> io::Result<Located> {
        let file = open_path(path, flags | OFlags::PATH)?;
        let stat = fstat(&file)?;
        Ok(Located { file, stat })
    }

    /// Opens it, a directory.
    pub(crate) fn open_directory(&self) -> io::Result<OwnedFd> {
        open_at(self.file.as_fd(), b".", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
    }

    /// A path without links that leads to it at this moment.
    pub(crate) fn path(&self) -> io::Result<Vec<u8>> {
        let link = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        Ok(rustix::fs::readlink(link, Vec::new())?.into_bytes())
    }
}

/// Gives a file another name in its directory, if that is free. `None` if it is not, or the file system cannot
/// tell: look, and rename.
pub(crate) fn rename_new(at: BorrowedFd<'_>, from: &[u8], to: &[u8]) -> Option<io::Result<()>> {
    match rustix::fs::renameat_with(at, from, at, to, RenameFlags::NOREPLACE) {
        Err(Errno::EXIST | Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => None,
        renamed => Some(renamed.map_err(io::Error::from)),
    }
}

/// Makes the system start writing a part of a file to its disk, without waiting, so that the final sync
/// waits less. The final sync reports failures.
#[cfg(not(target_os = "android"))]
pub(crate) fn begin_writing(file: BorrowedFd<'_>, offset: u64, length: u64) {
    let (Ok(offset), Ok(length)) = (offset.try_into(), length.try_into()) else { return };
    // SAFETY: the call takes an open file and numbers, no pointer.
    unsafe {
        libc::sync_file_range(file.as_raw_fd(), offset, length, libc::SYNC_FILE_RANGE_WRITE);
    }
}

/// Does nothing: the libc crate has no such call for Android. The final sync writes all of it.
#[cfg(target_os = "android")]
pub(crate) fn begin_writing(_: BorrowedFd<'_>, _: u64, _: u64) {}

/// An empty file without a name, which can be as long as any.
#[cfg(test)]
pub(crate) fn nameless_file() -> io::Result<std::fs::File> {
    Ok(rustix::fs::memfd_create("rove-test", rustix::fs::MemfdFlags::CLOEXEC)?.into())
}
