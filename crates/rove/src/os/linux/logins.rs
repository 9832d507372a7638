//! The records of logins, utmp(5).
#![allow(unsafe_code)]

use crate::os::unix::login_record::LoginRecord;

/// The logins of this machine. To be called in a process with one thread.
#[cfg(target_env = "gnu")]
pub(crate) fn records() -> Vec<LoginRecord> {
    use std::ffi::{OsString, c_char};
    use std::os::unix::ffi::OsStringExt;

    let mut records = Vec::new();
    // SAFETY: with one thread nobody else reads records; each is valid until the next is read.
    unsafe {
        libc::setutxent();
        loop {
            let entry = libc::getutxent();
            if entry.is_null() {
                break;
            }
            if (*entry).ut_type == libc::USER_PROCESS {
                let text = |field: &[c_char]| {
                    let octets = field.iter().map(|octet| octet.to_ne_bytes()[0]);
                    OsString::from_vec(octets.take_while(|octet| *octet != 0).collect())
                };
                let user = text(&(*entry).ut_user);
                let (line, host) = (text(&(*entry).ut_line), text(&(*entry).ut_host));
                records.push(LoginRecord { user, line, host });
            }
        }
        libc::endutxent();
    }
    records
}

/// No records: musl and Android's C library keep none.
#[cfg(not(target_env = "gnu"))]
pub(crate) fn records() -> Vec<LoginRecord> {
    Vec::new()
}
