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

/// A hash of this machine's id (machine-id(5)) and name, by which a client sees that a name leads elsewhere now. Clones
/// and containers of one image share the id.
pub(crate) fn machine() -> String {
    hash_of_machine(None)
}

/// The same for the network in which this process has its ports: another container may have the rest in common. Where it
/// differs, nothing can be learnt from a session that is not found.
pub(crate) fn machine_and_network() -> String {
    hash_of_machine(system::process::network_namespace())
}

fn hash_of_machine(network: Option<u64>) -> String {
    let mut id = String::new();
    let file = File::open("/etc/machine-id").or_else(|_| File::open("/var/lib/dbus/machine-id"));
    let _ = file.and_then(|file| file.take(64).read_to_string(&mut id));
    let system = rustix::system::uname();
    hash_of(id.trim(), system.nodename().to_bytes(), network)
}

fn hash_of(id: &str, name: &[u8], network: Option<u64>) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"rove machine ").update(id.as_bytes()).update(b"\0").update(name);
    if let Some(network) = network {
        hasher.update(b"\0").update(&network.to_be_bytes());
    }
    hasher.finalize().to_hex()[..16].to_owned()
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
    fn machines_of_one_image_differ() {
        let all = [
            hash_of("1d", b"node", None),
            hash_of("1d", b"node2", None),
            hash_of("2d", b"node", None),
            hash_of("", b"1dnode", None),
            hash_of("1d", b"node", Some(1)),
            hash_of("1d", b"node", Some(2)),
        ];
        for (at, hash) in all.iter().enumerate() {
            assert!(hash.len() == 16 && hash.bytes().all(|octet| octet.is_ascii_hexdigit()));
            assert!(!all[..at].contains(hash), "{at}");
        }
        assert_eq!(machine_and_network(), machine_and_network());
    }

    #[test]
    fn random_bytes_differ() {
        assert_ne!(*random::<16>().unwrap(), *random::<16>().unwrap());
        // More than one call of some systems gives.
        assert_ne!(random::<1000>().unwrap()[700..], [0; 300]);
    }
}
