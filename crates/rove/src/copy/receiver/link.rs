//! Makes symbolic links, and checks which of them stay in the copied tree.

use std::io;

use crate::copy::disk::Disk;
use crate::copy::name::Name;
use crate::os::fs::{self, BorrowedFd};

/// Makes a symbolic link, in place of a file or another link.
pub(super) fn make(disk: &Disk, at: BorrowedFd<'_>, name: &Name, text: &[u8]) -> io::Result<()> {
    match disk.make_link(at, name.as_bytes(), text) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made,
    }
    match fs::readlinkat(at, name.as_bytes(), Vec::new()) {
        Ok(there) if there.to_bytes() == text => return Ok(()),
        _ => {}
    }
    let part = name.part();
    disk.discard(at, &part);
    disk.make_link(at, &part, text)?;
    disk.rename(at, &part, name.as_bytes()).inspect_err(|_| disk.discard(at, &part))
}

/// Whether a link of this text, this many directories below the top of its tree, stays in the tree as long
/// as all other links there do: it climbs only at its beginning, and not above the top. One that climbs
/// later may climb from another link's target (rsync's `--safe-links` has the same rule).
pub(super) fn stays_inside(text: &[u8], depth: usize) -> bool {
    let mut components =
        text.split(|&octet| octet == b'/').filter(|part| *part != b"." && !part.is_empty());
    let climbs = components.by_ref().take_while(|part| *part == b"..").count();
    !text.starts_with(b"/") && climbs <= depth && components.all(|part| part != b"..")
}
