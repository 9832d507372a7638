//! Runs handlers of signals, but for those of faults, on a stack of their own, in locked memory, and on the program's first
//! thread alone.
//!
//! The kernel saves all registers of what a signal interrupts, which may be anywhere. The round keys of a cipher stay in them
//! long after it has worked.
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
const HANDLER_BYTES: usize = 8 << 10;

/// A multiple of the size of a page, on every system.
const GUARD_BYTES: usize = 64 << 10;

/// Signals of faults. A thread that has one cannot go on without its handler.
const FAULTS: [libc::c_int; 5] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT];

/// The first thread has the stack.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// This thread's stack for handlers: where it begins, and its octets.
    static STACK: Cell<(*mut c_void, usize)> = const { Cell::new((ptr::null_mut(), 0)) };
}

/// Makes the stack, for the program's first thread. To be called once, before other memory is locked: of little that may be
/// locked this gets its part. Best effort: without memory for it, handlers run where they would have.
pub(super) fn prepare() {
    // A crash whose report fails is a second signal on top of the first.
    let length = 2 * memory::signal_frame_bytes() + HANDLER_BYTES;
    let length = length.next_multiple_of(4096);
    let Some(guard) = memory::map(GUARD_BYTES + length) else { return };
    let start = guard.wrapping_byte_add(GUARD_BYTES);
    memory::keep_from_cores(start, length);
    memory::lock(start, length);
    let stack = libc::stack_t { ss_sp: start.cast(), ss_flags: 0, ss_size: length };
    // SAFETY: the memory is nobody else's, and never unmapped. A handler that needs more than the stack has ends the process at
    // the guard.
    let is_taken = unsafe {
        libc::mprotect(guard, GUARD_BYTES, libc::PROT_NONE) == 0
            && libc::sigaltstack(&raw const stack, ptr::null_mut()) == 0
    };
    if is_taken {
        STACK.set((start, length));
        IS_TAKEN.store(true, Ordering::Relaxed);
    }
}

/// Makes the handler of this signal, which tokio has set, run on the stack for handlers.
pub(super) fn keep(signal: Signal) {
    if !IS_TAKEN.load(Ordering::Relaxed) {
        return;
    }
    // SAFETY: all-zero is a valid `sigaction`. The calls fill it, and give the same handler back with another stack. Tokio sets
    // a handler once, and whoever else is here writes the same.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        let is_known = libc::sigaction(signal.as_raw(), ptr::null(), &raw mut action) == 0;
        if is_known && ![libc::SIG_DFL, libc::SIG_IGN].contains(&action.sa_sigaction) {
            action.sa_flags |= libc::SA_ONSTACK;
            // One at a time: there is room for one.
            action.sa_mask = all_but_faults();
            libc::sigaction(signal.as_raw(), &raw const action, ptr::null_mut());
        }
    }
}

/// Keeps signals from this thread, which has no such stack: the first thread gets them.
pub(crate) fn leave_to_first() {
    let mut kept = all_but_faults();
    // A read from the terminal in the background stops the program, but where the signal is kept from a thread it fails.
    for stops in [libc::SIGTTIN, libc::SIGTTOU] {
        // SAFETY: the set is whole.
        unsafe { libc::sigdelset(&raw mut kept, stops) };
    }
    // SAFETY: it reads a set that is whole.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const kept, ptr::null_mut()) };
}

/// Gives a process all signals before it becomes another program, which would inherit the mask of the thread that starts it.
/// Async-signal-safe.
pub(super) fn unmask() {
    // SAFETY: all-zero is a valid set, which the first call empties and the second reads.
    unsafe {
        let mut none: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
}

fn all_but_faults() -> libc::sigset_t {
    // SAFETY: the first call fills the set, and the others take members out of it.
    unsafe {
        let mut signals: libc::sigset_t = mem::zeroed();
        libc::sigfillset(&raw mut signals);
        for fault in FAULTS {
            libc::sigdelset(&raw mut signals, fault);
        }
        signals
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
