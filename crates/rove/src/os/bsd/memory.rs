//! Pages that stay in memory.
#![allow(unsafe_code)]

use libc::c_void;

pub(crate) use crate::os::unix::memory::map;

/// Octets that the kernel needs to interrupt a thread.
pub(crate) fn signal_frame_bytes() -> usize {
    libc::MINSIGSTKSZ
}

/// The C library decides for itself.
pub(crate) fn keep_freed_memory() {}

/// The C library decides for itself.
pub(crate) fn give_back_freed_memory() {}

/// Keeps pages, which are the caller's, out of core files, where the system can.
pub(crate) fn keep_from_cores(start: *mut c_void, length: usize) {
    // SAFETY: how the kernel treats pages in a core file changes nothing in them.
    #[cfg(target_os = "freebsd")]
    unsafe {
        libc::madvise(start, length, libc::MADV_NOCORE);
    }
    #[cfg(not(target_os = "freebsd"))]
    let _ = (start, length);
}

/// Keeps pages, which are the caller's, off the swap device. Returns whether it could.
pub(crate) fn lock(start: *mut c_void, length: usize) -> bool {
    // SAFETY: locking changes nothing in the pages.
    unsafe { libc::mlock(start, length) == 0 }
}
