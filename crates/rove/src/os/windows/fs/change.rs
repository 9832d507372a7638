//! Changes files: makes, names, removes and locks them.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::os::windows::io::{AsRawHandle, BorrowedHandle, OwnedHandle};
use std::ptr;

use windows_sys::Wdk::Storage::FileSystem::{
    FILE_CREATE, FILE_DIRECTORY_FILE, FILE_INFORMATION_CLASS, FILE_NON_DIRECTORY_FILE,
    FileDispositionInformation, FileDispositionInformationEx, FileRenameInformation,
    FileRenameInformationEx, NtSetInformationFile,
};
use windows_sys::Win32::Storage::FileSystem::{
    DELETE, FILE_BASIC_INFO, FILE_READ_ATTRIBUTES, FileBasicInfo, LOCKFILE_EXCLUSIVE_LOCK,
    LOCKFILE_FAIL_IMMEDIATELY, LockFileEx, SetFileInformationByHandle, UnlockFileEx,
};
use windows_sys::Win32::System::IO::{IO_STATUS_BLOCK, OVERLAPPED};

use super::errno::Errno;
use super::open::{borrowed, call, name_units, open_named};
use super::stat::{fstat, time_units};
use super::types::{AsFd, AtFlags, FlockOperation, Gid, Mode, Timespec, Timestamps, Uid};
use crate::os::stat::FileType;

/// FILE_RENAME_REPLACE_IF_EXISTS, and FILE_RENAME_POSIX_SEMANTICS and IGNORE_READONLY_ATTRIBUTE: also while others have
/// the file open.
const REPLACES: u64 = 1;
const REPLACES_OPEN: u64 = 1 | 2 | 64;

/// Octets of FILE_RENAME_INFORMATION.
const RENAME_BYTES_MIN: usize = 24;

/// FILE_DISPOSITION_DELETE, POSIX_SEMANTICS and IGNORE_READONLY_ATTRIBUTE.
const REMOVES: u64 = 1;
const REMOVES_OPEN: u64 = 1 | 2 | 16;

/// Where a lock lies: beyond any octet, since it keeps others from reading what it is on.
const LOCK_AT: u64 = 0x7fff_ffff_ffff_fffe;

/// Gives a file this length.
pub(crate) fn ftruncate(file: impl AsRawHandle, length: u64) -> Result<(), Errno> {
    borrowed(&file).set_len(length).map_err(|error| Errno::of(&error))
}

/// Nothing: files get what the access list of their directory says.
pub(crate) fn fchmod(_: BorrowedHandle<'_>, _: Mode) -> Result<(), Errno> {
    Ok(())
}

/// Refuses: files keep their owners.
pub(crate) fn fchown(_: impl AsFd, _: Option<Uid>, _: Option<Gid>) -> Result<(), Errno> {
    Err(Errno::PERM)
}

/// Gives a file or directory these times.
pub(crate) fn futimens(file: BorrowedHandle<'_>, times: &Timestamps) -> Result<(), Errno> {
    let units = |time: Timespec| time_units(time.tv_sec, time.tv_nsec);
    let basic = FILE_BASIC_INFO {
        // 0 is: as it is.
        CreationTime: 0,
        LastAccessTime: units(times.last_access),
        LastWriteTime: units(times.last_modification),
        ChangeTime: 0,
        FileAttributes: 0,
    };
    let size = size_of_val(&basic) as u32;
    // SAFETY: an open file, and a structure of that size that the call reads.
    let done = unsafe {
        let from = (&raw const basic).cast();
        SetFileInformationByHandle(file.as_raw_handle(), FileBasicInfo, from, size)
    };
    if done == 0 { Err(Errno::last()) } else { Ok(()) }
}

/// Refuses: no links are made.
pub(crate) fn utimensat(
    _: BorrowedHandle<'_>,
    _: &[u8],
    _: &Timestamps,
    _: AtFlags,
) -> Result<(), Errno> {
    Err(Errno::NOTSUP)
}

/// Waits until a file is on the disk itself. The names in a directory are when the system says so.
pub(crate) fn fsync(file: BorrowedHandle<'_>) -> Result<(), Errno> {
    match fstat(file)?.kind() {
        FileType::Directory => Ok(()),
        _ => borrowed(&file).sync_all().map_err(|error| Errno::of(&error)),
    }
}

/// Makes a directory.
pub(crate) fn mkdirat(at: BorrowedHandle<'_>, name: &[u8], _: Mode) -> Result<(), Errno> {
    call(at, name, FILE_READ_ATTRIBUTES, FILE_CREATE, FILE_DIRECTORY_FILE).map(drop)
}

/// Refuses: making links is a privilege, and they are no text.
pub(crate) fn symlinkat(_: &[u8], _: BorrowedHandle<'_>, _: &[u8]) -> Result<(), Errno> {
    Err(Errno::NOTSUP)
}

/// Refuses: where a link leads is not told in a form that others understand.
pub(crate) fn readlinkat(_: BorrowedHandle<'_>, _: &[u8], _: Vec<u8>) -> Result<CString, Errno> {
    Err(Errno::NOTSUP)
}

/// Gives a file another name, in place of a file of that name.
pub(crate) fn renameat(
    from_directory: BorrowedHandle<'_>,
    from: &[u8],
    at: BorrowedHandle<'_>,
    to: &[u8],
) -> Result<(), Errno> {
    let file = open_named(from_directory, from, DELETE, 0)?;
    match set_name(&file, at, to, FileRenameInformationEx, REPLACES_OPEN) {
        // Windows before 10 1709, and file systems that are not NTFS.
        Err(error) if is_unknown(error) => set_name(&file, at, to, FileRenameInformation, REPLACES),
        renamed => renamed,
    }
}

/// Gives a file another name, if that is free.
pub(in crate::os::windows) fn rename_if_free(
    at: BorrowedHandle<'_>,
    from: &[u8],
    to: &[u8],
) -> Result<(), Errno> {
    let file = open_named(at, from, DELETE, 0)?;
    set_name(&file, at, to, FileRenameInformation, 0)
}

fn set_name(
    file: &OwnedHandle,
    at: BorrowedHandle<'_>,
    name: &[u8],
    class: FILE_INFORMATION_CLASS,
    flags: u64,
) -> Result<(), Errno> {
    let units = name_units(name)?;
    // FILE_RENAME_INFORMATION: flags, the directory, the length of the name, the name.
    let directory = at.as_raw_handle().expose_provenance() as u64;
    let mut octets = [flags.to_le_bytes(), directory.to_le_bytes()].concat();
    octets.extend((units.len() as u32 * 2).to_le_bytes());
    units.iter().for_each(|unit| octets.extend(unit.to_le_bytes()));
    // The system takes no less than the structure, which has room for two units.
    octets.resize(octets.len().max(RENAME_BYTES_MIN), 0);
    set(file, class, &octets)
}

/// Removes a file.
pub(crate) fn unlinkat(at: BorrowedHandle<'_>, name: &[u8], _: AtFlags) -> Result<(), Errno> {
    let file = open_named(at, name, DELETE, FILE_NON_DIRECTORY_FILE)?;
    match set(&file, FileDispositionInformationEx, &REMOVES_OPEN.to_le_bytes()[..4]) {
        Err(error) if is_unknown(error) => {
            set(&file, FileDispositionInformation, &REMOVES.to_le_bytes()[..1])
        }
        removed => removed,
    }
}

/// Whether the system does not know a call.
fn is_unknown(error: Errno) -> bool {
    [Errno::INVAL, Errno::NOSYS, Errno::NOTSUP, Errno::NOLCK].contains(&error)
}

fn set(file: &OwnedHandle, class: FILE_INFORMATION_CLASS, octets: &[u8]) -> Result<(), Errno> {
    // Aligned as the system wants it.
    let mut buffer = vec![0_u64; octets.len().div_ceil(size_of::<u64>())];
    // SAFETY: the buffer has room for the octets, and the call reads as many.
    unsafe {
        ptr::copy_nonoverlapping(octets.as_ptr(), buffer.as_mut_ptr().cast(), octets.len());
        let mut status: IO_STATUS_BLOCK = std::mem::zeroed();
        let (from, length) = (buffer.as_ptr().cast(), octets.len() as u32);
        let file = file.as_raw_handle();
        Errno::check(NtSetInformationFile(file, &mut status, from, length, class))
    }
}

/// Locks a file against others that do, or lets it go.
pub(crate) fn flock(file: &OwnedHandle, operation: FlockOperation) -> Result<(), Errno> {
    let file = file.as_raw_handle();
    // SAFETY: an open file, and a place that the calls read.
    let done = unsafe {
        let mut place: OVERLAPPED = std::mem::zeroed();
        place.Anonymous.Anonymous.Offset = LOCK_AT as u32;
        place.Anonymous.Anonymous.OffsetHigh = (LOCK_AT >> 32) as u32;
        match operation {
            FlockOperation::Unlock => UnlockFileEx(file, 0, 1, 0, &mut place),
            FlockOperation::NonBlockingLockExclusive => {
                let flags = LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY;
                LockFileEx(file, flags, 0, 1, 0, &mut place)
            }
        }
    };
    if done == 0 { Err(Errno::last()) } else { Ok(()) }
}
