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

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, TryLockError};

use super::errors::Broken;
use super::fork::Gate;
use super::gil::Gil;
use crate::core::{Config, Failure, Handle, NoMemory, Request, Tree};
use crate::sync::{AtomicBool, AtomicUsize, RwLock, UnsafeCell};

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

    fn is_alone<G: Gil>(&self, _: G) -> bool {
        G::KEEPS_OUT && self.detached.load(Ordering::Acquire) == 0
    }

    /// Look-ups run side by side. `work` neither touches Python nor lets go of the GIL.
    #[inline]
    pub fn read<T: Send>(&self, gil: impl Gil, work: impl FnOnce(&Tree) -> T + Send) -> Result<T, Broken> {
        if self.is_alone(gil) {
            // SAFETY: O1.
            return self.tree.with(|tree| self.guarded(|| work(unsafe { &*tree })));
        }
        match self.lock.try_read() {
            // SAFETY: O2.
            Ok(_held) => self.tree.with(|tree| self.guarded(|| work(unsafe { &*tree }))),
            Err(_) => self.detach(gil, |tree| tree.read(work)),
        }
    }

    #[inline]
    pub fn write<T: Send>(&self, gil: impl Gil, work: impl FnOnce(&mut Tree) -> T + Send) -> Result<T, Broken> {
        if self.is_alone(gil) {
            // SAFETY: O1.
            return self.tree.with_mut(|tree| self.changing(|| work(unsafe { &mut *tree })));
        }
        match self.lock.try_write() {
            // SAFETY: O2.
            Ok(_held) => self.tree.with_mut(|tree| self.changing(|| work(unsafe { &mut *tree }))),
            Err(_) => self.detach(gil, |tree| tree.write(work)),
        }
    }

    /// Where the match ended goes to `found`. Alone it writes its own note; beside others it takes the lock for reading,
    /// unless the touch log must be emptied first.
    #[inline]
    pub fn match_prefix(
        &self,
        gil: impl Gil,
        request: Request,
        found: &mut Handle,
    ) -> Result<Result<(), Failure>, Broken> {
        if self.is_alone(gil) {
            return self.tree.with_mut(|tree| {
                // SAFETY: O1.
                self.changing(|| unsafe { &mut *tree }.match_prefix_alone(request, found))
            });
        }
        match self.read(gil, |tree| tree.match_prefix(request))? {
            Ok(handle) => {
                *found = handle;
                Ok(Ok(()))
            }
            Err(Failure::LogFull) => self.write(gil, |tree| tree.match_prefix_alone(request, found)),
            Err(refusal) => Ok(Err(refusal)),
        }
    }

    /// Runs `work` without the GIL; it gets at the tree by way of what it is given.
    pub fn detach<T: Send>(&self, gil: impl Gil, work: impl FnOnce(&Detached) -> T + Send) -> T {
        Gate::open(gil, &self.detached).detach(gil, || work(&Detached { exclusive: self }))
    }

    /// Makes the tree a new one, whole or broken as it is.
    pub fn reset(&self, gil: impl Gil) -> Result<Result<(), NoMemory>, Broken> {
        let reset = || {
            let outcome = self.tree.with_mut(|tree| {
                // SAFETY: O1, or O2.
                caught(|| unsafe { &mut *tree }.reset())
            });
            if !matches!(outcome, Ok(Err(NoMemory))) {
                self.poisoned.store(outcome.is_err(), Ordering::Relaxed);
            }
            outcome
        };
        let outcome = if self.is_alone(gil) {
            reset()
        } else {
            self.detach(gil, |_| {
                let _held = self.lock.write().unwrap_or_else(PoisonError::into_inner);
                reset()
            })
        };
        outcome.map_err(Broken::Changing)
    }

    /// Whether a fork's child could work on the tree.
    #[cfg(all(test, feature = "models"))]
    pub fn is_free(&self, gil: impl Gil) -> bool {
        self.is_alone(gil) && self.lock.try_write().is_ok()
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
        let exclusive = self.exclusive;
        let _held = exclusive.lock.read().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: O2.
        exclusive.tree.with(|tree| exclusive.guarded(|| work(unsafe { &*tree })))
    }

    pub fn write<T>(&self, work: impl FnOnce(&mut Tree) -> T) -> Result<T, Broken> {
        let exclusive = self.exclusive;
        let _held = exclusive.lock.write().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: O2.
        exclusive.tree.with_mut(|tree| exclusive.changing(|| work(unsafe { &mut *tree })))
    }

    /// Writes the marks of the matches that were noted, if nobody else is at the tree now. If it is `due`, it waits.
    pub fn drain_touches(&self, due: bool) -> Result<Result<(), NoMemory>, Broken> {
        let exclusive = self.exclusive;
        let _held = match exclusive.lock.try_write() {
            Ok(held) => held,
            Err(TryLockError::Poisoned(held)) => held.into_inner(),
            Err(TryLockError::WouldBlock) if due => return self.write(Tree::drain_touches),
            Err(TryLockError::WouldBlock) => return Ok(Ok(())),
        };
        // SAFETY: O2.
        exclusive.tree.with_mut(|tree| exclusive.changing(|| unsafe { &mut *tree }.drain_touches()))
    }
}
