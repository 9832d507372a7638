//! New memory.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ptr;

/// New memory, all zero, which nothing else knows of; `None` if there is none.
pub(crate) fn map(length: usize) -> Option<*mut c_void> {
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANON);
    // SAFETY: a new mapping, which nothing else knows of.
    let start = unsafe { libc::mmap(ptr::null_mut(), length, access, kind, -1, 0) };
    (start != libc::MAP_FAILED).then_some(start)
}
