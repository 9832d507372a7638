//! Finds the files at an entry's destination, and what the copy can reuse of them.

use std::io;

use super::guesses::Guesses;
use crate::copy::disk::{replaceable, takes_names};
use crate::copy::message::Times;
use crate::copy::name::Name;
use crate::copy::part::{FileId, Finish, beginnings};
use crate::os::fs::{self, AtFlags, BorrowedFd, Mode, fstat, permissions, statat};
use crate::os::stat::{FileType, Stat};

/// The files that exist under the name to write.
#[derive(Default)]
pub(super) struct Existing {
    /// The file to replace, whose owner and perhaps permissions are kept.
    file: Option<Stat>,
    /// Lengths of beginnings to ask the sender's hashes of, and the file that has them here.
    pub(super) comparable: Option<(Vec<u64>, FileId)>,
    /// Whether that is a file of the same size under the final name, not a part.
    pub(super) is_in_place: bool,
    /// Whether there is a part without octets.
    pub(super) has_empty_part: bool,
}

impl Existing {
    /// Looks up this name in a directory, and the part of an earlier copy beside it; `anew` is how often that was done before.
    /// Each time the sender may be asked for hashes once more.
    ///
    /// # Errors
    /// Why nothing can be written there.
    pub(super) fn look(
        at: BorrowedFd<'_>,
        name: &Name,
        size: u64,
        guesses: &mut Guesses,
        anew: u8,
    ) -> io::Result<Existing> {
        let there = statat(at, name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW).ok();
        if let Some(stat) = &there {
            replaceable(stat.kind())?;
        }
        // Who planted a file could change it once it is taken for the copy, whatever is in it now.
        let file =
            there.filter(|stat| stat.kind() == FileType::RegularFile && !may_be_planted(at, stat));
        let same = file.filter(|stat| u64::try_from(stat.st_size) == Ok(size) && size > 0);
        let mut is_in_place = false;
        let part = beginnings(at, &name.part(), size);
        let has_empty_part = part.as_ref().is_some_and(|(lengths, _)| lengths.is_empty());
        let comparable = match (part.filter(|_| !has_empty_part), same) {
            (Some((lengths, id)), _) => {
                guesses.take(id, 1 + u128::from(anew)).then_some((lengths, id))
            }
            (None, Some(stat)) => {
                let id = FileId::of(&stat);
                is_in_place = guesses.take(id, u128::from(stat.st_nlink) + u128::from(anew));
                is_in_place.then(|| (vec![size], id))
            }
            (None, None) => None,
        };
        // What has no place would come all the same, and be dropped.
        if !is_in_place {
            takes_names(at)?;
        }
        Ok(Existing { file, comparable, is_in_place, has_empty_part })
    }

    /// The attributes of the new file: the owner of the replaced one, and its permissions unless the
    /// source's are kept, as they are with the source's times.
    pub(super) fn finish(&self, mode: Mode, times: Option<Times>) -> Finish {
        let Some(file) = &self.file else { return Finish { mode, times, owner: None } };
        let mode = match times {
            Some(_) => mode,
            None => permissions(file.st_mode & 0o777),
        };
        Finish { mode, times, owner: Some((file.st_uid, file.st_gid)) }
    }
}

/// Whether anybody may have planted this file to read or change our copy: it is in a directory that all may
/// write to, as /tmp is, and belongs neither to us nor to the directory's owner.
fn may_be_planted(directory: BorrowedFd<'_>, file: &Stat) -> bool {
    let us = fs::own_user();
    fstat(directory).is_ok_and(|directory| {
        directory.st_mode & 0o002 != 0 && ![us, directory.st_uid].contains(&file.st_uid)
    })
}
