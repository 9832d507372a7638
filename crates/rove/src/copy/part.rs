//! A file while it is written: `.NAME.rove-part` beside its final place, from which a later copy
//! resumes an interrupted one. The final name never has half a file.

use std::io;
use std::sync::Arc;

use thiserror::Error;

use crate::copy::buggify::Point;
use crate::copy::disk::Disk;
use crate::copy::hashed::Hashed;
use crate::copy::held::{self, Held};
use crate::copy::lock_wait::{LOCK_TRIES, LockWait};
use crate::copy::message::{MARKS_MAX, Mark, Times};
use crate::copy::name::Name;
use crate::copy::watch::Watch;
use crate::os::files::open_at;
use crate::os::fs::{
    self, AsFd, AtFlags, BorrowedFd, Errno, FlockOperation, Mode, OFlags, OwnedFd, bits, fstat,
    permissions, statat,
};
use crate::os::stat::{FileType, Stat};

/// How far before the end of the part the earlier marks are, so that a machine which lost power, and with it
/// the end of a file, need not start anew.
const STEPS_BACK: [u64; MARKS_MAX - 1] = [1 << 30, 64 << 20, 8 << 20];

/// Octets after which the disk starts to write, so that the final sync takes only milliseconds.
const BEGIN_BYTES: u64 = 4 << 20;

/// The number of the user who may do anything.
const ROOT: u32 = 0;

/// A part that is open, locked and ours.
#[derive(Debug)]
pub(super) struct Part {
    file: OwnedFd,
    directory: Arc<OwnedFd>,
    name: Name,
    /// The place of the next octets.
    at: u64,
    /// The file's length, at least.
    written: u64,
    /// The end of the range that the disk has started to write.
    begun: u64,
    /// The state of the file when the lock was released.
    parked: Option<Seen>,
    /// While it is locked.
    held: Option<Held>,
}

/// The identity of a file, under any name.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    pub(super) fn of(stat: &Stat) -> FileId {
        FileId { device: stat.st_dev, inode: stat.st_ino }
    }
}

/// The identity and state of a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Seen {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, u64),
}

impl Seen {
    fn of(stat: &Stat) -> Seen {
        Seen {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: (stat.st_mtime, stat.st_mtime_nsec),
        }
    }

    /// Fails unless the file of this name has the same attributes. It does not compare inode numbers: some
    /// file systems give a file another at each lookup.
    pub(super) fn check(&self, at: BorrowedFd<'_>, name: &[u8]) -> io::Result<()> {
        let there = Seen::of(&statat(at, name, AtFlags::SYMLINK_NOFOLLOW)?);
        match (there.size, there.modified) == (self.size, self.modified) {
            true => Ok(()),
            false => Err(changed()),
        }
    }

    fn is(&self, stat: &Stat) -> io::Result<()> {
        match Seen::of(stat) == *self {
            true => Ok(()),
            false => Err(changed()),
        }
    }
}

/// The error when a file is not as it was, or its sender repeats octets that we have.
pub(super) fn changed() -> io::Error {
    io::Error::other("it changed while it was copied; copy it again")
}

/// The attributes of the finished file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Finish {
    pub(super) mode: Mode,
    pub(super) times: Option<Times>,
    /// The user and group of the replaced file, to be kept if we may.
    pub(super) owner: Option<(u32, u32)>,
}

impl Finish {
    /// Gives permissions and times to the file in place, if it is still the one that was `seen`.
    pub(super) fn apply(
        &self,
        disk: &Disk,
        at: BorrowedFd<'_>,
        name: &[u8],
        seen: Seen,
    ) -> io::Result<()> {
        let file = open_at(at, name, OFlags::RDONLY, Mode::empty())?;
        let stat = fstat(&file)?;
        seen.is(&stat)?;
        if permissions(stat.st_mode & 0o777) != self.mode {
            disk.set_mode(file.as_fd(), self.mode)?;
        }
        match &self.times {
            Some(times) => disk.set_times(file.as_fd(), times),
            None => Ok(()),
        }
    }
}

/// The lengths of beginnings that may be present already in a regular file of this name: up to `size`,
/// shortest first, none of an empty file; and the file's identity. `None` if there is no such file.
pub(super) fn beginnings(
    directory: BorrowedFd<'_>,
    name: &[u8],
    size: u64,
) -> Option<(Vec<u64>, FileId)> {
    let (_, stat) = open_regular(directory, name)?;
    let end = u64::try_from(stat.st_size).unwrap_or(0).min(size);
    let steps = STEPS_BACK.iter().filter_map(|step| end.checked_sub(*step));
    let lengths: Vec<u64> = steps.chain([end]).filter(|&length| length > 0).collect();
    Some((lengths, FileId::of(&stat)))
}

/// The length of the longest of the sender's `marks` that matches the file of this name, and the file's
/// identity. `None` if none matches.
pub(super) fn agreed(
    directory: BorrowedFd<'_>,
    name: &[u8],
    marks: &[Mark],
    watch: &Watch,
) -> Option<(u64, Seen)> {
    let (file, stat) = open_regular(directory, name)?;
    watch.begin_check(name);
    let mut hashed = Hashed::new(watch);
    let mut agreed = None;
    for mark in marks {
        if !hashed.read_to(&file, mark.length).ok()? {
            break;
        }
        // A part that differs early may agree no more, and one that was damaged late agrees before.
        if hashed.digest() == mark.digest {
            agreed = Some((mark.length, Seen::of(&stat)));
        }
    }
    agreed
}

fn open_regular(directory: BorrowedFd<'_>, name: &[u8]) -> Option<(OwnedFd, Stat)> {
    let file = open_at(directory, name, OFlags::RDONLY, Mode::empty()).ok()?;
    let stat = fstat(&file).ok()?;
    let is_file = stat.kind() == FileType::RegularFile;
    is_file.then_some((file, stat))
}

impl Part {
    /// Opens the part of a file, to continue at `offset`: 0 for a new start, or a mark of the part that was
    /// `seen`. `owner` is its future owner.
    pub(super) async fn open(
        disk: &Disk,
        mut wait: LockWait<'_>,
        directory: &Arc<OwnedFd>,
        name: &Name,
        offset: u64,
        seen: Option<Seen>,
        owner: Option<(u32, u32)>,
    ) -> io::Result<Part> {
        let part_name = name.part();
        let (file, stat) =
            open_locked(disk, &mut wait, directory.as_fd(), &part_name, owner).await?;
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        if offset > 0 && (seen != Some(Seen::of(&stat)) || wait.takes_disturbance()) {
            // Another copy may have finished the part that was seen while we waited for its lock: then this one was
            // made just now, and nobody would go on with it.
            if size == 0 {
                discard(disk, &file, directory.as_fd(), &part_name);
            }
            return Err(io::Error::other(Meanwhile::Written));
        }
        if size != offset {
            disk.set_length(file.as_fd(), offset)?;
        }
        let directory = Arc::clone(directory);
        let (name, parked) = (name.clone(), None);
        let held = Some(Held::new(&stat));
        Ok(Part { file, directory, name, at: offset, written: offset, begun: offset, parked, held })
    }

    /// Releases the lock while the sender is silent, so that another copy may continue the part meanwhile.
    pub(super) fn park(&mut self) -> io::Result<()> {
        if self.parked.is_none() {
            self.parked = Some(Seen::of(&fstat(&self.file)?));
            fs::flock(&self.file, FlockOperation::Unlock)?;
            self.held = None;
        }
        Ok(())
    }

    /// Takes the lock again if it was released, and the part is unchanged.
    pub(super) fn resume(&mut self) -> io::Result<()> {
        let Some(seen) = self.parked.take() else {
            return Ok(());
        };
        if lock(&self.file)? == Lock::Held {
            return Err(replaced());
        }
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let named = statat(&self.directory, self.name.part(), flags);
        match named.is_ok_and(|named| Seen::of(&named) == seen) {
            true => {
                self.held = Some(Held::new(&fstat(&self.file)?));
                Ok(())
            }
            false => Err(replaced()),
        }
    }

    /// Writes the next octets.
    pub(super) fn write(&mut self, disk: &Disk, data: &[u8]) -> io::Result<()> {
        self.resume()?;
        disk.write(self.file.as_fd(), data, self.at)?;
        self.at = end(self.at, data.len() as u64)?;
        self.written = self.at;
        if self.at - self.begun >= BEGIN_BYTES {
            disk.begin(self.file.as_fd(), self.begun, self.at - self.begun);
            self.begun = self.at;
        }
        Ok(())
    }

    /// Leaves a hole of zeros.
    pub(super) fn skip(&mut self, length: u64) -> io::Result<()> {
        self.at = end(self.at, length)?;
        Ok(())
    }

    /// Makes it the file: sets permissions and times, syncs it, renames it. A failure leaves the part for
    /// another try, unless it is unknown what the disk has of it.
    pub(super) fn finish(mut self, disk: &Disk, finish: &Finish) -> io::Result<()> {
        self.resume()?;
        let file = self.file.as_fd();
        if self.written < self.at {
            disk.set_length(file, self.at)?;
        }
        let ours = owner_of(file)?;
        let theirs = finish.owner.filter(|owner| *owner != ours);
        if theirs.is_none() {
            disk.set_mode(file, finish.mode)?;
        }
        if let Some(times) = &finish.times {
            disk.set_times(file, times)?;
        }
        let (at, part) = (self.directory.as_fd(), self.name.part());
        // The system tells of writes that failed once, and keeps what was to be written: to another try
        // the part would look right, and the disk would not have it.
        disk.sync(file).inspect_err(|_| discard(disk, &self.file, at, &part))?;
        // Whoever may write to the directory may have put something else there, which may be half a file.
        if !is_named(&self.file, at, &part)? {
            return Err(replaced());
        }
        let Some(theirs) = theirs else {
            return disk.rename(at, &part, self.name.as_bytes());
        };
        // Last, so that a part is ours up to its end, and nobody's but ours until it has its owner.
        let mode = give_to(disk, file, theirs, finish.mode);
        let named =
            disk.set_mode(file, mode).and_then(|()| disk.rename(at, &part, self.name.as_bytes()));
        named.inspect_err(|_| {
            disk.set_owner(file, Some(ours.0), ours.1);
        })
    }

    /// How much of the file there is, with what was there already.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// The number of its directory's disk: in an overlay of several disks files have others.
    pub(super) fn device(&self) -> Option<u64> {
        fstat(&self.directory).ok().map(|stat| stat.st_dev)
    }

    /// Removes it, as useless.
    pub(super) fn discard(self, disk: &Disk) {
        discard(disk, &self.file, self.directory.as_fd(), &self.name.part());
    }
}

/// Removes this file, unless its name belongs to another file by then, perhaps another user's.
fn discard(disk: &Disk, file: &OwnedFd, at: BorrowedFd<'_>, name: &[u8]) {
    if is_named(file, at, name).is_ok_and(|is_named| is_named) {
        disk.discard(at, name);
    }
}

fn replaced() -> io::Error {
    io::Error::other(Meanwhile::Replaced)
}

/// Another copy's doing, after which one has to look at the part anew.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
enum Meanwhile {
    /// Between our look at the part and its lock.
    #[error("another copy has written to it meanwhile")]
    Written,
    /// While the lock was released.
    #[error("another copy has gone on with it meanwhile")]
    Replaced,
}

/// Whether a file failed because another copy has worked at its part, so that the file may begin anew.
pub(super) fn is_disturbed(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|why| why.is::<Meanwhile>())
}

/// Whether this file has this name.
fn is_named(file: &OwnedFd, directory: BorrowedFd<'_>, name: &[u8]) -> io::Result<bool> {
    let stat = fstat(file)?;
    match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(named) => Ok(FileId::of(&named) == FileId::of(&stat)),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn owner_of(file: BorrowedFd<'_>) -> io::Result<(u32, u32)> {
    let stat = fstat(file)?;
    Ok((stat.st_uid, stat.st_gid))
}

/// Gives a file to this user and group, or to the group alone, as far as we may. Returns the permissions to
/// set: a group other than the intended one gets no more than everybody.
fn give_to(disk: &Disk, file: BorrowedFd<'_>, (user, group): (u32, u32), mode: Mode) -> Mode {
    if disk.set_owner(file, Some(user), group)
        || disk.set_owner(file, None, group)
        || owner_of(file).is_ok_and(|(_, kept)| kept == group)
    {
        return mode;
    }
    let for_all = permissions(bits(mode & Mode::RWXO) << 3);
    mode & (Mode::RWXU | Mode::RWXO | for_all)
}

/// The offset after `length` more octets, as far as file offsets go.
fn end(at: u64, length: u64) -> io::Result<u64> {
    let end = at.checked_add(length).filter(|end| i64::try_from(*end).is_ok());
    end.ok_or_else(|| Errno::FBIG.into())
}

/// Opens or makes a part and locks it against other copies. The lock ends with the process, or when the file
/// is closed.
async fn open_locked(
    disk: &Disk,
    wait: &mut LockWait<'_>,
    directory: BorrowedFd<'_>,
    name: &[u8],
    owner: Option<(u32, u32)>,
) -> io::Result<(OwnedFd, Stat)> {
    let mut is_reopened = false;
    for tried in 0..LOCK_TRIES {
        let (file, is_new) = match disk.create(directory, name) {
            Ok(file) => (file, true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                match open_at(directory, name, OFlags::RDWR, Mode::empty()) {
                    Ok(file) => (file, false),
                    // It was finished just now.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    // A copy was broken off after the part had its final permissions, which keep us
                    // from writing. If permissions are not what keeps us, as with Windows' read-only files, it
                    // is no use to try again.
                    Err(error)
                        if error.kind() == io::ErrorKind::PermissionDenied && !is_reopened =>
                    {
                        reopen_to_us(disk, directory, name)?;
                        is_reopened = true;
                        continue;
                    }
                    Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
                        return Err(in_the_way(name));
                    }
                    Err(error) => return Err(error),
                }
            }
            Err(error) => return Err(error),
        };
        // What was made just now is ours, whomever the file system says it belongs to: CIFS, and NFS that squashes
        // users, give everything to one. Another user's file has no lock that is worth waiting for.
        if !is_new && !is_ours(&fstat(&file)?, owner) {
            match is_named(&file, directory, name)? {
                true => return Err(in_the_way(name)),
                false => continue,
            }
        }
        if lock(&file)? == Lock::Held || wait.watch.buggify().takes(Point::LockBusy) {
            wait.pause(tried, held::number(&fstat(&file)?)).await;
            continue;
        }
        // Whoever had the lock may have given the file its final name: then it is no part any more.
        if !is_named(&file, directory, name)? {
            continue;
        }
        let stat = fstat(&file)?;
        if stat.st_mode & 0o777 != 0o600 {
            disk.set_mode(file.as_fd(), Mode::RUSR | Mode::WUSR)?;
        }
        return Ok((file, stat));
    }
    Err(io::Error::other("another copy is writing it"))
}

/// Makes a part writable to us again; removes one that we may not even read.
fn reopen_to_us(disk: &Disk, directory: BorrowedFd<'_>, name: &[u8]) -> io::Result<()> {
    let Ok(file) = open_at(directory, name, OFlags::RDONLY, Mode::empty()) else {
        let stat = match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(()),
            stat => stat?,
        };
        // Another user may be receiving it, and its directory would let us remove it.
        if !is_ours(&stat, None) {
            return Err(in_the_way(name));
        }
        disk.discard(directory, name);
        return Ok(());
    };
    match is_ours(&fstat(&file)?, None) {
        true => disk.set_mode(file.as_fd(), Mode::RUSR | Mode::WUSR),
        false => Err(in_the_way(name)),
    }
}

/// Removes an empty part that nobody writes to, since its file is in place.
pub(super) fn sweep(disk: &Disk, directory: BorrowedFd<'_>, name: &Name) {
    let part = name.part();
    let Some((file, stat)) = open_regular(directory, &part) else { return };
    // Another copy that has just made it sees that it has lost its name, and makes it again. What it has filled since is
    // its own.
    let is_free = is_ours(&stat, None) && lock(&file).is_ok_and(|lock| lock == Lock::Ours);
    if is_free && fstat(&file).is_ok_and(|stat| stat.st_size == 0) {
        discard(disk, &file, directory, &part);
    }
}

/// Whether this is a part of ours. Root may have been killed after giving the part to the `owner` of the
/// replaced file.
fn is_ours(stat: &Stat, owner: Option<(u32, u32)>) -> bool {
    let us = fs::own_user();
    let is_given = us == ROOT && owner.is_some_and(|(user, _)| user == stat.st_uid);
    stat.kind() == FileType::RegularFile && stat.st_nlink == 1 && (stat.st_uid == us || is_given)
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Lock {
    Ours,
    /// By another copy.
    Held,
}

fn lock(file: &OwnedFd) -> io::Result<Lock> {
    match fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        // Some network file systems have no locks.
        Ok(()) | Err(Errno::NOTSUP | Errno::NOSYS | Errno::NOLCK) => Ok(Lock::Ours),
        Err(Errno::WOULDBLOCK) => Ok(Lock::Held),
        Err(error) => Err(error.into()),
    }
}

fn in_the_way(name: &[u8]) -> io::Error {
    let name = crate::copy::message::shown(name);
    io::Error::other(format!("{name}, where it is written first, is not ours; remove that"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::copy::watch::Watch;
    use crate::copy::workers::{Workers, wait};

    fn lock_wait(watch: &Watch) -> LockWait<'_> {
        let workers = Workers::Threads;
        LockWait { workers, index: 1, path: b"f", watch, sender: None, is_borne: false }
    }

    /// A copy that waited for a part, which another one finished meanwhile, leaves no empty one.
    #[test]
    fn a_part_that_was_finished_is_not_made_again() {
        let place = std::env::temp_dir().join(format!("rove-again-{}", std::process::id()));
        fs::create_dir(&place).unwrap();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let directory = Arc::new(
            crate::os::fs::open_plain(place.as_os_str().as_encoded_bytes(), flags).unwrap(),
        );
        let (disk, name) = (Disk::default(), Name::new(b"f").unwrap());
        fs::write(place.join(".f.rove-part"), "half").unwrap();
        let (_, stat) = open_regular(directory.as_fd(), &name.part()).unwrap();
        fs::rename(place.join(".f.rove-part"), place.join("f")).unwrap();
        let seen = Some(Seen::of(&stat));
        let watch = Watch::default();
        let part = Part::open(&disk, lock_wait(&watch), &directory, &name, 4, seen, None);
        let why = wait(part).unwrap_err().to_string();
        assert_eq!(why, "another copy has written to it meanwhile");
        assert!(!place.join(".f.rove-part").exists());
        fs::remove_dir_all(&place).unwrap();
    }

    /// A part not fully on the disk is removed, but not a file that replaced it meanwhile.
    #[test]
    fn only_our_part_goes_when_the_disk_fails() {
        // Making it, its octets, its permissions: the fourth call is to sync.
        const SYNC: u64 = 3;
        let name = format!("rove-part-{}", std::process::id());
        let place = std::env::temp_dir().join(name);
        for is_replaced in [false, true] {
            fs::create_dir(&place).unwrap();
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let directory =
                crate::os::fs::open_plain(place.as_os_str().as_encoded_bytes(), flags).unwrap();
            let disk = Disk::failing(SYNC..SYNC + 1, Errno::IO);
            let name = Name::new(b"f").unwrap();
            let directory = Arc::new(directory);
            let watch = Watch::default();
            let part = Part::open(&disk, lock_wait(&watch), &directory, &name, 0, None, None);
            let mut part = wait(part).unwrap();
            part.write(&disk, b"ours").unwrap();
            let path = place.join(".f.rove-part");
            if is_replaced {
                fs::write(place.join("other"), "theirs").unwrap();
                fs::rename(place.join("other"), &path).unwrap();
            }
            let finish = Finish { mode: Mode::RUSR, times: None, owner: None };
            let failed = part.finish(&disk, &finish).unwrap_err();
            assert_eq!(failed.raw_os_error(), Some(Errno::IO.raw_os_error()));
            let left = fs::read(&path).ok();
            assert_eq!(left.as_deref(), is_replaced.then_some(&b"theirs"[..]));
            assert!(!place.join("f").exists());
            fs::remove_dir_all(&place).unwrap();
        }
    }
}
