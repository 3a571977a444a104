//! One operation at a time on a tree, look-ups side by side.
//!
//! A call that keeps the GIL is over in less time than giving it up would take, and the GIL keeps the others out. So the
//! lock is for those who work without the GIL (batches, and calls that wait for them): they are counted, with the GIL
//! held, before they let go of it. Who holds the GIL and counts nobody has the tree to itself and takes no lock. (Without
//! a GIL, on free-threaded Python, everybody takes the lock.)
//!
//! A panic in the tree becomes an exception. While something is being changed it poisons the tree: all later calls say
//! so, but for the reset, which makes it a new one. No lock stays held.
//!
//! Obligations of `unsafe`:
//!
//! O1. Who holds the GIL while nobody is counted in `detached` has the tree to itself: nobody is counted without holding
//!     the GIL, so that stays so for as long as it is kept. `work` does not let go of it.
//! O2. Who holds the lock, for reading or for writing, shares the tree with readers or with nobody: all others of O1 are
//!     kept out, since whoever waits for the lock or has it without the GIL is counted, and whoever has it with the GIL
//!     keeps that.

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock, TryLockError};

use pyo3::prelude::*;

use super::errors::{Broken, broken, no_memory};
use super::fork::Gate;
use crate::core::{Config, Failure, Handle, NoMemory, Request, Tree};

const GIL_IS_A_LOCK: bool = cfg!(not(Py_GIL_DISABLED));

pub struct Exclusive {
    tree: UnsafeCell<Tree>,
    lock: RwLock<()>,
    /// Threads that work on this tree, or wait for it, without the GIL.
    detached: AtomicUsize,
    poisoned: AtomicBool,
    /// Of this cache alone.
    id: u64,
}

// SAFETY: O1, O2.
unsafe impl Sync for Exclusive {}

impl Exclusive {
    pub fn new(config: Config) -> Self {
        static MADE: AtomicU64 = AtomicU64::new(0);
        Self {
            tree: UnsafeCell::new(Tree::new(config)),
            lock: RwLock::new(()),
            detached: AtomicUsize::new(0),
            poisoned: AtomicBool::new(false),
            id: MADE.fetch_add(1, Ordering::Relaxed),
        }
    }

    pub const fn id(&self) -> u64 {
        self.id
    }

    fn is_alone(&self) -> bool {
        GIL_IS_A_LOCK && self.detached.load(Ordering::Acquire) == 0
    }

    /// Look-ups run side by side. `work` neither touches Python nor lets go of the GIL.
    #[inline]
    pub fn read<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&Tree) -> T + Send) -> PyResult<T> {
        let outcome = if self.is_alone() {
            // SAFETY: O1.
            self.guarded(|| work(unsafe { &*self.tree.get() }))
        } else {
            match self.lock.try_read() {
                // SAFETY: O2.
                Ok(_held) => self.guarded(|| work(unsafe { &*self.tree.get() })),
                Err(_) => self.detach(py, |tree| tree.read(work)),
            }
        };
        outcome.map_err(|fault| broken(py, fault))
    }

    #[inline]
    pub fn write<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Tree) -> T + Send) -> PyResult<T> {
        let outcome = if self.is_alone() {
            // SAFETY: O1.
            self.changing(|| work(unsafe { &mut *self.tree.get() }))
        } else {
            match self.lock.try_write() {
                // SAFETY: O2.
                Ok(_held) => self.changing(|| work(unsafe { &mut *self.tree.get() })),
                Err(_) => self.detach(py, |tree| tree.write(work)),
            }
        };
        outcome.map_err(|fault| broken(py, fault))
    }

    /// Where the match ended goes to `found`. Alone it writes its own note; beside others it takes the lock for reading,
    /// unless the touch log must be emptied first.
    #[inline]
    pub fn match_prefix(&self, py: Python<'_>, request: Request, found: &mut Handle) -> PyResult<Result<(), Failure>> {
        if self.is_alone() {
            // SAFETY: O1.
            let outcome = self.changing(|| unsafe { &mut *self.tree.get() }.match_prefix_alone(request, found));
            return outcome.map_err(|fault| broken(py, fault));
        }
        match self.read(py, |tree| tree.match_prefix(request))? {
            Ok(handle) => {
                *found = handle;
                Ok(Ok(()))
            }
            Err(Failure::LogFull) => self.write(py, |tree| tree.match_prefix_alone(request, found)),
            Err(refusal) => Ok(Err(refusal)),
        }
    }

    /// Runs `work` without the GIL; it gets at the tree by way of what it is given.
    pub fn detach<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&Detached) -> T + Send) -> T {
        Gate::open(py, &self.detached).detach(py, || work(&Detached { exclusive: self }))
    }

    /// Makes the tree a new one, whole or broken as it is.
    pub fn reset(&self, py: Python<'_>) -> PyResult<()> {
        let reset = || {
            // SAFETY: O1, or O2.
            let outcome = caught(|| unsafe { &mut *self.tree.get() }.reset());
            if !matches!(outcome, Ok(Err(NoMemory))) {
                self.poisoned.store(outcome.is_err(), Ordering::Relaxed);
            }
            outcome
        };
        let outcome = if self.is_alone() {
            reset()
        } else {
            self.detach(py, |_| {
                let _held = self.lock.write().unwrap_or_else(PoisonError::into_inner);
                reset()
            })
        };
        outcome.map_err(|what| broken(py, Broken::Changing(what)))?.map_err(no_memory)
    }

    fn guarded<T>(&self, work: impl FnOnce() -> T) -> Result<T, Broken> {
        if self.poisoned.load(Ordering::Relaxed) {
            return Err(Broken::Earlier);
        }
        caught(work).map_err(Broken::Reading)
    }

    fn changing<T>(&self, work: impl FnOnce() -> T) -> Result<T, Broken> {
        self.guarded(work).map_err(|fault| match fault {
            Broken::Reading(what) => {
                self.poisoned.store(true, Ordering::Relaxed);
                Broken::Changing(what)
            }
            earlier => earlier,
        })
    }
}

/// What a panic said.
fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        text.unwrap_or("a panic without a message").to_owned()
    })
}

/// A tree for a thread without the GIL.
pub struct Detached<'a> {
    exclusive: &'a Exclusive,
}

impl Detached<'_> {
    pub fn read<T>(&self, work: impl FnOnce(&Tree) -> T) -> Result<T, Broken> {
        let _held = self.exclusive.lock.read().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: O2.
        self.exclusive.guarded(|| work(unsafe { &*self.exclusive.tree.get() }))
    }

    pub fn write<T>(&self, work: impl FnOnce(&mut Tree) -> T) -> Result<T, Broken> {
        let _held = self.exclusive.lock.write().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: O2.
        self.exclusive.changing(|| work(unsafe { &mut *self.exclusive.tree.get() }))
    }

    /// `write` if nobody else is at the tree now.
    pub fn try_write<T>(&self, work: impl FnOnce(&mut Tree) -> T) -> Result<Option<T>, Broken> {
        let _held = match self.exclusive.lock.try_write() {
            Ok(held) => held,
            Err(TryLockError::Poisoned(held)) => held.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(None),
        };
        // SAFETY: O2.
        self.exclusive.changing(|| work(unsafe { &mut *self.exclusive.tree.get() })).map(Some)
    }
}
