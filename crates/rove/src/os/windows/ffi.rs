//! The octets of names and words: UTF-8, with the lone surrogates that a name of Windows may have as WTF-8.

use std::ffi::{OsStr, OsString};

/// A name as octets.
pub(crate) trait OsStrExt {
    /// Its octets.
    fn as_bytes(&self) -> &[u8];
    /// The name of these octets.
    fn from_bytes(octets: &[u8]) -> &OsStr;
}

impl OsStrExt for OsStr {
    fn as_bytes(&self) -> &[u8] {
        self.as_encoded_bytes()
    }

    fn from_bytes(octets: &[u8]) -> &OsStr {
        // Octets from elsewhere that are no UTF-8 are no name here.
        OsStr::new(str::from_utf8(octets).unwrap_or("\u{fffd}"))
    }
}

/// A name made of octets.
pub(crate) trait OsStringExt {
    /// The name of these octets. Those that are no UTF-8 are replaced.
    fn from_vec(octets: Vec<u8>) -> OsString;
    /// Its octets.
    fn into_vec(self) -> Vec<u8>;
}

impl OsStringExt for OsString {
    fn from_vec(octets: Vec<u8>) -> OsString {
        String::from_utf8_lossy(&octets).into_owned().into()
    }

    fn into_vec(self) -> Vec<u8> {
        self.into_encoded_bytes()
    }
}
