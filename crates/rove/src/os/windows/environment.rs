//! The environment of this process, and secrets taken out of it.
#![allow(unsafe_code)]

use std::ffi::OsString;

use zeroize::Zeroizing;

use crate::os::locked;

/// The variable that names the directory of configuration.
pub(crate) const CONFIG_HOME: &str = "APPDATA";

/// The variable that names the directory of what programs remember.
pub(crate) const STATE_HOME: &str = "LOCALAPPDATA";

/// The variable that names the user's own directory.
pub(crate) const HOME: &str = "USERPROFILE";

/// The environment of this process. Values need not be text.
#[expect(clippy::disallowed_methods, reason = "the environment is read here for the whole crate")]
pub(crate) fn environment() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os()
}

/// Takes a variable out of the environment, so that children do not get it. `None` if it is not set.
///
/// Windows keeps the value in memory of its own, which it does not wipe.
#[expect(clippy::disallowed_methods, reason = "the environment is read here for the whole crate")]
pub(crate) fn take_secret(name: &str) -> Option<Zeroizing<Vec<u8>>> {
    let value = std::env::var_os(name)?;
    // SAFETY: on Windows the environment may be changed at any time.
    unsafe { std::env::remove_var(name) };
    Some(locked::within(|| Zeroizing::new(value.into_encoded_bytes())))
}
