//! Files that are their user's alone.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Makes a directory, and those above it, unless they are there.
pub(crate) fn create_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Makes an empty file, or empties one.
pub(crate) fn create_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// Whether others than this user and root may write a file.
pub(crate) fn others_write(file: &File) -> io::Result<bool> {
    let file = file.metadata()?;
    let is_own = [0, rustix::process::geteuid().as_raw()].contains(&file.uid());
    Ok(!is_own || file.mode() & 0o022 != 0)
}
