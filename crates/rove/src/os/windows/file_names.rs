//! Names and paths of files. Paths have slashes between directories as they do on the other end; the system takes either.

use std::ffi::{OsStr, OsString};

use crate::os::windows_names::slashed;
pub(crate) use crate::os::windows_names::{fault, folded, has_disk, is_path, root_bytes};

/// Whether the user's shell replaces patterns by the names that fit them.
pub(crate) const SHELL_EXPANDS: bool = false;

/// A path that the user wrote, with slashes. One from the current directory of a disk becomes a whole one.
pub(crate) fn path(word: &OsStr) -> OsString {
    let whole = match word.as_encoded_bytes() {
        [_, b':', b'/' | b'\\', ..] => None,
        octets if has_disk(octets) => std::path::absolute(word).ok(),
        _ => None,
    };
    let word = whole.map_or_else(|| word.to_owned(), OsString::from);
    match word.into_string() {
        Ok(text) => slashed(&text).into(),
        Err(word) => word,
    }
}
