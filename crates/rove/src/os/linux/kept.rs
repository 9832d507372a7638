//! An allocator for C libraries that give each freed block of some size back to the system at once, as musl does. Here
//! such blocks are kept for the next one of their size, in a process that asks for that ([`keep`]).
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Blocks of at most 2^11 octets are left to the system's allocator: it keeps them itself. Those of more than 2^22 are
/// rare.
const LEAST_BITS: u32 = 11;
const MOST_BITS: u32 = 22;

/// Sizes between two powers of two: at most a fifth of a block is unused.
const STEPS: usize = 4;

/// Alignment of all blocks from malloc.
const ALIGN_MAX: usize = 2 * size_of::<usize>();

/// Octets that are kept: as many as glibc keeps by our settings. The system gets back any block beyond that.
const KEPT_BYTES_MAX: usize = 64 << 20;

const SIZES: usize = STEPS * (MOST_BITS - LEAST_BITS) as usize;

static KEEPS: AtomicBool = AtomicBool::new(false);
static KEPT_BYTES: AtomicUsize = AtomicUsize::new(0);
static KEPT: [Mutex<Chain>; SIZES] = [const { Mutex::new(Chain(ptr::null_mut())) }; SIZES];

/// Freed blocks of one size: the first octets of each say where the next one is.
struct Chain(*mut u8);

// SAFETY: the blocks are nobody else's, so any thread may have them.
unsafe impl Send for Chain {}

/// Keeps what is freed from now on.
pub(crate) fn keep() {
    KEEPS.store(true, Ordering::Relaxed);
}

/// Gives all that is kept back to the system.
pub(crate) fn give_back() {
    for (number, chain) in KEPT.iter().enumerate() {
        let mut chain = chain.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(block) = chain.pop(bytes_of(number)) {
            // SAFETY: the block is of this size, and nobody's any more.
            unsafe { System.dealloc(block, layout_of(number)) };
        }
    }
}

impl Chain {
    fn pop(&mut self, bytes: usize) -> Option<*mut u8> {
        let block = self.0;
        if block.is_null() {
            return None;
        }
        // SAFETY: `push` has written this, and the block is large enough and aligned for it.
        self.0 = unsafe { block.cast::<*mut u8>().read() };
        KEPT_BYTES.fetch_sub(bytes, Ordering::Relaxed);
        Some(block)
    }

    /// Takes a block of this size, unless there is too much. Returns whether it has.
    fn push(&mut self, block: *mut u8, bytes: usize) -> bool {
        if KEPT_BYTES.fetch_add(bytes, Ordering::Relaxed) + bytes > KEPT_BYTES_MAX {
            KEPT_BYTES.fetch_sub(bytes, Ordering::Relaxed);
            return false;
        }
        // SAFETY: the block is nobody else's, large enough and aligned.
        unsafe { block.cast::<*mut u8>().write(self.0) };
        self.0 = block;
        true
    }
}

/// Which of the sizes a block gets; `None` if it is left to the system's allocator.
fn number(layout: Layout) -> Option<usize> {
    let bytes = layout.size();
    if bytes <= 1 << LEAST_BITS || bytes > 1 << MOST_BITS || layout.align() > ALIGN_MAX {
        return None;
    }
    let bits = (bytes - 1).ilog2();
    let step = (bytes - 1 - (1 << bits)) / ((1 << bits) / STEPS);
    Some((bits - LEAST_BITS) as usize * STEPS + step)
}

/// Octets of a block of one of the sizes.
fn bytes_of(number: usize) -> usize {
    let least = 1 << (LEAST_BITS as usize + number / STEPS);
    least + (number % STEPS + 1) * (least / STEPS)
}

fn layout_of(number: usize) -> Layout {
    Layout::from_size_align(bytes_of(number), ALIGN_MAX).expect("4 MiB are no size that overflows")
}

/// A kept block of this size.
fn take(number: usize) -> Option<*mut u8> {
    if !KEEPS.load(Ordering::Relaxed) {
        return None;
    }
    let mut chain = KEPT[number].lock().unwrap_or_else(PoisonError::into_inner);
    chain.pop(bytes_of(number))
}

/// The system's allocator, with what is kept in front of it.
pub(crate) struct Kept;

// SAFETY: a block is as large as was asked or larger, and aligned. It comes from the system's allocator and goes back
// there, with one layout. While it is kept, it is in one chain and nobody's.
unsafe impl GlobalAlloc for Kept {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match number(layout) {
            // SAFETY: the size is not 0.
            Some(number) => {
                take(number).unwrap_or_else(|| unsafe { System.alloc(layout_of(number)) })
            }
            // SAFETY: the caller's promise is passed on.
            None => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let Some(number) = number(layout) else {
            // SAFETY: the caller's promise is passed on.
            return unsafe { System.alloc_zeroed(layout) };
        };
        match take(number) {
            Some(block) => {
                // SAFETY: the block has these octets.
                unsafe { block.write_bytes(0, layout.size()) };
                block
            }
            // SAFETY: the size is not 0.
            None => unsafe { System.alloc_zeroed(layout_of(number)) },
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let Some(number) = number(layout) else {
            // SAFETY: the caller's promise is passed on.
            return unsafe { System.dealloc(block, layout) };
        };
        let is_kept = KEEPS.load(Ordering::Relaxed) && {
            let mut chain = KEPT[number].lock().unwrap_or_else(PoisonError::into_inner);
            chain.push(block, bytes_of(number))
        };
        if !is_kept {
            // SAFETY: it was made with this layout.
            unsafe { System.dealloc(block, layout_of(number)) };
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises a size that makes a layout.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        let (was, becomes) = (number(layout), number(wanted));
        if was.is_some() && was == becomes {
            return block;
        }
        if layout.align() > ALIGN_MAX {
            // SAFETY: the caller's promise is passed on.
            return unsafe { System.realloc(block, layout, size) };
        }
        let (was, becomes) = (was.map_or(layout, layout_of), becomes.map_or(wanted, layout_of));
        // SAFETY: it was made with the first layout, up to the alignment: malloc's blocks have the largest in any case.
        unsafe { System.realloc(block, was, becomes.size()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: usize) -> Layout {
        Layout::from_size_align(bytes, 8).unwrap()
    }

    #[test]
    fn a_block_is_as_large_as_was_asked_and_a_quarter_larger_at_most() {
        for bytes in [1, 2048, (4 << 20) + 1] {
            assert_eq!(number(of(bytes)), None, "{bytes}");
        }
        assert_eq!(number(Layout::from_size_align(65536, 4096).unwrap()), None);
        for bytes in (2049..100_000).chain([262_144, 262_145, 1 << 20, (4 << 20) - 1, 4 << 20]) {
            let number = number(of(bytes)).unwrap();
            assert!((bytes..=bytes + bytes / 4).contains(&bytes_of(number)), "{bytes}");
            assert!(number == 0 || bytes_of(number - 1) < bytes, "{bytes}");
        }
        assert_eq!(number(of(4 << 20)), Some(SIZES - 1));
    }

    #[test]
    fn what_is_freed_is_taken_again_up_to_a_limit() {
        const BYTES: usize = 1 << 20;
        // SAFETY: each block is freed once, with its layout, and not used after that.
        unsafe {
            keep();
            let first = Kept.alloc(of(BYTES));
            first.write_bytes(7, BYTES);
            Kept.dealloc(first, of(BYTES - 100));
            assert_eq!(KEPT_BYTES.load(Ordering::Relaxed), BYTES);
            let again = Kept.alloc_zeroed(of(BYTES - 1));
            assert_eq!(again, first);
            assert!((0..BYTES - 1).all(|at| again.add(at).read() == 0));
            assert_eq!(Kept.realloc(again, of(BYTES - 1), BYTES), again);
            again.write_bytes(8, BYTES);
            let moved = Kept.realloc(again, of(BYTES), 3 * BYTES);
            assert!((0..BYTES).all(|at| moved.add(at).read() == 8));
            let small = Kept.realloc(moved, of(3 * BYTES), 100);
            assert!((0..100).all(|at| small.add(at).read() == 8));
            let large = Kept.realloc(small, of(100), BYTES);
            assert!((0..100).all(|at| large.add(at).read() == 8));
            Kept.dealloc(large, of(BYTES));

            let blocks: Vec<_> = (0..100).map(|_| Kept.alloc(of(BYTES))).collect();
            assert_eq!(KEPT_BYTES.load(Ordering::Relaxed), 0);
            blocks.into_iter().for_each(|block| Kept.dealloc(block, of(BYTES)));
            assert_eq!(KEPT_BYTES.load(Ordering::Relaxed), KEPT_BYTES_MAX);
            give_back();
            assert_eq!(KEPT_BYTES.load(Ordering::Relaxed), 0);
            assert_eq!(take(number(of(BYTES)).unwrap()), None);
        }
    }
}
