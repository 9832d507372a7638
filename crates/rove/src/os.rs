//! What the system offers, each call behind a safe function. What every Unix has is in `unix`, what only Linux
//! has in `linux`, and what macOS and FreeBSD have instead in `bsd`; those three alone use `unsafe`, and no file
//! outside of this module asks which system it is built for. They know nothing of sessions, keys or protocols.
//!
//! `linux` and `bsd` have the same names, and [`system`] is the one of them that this program is built with.

#[cfg(any(target_os = "macos", target_os = "freebsd"))]
mod bsd;
pub(crate) mod clock;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;
pub(crate) mod lookup;
pub(crate) mod names;
mod system;
mod unix;

use std::io;

use zeroize::Zeroizing;

pub use system::sandbox;
pub(crate) use system::{files, udp};
pub(crate) use unix::watch::watch;
pub(crate) use unix::{
    account, environment, handover, interfaces, local_socket, locked, network_changes, process,
    pty, signals, socket_file, stat, terminfo, tty,
};

/// An error in the system's words, without its number.
pub(crate) fn words(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// Which machine this is, in a word that says nothing else of it: names may stand for several.
pub(crate) fn machine() -> String {
    let id = std::fs::read("/etc/machine-id").unwrap_or_default();
    let hash = blake3::derive_key("rove 2026 which machine a session is on", id.trim_ascii());
    hash[..8].iter().map(|octet| format!("{octet:02x}")).collect()
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
