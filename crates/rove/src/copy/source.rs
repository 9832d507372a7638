//! Opens listed files.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use crate::os::files::open_beneath;
use crate::os::fs::{AsFd, OFlags, OwnedFd, fstat, open_plain};

/// How to open a file again when the receiver asks for it.
#[derive(Clone, Debug)]
pub(crate) enum SourceFile {
    /// The user's own path.
    Plain(Vec<u8>),
    /// A path beneath the directory that the user named so.
    Beneath(Arc<[u8]>, Vec<u8>),
}

impl SourceFile {
    pub(crate) fn open(&self, roots: &Roots) -> io::Result<OwnedFd> {
        match self {
            SourceFile::Plain(path) => open_plain(path, OFlags::RDONLY),
            SourceFile::Beneath(root, path) => {
                open_beneath(roots.open(root)?.as_fd(), path, OFlags::RDONLY)
            }
        }
    }
}

/// The directories that the user named, the most recently opened of which stay open: there may be more of
/// them than a process may have files open.
#[derive(Debug, Default)]
pub(crate) struct Roots(Mutex<Known>);

impl Roots {
    pub(crate) fn open(&self, path: &Arc<[u8]>) -> io::Result<Arc<OwnedFd>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(root) = known.open.iter().find(|root| root.path == *path) {
            return Ok(Arc::clone(&root.directory));
        }
        let here = if path.is_empty() { b"." } else { &**path };
        let directory = Arc::new(open_plain(here, OFlags::RDONLY | OFlags::DIRECTORY)?);
        let stat = fstat(&directory)?;
        let identity = (stat.st_dev, stat.st_ino);
        if *known.first.entry(Arc::clone(path)).or_insert(identity) != identity {
            return Err(io::Error::other("it was replaced while it was copied; copy it again"));
        }
        known.open.truncate(ROOTS_MAX - 1);
        known.open.push_front(Root { path: Arc::clone(path), directory: Arc::clone(&directory) });
        Ok(directory)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) open: VecDeque<Root>,
    /// The first directory of each name, by device and inode: a symbolic link may lead elsewhere later.
    pub(crate) first: HashMap<Arc<[u8]>, (u64, u64)>,
}

/// The most named directories to keep open.
pub(crate) const ROOTS_MAX: usize = 16;

#[derive(Debug)]
pub(crate) struct Root {
    pub(crate) path: Arc<[u8]>,
    pub(crate) directory: Arc<OwnedFd>,
}
