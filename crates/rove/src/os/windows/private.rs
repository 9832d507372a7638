//! Files that are their user's alone: those below %APPDATA% and %LOCALAPPDATA% are, by the access lists that they
//! inherit.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::path::Path;

/// Makes a directory, and those above it, unless they are there.
pub(crate) fn create_directory(path: &Path) -> io::Result<()> {
    std::fs::create_dir_all(path)
}

/// Makes an empty file, or empties one.
pub(crate) fn create_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).open(path)
}

/// Whether others may write a file. Its access list is not read: its directory's is the user's own.
pub(crate) fn others_write(_: &Metadata) -> bool {
    false
}
