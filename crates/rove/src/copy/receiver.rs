//! Receives the files: decides where everything goes, asks by number for the entries it takes, and
//! trusts nothing from the sender.
//!
//! One worker hears the sender and writes; a few others sync finished files, so that many small
//! ones share the disk's waits.

mod asking;
mod awaited;
mod existing;
mod finishing;
mod guesses;
mod job;
mod link;

use std::collections::HashMap;
use std::io;

use tokio::sync::mpsc::{Sender, channel};

use crate::copy::disk::reason;
use crate::copy::lock_wait::LockWait;
use crate::copy::message::{DATA_BYTES_MAX, Digest, Entry, Kind, Message, Outcome, shown};
use crate::copy::order::Links;
use crate::copy::part::{Part, Seen, changed, sweep};
use crate::copy::pipe::{Broken, Inbox, Outbox};
use crate::copy::target::{NoDestination, Target, TargetError};
use crate::copy::watch::{Counted, Watch};
use crate::os::fs::{AsFd, Mode, fstat, permissions};
use awaited::{Awaited, Current, File, Wanted};
use finishing::{FINISHED_MAX, FINISHERS, Finished, Shared};
use guesses::Guesses;

pub use job::{Job, Waits};

/// Why a receiver stops.
#[derive(Debug, Eq, PartialEq)]
pub enum Over {
    /// Everything is in its place.
    Complete,
    /// Receiving failed, for this reason.
    Failed(String),
    /// The sender ended it, for this reason.
    Refused(String),
    /// The connection has ended.
    Ended,
}

/// Returns why a target cannot be one.
pub(crate) fn check(job: &Job) -> Result<(), TargetError> {
    Target::open(&job.target, &job.receive).map(drop)
}

/// Receives until everything that the sender lists is in its place or has failed.
pub(crate) async fn receive(job: &Job, inbox: Inbox, mut out: Outbox, watch: &Watch) -> Over {
    let target = match Target::open(&job.target, &job.receive) {
        Ok(target) => target,
        Err(error) => {
            let why = error.to_string();
            let _ = out.send(&Message::Fatal(why.as_bytes())).await;
            let _ = out.flush().await;
            return Over::Failed(why);
        }
    };
    let (finish, jobs) = channel(FINISHED_MAX);
    let shared = Shared::new(jobs, &job.disk, watch, &target);
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
    let finishers = (0..FINISHERS).map(|_| shared.finish_files(receiver.out.clone())).collect();
    let hearing = async {
        let heard = receiver.hear(inbox, &finish).await;
        // The finishers end once they have finished everything.
        drop(finish);
        heard
    };
    let (heard, finished) = job.workers.join(hearing, finishers).await;
    if finished.is_none() {
        let _ = shared.stop.set("a fault in rove kept a file from its place".to_owned());
    }
    receiver.close(heard).await
}

struct Receiver<'a> {
    job: &'a Job,
    out: Outbox,
    shared: &'a Shared<'a>,
    target: Target,
    /// By entry. At most [`FILES_MAX`](crate::copy::outgoing::FILES_MAX).
    files: HashMap<u32, Awaited>,
    guesses: Guesses,
    next: u32,
    is_listed: bool,
    current: Current,
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
    /// Hears the sender until every listed entry is in place or has failed.
    async fn hear(&mut self, mut inbox: Inbox, finish: &Sender<Finished>) -> Result<(), Over> {
        let mut unpacked = vec![0; DATA_BYTES_MAX];
        while !(self.is_listed && self.files.is_empty() && matches!(self.current, Current::None)) {
            if let Some(why) = self.shared.stop.get() {
                return Err(Over::Failed(why.clone()));
            }
            if !inbox.is_ready() {
                self.out.flush().await?;
            }
            let message = match inbox.hear().await {
                Ok(message) => message,
                Err(Broken::Ended) => return Err(Over::Ended),
                Err(Broken::Malformed) => return Err(malformed()),
                Err(Broken::Silent) => {
                    self.park().await?;
                    continue;
                }
            };
            match message {
                Message::Entry(entry) => self.entry(&entry).await?,
                Message::Listed => {
                    self.is_listed = true;
                    self.shared.watch.listed();
                }
                Message::Marks { index, marks } => self.marks(index, &marks).await?,
                Message::Begin { index, offset } => self.begin(index, offset).await?,
                Message::Data(data) => self.data(data).await?,
                Message::Packed { length, block } => {
                    let room = &mut unpacked[..length as usize];
                    match lz4_flex::block::decompress_into(block, room) {
                        Ok(got) if got == length as usize => self.data(&unpacked[..got]).await?,
                        _ => return Err(malformed()),
                    }
                }
                Message::Hole(length) => self.hole(length).await?,
                Message::End(digest) => self.end(&digest, finish).await?,
                Message::Gone { index, why } => self.gone(index, why)?,
                Message::Trouble(text) => self.shared.watch.trouble_there(text),
                Message::Fatal(text) => return Err(Over::Refused(shown(text))),
                Message::Ask { .. }
                | Message::Want { .. }
                | Message::Waiting { .. }
                | Message::Done { .. }
                | Message::Complete => {
                    return Err(malformed());
                }
            }
        }
        Ok(())
    }

    /// Finishes the directories if all went well, and reports how the copy ends.
    async fn close(&mut self, heard: Result<(), Over>) -> Over {
        let over = match (heard, self.shared.stop.get()) {
            (_, Some(why)) => Over::Failed(why.clone()),
            (Err(over), None) => over,
            (Ok(()), None) => {
                let preserve = self.job.receive.preserve;
                for line in self.target.finish(&self.job.disk, preserve) {
                    let _ = self.out.send(&Message::Trouble(line.as_bytes())).await;
                    self.shared.watch.trouble(line);
                }
                Over::Complete
            }
        };
        let told = match &over {
            Over::Complete => self.out.send(&Message::Complete).await,
            Over::Failed(why) => self.out.send(&Message::Fatal(why.as_bytes())).await,
            Over::Refused(_) | Over::Ended => Ok(()),
        };
        if told.is_ok() {
            let _ = self.out.flush().await;
        }
        over
    }

    async fn entry(&mut self, entry: &Entry<'_>) -> Result<(), Over> {
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
            Kind::File { size } => self.file(index, entry, size).await?,
        };
        match added {
            Ok(()) => Ok(()),
            Err(why) => self.leave_out(index, &self.target.shown(entry), why).await,
        }
    }

    /// Leaves out an entry that has no place.
    async fn leave_out(&mut self, index: u32, path: &[u8], why: NoDestination) -> Result<(), Over> {
        match why {
            NoDestination::Unasked(why) => Err(Over::Failed(why)),
            NoDestination::Skipped => {
                self.shared.watch.skip();
                Ok(self.out.send(&Message::Done { index, outcome: Outcome::Skipped }).await?)
            }
            NoDestination::Why(why) => {
                let why = format!("{}: {why}", shown(path));
                Ok(self.shared.give_up(index, why, &mut self.out).await?)
            }
        }
    }

    /// The permissions of the source, if they are kept; else reduced by the umask.
    fn mode(&self, entry: &Entry<'_>) -> Mode {
        let without = if self.job.receive.preserve { 0 } else { self.job.umask };
        permissions(u32::from(entry.mode) & 0o777 & !without)
    }

    /// Makes a symbolic link, in place of a file or another link.
    fn link(&mut self, entry: &Entry<'_>, target: &[u8]) -> Result<(), NoDestination> {
        let destination = self.target.place(entry, &self.job.expected)?;
        let leads_out = !link::stays_inside(target, self.target.depth(entry.parent));
        if leads_out && self.job.receive.links == Links::Inside {
            let why = format!(
                "a symbolic link to {:?}, outside what is copied, which needs --links=all",
                shown(target)
            );
            return Err(NoDestination::Why(why));
        }
        let directory = self.target.directory_of(&destination)?;
        let (disk, at, name) = (&self.job.disk, directory.as_fd(), &destination.name);
        let made =
            link::make(disk, at, name, target).and_then(|()| match self.job.receive.preserve {
                true => disk.set_link_times(at, name.as_bytes(), &entry.times),
                false => Ok(()),
            });
        made.map_err(|error| NoDestination::Why(reason(&error)))
    }

    async fn begin(&mut self, index: u32, offset: u64) -> Result<(), Over> {
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
        if let Err(error) = self.target.check(&awaited.file.destination) {
            return self.fail(index, &awaited.file.shown, &error, None).await;
        }
        self.shared.watch.begin(&awaited.file.shown, offset);
        if awaited.is_in_place && offset > 0 {
            self.current = Current::Same { index, awaited, seen };
            return Ok(());
        }
        let destination = &awaited.file.destination;
        let seen = seen.filter(|_| !awaited.is_in_place);
        let (disk, owner) = (&self.job.disk, awaited.finish.owner);
        let directory = self.target.directory(destination.parent);
        let device = directory.as_ref().ok().and_then(|at| fstat(at).ok());
        let wait = LockWait {
            workers: self.job.workers,
            index,
            path: &awaited.file.shown,
            watch: self.shared.watch,
            sender: (self.job.waits == Waits::Told).then_some(&mut self.out),
            is_borne: awaited.file.may_begin_anew && awaited.file.anew == 0,
        };
        let opened = match directory {
            Ok(at) => Part::open(disk, wait, &at, &destination.name, offset, seen, owner).await,
            Err(error) => Err(error),
        };
        match opened {
            Ok(part) => {
                let (spared, hasher) = (offset, Box::default());
                self.current = Current::File { index, awaited, part, spared, hasher };
                Ok(())
            }
            Err(error) if awaited.begins_anew(&error) => {
                let counted = Counted { bytes: offset, spared: offset };
                self.begin_anew(index, awaited, counted).await
            }
            Err(error) => {
                let device = device.map(|stat| stat.st_dev);
                self.fail(index, &awaited.file.shown, &error, device).await
            }
        }
    }

    /// Releases the lock while the sender is silent.
    async fn park(&mut self) -> Result<(), Over> {
        let Current::File { part, .. } = &mut self.current else { return Ok(()) };
        let parked = part.park();
        self.go_on(parked).await
    }

    /// Gives up the current file if the write failed, or asks for it anew.
    async fn go_on(&mut self, done: io::Result<()>) -> Result<(), Over> {
        let Err(error) = done else { return Ok(()) };
        match std::mem::replace(&mut self.current, Current::None) {
            Current::File { index, awaited, part, spared, .. } if awaited.begins_anew(&error) => {
                let counted = Counted { bytes: part.at(), spared };
                drop(part);
                self.begin_anew(index, awaited, counted).await
            }
            Current::File { index, awaited, part, .. } => {
                let device = part.device();
                // Its lock goes before anybody hears that it failed.
                drop(part);
                self.fail(index, &awaited.file.shown, &error, device).await
            }
            Current::Same { index, awaited, .. } => {
                self.fail(index, &awaited.file.shown, &error, None).await
            }
            Current::None | Current::Unwanted { .. } | Current::Outdated { .. } => Ok(()),
        }
    }

    async fn fail(
        &mut self,
        index: u32,
        path: &[u8],
        error: &io::Error,
        device: Option<u64>,
    ) -> Result<(), Over> {
        self.current = Current::Unwanted { index };
        Ok(self.shared.fail(index, path, error, device, &mut self.out).await?)
    }

    async fn data(&mut self, data: &[u8]) -> Result<(), Over> {
        let written = match &mut self.current {
            Current::None => return Err(malformed()),
            Current::Outdated { .. } => return Ok(()),
            Current::Unwanted { .. } => Ok(()),
            Current::Same { .. } => Err(changed()),
            Current::File { part, hasher, .. } => {
                hasher.update(data);
                part.write(&self.job.disk, data)
            }
        };
        if written.is_ok() {
            self.shared.watch.pass(data.len() as u64);
        }
        self.go_on(written).await
    }

    async fn hole(&mut self, length: u64) -> Result<(), Over> {
        let skipped = match &mut self.current {
            Current::None => return Err(malformed()),
            Current::Outdated { .. } => return Ok(()),
            Current::Unwanted { .. } => Ok(()),
            Current::Same { .. } => Err(changed()),
            Current::File { part, hasher, .. } => {
                hasher.update(&length.to_le_bytes());
                part.skip(length)
            }
        };
        if skipped.is_ok() {
            self.shared.watch.pass(length);
        }
        self.go_on(skipped).await
    }

    async fn end(&mut self, digest: &Digest, finish: &Sender<Finished>) -> Result<(), Over> {
        if let Current::File { part, .. } = &mut self.current
            && let Err(error) = part.resume()
        {
            self.go_on(Err(error)).await?;
            // Of this one nothing more comes.
            self.current = Current::None;
            return Ok(());
        }
        match std::mem::replace(&mut self.current, Current::None) {
            Current::None => Err(malformed()),
            Current::Unwanted { .. } | Current::Outdated { .. } => Ok(()),
            Current::Same { index, awaited, seen } => self.same(index, &awaited, seen).await,
            Current::File { index, awaited, part, hasher, .. } => {
                if hasher.finalize().as_bytes() != digest {
                    part.discard(&self.job.disk);
                    let path = shown(&awaited.file.shown);
                    let why = format!("{path}: it arrived damaged; copy it again");
                    return Ok(self.shared.give_up(index, why, &mut self.out).await?);
                }
                let (with, shown) = (awaited.finish, awaited.file.shown);
                // The finishers live as long as this end of the queue.
                let job = Finished { index, part, finish: with, shown };
                finish.send(job).await.map_err(|_| Over::Ended)
            }
        }
    }

    /// Accepts a file in place with the right contents, if it is still the one compared, and sets its
    /// permissions and times if asked to.
    async fn same(
        &mut self,
        index: u32,
        awaited: &Awaited,
        seen: Option<Seen>,
    ) -> Result<(), Over> {
        let Awaited { file: File { destination, shown, .. }, finish, .. } = awaited;
        let set = self.target.directory(destination.parent).and_then(|directory| {
            let (at, name) = (directory.as_fd(), destination.name.as_bytes());
            match (finish.times.is_some(), seen) {
                (true, Some(seen)) => finish.apply(&self.job.disk, at, name, seen),
                (false, Some(seen)) => seen.check(at, name),
                (_, None) => Ok(()),
            }
        });
        if let Err(error) = set {
            return Ok(self.shared.fail(index, shown, &error, None, &mut self.out).await?);
        }
        if awaited.has_empty_part
            && let Ok(directory) = self.target.directory(destination.parent)
        {
            sweep(&self.job.disk, directory.as_fd(), &destination.name);
        }
        self.shared.watch.done();
        Ok(self.out.send(&Message::Done { index, outcome: Outcome::Done }).await?)
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
            Current::Outdated { index: current } => {
                if *current != index {
                    return Err(malformed());
                }
                // Without a reason it is the answer to our wish, and the file comes anew.
                if !why.is_empty() {
                    self.files.remove(&index);
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
