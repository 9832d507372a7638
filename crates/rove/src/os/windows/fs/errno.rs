//! Errors of files: the system's, of which each that a caller tells from others has the name that Unix has for it.
#![allow(unsafe_code)]

use std::io;

use windows_sys::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_ALREADY_EXISTS, ERROR_BAD_NETPATH, ERROR_BUSY,
    ERROR_CALL_NOT_IMPLEMENTED, ERROR_DELETE_PENDING, ERROR_DIR_NOT_EMPTY, ERROR_DIRECTORY,
    ERROR_DIRECTORY_NOT_SUPPORTED, ERROR_DISK_FULL, ERROR_DISK_QUOTA_EXCEEDED, ERROR_FILE_EXISTS,
    ERROR_FILE_NOT_FOUND, ERROR_FILE_TOO_LARGE, ERROR_FILENAME_EXCED_RANGE, ERROR_HANDLE_DISK_FULL,
    ERROR_INVALID_FUNCTION, ERROR_INVALID_NAME, ERROR_INVALID_PARAMETER, ERROR_IO_DEVICE,
    ERROR_IO_PENDING, ERROR_LOCK_VIOLATION, ERROR_NO_SYSTEM_RESOURCES, ERROR_NOT_SAME_DEVICE,
    ERROR_NOT_SUPPORTED, ERROR_OPERATION_ABORTED, ERROR_PATH_NOT_FOUND, ERROR_PRIVILEGE_NOT_HELD,
    ERROR_REPARSE_POINT_ENCOUNTERED, ERROR_SEEK, ERROR_STOPPED_ON_SYMLINK,
    ERROR_TOO_MANY_OPEN_FILES, ERROR_USER_MAPPED_FILE, ERROR_WRITE_PROTECT, NTSTATUS,
    RtlNtStatusToDosError, WIN32_ERROR,
};

/// An error of the system.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Errno(i32);

const fn of(code: WIN32_ERROR) -> Errno {
    Errno(code.cast_signed())
}

impl Errno {
    pub(crate) const ACCESS: Errno = of(ERROR_ACCESS_DENIED);
    pub(crate) const BUSY: Errno = of(ERROR_BUSY);
    pub(crate) const DQUOT: Errno = of(ERROR_DISK_QUOTA_EXCEEDED);
    pub(crate) const EXIST: Errno = of(ERROR_ALREADY_EXISTS);
    pub(crate) const FBIG: Errno = of(ERROR_FILE_TOO_LARGE);
    pub(crate) const INTR: Errno = of(ERROR_OPERATION_ABORTED);
    pub(crate) const INVAL: Errno = of(ERROR_INVALID_PARAMETER);
    pub(crate) const IO: Errno = of(ERROR_IO_DEVICE);
    pub(crate) const ISDIR: Errno = of(ERROR_DIRECTORY_NOT_SUPPORTED);
    pub(crate) const LOOP: Errno = of(ERROR_STOPPED_ON_SYMLINK);
    pub(crate) const MFILE: Errno = of(ERROR_TOO_MANY_OPEN_FILES);
    pub(crate) const NAMETOOLONG: Errno = of(ERROR_FILENAME_EXCED_RANGE);
    pub(crate) const NFILE: Errno = of(ERROR_NO_SYSTEM_RESOURCES);
    pub(crate) const NOENT: Errno = of(ERROR_FILE_NOT_FOUND);
    pub(crate) const NOLCK: Errno = of(ERROR_INVALID_FUNCTION);
    pub(crate) const NOSPC: Errno = of(ERROR_DISK_FULL);
    pub(crate) const NOSYS: Errno = of(ERROR_CALL_NOT_IMPLEMENTED);
    pub(crate) const NOTDIR: Errno = of(ERROR_DIRECTORY);
    pub(crate) const NOTSUP: Errno = of(ERROR_NOT_SUPPORTED);
    pub(crate) const NXIO: Errno = of(ERROR_SEEK);
    pub(crate) const PERM: Errno = of(ERROR_PRIVILEGE_NOT_HELD);
    pub(crate) const ROFS: Errno = of(ERROR_WRITE_PROTECT);
    pub(crate) const TXTBSY: Errno = of(ERROR_USER_MAPPED_FILE);
    pub(crate) const WOULDBLOCK: Errno = of(ERROR_LOCK_VIOLATION);
    pub(crate) const XDEV: Errno = of(ERROR_NOT_SAME_DEVICE);

    /// An error by its number; of several that say the same it is one.
    pub(crate) fn from_raw_os_error(code: i32) -> Errno {
        match code.cast_unsigned() {
            ERROR_PATH_NOT_FOUND | ERROR_BAD_NETPATH => Errno::NOENT,
            ERROR_FILE_EXISTS => Errno::EXIST,
            ERROR_HANDLE_DISK_FULL => Errno::NOSPC,
            ERROR_REPARSE_POINT_ENCOUNTERED => Errno::LOOP,
            ERROR_IO_PENDING => Errno::WOULDBLOCK,
            ERROR_DELETE_PENDING => Errno::NOENT,
            ERROR_INVALID_NAME => Errno::INVAL,
            ERROR_DIR_NOT_EMPTY => Errno::ISDIR,
            _ => Errno(code),
        }
    }

    /// Its number.
    pub(crate) const fn raw_os_error(self) -> i32 {
        self.0
    }

    /// That of the last call.
    pub(in crate::os::windows) fn last() -> Errno {
        Errno::of(&io::Error::last_os_error())
    }

    /// That of another call's error.
    pub(in crate::os::windows) fn of(error: &io::Error) -> Errno {
        error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)
    }

    /// Success, or the error.
    pub(in crate::os::windows) fn check(status: NTSTATUS) -> Result<(), Errno> {
        if status >= 0 {
            return Ok(());
        }
        // SAFETY: the call takes a number.
        let code = unsafe { RtlNtStatusToDosError(status) };
        Err(Errno::from_raw_os_error(code.cast_signed()))
    }
}

impl From<Errno> for io::Error {
    fn from(errno: Errno) -> io::Error {
        io::Error::from_raw_os_error(errno.0)
    }
}
