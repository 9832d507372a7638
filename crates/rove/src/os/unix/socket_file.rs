//! The file of a Unix socket that listens at a path.

use std::io;
use std::path::{Path, PathBuf};

use crate::os::unix::fs::lstat;

/// A file of ours, removed when this is dropped, unless another has taken its place.
#[derive(Debug)]
pub(crate) struct SocketFile {
    pub(crate) path: PathBuf,
    pub(crate) device: u64,
    pub(crate) number: u64,
    pub(crate) is_ours: bool,
}

impl SocketFile {
    /// The file of this path, which is ours.
    pub(crate) fn of(path: &Path) -> io::Result<SocketFile> {
        let stat = lstat(path)?;
        let (device, number) = (stat.st_dev, stat.st_ino);
        Ok(SocketFile { path: path.to_owned(), device, number, is_ours: true })
    }

    /// Lets the file stay.
    pub(crate) fn leave(mut self) {
        self.is_ours = false;
    }

    /// Whether this file still has its path.
    pub(crate) fn is_there(&self) -> bool {
        lstat(&self.path).is_ok_and(|stat| (stat.st_dev, stat.st_ino) == (self.device, self.number))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.is_ours && self.is_there() {
            let _ = rustix::fs::unlink(&self.path);
        }
    }
}
