//! Forks and work without the GIL.
//!
//! A child gets the locks of its parent as they stand, but not the threads that would release them. The forking thread
//! holds the GIL, so only what runs detached can hold a tree's lock at that moment. It stays behind this gate: detached
//! work is on its read side, and a fork waits for its write side, which it keeps until parent and child go on.
//! Detached work never waits for the GIL, so the fork may wait with the GIL held.

use std::cell::RefCell;
use std::sync::{PoisonError, RwLock, RwLockWriteGuard};

use pyo3::prelude::*;

static GATE: RwLock<()> = RwLock::new(());

thread_local! {
    /// Parent and child both go on in the thread that forked.
    static CLOSED: RefCell<Option<RwLockWriteGuard<'static, ()>>> = const { RefCell::new(None) };
}

/// Runs `work` without the GIL.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    py.detach(|| {
        let _open = GATE.read().unwrap_or_else(PoisonError::into_inner);
        work()
    })
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
