//! One record of a login, as the systems' ways to read them give it.

use std::ffi::OsString;

/// One login in utmp(5).
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct LoginRecord {
    /// Who is logged in.
    pub user: OsString,
    /// The terminal, below `/dev`.
    pub line: OsString,
    /// The remote host, or the text of the program that made the record.
    pub host: OsString,
}
