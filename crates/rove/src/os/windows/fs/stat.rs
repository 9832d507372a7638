//! What the system says of a file.
#![allow(unsafe_code)]

use std::fs::OpenOptions;
use std::mem;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::AsRawHandle;

use windows_sys::Win32::Foundation::FILETIME;
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_READONLY,
    FILE_ATTRIBUTE_REPARSE_POINT, FILE_ATTRIBUTE_TAG_INFO, FILE_BASIC_INFO,
    FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OPEN_REPARSE_POINT, FILE_READ_ATTRIBUTES, FILE_TYPE_CHAR,
    FILE_TYPE_DISK, FILE_TYPE_PIPE, FileAttributeTagInfo, FileBasicInfo,
    GetFileInformationByHandle, GetFileInformationByHandleEx, GetFileType,
};
use windows_sys::Win32::System::SystemServices::IO_REPARSE_TAG_SYMLINK;

use super::errno::Errno;
use super::open::{SHARED, open_named, path_of};
use super::types::{AsFd, AtFlags};
use crate::os::stat::{FileType, Stat};

/// Seconds between 1601, from which the system counts, and 1970.
const EPOCH_SECONDS: i64 = 11_644_473_600;

/// Units of 100 ns in a second.
const UNITS: i64 = 10_000_000;

/// The number of this user: all files that a user reaches are taken for their own.
pub(crate) fn own_user() -> u32 {
    0
}

/// What the system says of an open file.
pub(crate) fn fstat(file: impl AsFd) -> Result<Stat, Errno> {
    let file = file.as_fd().as_raw_handle();
    // SAFETY: an open file.
    match unsafe { GetFileType(file) } {
        FILE_TYPE_DISK => {}
        FILE_TYPE_CHAR => return Ok(of_no_file(FileType::CharacterDevice)),
        FILE_TYPE_PIPE => return Ok(of_no_file(FileType::Fifo)),
        _ => return Ok(of_no_file(FileType::Unknown)),
    }
    // SAFETY: all-zero is a valid value of each, plain numbers; the calls write as much as they are told.
    let (about, basic, tag) = unsafe {
        let mut about: BY_HANDLE_FILE_INFORMATION = mem::zeroed();
        let mut basic: FILE_BASIC_INFO = mem::zeroed();
        let mut tag: FILE_ATTRIBUTE_TAG_INFO = mem::zeroed();
        if GetFileInformationByHandle(file, &mut about) == 0 {
            return Err(Errno::last());
        }
        let size = size_of::<FILE_BASIC_INFO>() as u32;
        let into = (&raw mut basic).cast();
        if GetFileInformationByHandleEx(file, FileBasicInfo, into, size) == 0 {
            return Err(Errno::last());
        }
        if about.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT != 0 {
            let size = size_of::<FILE_ATTRIBUTE_TAG_INFO>() as u32;
            let into = (&raw mut tag).cast();
            if GetFileInformationByHandleEx(file, FileAttributeTagInfo, into, size) == 0 {
                return Err(Errno::last());
            }
        }
        (about, basic, tag)
    };
    let has = |attribute: u32| about.dwFileAttributes & attribute != 0;
    let kind = match (has(FILE_ATTRIBUTE_REPARSE_POINT), has(FILE_ATTRIBUTE_DIRECTORY)) {
        (true, _) if tag.ReparseTag == IO_REPARSE_TAG_SYMLINK => FileType::Symlink,
        (true, _) if is_surrogate(tag.ReparseTag) => FileType::Unknown,
        (_, true) => FileType::Directory,
        (_, false) => FileType::RegularFile,
    };
    let permissions = match kind {
        FileType::Directory => 0o755,
        _ if has(FILE_ATTRIBUTE_READONLY) => 0o444,
        _ => 0o644,
    };
    let size = both(about.nFileSizeHigh, about.nFileSizeLow);
    let (st_atime, st_atime_nsec) = moment(units(about.ftLastAccessTime));
    let (st_mtime, st_mtime_nsec) = moment(units(about.ftLastWriteTime));
    let (st_ctime, st_ctime_nsec) = moment(basic.ChangeTime);
    Ok(Stat {
        st_dev: about.dwVolumeSerialNumber.into(),
        st_ino: both(about.nFileIndexHigh, about.nFileIndexLow),
        st_mode: kind_bits(kind) | permissions,
        st_nlink: about.nNumberOfLinks.into(),
        st_uid: own_user(),
        st_gid: 0,
        st_size: i64::try_from(size).unwrap_or(i64::MAX),
        // No holes are looked for.
        st_blocks: i64::MAX,
        st_atime,
        st_atime_nsec,
        st_mtime,
        st_mtime_nsec,
        st_ctime,
        st_ctime_nsec,
    })
}

/// What it says of a file in a directory, or of the file at a path.
pub(crate) fn statat(at: impl AsFd, name: impl AsRef<[u8]>, flags: AtFlags) -> Result<Stat, Errno> {
    let (at, name) = (at.as_fd(), name.as_ref());
    if !at.as_raw_handle().is_null() {
        return fstat(open_named(at, name, FILE_READ_ATTRIBUTES, 0)?);
    }
    let mut how = FILE_FLAG_BACKUP_SEMANTICS;
    if flags.contains(AtFlags::SYMLINK_NOFOLLOW) {
        how |= FILE_FLAG_OPEN_REPARSE_POINT;
    }
    let mut options = OpenOptions::new();
    options.access_mode(FILE_READ_ATTRIBUTES).share_mode(SHARED).custom_flags(how);
    fstat(options.open(path_of(name)?).map_err(|error| Errno::of(&error))?)
}

/// Whether a reparse point stands for another place: a link, a junction, a mounted disk. Others are files whose
/// contents are elsewhere.
pub(super) fn is_surrogate(tag: u32) -> bool {
    tag & 0x2000_0000 != 0
}

/// The bits of a kind in `st_mode`.
fn kind_bits(kind: FileType) -> u32 {
    match kind {
        FileType::RegularFile => 0o100_000,
        FileType::Directory => 0o040_000,
        FileType::Symlink => 0o120_000,
        FileType::Fifo => 0o010_000,
        FileType::CharacterDevice => 0o020_000,
        FileType::Socket | FileType::BlockDevice | FileType::Unknown => 0,
    }
}

fn of_no_file(kind: FileType) -> Stat {
    Stat { st_mode: kind_bits(kind), ..Stat::default() }
}

fn both(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn units(time: FILETIME) -> i64 {
    both(time.dwHighDateTime, time.dwLowDateTime).cast_signed()
}

/// Seconds since 1970, and nanoseconds.
fn moment(units: i64) -> (i64, u64) {
    let rest = units.rem_euclid(UNITS).unsigned_abs();
    (units.div_euclid(UNITS) - EPOCH_SECONDS, rest * 100)
}

/// The units since 1601.
pub(super) fn time_units(seconds: i64, nanoseconds: i64) -> i64 {
    let units = seconds.saturating_add(EPOCH_SECONDS).saturating_mul(UNITS);
    // Below it the numbers mean something else.
    units.saturating_add(nanoseconds / 100).max(1)
}
