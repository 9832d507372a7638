//! Look-ups in the C library: users, and their logins.
#![allow(unsafe_code)]

use std::ffi::{CStr, OsString, c_char};
use std::mem;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::ptr;

use crate::os::system::logins;
pub(crate) use crate::os::unix::login_record::LoginRecord;
use crate::os::unix::process::is_single_threaded;

/// The user database's entry of the user we run as.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Account {
    /// The login name.
    pub name: OsString,
    /// The home directory.
    pub home: PathBuf,
    /// The login shell; empty means `/bin/sh` (passwd(5)).
    pub shell: PathBuf,
}

/// Looks up the user we run as. `None` if the database has no such user.
pub(crate) fn account() -> Option<Account> {
    // SAFETY: `look_up` gives pointers to live values, and the buffer's length.
    look_up(|entry, buffer, length, found| unsafe {
        libc::getpwuid_r(libc::getuid(), entry, buffer, length, found)
    })
}

/// Looks up the user of this name.
pub(crate) fn account_of(name: &CStr) -> Option<Account> {
    // SAFETY: `look_up` gives pointers to live values, and the buffer's length; `name` is a string.
    look_up(|entry, buffer, length, found| unsafe {
        libc::getpwnam_r(name.as_ptr(), entry, buffer, length, found)
    })
}

/// Asks the user database with getpwuid_r or getpwnam_r (getpwnam(3)).
fn look_up(
    ask: impl Fn(*mut libc::passwd, *mut c_char, usize, *mut *mut libc::passwd) -> libc::c_int,
) -> Option<Account> {
    let mut buffer = vec![0; 1024];
    loop {
        // SAFETY: all-zero is a valid `passwd`: null pointers and numbers.
        let mut entry: libc::passwd = unsafe { mem::zeroed() };
        let mut found = ptr::null_mut();
        let error = ask(&mut entry, buffer.as_mut_ptr(), buffer.len(), &mut found);
        if error == libc::ERANGE && buffer.len() < PASSWD_BYTES_MAX {
            buffer.resize(buffer.len() * 2, 0);
            continue;
        }
        if error != 0 || found.is_null() {
            return None;
        }
        // SAFETY: on success the fields are null or strings inside `buffer`.
        return unsafe {
            Some(Account {
                name: owned(entry.pw_name),
                home: owned(entry.pw_dir).into(),
                shell: owned(entry.pw_shell).into(),
            })
        };
    }
}

/// Longest entry of the user database that is read; a longer one counts as absent.
const PASSWD_BYTES_MAX: usize = 1 << 20;

/// Copies a C string; null becomes empty.
///
/// # Safety
/// `text` is null or points to a NUL-terminated string.
unsafe fn owned(text: *const c_char) -> OsString {
    if text.is_null() {
        return OsString::new();
    }
    // SAFETY: the caller's promise.
    OsString::from_vec(unsafe { CStr::from_ptr(text) }.to_bytes().to_vec())
}

/// The logins of this machine. None where the C library keeps no records of them, or where rove makes none.
///
/// # Panics
/// In a process with more than one thread: the C library has one buffer for its result.
pub(crate) fn login_records() -> Vec<LoginRecord> {
    assert!(is_single_threaded(), "login records are read before threads start");
    logins::records()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_user_has_an_account() {
        let account = account().unwrap();
        assert!(!account.name.is_empty());
        assert!(account.home.is_absolute());
    }
}
