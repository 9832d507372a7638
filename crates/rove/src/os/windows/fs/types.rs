//! Flags and numbers, as rustix calls them. Permissions are carried, and mean nothing to the system.
#![allow(unsafe_code)]

use std::fs::File;
use std::ops::{BitAnd, BitOr};
use std::os::windows::io::{AsHandle, BorrowedHandle, OwnedHandle};
use std::ptr;
use std::sync::Arc;

/// The directory that this program is in: beside it, a name is a path.
// SAFETY: no call is made with it, which has no directory behind it.
pub(crate) const CWD: BorrowedHandle<'static> =
    unsafe { BorrowedHandle::borrow_raw(ptr::null_mut()) };

/// An open file or directory.
pub(crate) trait AsFd {
    /// It.
    fn as_fd(&self) -> BorrowedHandle<'_>;
}

impl AsFd for OwnedHandle {
    fn as_fd(&self) -> BorrowedHandle<'_> {
        self.as_handle()
    }
}

impl AsFd for BorrowedHandle<'_> {
    fn as_fd(&self) -> BorrowedHandle<'_> {
        *self
    }
}

impl AsFd for File {
    fn as_fd(&self) -> BorrowedHandle<'_> {
        self.as_handle()
    }
}

impl<T: AsFd> AsFd for Arc<T> {
    fn as_fd(&self) -> BorrowedHandle<'_> {
        (**self).as_fd()
    }
}

impl<T: AsFd> AsFd for &T {
    fn as_fd(&self) -> BorrowedHandle<'_> {
        (**self).as_fd()
    }
}

/// Permissions, in the bits that they have on the other end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Mode(u32);

impl Mode {
    pub(crate) const RUSR: Mode = Mode(0o400);
    pub(crate) const WUSR: Mode = Mode(0o200);
    pub(crate) const RWXU: Mode = Mode(0o700);
    pub(crate) const RWXG: Mode = Mode(0o070);
    pub(crate) const RWXO: Mode = Mode(0o007);
    pub(crate) const SUID: Mode = Mode(0o4000);
    pub(crate) const SGID: Mode = Mode(0o2000);
    pub(crate) const SVTX: Mode = Mode(0o1000);

    pub(crate) const fn empty() -> Mode {
        Mode(0)
    }
}

/// The permissions in these bits.
pub(crate) fn permissions(bits: u32) -> Mode {
    Mode(bits & 0o7777)
}

/// The bits of permissions.
pub(crate) fn bits(permissions: Mode) -> u32 {
    permissions.0
}

impl BitOr for Mode {
    type Output = Mode;

    fn bitor(self, other: Mode) -> Mode {
        Mode(self.0 | other.0)
    }
}

impl BitAnd for Mode {
    type Output = Mode;

    fn bitand(self, other: Mode) -> Mode {
        Mode(self.0 & other.0)
    }
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct OFlags(u32);

impl OFlags {
    pub(crate) const RDONLY: OFlags = OFlags(0);
    pub(crate) const RDWR: OFlags = OFlags(1);
    pub(crate) const CREATE: OFlags = OFlags(2);
    pub(crate) const EXCL: OFlags = OFlags(4);
    pub(crate) const DIRECTORY: OFlags = OFlags(8);
    /// No name in a directory is followed anyway.
    pub(crate) const NOFOLLOW: OFlags = OFlags(16);

    pub(crate) const fn contains(self, other: OFlags) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for OFlags {
    type Output = OFlags;

    fn bitor(self, other: OFlags) -> OFlags {
        OFlags(self.0 | other.0)
    }
}

/// How a name is looked up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct AtFlags(u32);

impl AtFlags {
    /// For a path alone: a link at its end is the file itself.
    pub(crate) const SYMLINK_NOFOLLOW: AtFlags = AtFlags(1);

    pub(crate) const fn empty() -> AtFlags {
        AtFlags(0)
    }

    pub(crate) const fn contains(self, other: AtFlags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// What to do with a lock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum FlockOperation {
    Unlock,
    NonBlockingLockExclusive,
}

/// What to look for in a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum SeekFrom {
    Data(u64),
    Hole(u64),
}

/// A user: there are no numbers of users here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Uid(u32);

impl Uid {
    pub(crate) const fn from_raw(number: u32) -> Uid {
        Uid(number)
    }
}

/// A group: see [`Uid`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Gid(u32);

impl Gid {
    pub(crate) const fn from_raw(number: u32) -> Gid {
        Gid(number)
    }
}

/// A moment, in seconds since 1970.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Timespec {
    pub(crate) tv_sec: i64,
    pub(crate) tv_nsec: i64,
}

/// The times that a copy gives a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Timestamps {
    pub(crate) last_access: Timespec,
    pub(crate) last_modification: Timespec,
}
