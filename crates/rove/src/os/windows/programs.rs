//! Where programs are found: by a whole path, in the system's directory of OpenSSH, and in the directories of `PATH`.
//! Never beside this program or in the directory that the user is in, where Windows looks first and where a download or
//! an unpacked archive may have put anything.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::os::windows::machine::system_directory;

/// The ending of a program's name that may be left away.
const ENDING: &str = "exe";

/// The file of a program that a user has named. One with a directory is taken as it is; of another the file need not be
/// there.
#[expect(clippy::disallowed_methods, reason = "os reads the environment for the whole crate")]
pub(crate) fn program_file(named: &OsStr) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    found(named, &system_directory().join("OpenSSH"), &path)
}

fn found(named: &OsStr, first: &Path, path: &OsStr) -> PathBuf {
    let name = Path::new(named);
    if name.components().count() != 1 || name.file_name() != Some(named) {
        return name.to_owned();
    }
    let file = match name.extension() {
        Some(_) => name.to_owned(),
        None => name.with_extension(ENDING),
    };
    // A relative directory is one below that which the user is in.
    let listed = std::env::split_paths(path).filter(|place| place.is_absolute());
    let mut places = std::iter::once(first.to_owned()).chain(listed).map(|place| place.join(&file));
    places.find(|place| place.is_file()).unwrap_or_else(|| first.join(&file))
}
