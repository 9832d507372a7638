//! Memory for secrets: kept off the swap device and out of core files, and wiped when freed.
//!
//! All allocations while [`within`] runs lie in one locked area, also those of libraries: rustls and ring
//! neither lock their keys nor wipe all of them. A block that begins in the area stays there when it grows.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::c_void;
use std::hint::black_box;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rove_streams::SecretMemory;

use crate::os::system::memory;

/// Octets of the area. A server with streams has used 28 KiB after two connections; of the 64 KiB that
/// every Linux lets a user lock, handlers of signals have 32 KiB at most, and the first of the area the rest. Unused pages cost nothing.
const AREA_BYTES: usize = 256 << 10;

/// Larger blocks are buffers and not keys, and lie in ordinary memory.
const BLOCK_BYTES_MAX: usize = 16 << 10;

/// A block's place and size are multiples of this.
const GRAIN_BYTES: usize = 64;

const GRAINS: usize = AREA_BYTES / GRAIN_BYTES;

/// Alignment of the area: a page, wherever pages are 4 KiB.
const ALIGN_MAX: usize = 4096;

/// Octets of stack to wipe: more than a TLS handshake takes, and more than lies between a driver's turn and
/// the cipher.
const STACK_BYTES: usize = 32 << 10;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// The start of the area: 0 before it is made, [`REFUSED`] if there is no memory for one.
static START: AtomicUsize = AtomicUsize::new(0);
const REFUSED: usize = usize::MAX;

/// Which of its grains are in use.
static AREA: Mutex<Area> = Mutex::new(Area([0; GRAINS / 64]));
struct Area([u64; GRAINS / 64]);

thread_local! {
    #[allow(clippy::missing_const_for_thread_local, reason = "clippy does not see it on Android")]
    static IS_WITHIN: Cell<bool> = const { Cell::new(false) };
}

/// Does work with secrets: its allocations stay in locked memory, and it leaves nothing on the stack. Its
/// result is moved, so secrets in it must lie in boxes.
pub(crate) fn within<T>(work: impl FnOnce() -> T) -> T {
    let (mut work, mut result) = (Some(work), None);
    run(&mut || result = work.take().map(|work| work()));
    result.expect("the work is done once")
}

/// The same for streams.
pub(crate) const MEMORY: SecretMemory = SecretMemory::new(run);

/// Does work within, and wipes the stack after it.
#[inline(never)]
fn run(work: &mut dyn FnMut()) {
    /// Runs in every case, also a panic.
    struct Leave {
        was_within: bool,
    }
    impl Drop for Leave {
        fn drop(&mut self) {
            IS_WITHIN.set(self.was_within);
            wipe_stack();
        }
    }
    let _leave = Leave { was_within: IS_WITHIN.replace(true) };
    work();
}

/// Wipes the stack from the caller's own frame downward. Ciphers leave copies of round keys there, as do
/// moves of values. Call it after datagrams were sealed and opened.
#[inline(never)]
pub(crate) fn wipe_stack() {
    black_box(&mut [0_u8; STACK_BYTES]);
}

/// Locks the area again: after a fork the child has its contents but not the lock.
pub(super) fn lock_again() {
    let start = START.load(Ordering::Relaxed);
    if start != 0 && start != REFUSED {
        lock(ptr::with_exposed_provenance_mut(start));
    }
}

fn area() -> MutexGuard<'static, Area> {
    AREA.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a block lies in the area.
fn is_inside(block: *mut u8) -> bool {
    let start = START.load(Ordering::Relaxed);
    start != 0 && block.addr().wrapping_sub(start) < AREA_BYTES
}

/// The grains that a block takes.
fn grains(layout: Layout) -> usize {
    layout.size().div_ceil(GRAIN_BYTES).max(1)
}

impl Area {
    /// Zeroed memory for such a block. `None` if there is no room, or it belongs elsewhere.
    fn take(&mut self, layout: Layout) -> Option<*mut u8> {
        if layout.size() > BLOCK_BYTES_MAX || layout.align() > ALIGN_MAX {
            return None;
        }
        let start = start()?;
        let (count, step) = (grains(layout), (layout.align() / GRAIN_BYTES).max(1));
        let mut first = 0;
        while first + count <= GRAINS {
            let block = first..first + count;
            match block.clone().rev().find(|grain| self.0[grain / 64] & bit(*grain) != 0) {
                Some(used) => first = (used + 1).next_multiple_of(step),
                None => {
                    block.for_each(|grain| self.0[grain / 64] |= bit(grain));
                    return Some(start.wrapping_add(first * GRAIN_BYTES));
                }
            }
        }
        None
    }

    /// Takes back a block, which is all zero again.
    fn give_back(&mut self, block: *mut u8, layout: Layout) {
        let first = (block.addr() - START.load(Ordering::Relaxed)) / GRAIN_BYTES;
        (first..first + grains(layout)).for_each(|grain| self.0[grain / 64] &= !bit(grain));
    }
}

fn bit(grain: usize) -> u64 {
    1 << (grain % 64)
}

/// The start of the area. The holder of the lock makes it on first use.
fn start() -> Option<*mut u8> {
    if START.load(Ordering::Relaxed) == 0 {
        START.store(make().map_or(REFUSED, |start| start.expose_provenance()), Ordering::Relaxed);
    }
    match START.load(Ordering::Relaxed) {
        REFUSED => None,
        start => Some(ptr::with_exposed_provenance_mut(start)),
    }
}

/// Maps the area and locks it.
fn make() -> Option<*mut u8> {
    let start = memory::map(AREA_BYTES)?;
    memory::keep_from_cores(start, AREA_BYTES);
    lock(start);
    Some(start.cast())
}

/// Locks as much of the area as the limit allows, from its start, where the oldest blocks lie. Pages that
/// are never used take no memory. Best effort: the limit on locked memory may be low.
fn lock(start: *mut c_void) {
    let lengths = (ALIGN_MAX..=AREA_BYTES).rev().step_by(ALIGN_MAX);
    lengths.into_iter().find(|length| memory::lock(start, *length));
}

/// The system's allocator, except for the area.
struct Allocator;

// SAFETY: blocks of the area are as large and as aligned as was asked, no two overlap, and each goes back to where it is
// from. All others are the system allocator's.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Plain branches: tests run this without optimisation, at each allocation.
        if IS_WITHIN.get()
            && let Some(block) = area().take(layout)
        {
            return block;
        }
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if IS_WITHIN.get()
            && let Some(block) = area().take(layout)
        {
            return block;
        }
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if !is_inside(block) {
            // SAFETY: the caller's promise is passed on.
            return unsafe { System.dealloc(block, layout) };
        }
        // SAFETY: the block is the caller's, who does not use it again.
        unsafe { block.write_bytes(0, layout.size()) };
        area().give_back(black_box(block), layout);
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let was_inside = is_inside(block);
        if !was_inside && !IS_WITHIN.get() {
            // SAFETY: the caller's promise is passed on.
            return unsafe { System.realloc(block, layout, size) };
        }
        // SAFETY: the caller promises a size that makes a layout.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        let inside = area().take(wanted);
        // SAFETY: the size is not 0, by the caller's promise.
        let moved = inside.unwrap_or_else(|| unsafe { System.alloc(wanted) });
        if !moved.is_null() {
            // SAFETY: both blocks have these octets, and are not the same.
            unsafe { moved.copy_from_nonoverlapping(block, size.min(layout.size())) };
            // SAFETY: the block is the caller's, who has the other from here on.
            unsafe { self.dealloc(block, layout) };
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of these tests at a time, since one fills the area. Other tests allocate there too, so a block that was given
    /// back may be theirs.
    static ALONE: Mutex<()> = Mutex::new(());

    #[test]
    fn what_begins_in_the_area_stays_there_and_is_wiped() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        const SECRET: [u8; 100] = [0xa5; 100];
        let mut secret = within(|| SECRET.to_vec());
        assert!(is_inside(secret.as_mut_ptr()));
        let place = secret.as_ptr();
        secret.extend([0; 1000]);
        assert!(is_inside(secret.as_mut_ptr()), "it has grown outside of `within`");
        let moved = secret.as_ptr();
        assert_ne!(place, moved);
        // SAFETY: the area is never unmapped.
        let octets = |at: *const u8| unsafe { std::slice::from_raw_parts(at, 100) };
        assert_ne!(octets(place), SECRET, "where it was before");
        assert_eq!(octets(moved), SECRET);
        drop(secret);
        assert_ne!(octets(moved), SECRET);
    }

    #[test]
    fn what_is_no_secret_lies_elsewhere() {
        assert!(!is_inside(Vec::<u8>::with_capacity(100).as_mut_ptr()));
        let mut large = within(|| Vec::<u8>::with_capacity(BLOCK_BYTES_MAX + 1));
        assert!(!is_inside(large.as_mut_ptr()));
    }

    #[test]
    fn a_full_area_is_no_reason_to_fail() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let count = 2 * AREA_BYTES / BLOCK_BYTES_MAX;
        let fill =
            || within(|| (0..count).map(|_| vec![1_u8; BLOCK_BYTES_MAX]).collect::<Vec<_>>());
        // Twice: what is given back can be used again.
        for _ in 0..2 {
            let blocks = fill();
            let starts = blocks.iter().map(|block| block.as_ptr().cast_mut());
            let (inside, outside): (Vec<_>, Vec<_>) = starts.partition(|start| is_inside(*start));
            assert!(!inside.is_empty() && outside.len() >= count / 2);
            let mut starts: Vec<_> = inside.iter().map(|start| start.addr()).collect();
            starts.sort_unstable();
            assert!(starts.windows(2).all(|pair| pair[1] - pair[0] >= BLOCK_BYTES_MAX));
        }
    }

    #[test]
    fn blocks_are_aligned() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        #[repr(align(1024))]
        struct Aligned([u8; 100]);
        let blocks: Vec<_> = within(|| {
            (0_u8..8).map(|number| (Box::new(number), Box::new(Aligned([number; 100])))).collect()
        });
        for (number, aligned) in &blocks {
            let start = std::ptr::from_ref(&**aligned);
            assert!(is_inside(start.cast_mut().cast()) && start.addr() % 1024 == 0);
            assert_eq!(aligned.0, [**number; 100]);
        }
    }
}
