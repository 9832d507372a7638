//! Which machine this is.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;

use crate::os::system;

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

/// Programs do not fetch a file that a URI puts on another machine.
pub(crate) const FILES_ARE_FETCHED: bool = false;

/// The name of this machine.
pub(crate) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Its file of hosts.
pub(crate) fn hosts_file() -> &'static OsStr {
    OsStr::from_bytes(b"/etc/hosts")
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
}
