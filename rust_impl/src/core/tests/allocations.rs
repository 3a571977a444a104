//! Memory that runs out at one chosen allocation: what a call makes of it is tested for each of them.
//!
//! Obligation of `unsafe`:
//!
//! O1. Every request goes on to the allocator of the system as it came, or is answered by null.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::null_mut;

const NONE: u64 = u64::MAX;

thread_local! {
    /// Allocations of this thread until the one that is refused.
    static SPARED: Cell<u64> = const { Cell::new(NONE) };
}

/// Whether the next allocation is to be had.
fn grants() -> bool {
    SPARED.with(|left| {
        let spared = left.get();
        left.set(if spared == NONE { NONE } else { spared.wrapping_sub(1) });
        spared != 0
    })
}

/// Runs `call`; of its allocations the one after the first `spared` is refused. Whether it came to that is said too.
pub fn refusing<T>(spared: u64, call: impl FnOnce() -> T) -> (T, bool) {
    SPARED.set(spared);
    let result = call();
    // One that was refused has made it wrap around.
    (result, SPARED.replace(NONE) == NONE)
}

struct Refusing;

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

// SAFETY: O1.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: O1.
        if grants() { unsafe { System.alloc(layout) } } else { null_mut() }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: O1.
        if grants() { unsafe { System.alloc_zeroed(layout) } } else { null_mut() }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: O1.
        if grants() { unsafe { System.realloc(block, layout, size) } } else { null_mut() }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: O1.
        unsafe { System.dealloc(block, layout) }
    }
}

#[test]
fn refuses_the_one_that_is_chosen() {
    let reserve = || {
        let mut made = [Vec::<u8>::new(), Vec::new(), Vec::new()];
        made.each_mut().map(|vector| vector.try_reserve_exact(10).is_ok())
    };
    assert_eq!(refusing(0, reserve), ([false, true, true], true));
    assert_eq!(refusing(2, reserve), ([true, true, false], true));
    assert_eq!(refusing(3, reserve), ([true, true, true], false));
    assert_eq!(reserve(), [true, true, true]);
}
