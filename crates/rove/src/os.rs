//! What the system offers, each call behind a safe function. What every Unix has is in `unix`, what only Linux
//! has in `linux`, and what macOS and FreeBSD have instead in `bsd`; `windows` has what a client needs there. Those
//! alone use `unsafe`, and no file outside of this module asks which system it is built for. They know nothing of
//! sessions, keys or protocols.
//!
//! `linux` and `bsd` have the same names, `unix` and `windows` as far as a client needs them. What this program is built
//! with is in [`system`] and [`family`].

#[cfg(any(target_os = "macos", target_os = "freebsd"))]
mod bsd;
pub(crate) mod clock;
mod family;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;
pub(crate) mod locked;
pub(crate) mod lookup;
#[cfg(any(target_os = "macos", test))]
mod macos_arguments;
pub(crate) mod modes;
pub(crate) mod names;
pub(crate) mod reach;
pub(crate) mod signals;
pub(crate) mod stat;
mod system;
pub(crate) mod terminfo;
pub(crate) mod threads;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub mod unconfined;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;
#[cfg(any(windows, test))]
mod windows_names;

use std::io;

use zeroize::Zeroizing;

pub use system::sandbox;

#[cfg(unix)]
pub(crate) use family::{
    account, handover, interfaces,
    machine::{machine, machine_and_network},
    pty,
    signals::ignore_hangup,
};
pub(crate) use family::{
    environment, ffi, file_names, fs, local_socket, network_changes, pipe, private, process,
    socket_file, stdio, tty, watched,
};
pub(crate) use system::{files, udp};
#[cfg(unix)]
pub(crate) use unix::watch::watch;

/// An error in the system's words, without its number.
pub(crate) fn words(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// Fresh random bytes from the kernel.
pub fn random<const N: usize>() -> io::Result<Zeroizing<[u8; N]>> {
    let mut bytes = Zeroizing::new([0; N]);
    system::process::fill_random(bytes.as_mut())?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_bytes_differ() {
        assert_ne!(*random::<16>().unwrap(), *random::<16>().unwrap());
        // More than one call of some systems gives.
        assert_ne!(random::<1000>().unwrap()[700..], [0; 300]);
    }
}
