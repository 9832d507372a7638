//! Finds what is where a file is to go, and what of it the copy can use.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, FileType, Mode, Stat};

use super::guesses::Guesses;
use crate::copy::disk::{replaceable, takes_names};
use crate::copy::message::Times;
use crate::copy::name::Name;
use crate::copy::part::{FileId, Finish, beginnings};

/// The files that a copy finds under the name that it writes.
#[derive(Default)]
pub(super) struct Existing {
    /// The file that is replaced, whose owner and perhaps permissions are kept.
    file: Option<Stat>,
    /// The sender is to tell its hashes of beginnings of these lengths, which this file has too.
    pub(super) comparable: Option<(Vec<u64>, FileId)>,
    /// Whether that is a file of the same size under the final name, not a part.
    pub(super) is_in_place: bool,
}

impl Existing {
    /// Looks at what has this name in a directory, and at the part of an earlier copy beside it.
    ///
    /// # Errors
    /// Why nothing can be put there.
    pub(super) fn look(
        at: BorrowedFd<'_>,
        name: &Name,
        size: u64,
        guesses: &mut Guesses,
    ) -> io::Result<Existing> {
        let there = rustix::fs::statat(at, name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW).ok();
        let kind = |stat: &Stat| FileType::from_raw_mode(stat.st_mode);
        if let Some(stat) = &there {
            replaceable(kind(stat))?;
        }
        // Who planted a file could change it once it is taken for the copy, whatever is in it now.
        let file =
            there.filter(|stat| kind(stat) == FileType::RegularFile && !may_be_planted(at, stat));
        let same = file.filter(|stat| u64::try_from(stat.st_size) == Ok(size) && size > 0);
        let mut is_in_place = false;
        let comparable = match (beginnings(at, &name.part(), size), same) {
            (Some((lengths, id)), _) => guesses.take(id, 1).then_some((lengths, id)),
            (None, Some(stat)) => {
                let id = FileId::of(&stat);
                // The type's width is the system's.
                is_in_place = guesses.take(id, stat.st_nlink.into());
                is_in_place.then(|| (vec![size], id))
            }
            (None, None) => None,
        };
        // What has no place would come all the same, and be dropped.
        if !is_in_place {
            takes_names(at)?;
        }
        Ok(Existing { file, comparable, is_in_place })
    }

    /// What the new file gets: the owner of the one that it replaces, and its permissions where the
    /// source's are not kept, as they are with the source's times.
    pub(super) fn finish(&self, mode: Mode, times: Option<Times>) -> Finish {
        let Some(file) = &self.file else { return Finish { mode, times, owner: None } };
        let mode = match times {
            Some(_) => mode,
            None => Mode::from_raw_mode(file.st_mode & 0o777),
        };
        Finish { mode, times, owner: Some((file.st_uid, file.st_gid)) }
    }
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
