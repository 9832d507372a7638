//! Files, with the names that rustix has. `os/windows/fs.rs` has the same, as far as `copy` uses them.

use std::io;
use std::path::Path;

use rustix::fs::{Access, RawMode, StatVfsMountFlags};
use rustix::path::Arg;

pub(crate) use rustix::fs::{
    AtFlags, CWD, Dir, FlockOperation, Gid, Mode, OFlags, SeekFrom, Timespec, Timestamps, Uid,
    fchmod, fchown, flock, fsync, ftruncate, futimens, mkdirat, readlinkat, renameat, seek,
    symlinkat, unlinkat, utimensat,
};
pub(crate) use rustix::io::{Errno, pread, pwrite};
pub(crate) use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::os::stat::Stat;

/// ZFS's number in `statfs` (`ZFS_SUPER_MAGIC`).
const ZFS_MAGIC: i128 = 0x2fc1_2fc1;

/// The system's, in types that are the same everywhere.
#[allow(
    clippy::unnecessary_cast,
    reason = "a number of a device is 32 bits with a sign on macOS, a time 32 bits on 32-bit machines"
)]
fn stat_of(stat: &rustix::fs::Stat) -> Stat {
    Stat {
        st_dev: stat.st_dev as u64,
        st_ino: stat.st_ino as u64,
        st_mode: stat.st_mode as u32,
        st_nlink: stat.st_nlink as u64,
        st_uid: stat.st_uid,
        st_gid: stat.st_gid,
        st_size: stat.st_size as i64,
        st_blocks: stat.st_blocks as i64,
        st_atime: stat.st_atime as i64,
        st_atime_nsec: stat.st_atime_nsec as u64,
        st_mtime: stat.st_mtime as i64,
        st_mtime_nsec: stat.st_mtime_nsec as u64,
        st_ctime: stat.st_ctime as i64,
        st_ctime_nsec: stat.st_ctime_nsec as u64,
    }
}

/// The permissions in these bits.
pub(crate) fn permissions(bits: u32) -> Mode {
    Mode::from_raw_mode((bits & 0o7777) as RawMode)
}

/// The bits of permissions.
#[allow(clippy::unnecessary_cast, clippy::useless_conversion, reason = "16 bits on macOS")]
pub(crate) fn bits(permissions: Mode) -> u32 {
    permissions.as_raw_mode().into()
}

/// What the system says of an open file.
pub(crate) fn fstat(file: impl AsFd) -> rustix::io::Result<Stat> {
    rustix::fs::fstat(file).map(|stat| stat_of(&stat))
}

/// What it says of a file in a directory.
pub(crate) fn statat(at: impl AsFd, name: impl Arg, flags: AtFlags) -> rustix::io::Result<Stat> {
    rustix::fs::statat(at, name, flags).map(|stat| stat_of(&stat))
}

/// What it says of the file at a path, or of the link there.
pub(crate) fn lstat(path: &Path) -> io::Result<Stat> {
    Ok(stat_of(&rustix::fs::lstat(path)?))
}

/// The number of this user.
pub(crate) fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Opens a path as the user wrote it, with its symbolic links.
pub(crate) fn open_plain(path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    let always = OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    Ok(rustix::fs::openat(CWD, path, flags | always, Mode::empty())?)
}

/// Reads at a place, behind what is there, as much as there is room for; 0 is the end.
pub(crate) fn append(
    file: &OwnedFd,
    octets: &mut Vec<u8>,
    offset: u64,
) -> rustix::io::Result<usize> {
    pread(file, rustix::buffer::spare_capacity(octets), offset)
}

/// Whether a directory takes new names: not on a read-only mount, or without write permission.
pub(crate) fn takes_names(at: BorrowedFd<'_>) -> rustix::io::Result<()> {
    rustix::fs::accessat(at, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::empty())
}

/// Whether a file is on ZFS.
pub(crate) fn is_zfs(file: &OwnedFd) -> bool {
    // The type's width is the system's.
    rustix::fs::fstatfs(file).is_ok_and(|system| i128::from(system.f_type) == ZFS_MAGIC)
}

/// Whether a file's disk takes no changes.
pub(crate) fn is_read_only(file: &OwnedFd) -> bool {
    rustix::fs::fstatvfs(file).is_ok_and(|system| system.f_flag.contains(StatVfsMountFlags::RDONLY))
}
