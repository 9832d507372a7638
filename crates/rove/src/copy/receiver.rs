//! The end that the files go to: decides where everything goes, asks by number for what it takes,
//! and believes nothing.
//!
//! One thread hears the sender and writes; a few others bring finished files onto the disk, so that
//! many small ones share the disk's waits.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver as Jobs, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use rustix::fs::{AtFlags, FileType, Mode, Stat, StatVfsMountFlags};
use rustix::io::Errno;

use crate::copy::disk::{Disk, reason, replaceable, takes_names};
use crate::copy::message::{DATA_BYTES_MAX, Digest, Entry, Kind, Mark, Message, Outcome, shown};
use crate::copy::order::{Links, Receive};
use crate::copy::outgoing::FILES_MAX;
use crate::copy::part::{FileId, Finish, Part, Seen, agreed, beginnings};
use crate::copy::pipe::{Broken, Inbox, Outbox};
use crate::copy::target::{Destination, Expected, NoDestination, Target, TargetError};
use crate::copy::watch::Watch;

/// Threads that bring finished files onto the disk.
const FINISHERS: usize = 16;

/// Finished files that wait for them.
const FINISHED_MAX: usize = 64;

/// Wrong guesses that are remembered ([`Guesses`]): 70 MB. A copy with more files that have changed and kept their size
/// gets those that have not changed as well.
const GUESSES_MAX: usize = 1 << 20;

/// What is to be received.
#[derive(Clone, Debug)]
pub struct Job {
    /// Where it goes, absolute or from where the process stands.
    pub target: Vec<u8>,
    /// How.
    pub receive: Receive,
    /// What each source may be called; empty for a sender that is the user's own end.
    pub expected: Vec<Expected>,
    /// Permissions that nothing gets, unless the source's are kept.
    pub umask: u32,
    /// What writes.
    pub disk: Disk,
}

/// Why a receiver stops.
#[derive(Debug, Eq, PartialEq)]
pub enum Over {
    /// Everything is in its place.
    Complete,
    /// Nothing more can be received, for this reason.
    Failed(String),
    /// The sender ended it, and says why.
    Refused(String),
    /// The connection has ended.
    Ended,
}

/// Says why a target cannot be one.
pub(crate) fn check(job: &Job) -> Result<(), TargetError> {
    Target::open(&job.target, &job.receive).map(drop)
}

/// Receives until everything that the sender lists is in its place, or was given up.
pub(crate) fn receive(job: &Job, inbox: Inbox, mut out: Outbox, watch: &Watch) -> Over {
    let target = match Target::open(&job.target, &job.receive) {
        Ok(target) => target,
        Err(error) => {
            let why = error.to_string();
            let _ = out.send(&Message::Fatal(why.as_bytes()));
            let _ = out.flush();
            return Over::Failed(why);
        }
    };
    let (finish, jobs) = sync_channel(FINISHED_MAX);
    let shared = Shared {
        jobs: Mutex::new(jobs),
        disk: &job.disk,
        watch,
        root: target.root(),
        device: target.device(),
        stop: OnceLock::new(),
    };
    let mut receiver = Receiver {
        job,
        out,
        shared: &shared,
        target,
        files: HashMap::new(),
        guesses: Guesses::default(),
        next: 1,
        is_listed: false,
        current: Current::None,
    };
    thread::scope(|scope| {
        let finishers: Vec<_> = (0..FINISHERS)
            .map(|_| {
                let out = receiver.out.clone();
                scope.spawn(|| shared.finish_files(out))
            })
            .collect();
        let heard = receiver.hear(inbox, &finish);
        // The threads end once they have finished everything.
        drop(finish);
        for finisher in finishers {
            if finisher.join().is_err() {
                let _ = shared.stop.set("a fault in rove kept a file from its place".to_owned());
            }
        }
        receiver.close(heard)
    })
}

/// What the threads share.
struct Shared<'a> {
    jobs: Mutex<Jobs<Finished>>,
    disk: &'a Disk,
    watch: &'a Watch,
    /// The target, and its disk.
    root: Arc<OwnedFd>,
    device: Option<u64>,
    /// Set when nothing more can be written.
    stop: OnceLock<String>,
}

/// A file that has all its octets.
struct Finished {
    index: u32,
    part: Part,
    finish: Finish,
    shown: Vec<u8>,
}

impl Shared<'_> {
    fn finish_files(&self, mut out: Outbox) {
        loop {
            let job = self.jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(Finished { index, part, finish, shown }) = job else {
                return;
            };
            let device = part.device();
            let told = match part.finish(self.disk, &finish) {
                Ok(()) => {
                    self.watch.done();
                    out.send(&Message::Done { index, outcome: Outcome::Done })
                }
                Err(error) => self.fail(index, &shown, &error, device, &mut out),
            };
            // Nobody hears us any more, which the thread that listens finds out.
            let _ = told.and_then(|()| out.flush());
        }
    }

    /// Gives a file up, or everything: what is on another disk than the target is, by its number, is full or
    /// read-only for itself.
    fn fail(
        &self,
        index: u32,
        path: &[u8],
        error: &io::Error,
        device: Option<u64>,
        out: &mut Outbox,
    ) -> io::Result<()> {
        let why = format!("{}: {}", shown(path), reason(error));
        if self.device.is_some() && device == self.device && self.keeps_out_all(error) {
            let _ = self.stop.set(why);
            return Ok(());
        }
        self.give_up(index, why, out)
    }

    /// Whether the target takes nothing more at all: it is full, or read-only itself and not only a mount below
    /// it. A quota may be a directory's own, and says nothing of others.
    fn keeps_out_all(&self, error: &io::Error) -> bool {
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NOSPC) => true,
            Some(Errno::ROFS) => rustix::fs::fstatvfs(&self.root)
                .is_ok_and(|system| system.f_flag.contains(StatVfsMountFlags::RDONLY)),
            _ => false,
        }
    }

    fn give_up(&self, index: u32, why: String, out: &mut Outbox) -> io::Result<()> {
        out.send(&Message::Done { index, outcome: Outcome::Failed(why.as_bytes()) })?;
        self.watch.trouble(why);
        Ok(())
    }
}

/// A file that was asked for.
struct Awaited {
    destination: Destination,
    finish: Finish,
    shown: Vec<u8>,
    state: Wanted,
    /// Whether what is there is a file of the same size under the final name, not a part.
    is_in_place: bool,
}

/// How far a file has been asked for.
enum Wanted {
    /// The sender is to tell its hashes of beginnings of these lengths, which this file here has too.
    Marks(Vec<u64>, FileId),
    /// It is to be sent from this offset on; up to there it is in the file that was seen.
    From(u64, Option<Seen>),
}

/// What the sender is sending.
enum Current {
    None,
    /// This file.
    File {
        index: u32,
        awaited: Awaited,
        part: Part,
        hasher: Box<blake3::Hasher>,
    },
    /// A file that is in its place as it is.
    Same {
        index: u32,
        awaited: Awaited,
        seen: Option<Seen>,
    },
    /// One that was given up.
    Unwanted {
        index: u32,
    },
}

struct Receiver<'a> {
    job: &'a Job,
    out: Outbox,
    shared: &'a Shared<'a>,
    target: Target,
    /// By entry. At most [`FILES_MAX`].
    files: HashMap<u32, Awaited>,
    guesses: Guesses,
    next: u32,
    is_listed: bool,
    current: Current,
}

/// How often the sender was asked for the hashes of each file here. From what is wanted after that it learns whether it has
/// told the right one, and with as many tries as it likes it would find out what is in a file, beginning by beginning.
#[derive(Debug, Default)]
struct Guesses {
    /// At most [`GUESSES_MAX`].
    taken: HashMap<FileId, u128>,
}

impl Guesses {
    /// Takes one of the guesses at a file, of which there is one for each of its `names`; `false` if none is left, or if too
    /// many files are known. Then the file comes as a whole.
    fn take(&mut self, id: FileId, names: u128) -> bool {
        let has_room = self.taken.len() < GUESSES_MAX;
        let taken = self.taken.get(&id).copied().unwrap_or(0);
        if !has_room || taken >= names {
            return false;
        }
        self.taken.insert(id, taken + 1);
        true
    }

    /// The guess was right about the whole file, so there is nothing more to be found out.
    fn give_back(&mut self, id: FileId) {
        self.taken.remove(&id);
    }
}

impl From<io::Error> for Over {
    fn from(_: io::Error) -> Over {
        Over::Ended
    }
}

fn malformed() -> Over {
    Over::Failed("the sender does not keep to the protocol".to_owned())
}

impl Receiver<'_> {
    /// Hears the sender until all that it lists is there or given up.
    fn hear(&mut self, mut inbox: Inbox, finish: &SyncSender<Finished>) -> Result<(), Over> {
        let mut unpacked = vec![0; DATA_BYTES_MAX];
        while !(self.is_listed && self.files.is_empty() && matches!(self.current, Current::None)) {
            if let Some(why) = self.shared.stop.get() {
                return Err(Over::Failed(why.clone()));
            }
            if !inbox.is_ready() {
                self.out.flush()?;
            }
            let message = match inbox.hear() {
                Ok(message) => message,
                Err(Broken::Ended) => return Err(Over::Ended),
                Err(Broken::Malformed) => return Err(malformed()),
                Err(Broken::Silent) => {
                    self.park()?;
                    continue;
                }
            };
            match message {
                Message::Entry(entry) => self.entry(&entry)?,
                Message::Listed => {
                    self.is_listed = true;
                    self.shared.watch.listed();
                }
                Message::Marks { index, marks } => self.marks(index, &marks)?,
                Message::Begin { index, offset } => self.begin(index, offset)?,
                Message::Data(data) => self.data(data)?,
                Message::Packed { length, block } => {
                    let room = &mut unpacked[..length as usize];
                    match lz4_flex::block::decompress_into(block, room) {
                        Ok(got) if got == length as usize => self.data(&unpacked[..got])?,
                        _ => return Err(malformed()),
                    }
                }
                Message::Hole(length) => self.hole(length)?,
                Message::End(digest) => self.end(&digest, finish)?,
                Message::Gone { index, why } => self.gone(index, why)?,
                Message::Trouble(text) => self.shared.watch.trouble_there(text),
                Message::Fatal(text) => return Err(Over::Refused(shown(text))),
                Message::Ask { .. }
                | Message::Want { .. }
                | Message::Done { .. }
                | Message::Complete => {
                    return Err(malformed());
                }
            }
        }
        Ok(())
    }

    /// Finishes the directories if all went well, and says how the copy ends.
    fn close(&mut self, heard: Result<(), Over>) -> Over {
        let over = match (heard, self.shared.stop.get()) {
            (_, Some(why)) => Over::Failed(why.clone()),
            (Err(over), None) => over,
            (Ok(()), None) => {
                let preserve = self.job.receive.preserve;
                for line in self.target.finish(&self.job.disk, preserve) {
                    let _ = self.out.send(&Message::Trouble(line.as_bytes()));
                    self.shared.watch.trouble(line);
                }
                Over::Complete
            }
        };
        let told = match &over {
            Over::Complete => self.out.send(&Message::Complete),
            Over::Failed(why) => self.out.send(&Message::Fatal(why.as_bytes())),
            Over::Refused(_) | Over::Ended => Ok(()),
        };
        let _ = told.and_then(|()| self.out.flush());
        over
    }

    fn entry(&mut self, entry: &Entry<'_>) -> Result<(), Over> {
        let index = self.next;
        self.next = index.checked_add(1).ok_or_else(malformed)?;
        if self.is_listed {
            return Err(malformed());
        }
        let added = match entry.kind {
            Kind::Directory if !self.job.receive.recursive => {
                let name = shown(entry.name);
                let why = format!("{name:?} is a directory, which was not asked for without -r");
                Err(NoDestination::Unasked(why))
            }
            Kind::Directory => {
                let mode = self.mode(entry);
                let (disk, expected) = (&self.job.disk, &self.job.expected);
                self.target.add_directory(disk, index, entry, expected, mode)
            }
            // An honest sender follows the links that the user named, and finds others in directories alone.
            Kind::Link { .. } if entry.parent == 0 || !self.job.receive.recursive => {
                Err(NoDestination::Unasked(format!(
                    "the other end sent a symbolic link {:?}, which was not asked for",
                    shown(entry.name)
                )))
            }
            Kind::Link { target } => self.link(entry, target),
            Kind::File { size } => self.file(index, entry, size)?,
        };
        let why = match added {
            Ok(()) => return Ok(()),
            Err(NoDestination::Unasked(why)) => return Err(Over::Failed(why)),
            Err(NoDestination::Skipped) => {
                self.shared.watch.skip();
                self.out.send(&Message::Done { index, outcome: Outcome::Skipped })?;
                return Ok(());
            }
            Err(NoDestination::Why(why)) => why,
        };
        let why = format!("{}: {why}", shown(&self.target.shown(entry)));
        Ok(self.shared.give_up(index, why, &mut self.out)?)
    }

    /// The permissions of the source, if these are to be kept; else those that the umask lets through.
    fn mode(&self, entry: &Entry<'_>) -> Mode {
        let without = if self.job.receive.preserve { 0 } else { self.job.umask };
        Mode::from_raw_mode(u32::from(entry.mode) & 0o777 & !without)
    }

    /// Decides about a file and asks for it.
    fn file(
        &mut self,
        index: u32,
        entry: &Entry<'_>,
        size: u64,
    ) -> Result<Result<(), NoDestination>, Over> {
        self.shared.watch.list(size);
        if self.files.len() >= FILES_MAX {
            return Err(malformed());
        }
        let destination = match self.target.place(entry, &self.job.expected) {
            Ok(destination) => destination,
            Err(why) => return Ok(Err(why)),
        };
        let preserve = self.job.receive.preserve;
        let times = preserve.then_some(entry.times);
        let mut finish = Finish { mode: self.mode(entry), times, owner: None };
        let (mut checked, mut is_in_place) = (None, false);
        if !destination.is_fresh {
            let directory = match self.target.directory_of(&destination) {
                Ok(directory) => directory,
                Err(why) => return Ok(Err(why)),
            };
            let at = directory.as_fd();
            let there =
                rustix::fs::statat(at, destination.name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW).ok();
            if let Some(stat) = &there {
                let kind = FileType::from_raw_mode(stat.st_mode);
                if let Err(error) = replaceable(kind) {
                    return Ok(Err(NoDestination::Why(reason(&error))));
                }
                if kind == FileType::RegularFile && !may_be_planted(at, stat) {
                    finish.owner = Some((stat.st_uid, stat.st_gid));
                    if !preserve {
                        finish.mode = Mode::from_raw_mode(stat.st_mode & 0o777);
                    }
                }
            }
            // Who planted a file could change it once it is taken for the copy, whatever is in it now.
            let same = there.filter(|stat| {
                FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
                    && !may_be_planted(at, stat)
                    && u64::try_from(stat.st_size) == Ok(size)
                    && size > 0
            });
            checked = match (beginnings(at, &destination.name.part(), size), same) {
                (Some((lengths, id)), _) => self.guesses.take(id, 1).then_some((lengths, id)),
                (None, Some(stat)) => {
                    let id = FileId::of(&stat);
                    // The type's width is the system's.
                    is_in_place = self.guesses.take(id, stat.st_nlink.into());
                    is_in_place.then(|| (vec![size], id))
                }
                (None, None) => None,
            };
            // What has no place would come all the same, and be dropped.
            if !is_in_place && let Err(error) = takes_names(at) {
                return Ok(Err(NoDestination::Why(reason(&error))));
            }
        }
        let shown = self.target.shown(entry);
        let state = match checked {
            None => {
                self.out.send(&Message::Want { index, offset: 0 })?;
                Wanted::From(0, None)
            }
            Some((lengths, id)) => {
                self.out.send(&Message::Ask { index, lengths: lengths.clone() })?;
                Wanted::Marks(lengths, id)
            }
        };
        self.files.insert(index, Awaited { destination, finish, shown, state, is_in_place });
        Ok(Ok(()))
    }

    /// Compares what is there with what the sender has, and asks for the rest.
    fn marks(&mut self, index: u32, marks: &[Mark]) -> Result<(), Over> {
        let awaited = self.files.get_mut(&index).ok_or_else(malformed)?;
        let Wanted::Marks(lengths, id) = &awaited.state else { return Err(malformed()) };
        let told = marks.iter().map(|mark| mark.length);
        if !lengths.iter().copied().take(marks.len()).eq(told) {
            return Err(malformed());
        }
        let name = match awaited.is_in_place {
            true => awaited.destination.name.as_bytes().to_vec(),
            false => awaited.destination.name.part(),
        };
        let directory = self.target.directory(awaited.destination.parent).ok();
        let found = directory.and_then(|at| agreed(at.as_fd(), &name, marks, self.shared.watch));
        let (offset, seen) = found.map_or((0, None), |(offset, seen)| (offset, Some(seen)));
        if awaited.is_in_place && offset > 0 {
            self.guesses.give_back(*id);
        }
        awaited.state = Wanted::From(offset, seen);
        Ok(self.out.send(&Message::Want { index, offset })?)
    }

    /// Makes a symbolic link, in place of a file or another link.
    fn link(&mut self, entry: &Entry<'_>, target: &[u8]) -> Result<(), NoDestination> {
        let destination = self.target.place(entry, &self.job.expected)?;
        let leads_out = !stays_inside(target, self.target.depth(entry.parent));
        if leads_out && self.job.receive.links == Links::Inside {
            let why = format!(
                "a symbolic link to {:?}, outside what is copied, which needs --links=all",
                shown(target)
            );
            return Err(NoDestination::Why(why));
        }
        let directory = self.target.directory_of(&destination)?;
        let disk = &self.job.disk;
        let (at, name) = (directory.as_fd(), destination.name.as_bytes());
        let made = match disk.make_link(at, name, target) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                match rustix::fs::readlinkat(at, name, Vec::new()) {
                    Ok(there) if there.to_bytes() == target => Ok(()),
                    _ => {
                        let part = destination.name.part();
                        disk.discard(at, &part);
                        disk.make_link(at, &part, target).and_then(|()| {
                            disk.rename(at, &part, name).inspect_err(|_| disk.discard(at, &part))
                        })
                    }
                }
            }
            made => made,
        };
        let made = made.and_then(|()| match self.job.receive.preserve {
            true => disk.set_link_times(at, name, &entry.times),
            false => Ok(()),
        });
        made.map_err(|error| NoDestination::Why(reason(&error)))
    }

    fn begin(&mut self, index: u32, offset: u64) -> Result<(), Over> {
        if !matches!(self.current, Current::None) {
            return Err(malformed());
        }
        let awaited = self.files.remove(&index).ok_or_else(malformed)?;
        // A sender whose file has changed meanwhile begins at its beginning.
        let seen = match awaited.state {
            Wanted::From(wanted, seen) if offset == wanted => seen,
            Wanted::From(..) if offset == 0 => None,
            _ => return Err(malformed()),
        };
        // The second of what a pattern stands for is listed with the first, and has been heard, unless more is told
        // between them than is gathered at a time.
        if let Err(error) = self.target.check(&awaited.destination) {
            return self.fail(index, &awaited.shown, &error, None);
        }
        self.shared.watch.begin(&awaited.shown, offset);
        if awaited.is_in_place && offset > 0 {
            self.current = Current::Same { index, awaited, seen };
            return Ok(());
        }
        let destination = &awaited.destination;
        let seen = seen.filter(|_| !awaited.is_in_place);
        let (disk, owner) = (&self.job.disk, awaited.finish.owner);
        let directory = self.target.directory(destination.parent);
        let device = directory.as_ref().ok().and_then(|at| rustix::fs::fstat(at).ok());
        match directory.and_then(|at| Part::open(disk, &at, &destination.name, offset, seen, owner))
        {
            Ok(part) => {
                let hasher = Box::default();
                self.current = Current::File { index, awaited, part, hasher };
                Ok(())
            }
            Err(error) => {
                let device = device.map(|stat| stat.st_dev);
                self.fail(index, &awaited.shown, &error, device)
            }
        }
    }

    /// Keeps no lock while nobody is heard.
    fn park(&mut self) -> Result<(), Over> {
        let Current::File { index, awaited, part, .. } = &mut self.current else {
            return Ok(());
        };
        let Err(error) = part.park() else {
            return Ok(());
        };
        let (index, path, device) = (*index, std::mem::take(&mut awaited.shown), part.device());
        self.fail(index, &path, &error, device)
    }

    fn fail(
        &mut self,
        index: u32,
        path: &[u8],
        error: &io::Error,
        device: Option<u64>,
    ) -> Result<(), Over> {
        self.current = Current::Unwanted { index };
        Ok(self.shared.fail(index, path, error, device, &mut self.out)?)
    }

    fn data(&mut self, data: &[u8]) -> Result<(), Over> {
        self.shared.watch.pass(data.len() as u64);
        match &mut self.current {
            Current::None => Err(malformed()),
            Current::Unwanted { .. } => Ok(()),
            Current::Same { index, awaited, .. } => {
                let error = io::Error::other("it changed while it was copied; copy it again");
                let (index, path) = (*index, std::mem::take(&mut awaited.shown));
                self.fail(index, &path, &error, None)
            }
            Current::File { index, awaited, part, hasher } => {
                hasher.update(data);
                let Err(error) = part.write(&self.job.disk, data) else {
                    return Ok(());
                };
                let device = part.device();
                let (index, path) = (*index, std::mem::take(&mut awaited.shown));
                self.fail(index, &path, &error, device)
            }
        }
    }

    fn hole(&mut self, length: u64) -> Result<(), Over> {
        self.shared.watch.pass(length);
        match &mut self.current {
            Current::Unwanted { .. } => Ok(()),
            Current::None => Err(malformed()),
            // It has changed, as with other octets.
            Current::Same { .. } => self.data(&[]),
            Current::File { index, awaited, part, hasher } => {
                hasher.update(&length.to_le_bytes());
                let Err(error) = part.skip(length) else {
                    return Ok(());
                };
                let device = part.device();
                let (index, path) = (*index, std::mem::take(&mut awaited.shown));
                self.fail(index, &path, &error, device)
            }
        }
    }

    fn end(&mut self, digest: &Digest, finish: &SyncSender<Finished>) -> Result<(), Over> {
        match std::mem::replace(&mut self.current, Current::None) {
            Current::None => Err(malformed()),
            Current::Unwanted { .. } => Ok(()),
            Current::Same { index, awaited, seen } => self.same(index, &awaited, seen),
            Current::File { index, awaited, part, hasher } => {
                if hasher.finalize().as_bytes() != digest {
                    part.discard(&self.job.disk);
                    let path = shown(&awaited.shown);
                    let why = format!("{path}: it arrived damaged; copy it again");
                    return Ok(self.shared.give_up(index, why, &mut self.out)?);
                }
                let Awaited { finish: with, shown, .. } = awaited;
                // The threads live as long as this end of the queue.
                let job = Finished { index, part, finish: with, shown };
                finish.send(job).map_err(|_| Over::Ended)
            }
        }
    }

    /// What is in its place has the right contents, if it is still what was looked at, and gets its
    /// permissions and times if these are asked for.
    fn same(&mut self, index: u32, awaited: &Awaited, seen: Option<Seen>) -> Result<(), Over> {
        let Awaited { destination, finish, .. } = awaited;
        let set = self.target.directory(destination.parent).and_then(|directory| {
            let (at, name) = (directory.as_fd(), destination.name.as_bytes());
            match (finish.times.is_some(), seen) {
                (true, Some(seen)) => finish.apply(&self.job.disk, at, name, seen),
                (false, Some(seen)) => seen.check(at, name),
                (_, None) => Ok(()),
            }
        });
        if let Err(error) = set {
            return Ok(self.shared.fail(index, &awaited.shown, &error, None, &mut self.out)?);
        }
        self.shared.watch.done();
        Ok(self.out.send(&Message::Done { index, outcome: Outcome::Done })?)
    }

    fn gone(&mut self, index: u32, why: &[u8]) -> Result<(), Over> {
        match &self.current {
            Current::File { index: current, .. }
            | Current::Same { index: current, .. }
            | Current::Unwanted { index: current } => {
                if *current != index {
                    return Err(malformed());
                }
                self.current = Current::None;
            }
            Current::None => {
                self.files.remove(&index).ok_or_else(malformed)?;
            }
        }
        if !why.is_empty() {
            self.shared.watch.trouble_there(why);
        }
        Ok(())
    }
}

/// Whether a link of this text, this many directories below the top of its tree, leads to something in the tree, as
/// long as all other links there do too: it climbs only at its beginning, and not above the top. One that climbs later
/// may climb from where another link leads (rsync's `--safe-links` has the same rule).
fn stays_inside(text: &[u8], depth: usize) -> bool {
    let mut components =
        text.split(|&octet| octet == b'/').filter(|part| *part != b"." && !part.is_empty());
    let climbs = components.by_ref().take_while(|part| *part == b"..").count();
    !text.starts_with(b"/") && climbs <= depth && components.all(|part| part != b"..")
}

/// Whether anybody may have put this file there so that what is copied to its place is theirs to read and to change: it
/// is in a directory that all may write to, as /tmp is, and neither ours nor of whoever has the directory.
fn may_be_planted(directory: BorrowedFd<'_>, file: &Stat) -> bool {
    let us = rustix::process::geteuid().as_raw();
    rustix::fs::fstat(directory).is_ok_and(|directory| {
        directory.st_mode & Mode::WOTH.as_raw_mode() != 0
            && ![us, directory.st_uid].contains(&file.st_uid)
    })
}
