//! Names and paths of files: octets, which differ if one of them does, and slashes between directories.

use std::ffi::{OsStr, OsString};

/// Whether the user's shell replaces patterns by the names that fit them.
pub(crate) const SHELL_EXPANDS: bool = true;

/// Why a file cannot have a name here; `None` if it can.
pub(crate) fn fault(_: &[u8]) -> Option<&'static str> {
    None
}

/// A name as the system compares it, if it takes some for one that differ; `None` where names differ by their octets.
pub(crate) fn folded(_: &[u8]) -> Option<Vec<u8>> {
    None
}

/// A path that the user wrote.
pub(crate) fn path(word: &OsStr) -> OsString {
    word.to_owned()
}

/// How many octets of a path are its root, which has no name in it.
pub(crate) fn root_bytes(path: &[u8]) -> usize {
    usize::from(path.starts_with(b"/"))
}

/// Whether a path begins with the letter of a disk: there are none.
pub(crate) fn has_disk(_: &[u8]) -> bool {
    false
}

/// Whether a word is a path though it has a colon before any slash: none is.
pub(crate) fn is_path(_: &[u8]) -> bool {
    false
}
