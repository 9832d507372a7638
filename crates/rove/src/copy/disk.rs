//! Makes all of a copy's changes to a disk, so that a test can choose which call fails and with
//! which error.
//!
//! All calls name an open directory and one component in it, and none follows a symbolic link.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::copy::message::Times;
use crate::os;
use crate::os::files::{self, open_at};
use crate::os::fs::{
    self, AtFlags, BorrowedFd, Errno, Gid, Mode, OFlags, OwnedFd, Timespec, Timestamps, Uid, statat,
};
use crate::os::stat::FileType;

/// Writes to the disk.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    faults: Option<Arc<Faults>>,
}

/// The faults of a test's disk: the calls to fail, and the owner of all files.
#[derive(Debug)]
struct Faults {
    calls: AtomicU64,
    fails: Range<u64>,
    errno: Errno,
    user: Option<u32>,
    /// Octets that may still be written.
    room: AtomicU64,
}

impl Faults {
    fn none() -> Faults {
        let (calls, room) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
        Faults { calls, fails: 0..0, errno: Errno::IO, user: None, room }
    }

    /// Takes room for these octets. Returns for how many of them there is any.
    fn take_room(&self, octets: usize) -> usize {
        let room = self.room.load(Ordering::Relaxed);
        let taken = room.min(octets as u64);
        self.room.store(room - taken, Ordering::Relaxed);
        taken as usize
    }
}

impl Disk {
    /// A disk on which the calls of these numbers, from 0, fail with `errno`; for tests.
    pub fn failing(fails: Range<u64>, errno: Errno) -> Disk {
        Disk::with(Faults { fails, errno, ..Faults::none() })
    }

    /// A disk that gives every new file to this user, as CIFS and NFS may; for tests that root runs.
    pub fn owned_by(user: u32) -> Disk {
        Disk::with(Faults { user: Some(user), ..Faults::none() })
    }

    /// A disk that is full after this many octets; for tests.
    pub fn with_room(octets: u64) -> Disk {
        Disk::with(Faults { room: octets.into(), ..Faults::none() })
    }

    fn with(faults: Faults) -> Disk {
        Disk { faults: Some(Arc::new(faults)) }
    }

    /// The number of calls to a disk made by [`Disk::failing`].
    pub fn calls(&self) -> u64 {
        self.faults.as_ref().map_or(0, |faults| faults.calls.load(Ordering::Relaxed))
    }

    fn call(&self) -> io::Result<()> {
        match &self.faults {
            Some(faults)
                if faults.fails.contains(&faults.calls.fetch_add(1, Ordering::Relaxed)) =>
            {
                Err(faults.errno.into())
            }
            _ => Ok(()),
        }
    }

    /// Makes a new file for reading and writing, 0600.
    pub fn create(&self, at: BorrowedFd<'_>, name: &[u8]) -> io::Result<OwnedFd> {
        self.call()?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let file = open_at(at, name, flags, Mode::RUSR | Mode::WUSR)?;
        if let Some(user) = self.faults.as_ref().and_then(|faults| faults.user) {
            fs::fchown(&file, Some(Uid::from_raw(user)), None)?;
        }
        Ok(file)
    }

    /// Writes all of `data` at `offset`.
    pub fn write(&self, file: BorrowedFd<'_>, mut data: &[u8], mut offset: u64) -> io::Result<()> {
        self.call()?;
        while !data.is_empty() {
            let room =
                self.faults.as_ref().map_or(data.len(), |faults| faults.take_room(data.len()));
            match fs::pwrite(file, &data[..room], offset) {
                Ok(0) => return Err(Errno::NOSPC.into()),
                Ok(written) => {
                    data = &data[written..];
                    offset += written as u64;
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Starts writing this range to the disk without waiting; [`Disk::sync`] waits.
    pub fn begin(&self, file: BorrowedFd<'_>, offset: u64, length: u64) {
        files::begin_writing(file, offset, length);
    }

    /// Gives a file this length.
    pub fn set_length(&self, file: BorrowedFd<'_>, length: u64) -> io::Result<()> {
        self.call()?;
        Ok(fs::ftruncate(file, length)?)
    }

    /// Gives a file or directory these permissions.
    pub fn set_mode(&self, file: BorrowedFd<'_>, mode: Mode) -> io::Result<()> {
        self.call()?;
        Ok(fs::fchmod(file, mode)?)
    }

    /// Gives a file to this group, and to this user if there is one. Returns whether it could: many things
    /// prevent it, from permissions to users that a namespace lacks.
    pub fn set_owner(&self, file: BorrowedFd<'_>, user: Option<u32>, group: u32) -> bool {
        let (user, group) = (user.map(Uid::from_raw), Gid::from_raw(group));
        self.call().is_ok() && fs::fchown(file, user, Some(group)).is_ok()
    }

    /// Gives a file or directory these times.
    pub fn set_times(&self, file: BorrowedFd<'_>, times: &Times) -> io::Result<()> {
        self.call()?;
        Ok(fs::futimens(file, &stamps(times))?)
    }

    /// Gives a symbolic link these times.
    pub fn set_link_times(&self, at: BorrowedFd<'_>, name: &[u8], times: &Times) -> io::Result<()> {
        self.call()?;
        Ok(fs::utimensat(at, name, &stamps(times), AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Waits until a file, or the names in a directory, are on the disk itself.
    pub fn sync(&self, file: BorrowedFd<'_>) -> io::Result<()> {
        self.call()?;
        match fs::fsync(file) {
            // There is no disk behind it.
            Ok(()) | Err(Errno::INVAL | Errno::ROFS) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a directory.
    pub fn make_directory(&self, at: BorrowedFd<'_>, name: &[u8], mode: Mode) -> io::Result<()> {
        self.call()?;
        Ok(fs::mkdirat(at, name, mode)?)
    }

    /// Makes a symbolic link.
    pub fn make_link(&self, at: BorrowedFd<'_>, name: &[u8], target: &[u8]) -> io::Result<()> {
        self.call()?;
        Ok(fs::symlinkat(target, at, name)?)
    }

    /// Gives a finished file its name, replacing a file or symbolic link of that name, but nothing else.
    pub fn rename(&self, at: BorrowedFd<'_>, from: &[u8], to: &[u8]) -> io::Result<()> {
        self.call()?;
        // Without an answer there is one, or the file system cannot say.
        if let Some(renamed) = files::rename_new(at, from, to) {
            return renamed;
        }
        match statat(at, to, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => replaceable(stat.kind())?,
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        match fs::renameat(at, from, at, to) {
            Err(Errno::BUSY) => Err(io::Error::other("something is mounted there")),
            renamed => Ok(renamed?),
        }
    }

    /// Removes a file. Errors do not matter here: the next user of the name meets them.
    pub fn discard(&self, at: BorrowedFd<'_>, name: &[u8]) {
        let _ = fs::unlinkat(at, name, AtFlags::empty());
    }
}

/// Whether a copied file may replace a file of this type.
pub(crate) fn replaceable(kind: FileType) -> io::Result<()> {
    match kind {
        FileType::RegularFile | FileType::Symlink => Ok(()),
        FileType::Directory => Err(Errno::ISDIR.into()),
        _ => Err(io::Error::other("there is a device, pipe or socket of that name")),
    }
}

/// Whether a directory takes new names: not on a read-only mount, or without write permission. If the system
/// cannot tell, the copy tries.
pub(crate) fn takes_names(at: BorrowedFd<'_>) -> io::Result<()> {
    match fs::takes_names(at) {
        Err(Errno::ACCESS) => Err(io::Error::other("permission denied to write in its directory")),
        Err(error @ (Errno::PERM | Errno::ROFS)) => Err(error.into()),
        _ => Ok(()),
    }
}

fn stamps(times: &Times) -> Timestamps {
    let stamp = |moment: crate::copy::message::Moment| Timespec {
        tv_sec: moment.seconds,
        tv_nsec: moment.nanoseconds.into(),
    };
    Timestamps { last_access: stamp(times.accessed), last_modification: stamp(times.modified) }
}

/// An error in the system's words, for the user.
pub(crate) fn reason(error: &io::Error) -> String {
    let known = error.raw_os_error().map(Errno::from_raw_os_error).and_then(|errno| {
        Some(match errno {
            Errno::NOSPC => "the disk is full",
            Errno::DQUOT => "the quota is used up",
            Errno::ACCESS | Errno::PERM => "permission denied",
            Errno::NOENT => "no such file or directory",
            Errno::ROFS => "the file system is read-only",
            Errno::IO => "the disk reports an error",
            Errno::FBIG => "larger than a file may be there",
            Errno::ISDIR => "there is a directory of that name",
            Errno::NOTDIR => "not a directory",
            Errno::LOOP => "a symbolic link is in the way, and none is followed",
            Errno::XDEV => "it leads out of the directory",
            Errno::NAMETOOLONG => "the name is too long",
            Errno::MFILE | Errno::NFILE => "too many open files",
            Errno::TXTBSY => "it is being run",
            _ => return None,
        })
    });
    known.map_or_else(|| os::words(error).to_lowercase(), str::to_owned)
}
