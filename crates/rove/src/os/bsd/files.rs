//! Files: opened through no symbolic link or beneath a directory, and named anew.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags};

use crate::os::stat::Stat;
use crate::os::unix::fs::{fstat, statat};
pub(crate) use crate::os::unix::walk::open_at;
use crate::os::unix::walk::walk_beneath;

/// Opens directories only to pass through them, so that leave to list them is not needed (O_SEARCH). FreeBSD's
/// name for it needs leave to execute as well, which is the same for a directory.
fn search() -> OFlags {
    OFlags::from_bits_retain(libc::O_SEARCH.unsigned_abs())
}

/// Opens a path as the user wrote it, with its symbolic links.
pub(crate) fn open_path(path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(CWD, path, flags | OFlags::CLOEXEC, Mode::empty())?)
}

/// Opens a path beneath a directory, for reading: no component may be a symbolic link or lead out. An empty
/// path is the directory itself.
pub(crate) fn open_beneath(
    root: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
) -> io::Result<OwnedFd> {
    let path = if path.is_empty() { b"." } else { path };
    walk_beneath(root, path, flags, search())
}

/// A file that a user's path leads to. macOS opens no file without leave to read it, so it is known by its path, and
/// by its number whether that leads to it still.
#[derive(Debug)]
pub(crate) struct Located {
    path: Vec<u8>,
    /// What it is.
    pub stat: Stat,
}

impl Located {
    /// The file at this path, with its symbolic links.
    pub(crate) fn at(path: &[u8]) -> io::Result<Located> {
        Ok(Located { stat: statat(CWD, path, AtFlags::empty())?, path: path.to_owned() })
    }

    /// The same; but a link that is the last component is the file itself.
    pub(crate) fn link_at(path: &[u8]) -> io::Result<Located> {
        Ok(Located { stat: statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?, path: path.to_owned() })
    }

    /// Opens it, a directory.
    pub(crate) fn open_directory(&self) -> io::Result<OwnedFd> {
        let directory = open_path(&self.path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        match fstat(&directory)?.is_one(&self.stat) {
            true => Ok(directory),
            false => Err(io::Error::other("it was replaced meanwhile")),
        }
    }

    /// A path without links that leads to it at this moment, or to what has taken its place.
    pub(crate) fn path(&self) -> io::Result<Vec<u8>> {
        let path = Path::new(std::ffi::OsStr::from_bytes(&self.path)).canonicalize()?;
        Ok(path.into_os_string().into_vec())
    }
}

/// Gives a file another name in its directory, if that is free. `None` if it is not, or the system cannot tell: look,
/// and rename.
#[cfg(target_os = "macos")]
pub(crate) fn rename_new(at: BorrowedFd<'_>, from: &[u8], to: &[u8]) -> Option<io::Result<()>> {
    use std::ffi::CString;
    use std::os::fd::AsRawFd;

    let (from, to) = (CString::new(from).ok()?, CString::new(to).ok()?);
    let at = at.as_raw_fd();
    // SAFETY: an open directory and two strings that outlive the call.
    let done = unsafe { libc::renameatx_np(at, from.as_ptr(), at, to.as_ptr(), libc::RENAME_EXCL) };
    if done == 0 {
        return Some(Ok(()));
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EEXIST | libc::EINVAL | libc::ENOSYS | libc::ENOTSUP) => None,
        _ => Some(Err(error)),
    }
}

/// FreeBSD has no such call: look, and rename.
#[cfg(not(target_os = "macos"))]
pub(crate) fn rename_new(_: BorrowedFd<'_>, _: &[u8], _: &[u8]) -> Option<io::Result<()>> {
    None
}

/// Neither system can be told to start writing: the final sync waits for all of it.
pub(crate) fn begin_writing(_: BorrowedFd<'_>, _: u64, _: u64) {}

/// An empty file without a name, which can be as long as any.
#[cfg(test)]
pub(crate) fn nameless_file() -> io::Result<std::fs::File> {
    let path = std::env::temp_dir().join(format!("rove-test-{}", std::process::id()));
    let file = std::fs::File::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(path)?;
    Ok(file)
}
