//! Memory that stays out of the page file.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ptr;

use windows_sys::Win32::System::Memory::{
    MEM_COMMIT, MEM_RESERVE, PAGE_READWRITE, VirtualAlloc, VirtualLock,
};

/// New memory, all zero, which nothing else knows of; `None` if there is none.
pub(crate) fn map(length: usize) -> Option<*mut c_void> {
    // SAFETY: a new mapping.
    let start =
        unsafe { VirtualAlloc(ptr::null(), length, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE) };
    (!start.is_null()).then_some(start)
}

/// Nothing: `harden` keeps all memory out of reports of a crash.
pub(crate) fn keep_from_cores(_: *mut c_void, _: usize) {}

/// Keeps pages, which are the caller's, out of the page file. Returns whether it could.
pub(crate) fn lock(start: *mut c_void, length: usize) -> bool {
    // SAFETY: locking changes nothing in the pages.
    unsafe { VirtualLock(start, length) != 0 }
}
