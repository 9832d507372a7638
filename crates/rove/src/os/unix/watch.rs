//! Open files that the runtime watches.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::AsRawFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Makes the runtime watch an open file. `T` owns the file, or borrows one that outlives the program's
/// runtime, and always names the same one: all of this crate's do.
pub(crate) fn watch<T: AsRawFd>(file: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    // SAFETY: as said above, the file stays open and the same for as long as it is watched; nobody
    // swaps the value behind `get_mut`.
    unsafe { AsyncFd::register_with_interest(file, interest) }.map_err(io::Error::from)
}
