//! The octets of names and words.

pub(crate) use std::os::unix::ffi::{OsStrExt, OsStringExt};
