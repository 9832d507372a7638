//! Files: opened through no symbolic link or beneath a directory, and named anew.
#![allow(unsafe_code)]

use std::fs::OpenOptions;
use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::{AsRawHandle, BorrowedHandle, OwnedHandle};

use windows_sys::Wdk::Storage::FileSystem::{FILE_CREATE, FILE_DIRECTORY_FILE};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OPEN_REPARSE_POINT, FILE_GENERIC_READ,
    FILE_GENERIC_WRITE, FILE_NAME_NORMALIZED, FILE_READ_ATTRIBUTES, FILE_WRITE_ATTRIBUTES,
    GetFinalPathNameByHandleW,
};

use crate::os::stat::{FileType, Stat};
use crate::os::windows::fs::{
    AsFd, Errno, Mode, OFlags, SHARED, call, fstat, open_named, path_of, rename_if_free,
};

/// Units of the longest path that the system tells.
const PATH_UNITS_MAX: usize = 1 << 15;

/// Opens one component. A link is none that is opened.
pub(crate) fn open_at(
    at: BorrowedHandle<'_>,
    name: &[u8],
    flags: OFlags,
    _: Mode,
) -> io::Result<OwnedHandle> {
    let is_directory = flags.contains(OFlags::DIRECTORY);
    let options = if is_directory { FILE_DIRECTORY_FILE } else { 0 };
    let access = match flags.contains(OFlags::RDWR) {
        true => FILE_GENERIC_READ | FILE_GENERIC_WRITE,
        false => FILE_GENERIC_READ,
    };
    if flags.contains(OFlags::CREATE | OFlags::EXCL) {
        return Ok(call(at, name, access, FILE_CREATE, options)?);
    }
    // Times are set with it; whoever may not set them may still read.
    let file = match open_named(at, name, access | FILE_WRITE_ATTRIBUTES, options) {
        Err(Errno::ACCESS | Errno::ROFS) => open_named(at, name, access, options)?,
        opened => opened?,
    };
    match fstat(&file)?.kind() {
        FileType::Symlink | FileType::Unknown => Err(Errno::LOOP.into()),
        _ => Ok(file),
    }
}

/// Opens a path beneath a directory: no component may be a link or lead out. An empty path is the directory itself.
pub(crate) fn open_beneath(
    root: BorrowedHandle<'_>,
    path: &[u8],
    flags: OFlags,
) -> io::Result<OwnedHandle> {
    let mut at = root.try_clone_to_owned()?;
    let path = if path.is_empty() { b"." } else { path };
    let mut components = path.split(|&octet| octet == b'/').peekable();
    while let Some(name) = components.next() {
        let flags = match components.peek() {
            Some(_) => OFlags::RDONLY | OFlags::DIRECTORY,
            None => flags,
        };
        at = open_at(at.as_fd(), name, flags, Mode::empty())?;
    }
    Ok(at)
}

/// Opens a path as the user wrote it, with its links.
pub(crate) fn open_path(path: &[u8], flags: OFlags) -> io::Result<OwnedHandle> {
    let open = |access: u32| {
        let mut options = OpenOptions::new();
        options.access_mode(access).share_mode(SHARED).custom_flags(FILE_FLAG_BACKUP_SEMANTICS);
        options.open(path_of(path)?)
    };
    let file = match open(FILE_GENERIC_READ | FILE_WRITE_ATTRIBUTES) {
        Err(error) if [Errno::ACCESS, Errno::ROFS].contains(&Errno::of(&error)) => {
            open(FILE_GENERIC_READ)
        }
        opened => opened,
    };
    let file = file.map_err(|error| Errno::of(&error))?;
    match flags.contains(OFlags::DIRECTORY) && fstat(&file)?.kind() != FileType::Directory {
        true => Err(Errno::NOTDIR.into()),
        false => Ok(file.into()),
    }
}

/// A file that a user's path leads to.
#[derive(Debug)]
pub(crate) struct Located {
    file: OwnedHandle,
    /// What it is.
    pub stat: Stat,
}

impl Located {
    /// The file at this path, with its links.
    pub(crate) fn at(path: &[u8]) -> io::Result<Located> {
        Located::open(path, 0)
    }

    /// The same; but a link that is the last component is the file itself.
    pub(crate) fn link_at(path: &[u8]) -> io::Result<Located> {
        Located::open(path, FILE_FLAG_OPEN_REPARSE_POINT)
    }

    fn open(path: &[u8], how: u32) -> io::Result<Located> {
        let mut options = OpenOptions::new();
        let how = how | FILE_FLAG_BACKUP_SEMANTICS;
        options.access_mode(FILE_READ_ATTRIBUTES).share_mode(SHARED).custom_flags(how);
        let file = OwnedHandle::from(options.open(path_of(path)?)?);
        let stat = fstat(&file)?;
        Ok(Located { file, stat })
    }

    /// Opens it, a directory.
    pub(crate) fn open_directory(&self) -> io::Result<OwnedHandle> {
        let opened = open_path(&self.path()?, OFlags::RDONLY | OFlags::DIRECTORY)?;
        match fstat(&opened)?.is_one(&self.stat) {
            true => Ok(opened),
            false => Err(io::Error::other("it was replaced while it was opened")),
        }
    }

    /// A path without links that leads to it at this moment.
    pub(crate) fn path(&self) -> io::Result<Vec<u8>> {
        let mut units = vec![0_u16; PATH_UNITS_MAX];
        let (room, kind) = (units.len() as u32, FILE_NAME_NORMALIZED);
        let file = self.file.as_raw_handle();
        // SAFETY: an open file; the call writes at most as many units as it is told.
        let length =
            unsafe { GetFinalPathNameByHandleW(file, units.as_mut_ptr(), room, kind) } as usize;
        match units.get(..length).filter(|units| !units.is_empty()) {
            None => Err(io::Error::last_os_error()),
            Some(units) => Ok(shortened(&String::from_utf16_lossy(units)).into_bytes()),
        }
    }
}

/// A path without what says that it is meant as it stands.
fn shortened(path: &str) -> String {
    let path = match (path.strip_prefix(r"\\?\UNC\"), path.strip_prefix(r"\\?\")) {
        (Some(rest), _) => format!(r"\\{rest}"),
        (None, Some(rest)) => rest.to_owned(),
        (None, None) => path.to_owned(),
    };
    path.replace('\\', "/")
}

/// Gives a file another name in its directory, if that is free. `None` if it is not: look, and rename.
pub(crate) fn rename_new(at: BorrowedHandle<'_>, from: &[u8], to: &[u8]) -> Option<io::Result<()>> {
    match rename_if_free(at, from, to) {
        Err(Errno::EXIST) => None,
        renamed => Some(renamed.map_err(io::Error::from)),
    }
}

/// Nothing: the system writes when it likes, and `fsync` waits.
pub(crate) fn begin_writing(_: BorrowedHandle<'_>, _: u64, _: u64) {}
