//! The environment of this process, and secrets taken out of it.
#![allow(unsafe_code)]

use std::ffi::{CStr, OsString, c_char};

use zeroize::{Zeroize, Zeroizing};

use crate::os::locked;
use crate::os::unix::process::is_single_threaded;

/// The variable that names the directory of configuration.
pub(crate) const CONFIG_HOME: &str = "XDG_CONFIG_HOME";

/// The variable that names the directory of what programs remember.
pub(crate) const STATE_HOME: &str = "XDG_STATE_HOME";

/// The variable that names the user's own directory.
pub(crate) const HOME: &str = "HOME";

/// The environment of this process. Values need not be text.
#[expect(clippy::disallowed_methods, reason = "the environment is read here for the whole crate")]
pub(crate) fn environment() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os()
}

/// Takes a variable out of the environment and wipes every copy of it from the environment block, so
/// that neither children nor `/proc/PID/environ` have it. `None` if it is not set.
///
/// # Panics
/// In a process with more than one thread: another could be reading the environment.
pub(crate) fn take_secret(name: &str) -> Option<Zeroizing<Vec<u8>>> {
    assert!(is_single_threaded(), "the environment is changed before threads start");
    assert!(!name.is_empty() && !name.contains(['=', '\0']), "not a variable's name: {name:?}");
    let mut secret = None;
    let mut entries: Vec<*mut c_char> = Vec::new();
    // SAFETY: `environ` is null or a null-terminated array of NUL-terminated strings, and no other
    // thread exists that could change it while we walk.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            let text = CStr::from_ptr(*entry).to_bytes();
            if let Some(value) =
                text.strip_prefix(name.as_bytes()).and_then(|t| t.strip_prefix(b"="))
            {
                secret.get_or_insert_with(|| locked::within(|| Zeroizing::new(value.to_vec())));
                entries.push(*entry);
            }
            entry = entry.add(1);
        }
        // Unset first: the C library may look at the names while it removes them.
        std::env::remove_var(name);
    }
    for entry in entries {
        // SAFETY: the string was in the environment a moment ago, nothing else points to it, and its
        // memory (the initial stack, or an allocation that the C library leaks) is writable.
        unsafe {
            let length = libc::strlen(entry);
            std::slice::from_raw_parts_mut(entry.cast::<u8>(), length).zeroize();
        }
    }
    secret
}

unsafe extern "C" {
    /// The environment block (environ(7)).
    static mut environ: *mut *mut c_char;
}
