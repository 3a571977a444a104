//! Forks and work without the GIL.
//!
//! A child gets the locks of its parent as they stand, but not the threads that would release them. The forking thread
//! holds the GIL, so only what runs detached can hold a tree's lock at that moment. It stays behind this gate: detached
//! work is on its read side, and a fork waits for its write side, which it keeps until parent and child go on.
//! Detached work never waits for the GIL while it is inside, so the fork may wait with the GIL held.
//!
//! Obligation of `unsafe`:
//!
//! O1. `Gil::detach` runs its closure in the thread that calls it.

use std::cell::RefCell;
use std::sync::atomic::Ordering;
use std::sync::{PoisonError, TryLockError};

use pyo3::prelude::*;

use super::gil::Gil;
use crate::sync::{AtomicUsize, RwLock, RwLockReadGuard, RwLockWriteGuard, global};

global!(GATE: RwLock<()> = RwLock::new(()));

thread_local! {
    /// Parent and child both go on in the thread that forked.
    static CLOSED: RefCell<Option<RwLockWriteGuard<'static, ()>>> = const { RefCell::new(None) };
}

/// A thread that is inside, or about to be: counted in `inside`.
pub struct Gate<'a> {
    _open: RwLockReadGuard<'static, ()>,
    inside: &'a AtomicUsize,
}

impl<'a> Gate<'a> {
    /// Goes in and counts, with the GIL held. While somebody forks it waits without the GIL, uncounted.
    pub fn open(gil: impl Gil, inside: &'a AtomicUsize) -> Self {
        loop {
            let open = match GATE.try_read() {
                Ok(open) => open,
                Err(TryLockError::Poisoned(open)) => open.into_inner(),
                Err(TryLockError::WouldBlock) => {
                    gil.detach(|| drop(GATE.read().unwrap_or_else(PoisonError::into_inner)));
                    continue;
                }
            };
            inside.fetch_add(1, Ordering::Relaxed);
            return Self { _open: open, inside };
        }
    }

    /// Runs `work` without the GIL, and goes out before it waits for the GIL again.
    pub fn detach<T: Send>(self, gil: impl Gil, work: impl FnOnce() -> T + Send) -> T {
        /// What stays in its thread, as all of `detach` does.
        struct SameThread<T>(T);
        // SAFETY: O1.
        unsafe impl<T> Send for SameThread<T> {}
        let inside = SameThread(self);
        gil.detach(move || {
            let SameThread(_inside) = { inside };
            work()
        })
    }
}

impl Drop for Gate<'_> {
    fn drop(&mut self) {
        // What this thread did to the tree comes before whatever those do who then count nobody.
        self.inside.fetch_sub(1, Ordering::Release);
    }
}

#[pyfunction]
pub fn before_fork() {
    let gate = GATE.write().unwrap_or_else(PoisonError::into_inner);
    CLOSED.with_borrow_mut(|closed| *closed = Some(gate));
}

#[pyfunction]
pub fn after_fork() {
    CLOSED.with_borrow_mut(|closed| *closed = None);
}
