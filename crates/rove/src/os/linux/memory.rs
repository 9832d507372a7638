//! What malloc keeps, and pages that stay in memory.
#![allow(unsafe_code)]

use libc::c_void;

pub(crate) use crate::os::unix::memory::map;

/// Octets that the kernel needs to interrupt a thread: all of its registers, which are as many as the processor has.
pub(crate) fn signal_frame_bytes() -> usize {
    // SAFETY: it reads what the kernel told the process at its start; 0 where it told nothing.
    let needed = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) };
    libc::MINSIGSTKSZ.max(needed.try_into().unwrap_or(0))
}

/// Makes malloc keep up to 64 MiB of freed memory in each of its arenas (mallopt(3)), for a short-lived
/// process; a copy of 1 GB takes 5 MB more. Bulk frees blocks all the time, and getting each from the system
/// again, zeroed, takes an eighth of a copy's time. C libraries other than glibc decide for themselves.
pub(crate) fn keep_freed_memory() {
    // SAFETY: both numbers are settings of malloc, which it may be given at any time.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 4 << 20);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 64 << 20);
    }
}

/// Makes malloc give the pages of freed memory back to the system (malloc_trim(3)), in the middle of its heap too.
/// For a process that goes to rest; a session of one process is asleep most of its life.
pub(crate) fn give_back_freed_memory() {
    // SAFETY: it touches freed memory only.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Keeps pages, which are the caller's, out of core files.
pub(crate) fn keep_from_cores(start: *mut c_void, length: usize) {
    // SAFETY: how the kernel treats pages in a core file changes nothing in them.
    unsafe { libc::madvise(start, length, libc::MADV_DONTDUMP) };
}

/// Keeps pages, which are the caller's, off the swap device from when they are first used. Returns whether it could.
pub(crate) fn lock(start: *mut c_void, length: usize) -> bool {
    // SAFETY: locking changes nothing in the pages. Linux before 4.4 knows the second call alone, which makes the pages
    // be there at once.
    unsafe {
        libc::syscall(libc::SYS_mlock2, start, length, libc::MLOCK_ONFAULT) == 0
            || libc::mlock(start, length) == 0
    }
}
