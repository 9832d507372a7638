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

use std::fs::File;
use std::io::{self, Read};

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

/// A hash of this machine's identity (machine-id(5)), by which a client sees that a name leads elsewhere now.
pub(crate) fn machine() -> String {
    let mut id = String::new();
    let file = File::open("/etc/machine-id").or_else(|_| File::open("/var/lib/dbus/machine-id"));
    let _ = file.and_then(|file| file.take(64).read_to_string(&mut id));
    let name = rustix::system::uname();
    // Containers may have none.
    let known =
        if id.trim().is_empty() { name.nodename().to_bytes() } else { id.trim().as_bytes() };
    let text = [&b"rove machine "[..], known].concat();
    blake3::hash(&text).to_hex()[..16].to_owned()
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
