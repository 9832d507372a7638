//! Asks for files: the first time, after the sender's hashes, and anew.

use super::awaited::{Awaited, Current, File, Wanted};
use super::existing::Existing;
use super::{Over, Receiver, malformed};
use crate::copy::buggify::Point;
use crate::copy::disk::reason;
use crate::copy::message::{ANEW, Entry, Mark, Message};
use crate::copy::outgoing::FILES_MAX;
use crate::copy::part::agreed;
use crate::copy::target::NoDestination;
use crate::copy::watch::Counted;
use crate::os::fs::AsFd;

impl Receiver<'_> {
    /// Decides about a file and asks for it.
    pub(super) async fn file(
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
        let file = File {
            destination,
            shown: self.target.shown(entry),
            size,
            mode: self.mode(entry),
            times: self.job.receive.preserve.then_some(entry.times),
            may_begin_anew: entry.mode & ANEW != 0,
            anew: 0,
        };
        self.ask(index, file).await
    }

    /// Looks at what there is of a file, and asks for the rest.
    async fn ask(&mut self, index: u32, file: File) -> Result<Result<(), NoDestination>, Over> {
        let mut existing = Existing::default();
        let File { destination, size, anew, .. } = &file;
        // In a directory that this copy has made there is nothing, until another copy works in it.
        if !destination.is_fresh || *anew > 0 {
            let directory = match self.target.directory_of(destination) {
                Ok(directory) => directory,
                Err(why) => return Ok(Err(why)),
            };
            let (at, guesses) = (directory.as_fd(), &mut self.guesses);
            existing = match Existing::look(at, &destination.name, *size, guesses, *anew) {
                Ok(existing) => existing,
                Err(error) => return Ok(Err(NoDestination::Why(reason(&error)))),
            };
        }
        let finish = existing.finish(file.mode, file.times);
        let state = match existing.comparable {
            None => {
                self.out.send(&Message::Want { index, offset: 0 }).await?;
                Wanted::From(0, None)
            }
            Some((lengths, id)) => {
                self.out.send(&Message::Ask { index, lengths: lengths.clone() }).await?;
                Wanted::Marks(lengths, id)
            }
        };
        let is_in_place = existing.is_in_place;
        let has_empty_part = existing.has_empty_part;
        self.files.insert(index, Awaited { file, finish, state, is_in_place, has_empty_part });
        Ok(Ok(()))
    }

    /// Asks for the current file anew, by what is there of it now that another copy has worked at it. What the sender
    /// has sent of it is dropped, and so is what it sends until it hears that.
    pub(super) async fn begin_anew(
        &mut self,
        index: u32,
        awaited: Awaited,
        counted: Counted,
    ) -> Result<(), Over> {
        self.current = Current::Outdated { index };
        self.shared.watch.take_back(counted);
        let mut file = awaited.file;
        file.anew += 1;
        let path = file.shown.clone();
        match self.ask(index, file).await? {
            Ok(()) => Ok(()),
            Err(why) => self.leave_out(index, &path, why).await,
        }
    }

    /// Compares our file with the sender's marks, and asks for the rest.
    pub(super) async fn marks(&mut self, index: u32, marks: &[Mark]) -> Result<(), Over> {
        let awaited = self.files.get_mut(&index).ok_or_else(malformed)?;
        let Wanted::Marks(lengths, id) = &awaited.state else { return Err(malformed()) };
        let told = marks.iter().map(|mark| mark.length);
        if !lengths.iter().copied().take(marks.len()).eq(told) {
            return Err(malformed());
        }
        let name = awaited.name_here();
        let directory = self.target.directory(awaited.file.destination.parent).ok();
        let found = directory.and_then(|at| agreed(at.as_fd(), &name, marks, self.shared.watch));
        let buggify = self.shared.watch.buggify();
        let found = found.filter(|_| !buggify.takes(Point::BeginningWanted));
        let (offset, seen) = found.map_or((0, None), |(offset, seen)| (offset, Some(seen)));
        if awaited.is_in_place && offset > 0 {
            self.guesses.give_back(*id);
        }
        awaited.state = Wanted::From(offset, seen);
        Ok(self.out.send(&Message::Want { index, offset }).await?)
    }
}
