//! The system's allocator, which counts what is alive.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

pub struct Counting;

static ALIVE: AtomicUsize = AtomicUsize::new(0);

/// Bytes of all blocks, as glibc's malloc lays them out, whichever allocator the system has.
pub fn alive() -> usize {
    ALIVE.load(Relaxed)
}

/// 8 bytes more, in steps of 16, at least 32.
fn in_glibc(bytes: usize) -> usize {
    (bytes + 8).next_multiple_of(16).max(32)
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALIVE.fetch_add(in_glibc(layout.size()), Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        ALIVE.fetch_sub(in_glibc(layout.size()), Relaxed);
        unsafe { System.dealloc(block, layout) }
    }
}
