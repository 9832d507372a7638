//! What the system says of a file. Its own types differ from system to system, and from processor to processor.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, RawMode};
use rustix::path::Arg;

/// What the system says of a file (stat(2)).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Stat {
    pub st_dev: u64,
    pub st_ino: u64,
    pub st_mode: u32,
    pub st_nlink: u64,
    pub st_uid: u32,
    pub st_gid: u32,
    pub st_size: i64,
    /// Of 512 octets each.
    pub st_blocks: i64,
    pub st_atime: i64,
    pub st_atime_nsec: u64,
    pub st_mtime: i64,
    pub st_mtime_nsec: u64,
    pub st_ctime: i64,
    pub st_ctime_nsec: u64,
}

impl Stat {
    /// The system's, in types that are the same everywhere.
    #[allow(
        clippy::unnecessary_cast,
        reason = "a number of a device is 32 bits with a sign on macOS, a time 32 bits on 32-bit machines"
    )]
    pub(crate) fn of(stat: &rustix::fs::Stat) -> Stat {
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

    /// The kind of file.
    pub(crate) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.st_mode as RawMode)
    }

    /// Whether both are of one file.
    pub(crate) fn is_one(&self, other: &Stat) -> bool {
        (self.st_dev, self.st_ino) == (other.st_dev, other.st_ino)
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
    rustix::fs::fstat(file).map(|stat| Stat::of(&stat))
}

/// What it says of a file in a directory.
pub(crate) fn statat(at: impl AsFd, name: impl Arg, flags: AtFlags) -> rustix::io::Result<Stat> {
    rustix::fs::statat(at, name, flags).map(|stat| Stat::of(&stat))
}

/// What it says of the file at a path, or of the link there.
pub(crate) fn lstat(path: &Path) -> io::Result<Stat> {
    Ok(Stat::of(&rustix::fs::lstat(path)?))
}
