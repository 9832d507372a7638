//! Files, with the names that rustix has for the calls of Unix, as far as `copy` uses them. A name is opened in an open
//! directory, never by a path, and a symbolic link or junction of that name is not followed, but found to be one.

mod change;
mod errno;
mod list;
mod open;
mod stat;
mod types;

use std::io;
use std::os::windows::fs::OpenOptionsExt;

use windows_sys::Win32::Storage::FileSystem::{FILE_FLAG_BACKUP_SEMANTICS, FILE_GENERIC_READ};

pub(in crate::os::windows) use change::rename_if_free;
pub(crate) use change::{
    fchmod, fchown, flock, fsync, ftruncate, futimens, mkdirat, readlinkat, renameat, symlinkat,
    unlinkat, utimensat,
};
pub(crate) use errno::Errno;
pub(crate) use list::Dir;
pub(in crate::os::windows) use open::{SHARED, call, open_named, path_of};
pub(crate) use open::{append, is_read_only, is_zfs, pread, pwrite, seek, takes_names};
pub(crate) use stat::{fstat, own_user, statat};
pub(crate) use std::os::windows::io::{BorrowedHandle as BorrowedFd, OwnedHandle as OwnedFd};
pub(crate) use types::{
    AsFd, AtFlags, CWD, FlockOperation, Gid, Mode, OFlags, SeekFrom, Timespec, Timestamps, Uid,
    bits, permissions,
};

use crate::os::stat::FileType;

/// Opens a path as the user wrote it, with its links, for reading.
pub(crate) fn open_plain(path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    let mut options = std::fs::OpenOptions::new();
    options.access_mode(FILE_GENERIC_READ).share_mode(SHARED);
    let file = options.custom_flags(FILE_FLAG_BACKUP_SEMANTICS).open(path_of(path)?);
    let file = file.map_err(|error| Errno::of(&error))?;
    match flags.contains(OFlags::DIRECTORY) && fstat(&file)?.kind() != FileType::Directory {
        true => Err(Errno::NOTDIR.into()),
        false => Ok(file.into()),
    }
}
