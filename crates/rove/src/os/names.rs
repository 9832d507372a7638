//! The names of this machine, which no link or directory from a host may use. `rove-term` decides which URIs
//! these are.

use std::fs::File;
use std::io::Read;
use std::sync::OnceLock;

use rove_term::LocalNames;

use crate::os::family::machine::{self, host_name, hosts_file};

/// The most octets of it to read: blocklists of advertisers' hosts are longer, and are cut off there.
const HOSTS_BYTES_MAX: u64 = 64 << 10;

/// Read once, since a client that is confined opens no files. `None` where no file of another machine's may be named.
pub(crate) fn names() -> Option<&'static LocalNames> {
    static NAMES: OnceLock<LocalNames> = OnceLock::new();
    if machine::FILES_ARE_FETCHED {
        return None;
    }
    Some(NAMES.get_or_init(|| {
        let mut hosts = Vec::new();
        if let Ok(file) = File::open(hosts_file()) {
            // As far as it can be read.
            let _ = file.take(HOSTS_BYTES_MAX).read_to_end(&mut hosts);
        }
        LocalNames::new(&host_name(), &String::from_utf8_lossy(&hosts))
    }))
}
