//! Opens the target that the user named, or explains why it cannot be one.

use std::io;

use thiserror::Error;

use crate::copy::disk::reason;
use crate::copy::message::shown;
use crate::copy::name::Name;
use crate::copy::order::Receive;
use crate::copy::walk::last_component;
use crate::os::file_names;
use crate::os::files::{Located, open_path};
use crate::os::fs::{self, AtFlags, OFlags, OwnedFd, statat};
use crate::os::stat::{FileType, Stat};

/// The directory that a copy writes to.
pub(super) struct Root {
    pub(super) directory: OwnedFd,
    /// The one name in it that everything goes to; `None` if entries keep their own names.
    pub(super) only: Option<Name>,
    /// The user wrote a slash behind that name.
    pub(super) must_be_directory: bool,
    /// The path of the directory, or of that name in it, as the user wrote it.
    pub(super) label: Vec<u8>,
}

/// Why a path cannot be a target.
#[derive(Debug, Error)]
#[error("{}: {fault}", shown(path))]
pub(crate) struct TargetError {
    path: Vec<u8>,
    fault: TargetFault,
}

/// A fault of a target, or of a directory on the way to it.
#[derive(Debug, Error)]
pub(crate) enum TargetFault {
    /// A file, where several sources need a directory.
    #[error("not a directory, and there are several sources")]
    NotDirectoryForSeveral,
    /// Nothing, where several sources need a directory.
    #[error("no such directory, and there are several sources")]
    MissingForSeveral,
    /// A file with a slash behind its name.
    #[error("not a directory")]
    NotDirectory,
    /// Neither a file nor a directory.
    #[error("a device, pipe or socket, which is not overwritten")]
    Special,
    /// The last component of the path is `..` or the like.
    #[error("no name for a file")]
    NoFileName,
    #[error("a symbolic link of another user's, which is not followed")]
    OthersLink,
    #[error("a symbolic link that leads nowhere")]
    DanglingLink,
    #[error("a symbolic link that changed while it was followed")]
    LinkChanged,
    /// A link whose end the system does not report.
    #[error("where it leads is not known: {}", reason(.0))]
    EndUnknown(io::Error),
    /// The end of a link has been renamed meanwhile.
    #[error("it leads to what has moved meanwhile")]
    EndMoved,
    #[error("{}", reason(.0))]
    System(#[from] io::Error),
}

impl Root {
    /// Opens the target that the user named.
    pub(super) fn open(path: &[u8], receive: &Receive) -> Result<Root, TargetError> {
        let here = if path.is_empty() { b"." } else { path };
        let fail = |fault: TargetFault| TargetError { path: here.to_vec(), fault };
        let length = here.iter().rposition(|&octet| octet != b'/').map_or(0, |last| last + 1);
        let named = match length {
            0 => &b"/"[..],
            _ => directory_part(here, length),
        };
        let found = find(named).map_err(fail)?;
        if let Some(Found { file, .. }) = &found {
            match file.stat.kind() {
                FileType::Directory => {
                    let opened = file.open_directory();
                    let directory = opened.map_err(|error| fail(error.into()))?;
                    let label = here.to_vec();
                    return Ok(Root { directory, only: None, must_be_directory: false, label });
                }
                FileType::RegularFile if receive.several => {
                    return Err(fail(TargetFault::NotDirectoryForSeveral));
                }
                FileType::RegularFile if length < here.len() => {
                    return Err(fail(TargetFault::NotDirectory));
                }
                FileType::RegularFile => {}
                _ => return Err(fail(TargetFault::Special)),
            }
        } else if receive.several {
            return Err(fail(TargetFault::MissingForSeveral));
        }
        let (directory, name) = match found {
            Some(Found { file, is_link: true }) => place_of(&file).map_err(fail)?,
            _ => {
                let parent = parent_of(named);
                let opened = open_directory(parent);
                let directory = opened
                    .map_err(|error| TargetError { path: parent.to_vec(), fault: error.into() })?;
                (directory, last_component(named).to_vec())
            }
        };
        let only = Name::new(&name).ok_or_else(|| fail(TargetFault::NoFileName))?;
        if let Some(why) = file_names::fault(only.as_bytes()) {
            return Err(fail(io::Error::other(why).into()));
        }
        let must_be_directory = here.ends_with(b"/");
        Ok(Root { directory, only: Some(only), must_be_directory, label: named.to_vec() })
    }
}

/// The file at the end of a user's path.
struct Found {
    file: Located,
    /// The path's last component is a symbolic link.
    is_link: bool,
}

/// Finds the file at this path; `None` if there is none.
///
/// A link in its last component is followed only if it is the user's own or root's: in a directory where
/// others write, one of theirs would choose the file to overwrite. The system follows it, and the check
/// before and after shows that nobody has replaced it meanwhile.
fn find(path: &[u8]) -> Result<Option<Found>, TargetFault> {
    let file = match Located::link_at(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let stat = file.stat;
    if stat.kind() != FileType::Symlink {
        return Ok(Some(Found { file, is_link: false }));
    }
    if ![0, fs::own_user()].contains(&stat.st_uid) {
        return Err(TargetFault::OthersLink);
    }
    let followed = match Located::at(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(TargetFault::DanglingLink);
        }
        followed => followed?,
    };
    let again = Located::link_at(path)?.stat;
    // Another link may have got the number of one that was removed, but was not made at the same time.
    let born = |stat: &Stat| (stat.st_ctime, stat.st_ctime_nsec);
    match stat.is_one(&again) && born(&stat) == born(&again) {
        true => Ok(Some(Found { file: followed, is_link: true })),
        false => Err(TargetFault::LinkChanged),
    }
}

/// The open directory of this file, and its name there at this moment.
fn place_of(file: &Located) -> Result<(OwnedFd, Vec<u8>), TargetFault> {
    let path = file.path().map_err(TargetFault::EndUnknown)?;
    let name = last_component(&path).to_vec();
    let root = open_directory(parent_of(&path))?;
    let there = statat(&root, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW);
    match there.is_ok_and(|there| there.is_one(&file.stat)) {
        true => Ok((root, name)),
        false => Err(TargetFault::EndMoved),
    }
}

/// The path of the directory that this path's last component is in.
fn parent_of(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|&octet| octet == b'/') {
        Some(0) => b"/",
        Some(slash) => directory_part(path, slash),
        None => b".",
    }
}

/// The part of a path before a slash; with it, where the letter of a disk alone would be another directory.
fn directory_part(path: &[u8], slash: usize) -> &[u8] {
    let is_disk = slash == 2 && file_names::has_disk(path);
    &path[..(slash + usize::from(is_disk)).min(path.len())]
}

fn open_directory(path: &[u8]) -> io::Result<OwnedFd> {
    open_path(path, OFlags::RDONLY | OFlags::DIRECTORY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_is_told() {
        let denied = || io::Error::from(crate::os::fs::Errno::ACCESS);
        for (fault, told) in [
            (
                TargetFault::NotDirectoryForSeveral,
                "t: not a directory, and there are several sources",
            ),
            (TargetFault::MissingForSeveral, "t: no such directory, and there are several sources"),
            (TargetFault::NotDirectory, "t: not a directory"),
            (TargetFault::Special, "t: a device, pipe or socket, which is not overwritten"),
            (TargetFault::NoFileName, "t: no name for a file"),
            (
                TargetFault::OthersLink,
                "t: a symbolic link of another user's, which is not followed",
            ),
            (TargetFault::DanglingLink, "t: a symbolic link that leads nowhere"),
            (TargetFault::LinkChanged, "t: a symbolic link that changed while it was followed"),
            (
                TargetFault::EndUnknown(denied()),
                "t: where it leads is not known: permission denied",
            ),
            (TargetFault::EndMoved, "t: it leads to what has moved meanwhile"),
            (TargetFault::System(denied()), "t: permission denied"),
        ] {
            assert_eq!(TargetError { path: b"t".to_vec(), fault }.to_string(), told);
        }
    }
}
