//! Where the kernel puts the registers of what a signal interrupts. The round keys of a cipher may still be in them, long after
//! it has worked, and the code that is interrupted may be anywhere. So handlers run on a stack of their own, in locked memory.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::c_void;
use std::hint::black_box;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::Signal;

use crate::os::system::memory;

/// Octets for a handler beside those that the kernel needs. Ours note the signal and write an octet to a pipe.
const HANDLER_BYTES: usize = 16 << 10;

/// A thread has the stack. It is the first that handles signals, which is the one that knows the session's keys.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// This thread's stack for handlers: where it begins, and its octets.
    static STACK: Cell<(*mut c_void, usize)> = const { Cell::new((ptr::null_mut(), 0)) };
}

/// Makes the handler of this signal, if it has one, run on the stack for handlers, one at a time. Best effort: without memory for
/// one it runs where it would have.
pub(super) fn keep(signal: Signal) {
    if !IS_TAKEN.swap(true, Ordering::Relaxed) {
        take_stack();
    }
    // SAFETY: all-zero is a valid `sigaction`. The calls fill it, and give the same handler back with another place to run at:
    // the stack, or where there is none, the thread's own. Nothing else sets handlers while the program's one thread is here.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        let is_known = libc::sigaction(signal.as_raw(), ptr::null(), &raw mut action) == 0;
        if is_known && ![libc::SIG_DFL, libc::SIG_IGN].contains(&action.sa_sigaction) {
            action.sa_flags |= libc::SA_ONSTACK;
            // A handler that another interrupts would take the room of both.
            libc::sigfillset(&raw mut action.sa_mask);
            libc::sigaction(signal.as_raw(), &raw const action, ptr::null_mut());
        }
    }
}

/// Makes the stack, for this thread.
fn take_stack() {
    let length = (memory::signal_frame_bytes() + HANDLER_BYTES).next_multiple_of(4096);
    let Some(start) = memory::map(length) else { return };
    memory::keep_from_cores(start, length);
    memory::lock(start, length);
    let stack = libc::stack_t { ss_sp: start.cast(), ss_flags: 0, ss_size: length };
    // SAFETY: the memory is nobody else's, and never unmapped.
    if unsafe { libc::sigaltstack(&raw const stack, ptr::null_mut()) } == 0 {
        STACK.set((start, length));
    }
}

/// Locks it again: after a fork the child has its contents but not the lock.
pub(super) fn lock_again() {
    let (start, length) = STACK.get();
    if length != 0 {
        memory::lock(start, length);
    }
}

/// Wipes what this thread's handlers have left. Not for a handler.
pub(crate) fn wipe() {
    let (start, length) = STACK.get();
    if length != 0 {
        // SAFETY: the memory is this thread's, and it is not in a handler. One that interrupts this is over before it goes on.
        unsafe { start.write_bytes(0, length) };
        black_box(start);
    }
}
